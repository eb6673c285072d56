/* Whose message bytes are, by the numbers and wire types of their fields. Undecided
   unless several fields speak for one kind, and none against it. */
#ifndef SB_FORMAT_OUTLINE_H
#define SB_FORMAT_OUTLINE_H

#include "wire/wire.h"

#define SB__OUTLINE_FIELDS 15     /* 1 to 13 and, at 14, a net's layer */
#define SB__OUTLINE_MANY   100000 /* fields: a bound for the time that they take, not for files */

struct sb__outline {
    uint32_t seen[SB__OUTLINE_FIELDS]; /* wire types, as bits */
    struct {
        uint32_t begin, end;
    } first[SB__OUTLINE_FIELDS];                   /* the first value of a field */
    bool others;                                   /* there are fields of other numbers */
    enum { SB__WHOLE, SB__BROKEN, SB__CUT } state; /* SB__CUT: the last is longer than the bytes */
};

/* Of [begin, end) of the source, of `fields` fields at most: SB__WHOLE behind them. Fails only
   where the source does. */
sb_status sb__outline_read(struct sb__reader *reader, uint32_t begin, uint32_t end, size_t fields,
                           struct sb__outline *out, sb_error *err);
/* SB_FORMAT_AUTO: perhaps none of Caffe's. Fails only where the source does. */
sb_status sb__outline_format(const struct sb__outline *outline, struct sb__reader *reader,
                             int32_t *out, sb_error *err);
/* Blobs of a vector and nothing else. Fails only where the source does. */
sb_status sb__outline_is_vector(const struct sb__outline *outline, struct sb__reader *reader,
                                bool *out, sb_error *err);
/* Fails only where the source does. */
sb_status sb__outline_is_onnx(const struct sb__outline *outline, struct sb__reader *reader,
                              bool *out, sb_error *err);

#endif
