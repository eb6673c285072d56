/* What Caffe's own tests of Blob and SyncedMemory promise, asked of ours:
   dtypes times devices. */
#include "blobs.h"

#include <math.h>
#include <string.h>

#define COUNT 120

struct variant {
    int32_t dtype;
    bool device; /* arithmetic happens on the device */
};

static const struct variant variants[] = {
    {SB_DTYPE_F32, false}, {SB_DTYPE_F64, false}, {SB_DTYPE_F32, true}, {SB_DTYPE_F64, true}};
#define VARIANTS (sizeof variants / sizeof variants[0])

static sb_blob *legacy_blob(struct rig *rig, int32_t dtype) {
    sb_error err;
    sb_blob *blob = NULL;
    assert_ok(sb_blob_create_legacy(rig->context, dtype, 2, 3, 4, 5, &blob, &err));
    return blob;
}

/* Uniform in [-3, 3); returns the values as double. */
static void fill_uniform(sb_blob *blob, double *values) {
    sb_error err;
    uint64_t random = 1701;
    void *x;
    int32_t dtype = sb_blob_dtype(blob);
    assert_ok(sb_blob_mutable_cpu_data(blob, &x, &err));
    for (int i = 0; i < COUNT; i++) {
        double value = (double)(test_random(&random) >> 11) * 0x1p-53 * 6 - 3;
        fill_values(dtype, 1, value, 0, (char *)x + (size_t)i * sb_dtype_size(dtype));
        values[i] = value_at(dtype, x, i);
    }
}

/* diff = factor * data, written on the host. */
static void scale_into_diff(sb_blob *blob, double factor) {
    sb_error err;
    const void *data;
    void *diff;
    int32_t dtype = sb_blob_dtype(blob);
    assert_ok(sb_blob_cpu_data(blob, &data, &err));
    assert_ok(sb_blob_mutable_cpu_diff(blob, &diff, &err));
    for (int i = 0; i < COUNT; i++)
        fill_values(dtype, 1, factor * value_at(dtype, data, i), 0,
                    (char *)diff + (size_t)i * sb_dtype_size(dtype));
}

/* The mutable access that decides where arithmetic runs. */
static void settle(sb_blob *blob, bool device, bool diff) {
    sb_error err;
    void *out;
    if (diff)
        assert_ok(device ? sb_blob_mutable_gpu_diff(blob, &out, &err)
                         : sb_blob_mutable_cpu_diff(blob, &out, &err));
    else
        assert_ok(device ? sb_blob_mutable_gpu_data(blob, &out, &err)
                         : sb_blob_mutable_cpu_data(blob, &out, &err));
}

#define near(found, expected) assert_true(fabs((found) - (expected)) <= 1e-6 * fabs(expected))

static double get(sb_status (*sum)(const sb_blob *, double *, sb_error *), const sb_blob *blob) {
    sb_error err;
    double out = -1;
    assert_ok(sum(blob, &out, &err));
    return out;
}

static double absolute(const double *values) {
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += fabs(values[i]);
    return sum;
}

static double squares(const double *values) {
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += values[i] * values[i];
    return sum;
}

/* --- Blob ---------------------------------------------------------------------- */

static void a_preshaped_blob_knows_its_legacy_shape(void **state) {
    (void)state;
    sb_error err;
    sb_blob *shaped, *plain;
    int64_t out;
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &plain, &err));
    assert_int_equal(sb_blob_num_axes(plain), 0);
    assert_int_equal(sb_blob_count(plain), 0);
    assert_ok(sb_blob_reshape_legacy(plain, 2, 3, 4, 5, NULL, &err));
    assert_ok(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &shaped, &err));
    sb_blob *both[] = {shaped, plain};
    for (int i = 0; i < 2; i++) {
        assert_ok(sb_blob_num(both[i], &out, &err));
        assert_int_equal(out, 2);
        assert_ok(sb_blob_channels(both[i], &out, &err));
        assert_int_equal(out, 3);
        assert_ok(sb_blob_height(both[i], &out, &err));
        assert_int_equal(out, 4);
        assert_ok(sb_blob_width(both[i], &out, &err));
        assert_int_equal(out, 5);
        assert_int_equal(sb_blob_count(both[i]), 120);
        sb_blob_destroy(both[i]);
    }
}

static void all_four_pointers_are_there(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    const void *in = NULL;
    void *out = NULL;
    rig_open(&rig, "sim:0", 0);
    sb_blob *blob = legacy_blob(&rig, SB_DTYPE_F32);
    assert_ok(sb_blob_gpu_data(blob, &in, &err));
    assert_non_null(in);
    assert_ok(sb_blob_cpu_data(blob, &in, &err));
    assert_non_null(in);
    assert_ok(sb_blob_mutable_gpu_data(blob, &out, &err));
    assert_non_null(out);
    assert_ok(sb_blob_mutable_cpu_data(blob, &out, &err));
    assert_non_null(out);
    sb_blob_destroy(blob);
    rig_close(&rig);
}

static void a_zero_dimension_gives_count_zero(void **state) {
    (void)state;
    sb_error err;
    sb_blob *blob;
    assert_ok(sb_blob_create(NULL, SB_DTYPE_F32, &blob, &err));
    assert_ok(sb_blob_reshape(blob, (int64_t[]){0, 5}, 2, NULL, &err));
    assert_int_equal(sb_blob_count(blob), 0);
    sb_blob_destroy(blob);
}

static void sums_of_squares(void **state) {
    (void)state;
    for (size_t v = 0; v < VARIANTS; v++) {
        struct rig rig;
        double values[COUNT];
        rig_open(&rig, "sim:0", 0);
        sb_blob *blob = legacy_blob(&rig, variants[v].dtype);
        assert_true(get(sb_blob_sumsq_data, blob) == 0); /* never written */
        assert_true(get(sb_blob_sumsq_diff, blob) == 0);
        fill_uniform(blob, values);
        settle(blob, variants[v].device, false);
        near(get(sb_blob_sumsq_data, blob), squares(values));
        assert_true(get(sb_blob_sumsq_diff, blob) == 0);
        scale_into_diff(blob, 7);
        settle(blob, variants[v].device, true);
        near(get(sb_blob_sumsq_data, blob), squares(values));
        near(get(sb_blob_sumsq_diff, blob), squares(values) * 49);
        sb_blob_destroy(blob);
        rig_close(&rig);
    }
}

static void sums_of_absolute_values(void **state) {
    (void)state;
    for (size_t v = 0; v < VARIANTS; v++) {
        struct rig rig;
        double values[COUNT];
        rig_open(&rig, "sim:0", 0);
        sb_blob *blob = legacy_blob(&rig, variants[v].dtype);
        assert_true(get(sb_blob_asum_data, blob) == 0);
        assert_true(get(sb_blob_asum_diff, blob) == 0);
        fill_uniform(blob, values);
        settle(blob, variants[v].device, false);
        near(get(sb_blob_asum_data, blob), absolute(values));
        assert_true(get(sb_blob_asum_diff, blob) == 0);
        scale_into_diff(blob, 7);
        settle(blob, variants[v].device, true);
        near(get(sb_blob_asum_data, blob), absolute(values));
        near(get(sb_blob_asum_diff, blob), absolute(values) * 7);
        sb_blob_destroy(blob);
        rig_close(&rig);
    }
}

static void scaling_data_and_diff(void **state) {
    (void)state;
    for (size_t v = 0; v < VARIANTS; v++) {
        struct rig rig;
        sb_error err;
        double values[COUNT];
        rig_open(&rig, "sim:0", 0);
        sb_blob *blob = legacy_blob(&rig, variants[v].dtype);
        fill_uniform(blob, values);
        double before = get(sb_blob_asum_data, blob);
        settle(blob, variants[v].device, false);
        assert_ok(sb_blob_scale_data(blob, 3, &err));
        near(get(sb_blob_asum_data, blob), before * 3);
        assert_true(get(sb_blob_asum_diff, blob) == 0);
        scale_into_diff(blob, 7);
        near(get(sb_blob_asum_data, blob), before * 3);
        near(get(sb_blob_asum_diff, blob), before * 3 * 7);
        settle(blob, variants[v].device, true);
        assert_ok(sb_blob_scale_diff(blob, 3, &err));
        near(get(sb_blob_asum_data, blob), before * 3);
        near(get(sb_blob_asum_diff, blob), before * 3 * 7 * 3);
        sb_blob_destroy(blob);
        rig_close(&rig);
    }
}

/* --- SyncedMemory ----------------------------------------------------------------- */

static void a_new_memory_is_uninitialized(void **state) {
    (void)state;
    sb_error err;
    sb_mem *mem;
    assert_ok(sb_mem_create(NULL, 10, &mem, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_size(mem), 10);
    sb_mem_release(mem);
}

static void host_writes_are_kept_round_after_round(void **state) {
    (void)state;
    sb_error err;
    sb_mem *mem;
    void *out;
    assert_ok(sb_mem_create(NULL, 10, &mem, &err));
    for (int round = 1; round <= 2; round++) {
        assert_ok(sb_mem_mutable_cpu_data(mem, &out, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
        memset(out, round, 10);
        assert_true(bytes_are(out, 10, round));
    }
    sb_mem_release(mem);
}

static void the_device_reads_what_the_host_wrote(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    sb_mem *mem;
    void *out;
    const void *in;
    rig_open(&rig, "sim:0", 0);
    assert_ok(sb_mem_create(rig.context, 10, &mem, &err));
    for (int round = 1; round <= 2; round++) {
        assert_ok(sb_mem_mutable_cpu_data(mem, &out, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
        memset(out, round, 10);
        assert_ok(sb_mem_gpu_data(mem, &in, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
        assert_true(device_bytes_are(rig.context, in, 10, round));
    }
    sb_mem_release(mem);
    rig_close(&rig);
}

static void the_host_reads_what_the_device_wrote(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    sb_mem *mem;
    void *out;
    const void *in;
    rig_open(&rig, "sim:0", 0);
    assert_ok(sb_mem_create(rig.context, 10, &mem, &err));
    for (int round = 1; round <= 2; round++) {
        assert_ok(sb_mem_mutable_gpu_data(mem, &out, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_GPU);
        device_fill(rig.context, out, 10, round);
        assert_ok(sb_mem_cpu_data(mem, &in, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
        assert_true(bytes_are(in, 10, round));
    }
    sb_mem_release(mem);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_preshaped_blob_knows_its_legacy_shape),
        cmocka_unit_test(all_four_pointers_are_there),
        cmocka_unit_test(a_zero_dimension_gives_count_zero),
        cmocka_unit_test(sums_of_squares),
        cmocka_unit_test(sums_of_absolute_values),
        cmocka_unit_test(scaling_data_and_diff),
        cmocka_unit_test(a_new_memory_is_uninitialized),
        cmocka_unit_test(host_writes_are_kept_round_after_round),
        cmocka_unit_test(the_device_reads_what_the_host_wrote),
        cmocka_unit_test(the_host_reads_what_the_device_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
