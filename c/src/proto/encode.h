/* Encodes a blob as a BlobProto message. */
#ifndef SB_PROTO_ENCODE_H
#define SB_PROTO_ENCODE_H

#include "memory/retired.h"
#include "wire/sink.h"

#include <syncblob/proto.h>

/* A blob's message. sb__encode_measure sets `size`. After sb__encode_fetch has set `data` and
   `diff`, sb__encode_pack cannot fail. */
struct sb__encoding {
    const sb_blob *blob;
    bool with_diff;
    size_t size;
    const void *data, *diff; /* NULL if the message omits the field */
};

/* Measures the message. Reads no values. Fails with INVALID_ARGUMENT, UNSUPPORTED or OVER_LIMIT. */
sb_status sb__encode_measure(struct sb__encoding *out, const sb_blob *blob, uint32_t flags,
                             sb_error *err);
/* Makes the bytes current on the host. Returns the statuses of sb_blob_cpu. Adds to `retired` the
   storage that the call retires. The caller ends `retired` after the last use of the blob. */
sb_status sb__encode_fetch(struct sb__encoding *encoding, struct sb__retired *retired,
                           sb_error *err);
void sb__encode_pack(const struct sb__encoding *encoding, struct sb__sink *sink);

#endif
