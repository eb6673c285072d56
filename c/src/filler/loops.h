/* Loops of the fillers over F32 or F64 elements, except the loops that draw random numbers. */
#ifndef SB_FILLER_LOOPS_H
#define SB_FILLER_LOOPS_H

#include "host/vectors.h"

#include <stdint.h>

/* x[i] = value */
static inline void sb__loop_set(int32_t dtype, void *x, int64_t count, double value) {
    sb__loops_of(sb__vectors_fastest(), dtype)->set(value, x, x, count);
}
/* Returns the sum of x[i]. The order of the additions depends only on the count. */
double sb__loop_sum(int32_t dtype, const void *x, int64_t count);
/* x[i] *= factor */
void sb__loop_scale(int32_t dtype, void *x, int64_t count, double factor);
/* Writes to x the weights [begin, begin + count) of consecutive width x width kernels. */
void sb__loop_bilinear(int32_t dtype, void *x, int64_t begin, int64_t count, int64_t width);

#endif
