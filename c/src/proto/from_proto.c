#include "base/error.h"
#include "context/context.h"
#include "format/open.h"
#include "format/refusal.h"
#include "proto/read_blob.h"

#include <syncblob/model.h>
#include <syncblob/proto.h>

static const struct sb__path blob_path = {NULL, "", -1, sb__blob_fields};
static const struct sb__path shape_path = {NULL, "", -1, sb__shape_fields};

static sb_status check_read(const sb_blob *blob, uint32_t flags, const sb_limits *limits,
                            sb_limits *resolved, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    if (flags & ~(uint32_t)SB_PROTO_RESHAPE)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "flags are %u, only SB_PROTO_RESHAPE is known", flags);
    sb_status st = sb__check_read_dtype(sb_blob_dtype(blob), err);
    if (st != SB_OK)
        return st;
    return sb__limits_resolve(sb__context(sb_blob_context(blob)), limits, resolved, err);
}

static sb_status read_source(sb_blob *blob, const struct sb__source *source, uint32_t flags,
                             const sb_limits *limits, const sb_progress *progress, sb_error *err) {
    struct sb__reader reader;
    struct sb__progress state;
    const struct sb__read_blob how = {flags & SB_PROTO_RESHAPE, true, 0, limits};
    sb__reader_init(&reader, source);
    sb__reader_watch(&reader, sb__progress_begin(&state, progress, source->size));
    sb_status st = sb__read_blob(blob, &reader, &blob_path, 0, source->size, &how, err);
    sb__refusal_explain(st, SB_FORMAT_BLOB, &reader, err);
    return st;
}

sb_status sb_blob_from_proto(sb_blob *blob, const void *bytes, size_t size, uint32_t flags,
                             const sb_limits *limits, sb_error *err) {
    sb_limits resolved;
    struct sb__source source;
    sb_status st = check_read(blob, flags, limits, &resolved, err);
    if (st == SB_OK)
        st = sb__source_of_bytes(&source, bytes, size, err);
    if (st != SB_OK)
        return st;
    return read_source(blob, &source, flags, &resolved, NULL, err);
}

sb_status sb_blob_load_file(sb_blob *blob, const char *path, uint32_t flags,
                            const sb_limits *limits, sb_error *err) {
    sb_limits resolved;
    struct sb__source source;
    sb_status st = check_read(blob, flags, limits, &resolved, err);
    if (st != SB_OK)
        return st;
    if (!path)
        return sb__fail_null(err, "path");
    st = sb__source_open(&source, path, false, err);
    if (st != SB_OK)
        return st;
    st = read_source(blob, &source, flags, &resolved, NULL, err);
    sb__source_close(&source);
    return st;
}

sb_status sb_blob_load_source(sb_blob *blob, const sb_source *source, uint32_t flags,
                              const sb_limits *limits, const sb_progress *progress, sb_error *err) {
    sb_limits resolved;
    sb_progress to;
    struct sb__source taken;
    sb_status st = check_read(blob, flags, limits, &resolved, err);
    if (st != SB_OK)
        return st;
    if (!source)
        return sb__fail_null(err, "source");
    st = sb__progress_adopt(&to, progress, err);
    if (st == SB_OK)
        st = sb__source_of(&taken, source, err);
    if (st != SB_OK)
        return st;
    return read_source(blob, &taken, flags, &resolved, &to, err);
}

sb_status sb_blob_shape_equals_proto(const sb_blob *blob, const void *bytes, size_t size,
                                     int32_t *out, sb_error *err) {
    struct sb__source source;
    struct sb__reader reader;
    struct sb__blob_index index;
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    const sb_limits *limits = &sb__context(sb_blob_context(blob))->limits;
    sb_status st = sb__source_of_bytes(&source, bytes, size, err);
    if (st != SB_OK)
        return st;
    sb__reader_init(&reader, &source);
    st = sb__blob_index(&reader, &blob_path, 0, source.size, limits, &index, err);
    if (st == SB_OK)
        st = sb__blob_index_check_source(&index, &source, err);
    if (st == SB_OK)
        *out = sb__shape_equals_index(sb__blob_shape(blob), &index);
    sb__refusal_explain(st, SB_FORMAT_BLOB, &reader, err);
    return st;
}

sb_status sb_blob_reshape_proto(sb_blob *blob, const void *bytes, size_t size,
                                uint32_t *out_reallocated, sb_error *err) {
    struct sb__source source;
    struct sb__reader reader;
    struct sb__shape shape;
    if (!blob)
        return sb__fail_null(err, "blob");
    const sb_limits *limits = &sb__context(sb_blob_context(blob))->limits;
    sb_status st = sb__source_of_bytes(&source, bytes, size, err);
    if (st != SB_OK)
        return st;
    sb__reader_init(&reader, &source);
    st = sb__shape_index(&reader, &shape_path, 0, source.size, limits, &shape, err);
    if (st != SB_OK)
        return st;
    if (sb_blob_reshape(blob, shape.dims, shape.num_axes, out_reallocated, NULL) == SB_OK)
        return SB_OK;
    return sb__wire_fail(&shape_path, SB__SHAPE_DIM, SB_ERR_DATA_OVERFLOW, 0, err,
                         "the shape's byte count overflows; the message begins");
}
