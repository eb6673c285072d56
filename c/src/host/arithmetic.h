/* Arithmetic on host memory, on OpenBLAS if SYNCBLOB_OPENBLAS is defined, else in plain loops.
   dtype is F32 or F64, count > 0. Results do not depend on the number of threads that `parallel`
   uses. */
#ifndef SB_HOST_ARITHMETIC_H
#define SB_HOST_ARITHMETIC_H

#include "context/context.h"

#include <string.h>

/* Elements of a piece of work, and bytes of floats in it. */
#define SB__PIECE        (1 << 18)
#define SB__SHARED_BYTES ((size_t)4 * SB__PIECE)

/* y[i] += alpha * x[i]; x may be y. */
void sb__host_axpy(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                   const void *x, void *y);
/* x[i] *= alpha. */
void sb__host_scale(const struct sb__parallel *parallel, int32_t dtype, int64_t count, double alpha,
                    void *x);
/* Sum of |x[i]|. */
double sb__host_asum(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                     const void *x);
/* Sum of x[i]^2. */
double sb__host_sumsq(const struct sb__parallel *parallel, int32_t dtype, int64_t count,
                      const void *x);

/* What is worth spreading over threads; the rest is one call of memcpy or memset, which choose
   their way by the length. */
static inline bool sb__is_shared(const struct sb__parallel *parallel, size_t bytes) {
    return bytes > SB__SHARED_BYTES && parallel->run;
}

void sb__host_copy_shared(const struct sb__parallel *parallel, void *dst, const void *src,
                          size_t bytes);
static inline void sb__host_copy(const struct sb__parallel *parallel, void *dst, const void *src,
                                 size_t bytes) {
    if (sb__is_shared(parallel, bytes))
        sb__host_copy_shared(parallel, dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

void sb__host_zero(const struct sb__parallel *parallel, void *dst, size_t bytes);

#endif
