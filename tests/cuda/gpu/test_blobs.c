/* Tests copies between blobs, and arithmetic on a device. The expected sums and elements are
   computed on the host with more precision. */
#include "gpu.h"

#include <math.h>

/* --- elements -------------------------------------------------------------------------------- */

/* Returns element i of a pattern. The elements have either sign, and are exact in f32. */
static double element(int64_t i, int pattern) {
    uint64_t seed = (uint64_t)i * 2u + (uint64_t)pattern;
    return (double)(int64_t)(test_random(&seed) % 4001) / 1024.0 - 2000.0 / 1024.0;
}

/* Fills the memory on the host, then moves the head to the device. */
static void fill_on_device(const sb_blob *blob, sb_mem *mem, int pattern) {
    void *out;
    const int32_t dtype = sb_blob_dtype(blob);
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        fill_values(dtype, 1, element(i, pattern), 0,
                    (char *)out + (size_t)i * sb_dtype_size(dtype));
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
}

/* --- arithmetic ------------------------------------------------------------------------------ */

static void assert_close(double found, long double expected, double bound, const char *what) {
    if (!(fabsl((long double)found - expected) <= (long double)bound * fabsl(expected)))
        fail_with("%s: %.17g, not %.17Lg", what, found, expected);
}

static void check_sums(const sb_blob *blob, int pattern, double factor) {
    long double absolute = 0, squares = 0;
    double asum, sumsq;
    const double bound = sb_blob_dtype(blob) == SB_DTYPE_F32 ? 5e-6 : 1e-13;
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        long double x = (long double)element(i, pattern) * factor;
        absolute += fabsl(x);
        squares += x * x;
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &asum, &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sumsq, &err));
    assert_close(asum, absolute, bound, "asum");
    assert_close(sumsq, squares, bound, "sumsq");
}

/* Asserts that each element is the exact result, rounded once. */
static void check_elements(const sb_blob *blob, double a, double b) {
    const void *x;
    int32_t dtype = sb_blob_dtype(blob);
    assert_ok(sb_blob_cpu(blob, SB_DATA, &x, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        double expected = a * element(i, 1) - b * element(i, 2), found = value_at(dtype, x, i);
        if (dtype == SB_DTYPE_F32)
            expected = (double)(float)expected;
        if (found != expected)
            fail_with("element %lld is %.17g, not %.17g", (long long)i, found, expected);
    }
}

TEST_ON(stage, arithmetic_is_done_on_the_device) {
    static const int64_t counts[] = {1, 3, 1001, 65535, (1 << 20) + 1};
    for (size_t i = 0; i < 2 * (sizeof counts / sizeof counts[0]); i++) {
        sb_blob *blob = test_vector(f->context, i % 2 ? SB_DTYPE_F64 : SB_DTYPE_F32, counts[i / 2]);
        fill_on_device(blob, data_of(blob), 1);
        fill_on_device(blob, diff_of(blob), 2);
        struct tally before = rig_tally(&f->rig);
        check_sums(blob, 1, 1);
        assert_ok(sb_blob_scale(blob, SB_DATA, 1.5, &err));
        check_sums(blob, 1, 1.5);
        assert_ok(sb_blob_update(blob, &err));
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_GPU);
        assert_transfers(&f->rig, &before, 0, 0);
        check_elements(blob, 1.5, 1);
        assert_transfers(&f->rig, &before, 0, 1);
        test_end(blob);
    }
}

/* --- copies ---------------------------------------------------------------------------------- */

TEST_ON(stage, a_copy_within_the_device_stays_there) {
    sb_blob *a = test_vector(f->context, SB_DTYPE_F64, 1001);
    sb_blob *b = test_vector(f->context, SB_DTYPE_F64, 7);
    fill_on_device(a, data_of(a), 1);
    const struct tally before = rig_tally(&f->rig);
    assert_ok(sb_blob_copy_from(b, SB_DATA, a, SB_COPY_RESHAPE, &err));
    const struct tally since = rig_since(&f->rig, &before);
    assert_int_equal(since.device_copies, 1);
    assert_int_equal(since.uploads + since.downloads + since.host_copies, 0);
    test_end(a);
    check_elements(b, 1, 0);
}

static void copy_there_and_back(sb_context *context, sb_context *other) {
    sb_blob *here = test_vector(context, SB_DTYPE_F32, 1001);
    sb_blob *there = test_vector(other, SB_DTYPE_F32, 1001);
    sb_blob *back = test_vector(context, SB_DTYPE_F32, 1001);
    fill_on_device(here, data_of(here), 1);
    assert_ok(sb_blob_copy_from(there, SB_DATA, here, 0, &err));
    check_elements(there, 1, 0);
    if (other)
        (void)gpu_pointer(data_of(there));
    assert_ok(sb_blob_copy_from(back, SB_DATA, there, 0, &err));
    check_elements(back, 1, 0);
    assert_true(device_holds(gpu_pointer(diff_of(back)), 4004, 0));
}

TEST_ON(stage, copies_between_contexts) {
    copy_there_and_back(f->context, NULL); /* only on the host */
    copy_there_and_back(f->context, test_context_on("cuda:0"));
    if (device_count() > 1)
        copy_there_and_back(f->context, test_context_on("cuda:1"));
    else
        print_message("skipped: the driver reports only one device\n");
}

TEST_ON(stage, the_shape_on_the_device) {
    const int64_t shape[] = {2, 3, 5}, *on_device;
    int64_t seen[3];
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 3, shape);
    assert_ok(sb_blob_gpu_shape(blob, &on_device, &err));
    device_read(seen, on_device, sizeof seen);
    assert_memory_equal(seen, shape, sizeof shape);
}

/* --- infinity and NaN ------------------------------------------------------------------------ */

static bool is_same(double found, double wanted) {
    return found == wanted || (isnan(found) && isnan(wanted));
}

/* The device's results must equal the host's results. */
TEST_ON(stage, infinity_and_nan_stay) {
    static const double data[] = {INFINITY, -INFINITY, NAN, INFINITY, 1, NAN};
    static const double diff[] = {1, 1, 1, INFINITY, -INFINITY, NAN};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
        sb_blob *blob = test_vector(f->context, dtype, 6);
        for (int scales = 0; scales < 2; scales++) {
            void *x, *y;
            assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &x, &err));
            assert_ok(sb_blob_overwrite_cpu(blob, SB_DIFF, &y, &err));
            for (int64_t i = 0; i < 6; i++) {
                fill_values(dtype, 1, data[i], 0, (char *)x + (size_t)i * sb_dtype_size(dtype));
                fill_values(dtype, 1, diff[i], 0, (char *)y + (size_t)i * sb_dtype_size(dtype));
            }
            assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &x, &err));
            assert_ok(sb_blob_mutable_gpu(blob, SB_DIFF, &y, &err));
            assert_ok(scales ? sb_blob_scale(blob, SB_DATA, -2, &err) : sb_blob_update(blob, &err));
            const void *in;
            assert_ok(sb_blob_cpu(blob, SB_DATA, &in, &err));
            for (int i = 0; i < 6; i++)
                assert_true(is_same(dtype == SB_DTYPE_F32 ? (double)((const float *)in)[i]
                                                          : ((const double *)in)[i],
                                    scales ? -2 * data[i] : data[i] - diff[i]));
        }
        test_end(blob);
    }
}
