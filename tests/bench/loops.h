/* The limits: plain loops over floats, which the compiler makes vectors of. */
#ifndef SB_BENCH_LOOPS_H
#define SB_BENCH_LOOPS_H

#include <stddef.h>

void loop_update(float *data, const float *diff, size_t count);
float loop_asum(const float *x, size_t count);
float loop_sumsq(const float *x, size_t count);
/* x[i] = value, as vector code: compilers make a call of memset only where all bytes are one. */
void loop_fill(float *x, float value, size_t count);
void loop_scale(float *x, float factor, size_t count);
void loop_widen(const float *from, double *to, size_t count);
void loop_narrow(const double *from, float *to, size_t count);

#endif
