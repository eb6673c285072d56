/* A second reader of Caffe's binary messages, with which the harnesses compare the library's
   reader. It implements protobuf's encoding rules and the rules of proto/README.md, and shares no
   code with the library. It splits a message into a list of fields, then interprets the fields, and
   continues after an invalid field. */
#ifndef SB_FUZZ_DECODER_H
#define SB_FUZZ_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/model.h>

/* A set of faults in the bytes. A reader that stops at its first fault may report any fault of the
   set, and it must refuse the bytes if and only if the set is not empty. */
enum {
    DECODER_MALFORMED = 1,
    DECODER_LENGTH = 2,
    DECODER_BAD_SHAPE = 4,
    DECODER_OVERFLOW = 8,
    DECODER_LIMIT = 16
};

struct decoder_limits {
    size_t max_layers, max_blobs, max_name_bytes, max_axes;
};

extern const struct decoder_limits decoder_default_limits;

/* The types of stored values, with NVCaffe's numbers. */
enum { DECODED_DOUBLE, DECODED_FLOAT, DECODED_HALF, DECODED_INT, DECODED_UNSIGNED, DECODED_TYPES };

struct decoded_values {
    unsigned type; /* DECODED_* */
    size_t width;  /* bytes of one value, 2, 4 or 8 */
    size_t count;
    uint8_t *bytes; /* little-endian, as in the input */
};

#define MAX_AXES 32

struct decoded_blob {
    const uint8_t *message; /* in the input */
    size_t size;
    bool legacy;
    bool c3d; /* a blob of C3D 1.0, with five legacy dimensions */
    size_t num_axes;
    int64_t dims[MAX_AXES];
    int64_t count;
    struct decoded_values data, diff; /* doubles if present, else floats, else raw values */
};

struct decoded_layer {
    sb_text name, type;
    int32_t type_number;      /* of generation 1 */
    int generation;           /* 0, 1, 2 */
    size_t first_blob, blobs; /* in decoded_file.blobs */
};

struct decoded_file {
    const struct decoder_limits *limits;
    unsigned faults; /* DECODER_*; 0: the members below are valid */
    bool recognised; /* the message has at least one field of the format */
    bool c3d;        /* at least one blob is from C3D 1.0 */
    sb_text name, learned_net;
    int32_t iter, current_step;
    struct decoded_layer *layers;
    size_t num_layers, room_layers;
    struct decoded_blob *blobs; /* all blobs, within layers or not, in the file's order */
    size_t num_blobs, room_blobs;
};

/* Decodes the whole input as one message of a format, SB_FORMAT_*; decoded_file_free frees the
   result. */
struct decoded_file decode(int32_t format, const uint8_t *bytes, size_t size,
                           const struct decoder_limits *limits);
void decoded_file_free(struct decoded_file *file);

/* Returns the faults of loading a whole blob into elements of `element_size` bytes: the blob must
   have data, and its bytes must fit in the address space. */
unsigned decoded_blob_load_faults(const struct decoded_blob *blob, size_t element_size);

/* Returns whether a reader of bytes with `faults` may return `status`. */
bool decoder_explains(unsigned faults, sb_status status);

#endif
