/**
 * Caffe's names for the functions of blob.h and mem.h, for programs that are ported from Caffe:
 * functions with data or diff in their names; num, channels, height and width; functions with four
 * legacy dimensions. Each function is inline and calls functions of blob.h or mem.h, whose rules
 * for ownership and errors apply. The inline functions do not depend on the layout of any struct.
 */
#ifndef SYNCBLOB_CAFFE_H
#define SYNCBLOB_CAFFE_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/* --- SyncedMemory ---------------------------------------------------------- */

/** Calls sb_mem_cpu. */
static inline SB_MUST_CHECK sb_status sb_mem_cpu_data(const sb_mem *mem, const void **out,
                                                      sb_error *err) {
    return sb_mem_cpu(mem, out, err);
}
/** Calls sb_mem_mutable_cpu. */
static inline SB_MUST_CHECK sb_status sb_mem_mutable_cpu_data(sb_mem *mem, void **out,
                                                              sb_error *err) {
    return sb_mem_mutable_cpu(mem, out, err);
}
/** Calls sb_mem_gpu. */
static inline SB_MUST_CHECK sb_status sb_mem_gpu_data(const sb_mem *mem, const void **out,
                                                      sb_error *err) {
    return sb_mem_gpu(mem, out, err);
}
/** Calls sb_mem_mutable_gpu. */
static inline SB_MUST_CHECK sb_status sb_mem_mutable_gpu_data(sb_mem *mem, void **out,
                                                              sb_error *err) {
    return sb_mem_mutable_gpu(mem, out, err);
}

/* --- Blob: data and diff --------------------------------------------------- */

/* Defines the functions of one part: `x` is data or diff. */
#define SB_CAFFE_PART_(x, PART)                                                                    \
    /** Calls sb_blob_mem. */                                                                      \
    static inline SB_MUST_CHECK sb_status sb_blob_##x(const sb_blob *blob, const sb_mem **out,     \
                                                      sb_error *err) {                             \
        return sb_blob_mem(blob, PART, out, err);                                                  \
    }                                                                                              \
    /** Calls sb_blob_cpu. */                                                                      \
    static inline SB_MUST_CHECK sb_status sb_blob_cpu_##x(const sb_blob *blob, const void **out,   \
                                                          sb_error *err) {                         \
        return sb_blob_cpu(blob, PART, out, err);                                                  \
    }                                                                                              \
    /** Calls sb_blob_mutable_cpu. */                                                              \
    static inline SB_MUST_CHECK sb_status sb_blob_mutable_cpu_##x(sb_blob *blob, void **out,       \
                                                                  sb_error *err) {                 \
        return sb_blob_mutable_cpu(blob, PART, out, err);                                          \
    }                                                                                              \
    /** Calls sb_blob_gpu. */                                                                      \
    static inline SB_MUST_CHECK sb_status sb_blob_gpu_##x(const sb_blob *blob, const void **out,   \
                                                          sb_error *err) {                         \
        return sb_blob_gpu(blob, PART, out, err);                                                  \
    }                                                                                              \
    /** Calls sb_blob_mutable_gpu. */                                                              \
    static inline SB_MUST_CHECK sb_status sb_blob_mutable_gpu_##x(sb_blob *blob, void **out,       \
                                                                  sb_error *err) {                 \
        return sb_blob_mutable_gpu(blob, PART, out, err);                                          \
    }                                                                                              \
    /** Calls sb_blob_at for a blob of at most 4 axes; the index of a missing axis must be 0. */   \
    static inline SB_MUST_CHECK sb_status sb_blob_##x##_at_legacy(const sb_blob *blob, int64_t n,  \
                                                                  int64_t c, int64_t h, int64_t w, \
                                                                  void *out, sb_error *err) {      \
        return sb_blob_at_legacy_(blob, PART, n, c, h, w, out, err);                               \
    }                                                                                              \
    /** Calls sb_blob_share. */                                                                    \
    static inline SB_MUST_CHECK sb_status sb_blob_share_##x(sb_blob *blob, const sb_blob *other,   \
                                                            sb_error *err) {                       \
        return sb_blob_share(blob, PART, other, err);                                              \
    }                                                                                              \
    /** Calls sb_blob_asum. */                                                                     \
    static inline SB_MUST_CHECK sb_status sb_blob_asum_##x(const sb_blob *blob, double *out,       \
                                                           sb_error *err) {                        \
        return sb_blob_asum(blob, PART, out, err);                                                 \
    }                                                                                              \
    /** Calls sb_blob_sumsq. */                                                                    \
    static inline SB_MUST_CHECK sb_status sb_blob_sumsq_##x(const sb_blob *blob, double *out,      \
                                                            sb_error *err) {                       \
        return sb_blob_sumsq(blob, PART, out, err);                                                \
    }                                                                                              \
    /** Calls sb_blob_scale. */                                                                    \
    static inline SB_MUST_CHECK sb_status sb_blob_scale_##x(sb_blob *blob, double factor,          \
                                                            sb_error *err) {                       \
        return sb_blob_scale(blob, PART, factor, err);                                             \
    }

/* Reads the element at four legacy indices. Fails if an index is negative or not below its axis's
   extent. */
static inline SB_MUST_CHECK sb_status sb_blob_at_legacy_(const sb_blob *blob, sb_part part,
                                                         int64_t n, int64_t c, int64_t h, int64_t w,
                                                         void *out, sb_error *err) {
    const int64_t indices[4] = {n, c, h, w};
    int64_t num;
    int32_t axes = 4;
    sb_status st = sb_blob_legacy_shape(blob, 0, &num, err); /* fails for more than 4 axes */
    if (st != SB_OK)
        return st;
    while (axes > sb_blob_num_axes(blob) && indices[axes - 1] == 0)
        axes--;
    return sb_blob_at(blob, part, indices, axes, out, err);
}

SB_CAFFE_PART_(data, SB_DATA)
SB_CAFFE_PART_(diff, SB_DIFF)
#undef SB_CAFFE_PART_

/** Calls sb_blob_set_cpu for data. */
static inline SB_MUST_CHECK sb_status sb_blob_set_cpu_data(sb_blob *blob, void *ptr, size_t bytes,
                                                           uint32_t flags, sb_deleter deleter,
                                                           void *user, sb_error *err) {
    return sb_blob_set_cpu(blob, SB_DATA, ptr, bytes, flags, deleter, user, err);
}
/** Calls sb_blob_set_gpu for data. */
static inline SB_MUST_CHECK sb_status sb_blob_set_gpu_data(sb_blob *blob, void *ptr, size_t bytes,
                                                           uint32_t flags, sb_deleter deleter,
                                                           void *user, sb_error *err) {
    return sb_blob_set_gpu(blob, SB_DATA, ptr, bytes, flags, deleter, user, err);
}

/* --- Blob: shape ------------------------------------------------------------ */

/** Calls sb_blob_create_shaped with four dimensions. */
static inline SB_MUST_CHECK sb_status sb_blob_create_legacy(sb_context *context, sb_dtype dtype,
                                                            int64_t num, int64_t channels,
                                                            int64_t height, int64_t width,
                                                            sb_blob **out, sb_error *err) {
    const int64_t shape[4] = {num, channels, height, width};
    return sb_blob_create_shaped(context, dtype, shape, 4, out, err);
}
/** Calls sb_blob_reshape with four dimensions. */
static inline SB_MUST_CHECK sb_status sb_blob_reshape_legacy(sb_blob *blob, int64_t num,
                                                             int64_t channels, int64_t height,
                                                             int64_t width,
                                                             uint32_t *out_reallocated,
                                                             sb_error *err) {
    const int64_t shape[4] = {num, channels, height, width};
    return sb_blob_reshape(blob, shape, 4, out_reallocated, err);
}
/** Calls sb_blob_legacy_shape with index 0. */
static inline SB_MUST_CHECK sb_status sb_blob_num(const sb_blob *blob, int64_t *out,
                                                  sb_error *err) {
    return sb_blob_legacy_shape(blob, 0, out, err);
}
/** Calls sb_blob_legacy_shape with index 1. */
static inline SB_MUST_CHECK sb_status sb_blob_channels(const sb_blob *blob, int64_t *out,
                                                       sb_error *err) {
    return sb_blob_legacy_shape(blob, 1, out, err);
}
/** Calls sb_blob_legacy_shape with index 2. */
static inline SB_MUST_CHECK sb_status sb_blob_height(const sb_blob *blob, int64_t *out,
                                                     sb_error *err) {
    return sb_blob_legacy_shape(blob, 2, out, err);
}
/** Calls sb_blob_legacy_shape with index 3. */
static inline SB_MUST_CHECK sb_status sb_blob_width(const sb_blob *blob, int64_t *out,
                                                    sb_error *err) {
    return sb_blob_legacy_shape(blob, 3, out, err);
}
/** Converts an axis to 0..num_axes-1; a negative axis counts from the end
 *  (Blob::CanonicalAxisIndex).
 *  Errors: as sb_blob_dim. */
static inline SB_MUST_CHECK sb_status sb_blob_canonical_axis(const sb_blob *blob, int32_t axis,
                                                             int32_t *out, sb_error *err) {
    int64_t dim;
    sb_status st = sb_blob_dim(blob, axis, out ? &dim : NULL, err);
    if (st == SB_OK)
        *out = axis < 0 ? axis + sb_blob_num_axes(blob) : axis;
    return st;
}
/** Calls sb_blob_count_range with the axes from `start` to the last (Blob::count(start)). */
static inline SB_MUST_CHECK sb_status sb_blob_count_from(const sb_blob *blob, int32_t start,
                                                         int64_t *out, sb_error *err) {
    return sb_blob_count_range(blob, start, sb_blob_num_axes(blob), out, err);
}
/** Reshapes to the shape of `other` (Blob::ReshapeLike). If `other` was never shaped, the blob
 *  becomes a scalar, as in Caffe.
 *  @param other [borrowed]
 *  @param out_reallocated [nullable] SB_REALLOCATED_* bits
 *  Errors: INVALID_ARGUMENT (NULL), SIZE_OVERFLOW (the blob's elements are larger than those of
 *  `other`, and the blob's size would exceed PTRDIFF_MAX). */
static inline SB_MUST_CHECK sb_status sb_blob_reshape_like(sb_blob *blob, const sb_blob *other,
                                                           uint32_t *out_reallocated,
                                                           sb_error *err) {
    return sb_blob_reshape(blob, sb_blob_shape(other), other ? sb_blob_num_axes(other) : -1,
                           out_reallocated, err);
}
/** Returns 1 if the blob has these dimensions (Blob::ShapeEquals with a BlobProto that has the
 *  field shape); 0 for a blob that was never shaped.
 *  @param shape [borrowed, nullable when num_axes is 0] `num_axes` dimensions */
static inline int32_t sb_blob_shape_equals_dims(const sb_blob *blob, const int64_t *shape,
                                                int32_t num_axes) {
    if (!sb_blob_is_shaped(blob) || sb_blob_num_axes(blob) != num_axes || (num_axes > 0 && !shape))
        return 0;
    for (int32_t i = 0; i < num_axes; i++)
        if (sb_blob_shape(blob)[i] != shape[i])
            return 0;
    return 1;
}
/** Returns 1 if both blobs have the same dimensions, or neither was ever shaped.
 *  @param b [borrowed] */
static inline int32_t sb_blob_shape_equals(const sb_blob *a, const sb_blob *b) {
    if (!a || !b || sb_blob_is_shaped(a) != sb_blob_is_shaped(b))
        return 0;
    return !sb_blob_is_shaped(a) ||
           sb_blob_shape_equals_dims(a, sb_blob_shape(b), sb_blob_num_axes(b));
}
/** Returns 1 if the blob has at most four axes with these dimensions; missing axes have the
 *  dimension 1 (Blob::ShapeEquals with a BlobProto that has legacy dimensions); 0 for a blob that
 *  was never shaped. */
static inline int32_t sb_blob_shape_equals_legacy(const sb_blob *blob, int64_t num,
                                                  int64_t channels, int64_t height, int64_t width) {
    const int64_t legacy[4] = {num, channels, height, width};
    for (int32_t i = 0; i < 4; i++) {
        int64_t dim;
        if (sb_blob_legacy_shape(blob, i - 4, &dim, NULL) != SB_OK || dim != legacy[i])
            return 0;
    }
    return sb_blob_is_shaped(blob);
}

SB_END_DECLS

#endif
