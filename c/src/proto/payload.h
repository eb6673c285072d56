/* Copies the values of a payload directly to their destination. */
#ifndef SB_PROTO_PAYLOAD_H
#define SB_PROTO_PAYLOAD_H

#include "proto/blob_index.h"

/* Writes the payload's values [first, first + count) to `dst` as `dtype` (a float, an integer, or
   F16 if payload->dtype is F16). `index` describes the payload's message. Fails with DATA_OVERFLOW
   at the first value that an integer type cannot hold. Fails with IO if a read fails or the bytes
   have changed since they were indexed. */
sb_status sb__payload_copy(struct sb__reader *reader, const struct sb__path *path,
                           const struct sb__blob_index *index, const struct sb__payload *payload,
                           int64_t first, int64_t count, int32_t dtype, void *dst, sb_error *err);

#endif
