/* The index of one BlobProto message. Indexing checks the message and does not read its values. */
#ifndef SB_PROTO_BLOB_INDEX_H
#define SB_PROTO_BLOB_INDEX_H

#include "blob/load.h"
#include "format/layout.h"
#include "format/refusal.h"

struct sb__payload {
    uint32_t field;  /* SB__BLOB_DATA ... RAW_DIFF */
    int32_t dtype;   /* the dtype of the stored values */
    uint32_t offset; /* the offset of the first part's tag */
    int64_t count;   /* number of values; 0 if there is no such payload */
    uint32_t begin;  /* the offset of the first part's values */
    uint32_t parts;  /* number of fields that contain the values */
};

struct sb__blob_index {
    uint32_t begin, end; /* the message's bytes */
    bool legacy;         /* the shape is from the fields num, channels, height and width */
    bool is_c3d;         /* a message of C3D 1.0, which also has the field length */
    bool doubtful;       /* fields 1 to 4 or 100 are texts or messages, as in another format */
    struct sb__shape shape;
    struct sb__payload data, diff; /* the values to read: doubles if present, else floats, else raw
                                      values */
};

/* Indexes a message. Checks the wire format and the shape. */
sb_status sb__blob_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                         uint32_t end, const sb_limits *limits, struct sb__blob_index *out,
                         sb_error *err);
/* Checks that a payload of the index has as many values as the shape. `path` is the result of
   sb__blob_index_path. */
sb_status sb__payload_check(const struct sb__blob_index *index, const struct sb__path *path,
                            const struct sb__payload *payload, sb_error *err);
/* Checks the payloads that are present. If `whole`, data must be present, unless the shape has no
   elements. */
sb_status sb__blob_index_check(const struct sb__blob_index *index, const struct sb__path *path,
                               bool whole, sb_error *err);
/* Checks a message that is the whole source. Returns MALFORMED if the message is recognised as
   another kind of message. */
static inline sb_status sb__blob_index_check_source(const struct sb__blob_index *index,
                                                    const struct sb__source *source,
                                                    sb_error *err) {
    const bool has_values = index->data.count > 0 || index->diff.count > 0;
    return has_values && !index->doubtful
               ? (sb_status)SB_OK
               : sb__refusal_check_blob(source, has_values, index->doubtful, err);
}
/* Returns `path` with the message's field names: C3D's names for a message of C3D 1.0, else Caffe's
   names. */
static inline struct sb__path sb__blob_index_path(const struct sb__blob_index *index,
                                                  const struct sb__path *path) {
    return (struct sb__path){path->parent, path->name, path->index,
                             index->is_c3d ? sb__c3d_blob_fields : sb__blob_fields};
}
/* Returns the stored dtype of data, or of diff if data is absent. Returns F32 if both are
   absent. */
int32_t sb__blob_index_dtype(const struct sb__blob_index *index);

/* Checks a BlobShape message and reads its shape. */
sb_status sb__shape_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, struct sb__shape *out,
                          sb_error *err);

/* Returns UNSUPPORTED unless the blob is F32 or F64, the dtypes that can be written. */
sb_status sb__check_proto_dtype(const sb_blob *blob, sb_error *err);
/* Returns UNSUPPORTED unless `dtype` is F32, F64, F16 or an integer, the dtypes that can be
   read. */
sb_status sb__check_read_dtype(sb_dtype dtype, sb_error *err);

#endif
