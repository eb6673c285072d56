/* A BlobProto message into a blob. */
#ifndef SB_PROTO_READ_BLOB_H
#define SB_PROTO_READ_BLOB_H

#include "proto/blob_index.h"

struct sb__read_blob {
    bool reshape;  /* take the message's shape; without it, another one is SHAPE_MISMATCH */
    bool is_whole; /* the message is all of the source, which may be of another format */
    size_t held;   /* bytes of an index that count against limits->max_memory */
    const sb_limits *limits;
};

/* Reads the message [begin, end) of reader->source into a blob of floats, integers or F16. A
   failure changes nothing of it, even one half-way. */
sb_status sb__read_blob(sb_blob *blob, struct sb__reader *reader, const struct sb__path *path,
                        uint32_t begin, uint32_t end, const struct sb__read_blob *how,
                        sb_error *err);

/* Blob::ShapeEquals(BlobProto). */
bool sb__shape_equals_index(const struct sb__shape *shape, const struct sb__blob_index *index);

/* Some values of a blob. */
struct sb__values {
    sb_part part;
    int64_t first, count; /* 0 or more; the sum fits */
    sb_dtype dtype;       /* a float, an integer or F16 */
};

/* Reads values alone, as sb__read_blob reads all. INDEX_OUT_OF_RANGE: there are fewer. */
sb_status sb__read_values(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, const struct sb__values *wanted,
                          void *out, sb_error *err);

#endif
