/* Vectorised loops over floats and doubles, for several kinds of processors. All kinds compute the
   same numbers. */
#ifndef SB_HOST_VECTORS_H
#define SB_HOST_VECTORS_H

#include <syncblob/base.h>

#include <stdbool.h>
#include <stddef.h>

/* Changes `count` elements y[i] after rounding `factor` to the type of the elements. */
typedef void sb__loop(double factor, const void *x, void *y, int64_t count);

/* The number of kinds: portable, AVX2, AVX-512. Benchmarks build fewer kinds to imitate older
   processors. */
#ifndef SB__VECTOR_KINDS
#define SB__VECTOR_KINDS 3
#endif

/* Returns the number of kinds that this processor supports. The last of these is the fastest. */
static inline int sb__num_kinds(void) {
#ifdef __x86_64__
    const bool has_avx512 = SB__VECTOR_KINDS > 2 && __builtin_cpu_supports("avx512f");
    const bool has_avx2 = SB__VECTOR_KINDS > 1 && __builtin_cpu_supports("avx2");
    return has_avx512 ? 3 : has_avx2 ? 2 : 1;
#else
    return 1;
#endif
}

/* The probable place of values: first-level cache, another cache, or memory. The place affects only
   the speed, not the result. */
enum sb__place { SB__AT_HAND, SB__IN_CACHE, SB__IN_MEMORY, SB__PLACES };

struct sb__loops {
    size_t element_size;
    sb__loop *axpy;              /* y[i] += factor * x[i] without FMA; x may be y */
    sb__loop *scale[SB__PLACES]; /* y[i] *= factor; x is y */
    sb__loop *set;               /* y[i] = factor; x is y */
};

struct sb__vectors {
    /* These functions return the sum of |x[i]| or x[i]^2. At most 64 values are added as floats. A
       sum of floats may overflow to infinity or lose bits to underflow. */
    double (*asum)(const float *x, int64_t count, enum sb__place place);
    double (*sumsq)(const float *x, int64_t count, enum sb__place place);
    struct sb__loops f32, f64;
    /* Copies like memcpy, but bypasses the caches if the processor supports it. */
    void (*stream)(void *dst, const void *src, size_t bytes);
};

/* Both functions add doubles, which is slower but avoids overflow and underflow. */
double sb__asum_wide(const float *x, int64_t count);
double sb__sumsq_wide(const float *x, int64_t count);

static inline const struct sb__loops *sb__loops_of(const struct sb__vectors *vectors,
                                                   int32_t dtype) {
    return dtype == SB_DTYPE_F32 ? &vectors->f32 : &vectors->f64;
}

extern const struct sb__vectors *const sb__vectors_kinds[];

/* Inline, because a call would slow down operations on few elements. */
static inline const struct sb__vectors *sb__vectors_fastest(void) {
    return sb__vectors_kinds[sb__num_kinds() - 1];
}

#endif
