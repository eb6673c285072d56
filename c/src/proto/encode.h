/* A blob as a BlobProto message. */
#ifndef SB_PROTO_ENCODE_H
#define SB_PROTO_ENCODE_H

#include "memory/retired.h"
#include "wire/sink.h"

#include <syncblob/proto.h>

/* An encoding that is ready to be packed, which cannot fail. It points into the blob. */
struct sb__encoding {
    const sb_blob *blob;
    bool with_diff;
    size_t size;
    const void *data, *diff; /* NULL: none is written */
};

/* Checks and measures; touches no byte. INVALID_ARGUMENT, UNSUPPORTED, OVER_LIMIT. */
sb_status sb__encode_measure(struct sb__encoding *out, const sb_blob *blob, uint32_t flags,
                             sb_error *err);
/* Makes the bytes current on the host: the codes of sb_blob_cpu. What they replace goes to
   `retired`, which is ended after all that needs the blob. */
sb_status sb__encode_fetch(struct sb__encoding *encoding, struct sb__retired *retired,
                           sb_error *err);
void sb__encode_pack(const struct sb__encoding *encoding, struct sb__sink *sink);

#endif
