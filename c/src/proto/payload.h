/* Copying the values of a payload, once, to their target. */
#ifndef SB_PROTO_PAYLOAD_H
#define SB_PROTO_PAYLOAD_H

#include "proto/blob_index.h"

/* Writes `count` of the payload->count values of the indexed message [begin, end), from `first` on,
   to `dst` as `dtype` (a float, an integer, or F16 if payload->dtype is F16). DATA_OVERFLOW: an
   integer type cannot hold a value; the copy ends there. IO, also if the bytes have changed since
   indexing. */
sb_status sb__payload_copy(struct sb__reader *reader, const struct sb__path *path,
                           const struct sb__blob_index *index, const struct sb__payload *payload,
                           int64_t first, int64_t count, int32_t dtype, void *dst, sb_error *err);

#endif
