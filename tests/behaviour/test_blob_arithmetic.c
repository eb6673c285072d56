/* Update, sums and scaling: where they run, what they give. How exactly is asked in
   test_host_arithmetic.c and of every backend in test_backend.c. */
#include "blobs.h"

#include <syncblob/filler.h>

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

TEST_ON(rig, sums_are_taken_where_the_head_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (int diff = 0; diff < 2; diff++) {
                struct values v = values_of(dtypes[d]);
                sb_blob *blob = test_vector(f->context, dtypes[d], COUNT);
                sb_mem *mem = diff ? diff_of(blob) : data_of(blob);
                double asum = -1, sumsq = -1;
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(f);
                assert_ok(diff ? sb_blob_asum(blob, SB_DIFF, &asum, &err)
                               : sb_blob_asum(blob, SB_DATA, &asum, &err));
                assert_ok(diff ? sb_blob_sumsq(blob, SB_DIFF, &sumsq, &err)
                               : sb_blob_sumsq(blob, SB_DATA, &sumsq, &err));
                assert_status(SB_ERR_INVALID_ARGUMENT,
                              sb_blob_asum(blob, diff ? SB_DIFF : SB_DATA, NULL, &err));
                struct tally t = rig_since(f, &before);
                assert_true(asum == (head ? 25 : 0));
                assert_true(sumsq == (head ? 85 : 0));
                assert_int_equal(sb_mem_head(mem), head);
                assert_int_equal(t.uploads + t.downloads, 0);
                assert_int_equal(t.host_allocs + t.device_allocs, 0);
                assert_int_equal(t.calls[SB_SIM_ASUM], on_device(head));
                assert_int_equal(t.calls[SB_SIM_SUMSQ], on_device(head));
            }
}

TEST_ON(rig, sums_use_the_count_not_the_capacity) {
    for (int32_t head = 1; head <= SB_HEAD_SYNCED; head++) {
        struct values v = values_of(SB_DTYPE_F32);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        double sum = -1;
        mem_place(data_of(blob), head, v.data, v.bytes);
        assert_ok(sb_blob_reshape(blob, (int64_t[]){3}, 1, NULL, &err));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 9); /* 4 + 3 + 2 */
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_blob_reshape(blob, (int64_t[]){COUNT}, 1, NULL, &err));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 25 + 9);
    }
}

/* --- scale ------------------------------------------------------------------------ */

TEST_ON(rig, scaling_runs_where_the_head_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (int diff = 0; diff < 2; diff++) {
                struct values v = values_of(dtypes[d]), scaled = v;
                sb_blob *blob = test_vector(f->context, dtypes[d], COUNT);
                sb_mem *mem = diff ? diff_of(blob) : data_of(blob);
                fill_values(dtypes[d], COUNT, -10, 2.5, scaled.data);
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(f);
                assert_ok(diff ? sb_blob_scale(blob, SB_DIFF, 2.5, &err)
                               : sb_blob_scale(blob, SB_DATA, 2.5, &err));
                struct tally t = rig_since(f, &before);
                assert_int_equal(t.uploads + t.downloads, 0);
                assert_int_equal(t.calls[SB_SIM_SCALE], on_device(head));
                assert_int_equal(sb_mem_head(mem), head == SB_HEAD_SYNCED ? SB_HEAD_AT_GPU : head);
                if (head)
                    assert_true(mem_holds(mem, scaled.data, v.bytes));
            }
}

/* --- update ------------------------------------------------------------------------- */

static void update_cell(int32_t dtype, int32_t data_head, int32_t diff_head) {
    struct rig rig;
    struct values v = values_of(dtype), expected = v;
    rig_open(&rig);
    sb_blob *blob = test_vector(rig.context, dtype, COUNT);
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
    test_end(blob);
    rig_close(&rig);
}

TEST(update_subtracts_diff_where_data_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t a = 0; a <= SB_HEAD_SYNCED; a++)
            for (int32_t b = 0; b <= SB_HEAD_SYNCED; b++)
                update_cell(dtypes[d], a, b);
}

TEST_ON(rig, update_of_a_memory_with_itself_gives_zero) {
    for (int device = 0; device < 2; device++) {
        struct values v = values_of(SB_DTYPE_F32);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        struct lent lent = device ? lend_device(f->context, v.bytes, 0) : lend_host(v.bytes, 0);
        if (device) {
            assert_ok(sb_sim_poke(f->context, lent.ptr, v.data, v.bytes, &err));
            assert_ok(sb_mem_set_gpu(data_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
            assert_ok(sb_mem_set_gpu(diff_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
        } else {
            memcpy(lent.ptr, v.data, v.bytes);
            assert_ok(sb_mem_set_cpu(data_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
            assert_ok(sb_mem_set_cpu(diff_of(blob), lent.ptr, v.bytes, 0, NULL, NULL, &err));
        }
        assert_ok(sb_blob_update(blob, &err));
        assert_true(lent_holds(&lent, 0));
    }
}

/* --- what is refused ------------------------------------------------------------------ */

TEST(integers_and_halves_have_no_arithmetic) {
    static const sb_dtype storage_only[] = {SB_DTYPE_INTEGER_LIST(DTYPE_ITEM, )
                                                SB_DTYPE_HALF_LIST(DTYPE_ITEM, )};
    for (size_t d = 0; d < sizeof storage_only / sizeof *storage_only; d++)
        for (int64_t count = 0; count < 8; count += 4)
            for (int touched = 0; touched < 2; touched++) {
                sb_blob *blob = test_vector(NULL, storage_only[d], count);
                void *out;
                double sum = -1;
                if (touched)
                    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &out, &err));
                const sb_status no = SB_ERR_UNSUPPORTED;
                assert_status(no, sb_blob_update(blob, &err));
                assert_status(no, sb_blob_asum(blob, SB_DATA, &sum, &err));
                assert_status(no, sb_blob_asum(blob, SB_DIFF, &sum, &err));
                assert_status(no, sb_blob_sumsq(blob, SB_DATA, &sum, &err));
                assert_status(no, sb_blob_sumsq(blob, SB_DIFF, &sum, &err));
                assert_status(no, sb_blob_scale(blob, SB_DATA, 2, &err));
                assert_status(no, sb_blob_scale(blob, SB_DIFF, 2, &err));
                assert_true(sum == -1);
            }
}

/* On the host, then on the device. */
TEST_ON(rig, data_that_are_their_own_diff_update_to_zero) {
    static const float values[4] = {9, 8, 7, 6}, zeros[4] = {0};
    for (int32_t head = SB_HEAD_AT_CPU; head <= SB_HEAD_AT_GPU; head++) {
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
        assert_ok(sb_blob_set_mem(blob, SB_DIFF, data_of(blob), &err));
        mem_place(data_of(blob), head, values, sizeof values);
        assert_ok(sb_blob_update(blob, &err));
        assert_true(mem_holds(data_of(blob), zeros, sizeof zeros));
    }
}

TEST(arguments_are_checked_before_the_type) {
    double sum;
    sb_blob *ints = test_vector(NULL, SB_DTYPE_I32, 0);
    const sb_status bad = SB_ERR_INVALID_ARGUMENT;
    assert_status(bad, sb_blob_asum(ints, SB_DATA, NULL, &err));
    assert_status(bad, sb_blob_asum(ints, SB_DIFF, NULL, &err));
    assert_status(bad, sb_blob_sumsq(ints, SB_DATA, NULL, &err));
    assert_status(bad, sb_blob_sumsq(ints, SB_DIFF + 1, &sum, &err));
    assert_status(bad, sb_blob_scale(ints, -1, 2, &err));
}

TEST(count_zero_comes_before_the_head) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 0);
    double sum = -1;
    assert_ok(sb_blob_update(blob, &err)); /* though data was never written */
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 0);
    assert_ok(sb_blob_scale(blob, SB_DATA, 3, &err));
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_head(diff_of(blob)), SB_HEAD_UNINITIALIZED);
}

/* --- schedules ------------------------------------------------------------------------- */

TEST_ON(rig, results_do_not_depend_on_the_schedule) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct values v = values_of(SB_DTYPE_F32);
        double sum = -1;
        void *out;
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_sim_set_schedule(f->context, (int32_t)(seed % 3), seed, &err));
        assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &out, &err));
        memcpy(out, v.data, v.bytes);
        assert_ok(sb_blob_overwrite_cpu(blob, SB_DIFF, &out, &err));
        memcpy(out, v.diff, v.bytes);
        assert_ok(sb_mem_async_gpu_push(data_of(blob), NULL, &err));
        if (seed % 2)
            assert_ok(sb_mem_async_gpu_push(diff_of(blob), NULL, &err));
        assert_ok(sb_blob_scale(blob, SB_DIFF, 0.5, &err)); /* 5 .. -4 */
        assert_ok(sb_blob_update(blob, &err));              /* -9 .. 9 by 2 */
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 50);
        assert_ok(sb_blob_sumsq(blob, SB_DIFF, &sum, &err));
        assert_true(sum == 85);
    }
}

/* Update makes the diff that was never needed; without memory for it nothing has changed. */
TEST_ON(rig, an_update_without_memory_for_the_diff_fails) {
    void *data;
    rig_reopen_on(f, "cpu", 0);
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 1, (int64_t[]){3});
    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &data, &err));
    f->counting.fail_nth = 1;
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_update(blob, &err));
    assert_ok(sb_blob_update(blob, &err));
}

/* --- lent bytes -------------------------------------------------------------------------- */

static sb_status fill_with_three(sb_blob *blob, const sb_blob *source, sb_error *err) {
    sb_filler three = SB_FILLER_INIT;
    three.value = 3;
    return sb_blob_fill(blob, &three, 1, err);
}

static sb_status copy(sb_blob *blob, const sb_blob *source, sb_error *err) {
    return sb_blob_copy_from(blob, SB_DATA, source, 0, err);
}

static sb_status update(sb_blob *blob, const sb_blob *source, sb_error *err) {
    return sb_blob_update(blob, err);
}

static sb_status scale(sb_blob *blob, const sb_blob *source, sb_error *err) {
    return sb_blob_scale(blob, SB_DATA, -1, err);
}

/* What they make of lent ones, with a diff of twos and a source of sevens. */
static const struct {
    const char *name;
    sb_status (*call)(sb_blob *blob, const sb_blob *source, sb_error *err);
    float result;
    uint64_t copies; /* of the host, where the bytes are written in place */
} writers[] = {
    {"fill", fill_with_three, 3, 0},
    {"copy", copy, 7, 1},
    {"update", update, 1 - 2, 0},
    {"scale", scale, -1, 0},
};

static void set_all(float *x, float value) {
    for (int i = 0; i < COUNT; i++)
        x[i] = value;
}

static void check_all(const char *name, const float *x, float value) {
    for (int i = 0; i < COUNT; i++)
        if (x[i] != value)
            fail_with("%s: %g, not %g", name, (double)x[i], (double)value);
}

static float *values_on_host(sb_blob *blob, bool diff) {
    void *values;
    assert_ok(diff ? sb_blob_mutable_cpu(blob, SB_DIFF, &values, &err)
                   : sb_blob_mutable_cpu(blob, SB_DATA, &values, &err));
    return values;
}

static void check_writer(sb_context *context, size_t which, uint32_t flags) {
    float lent[COUNT];
    const void *now;
    sb_stats before = SB_STATS_INIT, after = SB_STATS_INIT;
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, COUNT);
    sb_blob *source = test_vector(context, SB_DTYPE_F32, COUNT);
    set_all(lent, 1);
    set_all(values_on_host(blob, true), 2);
    set_all(values_on_host(source, false), 7);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent, sizeof lent, flags, NULL, NULL, &err));
    assert_ok(sb_context_stats(context, &before, &err));
    assert_ok(writers[which].call(blob, source, &err));
    assert_ok(sb_context_stats(context, &after, &err));
    assert_ok(sb_blob_cpu(blob, SB_DATA, &now, &err));
    check_all(writers[which].name, now, writers[which].result);
    assert_int_equal(now == lent, flags == 0);
    if (flags == 0)
        assert_int_equal(after.host_copies - before.host_copies, writers[which].copies);
    else
        check_all(writers[which].name, lent, 1);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_CPU);
}

TEST_ON(rig, lent_bytes_are_written_unless_they_are_read_only) {
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        check_writer(f->context, i, 0);
        check_writer(f->context, i, SB_READ_ONLY);
    }
}
