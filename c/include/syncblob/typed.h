/**
 * blob.h with typed pointers: for each of _f32, _f64, _i32, _u32, _i8, _u8 a
 * wrapper that checks the blob's dtype (DTYPE_MISMATCH) and casts, e.g.
 *
 *     const float *x;
 *     sb_status st = sb_blob_cpu_f32(blob, SB_DATA, &x, &err);
 *
 * and, in C, a _Generic spelling that picks the wrapper by the type of `out`:
 *
 *     st = sb_blob_cpu_t(blob, SB_DATA, &x, &err);
 *
 * None reads a layout.
 */
#ifndef SYNCBLOB_TYPED_H
#define SYNCBLOB_TYPED_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

#define SB_TYPED_READ_(call, suffix, dtype, type)                                                  \
    static inline SB_MUST_CHECK sb_status call##suffix(const sb_blob *blob, sb_part part,          \
                                                       const type **out, sb_error *err) {          \
        const void *p = NULL;                                                                      \
        sb_status st = sb_blob_check_dtype(blob, dtype, err);                                      \
        if (st == SB_OK)                                                                           \
            st = call(blob, part, out ? &p : NULL, err);                                           \
        if (st == SB_OK)                                                                           \
            *out = (const type *)p;                                                                \
        return st;                                                                                 \
    }

#define SB_TYPED_WRITE_(call, suffix, dtype, type)                                                 \
    static inline SB_MUST_CHECK sb_status call##suffix(sb_blob *blob, sb_part part, type **out,    \
                                                       sb_error *err) {                            \
        void *p = NULL;                                                                            \
        sb_status st = sb_blob_check_dtype(blob, dtype, err);                                      \
        if (st == SB_OK)                                                                           \
            st = call(blob, part, out ? &p : NULL, err);                                           \
        if (st == SB_OK)                                                                           \
            *out = (type *)p;                                                                      \
        return st;                                                                                 \
    }

#define SB_TYPED_AT_(call, suffix, dtype, type)                                                    \
    static inline SB_MUST_CHECK sb_status call##suffix(                                            \
        const sb_blob *blob, sb_part part, const int64_t *indices, int32_t num_indices, type *out, \
        sb_error *err) {                                                                           \
        sb_status st = sb_blob_check_dtype(blob, dtype, err);                                      \
        return st == SB_OK ? call(blob, part, indices, num_indices, out, err) : st;                \
    }

#define SB_TYPED_ALL_(suffix, dtype, type)                                                         \
    SB_TYPED_READ_(sb_blob_cpu, suffix, dtype, type)                                               \
    SB_TYPED_READ_(sb_blob_gpu, suffix, dtype, type)                                               \
    SB_TYPED_WRITE_(sb_blob_mutable_cpu, suffix, dtype, type)                                      \
    SB_TYPED_WRITE_(sb_blob_mutable_gpu, suffix, dtype, type)                                      \
    SB_TYPED_WRITE_(sb_blob_overwrite_cpu, suffix, dtype, type)                                    \
    SB_TYPED_WRITE_(sb_blob_overwrite_gpu, suffix, dtype, type)                                    \
    SB_TYPED_AT_(sb_blob_at, suffix, dtype, type)

SB_TYPED_ALL_(_f32, SB_DTYPE_F32, float)
SB_TYPED_ALL_(_f64, SB_DTYPE_F64, double)
SB_TYPED_ALL_(_i32, SB_DTYPE_I32, int32_t)
SB_TYPED_ALL_(_u32, SB_DTYPE_U32, uint32_t)
SB_TYPED_ALL_(_i8, SB_DTYPE_I8, int8_t)
SB_TYPED_ALL_(_u8, SB_DTYPE_U8, uint8_t)

#undef SB_TYPED_READ_
#undef SB_TYPED_WRITE_
#undef SB_TYPED_AT_
#undef SB_TYPED_ALL_

SB_END_DECLS

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SB_PICK_READ_(call, out)                                                                   \
    _Generic((out), const float **: call##_f32, const double **: call##_f64,                       \
             const int32_t **: call##_i32, const uint32_t **: call##_u32, const int8_t **: call##_i8, const uint8_t **: call##_u8)
#define SB_PICK_WRITE_(call, out)                                                                  \
    _Generic((out), float **: call##_f32, double **: call##_f64, int32_t **: call##_i32,           \
             uint32_t **: call##_u32, int8_t **: call##_i8, uint8_t **: call##_u8)
#define SB_PICK_AT_(call, out)                                                                     \
    _Generic((out), float *: call##_f32, double *: call##_f64, int32_t *: call##_i32,              \
             uint32_t *: call##_u32, int8_t *: call##_i8, uint8_t *: call##_u8)

#define sb_blob_cpu_t(b, part, out, err) SB_PICK_READ_(sb_blob_cpu, out)(b, part, out, err)
#define sb_blob_gpu_t(b, part, out, err) SB_PICK_READ_(sb_blob_gpu, out)(b, part, out, err)
#define sb_blob_mutable_cpu_t(b, part, out, err)                                                   \
    SB_PICK_WRITE_(sb_blob_mutable_cpu, out)(b, part, out, err)
#define sb_blob_mutable_gpu_t(b, part, out, err)                                                   \
    SB_PICK_WRITE_(sb_blob_mutable_gpu, out)(b, part, out, err)
#define sb_blob_at_t(b, part, idx, n, out, err)                                                    \
    SB_PICK_AT_(sb_blob_at, out)(b, part, idx, n, out, err)
#endif

#endif
