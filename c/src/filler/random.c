#include "filler/random.h"

#include <syncblob/base.h>

#include <math.h>
#include <string.h>

/* The library's own check of a constant would call assert. */
#define R123_ASSERT(condition) ((void)0)
#include <Random123/philox.h>

#ifdef __FAST_MATH__
#error "fillers give the same numbers everywhere by IEEE arithmetic: compile without -ffast-math"
#endif

/* Everything below is loops over a few lanes without branches, which compilers turn into vector
   code; always inlined, so that it is compiled anew for each instruction set. */
#define INLINE static inline __attribute__((always_inline))
#define LANES  8

/* --- words -------------------------------------------------------------------------- */

enum stream { VALUES, KEPT };

/* Of a group, Philox's four words at LANES counters. */
struct words {
    uint32_t w[4][LANES];
};

INLINE void draw(struct words *words, uint64_t seed, uint64_t group, enum stream stream) {
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const uint64_t counter = group * LANES;
    const uint32_t low = (uint32_t)counter, high = (uint32_t)(counter >> 32);
    for (uint32_t i = 0; i < LANES; i++) {
        philox4x32_ctr_t block = {{low + i, high, (uint32_t)stream, 0}};
        block = philox4x32(block, key);
        for (int j = 0; j < 4; j++)
            words->w[j][i] = block.v[j];
    }
}

INLINE uint64_t wide(const struct words *words, int j, int i) {
    return (uint64_t)words->w[j][i] << 32 | words->w[j + 1][i];
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

#define TWO_TO_52 UINT64_C(0x4330000000000000) /* whose mantissa counts ones */
#define ONE       UINT64_C(0x3ff0000000000000) /* whose mantissa counts 2^-52 */

/* In (0, 1), all distances equal: (word + 1/2) / 2^32, and as much of 52 bits. */
INLINE double unit32(uint32_t word) {
    return (double_of(TWO_TO_52 | word) - (0x1p52 - 0.5)) * 0x1p-32;
}

INLINE double unit64(uint64_t word) {
    return double_of(ONE | word >> 12) - (1 - 0x1p-53);
}

/* In (-1/8, 1/8). */
INLINE double eighth32(uint32_t word) {
    return (double_of(TWO_TO_52 | word) - (0x1p52 + 0x1p31 - 0.5)) * 0x1p-34;
}

INLINE double eighth64(uint64_t word) {
    return (double_of(ONE | word >> 12) - (1.5 - 0x1p-53)) * 0.25;
}

/* -2 log u for u in (0, 1), to a few units in the last place: u = m / 2^e with m about 1,
   log m = 2 artanh((m - 1) / (m + 1)), by a polynomial of least relative error. */
INLINE double minus_two_log(double u) {
    const uint64_t sqrt_two = UINT64_C(0x3ff6a09e667f3bcc), bits = bits_of(u);
    const uint64_t e = (sqrt_two - bits) >> 52;
    const double m = double_of(bits + (e << 52)), s = (m - 1) / (m + 1), z = s * s;
    double p = 0x1.58da8e9d115aap-4;
    p = p * z + 0x1.7322b5fa02f1dp-4;
    p = p * z + 0x1.c722d07583f97p-4;
    p = p * z + 0x1.249240b192f08p-3;
    p = p * z + 0x1.999999a4411b1p-3;
    p = p * z + 0x1.5555555552d12p-2;
    const double twice_log_two = 0x1.62e42fefa39efp+0;
    return (double_of(TWO_TO_52 | e) - 0x1p52) * twice_log_two - 4 * (s + s * (z * p));
}

/* Sine and cosine of 2 pi t, |t| <= 1/8, likewise. */
INLINE double sine(double t) {
    const double y = t * t;
    double p = 0x1.e3eed62bb5018p+1;
    p = p * y - 0x1.e30063a1b8c00p+3;
    p = p * y + 0x1.50782fca3af0ap+5;
    p = p * y - 0x1.32d2cce2d538ap+6;
    p = p * y + 0x1.466bc67758700p+6;
    p = p * y - 0x1.4abbce625be41p+5;
    p = p * y + 0x1.921fb54442d18p+2;
    return t * p;
}

INLINE double cosine(double t) {
    const double y = t * t;
    double p = 0x1.f3c92625fe55ep+2;
    p = p * y - 0x1.a6c989827eda9p+4;
    p = p * y + 0x1.e1f4fae0e90f1p+5;
    p = p * y - 0x1.55d3c7db782edp+6;
    p = p * y + 0x1.03c1f081affa4p+6;
    p = p * y - 0x1.3bd3cc9be4580p+4;
    return p * y + 1;
}

/* Two independent normal numbers (Box and Muller): a radius, and an angle of an eighth to either
   side that the low two bits of `turn` reflect into the other three quarters. */
INLINE void normal_pair(double u, double t, uint64_t turn, double *a, double *b) {
    const double radius = sqrt(minus_two_log(u));
    const uint64_t s = bits_of(radius * sine(t));
    const uint64_t c = bits_of(radius * cosine(t)) ^ turn << 63;
    const uint64_t swap = (s ^ c) & (0 - (turn >> 1 & 1));
    *a = double_of(s ^ swap);
    *b = double_of(c ^ swap);
}

/* --- groups ------------------------------------------------------------------------- */

#define SINGLES (4 * LANES) /* elements of a group of floats */
#define DOUBLES (2 * LANES)
_Static_assert(SINGLES * sizeof(float) == SB__GROUP_BYTES, "a group of floats");
_Static_assert(DOUBLES * sizeof(double) == SB__GROUP_BYTES, "a group of doubles");

INLINE void stretch(const struct sb__random *random, double *x, int n) {
    for (int i = 0; i < n; i++) {
        const double value = random->origin + random->scale * x[i];
        x[i] = value < random->limit ? value : random->limit;
    }
}

INLINE void shift(const struct sb__random *random, double *x, int n) {
    for (int i = 0; i < n; i++)
        x[i] = random->origin + random->scale * x[i];
}

/* Makes elements zero that are not kept. */
INLINE void thin(const struct sb__random *random, uint64_t group, double *x, int n) {
    if (random->keep >= 1)
        return;
    struct words words;
    draw(&words, random->seed, group, KEPT);
    for (int j = 0; j < n / LANES; j++)
        for (int i = 0; i < LANES; i++)
            x[j * LANES + i] = unit32(words.w[j][i]) < random->keep ? x[j * LANES + i] : 0.0;
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
            const uint32_t turn = words->w[j + 1][i];
            normal_pair(unit32(words->w[j][i]), eighth32(turn), turn, &x[j * LANES + i],
                        &x[(j + 1) * LANES + i]);
        }
}

INLINE void normals_f64(const struct words *words, double *x) {
    for (int i = 0; i < LANES; i++) {
        const uint64_t turn = wide(words, 2, i);
        normal_pair(unit64(wide(words, 0, i)), eighth64(turn), turn, &x[i], &x[LANES + i]);
    }
}

#define DEFINE_KERNEL(name, type, count, numbers, place, attributes)                               \
    attributes static void name(const struct sb__random *random, uint64_t group, int64_t groups,   \
                                void *out) {                                                       \
        const struct sb__random own = *random; /* which `out` cannot alias */                      \
        type *to = out;                                                                            \
        for (int64_t g = 0; g < groups; g++, group++, to += (count)) {                             \
            struct words words;                                                                    \
            double x[count];                                                                       \
            draw(&words, own.seed, group, VALUES);                                                 \
            numbers(&words, x);                                                                    \
            place(&own, x, count);                                                                 \
            thin(&own, group, x, count);                                                           \
            for (int i = 0; i < (count); i++)                                                      \
                to[i] = (type)x[i];                                                                \
        }                                                                                          \
    }

#define DEFINE_KERNELS(set, attributes)                                                            \
    DEFINE_KERNEL(uniform_f32_##set, float, SINGLES, units_f32, stretch, attributes)               \
    DEFINE_KERNEL(uniform_f64_##set, double, DOUBLES, units_f64, stretch, attributes)              \
    DEFINE_KERNEL(normal_f32_##set, float, SINGLES, normals_f32, shift, attributes)                \
    DEFINE_KERNEL(normal_f64_##set, double, DOUBLES, normals_f64, shift, attributes)

#define KERNELS(set)                                                                               \
    { uniform_f32_##set, uniform_f64_##set, normal_f32_##set, normal_f64_##set }

DEFINE_KERNELS(portable, )
const struct sb__random_kernels sb__random_portable = KERNELS(portable);

#ifdef __x86_64__
DEFINE_KERNELS(avx2, __attribute__((target("avx2"))))

const struct sb__random_kernels *sb__random_fastest(void) {
    static const struct sb__random_kernels avx2 = KERNELS(avx2);
    return __builtin_cpu_supports("avx2") ? &avx2 : &sb__random_portable;
}
#else
const struct sb__random_kernels *sb__random_fastest(void) {
    return &sb__random_portable;
}
#endif

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
