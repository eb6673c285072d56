/* A bounded reader of protobuf's wire format. Iterates over the fields of a message and checks that
   each field is inside the message. Reads each byte of the source once, through a window. */
#ifndef SB_WIRE_WIRE_H
#define SB_WIRE_WIRE_H

#include "port/text.h"
#include "wire/progress.h"
#include "wire/source.h"

/* The size of the read window and of the write buffer. The window and the buffer are on the stack,
   and io.h documents how much stack space calls need. Fuzzers use smaller sizes. */
#ifndef SB__WINDOW_BYTES
#define SB__WINDOW_BYTES 4096
#endif
#define SB__MAX_GROUP_DEPTH 100

enum sb__wire_type {
    SB__WIRE_VARINT = 0,
    SB__WIRE_FIXED64 = 1,
    SB__WIRE_BYTES = 2,
    SB__WIRE_GROUP_BEGIN = 3,
    SB__WIRE_GROUP_END = 4,
    SB__WIRE_FIXED32 = 5
};

/* An entry of a table with the names of a message's fields. An entry with the number 0 ends the
   table. */
struct sb__field_name {
    uint32_t number;
    const char *name;
};

/* Returns the name of a field, or NULL for an unknown number. */
const char *sb__field_name(const struct sb__field_name *fields, uint32_t number);

/* The position of the reader, for error messages: "layer[3].blobs[1]". */
struct sb__path {
    const struct sb__path *parent; /* NULL for the outermost message, which has no name */
    const char *name;
    int64_t index;                       /* -1 if the message is not repeated */
    const struct sb__field_name *fields; /* the names of the message's fields */
};

struct sb__reader {
    const struct sb__source *source;
    const unsigned char *bytes; /* the window: bytes [begin, end) of the source */
    uint32_t begin, end;
    uint32_t at;
    struct sb__progress *progress; /* the progress of the call, or NULL without callback */
    unsigned char window[SB__WINDOW_BYTES];
};

struct sb__field {
    uint32_t number; /* 0 if the message has ended */
    uint32_t type;   /* enum sb__wire_type */
    uint32_t offset; /* the offset of the tag */
    uint32_t begin;  /* the offset of the value, after a length prefix */
    uint32_t end;
    uint64_t value; /* the number if `type` is VARINT, FIXED32 or FIXED64, else 0 */
};

/* A loop over a message is

       struct sb__field field = {.end = begin};
       while ((st = sb__wire_next(&reader, &path, end, &field, err)) == SB_OK && field.number != 0)

   The body of the loop may change reader->at. A group is one field, whose contents are checked. */
void sb__reader_init(struct sb__reader *reader, const struct sb__source *source);
/* Reports later reads to `progress`, whose callback may cancel the reads. NULL reports nothing. */
void sb__reader_watch(struct sb__reader *reader, struct sb__progress *progress);
sb_status sb__wire_next(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                        struct sb__field *field, sb_error *err);

/* Reads the varint at reader->at. A varint of more than 64 bits, which Google's readers truncate,
   is MALFORMED. No writer produces a longer varint, and a truncated size or shape would be wrong.
   `field` is the number of the varint's field, for error messages. */
sb_status sb__wire_varint(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                          uint32_t field, uint64_t *out, sb_error *err);

/* Returns the address of bytes inside the source, or NULL if the bytes can only be copied. */
const unsigned char *sb__reader_peek(const struct sb__reader *reader, uint32_t offset, size_t size);

/* Copies bytes inside the source, from the window if possible. */
sb_status sb__reader_copy(const struct sb__reader *reader, uint32_t offset, void *dst, size_t size,
                          sb_error *err);

/* Fills `err` with "PATH.FIELD: text at offset N", or without FIELD if `field` is 0. */
sb_status sb__wire_fail(const struct sb__path *path, uint32_t field, sb_status status,
                        uint32_t offset, sb_error *err, const char *format, ...) SB__PRINTF(6, 7);

#endif
