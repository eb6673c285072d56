#include "proto/encode.h"

#include "base/error.h"
#include "blob/blob.h"
#include "memory/mem.h"
#include "proto/blob_index.h"
#include "proto/pack.h"

static const int64_t never_shaped[] = {0};

/* Packs the shape field. Packs nothing for a scalar, as Caffe does, and the shape "(0)" for a blob
   that was never shaped. */
static size_t pack_shape(const sb_blob *blob, uint8_t out[SB__MAX_SHAPE_BYTES]) {
    const struct sb__shape *shape = sb__blob_shape(blob);
    if (shape->num_axes == 0)
        return 0;
    if (shape->num_axes < 0)
        return sb__pack_shape(never_shaped, 1, out);
    return sb__pack_shape(shape->dims, (size_t)shape->num_axes, out);
}

/* Computes the size of the message. Returns false if the size exceeds protobuf's limit. */
static bool measure(const sb_blob *blob, bool with_diff, size_t *out) {
    uint8_t shape[SB__MAX_SHAPE_BYTES];
    const size_t bytes = sb__blob_bytes(blob), sides = with_diff ? 2 : 1;
    if (bytes > SB__MAX_MESSAGE_BYTES)
        return false;
    *out = pack_shape(blob, shape);
    if (bytes > 0)
        *out += sides * (sb__prefix_size(SB__BLOB_DATA, bytes) + bytes);
    return *out <= SB__MAX_MESSAGE_BYTES;
}

sb_status sb__encode_measure(struct sb__encoding *out, const sb_blob *blob, uint32_t flags,
                             sb_error *err) {
    bool with_diff = flags & SB_PROTO_WRITE_DIFF;
    if (!blob)
        return sb__fail_null(err, "blob");
    if (flags & ~(uint32_t)SB_PROTO_WRITE_DIFF)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "flags are %u, only SB_PROTO_WRITE_DIFF is known", flags);
    sb_status st = sb__check_proto_dtype(blob, err);
    if (st != SB_OK)
        return st;
    *out = (struct sb__encoding){.blob = blob, .with_diff = with_diff};
    if (!measure(blob, with_diff, &out->size))
        return sb__fail(err, SB_ERR_OVER_LIMIT,
                        "%lld elements%s exceed a protobuf message's 2147483647 bytes; write "
                        "safetensors, which has no such limit",
                        (long long)sb_blob_count(blob), with_diff ? ", data and diff," : "");
    return SB_OK;
}

static sb_status fetch(const sb_blob *blob, sb_part part, const void **out,
                       struct sb__retired *retired, sb_error *err) {
    sb_mem *mem;
    const sb_mem *fast = sb__blob_memory_or_none(blob, part);
    if (sb__is_read_at_host(fast)) {
        *out = sb__host_bytes(fast);
        return SB_OK;
    }
    sb_status st = sb__blob_memory(blob, part, &mem, err);
    return st == SB_OK ? sb__read_side(mem, SB_SIDE_CPU, out, retired, err) : st;
}

sb_status sb__encode_fetch(struct sb__encoding *encoding, struct sb__retired *retired,
                           sb_error *err) {
    if (sb_blob_count(encoding->blob) == 0)
        return SB_OK;
    sb_status st = fetch(encoding->blob, SB_DATA, &encoding->data, retired, err);
    if (st == SB_OK && encoding->with_diff)
        st = fetch(encoding->blob, SB_DIFF, &encoding->diff, retired, err);
    return st;
}

/* Packs fields in the order of their numbers, as other encoders do. */
void sb__encode_pack(const struct sb__encoding *encoding, struct sb__sink *sink) {
    uint8_t shape[SB__MAX_SHAPE_BYTES];
    const bool is_single = sb_blob_dtype(encoding->blob) == SB_DTYPE_F32;
    const size_t count = (size_t)sb_blob_count(encoding->blob);
    const size_t diff_count = encoding->with_diff ? count : 0;
    if (is_single)
        sb__pack_floats(sink, encoding->data, count, encoding->diff, diff_count);
    sb__sink_bytes(sink, shape, pack_shape(encoding->blob, shape));
    if (!is_single)
        sb__pack_doubles(sink, encoding->data, count, encoding->diff, diff_count);
}
