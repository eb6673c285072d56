/* Copies between blobs and arithmetic on a device, against sums and elements
   computed here in more precision. */
#include "gpu.h"

#include <math.h>
#include <string.h>

static sb_blob *blob_make(sb_context *context, int32_t dtype, int64_t count) {
    sb_blob *blob;
    assert_ok(sb_blob_create_shaped(context, dtype, &count, 1, &blob, &err));
    return blob;
}

static sb_mem *memory_of(sb_blob *blob, bool diff) {
    sb_mem *mem;
    assert_ok(diff ? sb_blob_mutable_mem(blob, SB_DIFF, &mem, &err)
                   : sb_blob_mutable_mem(blob, SB_DATA, &mem, &err));
    return mem;
}

static int32_t head_of(sb_blob *blob) {
    return sb_mem_head(memory_of(blob, false));
}

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
static void fill_on_device(sb_blob *blob, bool diff, int pattern) {
    void *out;
    sb_mem *mem = memory_of(blob, diff);
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
    fill_on_device(blob, false, 1);
    fill_on_device(blob, true, 2);
    struct copies before = copies_so_far(context);
    check_sums(blob, 1, 1);
    assert_ok(sb_blob_scale(blob, SB_DATA, 1.5, &err));
    check_sums(blob, 1, 1.5);
    assert_ok(sb_blob_update(blob, &err));
    assert_int_equal(head_of(blob), SB_HEAD_AT_GPU);
    assert_transfers(context, &before, 0, 0, bytes);
    check_elements(blob, 1.5, 1);
    assert_transfers(context, &before, 0, 1, bytes);
    sb_blob_destroy(blob);
}

TEST(arithmetic_is_done_on_the_device) {
    static const int64_t counts[] = {1, 3, 1001, 65535, (1 << 20) + 1};
    struct stage stage;
    stage_open(&stage, NULL);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_arithmetic(stage.context, SB_DTYPE_F32, counts[i]);
        check_arithmetic(stage.context, SB_DTYPE_F64, counts[i]);
    }
    stage_close(&stage);
}

/* Sums in diff, and of a count of 0. */
TEST(arithmetic_on_diff_and_on_nothing) {
    struct stage stage;
    double sum;
    stage_open(&stage, NULL);
    sb_blob *blob = blob_make(stage.context, SB_DTYPE_F64, 1001);
    long double absolute = 0, squares = 0;
    fill_on_device(blob, true, 2);
    for (int64_t i = 0; i < 1001; i++) {
        absolute += fabsl(3 * (long double)element(i, 2));
        squares += 9 * (long double)element(i, 2) * (long double)element(i, 2);
    }
    assert_ok(sb_blob_scale(blob, SB_DIFF, 3, &err));
    assert_ok(sb_blob_asum(blob, SB_DIFF, &sum, &err));
    assert_close(sum, (double)absolute, 1e-13, "asum");
    assert_ok(sb_blob_sumsq(blob, SB_DIFF, &sum, &err));
    assert_close(sum, (double)squares, 1e-13, "sumsq");
    sb_blob_destroy(blob);
    blob = blob_make(stage.context, SB_DTYPE_F32, 0);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
    assert_ok(sb_blob_update(blob, &err));
    sb_blob_destroy(blob);
    stage_close(&stage);
}

TEST(what_was_never_written) {
    struct stage stage;
    double sum = 1;
    stage_open(&stage, NULL);
    sb_blob *blob = blob_make(stage.context, SB_DTYPE_F32, 1001);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
    sum = 1;
    assert_ok(sb_blob_sumsq(blob, SB_DIFF, &sum, &err));
    assert_true(sum == 0);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_status(SB_ERR_UNINITIALIZED, sb_blob_update(blob, &err));
    assert_int_equal(head_of(blob), SB_HEAD_UNINITIALIZED);
    assert_int_equal(stats_of(stage.context).device_peak, 0);
    fill_on_device(blob, false, 1);
    assert_ok(sb_blob_update(blob, &err)); /* a diff that was never written is zeros */
    check_elements(blob, 1, 0);
    sb_blob_destroy(blob);
    stage_close(&stage);
}

/* data where its head is, diff wherever. */
TEST(update_works_where_the_head_of_data_is) {
    struct stage stage;
    const void *in;
    stage_open(&stage, NULL);
    for (int on_host = 0; on_host < 2; on_host++) {
        sb_blob *blob = blob_make(stage.context, SB_DTYPE_F32, 1001);
        void *out;
        fill_on_device(blob, false, 1);
        fill_on_device(blob, true, 2);
        if (on_host)
            assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &out, &err));
        else
            assert_ok(sb_blob_mutable_cpu(blob, SB_DIFF, &out, &err));
        struct copies before = copies_so_far(stage.context);
        assert_ok(sb_blob_update(blob, &err));
        assert_int_equal(head_of(blob), on_host ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU);
        assert_transfers(stage.context, &before, !on_host, on_host, 4004);
        assert_ok(sb_blob_cpu(blob, SB_DIFF, &in, &err));
        check_elements(blob, 1, 1);
        sb_blob_destroy(blob);
    }
    stage_close(&stage);
}

/* --- past 2^31 elements ---------------------------------------------------------------------- */

#define HUGE_COUNT (((int64_t)1 << 31) + 1)

static bool has_room(const struct stage *stage, size_t bytes) {
    size_t free_bytes = device_free(stage);
    if (driver->is_standin)
        print_message("skipped: a stand-in's device memory is the host's\n");
    else if (free_bytes < bytes)
        print_message("skipped: %zu MiB of device memory are wanted, %zu MiB are free\n",
                      bytes >> 20, free_bytes >> 20);
    return free_bytes >= bytes && !driver->is_standin;
}

/* Every byte alike makes every element alike, whose roundings all go one way. */
static double element_of_bytes(int32_t dtype, int value) {
    unsigned char bytes[8];
    float f;
    double d;
    memset(bytes, value, sizeof bytes);
    memcpy(&f, bytes, sizeof f);
    memcpy(&d, bytes, sizeof d);
    return dtype == SB_DTYPE_F32 ? (double)f : d;
}

static void fill_huge(const struct stage *stage, sb_blob *blob, bool diff, int value) {
    void *out;
    sb_mem *mem = memory_of(blob, diff);
    assert_ok(sb_mem_overwrite_gpu(mem, &out, &err));
    queue_fill(stage, NULL, out, value, sb_mem_size(mem));
    stream_wait(stage, NULL);
}

static void check_huge_element(const struct stage *stage, sb_blob *blob, int64_t i,
                               double expected) {
    size_t size = sb_dtype_size(sb_blob_dtype(blob));
    double cell = 0;
    device_read(stage, &cell, (const char *)gpu_pointer(memory_of(blob, false)) + (size_t)i * size,
                size);
    assert_close(get(&cell, sb_blob_dtype(blob), 0), expected, 1e-6, "an element");
}

static void check_huge(const struct stage *stage, int32_t dtype) {
    double sum, a = element_of_bytes(dtype, 0x3F), b = element_of_bytes(dtype, 0x3E);
    double n = (double)HUGE_COUNT;
    sb_blob *blob = blob_make(stage->context, dtype, HUGE_COUNT);
    fill_huge(stage, blob, false, 0x3F);
    fill_huge(stage, blob, true, 0x3E);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_close(sum, n * a, sum_bound(dtype), "asum past 2^31 elements");
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_close(sum, n * a * a, sum_bound(dtype), "sumsq past 2^31 elements");
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    static const int64_t places[] = {0, 1 << 30, HUGE_COUNT - 2, HUGE_COUNT - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        check_huge_element(stage, blob, places[i], 2 * (a - b));
    sb_blob_destroy(blob);
}

TEST(arithmetic_goes_past_2_31_elements) {
    static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};
    struct stage stage;
    int done = 0;
    skip_when_quick();
    for (int i = 0; i < 2; i++) {
        stage_open(&stage, NULL);
        size_t bytes = 2 * (size_t)HUGE_COUNT * sb_dtype_size(dtypes[i]);
        if (has_room(&stage, bytes + ((size_t)1 << 30))) {
            check_huge(&stage, dtypes[i]);
            done++;
        }
        stage_close(&stage);
    }
    if (!done)
        skip();
}

/* --- copies ---------------------------------------------------------------------------------- */

static struct copies copy_and_check(const struct stage *stage, sb_blob *to, sb_blob *from,
                                    uint32_t flags) {
    struct copies before = copies_so_far(stage->context);
    assert_ok(sb_blob_copy_from(to, SB_DATA, from, flags, &err));
    struct copies since = copies_since(stage->context, &before);
    check_elements(to, 1, 0);
    return since;
}

TEST(a_copy_within_the_device_stays_there) {
    struct stage stage;
    stage_open(&stage, NULL);
    sb_blob *a = blob_make(stage.context, SB_DTYPE_F64, 1001);
    sb_blob *b = blob_make(stage.context, SB_DTYPE_F64, 7);
    fill_on_device(a, false, 1);
    struct copies since = copy_and_check(&stage, b, a, SB_COPY_RESHAPE);
    assert_int_equal(since.device_copies, 1);
    assert_int_equal(since.device_copy_bytes, 8008);
    assert_int_equal(since.uploads + since.downloads + since.host_copies, 0);
    sb_blob_destroy(a);
    check_elements(b, 1, 0);
    sb_blob_destroy(b);
    stage_close(&stage);
}

TEST(a_copy_on_the_host_stays_there) {
    struct stage stage;
    void *out;
    stage_open(&stage, NULL);
    sb_blob *a = blob_make(stage.context, SB_DTYPE_F32, 1001);
    sb_blob *b = blob_make(stage.context, SB_DTYPE_F32, 1001);
    fill_on_device(a, false, 1);
    assert_ok(sb_blob_mutable_cpu(a, SB_DATA, &out, &err));
    struct copies since = copy_and_check(&stage, b, a, 0);
    assert_int_equal(since.host_copies, 1);
    assert_int_equal(since.uploads + since.downloads + since.device_copies, 0);
    assert_int_equal(head_of(b), SB_HEAD_AT_CPU);
    sb_blob_destroy(a);
    sb_blob_destroy(b);
    stage_close(&stage);
}

static void copy_there_and_back(const struct stage *stage, sb_context *other) {
    sb_blob *here = blob_make(stage->context, SB_DTYPE_F32, 1001);
    sb_blob *there = blob_make(other, SB_DTYPE_F32, 1001);
    sb_blob *back = blob_make(stage->context, SB_DTYPE_F32, 1001);
    fill_on_device(here, false, 1);
    (void)copy_and_check(stage, there, here, 0);
    if (other)
        (void)gpu_pointer(memory_of(there, false));
    (void)copy_and_check(stage, back, there, 0);
    assert_true(device_holds(stage, gpu_pointer(memory_of(back, true)), 4004, 0));
    sb_blob_destroy(here);
    sb_blob_destroy(there);
    sb_blob_destroy(back);
}

TEST(copies_between_contexts) {
    struct stage stage;
    stage_open(&stage, NULL);
    copy_there_and_back(&stage, NULL); /* host only */
    sb_context *same_device = another_context("cuda:0");
    copy_there_and_back(&stage, same_device);
    sb_context_release(same_device);
    if (device_count() > 1) {
        sb_context *another_device = another_context("cuda:1");
        copy_there_and_back(&stage, another_device);
        sb_context_release(another_device);
    } else {
        print_message("skipped: no other device: the driver shows one\n");
    }
    stage_close(&stage);
}

TEST(copies_of_diff_of_nothing_and_of_itself) {
    struct stage stage;
    stage_open(&stage, NULL);
    sb_blob *a = blob_make(stage.context, SB_DTYPE_F32, 1001);
    sb_blob *b = blob_make(stage.context, SB_DTYPE_F32, 1001);
    fill_on_device(a, true, 2);
    assert_ok(sb_blob_copy_from(b, SB_DIFF, a, 0, &err));
    fill_on_device(b, false, 1);
    assert_ok(sb_blob_update(b, &err));
    check_elements(b, 1, 1);
    struct copies before = copies_so_far(stage.context);
    assert_ok(sb_blob_copy_from(b, SB_DATA, b, 0, &err));
    assert_transfers(stage.context, &before, 0, 0, 0);
    assert_ok(sb_blob_copy_from(b, SB_DATA, a, 0, &err)); /* never written: it clears */
    check_elements(b, 0, 0);
    sb_blob_destroy(a);
    sb_blob_destroy(b);
    stage_close(&stage);
}

TEST(the_shape_on_the_device) {
    struct stage stage;
    const int64_t shape[] = {2, 3, 5}, *on_device;
    int64_t seen[3];
    sb_blob *blob;
    stage_open(&stage, NULL);
    assert_ok(sb_blob_create_shaped(stage.context, SB_DTYPE_F32, shape, 3, &blob, &err));
    assert_ok(sb_blob_gpu_shape(blob, &on_device, &err));
    device_read(&stage, seen, on_device, sizeof seen);
    assert_memory_equal(seen, shape, sizeof shape);
    sb_blob_destroy(blob);
    stage_close(&stage);
}

int main(void) {
    int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
