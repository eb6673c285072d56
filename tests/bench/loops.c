#include "loops.h"

void loop_update(float *restrict data, const float *restrict diff, size_t count) {
    for (size_t i = 0; i < count; i++)
        data[i] -= diff[i];
}

float loop_asum(const float *x, size_t count) {
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += __builtin_fabsf(x[i]);
    return sum;
}

float loop_sumsq(const float *x, size_t count) {
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
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
