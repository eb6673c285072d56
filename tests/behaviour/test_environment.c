/* Tests that the library works in the caller's floating-point environment and leaves it
   unchanged. */
#include "base/half.h"
#include "blobs.h"
#include "nets.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#ifdef __SSE2__
#include <immintrin.h>
#define SUBNORMALS_ARE_ZERO 0x8040u /* flush-to-zero, denormals-are-zero */
#endif

#define COUNT 490

static const int64_t shape[] = {2, 5, 7, 7};

static const double specials[] = {0.0,     -0.0,    0.1,    -0.1,       1e-40,
                                  -5e-324, 1e300,   -1e300, 16777217.0, 2147483647,
                                  3e9,     1.4e-45, NAN,    -INFINITY};
enum { SPECIALS = sizeof specials / sizeof *specials };

struct results {
    int count;
    double numbers[20000];
};

static void take(struct results *results, double number) {
    assert_true(results->count < 20000);
    results->numbers[results->count++] = number;
}

static void take_data(struct results *results, sb_blob *blob) {
    const void *data = NULL;
    take(results, sb_blob_cpu(blob, SB_DATA, &data, NULL));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        take(results, value_at(sb_blob_dtype(blob), data, i));
}

static void fill_by_each_filler(struct results *results, int32_t dtype) {
    sb_blob *blob = test_blob(NULL, dtype, 4, shape);
    for (int32_t type = SB_FILLER_CONSTANT; type <= SB_FILLER_BILINEAR; type++) {
        sb_filler filler = filler_of(type);
        filler.value = 0.1;
        filler.min = -1.25;
        filler.max = 3;
        filler.mean = 0.5;
        filler.sparse = type == SB_FILLER_GAUSSIAN ? 1 : -1;
        take(results, sb_blob_fill(blob, &filler, 7, NULL));
        take_data(results, blob);
    }
}

static void compute(struct results *results, sb_context *context, int32_t dtype) {
    sb_blob *blob = test_vector(context, dtype, COUNT);
    char values[COUNT * sizeof(double)];
    const size_t bytes = COUNT * sb_dtype_size(dtype);
    double sum = 0;
    for (int head = SB_HEAD_AT_CPU; head <= (context ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU); head++) {
        fill_values(dtype, COUNT, 0.1, 0.3, values);
        mem_place(data_of(blob), head, values, bytes);
        mem_place(diff_of(blob), head, values, bytes);
        take(results, sb_blob_asum(blob, SB_DATA, &sum, NULL));
        take(results, sum / COUNT);
        take(results, sb_blob_sumsq(blob, SB_DATA, &sum, NULL));
        take(results, sum / COUNT);
        take(results, sb_blob_scale(blob, SB_DATA, 1.0 / 3, NULL));
        take(results, sb_blob_update(blob, NULL));
        take_data(results, blob);
    }
}

static void convert(struct results *results, int32_t from, int32_t to) {
    sb_blob *source = test_vector(NULL, from, SPECIALS), *blob = test_vector(NULL, to, 1);
    char values[sizeof specials];
    void *bytes = NULL;
    size_t size = 0;
    for (int64_t i = 0; i < SPECIALS; i++) {
        const float narrow = (float)specials[i];
        memcpy(values + i * (from == SB_DTYPE_F64 ? 8 : 4),
               from == SB_DTYPE_F64 ? (const void *)&specials[i] : &narrow, sb_dtype_size(from));
    }
    mem_place(data_of(source), SB_HEAD_AT_CPU, values, SPECIALS * sb_dtype_size(from));
    take(results, blob_message(source, 0, &bytes, &size, NULL));
    take(results, sb_blob_from_proto(blob, bytes, size, SB_PROTO_RESHAPE, NULL, NULL));
    if (from == to) {
        const void *data = NULL;
        assert_ok(sb_blob_cpu(blob, SB_DATA, &data, &err));
        assert_memory_equal(data, values, SPECIALS * sb_dtype_size(to));
    } else if (to != SB_DTYPE_I32) { /* an i32 cannot represent the special values */
        take_data(results, blob);
    }
    free(bytes);
}

static void convert_halves(void) {
    for (uint32_t half = 0; half < 0x10000; half++) {
        const bool is_nan = (half & 0x7fff) > 0x7c00;
        if (!is_nan && sb__f16_of_float(sb__float_of_f16((uint16_t)half)) != half)
            fail_msg("the F16 0x%04x does not survive a round trip", half);
        if ((half & 0x7fff) <= 0x7f80 &&
            sb__bf16_of_float(sb__float_of_bf16((uint16_t)half)) != half)
            fail_msg("the BF16 0x%04x does not survive a round trip", half);
    }
}

static void make_all_calls(struct results *results, sb_context *sim) {
    memset(results, 0, sizeof *results);
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
        fill_by_each_filler(results, dtype);
        compute(results, NULL, dtype);
        compute(results, sim, dtype);
        for (int32_t to = SB_DTYPE_F32; to <= SB_DTYPE_F64; to++)
            convert(results, dtype, to);
        convert(results, dtype, SB_DTYPE_I32);
    }
    convert_halves();
}

static uint32_t control_word(void) {
#ifdef __SSE2__
    return _mm_getcsr() & ~0x3fu; /* without the exception flags */
#else
    return 0;
#endif
}

static bool is_near(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    a = fmin(fmax(a, -DBL_MAX), DBL_MAX);
    b = fmin(fmax(b, -DBL_MAX), DBL_MAX);
    if (fabs(a) >= (double)FLT_MAX && fabs(b) >= (double)FLT_MAX)
        return signbit(a) == signbit(b);
    return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

static struct results in_default, in_other;

static void check_environment(const char *name, int rounding, uint32_t flags) {
    fenv_t before;
    sb_context *sim = test_context(CONTEXT_OPTIONS(.device = "sim:0"));
    make_all_calls(&in_default, sim);
    assert_true(fegetenv(&before) == 0 && fesetround(rounding) == 0);
#ifdef __SSE2__
    _mm_setcsr(_mm_getcsr() | flags);
#endif
    const uint32_t set = control_word();
    make_all_calls(&in_other, sim);
    const bool is_unchanged = fegetround() == rounding && control_word() == set;
    (void)fesetenv(&before);
    assert_true(is_unchanged);
    assert_int_equal(in_other.count, in_default.count);
    for (int i = 0; i < in_default.count; i++) {
        const double found = in_other.numbers[i], wanted = in_default.numbers[i];
        if (!is_near(wanted, found))
            fail_msg("%s: number %d is %.17g, not %.17g", name, i, found, wanted);
    }
}

TEST(another_environment_changes_only_the_rounding) {
    check_environment("downward", FE_DOWNWARD, 0);
    check_environment("upward", FE_UPWARD, 0);
    check_environment("toward zero", FE_TOWARDZERO, 0);
#ifdef __SSE2__
    check_environment("subnormals are zero", FE_TONEAREST, SUBNORMALS_ARE_ZERO);
    check_environment("upward, subnormals are zero", FE_UPWARD, SUBNORMALS_ARE_ZERO);
#endif
}
