/* BlobProto and BlobShape messages, and the results that a reader of the messages must return. */
#ifndef SB_FUZZ_BLOB_MESSAGE_H
#define SB_FUZZ_BLOB_MESSAGE_H

#include "blob_model.h"
#include "wire_builder.h"

/* The contents of a message, and how they are encoded. */
struct blob_message {
    uint32_t legacy; /* bit i: dimension i is present */
    int64_t legacy_dims[4];
    bool has_shape;
    struct plain_shape shape;
    int64_t counts[4]; /* numbers of values in data, diff, double_data, double_diff */
    unsigned seed;     /* determines the values */
    bool unpacked;
    bool cut; /* omit the last byte */
};

void message_encode(const struct blob_message *message, struct wire *out);
/* Encodes a BlobShape message. */
void message_encode_shape(const struct plain_shape *shape, bool unpacked, bool cut,
                          struct wire *out);

/* Returns the status that a read of this shape must return, for elements of 4 bytes. An invalid
   shape is an error in the data: SB_ERR_BAD_SHAPE or SB_ERR_DATA_OVERFLOW. */
sb_status message_shape_status(struct plain_shape *shape);
/* Sets `out` to the legacy dimensions or, if there are none, to the message's shape; returns the
   status of message_shape_status. */
sb_status message_judge(const struct blob_message *message, struct plain_shape *out);
bool message_shape_is(const struct blob_message *message, const struct plain_shape *judged,
                      const struct plain_blob *blob);
/* Returns the number of values of data or diff: doubles if the message has doubles, else floats. */
int64_t message_count(const struct blob_message *message, int which);
/* Writes the values of data or diff as elements of `dtype`. */
void message_values(const struct blob_message *message, int which, int32_t dtype,
                    unsigned char *out);

/* Appends the message that sb_blob_to_proto must write for an F32 or F64 blob with known bytes. */
void message_of_blob(const struct plain_blob *blob, bool with_diff, struct wire *out);
size_t message_size_of_blob(const struct plain_blob *blob, bool with_diff);

#endif
