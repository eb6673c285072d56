/* Arithmetic on host memory. Sums of F64 use OpenBLAS if SYNCBLOB_OPENBLAS is defined. The dtype is
   F32 or F64. `count` is > 0, or >= 0 for sums. Results do not depend on the number of threads that
   `parallel` uses. */
#ifndef SB_HOST_ARITHMETIC_H
#define SB_HOST_ARITHMETIC_H

#include "context/context.h"

#include <string.h>

/* Up to this size, one call of memcpy or memset suffices. Larger sizes are split over threads. */
#define SB__SMALL_BYTES ((size_t)1 << 20)

/* y[i] += alpha * x[i]; x may be y. */
void sb__host_axpy(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                   const void *x, void *y);
/* x[i] *= alpha. */
void sb__host_scale(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                    void *x);
/* Returns the sum of |x[i]|. */
double sb__host_asum(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                     const void *x);
/* Returns the sum of x[i]^2. */
double sb__host_sumsq(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                      const void *x);

void sb__host_copy_large(const struct sb__parallel *parallel, void *dst, const void *src,
                         size_t bytes);
static inline void sb__host_copy(const struct sb__parallel *parallel, void *dst, const void *src,
                                 size_t bytes) {
    if (bytes <= SB__SMALL_BYTES)
        memcpy(dst, src, bytes);
    else
        sb__host_copy_large(parallel, dst, src, bytes);
}

void sb__host_zero(const struct sb__parallel *parallel, void *dst, size_t bytes);

#endif
