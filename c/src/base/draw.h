/* The generator splitmix64: equal seeds produce equal sequences of random numbers. */
#ifndef SB_BASE_DRAW_H
#define SB_BASE_DRAW_H

#include <stdint.h>

static inline uint64_t sb__draw(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#endif
