#ifndef SB_PROTO_READ_BLOB_H
#define SB_PROTO_READ_BLOB_H

#include "proto/blob_index.h"

struct sb__read_blob {
    bool reshape;  /* reshape the blob; false: fail with SHAPE_MISMATCH if the shapes differ */
    bool is_whole; /* the message is the whole source, whose format must be checked */
    size_t held;   /* bytes of the sb_model and its index, which count towards limits->max_memory */
    const sb_limits *limits;
};

/* Reads the message [begin, end) of reader->source into a blob of floats, integers or F16. A
   failure changes nothing. */
sb_status sb__read_blob(sb_blob *blob, struct sb__reader *reader, const struct sb__path *path,
                        uint32_t begin, uint32_t end, const struct sb__read_blob *how,
                        sb_error *err);

/* Compares shapes as Caffe's Blob::ShapeEquals(BlobProto) does. */
bool sb__shape_equals_index(const struct sb__shape *shape, const struct sb__blob_index *index);

/* A range of a blob's values. */
struct sb__values {
    sb_part part;
    int64_t first, count; /* neither is negative, and first + count does not overflow */
    sb_dtype dtype;       /* a float, an integer or F16 */
};

/* Reads a range of values, as sb__read_blob reads all values. Returns INDEX_OUT_OF_RANGE if the
   range exceeds the values. */
sb_status sb__read_values(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, const struct sb__values *wanted,
                          void *out, sb_error *err);

#endif
