/* Recognition of a message by the numbers and wire types of its fields. A kind of message is
   recognised only if several fields indicate it and no field contradicts it. */
#ifndef SB_FORMAT_OUTLINE_H
#define SB_FORMAT_OUTLINE_H

#include "wire/wire.h"

#define SB__OUTLINE_FIELDS 15     /* indices 1 to 13 are field numbers, 14 is a net's layer */
#define SB__OUTLINE_MANY   100000 /* the maximum number of fields to read, which bounds the time */

struct sb__outline {
    uint32_t seen[SB__OUTLINE_FIELDS]; /* the wire types of each field, as bits */
    struct {
        uint32_t begin, end;
    } first[SB__OUTLINE_FIELDS]; /* the bytes of each field's first value */
    bool others;                 /* a field is present whose number is neither 1 to 13 nor 100 */
    enum {
        SB__WHOLE,
        SB__BROKEN,
        SB__CUT
    } state; /* SB__CUT: the bytes end within the last field */
};

/* Reads the outline of the source's bytes [begin, end), from at most `fields` fields. If more
   fields follow, the state is SB__WHOLE. Fails only if the source fails. */
sb_status sb__outline_read(struct sb__reader *reader, uint32_t begin, uint32_t end, size_t fields,
                           struct sb__outline *out, sb_error *err);
/* Sets `*out` to the recognised format, else to SB_FORMAT_AUTO. Fails only if the source fails. */
sb_status sb__outline_format(const struct sb__outline *outline, struct sb__reader *reader,
                             int32_t *out, sb_error *err);
/* Sets `*out` to whether the message is a vector of blobs. Fails only if the source fails. */
sb_status sb__outline_is_vector(const struct sb__outline *outline, struct sb__reader *reader,
                                bool *out, sb_error *err);
/* Sets `*out` to whether the message is an ONNX model. Fails only if the source fails. */
sb_status sb__outline_is_onnx(const struct sb__outline *outline, struct sb__reader *reader,
                              bool *out, sb_error *err);

#endif
