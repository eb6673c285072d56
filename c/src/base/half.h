/* Conversion of F16 and BF16 to and from float, rounding to nearest even. Includes no other header
   of the library, so that the MPI engine can include this header. */
#ifndef SB_BASE_HALF_H
#define SB_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sb__bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float sb__float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The conversion is exact. A NaN keeps its bits, and no intermediate value is a subnormal float,
   which the processor may flush to zero. Masks instead of branches let compilers vectorise. */
static inline float sb__float_of_f16(uint16_t half) {
    const uint32_t magnitude = half & 0x7fff;
    const uint32_t subnormal = sb__bits_of_float((float)(int32_t)magnitude * 0x1p-24F);
    const uint32_t rebased = (magnitude << 13) + (112u << 23);
    const uint32_t normal = magnitude < 0x7c00 ? rebased : rebased + (112u << 23);
    const uint32_t is_subnormal = 0 - (uint32_t)(magnitude < 0x400);
    return sb__float_of_bits((subnormal & is_subnormal) | (normal & ~is_subnormal) |
                             (uint32_t)(half & 0x8000) << 16);
}

/* Rounds subnormal results by adding 0.5. In a float from 0.5 to 1, the last bit has the value of
   the last bit of a subnormal F16. */
static inline uint16_t sb__f16_of_float(float value) {
    const uint32_t bits = sb__bits_of_float(value), magnitude = bits & 0x7fffffff;
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    uint32_t half = (rounded - (112u << 23)) >> 13;
    if (magnitude < 113u << 23)
        half = sb__bits_of_float(sb__float_of_bits(magnitude) + 0.5F) - sb__bits_of_float(0.5F);
    if (magnitude >= 143u << 23) /* 65536 */
        half = 0x7c00;
    if (magnitude > 255u << 23)
        half = 0x7e00 | (magnitude >> 13 & 0x3ff);
    return (uint16_t)(sign | half);
}

static inline float sb__float_of_bf16(uint16_t half) {
    return sb__float_of_bits((uint32_t)half << 16);
}

static inline uint16_t sb__bf16_of_float(float value) {
    const uint32_t bits = sb__bits_of_float(value);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    const uint32_t quiet = bits | 0x400000;
    return (uint16_t)(((bits & 0x7fffffff) > 255u << 23 ? quiet : rounded) >> 16);
}

#endif
