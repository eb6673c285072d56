/* Loops over floats as vectors, made for several kinds of processors. All kinds give the same
   numbers. */
#ifndef SB_HOST_VECTORS_H
#define SB_HOST_VECTORS_H

#include <stdint.h>

struct sb__vectors {
    /* The sum of |x[i]| or x[i]^2, each sum of 16 made in floats: what leaves a float's range
       makes it infinite, or loses bits where it is tiny. */
    double (*asum)(const float *x, int64_t count);
    double (*sumsq)(const float *x, int64_t count);
    void (*scale)(float *x, float factor, int64_t count);
    void (*set)(float *x, float value, int64_t count);
};

/* The same, slower, with each value as a double: nothing is lost, on any processor. */
double sb__asum_wide(const float *x, int64_t count);
double sb__sumsq_wide(const float *x, int64_t count);

/* Those that this processor runs, the slowest first; NULL behind the fastest. */
const struct sb__vectors *sb__vectors_kind(int i);
const struct sb__vectors *sb__vectors_fastest(void);

#endif
