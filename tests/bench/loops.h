/* The plain loops with which the library is compared; the compiler vectorises them. */
#ifndef SB_BENCH_LOOPS_H
#define SB_BENCH_LOOPS_H

#include <stddef.h>

void loop_update(float *data, const float *diff, size_t count);
float loop_asum(const float *x, size_t count);
float loop_sumsq(const float *x, size_t count);
/* Sets x[i] = value. Compilers use memset for this only if the value's bytes are equal. */
void loop_fill(float *x, float value, size_t count);
void loop_scale(float *x, float factor, size_t count);
void loop_widen(const float *from, double *to, size_t count);
void loop_narrow(const double *from, float *to, size_t count);

#endif
