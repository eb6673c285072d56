/* Computes offsets of elements from their indices, and reads elements. */
#include "blob/blob.h"

#include "base/checked.h"
#include "base/error.h"
#include "memory/mem.h"

#include <string.h>

static sb_status fail_index(sb_error *err, int32_t axis, int64_t index, int64_t extent) {
    return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "axis %d: index %lld is not in 0 to %lld", axis,
                    (long long)index, (long long)extent - 1);
}

sb_status sb_blob_offset(const sb_blob *blob, const int64_t *indices, int32_t num_indices,
                         int64_t *out, sb_error *err) {
    int64_t offset = 0;
    if (!blob || !out || (num_indices > 0 && !indices))
        return sb__fail_null(err, !blob ? "blob" : !out ? "out" : "indices");
    int32_t axes = sb_blob_num_axes(blob);
    if (num_indices < 0 || num_indices > axes)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "%d indices for a blob with %d axes",
                        num_indices, axes);
    if (blob->shape.count == 0)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "the blob has no elements");
    const int64_t *dims = blob->shape.dims;
    for (int32_t i = 0; i < axes; i++) {
        int64_t index = i < num_indices ? indices[i] : 0;
        if (index < 0 || index >= dims[i])
            return fail_index(err, i, index, dims[i]);
        offset = offset * dims[i] + index; /* below the count: no overflow */
    }
    *out = offset;
    return SB_OK;
}

/* The fast path: returns false unless the blob has four axes and the indices are in range. */
static bool offset_of_four(const struct sb__shape *shape, const int64_t i[4], int64_t *out) {
    const int64_t *d = shape->dims;
    if (shape->num_axes != 4)
        return false;
    for (int axis = 0; axis < 4; axis++)
        if ((uint64_t)i[axis] >= (uint64_t)d[axis]) /* a negative index becomes a large number */
            return false;
    *out = ((i[0] * d[1] + i[1]) * d[2] + i[2]) * d[3] + i[3]; /* below the count: no overflow */
    return true;
}

static sb_status fail_legacy(const sb_blob *blob, sb_error *err) {
    return sb__fail(err, SB_ERR_SHAPE_MISMATCH,
                    "legacy accessors need at most 4 axes, the blob has %d",
                    sb_blob_num_axes(blob));
}

/* Computes an offset that callers use only for an address. An index may therefore be equal to its
   extent. */
static sb_status address_of_four(const sb_blob *blob, const int64_t indices[4], int64_t *out,
                                 sb_error *err) {
    const int32_t axes = sb_blob_num_axes(blob);
    int64_t offset = 0;
    if (axes > 4)
        return fail_legacy(blob, err);
    for (int32_t i = 0; i < 4; i++) {
        const int64_t extent = i < axes ? blob->shape.dims[i] : 1;
        if (indices[i] < 0 || indices[i] > extent)
            return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "axis %d: index %lld is beyond %lld", i,
                            (long long)indices[i], (long long)extent);
    }
    for (int32_t i = 0; i < 4; i++) {
        const int64_t extent = i < axes ? blob->shape.dims[i] : 1;
        if (!sb__mul_i64(offset, extent, &offset) || !sb__add_i64(offset, indices[i], &offset))
            return sb__fail(err, SB_ERR_SIZE_OVERFLOW, "axis %d: the offset exceeds 2^63 - 1", i);
    }
    *out = offset;
    return SB_OK;
}

sb_status sb_blob_offset_legacy(const sb_blob *blob, int64_t n, int64_t c, int64_t h, int64_t w,
                                int64_t *out, sb_error *err) {
    const int64_t indices[4] = {n, c, h, w};
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    if (offset_of_four(&blob->shape, indices, out))
        return SB_OK;
    return address_of_four(blob, indices, out, err);
}

static sb_status read_element(const sb_blob *blob, sb_part part, int64_t offset, void *out,
                              sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    size_t size = blob->element_size;
    const void *bytes;
    sb_mem *mem;
    sb_status st = sb__blob_memory(blob, part, &mem, err);
    if (st == SB_OK)
        st = sb__read_side(mem, SB_SIDE_CPU, &bytes, &retired, err);
    if (st == SB_OK)
        memcpy(out, (const char *)bytes + (size_t)offset * size, size);
    sb__retired_end(&retired);
    return st;
}

sb_status sb_blob_at(const sb_blob *blob, sb_part part, const int64_t *indices, int32_t num_indices,
                     void *out, sb_error *err) {
    int64_t offset;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb_blob_offset(blob, indices, num_indices, &offset, err);
    if (st == SB_OK)
        st = sb__check_part(part, err);
    return st == SB_OK ? read_element(blob, part, offset, out, err) : st;
}
