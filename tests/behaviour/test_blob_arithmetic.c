/* Update, sums and scaling: where they run, what they give, how exactly. */
#include "blobs.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 10

static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};

struct values {
    int32_t dtype;
    size_t bytes;
    double data[COUNT], diff[COUNT]; /* room for either dtype */
};

static struct values values_of(int32_t dtype) {
    struct values v = {.dtype = dtype, .bytes = COUNT * sb_dtype_size(dtype)};
    fill_values(dtype, COUNT, -4, 1, v.data);  /* -4 .. 5 */
    fill_values(dtype, COUNT, 10, -2, v.diff); /* 10 .. -8 */
    return v;
}

static bool on_device(int32_t head) {
    return head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
}

/* --- sums ------------------------------------------------------------------- */

static void sums_are_taken_where_the_head_is(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (int diff = 0; diff < 2; diff++) {
                struct values v = values_of(dtypes[d]);
                sb_blob *blob = blob_of_count(rig.context, dtypes[d], COUNT);
                sb_mem *mem = diff ? diff_of(blob) : data_of(blob);
                double asum = -1, sumsq = -1;
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(&rig);
                assert_ok(diff ? sb_blob_asum_diff(blob, &asum, &err)
                               : sb_blob_asum_data(blob, &asum, &err));
                assert_ok(diff ? sb_blob_sumsq_diff(blob, &sumsq, &err)
                               : sb_blob_sumsq_data(blob, &sumsq, &err));
                struct tally t = rig_since(&rig, &before);
                assert_true(asum == (head ? 25 : 0));
                assert_true(sumsq == (head ? 85 : 0));
                assert_int_equal(sb_mem_head(mem), head);
                assert_int_equal(t.uploads + t.downloads, 0);
                assert_int_equal(t.host_allocs + t.device_allocs, 0);
                assert_int_equal(t.calls[SB_SIM_ASUM], on_device(head));
                assert_int_equal(t.calls[SB_SIM_SUMSQ], on_device(head));
                sb_blob_destroy(blob);
            }
    rig_close(&rig);
}

static void sums_use_the_count_not_the_capacity(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (int32_t head = 1; head <= SB_HEAD_SYNCED; head++) {
        struct values v = values_of(SB_DTYPE_F32);
        sb_blob *blob = blob_of_count(rig.context, SB_DTYPE_F32, COUNT);
        double sum = -1;
        mem_place(data_of(blob), head, v.data, v.bytes);
        assert_ok(sb_blob_reshape(blob, (int64_t[]){3}, 1, NULL, &err));
        assert_ok(sb_blob_asum_data(blob, &sum, &err));
        assert_true(sum == 9); /* 4 + 3 + 2 */
        assert_ok(sb_blob_scale_data(blob, 2, &err));
        assert_ok(sb_blob_reshape(blob, (int64_t[]){COUNT}, 1, NULL, &err));
        assert_ok(sb_blob_asum_data(blob, &sum, &err));
        assert_true(sum == 25 + 9);
        sb_blob_destroy(blob);
    }
    rig_close(&rig);
}

static void not_a_number_and_infinity_show_in_sums(void **state) {
    (void)state;
    sb_error err;
    for (int64_t count = 1; count <= 100000; count = count * 10 + 7) {
        sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F32, count);
        float *x;
        double sum = 0;
        assert_ok(sb_blob_mutable_cpu_data_f32(blob, &x, &err));
        x[count - 1] = NAN;
        assert_ok(sb_blob_asum_data(blob, &sum, &err));
        assert_true(isnan(sum));
        assert_ok(sb_blob_sumsq_data(blob, &sum, &err));
        assert_true(isnan(sum));
        x[count - 1] = -INFINITY;
        assert_ok(sb_blob_asum_data(blob, &sum, &err));
        assert_true(isinf(sum) && sum > 0);
        assert_ok(sb_blob_sumsq_data(blob, &sum, &err));
        assert_true(isinf(sum) && sum > 0);
        sb_blob_destroy(blob);
    }
}

/* The squares of large floats fit a double, as the sum is one. */
static void sums_do_not_overflow_in_the_elements_type(void **state) {
    (void)state;
    sb_error err;
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F32, 1000);
    float *x;
    double sum = 0;
    assert_ok(sb_blob_mutable_cpu_data_f32(blob, &x, &err));
    for (int i = 0; i < 1000; i++)
        x[i] = 1e30f;
    assert_ok(sb_blob_sumsq_data(blob, &sum, &err));
    assert_true(fabs(sum / ((double)1e30f * (double)1e30f * 1000) - 1) < 1e-6);
    sb_blob_destroy(blob);
}

/* --- scale ------------------------------------------------------------------------ */

static void scaling_runs_where_the_head_is(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (int diff = 0; diff < 2; diff++) {
                struct values v = values_of(dtypes[d]), scaled = v;
                sb_blob *blob = blob_of_count(rig.context, dtypes[d], COUNT);
                sb_mem *mem = diff ? diff_of(blob) : data_of(blob);
                fill_values(dtypes[d], COUNT, -10, 2.5, scaled.data);
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(&rig);
                assert_ok(diff ? sb_blob_scale_diff(blob, 2.5, &err)
                               : sb_blob_scale_data(blob, 2.5, &err));
                struct tally t = rig_since(&rig, &before);
                assert_int_equal(t.uploads + t.downloads, 0);
                assert_int_equal(t.calls[SB_SIM_SCALE], on_device(head));
                assert_int_equal(sb_mem_head(mem), head == SB_HEAD_SYNCED ? SB_HEAD_AT_GPU : head);
                if (head)
                    assert_true(mem_holds(mem, scaled.data, v.bytes));
                sb_blob_destroy(blob);
            }
    rig_close(&rig);
}

/* --- update ------------------------------------------------------------------------- */

static void update_cell(int32_t dtype, int32_t data_head, int32_t diff_head) {
    struct rig rig;
    sb_error err;
    struct values v = values_of(dtype), expected = v;
    rig_open(&rig, "sim:0", 0);
    sb_blob *blob = blob_of_count(rig.context, dtype, COUNT);
    sb_mem *data = data_of(blob), *diff = diff_of(blob);
    mem_place(data, data_head, v.data, v.bytes);
    mem_place(diff, diff_head, v.diff, v.bytes);
    bool device = on_device(data_head);
    struct tally before = rig_tally(&rig);
    if (data_head == SB_HEAD_UNINITIALIZED) {
        assert_status(SB_ERR_UNINITIALIZED, sb_blob_update(blob, &err));
        assert_int_equal(sb_mem_head(data), SB_HEAD_UNINITIALIZED);
        assert_int_equal(sb_mem_head(diff), diff_head);
    } else {
        assert_ok(sb_blob_update(blob, &err));
        if (diff_head)
            fill_values(dtype, COUNT, -14, 3, expected.data);
        assert_true(mem_holds(data, expected.data, v.bytes));
        assert_int_equal(sb_mem_head(data), device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU);
        if (diff_head)
            assert_true(mem_holds(diff, v.diff, v.bytes));
    }
    struct tally t = rig_since(&rig, &before);
    assert_int_equal(t.calls[SB_SIM_AXPY],
                     data_head && device && (diff_head || t.calls[SB_SIM_AXPY]));
    assert_int_equal(t.uploads, data_head && device && diff_head == SB_HEAD_AT_CPU);
    assert_int_equal(t.downloads, data_head && !device && diff_head == SB_HEAD_AT_GPU);
    sb_blob_destroy(blob);
    rig_close(&rig);
}

static void update_subtracts_diff_where_data_is(void **state) {
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int32_t a = 0; a <= SB_HEAD_SYNCED; a++)
            for (int32_t b = 0; b <= SB_HEAD_SYNCED; b++)
                update_cell(dtypes[d], a, b);
}

static void update_of_a_memory_with_itself_gives_zero(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (int device = 0; device < 2; device++) {
        struct values v = values_of(SB_DTYPE_F32);
        sb_blob *blob = blob_of_count(rig.context, SB_DTYPE_F32, COUNT);
        struct lent lent = device ? lend_device(rig.context, v.bytes, 0) : lend_host(v.bytes, 0);
        if (device) {
            assert_ok(sb_sim_poke(rig.context, lent.ptr, v.data, v.bytes, &err));
            assert_ok(sb_mem_set_gpu(data_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
            assert_ok(sb_mem_set_gpu(diff_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
        } else {
            memcpy(lent.ptr, v.data, v.bytes);
            assert_ok(sb_mem_set_cpu(data_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
            assert_ok(sb_mem_set_cpu(diff_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
        }
        assert_ok(sb_blob_update(blob, &err));
        assert_true(lent_holds(&lent, 0));
        sb_blob_destroy(blob);
        lent_free(&lent);
    }
    rig_close(&rig);
}

/* --- what is refused ------------------------------------------------------------------ */

static void integers_and_halves_have_no_arithmetic(void **state) {
    (void)state;
    static const int32_t storage_only[] = {SB_DTYPE_I32, SB_DTYPE_U32, SB_DTYPE_F16, SB_DTYPE_BF16};
    sb_error err;
    for (size_t d = 0; d < 4; d++)
        for (int64_t count = 0; count < 8; count += 4)
            for (int touched = 0; touched < 2; touched++) {
                sb_blob *blob = blob_of_count(NULL, storage_only[d], count);
                void *out;
                double sum = -1;
                if (touched)
                    assert_ok(sb_blob_mutable_cpu_data(blob, &out, &err));
                const sb_status no = SB_ERR_UNSUPPORTED;
                assert_status(no, sb_blob_update(blob, &err));
                assert_status(no, sb_blob_asum_data(blob, &sum, &err));
                assert_status(no, sb_blob_asum_diff(blob, &sum, &err));
                assert_status(no, sb_blob_sumsq_data(blob, &sum, &err));
                assert_status(no, sb_blob_sumsq_diff(blob, &sum, &err));
                assert_status(no, sb_blob_scale_data(blob, 2, &err));
                assert_status(no, sb_blob_scale_diff(blob, 2, &err));
                assert_true(sum == -1);
                sb_blob_destroy(blob);
            }
}

static void arguments_come_before_everything(void **state) {
    (void)state;
    sb_error err;
    double sum;
    sb_blob *ints = blob_of_count(NULL, SB_DTYPE_I32, 0);
    const sb_status bad = SB_ERR_INVALID_ARGUMENT;
    assert_status(bad, sb_blob_update(NULL, &err));
    assert_status(bad, sb_blob_asum_data(NULL, &sum, &err));
    assert_status(bad, sb_blob_asum_data(ints, NULL, &err));
    assert_status(bad, sb_blob_asum_diff(ints, NULL, &err));
    assert_status(bad, sb_blob_sumsq_data(ints, NULL, &err));
    assert_status(bad, sb_blob_sumsq_diff(NULL, &sum, &err));
    assert_status(bad, sb_blob_scale_data(NULL, 1, &err));
    assert_status(bad, sb_blob_scale_diff(NULL, 1, &err));
    assert_status(bad, sb_blob_clear_data(NULL, &err));
    assert_status(bad, sb_blob_clear_diff(NULL, &err));
    sb_blob_destroy(ints);
}

static void count_zero_comes_before_the_head(void **state) {
    (void)state;
    sb_error err;
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F32, 0);
    double sum = -1;
    assert_ok(sb_blob_update(blob, &err)); /* though data was never written */
    assert_ok(sb_blob_asum_data(blob, &sum, &err));
    assert_true(sum == 0);
    assert_ok(sb_blob_scale_data(blob, 3, &err));
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_head(diff_of(blob)), SB_HEAD_UNINITIALIZED);
    sb_blob_destroy(blob);
}

/* --- schedules ------------------------------------------------------------------------- */

static void results_do_not_depend_on_the_schedule(void **state) {
    (void)state;
    struct rig rig;
    sb_error err;
    rig_open(&rig, "sim:0", 0);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct values v = values_of(SB_DTYPE_F32);
        double sum = -1;
        void *out;
        sb_blob *blob = blob_of_count(rig.context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_sim_set_schedule(rig.context, (int32_t)(seed % 3), seed, &err));
        assert_ok(sb_blob_overwrite_cpu_data(blob, &out, &err));
        memcpy(out, v.data, v.bytes);
        assert_ok(sb_blob_overwrite_cpu_diff(blob, &out, &err));
        memcpy(out, v.diff, v.bytes);
        assert_ok(sb_mem_async_gpu_push(data_of(blob), NULL, &err));
        if (seed % 2)
            assert_ok(sb_mem_async_gpu_push(diff_of(blob), NULL, &err));
        assert_ok(sb_blob_scale_diff(blob, 0.5, &err)); /* 5 .. -4 */
        assert_ok(sb_blob_update(blob, &err));          /* -9 .. 9 by 2 */
        assert_ok(sb_blob_asum_data(blob, &sum, &err));
        assert_true(sum == 50);
        assert_ok(sb_blob_sumsq_diff(blob, &sum, &err));
        assert_true(sum == 85);
        sb_blob_destroy(blob);
    }
    rig_close(&rig);
}

/* --- precision ------------------------------------------------------------------------------ */

static int64_t large_count(void) {
    if (test_is_quick())
        return (int64_t)1 << 16;
    return test_is_full() ? (int64_t)64 << 20 : (int64_t)4 << 20;
}

static void expect_close(const char *what, double found, long double reference,
                         long double tolerance) {
    long double off = fabsl((long double)found - reference) / reference;
    if (!(off <= tolerance))
        fail_with("%s: off by %Lg, allowed %Lg", what, off, tolerance);
}

static void sums_are_close_to_exact(void **state) {
    (void)state;
    sb_error err;
    const int64_t count = large_count();
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F32, count);
    float *x;
    double asum, sumsq;
    static const float constants[] = {0.1f, 1.0f / 3, 0.7f, 1e-20f, 16777217.0f};
    assert_ok(sb_blob_mutable_cpu_data_f32(blob, &x, &err));
    for (int round = 0; round < 6; round++) {
        uint64_t random = 42;
        long double reference = 0, squares = 0;
        for (int64_t i = 0; i < count; i++) {
            x[i] = round < 5 ? constants[round]
                             : (float)((double)(test_random(&random) >> 11) * 0x1p-52 - 1.0);
            reference += fabsl((long double)x[i]);
            squares += (long double)x[i] * (long double)x[i];
        }
        long double tolerance = round < 5 ? 1e-6L : 2e-7L;
        assert_ok(sb_blob_asum_data(blob, &asum, &err));
        assert_ok(sb_blob_sumsq_data(blob, &sumsq, &err));
        expect_close("asum", asum, reference, tolerance);
        expect_close("sumsq", sumsq, squares, tolerance);
    }
    sb_blob_destroy(blob);
}

static void double_sums_are_close_to_exact(void **state) {
    (void)state;
    sb_error err;
    const int64_t count = large_count() / 4;
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F64, count);
    double *x, asum, sumsq;
    uint64_t random = 43;
    long double reference = 0, squares = 0;
    assert_ok(sb_blob_mutable_cpu_data_f64(blob, &x, &err));
    for (int64_t i = 0; i < count; i++) {
        x[i] = (double)(test_random(&random) >> 11) * 0x1p-52 - 1.0;
        reference += fabsl((long double)x[i]);
        squares += (long double)x[i] * (long double)x[i];
    }
    assert_ok(sb_blob_asum_data(blob, &asum, &err));
    assert_ok(sb_blob_sumsq_data(blob, &sumsq, &err));
    expect_close("asum", asum, reference, 1e-12L);
    expect_close("sumsq", sumsq, squares, 1e-12L);
    sb_blob_destroy(blob);
}

/* --- parallel_for ------------------------------------------------------------------------------
 */

struct pool {
    _Atomic int64_t calls, next;
    int64_t tasks;
    void (*task)(void *arg, int64_t i);
    void *arg;
};

static void *drain(void *arg) {
    struct pool *pool = arg;
    int64_t i;
    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->tasks)
        pool->task(pool->arg, pool->tasks - 1 - i); /* in an odd order */
    return NULL;
}

static void run_parallel(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    struct pool *pool = user;
    pthread_t threads[3];
    int started = 0;
    atomic_fetch_add(&pool->calls, 1);
    atomic_store(&pool->next, 0);
    pool->tasks = tasks;
    pool->task = task;
    pool->arg = arg;
    while (started < 3 && pthread_create(&threads[started], NULL, drain, pool) == 0)
        started++;
    drain(pool);
    while (started)
        (void)pthread_join(threads[--started], NULL);
}

struct results {
    double sums[4];
    uint64_t data_hash, diff_hash, copy_hash;
};

static uint64_t hash(const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static struct results compute(sb_context *context, int32_t dtype, int64_t count) {
    struct results r;
    sb_error err;
    const void *in;
    memset(&r, 0, sizeof r);
    size_t bytes = (size_t)count * sb_dtype_size(dtype);
    sb_blob *blob = blob_of_count(context, dtype, count), *copy;
    void *out;
    assert_ok(sb_blob_overwrite_cpu_data(blob, &out, &err));
    fill_values(dtype, count, 0.3, 1e-3, out);
    assert_ok(sb_blob_overwrite_cpu_diff(blob, &out, &err));
    fill_values(dtype, count, -7.7, 3e-3, out);
    assert_ok(sb_blob_scale_diff(blob, 0.123, &err));
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_asum_data(blob, &r.sums[0], &err));
    assert_ok(sb_blob_sumsq_data(blob, &r.sums[1], &err));
    assert_ok(sb_blob_asum_diff(blob, &r.sums[2], &err));
    assert_ok(sb_blob_sumsq_diff(blob, &r.sums[3], &err));
    assert_ok(sb_blob_cpu_data(blob, &in, &err));
    r.data_hash = hash(in, bytes);
    assert_ok(sb_blob_cpu_diff(blob, &in, &err));
    r.diff_hash = hash(in, bytes);
    assert_ok(sb_blob_create(context, dtype, &copy, &err));
    assert_ok(sb_blob_copy_from(copy, blob, SB_COPY_RESHAPE, &err));
    assert_ok(sb_blob_clear_data(blob, &err));
    assert_ok(sb_blob_cpu_data(copy, &in, &err));
    r.copy_hash = hash(in, bytes);
    assert_ok(sb_blob_cpu_data(blob, &in, &err));
    assert_true(bytes_are(in, bytes, 0));
    sb_blob_destroy(blob);
    sb_blob_destroy(copy);
    return r;
}

static void results_are_the_same_with_and_without_threads(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 127, 128, 129, 8191, 8193, 100003, 1500001};
    struct pool pool = {0};
    struct rig alone, together;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    rig_open_options(&alone, options);
    options.parallel_for = run_parallel;
    options.parallel_for_user = &pool;
    rig_open_options(&together, options);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int d = test_is_quick(); d < 2; d++) {
            struct results a = compute(alone.context, dtypes[d], counts[i]);
            struct results b = compute(together.context, dtypes[d], counts[i]);
            assert_memory_equal(&a, &b, sizeof a);
            assert_int_equal(a.data_hash, a.copy_hash);
        }
    assert_true(atomic_load(&pool.calls) > 0);
    rig_close(&alone);
    rig_close(&together);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_taken_where_the_head_is),
        cmocka_unit_test(sums_use_the_count_not_the_capacity),
        cmocka_unit_test(not_a_number_and_infinity_show_in_sums),
        cmocka_unit_test(sums_do_not_overflow_in_the_elements_type),
        cmocka_unit_test(scaling_runs_where_the_head_is),
        cmocka_unit_test(update_subtracts_diff_where_data_is),
        cmocka_unit_test(update_of_a_memory_with_itself_gives_zero),
        cmocka_unit_test(integers_and_halves_have_no_arithmetic),
        cmocka_unit_test(arguments_come_before_everything),
        cmocka_unit_test(count_zero_comes_before_the_head),
        cmocka_unit_test(results_do_not_depend_on_the_schedule),
        cmocka_unit_test(sums_are_close_to_exact),
        cmocka_unit_test(double_sums_are_close_to_exact),
        cmocka_unit_test(results_are_the_same_with_and_without_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
