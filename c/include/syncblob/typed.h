/**
 * The calls of blob.h with typed pointers. For each type of SB_DTYPE_FLOAT_LIST and
 * SB_DTYPE_INTEGER_LIST (base.h) there are wrappers with the type's name as suffix. A wrapper
 * checks the blob's dtype (DTYPE_MISMATCH) and casts the pointer:
 *
 *     const float *x;
 *     sb_status st = sb_blob_cpu_f32(blob, SB_DATA, &x, &err);
 *
 * In C, a _Generic macro selects the wrapper by the type of `out`:
 *
 *     st = sb_blob_cpu_t(blob, SB_DATA, &x, &err);
 *
 * In a macro that is passed to a list such as SB_DTYPE_LIST, use the wrapper with the suffix. The
 * wrappers do not depend on the layout of any struct.
 */
#ifndef SYNCBLOB_TYPED_H
#define SYNCBLOB_TYPED_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

#define SB_TYPED_READ_(NAME, number, name, type, kind, call)                                       \
    static inline SB_MUST_CHECK sb_status call##_##name(const sb_blob *blob, sb_part part,         \
                                                        const type **out, sb_error *err) {         \
        const void *p = NULL;                                                                      \
        sb_status st = sb_blob_check_dtype(blob, SB_DTYPE_##NAME, err);                            \
        if (st == SB_OK)                                                                           \
            st = call(blob, part, out ? &p : NULL, err);                                           \
        if (st == SB_OK)                                                                           \
            *out = (const type *)p;                                                                \
        return st;                                                                                 \
    }

#define SB_TYPED_WRITE_(NAME, number, name, type, kind, call)                                      \
    static inline SB_MUST_CHECK sb_status call##_##name(sb_blob *blob, sb_part part, type **out,   \
                                                        sb_error *err) {                           \
        void *p = NULL;                                                                            \
        sb_status st = sb_blob_check_dtype(blob, SB_DTYPE_##NAME, err);                            \
        if (st == SB_OK)                                                                           \
            st = call(blob, part, out ? &p : NULL, err);                                           \
        if (st == SB_OK)                                                                           \
            *out = (type *)p;                                                                      \
        return st;                                                                                 \
    }

#define SB_TYPED_AT_(NAME, number, name, type, kind, call)                                         \
    static inline SB_MUST_CHECK sb_status call##_##name(                                           \
        const sb_blob *blob, sb_part part, const int64_t *indices, int32_t num_indices, type *out, \
        sb_error *err) {                                                                           \
        sb_status st = sb_blob_check_dtype(blob, SB_DTYPE_##NAME, err);                            \
        return st == SB_OK ? call(blob, part, indices, num_indices, out, err) : st;                \
    }

#define SB_TYPED_LIST_(X, with) SB_DTYPE_FLOAT_LIST(X, with) SB_DTYPE_INTEGER_LIST(X, with)

SB_TYPED_LIST_(SB_TYPED_READ_, sb_blob_cpu)
SB_TYPED_LIST_(SB_TYPED_READ_, sb_blob_gpu)
SB_TYPED_LIST_(SB_TYPED_WRITE_, sb_blob_mutable_cpu)
SB_TYPED_LIST_(SB_TYPED_WRITE_, sb_blob_mutable_gpu)
SB_TYPED_LIST_(SB_TYPED_WRITE_, sb_blob_overwrite_cpu)
SB_TYPED_LIST_(SB_TYPED_WRITE_, sb_blob_overwrite_gpu)
SB_TYPED_LIST_(SB_TYPED_AT_, sb_blob_at)

#undef SB_TYPED_READ_
#undef SB_TYPED_WRITE_
#undef SB_TYPED_AT_

SB_END_DECLS

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SB_READ_CASE_(NAME, number, name, type, kind, call)  , const type ** : call##_##name
#define SB_WRITE_CASE_(NAME, number, name, type, kind, call) , type ** : call##_##name
#define SB_AT_CASE_(NAME, number, name, type, kind, call)    , type * : call##_##name

#define SB_PICK_READ_(call, out)  _Generic((out)SB_TYPED_LIST_(SB_READ_CASE_, call))
#define SB_PICK_WRITE_(call, out) _Generic((out)SB_TYPED_LIST_(SB_WRITE_CASE_, call))
#define SB_PICK_AT_(call, out)    _Generic((out)SB_TYPED_LIST_(SB_AT_CASE_, call))

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
