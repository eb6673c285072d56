/* Copies between blobs and arithmetic on a device, against sums and elements
   computed here in more precision. */
#include "gpu.h"

#include <math.h>
#include <string.h>

/* --- elements -------------------------------------------------------------------------------- */

/* Element i of a pattern, exact in f32; both signs. */
static double element(int64_t i, int pattern) {
    uint64_t seed = (uint64_t)i * 2u + (uint64_t)pattern;
    return (double)(int64_t)(test_random(&seed) % 4001) / 1024.0 - 2000.0 / 1024.0;
}

static void put(void *x, int32_t dtype, int64_t i, double value) {
    if (dtype == SB_DTYPE_F32)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

static double get(const void *x, int32_t dtype, int64_t i) {
    return dtype == SB_DTYPE_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* Written on the host, then with the head at the device. */
static void fill_on_device(sb_blob *blob, sb_part part, int pattern) {
    void *out;
    sb_mem *mem = memory_of(blob, part);
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        put(out, sb_blob_dtype(blob), i, element(i, pattern));
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
}

static void assert_close(double found, double expected, double bound, const char *what) {
    double error = fabs(found - expected);
    if (!(error <= bound * fabs(expected)))
        fail_with("%s: %.17g, not %.17g: off by %.3g", what, found, expected,
                  error / fabs(expected));
}

/* --- arithmetic ------------------------------------------------------------------------------ */

static double sum_bound(int32_t dtype) {
    return dtype == SB_DTYPE_F32 ? 5e-6 : 1e-13;
}

static void check_sums(const sb_blob *blob, int pattern, double factor) {
    long double absolute = 0, squares = 0;
    double asum, sumsq;
    double bound = sum_bound(sb_blob_dtype(blob));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        long double x = (long double)element(i, pattern) * factor;
        absolute += fabsl(x);
        squares += x * x;
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &asum, &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sumsq, &err));
    assert_close(asum, (double)absolute, bound, "asum");
    assert_close(sumsq, (double)squares, bound, "sumsq");
}

/* One rounding of an exact result: nothing to lose. */
static void check_elements(const sb_blob *blob, double a, double b) {
    const void *x;
    int32_t dtype = sb_blob_dtype(blob);
    assert_ok(sb_blob_cpu(blob, SB_DATA, &x, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        double expected = a * element(i, 1) - b * element(i, 2), found = get(x, dtype, i);
        if (dtype == SB_DTYPE_F32)
            expected = (double)(float)expected;
        if (found != expected)
            fail_with("element %lld is %.17g, not %.17g", (long long)i, found, expected);
    }
}

static void check_arithmetic(sb_context *context, int32_t dtype, int64_t count) {
    sb_blob *blob = blob_make(context, dtype, count);
    size_t bytes = (size_t)count * sb_dtype_size(dtype);
    fill_on_device(blob, SB_DATA, 1);
    fill_on_device(blob, SB_DIFF, 2);
    struct copies before = copies_so_far(context);
    check_sums(blob, 1, 1);
    assert_ok(sb_blob_scale(blob, SB_DATA, 1.5, &err));
    check_sums(blob, 1, 1.5);
    assert_ok(sb_blob_update(blob, &err));
    assert_int_equal(sb_mem_head(memory_of(blob, SB_DATA)), SB_HEAD_AT_GPU);
    assert_transfers(context, &before, 0, 0, bytes);
    check_elements(blob, 1.5, 1);
    assert_transfers(context, &before, 0, 1, bytes);
    test_end(blob);
}

TEST_ON(stage, arithmetic_is_done_on_the_device) {
    static const int64_t counts[] = {1, 3, 1001, 65535, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_arithmetic(f->context, SB_DTYPE_F32, counts[i]);
        check_arithmetic(f->context, SB_DTYPE_F64, counts[i]);
    }
}

/* --- copies ---------------------------------------------------------------------------------- */

TEST_ON(stage, a_copy_within_the_device_stays_there) {
    sb_blob *a = blob_make(f->context, SB_DTYPE_F64, 1001);
    sb_blob *b = blob_make(f->context, SB_DTYPE_F64, 7);
    fill_on_device(a, SB_DATA, 1);
    const struct copies before = copies_so_far(f->context);
    assert_ok(sb_blob_copy_from(b, SB_DATA, a, SB_COPY_RESHAPE, &err));
    const struct copies since = copies_since(f->context, &before);
    assert_int_equal(since.device_copies, 1);
    assert_int_equal(since.uploads + since.downloads + since.host_copies, 0);
    test_end(a);
    check_elements(b, 1, 0);
}

static void copy_there_and_back(sb_context *context, sb_context *other) {
    sb_blob *here = blob_make(context, SB_DTYPE_F32, 1001);
    sb_blob *there = blob_make(other, SB_DTYPE_F32, 1001);
    sb_blob *back = blob_make(context, SB_DTYPE_F32, 1001);
    fill_on_device(here, SB_DATA, 1);
    assert_ok(sb_blob_copy_from(there, SB_DATA, here, 0, &err));
    check_elements(there, 1, 0);
    if (other)
        (void)gpu_pointer(memory_of(there, SB_DATA));
    assert_ok(sb_blob_copy_from(back, SB_DATA, there, 0, &err));
    check_elements(back, 1, 0);
    assert_true(device_holds(gpu_pointer(memory_of(back, SB_DIFF)), 4004, 0));
}

TEST_ON(stage, copies_between_contexts) {
    copy_there_and_back(f->context, NULL); /* the host alone */
    copy_there_and_back(f->context, another_context("cuda:0"));
    if (device_count() > 1)
        copy_there_and_back(f->context, another_context("cuda:1"));
    else
        print_message("skipped: no other device: the driver shows one\n");
}

TEST_ON(stage, the_shape_on_the_device) {
    const int64_t shape[] = {2, 3, 5}, *on_device;
    int64_t seen[3];
    sb_blob *blob;
    assert_ok(sb_blob_create_shaped(f->context, SB_DTYPE_F32, shape, 3, &blob, &err));
    assert_ok(sb_blob_gpu_shape(blob, &on_device, &err));
    device_read(seen, on_device, sizeof seen);
    assert_memory_equal(seen, shape, sizeof shape);
    sb_blob_destroy(blob);
}

int main(void) {
    return gpu_main();
}
