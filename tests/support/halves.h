/* F16 and BF16 numbers for tests, computed without the library's code. */
#ifndef SB_TESTS_HALVES_H
#define SB_TESTS_HALVES_H

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <syncblob/comm.h>

static inline bool is_half(sb_dtype dtype) {
    return dtype == SB_DTYPE_F16 || dtype == SB_DTYPE_BF16;
}

/* `value` must be 0 or a normal number that the dtype represents exactly. */
static inline uint16_t half_of(sb_dtype dtype, double value) {
    const float exact = (float)value;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if (dtype == SB_DTYPE_BF16 || exact == 0)
        return (uint16_t)(bits >> 16);
    return (uint16_t)((bits >> 16 & 0x8000) | (((bits & 0x7fffffff) - (112u << 23)) >> 13));
}

static inline double value_of_half(sb_dtype dtype, uint16_t half) {
    const int digits = dtype == SB_DTYPE_F16 ? 10 : 7, bias = dtype == SB_DTYPE_F16 ? 15 : 127;
    const int exponent = (half & 0x7fff) >> digits, fraction = half & ((1 << digits) - 1);
    const double value = exponent == 2 * bias + 1 ? (double)(fraction ? NAN : INFINITY)
                         : exponent ? ldexp(fraction + (1 << digits), exponent - bias - digits)
                                    : ldexp(fraction, 1 - bias - digits);
    return half & 0x8000 ? -value : value;
}

static inline double get_value(sb_dtype dtype, const void *values, int64_t i) {
    if (is_half(dtype))
        return value_of_half(dtype, ((const uint16_t *)values)[i]);
    return dtype == SB_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static inline void put_value(sb_dtype dtype, void *values, int64_t i, double value) {
    if (dtype == SB_DTYPE_F32)
        ((float *)values)[i] = (float)value;
    else if (is_half(dtype)) /* does not round, because the tests' values are exact */
        ((uint16_t *)values)[i] = half_of(dtype, value);
    else
        ((double *)values)[i] = value;
}

/* The bits of two ranks' values, and of the result that each rank receives. */
static const struct half_row {
    sb_dtype dtype;
    sb_comm_op op;
    uint16_t one, other, expected;
} half_rows[] = {
    {SB_DTYPE_F16, SB_COMM_SUM, 0x6800, 0x3c00, 0x6800},  /* 2048 + 1: a tie rounds down to even */
    {SB_DTYPE_F16, SB_COMM_SUM, 0x6800, 0x4200, 0x6802},  /* 2048 + 3: a tie rounds up to even */
    {SB_DTYPE_F16, SB_COMM_SUM, 0x7bff, 0x4800, 0x7bff},  /* 65504 + 8 */
    {SB_DTYPE_F16, SB_COMM_SUM, 0x7bff, 0x4c00, 0x7c00},  /* 65504 + 16: infinite */
    {SB_DTYPE_F16, SB_COMM_SUM, 0xfbff, 0xfbff, 0xfc00},  /* -65504 - 65504: infinite */
    {SB_DTYPE_F16, SB_COMM_SUM, 0x0001, 0x0002, 0x0003},  /* subnormal */
    {SB_DTYPE_F16, SB_COMM_SUM, 0x03ff, 0x0001, 0x0400},  /* the sum is a normal number */
    {SB_DTYPE_F16, SB_COMM_SUM, 0xbc00, 0x3c00, 0x0000},  /* -1 + 1 */
    {SB_DTYPE_F16, SB_COMM_MEAN, 0x0001, 0x0000, 0x0000}, /* half of the least number rounds to 0 */
    {SB_DTYPE_F16, SB_COMM_MEAN, 0x8003, 0x0000, 0x8002},
    {SB_DTYPE_F16, SB_COMM_MEAN, 0x3c00, 0x4200, 0x4000}, /* 1 and 3 */
    {SB_DTYPE_F16, SB_COMM_MIN, 0x3c00, 0xc200, 0xc200},
    {SB_DTYPE_F16, SB_COMM_MAX, 0x3c00, 0xc200, 0x3c00},
    {SB_DTYPE_BF16, SB_COMM_SUM, 0x4380, 0x3f80, 0x4380}, /* 256 + 1 */
    {SB_DTYPE_BF16, SB_COMM_SUM, 0x4380, 0x4040, 0x4382}, /* 256 + 3 */
    {SB_DTYPE_BF16, SB_COMM_SUM, 0x7f7f, 0x7f7f, 0x7f80}, /* infinite */
    {SB_DTYPE_BF16, SB_COMM_SUM, 0x7f80, 0xff80, 0x7fc0}, /* NaN, of either sign */
    {SB_DTYPE_BF16, SB_COMM_MEAN, 0x3f80, 0x4040, 0x4000},
    {SB_DTYPE_BF16, SB_COMM_MIN, 0x3f80, 0xc040, 0xc040},
    {SB_DTYPE_BF16, SB_COMM_MAX, 0x3f80, 0xc040, 0x3f80},
};
#define HALF_ROWS ((int)(sizeof half_rows / sizeof *half_rows))

/* Returns whether `found`, the result of a rank, is right; a NaN may have either sign. */
static inline bool half_row_holds(const struct half_row *row, uint16_t found) {
    return found == row->expected || (row->expected == 0x7fc0 && (found & 0x7fff) == 0x7fc0);
}

#endif
