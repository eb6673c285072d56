/* The values of a payload, copied once to where they are used. */
#ifndef SB_PROTO_PAYLOAD_H
#define SB_PROTO_PAYLOAD_H

#include "proto/blob_index.h"

/* Writes `count` values, from `first` on, of the payload->count values of the message [begin, end),
   which was indexed, to `dst` as `dtype` (a float, an integer, or F16 where payload->dtype is).
   DATA_OVERFLOW: an integer type does not hold one of them, where the copy ends. IO; also when the
   bytes are no longer what was indexed. */
sb_status sb__payload_copy(struct sb__reader *reader, const struct sb__path *path,
                           const struct sb__blob_index *index, const struct sb__payload *payload,
                           int64_t first, int64_t count, int32_t dtype, void *dst, sb_error *err);

#endif
