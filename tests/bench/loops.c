#include "loops.h"

void loop_update(float *restrict data, const float *restrict diff, size_t count) {
    for (size_t i = 0; i < count; i++)
        data[i] -= diff[i];
}

/* The number of partial sums. With one sum, each addition would wait for the one before. */
#define LANES 64

float loop_asum(const float *x, size_t count) {
    float lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += __builtin_fabsf(x[i + (size_t)lane]);
    for (; i < count; i++)
        sum += __builtin_fabsf(x[i]);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

float loop_sumsq(const float *x, size_t count) {
    float lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += x[i + (size_t)lane] * x[i + (size_t)lane];
    for (; i < count; i++)
        sum += x[i] * x[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
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
