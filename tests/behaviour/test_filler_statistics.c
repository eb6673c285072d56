/* Tests the distributions of the fillers' values, by Kolmogorov and Smirnov's test and by tests of
   moments and independence. The seeds are fixed, so no test fails at random; a random seed
   would exceed a bound in at most one of 1000 runs. */
#include "blobs.h"

#include <math.h>

#define COUNT 200000
#define KS    1.95 /* bound of distance * sqrt(COUNT), which one sample in 1000 exceeds */
#define SIGMA 4.0  /* bound in standard deviations, which one normal value in 16,000 exceeds */

struct sample {
    double *values;
    int64_t count;
};

static struct sample sample_of(const sb_filler *filler, int32_t dtype, int32_t num_axes,
                               const int64_t *shape, uint64_t seed) {
    sb_blob *blob = test_blob(NULL, dtype, num_axes, shape);
    struct sample s = {.count = sb_blob_count(blob)};
    assert_ok(sb_blob_fill(blob, filler, seed, &err));
    const void *data = host_of(blob, SB_DATA);
    s.values = malloc((size_t)s.count * sizeof(double));
    assert_non_null(s.values);
    test_own(s.values, free);
    for (int64_t i = 0; i < s.count; i++)
        s.values[i] = value_at(dtype, data, i);
    test_end(blob);
    return s;
}

static void assert_within(const char *what, double found, double expected, double bound) {
    if (!(fabs(found - expected) <= bound))
        fail_with("%s is %.9g, not %.9g within %.3g", what, found, expected, bound);
}

/* --- moments and distances ---------------------------------------------------------------- */

static double power_mean(const struct sample *s, double about, int power) {
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        sum += pow(s->values[i] - about, power);
    return sum / (double)s->count;
}

/* Checks the mean, variance, skewness and kurtosis, each with a bound of SIGMA standard deviations
   of the statistic or more. */
static void assert_moments(const struct sample *s, double mean, double variance, double fourth) {
    const double n = (double)s->count, d = sqrt(variance);
    assert_within("the mean", power_mean(s, 0, 1), mean, SIGMA * d / sqrt(n));
    assert_within("the variance", power_mean(s, mean, 2), variance,
                  SIGMA * variance * sqrt((fourth - 1) / n));
    assert_within("the third moment", power_mean(s, mean, 3) / (d * variance), 0,
                  SIGMA * sqrt(15 / n));
    assert_within("the fourth moment", power_mean(s, mean, 4) / (variance * variance), fourth,
                  SIGMA * sqrt(105 / n));
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct law {
    double (*below)(const struct law *law, double x); /* returns the probability of a value <= x */
    double a, b;
};

static void assert_law(const struct sample *s, const struct law *law) {
    double *sorted = malloc((size_t)s->count * sizeof(double));
    double distance = 0;
    assert_non_null(sorted);
    memcpy(sorted, s->values, (size_t)s->count * sizeof(double));
    qsort(sorted, (size_t)s->count, sizeof(double), ascending);
    for (int64_t i = 0; i < s->count; i++) {
        const double p = law->below(law, sorted[i]), n = (double)s->count;
        distance = fmax(distance, fmax((double)(i + 1) / n - p, p - (double)i / n));
    }
    free(sorted);
    assert_within("the largest distance", distance * sqrt((double)s->count), 0, KS);
}

static double uniform_below(const struct law *law, double x) {
    return fmin(fmax((x - law->a) / (law->b - law->a), 0), 1);
}

static double normal_below(const struct law *law, double x) {
    return erfc((law->a - x) / (law->b * sqrt(2))) / 2;
}

/* Checks that elements up to 40 apart, which come from the same or neighbouring Philox counters,
   are not correlated, and that their squares are not correlated. */
static void assert_independent(const struct sample *s, double mean) {
    const double variance = power_mean(s, mean, 2);
    const double spread = power_mean(s, mean, 4) - variance * variance;
    for (int64_t lag = 1; lag <= 40; lag++) {
        const double n = (double)(s->count - lag);
        double product = 0, squares = 0;
        for (int64_t i = 0; i + lag < s->count; i++) {
            const double x = s->values[i] - mean, y = s->values[i + lag] - mean;
            product += x * y;
            squares += (x * x - variance) * (y * y - variance);
        }
        assert_within("a correlation", product / (n * variance), 0, SIGMA / sqrt(n));
        assert_within("a correlation of squares", squares / (n * spread), 0, SIGMA / sqrt(n));
    }
}

/* --- the laws ------------------------------------------------------------------------------- */

static const int64_t line[] = {COUNT};
static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};

static void assert_uniform(const sb_filler *filler, int32_t dtype, double low, double high) {
    struct sample s = sample_of(filler, dtype, 1, line, 11);
    const struct law law = {uniform_below, low, high};
    const double middle = (low + high) / 2, variance = (high - low) * (high - low) / 12;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < s.count; i++) {
        least = fmin(least, s.values[i]);
        most = fmax(most, s.values[i]);
    }
    assert_true(least >= (dtype == SB_DTYPE_F32 ? (double)(float)low : low));
    assert_true(most <= (dtype == SB_DTYPE_F32 ? (double)(float)high : high));
    assert_law(&s, &law);
    assert_moments(&s, middle, variance, 1.8);
    assert_independent(&s, middle);
}

TEST(uniform_is_uniform) {
    const sb_filler standard = filler_of(SB_FILLER_UNIFORM);
    sb_filler other = standard;
    other.min = -3.25;
    other.max = 0.1;
    for (int d = 0; d < 2; d++) {
        assert_uniform(&standard, dtypes[d], 0, 1);
        assert_uniform(&other, dtypes[d], -3.25, 0.1);
    }
}

static void assert_normal(const sb_filler *filler, int32_t dtype, double mean, double deviation) {
    struct sample s = sample_of(filler, dtype, 1, line, 12);
    const struct law law = {normal_below, mean, deviation};
    int64_t beyond = 0;
    for (int64_t i = 0; i < s.count; i++)
        beyond += fabs(s.values[i] - mean) > 3 * deviation;
    assert_law(&s, &law);
    assert_moments(&s, mean, deviation * deviation, 3);
    assert_independent(&s, mean);
    const double n = (double)s.count, p = erfc(3 / sqrt(2));
    assert_within("numbers beyond three deviations", (double)beyond, n * p, SIGMA * sqrt(n * p));
}

TEST(gaussian_is_normal) {
    const sb_filler standard = filler_of(SB_FILLER_GAUSSIAN);
    sb_filler other = standard;
    other.mean = -0.5;
    other.std = 0.1;
    for (int d = 0; d < 2; d++) {
        assert_normal(&standard, dtypes[d], 0, 1);
        assert_normal(&other, dtypes[d], -0.5, 0.1);
    }
}

/* A pair of Box and Muller's numbers is a point whose angle is uniformly distributed. */
TEST(pairs_point_in_every_direction) {
    const sb_filler filler = filler_of(SB_FILLER_GAUSSIAN);
    const struct law law = {uniform_below, -acos(-1), acos(-1)};
    for (int d = 0; d < 2; d++) {
        struct sample s = sample_of(&filler, dtypes[d], 1, line, 13);
        struct sample angles = {s.values, 0};
        for (int64_t i = 0; i + 16 <= s.count; i += 16) {
            double group[16];
            memcpy(group, s.values + i, sizeof group);
            for (int lane = 0; lane < 8; lane++)
                angles.values[angles.count++] = atan2(group[lane], group[8 + lane]);
        }
        assert_law(&angles, &law);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

struct rows {
    int64_t rows, length;
};

TEST(rows_sum_to_1) {
    static const struct rows shapes[] = {{1, 1}, {7, 1}, {1000, 3}, {13, 1000}, {2, 70001}};
    const sb_filler filler = filler_of(SB_FILLER_POSITIVE_UNITBALL);
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const int64_t shape[] = {shapes[i].rows, shapes[i].length, 1};
            struct sample s = sample_of(&filler, dtypes[d], 3, shape, 15);
            const double unit = dtypes[d] == SB_DTYPE_F32 ? 0x1p-24 : 0x1p-52;
            for (int64_t row = 0; row < shapes[i].rows; row++) {
                double sum = 0;
                for (int64_t j = 0; j < shapes[i].length; j++) {
                    const double value = s.values[row * shapes[i].length + j];
                    assert_true(value > 0 && value <= 1);
                    sum += value;
                }
                assert_within("the sum of a row", sum, 1,
                              unit * (4 + sqrt((double)shapes[i].length)));
            }
        }
}

/* --- values that depend only on the position -------------------------------------------------- */

static double bilinear_weight(int64_t i, int64_t width) {
    const double f = ceil((double)width / 2), c = (double)(width - 1) / (2 * f);
    return 1 - fabs((double)i / f - c);
}

TEST(bilinear_is_its_formula) {
    static const int64_t widths[] = {1, 2, 3, 4, 5, 8, 16, 33, 700};
    const sb_filler filler = filler_of(SB_FILLER_BILINEAR);
    for (int d = 0; d < 2; d++)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
            const int64_t width = widths[k], shape[] = {3, 2, width, width};
            struct sample s = sample_of(&filler, dtypes[d], 4, shape, 18);
            for (int64_t i = 0; i < s.count; i++) {
                const double expected =
                    bilinear_weight(i % width, width) * bilinear_weight(i / width % width, width);
                assert_within("a weight", s.values[i], expected, d == 0 ? 0x1p-24 : 0x1p-52);
            }
        }
}
