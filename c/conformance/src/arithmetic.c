/* Claims about arithmetic. A result may differ from the host's long double result by two roundings.
   Like the core, this file calls prepare_arithmetic before each operation. */
#include "array.h"

#include <math.h>

/* Calls a slot of arithmetic after prepare_arithmetic. */
#define COMPUTE(kit, slot, ...)                                                                    \
    do {                                                                                           \
        if (sb__kit_has_arithmetic(kit))                                                           \
            SB__KIT_CALL(kit, slot, __VA_ARGS__);                                                  \
    } while (0)

static double rounded(sb_dtype dtype, double value) {
    return dtype == SB_DTYPE_F32 ? (double)(float)value : value;
}

/* Returns the error bound of two roundings: half a unit in the last place for each. */
static double rounding(const struct sb__array *a, double magnitude) {
    return magnitude * (a->dtype == SB_DTYPE_F32 ? 0x1.01p-23 : 0x1.01p-52);
}

static void check_axpy(const struct sb__array *x, const struct sb__array *y, double alpha) {
    struct sb__array now = sb__array_read(y);
    alpha = rounded(y->dtype, alpha);
    for (int64_t i = 0; i < y->count && sb__kit_goes(y->kit); i++) {
        const long double product = (long double)alpha * (long double)sb__array_at(x, i);
        const double expected = (double)(product + (long double)sb__array_at(y, i));
        const double magnitude = (double)fabsl(product) + fabs(sb__array_at(y, i));
        const double found = sb__array_at(&now, i);
        if (!(fabs(found - expected) <= rounding(y, magnitude)))
            sb__kit_fail(y->kit, "axpy of %lld %s, alpha %g: y[%lld] is %.17g, not %.17g",
                         (long long)y->count, sb_dtype_name(y->dtype), alpha, (long long)i, found,
                         expected);
    }
    sb__array_free(&now);
}

static void axpy_holds(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    static const double alphas[] = {-1.0, 1.0, 0.3, 0.0};
    for (size_t k = 0; k < SB__KIT_COUNT_OF(alphas) && sb__kit_goes(kit); k++) {
        struct sb__array x = sb__array_make(kit, dtype, count, 5);
        struct sb__array y = sb__array_make(kit, dtype, count, 6);
        COMPUTE(kit, axpy, dtype, count, alphas[k], sb__array_first(&x), sb__array_first(&y),
                kit->stream);
        sb__array_check_unchanged(&x, "axpy");
        sb__array_check_guards(&y, "axpy");
        check_axpy(&x, &y, alphas[k]);
        sb__array_free(&y);
        sb__array_free(&x);
    }
}

static void axpy_adds_a_multiple(struct sb__kit *kit) {
    sb__on_every_size(kit, sb__kit_last_dtype(kit), axpy_holds);
}

static void axpy_in_place_holds(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    static const double alphas[] = {-1.0, 0.3};
    for (size_t k = 0; k < SB__KIT_COUNT_OF(alphas) && sb__kit_goes(kit); k++) {
        struct sb__array y = sb__array_make(kit, dtype, count, 7);
        COMPUTE(kit, axpy, dtype, count, alphas[k], sb__array_first(&y), sb__array_first(&y),
                kit->stream);
        sb__array_check_guards(&y, "axpy");
        check_axpy(&y, &y, alphas[k]);
        sb__array_free(&y);
    }
}

static void axpy_adds_to_itself(struct sb__kit *kit) {
    sb__on_every_size(kit, sb__kit_last_dtype(kit), axpy_in_place_holds);
}

static void scale_holds(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    static const double alphas[] = {-1.0, 0.3, 1.0, 0.0};
    for (size_t k = 0; k < SB__KIT_COUNT_OF(alphas) && sb__kit_goes(kit); k++) {
        struct sb__array x = sb__array_make(kit, dtype, count, 8);
        COMPUTE(kit, scale, dtype, count, alphas[k], sb__array_first(&x), kit->stream);
        sb__array_check_guards(&x, "scale");
        struct sb__array now = sb__array_read(&x);
        for (int64_t i = 0; i < count && sb__kit_goes(kit); i++) {
            const double expected = rounded(dtype, alphas[k]) * sb__array_at(&x, i);
            const double found = sb__array_at(&now, i);
            if (!(fabs(found - expected) <= rounding(&x, fabs(expected))))
                sb__kit_fail(kit, "scale of %lld %s, alpha %g: x[%lld] is %.17g, not %.17g",
                             (long long)count, sb_dtype_name(dtype), alphas[k], (long long)i, found,
                             expected);
        }
        sb__array_free(&now);
        sb__array_free(&x);
    }
}

static void scale_multiplies(struct sb__kit *kit) {
    sb__on_every_size(kit, sb__kit_last_dtype(kit), scale_holds);
}

/* alpha is 1 as a float but not as a double. If a slot rounds alpha first, results are exact. */
static void alpha_is_rounded(struct sb__kit *kit) {
    const double alpha = 1 + 0x1p-24 - 0x1p-40;
    const double large = 2 - 0x1p-23; /* the product of `large` and the unrounded alpha rounds up */
    if (!sb__kit_has_arithmetic(kit))
        return;
    struct sb__array x = sb__array_make(kit, SB_DTYPE_F32, 100, 9);
    struct sb__array y = sb__array_make(kit, SB_DTYPE_F32, 100, 10);
    for (int64_t i = 0; i < 100; i++) {
        sb__array_set(&x, i, large);
        sb__array_set(&y, i, -large);
    }
    sb__array_upload(&x);
    sb__array_upload(&y);
    COMPUTE(kit, axpy, SB_DTYPE_F32, (int64_t)100, alpha, sb__array_first(&x), sb__array_first(&y),
            kit->stream);
    COMPUTE(kit, scale, SB_DTYPE_F32, (int64_t)100, alpha, sb__array_first(&x), kit->stream);
    struct sb__array sum = sb__array_read(&y);
    for (int64_t i = 0; i < 100 && sb__kit_goes(kit); i++)
        if (sb__array_at(&sum, i) != 0)
            sb__kit_fail(kit, "axpy did not round alpha to a float before the product");
    sb__array_free(&sum);
    if (sb__kit_goes(kit))
        sb__kit_compare(kit, sb__array_first(&x), sb__array_values(&x), sb__array_value_bytes(&x),
                        "scale by an alpha that is 1 as a float");
    sb__array_free(&y);
    sb__array_free(&x);
}

static void check_sum(const struct sb__array *x, const char *slot, double found,
                      long double expected, double bound) {
    const bool is_same = found == (double)expected || (isnan(found) && isnan(expected));
    if (sb__kit_goes(x->kit) && !is_same &&
        !(fabsl((long double)found - expected) <= (long double)bound * expected))
        sb__kit_fail(x->kit, "%s of %lld %s is %.17g, not %.17Lg", slot, (long long)x->count,
                     sb_dtype_name(x->dtype), found, expected);
}

static void check_sums(struct sb__array *x, double bound) {
    struct sb__kit *kit = x->kit;
    long double asum = 0;
    long double sumsq = 0;
    double found = -1;
    for (int64_t i = 0; i < x->count && x->host; i++) {
        asum += (long double)fabs(sb__array_at(x, i));
        sumsq += (long double)sb__array_at(x, i) * (long double)sb__array_at(x, i);
    }
    COMPUTE(kit, asum, x->dtype, x->count, sb__array_first(x), &found, kit->stream);
    check_sum(x, "asum", found, asum, bound);
    COMPUTE(kit, sumsq, x->dtype, x->count, sb__array_first(x), &found, kit->stream);
    check_sum(x, "sumsq", found, sumsq, bound);
    sb__array_check_unchanged(x, "asum and sumsq");
}

static void sums_hold(struct sb__kit *kit, sb_dtype dtype, int64_t count) {
    struct sb__array x = sb__array_make(kit, dtype, count, 11);
    check_sums(&x, dtype == SB_DTYPE_F32 ? 2e-7 : 1e-13);
    sb__array_free(&x);
}

static void sums_are_close(struct sb__kit *kit) {
    sb__on_every_size(kit, sb__kit_last_dtype(kit), sums_hold);
}

/* Adds ones to a large number. A sum in float would lose the ones. */
static void sums_are_in_double(struct sb__kit *kit) {
    if (!sb__kit_has_arithmetic(kit))
        return;
    struct sb__array x = sb__array_make(kit, SB_DTYPE_F32, 8193, 12);
    for (int64_t i = 0; i < x.count; i++)
        sb__array_set(&x, i, i ? 1 : 0x1p24);
    sb__array_upload(&x);
    check_sums(&x, 1e-6);
    sb__array_free(&x);
}

/* Tests floats whose squares or sums are outside the range of floats, and floats that are not
   finite. */
static void sums_have_the_range_of_doubles(struct sb__kit *kit) {
    static const float values[] = {1e30F, 1e-30F, 3e38F, INFINITY, NAN};
    if (!sb__kit_has_arithmetic(kit))
        return;
    struct sb__array x = sb__array_make(kit, SB_DTYPE_F32, 5, 12);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        for (int64_t i = 0; i < x.count; i++)
            sb__array_set(&x, i, (double)values[v]);
        sb__array_upload(&x);
        check_sums(&x, 2e-7);
    }
    sb__array_free(&x);
}

static void sums_wait(struct sb__kit *kit) {
    double found = -1;
    const float value = 3;
    if (!sb__kit_has_arithmetic(kit))
        return;
    void *x = sb__kit_alloc(kit, sizeof value);
    sb__kit_upload(kit, x, &value, sizeof value);
    COMPUTE(kit, scale, SB_DTYPE_F32, (int64_t)1, -2.0, x, kit->stream);
    COMPUTE(kit, sumsq, SB_DTYPE_F32, (int64_t)1, x, &found, kit->stream);
    if (sb__kit_goes(kit) && found != 36)
        sb__kit_fail(kit, "sumsq did not wait: it returned %g for 3 * -2, not 36", found);
    COMPUTE(kit, scale, SB_DTYPE_F32, (int64_t)1, 0.5, x, kit->stream);
    COMPUTE(kit, asum, SB_DTYPE_F32, (int64_t)1, x, &found, kit->stream);
    if (sb__kit_goes(kit) && found != 3)
        sb__kit_fail(kit, "asum did not wait: it returned %g for -6 * 0.5, not 3", found);
    sb__kit_free(kit, x, sizeof value);
}

static void doubles_are_refused_alike(struct sb__kit *kit) {
    static const double zero = 0;
    double found;
    if (sb__kit_last_dtype(kit) == SB_DTYPE_F64)
        sb__kit_skip(kit, "the device has doubles, which other claims test");
    if (kit->lacks & SB_DEVICE_LACKS_F64)
        sb__kit_skip(kit, "the core passes no doubles to the device");
    void *x = sb__kit_alloc(kit, sizeof zero);
    sb__kit_upload(kit, x, &zero, sizeof zero);
    SB__KIT_EXPECT(kit, SB_ERR_UNSUPPORTED, axpy, SB_DTYPE_F64, (int64_t)1, 1.0, x, x, kit->stream);
    SB__KIT_EXPECT(kit, SB_ERR_UNSUPPORTED, asum, SB_DTYPE_F64, (int64_t)1, x, &found, kit->stream);
    SB__KIT_EXPECT(kit, SB_ERR_UNSUPPORTED, sumsq, SB_DTYPE_F64, (int64_t)1, x, &found,
                   kit->stream);
    sb__kit_free(kit, x, sizeof zero);
}

/* Computes with 2^31 + 5 floats. Only the last two are not zero. */
static void large_counts_are_right(struct sb__kit *kit) {
    const int64_t count = ((int64_t)1 << 31) + 5;
    const size_t bytes = (size_t)count * sizeof(float);
    const float far_end[2] = {-3, 5};
    const float scaled[2] = {-12, 20};
    double sum = 0;
    void *memory = NULL;
    sb_error err;
    if (kit->options.max_count < count)
        sb__kit_skip(kit, "counts above 2^31 were not requested");
    if (!sb__kit_has_arithmetic(kit))
        return;
    const sb_status st = kit->table.alloc(kit->device, bytes, kit->stream, &memory, &err);
    if (st == SB_ERR_OUT_OF_MEMORY)
        sb__kit_skip(kit, "the device has less than 8 GiB of free memory");
    sb__kit_expect(kit, "alloc", SB_OK, st, &err);
    char *x = memory;
    char *end = x ? x + bytes - sizeof far_end : NULL;
    SB__KIT_CALL(kit, zero, x, bytes, kit->stream);
    sb__kit_upload(kit, end, far_end, sizeof far_end);
    COMPUTE(kit, scale, SB_DTYPE_F32, count, 2.0, x, kit->stream);
    COMPUTE(kit, asum, SB_DTYPE_F32, count, x, &sum, kit->stream);
    if (sb__kit_goes(kit) && sum != 16)
        sb__kit_fail(kit, "asum is %g, not 16", sum);
    COMPUTE(kit, axpy, SB_DTYPE_F32, count, 1.0, x, x, kit->stream);
    COMPUTE(kit, sumsq, SB_DTYPE_F32, count, x, &sum, kit->stream);
    if (sb__kit_goes(kit) && sum != 144 + 400)
        sb__kit_fail(kit, "sumsq is %g, not 544", sum);
    sb__kit_compare(kit, end, scaled, sizeof scaled, "the last values");
    sb__kit_free(kit, x, bytes);
}

const struct sb__claim sb__kit_arithmetic_claims[] = {
    {"axpy adds a multiple of one array to another", axpy_adds_a_multiple},
    {"axpy may add an array to itself", axpy_adds_to_itself},
    {"scale multiplies an array by alpha", scale_multiplies},
    {"axpy and scale round alpha to the element type", alpha_is_rounded},
    {"asum and sumsq are close to the exact sums", sums_are_close},
    {"Sums of floats are added in double", sums_are_in_double},
    {"Sums of floats have the range of doubles, infinity and NaN", sums_have_the_range_of_doubles},
    {"asum and sumsq wait for earlier work on the stream", sums_wait},
    {"A device without doubles returns UNSUPPORTED from every slot of arithmetic",
     doubles_are_refused_alike},
    {"Arithmetic with counts above 2^31 is correct", large_counts_are_right},
    {NULL, NULL},
};
