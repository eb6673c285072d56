#include "harness.h"

void loop_update(float *restrict data, const float *restrict diff, size_t count) {
    for (size_t i = 0; i < count; i++)
        data[i] -= diff[i];
}

/* The number of partial sums: additions to a single sum would wait for each other. */
#define LANES 64

static inline float sum(const float *x, size_t count, float (*term)(float)) {
    float lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += term(x[i + (size_t)lane]);
    for (; i < count; i++)
        sum += term(x[i]);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static inline float absolute(float x) {
    return __builtin_fabsf(x);
}

float loop_asum(const float *x, size_t count) {
    return sum(x, count, absolute);
}

static inline float square(float x) {
    return x * x;
}

float loop_sumsq(const float *x, size_t count) {
    return sum(x, count, square);
}

void loop_fill(float *x, float value, size_t count) {
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

void loop_scale(float *x, float factor, size_t count) {
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

void loop_widen(const float *restrict from, double *restrict to, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] = (double)from[i];
}

void loop_narrow(const double *restrict from, float *restrict to, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}
