#include "filler/random.h"

#include "filler/philox.h"
#include "host/vectors.h"
#include "port/root.h"

#include <syncblob/base.h>

#include <float.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __FAST_MATH__
#error "fillers need IEEE arithmetic for the same numbers everywhere: compile without -ffast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "floats are computed as doubles: compile with -fexcess-precision=fast"
#endif

/* The functions below loop over a few lanes without branches, so that compilers vectorise them. The
   functions are always inlined, so that each instruction set has a separate copy. */
#define INLINE static inline __attribute__((always_inline))
#define LANES  8

/* --- words -------------------------------------------------------------------------- */

enum stream { VALUES, KEPT };

/* The four Philox words for each counter of a group. A word occupies 64 bits, like a double. */
struct words {
    uint64_t w[4][LANES];
};

INLINE void draw_portable(struct words *words, uint64_t seed, uint64_t group, enum stream stream) {
    const uint64_t counter = group * LANES;
    const uint32_t low = (uint32_t)counter, high = (uint32_t)(counter >> 32);
    for (uint32_t i = 0; i < LANES; i++) {
        const uint32_t place[4] = {low + i, high, (uint32_t)stream, 0};
        uint32_t block[4];
        sb__philox(place, (uint32_t)seed, (uint32_t)(seed >> 32), block);
        for (int j = 0; j < 4; j++)
            words->w[j][i] = block[j];
    }
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

INLINE AVX2 __m256i same(uint64_t value) {
    return _mm256_set1_epi64x((long long)value);
}

/* Computes one round on four counters; ignores the upper 32 bits of each lane. */
INLINE AVX2 void round_avx2(__m256i v[4], __m256i key_low, __m256i key_high) {
    const __m256i a = _mm256_mul_epu32(v[0], same(SB__PHILOX_M0));
    const __m256i b = _mm256_mul_epu32(v[2], same(SB__PHILOX_M1));
    v[0] = _mm256_srli_epi64(b, 32) ^ v[1] ^ key_low;
    v[2] = _mm256_srli_epi64(a, 32) ^ v[3] ^ key_high;
    v[1] = b;
    v[3] = a;
}

/* Uses intrinsics, since compilers do not recognise the multiplication of 32-bit halves of lanes in
   portable code. */
INLINE AVX2 void draw_avx2(struct words *words, uint64_t seed, uint64_t group, enum stream stream) {
    const uint64_t counter = group * LANES;
    const __m256i first = same(counter & UINT32_MAX);
    const __m256i high = same(counter >> 32), which = same(stream), zero = same(0);
    __m256i a[4] = {first + _mm256_setr_epi64x(0, 1, 2, 3), high, which, zero};
    __m256i b[4] = {first + _mm256_setr_epi64x(4, 5, 6, 7), high, which, zero};
    uint32_t low_key = (uint32_t)seed, high_key = (uint32_t)(seed >> 32);
    for (int i = 0; i < SB__PHILOX_ROUNDS; i++) {
        round_avx2(a, same(low_key), same(high_key));
        round_avx2(b, same(low_key), same(high_key));
        low_key += SB__PHILOX_W0;
        high_key += SB__PHILOX_W1;
    }
    for (int j = 0; j < 4; j++) {
        _mm256_storeu_si256((__m256i *)&words->w[j][0], a[j] & same(UINT32_MAX));
        _mm256_storeu_si256((__m256i *)&words->w[j][4], b[j] & same(UINT32_MAX));
    }
}

#define AVX512 __attribute__((target("avx512f")))

INLINE AVX512 __m512i same_wide(uint64_t value) {
    return _mm512_set1_epi64((long long)value);
}

/* Computes one round on eight counters. */
INLINE AVX512 void round_avx512(__m512i v[4], __m512i key_low, __m512i key_high) {
    const __m512i a = _mm512_mul_epu32(v[0], same_wide(SB__PHILOX_M0));
    const __m512i b = _mm512_mul_epu32(v[2], same_wide(SB__PHILOX_M1));
    v[0] = _mm512_srli_epi64(b, 32) ^ v[1] ^ key_low;
    v[2] = _mm512_srli_epi64(a, 32) ^ v[3] ^ key_high;
    v[1] = b;
    v[3] = a;
}

INLINE AVX512 void draw_avx512(struct words *words, uint64_t seed, uint64_t group,
                               enum stream stream) {
    const uint64_t counter = group * LANES;
    const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    __m512i v[4] = {same_wide(counter & UINT32_MAX) + lanes, same_wide(counter >> 32),
                    same_wide(stream), same_wide(0)};
    uint32_t low_key = (uint32_t)seed, high_key = (uint32_t)(seed >> 32);
    for (int i = 0; i < SB__PHILOX_ROUNDS; i++) {
        round_avx512(v, same_wide(low_key), same_wide(high_key));
        low_key += SB__PHILOX_W0;
        high_key += SB__PHILOX_W1;
    }
    for (int j = 0; j < 4; j++)
        _mm512_storeu_si512(words->w[j], v[j] & same_wide(UINT32_MAX));
}
#endif

INLINE uint64_t wide(const struct words *words, int j, int i) {
    return words->w[j][i] << 32 | words->w[j + 1][i];
}

/* --- numbers ------------------------------------------------------------------------ */

INLINE double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define TWO_TO_52 UINT64_C(0x4330000000000000) /* 2^52; the mantissa counts units of 1 */
#define ONE       UINT64_C(0x3ff0000000000000) /* 1.0; the mantissa counts units of 2^-52 */

/* unit32 returns (word + 1/2) / 2^32, and unit64 returns (b + 1/2) / 2^52, where b is the upper 52
   bits of the word. The possible results are equidistant in (0, 1). */
INLINE double unit32(uint64_t word) {
    return (double_of(TWO_TO_52 | word) - (0x1p52 - 0.5)) * 0x1p-32;
}

INLINE double unit64(uint64_t word) {
    return double_of(ONE | word >> 12) - (1 - 0x1p-53);
}

/* The possible results of eighth32 and of eighth64 are equidistant in (-1/8, 1/8). */
INLINE double eighth32(uint64_t word) {
    return (double_of(TWO_TO_52 | word) - (0x1p52 + 0x1p31) + 0.5) * 0x1p-34;
}

INLINE double eighth64(uint64_t word) {
    return (double_of(ONE | word >> 12) - 1.5 + 0x1p-53) * 0.25;
}

/* Coefficients of minimax polynomials in the square of the argument. The relative error is below
   4e-9 for floats and below 2e-16 for doubles. */
struct accuracy {
    int log_terms, sine_terms, cosine_terms;
    double log[6], sine[7], cosine[6];
};

static const struct accuracy for_f32 = {
    .log_terms = 3,
    .log = {0x1.55557a0c73da1p-2, 0x1.995ecfaecd768p-3, 0x1.31e0e0e459892p-3},
    .sine_terms = 4,
    .sine = {0x1.921fb52e6a3b3p+2, -0x1.4abbb90048df0p+5, 0x1.465e91f02a4d1p+6,
             -0x1.2d93022972d57p+6},
    .cosine_terms = 4,
    .cosine = {-0x1.3bd3cc7b83d46p+4, 0x1.03c1dd961fe19p+6, -0x1.55c5dfbf0b662p+6,
               0x1.d9d57e9448bd9p+5},
};

static const struct accuracy for_f64 = {
    .log_terms = 6,
    .log = {0x1.555555555397ap-2, 0x1.999999a28e86ap-3, 0x1.2492417aa0df0p-3, 0x1.c72276950b276p-4,
            0x1.732c525fe6defp-4, 0x1.58759001fd683p-4},
    .sine_terms = 7,
    .sine = {0x1.921fb54442d18p+2, -0x1.4abbce625be41p+5, 0x1.466bc67758700p+6,
             -0x1.32d2cce2d538ap+6, 0x1.50782fca3af0ap+5, -0x1.e30063a1b8c00p+3,
             0x1.e3eed62bb5018p+1},
    .cosine_terms = 6,
    .cosine = {-0x1.3bd3cc9be459dp+4, 0x1.03c1f081b0e29p+6, -0x1.55d3c7dc3de90p+6,
               0x1.e1f4fb844ce38p+5, -0x1.a6c9ca52d684fp+4, 0x1.f3dcf015d0594p+2},
};

INLINE double polynomial(const double *coefficients, int terms, double x) {
    double sum = coefficients[terms - 1];
    for (int i = terms - 2; i >= 0; i--)
        sum = sum * x + coefficients[i];
    return sum;
}

/* Returns -2 log u for u in (0, 1). Uses u = m / 2^e with m near 1, and log m = 2 artanh((m - 1) /
   (m + 1)). */
INLINE double minus_two_log(const struct accuracy *accuracy, double u) {
    const uint64_t sqrt_two = UINT64_C(0x3ff6a09e667f3bcc), bits = bits_of(u);
    const uint64_t e = (sqrt_two - bits) >> 52;
    const double twice_log_two = 0x1.62e42fefa39efp+0;
    const double m = double_of(bits + (e << 52)), s = (m - 1) / (m + 1), z = s * s;
    const double p = polynomial(accuracy->log, accuracy->log_terms, z);
    return (double_of(TWO_TO_52 | e) - 0x1p52) * twice_log_two - 4 * (s + s * (z * p));
}

/* These functions return the sine and the cosine of 2 pi t for |t| <= 1/8. */
INLINE double sine(const struct accuracy *accuracy, double t) {
    return t * polynomial(accuracy->sine, accuracy->sine_terms, t * t);
}

INLINE double cosine(const struct accuracy *accuracy, double t) {
    const double y = t * t;
    return 1 + y * polynomial(accuracy->cosine, accuracy->cosine_terms, y);
}

/* Computes two independent normal numbers (Box and Muller): `u` determines the radius and `t` the
   angle within a quarter, from -1/8 to 1/8 turns; the low two bits of `turn` choose the quarter. */
INLINE void normal_pair(const struct accuracy *accuracy, double u, double t, uint64_t turn,
                        double *a, double *b) {
    const double radius = sb__sqrt(minus_two_log(accuracy, u));
    const uint64_t s = bits_of(radius * sine(accuracy, t));
    const uint64_t c = bits_of(radius * cosine(accuracy, t)) ^ turn << 63;
    const uint64_t swap = (s ^ c) & (0 - (turn >> 1 & 1));
    *a = double_of(s ^ swap);
    *b = double_of(c ^ swap);
}

/* --- groups ------------------------------------------------------------------------- */

enum { SINGLES = 4 * LANES, DOUBLES = 2 * LANES }; /* number of elements in a group */
_Static_assert(SINGLES * sizeof(float) == SB__GROUP_BYTES, "the sizes differ");
_Static_assert(DOUBLES * sizeof(double) == SB__GROUP_BYTES, "the sizes differ");

/* Applies origin and scale. x[i] is at most 1 - 2^-53. Therefore scale * x[i] rounds to less than
   the exact max - min, and no uniform number exceeds origin + scale. */
INLINE void shift(const struct sb__random *random, double *x, int n) {
    for (int i = 0; i < n; i++)
        x[i] = random->origin + random->scale * x[i];
}

/* Sets each element to zero with the probability 1 - random->keep. */
INLINE void thin(const struct sb__random *random, const struct words *words, double *x, int n) {
    for (int j = 0; j < n / LANES; j++)
        for (int i = 0; i < LANES; i++)
            x[j * LANES + i] = unit32(words->w[j][i]) < random->keep ? x[j * LANES + i] : 0.0;
}

INLINE void units_f32(const struct words *words, double *x) {
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < LANES; i++)
            x[j * LANES + i] = unit32(words->w[j][i]);
}

INLINE void units_f64(const struct words *words, double *x) {
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < LANES; i++)
            x[j * LANES + i] = unit64(wide(words, 2 * j, i));
}

INLINE void normals_f32(const struct words *words, double *x) {
    for (int j = 0; j < 4; j += 2)
        for (int i = 0; i < LANES; i++) {
            const uint64_t turn = words->w[j + 1][i];
            normal_pair(&for_f32, unit32(words->w[j][i]), eighth32(turn), turn, &x[j * LANES + i],
                        &x[(j + 1) * LANES + i]);
        }
}

INLINE void normals_f64(const struct words *words, double *x) {
    for (int i = 0; i < LANES; i++) {
        const uint64_t turn = wide(words, 2, i);
        normal_pair(&for_f64, unit64(wide(words, 0, i)), eighth64(turn), turn, &x[i],
                    &x[LANES + i]);
    }
}

#define DEFINE_KERNEL(name, type, count, draw, numbers, attributes)                                \
    attributes static void name(const struct sb__random *random, uint64_t group, int64_t groups,   \
                                void *out) {                                                       \
        const struct sb__random own = *random; /* a copy that `out` cannot alias */                \
        type *to = out;                                                                            \
        for (int64_t g = 0; g < groups; g++, group++, to += (count)) {                             \
            struct words words;                                                                    \
            double x[count];                                                                       \
            draw(&words, own.seed, group, VALUES);                                                 \
            numbers(&words, x);                                                                    \
            shift(&own, x, count);                                                                 \
            if (own.keep < 1) {                                                                    \
                draw(&words, own.seed, group, KEPT);                                               \
                thin(&own, &words, x, count);                                                      \
            }                                                                                      \
            for (int i = 0; i < (count); i++)                                                      \
                to[i] = (type)x[i];                                                                \
        }                                                                                          \
    }

#define DEFINE_KERNELS(set, attributes)                                                            \
    DEFINE_KERNEL(uniform_f32_##set, float, SINGLES, draw_##set, units_f32, attributes)            \
    DEFINE_KERNEL(uniform_f64_##set, double, DOUBLES, draw_##set, units_f64, attributes)           \
    DEFINE_KERNEL(normal_f32_##set, float, SINGLES, draw_##set, normals_f32, attributes)           \
    DEFINE_KERNEL(normal_f64_##set, double, DOUBLES, draw_##set, normals_f64, attributes)          \
    static const struct sb__random_kernels kernels_##set = {uniform_f32_##set, uniform_f64_##set,  \
                                                            normal_f32_##set, normal_f64_##set}

DEFINE_KERNELS(portable, );

#ifdef __x86_64__
DEFINE_KERNELS(avx2, AVX2);
DEFINE_KERNELS(avx512, AVX512);
#endif

const struct sb__random_kernels *const sb__random_kinds[] = {
    &kernels_portable,
#ifdef __x86_64__
    &kernels_avx2,
    &kernels_avx512,
#endif
};

/* --- ranges ------------------------------------------------------------------------- */

static sb__random_kernel *kernel_of(const struct sb__random_kernels *kernels,
                                    const struct sb__random *random) {
    if (random->dtype == SB_DTYPE_F32)
        return random->normal ? kernels->normal_f32 : kernels->uniform_f32;
    return random->normal ? kernels->normal_f64 : kernels->uniform_f64;
}

void sb__random_fill(const struct sb__random *random, const struct sb__random_kernels *kernels,
                     int64_t begin, int64_t count, void *out) {
    sb__random_kernel *kernel = kernel_of(kernels, random);
    const int64_t size = (int64_t)sb_dtype_size(random->dtype), length = SB__GROUP_BYTES / size;
    char *to = out;
    while (count > 0) {
        const int64_t skip = begin % length;
        const uint64_t group = (uint64_t)(begin / length);
        int64_t n = length - skip < count ? length - skip : count;
        if (n < length) {
            char part[SB__GROUP_BYTES];
            kernel(random, group, 1, part);
            memcpy(to, part + skip * size, (size_t)(n * size));
        } else {
            n = count / length * length;
            kernel(random, group, n / length, to);
        }
        begin += n;
        count -= n;
        to += n * size;
    }
}
