/* One BlobProto message: what is in it, found and checked without reading a
   value of its payload. */
#ifndef SB_PROTO_BLOB_INDEX_H
#define SB_PROTO_BLOB_INDEX_H

#include "blob/load.h"
#include "format/layout.h"
#include "format/refusal.h"

struct sb__payload {
    uint32_t field;  /* SB__BLOB_DATA ... RAW_DIFF */
    int32_t dtype;   /* of a value in the bytes */
    uint32_t offset; /* of its first part */
    int64_t count;   /* values; 0: there is none */
    uint32_t begin;  /* of the values of its first part */
    uint32_t parts;  /* in which the values lie */
};

struct sb__blob_index {
    uint32_t begin, end; /* the message */
    bool legacy;         /* the shape came from num, channels, height, width */
    bool doubtful;       /* there are messages or texts where others of Caffe's formats have them */
    struct sb__shape shape;
    struct sb__payload data, diff; /* the ones that win: double, float, raw */
};

/* Checks the wire format and the shape. */
sb_status sb__blob_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                         uint32_t end, const sb_limits *limits, struct sb__blob_index *out,
                         sb_error *err);
/* The payloads there are have as many values as the shape; with `whole`, data is there. */
sb_status sb__blob_index_check(const struct sb__blob_index *index, const struct sb__path *path,
                               bool whole, sb_error *err);
/* Of a message that is all of the source: MALFORMED if that is another message. */
static inline sb_status sb__blob_index_check_source(const struct sb__blob_index *index,
                                                    const struct sb__source *source,
                                                    sb_error *err) {
    const bool has_values = index->data.count > 0 || index->diff.count > 0;
    return has_values && !index->doubtful
               ? (sb_status)SB_OK
               : sb__refusal_check_blob(source, has_values, index->doubtful, err);
}
/* What the values are stored as: those of data, or else of diff; F32 if there are none. */
int32_t sb__blob_index_dtype(const struct sb__blob_index *index);

/* One BlobShape message. */
sb_status sb__shape_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, struct sb__shape *out,
                          sb_error *err);

/* UNSUPPORTED unless the blob is F32 or F64, which are written. */
sb_status sb__check_proto_dtype(const sb_blob *blob, sb_error *err);
/* UNSUPPORTED unless it is a float, an integer or F16, as which a message is read. */
sb_status sb__check_read_dtype(sb_dtype dtype, sb_error *err);

#endif
