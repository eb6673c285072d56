/* Loops over floats and doubles as vectors, made for several kinds of processors. All kinds give
   the same numbers. */
#ifndef SB_HOST_VECTORS_H
#define SB_HOST_VECTORS_H

#include <syncblob/base.h>

#include <stddef.h>

/* Changes y[i], for which factor has the elements' type. */
typedef void sb__loop(double factor, const void *x, void *y, int64_t count);

/* Kinds of vectors that are used at most: any processor's, AVX2, AVX-512. Fewer in a build of the
   benchmarks for narrower processors. */
#ifndef SB__VECTOR_KINDS
#define SB__VECTOR_KINDS 3
#endif
#define SB__HAS_AVX2   (SB__VECTOR_KINDS > 1 && __builtin_cpu_supports("avx2"))
#define SB__HAS_AVX512 (SB__VECTOR_KINDS > 2 && __builtin_cpu_supports("avx512f"))

/* Where values probably are: in a core's first cache, in one behind it, or in memory. That decides
   how they are read, not what comes of it. */
enum sb__place { SB__AT_HAND, SB__IN_CACHE, SB__IN_MEMORY };

struct sb__loops {
    size_t element_size;
    sb__loop *axpy;  /* y[i] += factor * x[i], not fused; x may be y */
    sb__loop *scale; /* y[i] *= factor; x is y */
    sb__loop *set;   /* y[i] = factor; x is y */
};

struct sb__vectors {
    /* The sum of |x[i]| or x[i]^2, each sum of 64 made in floats: what leaves a float's range
       makes it infinite, or loses bits where it is tiny. */
    double (*asum)(const float *x, int64_t count, enum sb__place place);
    double (*sumsq)(const float *x, int64_t count, enum sb__place place);
    struct sb__loops f32, f64;
    /* memcpy that passes by the caches, where the processor can. */
    void (*stream)(void *dst, const void *src, size_t bytes);
};

/* The same, slower, with each value as a double: nothing is lost, on any processor. */
double sb__asum_wide(const float *x, int64_t count);
double sb__sumsq_wide(const float *x, int64_t count);

/* Of SB_DTYPE_F32 or SB_DTYPE_F64. */
static inline const struct sb__loops *sb__loops_of(const struct sb__vectors *vectors,
                                                   int32_t dtype) {
    return dtype == SB_DTYPE_F32 ? &vectors->f32 : &vectors->f64;
}

/* Those that this processor runs, the slowest first; NULL behind the fastest. */
const struct sb__vectors *sb__vectors_kind(int i);

extern const struct sb__vectors sb__vectors_portable, sb__vectors_avx2, sb__vectors_avx512;

/* Inline: small calls would feel another call. */
static inline const struct sb__vectors *sb__vectors_fastest(void) {
#ifdef __x86_64__
    if (SB__HAS_AVX512)
        return &sb__vectors_avx512;
    if (SB__HAS_AVX2)
        return &sb__vectors_avx2;
#endif
    return &sb__vectors_portable;
}

#endif
