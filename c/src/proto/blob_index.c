#include "proto/blob_index.h"

#include "base/dtype.h"
#include "base/error.h"

#include <string.h>

/* The structs below collect the fields of a message. The fields are checked after the whole message
   has been read, because a later field may override an earlier field. */
struct dims {
    int64_t count; /* may exceed SB_MAX_AXES, the size of `values` */
    int64_t values[SB_MAX_AXES];
    uint32_t offsets[SB_MAX_AXES];
};

/* raw_data or raw_diff: one field of bytes. A second field determines the dtype of the values. The
   field of bytes is not repeated, so its last occurrence is used. */
struct raw {
    uint32_t offset, begin, size; /* offsets of the tag and of the bytes, and number of bytes */
    int32_t dtype;                /* 0: unknown */
};

/* Bits of field numbers. A message of C3D 1.0 begins with the fields 1 to 5, which are dimensions.
   In other messages field 5 is data and never a varint. */
#define C3D_DIMS 0x3eu
#define DIMS     0x1eu

struct claims {
    bool is_c3d, doubtful;
    bool has_others; /* a field that is not a dimension was present */
    uint32_t legacy; /* bit n is set if field n, a dimension, is present */
    int64_t legacy_dims[SB__C3D_WIDTH];
    uint32_t legacy_offsets[SB__C3D_WIDTH];
    struct dims dims;
    struct sb__payload payloads[4]; /* data, diff, double_data, double_diff */
    struct raw raws[2];             /* raw_data, raw_diff */
};

sb_status sb__check_proto_dtype(const sb_blob *blob, sb_error *err) {
    int32_t dtype = sb_blob_dtype(blob);
    if (sb__is_float(dtype))
        return SB_OK;
    return sb__fail(err, SB_ERR_UNSUPPORTED, "a BlobProto holds f32 or f64, not %s",
                    sb_dtype_name(dtype));
}

sb_status sb__check_read_dtype(sb_dtype dtype, sb_error *err) {
    if (sb__is_float(dtype) || sb__is_integer(dtype) || dtype == SB_DTYPE_F16)
        return SB_OK;
    return sb__fail(err, SB_ERR_UNSUPPORTED, "a BlobProto is not read as %s", sb_dtype_name(dtype));
}

/* --- collecting --------------------------------------------------------------- */

static void add_dim(struct dims *dims, uint64_t value, uint32_t offset) {
    if (dims->count < SB_MAX_AXES) {
        dims->values[dims->count] = (int64_t)value;
        dims->offsets[dims->count] = offset;
    }
    dims->count++;
}

static sb_status gather_packed_dims(struct sb__reader *reader, const struct sb__path *path,
                                    const struct sb__field *field, struct dims *dims,
                                    sb_error *err) {
    reader->at = field->begin;
    while (reader->at < field->end) {
        uint32_t offset = reader->at;
        uint64_t value;
        sb_status st = sb__wire_varint(reader, path, field->end, SB__SHAPE_DIM, &value, err);
        if (st != SB_OK)
            return st;
        add_dim(dims, value, offset);
    }
    return SB_OK;
}

static sb_status gather_dims(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                             uint32_t end, struct dims *dims, sb_error *err) {
    struct sb__field field = {.end = begin};
    sb_status st;
    while ((st = sb__wire_next(reader, path, end, &field, err)) == SB_OK && field.number != 0) {
        if (sb__field_is_varint(&field, SB__SHAPE_DIM))
            add_dim(dims, field.value, field.begin);
        else if (sb__field_is_bytes(&field, SB__SHAPE_DIM))
            st = gather_packed_dims(reader, path, &field, dims, err);
        if (st != SB_OK)
            return st;
    }
    return st;
}

static struct sb__payload *payload_of(struct claims *claims, uint32_t number) {
    static const signed char slots[] = {-1, -1, -1, -1, -1, 0, 1, -1, 2, 3},
                             c3d_slots[] = {-1, -1, -1, -1, -1, -1, 0, 1, -1, -1};
    const signed char *const of_kind = claims->is_c3d ? c3d_slots : slots;
    const int slot = number < sizeof slots ? of_kind[number] : -1;
    return slot < 0 ? NULL : &claims->payloads[slot];
}

static sb_status gather_payload(const struct sb__path *path, const struct sb__field *field,
                                struct sb__payload *payload, sb_error *err) {
    size_t size = field->number < SB__BLOB_DOUBLE_DATA ? sizeof(float) : sizeof(double);
    uint32_t bytes = field->end - field->begin;
    bool packed = field->type == SB__WIRE_BYTES;
    if (!packed && field->type != (size == 4 ? SB__WIRE_FIXED32 : SB__WIRE_FIXED64))
        return SB_OK;
    if (bytes % size != 0)
        return sb__wire_fail(path, field->number, SB_ERR_MALFORMED, field->begin, err,
                             "%u bytes are not a whole number of %zu-byte values", bytes, size);
    if (bytes == 0)
        return SB_OK;
    if (payload->count == 0) {
        payload->offset = field->offset;
        payload->begin = field->begin;
    }
    payload->parts++;
    payload->count += (int64_t)(bytes / size);
    return SB_OK;
}

/* Ignores an unknown type number, as protobuf ignores unknown values of an enumeration. */
static void gather_raw(const struct sb__field *field, struct claims *claims) {
    static const int32_t dtypes[] = {SB_DTYPE_F64, SB_DTYPE_F32, SB_DTYPE_F16, SB_DTYPE_I32,
                                     SB_DTYPE_U32};
    const bool is_type = field->number < SB__BLOB_RAW_DATA;
    struct raw *raw =
        &claims->raws[field->number - (is_type ? SB__BLOB_RAW_DATA_TYPE : SB__BLOB_RAW_DATA)];
    if (is_type && field->type == SB__WIRE_VARINT) {
        const uint32_t type = (uint32_t)field->value;
        raw->dtype = type < sizeof dtypes / sizeof *dtypes ? dtypes[type] : raw->dtype;
    } else if (!is_type && field->type == SB__WIRE_BYTES) {
        raw->offset = field->offset;
        raw->begin = field->begin;
        raw->size = field->end - field->begin;
    }
}

static void gather_legacy(const struct sb__field *field, struct claims *claims) {
    claims->legacy |= 1u << field->number;
    claims->legacy_dims[field->number - SB__BLOB_NUM] = (int64_t)field->value;
    claims->legacy_offsets[field->number - SB__BLOB_NUM] = field->offset;
    claims->is_c3d = claims->is_c3d || (claims->legacy == C3D_DIMS && !claims->has_others);
}

static sb_status gather_field(struct sb__reader *reader, const struct sb__path *path,
                              const struct sb__field *field, struct claims *claims, sb_error *err) {
    if (field->number <= SB__C3D_WIDTH && field->type == SB__WIRE_VARINT) {
        gather_legacy(field, claims);
        return SB_OK;
    }
    claims->has_others = true;
    struct sb__payload *payload = payload_of(claims, field->number);
    if (payload)
        return gather_payload(path, field, payload, err);
    if (sb__field_is_bytes(field, SB__BLOB_SHAPE)) {
        const struct sb__path shape = {path, "shape", -1, sb__shape_fields};
        return gather_dims(reader, &shape, field->begin, field->end, &claims->dims, err);
    }
    if (!claims->is_c3d && field->number >= SB__BLOB_RAW_DATA_TYPE &&
        field->number <= SB__BLOB_RAW_DIFF)
        gather_raw(field, claims);
    if ((field->number <= SB__BLOB_WIDTH || field->number == SB__NET_LAYER) &&
        field->type == SB__WIRE_BYTES)
        claims->doubtful = true;
    return SB_OK;
}

/* --- checking ------------------------------------------------------------------ */

static sb_status check_axes(const struct sb__path *path, uint32_t field, int64_t axes,
                            const sb_limits *limits, uint32_t offset, sb_error *err) {
    if (axes > SB_MAX_AXES)
        return sb__wire_fail(path, field, SB_ERR_BAD_SHAPE, offset, err,
                             "%lld axes are more than %d", (long long)axes, SB_MAX_AXES);
    if (axes > limits->max_axes)
        return sb__wire_fail(path, field, SB_ERR_DATA_LIMIT, offset, err,
                             "%lld axes are more than the limit of %lld", (long long)axes,
                             (long long)limits->max_axes);
    return SB_OK;
}

static sb_status make_shape(const struct sb__path *path, uint32_t offset, const int64_t *dims,
                            int32_t num_axes, struct sb__shape *out, sb_error *err) {
    if (sb__shape_make(out, dims, num_axes, sizeof(float), NULL) == SB_OK)
        return SB_OK;
    return sb__wire_fail(path, 0, SB_ERR_DATA_OVERFLOW, offset, err,
                         "the product of the dimensions overflows; the shape begins");
}

static sb_status judge_dims(const struct sb__path *path, const struct dims *dims,
                            const sb_limits *limits, struct sb__shape *out, sb_error *err) {
    sb_status st = check_axes(path, SB__SHAPE_DIM, dims->count, limits, dims->offsets[0], err);
    if (st != SB_OK)
        return st;
    for (int64_t i = 0; i < dims->count; i++)
        if (dims->values[i] < 0)
            return sb__wire_fail(path, SB__SHAPE_DIM, SB_ERR_BAD_SHAPE, dims->offsets[i], err,
                                 "axis %lld is negative or beyond 63 bits", (long long)i);
    return make_shape(path, dims->offsets[0], dims->values, (int32_t)dims->count, out, err);
}

static sb_status judge_legacy(const struct sb__path *path, const struct claims *claims,
                              const sb_limits *limits, struct sb__shape *out, sb_error *err) {
    const int32_t axes = claims->is_c3d ? SB__C3D_WIDTH : SB__BLOB_WIDTH;
    for (uint32_t i = 0; i < (uint32_t)axes; i++) {
        int64_t dim = claims->legacy_dims[i];
        if (dim >= 0 && dim <= INT32_MAX)
            continue;
        return sb__wire_fail(path, SB__BLOB_NUM + i,
                             dim < 0 ? SB_ERR_BAD_SHAPE : SB_ERR_DATA_OVERFLOW,
                             claims->legacy_offsets[i], err, "%lld %s", (long long)dim,
                             dim < 0 ? "is negative" : "is beyond 31 bits");
    }
    uint32_t offset = claims->legacy_offsets[0];
    sb_status st = check_axes(path, 0, axes, limits, offset, err);
    return st == SB_OK ? make_shape(path, offset, claims->legacy_dims, axes, out, err) : st;
}

static sb_status judge_shape(const struct sb__path *path, const struct claims *claims,
                             const sb_limits *limits, struct sb__shape *out, sb_error *err) {
    if ((claims->legacy & DIMS) != 0)
        return judge_legacy(path, claims, limits, out, err);
    const struct sb__path shape = {path, "shape", -1, sb__shape_fields};
    return judge_dims(&shape, &claims->dims, limits, out, err);
}

static sb_status judge_raw(const struct sb__path *path, const struct raw *raw, uint32_t field,
                           struct sb__payload *out, sb_error *err) {
    const size_t size = sb_dtype_size(raw->dtype);
    if (size == 0)
        return sb__wire_fail(path, field, SB_ERR_MALFORMED, raw->offset, err,
                             "the type of its %u bytes is missing or unknown", raw->size);
    if (raw->size % size != 0)
        return sb__wire_fail(path, field, SB_ERR_MALFORMED, raw->begin, err,
                             "%u bytes are not a whole number of %zu-byte values", raw->size, size);
    *out = (struct sb__payload){field,      raw->dtype, raw->offset, (int64_t)(raw->size / size),
                                raw->begin, 1};
    return SB_OK;
}

/* Determines the payload of data if `side` is 0, and of diff if `side` is 1. */
static sb_status judge_payload(const struct sb__path *path, const struct claims *claims,
                               uint32_t side, struct sb__payload *out, sb_error *err) {
    const bool is_wide = claims->payloads[side + 2].count > 0;
    *out = claims->payloads[is_wide ? side + 2 : side];
    out->field = side + (is_wide          ? SB__BLOB_DOUBLE_DATA
                         : claims->is_c3d ? SB__C3D_DATA
                                          : SB__BLOB_DATA);
    out->dtype = is_wide ? SB_DTYPE_F64 : SB_DTYPE_F32;
    if (out->count > 0 || claims->raws[side].size == 0)
        return SB_OK;
    return judge_raw(path, &claims->raws[side], side + SB__BLOB_RAW_DATA, out, err);
}

/* --- whole messages --------------------------------------------------------------- */

sb_status sb__blob_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                         uint32_t end, const sb_limits *limits, struct sb__blob_index *out,
                         sb_error *err) {
    struct claims claims;
    struct sb__path names = *path;
    memset(&claims, 0, sizeof claims);
    struct sb__field field = {.end = begin};
    sb_status st;
    while ((st = sb__wire_next(reader, &names, end, &field, err)) == SB_OK && field.number != 0) {
        st = gather_field(reader, &names, &field, &claims, err);
        if (st != SB_OK)
            return st;
        names.fields = claims.is_c3d ? sb__c3d_blob_fields : sb__blob_fields;
    }
    out->is_c3d = claims.is_c3d;
    if (st == SB_OK)
        st = judge_shape(&names, &claims, limits, &out->shape, err);
    if (st == SB_OK)
        st = judge_payload(&names, &claims, 0, &out->data, err);
    if (st == SB_OK)
        st = judge_payload(&names, &claims, 1, &out->diff, err);
    out->begin = begin;
    out->end = end;
    out->legacy = (claims.legacy & DIMS) != 0;
    out->doubtful = claims.doubtful;
    return st;
}

sb_status sb__shape_index(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, struct sb__shape *out,
                          sb_error *err) {
    struct dims dims = {.count = 0};
    sb_status st = gather_dims(reader, path, begin, end, &dims, err);
    return st == SB_OK ? judge_dims(path, &dims, limits, out, err) : st;
}

sb_status sb__payload_check(const struct sb__blob_index *index, const struct sb__path *path,
                            const struct sb__payload *payload, sb_error *err) {
    if (payload->count == index->shape.count)
        return SB_OK;
    return sb__wire_fail(path, payload->field, SB_ERR_LENGTH_MISMATCH,
                         payload->count > 0 ? payload->offset : index->begin, err,
                         "%lld values for a shape of %lld", (long long)payload->count,
                         (long long)index->shape.count);
}

sb_status sb__blob_index_check(const struct sb__blob_index *index, const struct sb__path *path,
                               bool whole, sb_error *err) {
    const struct sb__path names = sb__blob_index_path(index, path);
    sb_status st = SB_OK;
    if (whole || index->data.count > 0)
        st = sb__payload_check(index, &names, &index->data, err);
    if (st == SB_OK && index->diff.count > 0)
        st = sb__payload_check(index, &names, &index->diff, err);
    return st;
}

int32_t sb__blob_index_dtype(const struct sb__blob_index *index) {
    return index->data.count > 0 ? index->data.dtype : index->diff.dtype;
}
