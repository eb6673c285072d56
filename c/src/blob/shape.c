#include "blob/blob.h"

#include "base/checked.h"
#include "base/error.h"
#include "memory/mem.h"

#include <stdio.h>
#include <string.h>

static sb_status check_dims(const int64_t *dims, int32_t num_axes, sb_error *err) {
    if (num_axes < 0)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%d axes are fewer than 0", num_axes);
    if (num_axes > SB_MAX_AXES)
        return sb__fail(err, SB_ERR_OVER_LIMIT, "%d axes are more than %d", num_axes, SB_MAX_AXES);
    if (num_axes && !dims)
        return sb__fail_null(err, "shape");
    for (int32_t i = 0; i < num_axes; i++)
        if (dims[i] < 0)
            return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "axis %d: dimension %lld is negative", i,
                            (long long)dims[i]);
    /* Checks every dimension, even if one is 0, because bindings convert dimensions to size_t. */
    for (int32_t i = 0; i < num_axes; i++)
        if ((ptrdiff_t)dims[i] != dims[i])
            return sb__fail(err, SB_ERR_SIZE_OVERFLOW,
                            "axis %d: a dimension of %lld exceeds the address space", i,
                            (long long)dims[i]);
    return SB_OK;
}

/* Computes the product of dims[start..end): 0 if a dimension is 0. Returns the axis at which the
   product exceeds an int64_t, or -1. */
static int32_t product(const int64_t *dims, int32_t start, int32_t end, int64_t *out) {
    int64_t count = 1;
    *out = 0;
    for (int32_t i = start; i < end; i++)
        if (dims[i] == 0)
            return -1;
    for (int32_t i = start; i < end; i++)
        if (!sb__mul_i64(count, dims[i], &count))
            return i;
    *out = count;
    return -1;
}

sb_status sb__shape_make(struct sb__shape *out, const int64_t *dims, int32_t num_axes,
                         size_t element_size, sb_error *err) {
    size_t bytes;
    int64_t count;
    sb_status st = check_dims(dims, num_axes, err);
    if (st != SB_OK)
        return st;
    const int32_t axis = product(dims, 0, num_axes, &count);
    if (axis >= 0)
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW,
                        "axis %d: a dimension of %lld makes the count exceed 2^63 - 1", axis,
                        (long long)dims[axis]);
    if (!sb__bytes_of(count, element_size, &bytes))
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW,
                        "%lld elements of %zu bytes exceed the address space", (long long)count,
                        element_size);
    out->num_axes = num_axes;
    out->count = count;
    for (int32_t i = 0; i < num_axes; i++)
        out->dims[i] = dims[i];
    return SB_OK;
}

const struct sb__shape *sb__blob_shape(const sb_blob *blob) {
    return &blob->shape;
}

bool sb__shape_is(const struct sb__shape *shape, const int64_t *dims, int32_t num_axes) {
    return shape->num_axes == num_axes &&
           (num_axes <= 0 || memcmp(shape->dims, dims, (size_t)num_axes * sizeof *dims) == 0);
}

bool sb__shape_is_legacy(const struct sb__shape *shape, const struct sb__shape *legacy) {
    const int32_t missing = legacy->num_axes - shape->num_axes;
    if (shape->num_axes < 0 || missing < 0)
        return false;
    for (int32_t i = 0; i < legacy->num_axes; i++)
        if (legacy->dims[i] != (i < missing ? 1 : shape->dims[i - missing]))
            return false;
    return true;
}

uint32_t sb__blob_take_shape(sb_blob *blob, const struct sb__shape *shape,
                             struct sb__retired *retired) {
    uint32_t replaced = 0;
    sb__shape_copy(&blob->shape, shape);
    size_t bytes = sb__blob_bytes(blob);
    if (sb__peek(&blob->gpu_shape))
        sb__swap(&blob->gpu_shape, NULL, retired);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        sb_mem *mem = sb__blob_peek(blob, part);
        if (!mem || sb_mem_size(mem) >= bytes)
            continue;
        sb__swap(&blob->memory[part], NULL, retired);
        replaced |= part == SB_DATA ? SB_REALLOCATED_DATA : SB_REALLOCATED_DIFF;
    }
    return replaced;
}

static bool holds(const sb_blob *blob, sb_part part, size_t bytes) {
    const sb_mem *mem = sb__blob_memory_or_none(blob, part);
    return mem->bytes >= bytes || sb__is_placeholder(mem);
}

/* Copies in ascending order, since `dims` may point into the blob's dimensions. `volatile` forces a
   load per dimension: a wider load would stall on stores that the caller has just made. */
static inline void take_dims(sb_blob *blob, const volatile int64_t *dims, int32_t num_axes) {
    for (int32_t i = 0; i < num_axes; i++)
        blob->shape.dims[i] = dims[i];
}

/* The fast path, which needs no copy of the shape. If a dimension is not positive, or a memory is
   too small, changes nothing and returns false. Inlined, so that a constant `num_axes` needs no
   loop. */
__attribute__((always_inline)) static inline bool take_within(sb_blob *blob, const int64_t *dims,
                                                              int32_t num_axes) {
    int64_t count = 1;
    size_t bytes;
    for (int32_t i = 0; i < num_axes; i++)
        if (dims[i] <= 0 || !sb__mul_i64(count, dims[i], &count))
            return false;
    if (!sb__bytes_of(count, blob->element_size, &bytes) || !holds(blob, SB_DATA, bytes) ||
        !holds(blob, SB_DIFF, bytes))
        return false;
    blob->shape.num_axes = num_axes;
    blob->shape.count = count;
    take_dims(blob, dims, num_axes);
    return true;
}

/* Reshapes within the capacity. Four axes, the most frequent case, need no loop. */
static bool reshape_within(sb_blob *blob, const int64_t *dims, int32_t num_axes) {
    if (num_axes <= 0 || num_axes > SB_MAX_AXES || !dims || sb__peek(&blob->gpu_shape))
        return false;
    return num_axes == 4 ? take_within(blob, dims, 4) : take_within(blob, dims, num_axes);
}

static void become(sb_blob *blob, const struct sb__shape *shape, uint32_t *out_reallocated) {
    struct sb__retired retired = {NULL, NULL};
    uint32_t replaced = sb__blob_take_shape(blob, shape, &retired);
    if (out_reallocated)
        *out_reallocated = replaced;
    sb__retired_end(&retired);
}

/* Not inlined: keeps the common case's stack frame small. */
__attribute__((noinline)) static sb_status reshape_anew(sb_blob *blob, const int64_t *dims,
                                                        int32_t num_axes, uint32_t *out_reallocated,
                                                        sb_error *err) {
    struct sb__shape made;
    sb_status st = sb__shape_make(&made, dims, num_axes, blob->element_size, err);
    if (st == SB_OK)
        become(blob, &made, out_reallocated);
    return st;
}

sb_status sb_blob_reshape(sb_blob *blob, const int64_t *shape, int32_t num_axes,
                          uint32_t *out_reallocated, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    if (!reshape_within(blob, shape, num_axes))
        return reshape_anew(blob, shape, num_axes, out_reallocated, err);
    if (out_reallocated)
        *out_reallocated = 0;
    return SB_OK;
}

int32_t sb_blob_is_shaped(const sb_blob *blob) {
    return blob && blob->shape.num_axes >= 0;
}

int32_t sb_blob_num_axes(const sb_blob *blob) {
    return sb_blob_is_shaped(blob) ? blob->shape.num_axes : 0;
}

int64_t sb_blob_count(const sb_blob *blob) {
    return blob ? blob->shape.count : 0;
}

const int64_t *sb_blob_shape(const sb_blob *blob) {
    static const int64_t none[1] = {0};
    return blob ? blob->shape.dims : none;
}

sb_status sb_blob_dim(const sb_blob *blob, int32_t axis, int64_t *out, sb_error *err) {
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    int32_t axes = sb_blob_num_axes(blob);
    if (axis < -axes || axis >= axes)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "axis %d is not among the blob's %d axes",
                        axis, axes);
    *out = blob->shape.dims[axis < 0 ? axis + axes : axis];
    return SB_OK;
}

sb_status sb_blob_count_range(const sb_blob *blob, int32_t start, int32_t end, int64_t *out,
                              sb_error *err) {
    int64_t count;
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    if (start < 0 || end < start || end > sb_blob_num_axes(blob))
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                        "axes %d to %d are not a range of the blob's %d axes", start, end,
                        sb_blob_num_axes(blob));
    if (product(blob->shape.dims, start, end, &count) >= 0)
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW, "the product of axes %d to %d exceeds 2^63 - 1",
                        start, end);
    *out = count;
    return SB_OK;
}

sb_status sb_blob_legacy_shape(const sb_blob *blob, int32_t index, int64_t *out, sb_error *err) {
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    int32_t axes = sb_blob_num_axes(blob);
    if (axes > 4)
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH,
                        "legacy accessors need at most 4 axes, the blob has %d", axes);
    if (index < -4 || index >= 4)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE, "legacy index %d is not in -4..3", index);
    if (index >= axes || index < -axes)
        *out = 1; /* in Caffe, a missing axis has the dimension 1 */
    else
        *out = blob->shape.dims[index < 0 ? index + axes : index];
    return SB_OK;
}

sb_status sb_blob_shape_string(const sb_blob *blob, char *buffer, size_t capacity,
                               size_t *out_length, sb_error *err) {
    char text[SB_MAX_AXES * 21 + 24];
    size_t length = 0;
    if (!blob || (!buffer && capacity))
        return sb__fail_null(err, blob ? "buffer" : "blob");
    for (int32_t i = 0; i < sb_blob_num_axes(blob); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%lld ",
                                   (long long)blob->shape.dims[i]);
    length += (size_t)snprintf(text + length, sizeof text - length, "(%lld)",
                               (long long)blob->shape.count);
    if (capacity) {
        size_t shown = length < capacity ? length : capacity - 1;
        memcpy(buffer, text, shown);
        buffer[shown] = '\0';
    }
    if (out_length)
        *out_length = length;
    return SB_OK;
}
