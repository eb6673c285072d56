#include "filler/loops.h"

#include <syncblob/base.h>

#include <math.h>

#define LANES 8

/* Caffe's bilinear weights. The weight at (row, column) of a kernel is w(row) * w(column), where
   w(i) = 1 - |i / f - c|. Here f is ceil(width / 2), and c is (width - 1) / (2 f). */
struct ramp {
    double half, centre;
};

static struct ramp ramp_of(int64_t width) {
    const int64_t half = (width + 1) / 2;
    return (struct ramp){(double)half, (double)(width - 1) / (2 * (double)half)};
}

static inline double weight(struct ramp ramp, int32_t i) {
    return 1 - fabs((double)i / ramp.half - ramp.centre);
}

#define DEFINE_LOOPS(suffix, type)                                                                 \
    static double sum_##suffix(const type *x, int64_t count) {                                     \
        double lanes[LANES] = {0}, sum = 0;                                                        \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= count; i += LANES)                                                     \
            for (int lane = 0; lane < LANES; lane++)                                               \
                lanes[lane] += (double)x[i + lane];                                                \
        for (; i < count; i++)                                                                     \
            sum += (double)x[i];                                                                   \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += lanes[lane];                                                                    \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void scale_##suffix(type *x, int64_t count, double factor) {                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            x[i] = (type)((double)x[i] * factor);                                                  \
    }                                                                                              \
                                                                                                   \
    /* Writes a part of a kernel's row, from column `first` on. */                                 \
    static void line_##suffix(type *line, struct ramp ramp, double across, int32_t first,          \
                              int32_t count) {                                                     \
        for (int32_t i = 0; i < count; i++)                                                        \
            line[i] = (type)(weight(ramp, first + i) * across);                                    \
    }                                                                                              \
                                                                                                   \
    static void bilinear_##suffix(type *x, int64_t begin, int64_t count, int64_t width) {          \
        const struct ramp ramp = ramp_of(width);                                                   \
        int64_t row = begin / width % width, column = begin % width;                               \
        while (count > 0) {                                                                        \
            const int64_t n = width - column < count ? width - column : count;                     \
            line_##suffix(x, ramp, weight(ramp, (int32_t)row), (int32_t)column, (int32_t)n);       \
            x += n;                                                                                \
            count -= n;                                                                            \
            column = 0;                                                                            \
            row = row + 1 < width ? row + 1 : 0;                                                   \
        }                                                                                          \
    }

DEFINE_LOOPS(f32, float)
DEFINE_LOOPS(f64, double)

double sb__loop_sum(int32_t dtype, const void *x, int64_t count) {
    return dtype == SB_DTYPE_F32 ? sum_f32(x, count) : sum_f64(x, count);
}

void sb__loop_scale(int32_t dtype, void *x, int64_t count, double factor) {
    if (dtype == SB_DTYPE_F32)
        scale_f32(x, count, factor);
    else
        scale_f64(x, count, factor);
}

void sb__loop_bilinear(int32_t dtype, void *x, int64_t begin, int64_t count, int64_t width) {
    if (dtype == SB_DTYPE_F32)
        bilinear_f32(x, begin, count, width);
    else
        bilinear_f64(x, begin, count, width);
}
