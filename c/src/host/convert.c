#include "host/convert.h"

#include "host/vectors.h"

#include <string.h>

/* `lanes` values at once, then one after the other. */
#define DEFINE_CONVERT(name, attributes, from, to, lanes)                                          \
    attributes static void name(const unsigned char *src, unsigned char *dst, size_t count) {      \
        typedef from wide_from __attribute__((vector_size((lanes) * sizeof(from))));               \
        typedef to wide_to __attribute__((vector_size((lanes) * sizeof(to))));                     \
        for (; count >= (lanes); count -= (lanes)) {                                               \
            wide_from stored;                                                                      \
            memcpy(&stored, src, sizeof stored);                                                   \
            const wide_to values = __builtin_convertvector(stored, wide_to);                       \
            memcpy(dst, &values, sizeof values);                                                   \
            src += sizeof stored;                                                                  \
            dst += sizeof values;                                                                  \
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
    DEFINE_CONVERT(widen_##kind, attributes, float, double, lanes)                                 \
    DEFINE_CONVERT(narrow_##kind, attributes, double, float, lanes)                                \
    static const struct sb__converts kind##_kind = {widen_##kind, narrow_##kind};

DEFINE_KIND(portable, , 4)

#ifdef __x86_64__
DEFINE_KIND(avx2, __attribute__((target("avx2"))), 8)
DEFINE_KIND(avx512, __attribute__((target("avx512f"))), 16)

const struct sb__converts *sb__converts_kind(int i) {
    const struct sb__converts *const kinds[] = {&portable_kind, &avx2_kind, &avx512_kind};
    const int count = SB__HAS_AVX512 ? 3 : SB__HAS_AVX2 ? 2 : 1;
    return i < count ? kinds[i] : NULL;
}

static const struct sb__converts *fastest(void) {
    return SB__HAS_AVX512 ? &avx512_kind : SB__HAS_AVX2 ? &avx2_kind : &portable_kind;
}
#else
const struct sb__converts *sb__converts_kind(int i) {
    return i == 0 ? &portable_kind : NULL;
}

static const struct sb__converts *fastest(void) {
    return &portable_kind;
}
#endif

void sb__widen(const unsigned char *src, unsigned char *dst, size_t count) {
    fastest()->widen(src, dst, count);
}

void sb__narrow(const unsigned char *src, unsigned char *dst, size_t count) {
    fastest()->narrow(src, dst, count);
}
