#include "host/convert.h"

#include "host/vectors.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* Applies `step` to `lanes` values at a time, then converts the remaining values one by one. */
#define DEFINE_CONVERT(name, attributes, from, to, lanes, step)                                    \
    attributes static void name(const unsigned char *src, unsigned char *dst, size_t count) {      \
        for (; count >= (lanes); count -= (lanes)) {                                               \
            step(src, dst);                                                                        \
            src += (lanes) * sizeof(from);                                                         \
            dst += (lanes) * sizeof(to);                                                           \
        }                                                                                          \
        for (; count > 0; count--) {                                                               \
            from stored;                                                                           \
            memcpy(&stored, src, sizeof stored);                                                   \
            const to value = (to)stored;                                                           \
            memcpy(dst, &value, sizeof value);                                                     \
            src += sizeof stored;                                                                  \
            dst += sizeof value;                                                                   \
        }                                                                                          \
    }

#define DEFINE_KIND(kind, attributes, lanes)                                                       \
    DEFINE_CONVERT(widen_##kind, attributes, float, double, lanes, widen_step_##kind)              \
    DEFINE_CONVERT(narrow_##kind, attributes, double, float, lanes, narrow_step_##kind)            \
    static const struct sb__converts kind##_kind = {widen_##kind, narrow_##kind};

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(32)));

INLINE void widen_step_portable(const unsigned char *src, unsigned char *dst) {
    floats stored;
    memcpy(&stored, src, sizeof stored);
    const doubles values = __builtin_convertvector(stored, doubles);
    memcpy(dst, &values, sizeof values);
}

INLINE void narrow_step_portable(const unsigned char *src, unsigned char *dst) {
    doubles stored;
    memcpy(&stored, src, sizeof stored);
    const floats values = __builtin_convertvector(stored, floats);
    memcpy(dst, &values, sizeof values);
}

DEFINE_KIND(portable, , 4)

#ifdef __x86_64__
/* Uses intrinsics: gcc 12 compiles conversions of wide vectors to several instructions instead of
   one. */
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

INLINE AVX2 void widen_step_avx2(const unsigned char *src, unsigned char *dst) {
    _mm256_storeu_pd((double *)(void *)dst,
                     _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)src)));
}

INLINE AVX2 void narrow_step_avx2(const unsigned char *src, unsigned char *dst) {
    _mm_storeu_ps((float *)(void *)dst,
                  _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)src)));
}

INLINE AVX512 void widen_step_avx512(const unsigned char *src, unsigned char *dst) {
    _mm512_storeu_pd(dst, _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)src)));
}

INLINE AVX512 void narrow_step_avx512(const unsigned char *src, unsigned char *dst) {
    _mm256_storeu_ps((float *)(void *)dst, _mm512_cvtpd_ps(_mm512_loadu_pd(src)));
}

DEFINE_KIND(avx2, AVX2, 4)
DEFINE_KIND(avx512, AVX512, 8)
#endif

const struct sb__converts *const sb__converts_kinds[] = {
    &portable_kind,
#ifdef __x86_64__
    &avx2_kind,
    &avx512_kind,
#endif
};

void sb__widen(const unsigned char *src, unsigned char *dst, size_t count) {
    sb__converts_kinds[sb__num_kinds() - 1]->widen(src, dst, count);
}

void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count) {
    sb__converts_kinds[sb__num_kinds() - 1]->narrow(src, dst, count);
}
