#include "host/vectors.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* The order of additions is the same for every kind of processor. A group is ROWS rows of LANES
   floats. The rows of a group are summed pairwise, as floats, into one row per group. The rows of
   BLOCK consecutive groups are summed in the same way into one row per block. A value is rounded at
   most six times, a square seven times, so the error is at most 4.2e-7. The row of each block, and
   of each group after the last whole block, is added to a row of doubles. */
#define LANES 16
#define ROWS  16
#define GROUP (LANES * ROWS)
#define BLOCK 4

#define LINE ((size_t)64) /* bytes of a cache line */
/* The prefetch distance in bytes: more than a page, at whose end hardware prefetching stops. */
#define AHEAD 8192

#define AT_ONCE 4 /* vectors per iteration of element-wise loops */

#define INLINE     static inline __attribute__((always_inline))
#define NOT_INLINE static __attribute__((noinline))

INLINE float magnitude(float value) {
    return __builtin_fabsf(value);
}

INLINE float square(float value) {
    return value * value;
}

INLINE double square_wide(double value) {
    return value * value;
}

/* Sums LANES / 2 lanes. The caller has added the upper half of the lanes to the lower half. */
INLINE double sum_half(const double s[LANES / 2]) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): numbers of lanes are small */

/* Prefetches the cache lines that are AHEAD bytes after the lines of a group. A prefetch past the
   end has no effect. */
INLINE void read_ahead(const float *group) {
    for (int i = 0; i < ROWS; i++)
        __builtin_prefetch((const void *)((uintptr_t)(group + i * LANES) + AHEAD));
}

INLINE void read_nothing(const float *group) {
    (void)group;
}

/* Defines a function that sums values as doubles, in lanes for vectorisation. */
#define DEFINE_WIDE(name, term)                                                                    \
    double name(const float *x, int64_t count) {                                                   \
        double lanes[LANES / 2] = {0}, sum = 0;                                                    \
        for (; count >= LANES / 2; count -= LANES / 2, x += LANES / 2)                             \
            for (int l = 0; l < LANES / 2; l++)                                                    \
                lanes[l] += term((double)x[l]);                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            sum += term((double)x[i]);                                                             \
        return sum + sum_half(lanes);                                                              \
    }

DEFINE_WIDE(sb__asum_wide, __builtin_fabs)
DEFINE_WIDE(sb__sumsq_wide, square_wide)

/* Sums blocks, then groups, then the remaining values. */
#define DEFINE_SUM(name, term, kind, rest)                                                         \
    static double name##_##kind(const float *x, int64_t count, enum sb__place place) {             \
        double sum = 0;                                                                            \
        if (count >= BLOCK * GROUP) {                                                              \
            const int64_t blocks = count / (BLOCK * GROUP);                                        \
            sum = place == SB__AT_HAND    ? term##_blocks_##kind(x, blocks)                        \
                  : place == SB__IN_CACHE ? term##_ordered_##kind(x, blocks)                       \
                                          : term##_far_##kind(x, blocks);                          \
            x += blocks * BLOCK * GROUP;                                                           \
            count -= blocks * BLOCK * GROUP;                                                       \
        }                                                                                          \
        if (count >= GROUP)                                                                        \
            sum += term##_groups_##kind(x, count / GROUP);                                         \
        return count % GROUP == 0 ? sum : sum + rest(x + count / GROUP * GROUP, count % GROUP);    \
    }

/* `statement` uses *y, *x and *factor: vectors first, and single elements for the last values. If
   `far` is set, the loop prefetches. `statement` must not declare a vector variable: MinGW's gcc
   without optimisation would compile the variable to code that crashes. */
#define DEFINE_LOOP(name, attributes, type, vector, far, statement)                                \
    INLINE attributes void name##_vectors(const vector *factor, const vector *x, vector *y) {      \
        for (size_t at = 0; (far) && at < AT_ONCE * sizeof *y; at += LINE)                         \
            __builtin_prefetch((const void *)((uintptr_t)y + at + AHEAD));                         \
        for (int i = 0; i < AT_ONCE; i++, x++, y++)                                                \
            statement;                                                                             \
    }                                                                                              \
    attributes static void name(double alpha, const void *from, void *to, int64_t count) {         \
        enum { STEP = AT_ONCE * sizeof(vector) / sizeof(type) };                                   \
        const type value = (type)alpha, *factor = &value;                                          \
        const vector splat = value - (vector){0}; /* keeps the sign of -0 */                       \
        const type *x = from;                                                                      \
        type *y = to;                                                                              \
        for (; count >= STEP; count -= STEP, x += STEP, y += STEP)                                 \
            name##_vectors(&splat, (const vector *)x, (vector *)y);                                \
        for (; count > 0; count--, x++, y++)                                                       \
            statement;                                                                             \
    }

#define DEFINE_LOOPS(kind, attributes, suffix, type, bytes)                                        \
    typedef type suffix##_##kind __attribute__((vector_size(bytes), aligned(sizeof(type))));       \
    DEFINE_LOOP(axpy_##suffix##_##kind, attributes, type, suffix##_##kind, 0, *y += *factor * *x)  \
    DEFINE_LOOP(scale_##suffix##_##kind, attributes, type, suffix##_##kind, 0, *y *= *factor)      \
    DEFINE_LOOP(set_##suffix##_##kind, attributes, type, suffix##_##kind, 0, *y = *factor)

/* `cached` is the kind whose loops scale arrays in a cache. `far` is the kind for arrays in
   memory. */
#define DEFINE_KIND(kind, attributes, bytes, stream, cached, far)                                  \
    DEFINE_SUM(asum, magnitude, kind, sb__asum_wide)                                               \
    DEFINE_SUM(sumsq, square, kind, sb__sumsq_wide)                                                \
    DEFINE_LOOPS(kind, attributes, f32, float, bytes)                                              \
    DEFINE_LOOPS(kind, attributes, f64, double, bytes)                                             \
    static const struct sb__vectors vectors_##kind = {                                             \
        asum_##kind,                                                                               \
        sumsq_##kind,                                                                              \
        {sizeof(float),                                                                            \
         axpy_f32_##kind,                                                                          \
         {scale_f32_##kind, scale_f32_##cached, scale_f32_##far},                                  \
         set_f32_##kind},                                                                          \
        {sizeof(double),                                                                           \
         axpy_f64_##kind,                                                                          \
         {scale_f64_##kind, scale_f64_##cached, scale_f64_##far},                                  \
         set_f64_##kind},                                                                          \
        stream}

/* --- any processor ------------------------------------------------------------------ */

INLINE double sum_lanes(double lanes[LANES]) {
    for (int l = 0; l < LANES / 2; l++)
        lanes[l] += lanes[l + LANES / 2];
    return sum_half(lanes);
}

#define DEFINE_ROW_PORTABLE(name, term)                                                            \
    INLINE void name##_row_portable(const float *x, float row[LANES]) {                            \
        float rows[ROWS / 2][LANES];                                                               \
        for (int i = 0; i < ROWS / 2; i++)                                                         \
            for (int l = 0; l < LANES; l++)                                                        \
                rows[i][l] = term(x[i * LANES + l]) + term(x[(i + ROWS / 2) * LANES + l]);         \
        for (int n = ROWS / 4; n; n /= 2)                                                          \
            for (int i = 0; i < n; i++)                                                            \
                for (int l = 0; l < LANES; l++)                                                    \
                    rows[i][l] += rows[i + n][l];                                                  \
        for (int l = 0; l < LANES; l++)                                                            \
            row[l] = rows[0][l];                                                                   \
    }

#define DEFINE_BLOCKS_PORTABLE(function, row_of, ahead)                                            \
    static double function(const float *x, int64_t blocks) {                                       \
        double lanes[LANES] = {0};                                                                 \
        float rows[BLOCK][LANES];                                                                  \
        for (; blocks > 0; blocks--) {                                                             \
            for (int i = 0; i < BLOCK; i++, x += GROUP) {                                          \
                ahead(x);                                                                          \
                row_of(x, rows[i]);                                                                \
            }                                                                                      \
            for (int l = 0; l < LANES; l++)                                                        \
                lanes[l] += (double)((rows[0][l] + rows[1][l]) + (rows[2][l] + rows[3][l]));       \
        }                                                                                          \
        return sum_lanes(lanes);                                                                   \
    }

#define DEFINE_GROUPS_PORTABLE(name, term)                                                         \
    DEFINE_ROW_PORTABLE(name, term)                                                                \
    DEFINE_BLOCKS_PORTABLE(name##_blocks_portable, name##_row_portable, read_nothing)              \
    DEFINE_BLOCKS_PORTABLE(name##_far_portable, name##_row_portable, read_ahead)                   \
    static double name##_ordered_portable(const float *x, int64_t blocks) {                        \
        return name##_blocks_portable(x, blocks);                                                  \
    }                                                                                              \
    static double name##_groups_portable(const float *x, int64_t groups) {                         \
        double lanes[LANES] = {0};                                                                 \
        float row[LANES];                                                                          \
        for (; groups > 0; groups--, x += GROUP) {                                                 \
            name##_row_portable(x, row);                                                           \
            for (int l = 0; l < LANES; l++)                                                        \
                lanes[l] += (double)row[l];                                                        \
        }                                                                                          \
        return sum_lanes(lanes);                                                                   \
    }

DEFINE_GROUPS_PORTABLE(magnitude, magnitude)
DEFINE_GROUPS_PORTABLE(square, square)

static void copy_portable(void *dst, const void *src, size_t bytes) {
    memcpy(dst, src, bytes);
}

DEFINE_KIND(portable, , 16, copy_portable, portable, portable);

#ifdef __x86_64__

/* --- AVX2: a row is two vectors ----------------------------------------------------- */

#define AVX2 __attribute__((target("avx2")))

/* Hides the value of a number from the optimiser. */
#define HIDE(number) __asm__ volatile("" : "+r"(number))

INLINE AVX2 __m256 magnitude_avx2(const float *x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), _mm256_loadu_ps(x));
}

INLINE AVX2 __m256 square_avx2(const float *x) {
    const __m256 v = _mm256_loadu_ps(x);
    return _mm256_mul_ps(v, v);
}

/* Adds both halves of a row to sums of doubles. */
INLINE AVX2 void add_as_doubles_avx2(__m256d sums[4], __m256 a, __m256 b) {
    sums[0] += _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    sums[1] += _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    sums[2] += _mm256_cvtps_pd(_mm256_castps256_ps128(b));
    sums[3] += _mm256_cvtps_pd(_mm256_extractf128_ps(b, 1));
}

INLINE AVX2 double sum_avx2(const __m256d sums[4]) {
    double half[LANES / 2];
    _mm256_storeu_pd(half, sums[0] + sums[2]);
    _mm256_storeu_pd(half + LANES / 4, sums[1] + sums[3]);
    return sum_half(half);
}

/* Adds the elements of the array `rows` pairwise, into rows[0]. */
#define SUM_ROWS(rows)                                                                             \
    for (int n = ROWS / 4; n; n /= 2)                                                              \
        for (int i = 0; i < n; i++)                                                                \
            (rows)[i] += (rows)[i + n];

#define DEFINE_ROW(function, attributes, vector, term)                                             \
    attributes vector function(const float *x) {                                                   \
        vector rows[ROWS / 2];                                                                     \
        for (int i = 0; i < ROWS / 2; i++)                                                         \
            rows[i] = term(x + i * LANES) + term(x + (i + ROWS / 2) * LANES);                      \
        SUM_ROWS(rows)                                                                             \
        return rows[0];                                                                            \
    }

/* As DEFINE_ROW, but loads few vectors at once, in address order, for hardware prefetching. */
#define DEFINE_ROW_IN_ORDER(function, attributes, vector, term)                                    \
    attributes vector function(const float *x) {                                                   \
        vector rows[ROWS / 2] = {{0}};                                                             \
        for (int at = 0; at < GROUP; at += GROUP / 2) {                                            \
            HIDE(at); /* keeps the compiler from unrolling the loop */                             \
            for (int i = 0; i < ROWS / 2; i++)                                                     \
                rows[i] += term(x + at + i * LANES);                                               \
        }                                                                                          \
        SUM_ROWS(rows)                                                                             \
        return rows[0];                                                                            \
    }

/* The functions for large sums are not inlined, because inlining makes the compiler add loads. */
#define DEFINE_ROWS(name, target, vector, term)                                                    \
    DEFINE_ROW(name, INLINE target, vector, term)                                                  \
    DEFINE_ROW_IN_ORDER(name##_in_order, NOT_INLINE target, vector, term)                          \
    NOT_INLINE target vector name##_far(const float *x) {                                          \
        read_ahead(x);                                                                             \
        return name(x);                                                                            \
    }

#define DEFINE_BLOCKS_AVX2(function, lower, upper)                                                 \
    AVX2 static double function(const float *x, int64_t blocks) {                                  \
        __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),          \
                           _mm256_setzero_pd()};                                                   \
        for (; blocks > 0; blocks--, x += BLOCK * GROUP) {                                         \
            __m256 a[BLOCK], b[BLOCK];                                                             \
            for (int i = 0; i < BLOCK; i++) { /* both halves of a cache line */                    \
                a[i] = lower(x + i * GROUP);                                                       \
                b[i] = upper(x + i * GROUP + LANES / 2);                                           \
            }                                                                                      \
            add_as_doubles_avx2(sums, (a[0] + a[1]) + (a[2] + a[3]),                               \
                                (b[0] + b[1]) + (b[2] + b[3]));                                    \
        }                                                                                          \
        return sum_avx2(sums);                                                                     \
    }

#define DEFINE_GROUPS_AVX2(name, term)                                                             \
    DEFINE_ROWS(name##_half, AVX2, __m256, term)                                                   \
    DEFINE_BLOCKS_AVX2(name##_blocks_avx2, name##_half, name##_half)                               \
    DEFINE_BLOCKS_AVX2(name##_ordered_avx2, name##_half_in_order, name##_half_in_order)            \
    DEFINE_BLOCKS_AVX2(name##_far_avx2, name##_half_far, name##_half)                              \
    AVX2 static double name##_groups_avx2(const float *x, int64_t groups) {                        \
        __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),          \
                           _mm256_setzero_pd()};                                                   \
        for (; groups > 0; groups--, x += GROUP)                                                   \
            add_as_doubles_avx2(sums, name##_half(x), name##_half(x + LANES / 2));                 \
        return sum_avx2(sums);                                                                     \
    }

DEFINE_GROUPS_AVX2(magnitude, magnitude_avx2)
DEFINE_GROUPS_AVX2(square, square_avx2)

#define PAGE ((size_t)4096)

/* Copies with stores that bypass the caches. Alternates between two pages, which keeps more memory
   channels busy than one page. */
#define DEFINE_STREAM(function, attributes, put_line)                                              \
    attributes static void function(void *dst, const void *src, size_t bytes) {                    \
        const size_t start = -(uintptr_t)dst % LINE, head = start < bytes ? start : bytes;         \
        char *to = (char *)dst + head;                                                             \
        const char *from = (const char *)src + head;                                               \
        memcpy(dst, src, head);                                                                    \
        for (bytes -= head; bytes >= 2 * PAGE; bytes -= 2 * PAGE, to += PAGE, from += PAGE)        \
            for (size_t i = 0; i < PAGE; i += LINE, to += LINE, from += LINE) {                    \
                put_line(to, from);                                                                \
                put_line(to + PAGE, from + PAGE);                                                  \
            }                                                                                      \
        for (; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE)                             \
            put_line(to, from);                                                                    \
        _mm_sfence(); /* orders later stores after the streaming stores */                         \
        memcpy(to, from, bytes);                                                                   \
    }

INLINE AVX2 void put_line_avx2(char *to, const char *from) {
    const __m256i *x = (const __m256i *)(const void *)from;
    __m256i *y = (__m256i *)(void *)to;
    _mm256_stream_si256(y, _mm256_loadu_si256(x));
    _mm256_stream_si256(y + 1, _mm256_loadu_si256(x + 1));
}

DEFINE_STREAM(stream_avx2, AVX2, put_line_avx2)
DEFINE_KIND(avx2, AVX2, 32, stream_avx2, avx2, avx2);

/* --- AVX-512: a row is one vector --------------------------------------------------- */

#define AVX512 __attribute__((target("avx512f")))

INLINE AVX512 __m512 magnitude_avx512(const float *x) {
    return _mm512_abs_ps(_mm512_loadu_ps(x));
}

INLINE AVX512 __m512 square_avx512(const float *x) {
    const __m512 v = _mm512_loadu_ps(x);
    return _mm512_mul_ps(v, v);
}

INLINE AVX512 void add_as_doubles_avx512(__m512d sums[2], __m512 row) {
    const __m256d upper = _mm512_extractf64x4_pd(_mm512_castps_pd(row), 1);
    sums[0] += _mm512_cvtps_pd(_mm512_castps512_ps256(row));
    sums[1] += _mm512_cvtps_pd(_mm256_castpd_ps(upper));
}

INLINE AVX512 double sum_avx512(const __m512d sums[2]) {
    double half[LANES / 2];
    _mm512_storeu_pd(half, sums[0] + sums[1]);
    return sum_half(half);
}

#define DEFINE_BLOCKS_AVX512(function, row)                                                        \
    AVX512 static double function(const float *x, int64_t blocks) {                                \
        __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};                              \
        for (; blocks > 0; blocks--, x += BLOCK * GROUP) {                                         \
            const __m512 a = row(x), b = row(x + GROUP);                                           \
            const __m512 c = row(x + 2 * GROUP), d = row(x + 3 * GROUP);                           \
            add_as_doubles_avx512(sums, (a + b) + (c + d));                                        \
        }                                                                                          \
        return sum_avx512(sums);                                                                   \
    }

#define DEFINE_GROUPS_AVX512(name, term)                                                           \
    DEFINE_ROWS(name##_row, AVX512, __m512, term)                                                  \
    DEFINE_BLOCKS_AVX512(name##_blocks_avx512, name##_row)                                         \
    DEFINE_BLOCKS_AVX512(name##_ordered_avx512, name##_row_in_order)                               \
    DEFINE_BLOCKS_AVX512(name##_far_avx512, name##_row_far)                                        \
    AVX512 static double name##_groups_avx512(const float *x, int64_t groups) {                    \
        __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};                              \
        for (; groups > 0; groups--, x += GROUP)                                                   \
            add_as_doubles_avx512(sums, name##_row(x));                                            \
        return sum_avx512(sums);                                                                   \
    }

DEFINE_GROUPS_AVX512(magnitude, magnitude_avx512)
DEFINE_GROUPS_AVX512(square, square_avx512)

INLINE AVX512 void put_line_avx512(char *to, const char *from) {
    _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512(from));
}

DEFINE_STREAM(stream_avx512, AVX512, put_line_avx512)

/* Times on Emerald Rapids, relative to vectors of 64 bytes. Vectors of 16 bytes take 0.97 for
   arrays in the second-level cache, and 0.88 in the last-level cache. For arrays in memory, vectors
   of 32 bytes with prefetches take 0.97. */
DEFINE_LOOP(scale_f32_far, AVX2, float, f32_avx2, 1, *y *= *factor)
DEFINE_LOOP(scale_f64_far, AVX2, double, f64_avx2, 1, *y *= *factor)
DEFINE_KIND(avx512, AVX512, 64, stream_avx512, portable, far);
#endif

const struct sb__vectors *const sb__vectors_kinds[] = {
    &vectors_portable,
#ifdef __x86_64__
    &vectors_avx2,
    &vectors_avx512,
#endif
};

/* NOLINTEND(bugprone-implicit-widening-of-multiplication-result) */
