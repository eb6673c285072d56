/* Tests the results of update, sums and scaling, and the side on which they run.
   test_host_arithmetic.c tests the accuracy on the host; c/conformance tests every backend. */
#include "blobs.h"

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

TEST_ON(rig, sums_run_where_the_head_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
                struct values v = values_of(dtypes[d]);
                sb_blob *blob = test_vector(f->context, dtypes[d], COUNT);
                sb_mem *mem = mem_of(blob, part);
                double asum = -1, sumsq = -1;
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(f);
                assert_ok(sb_blob_asum(blob, part, &asum, &err));
                assert_ok(sb_blob_sumsq(blob, part, &sumsq, &err));
                assert_status(SB_ERR_INVALID_ARGUMENT, sb_blob_asum(blob, part, NULL, &err));
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

TEST_ON(rig, scaling_runs_where_the_head_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
                struct values v = values_of(dtypes[d]), scaled = v;
                sb_blob *blob = test_vector(f->context, dtypes[d], COUNT);
                sb_mem *mem = mem_of(blob, part);
                fill_values(dtypes[d], COUNT, -10, 2.5, scaled.data);
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(f);
                assert_ok(sb_blob_scale(blob, part, 2.5, &err));
                struct tally t = rig_since(f, &before);
                assert_int_equal(t.uploads + t.downloads, 0);
                assert_int_equal(t.calls[SB_SIM_SCALE], on_device(head));
                assert_int_equal(sb_mem_head(mem), head == SB_HEAD_SYNCED ? SB_HEAD_AT_GPU : head);
                if (head)
                    assert_true(mem_holds(mem, scaled.data, v.bytes));
            }
}

static void update_cell(struct rig *rig, int32_t dtype, int32_t data_head, int32_t diff_head) {
    struct values v = values_of(dtype), expected = v;
    sb_blob *blob = test_vector(rig->context, dtype, COUNT);
    sb_mem *data = data_of(blob), *diff = diff_of(blob);
    mem_place(data, data_head, v.data, v.bytes);
    mem_place(diff, diff_head, v.diff, v.bytes);
    bool device = on_device(data_head);
    struct tally before = rig_tally(rig);
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
    struct tally t = rig_since(rig, &before);
    assert_int_equal(t.calls[SB_SIM_AXPY],
                     data_head && device && (diff_head || t.calls[SB_SIM_AXPY]));
    const bool copies = data_head && !sim_is_coherent();
    assert_int_equal(t.uploads, copies && device && diff_head == SB_HEAD_AT_CPU);
    assert_int_equal(t.downloads, copies && !device && diff_head == SB_HEAD_AT_GPU);
}

TEST_ON(rig, update_subtracts_diff_where_data_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t a = 0; a <= SB_HEAD_SYNCED; a++)
            for (int32_t b = 0; b <= SB_HEAD_SYNCED; b++)
                update_cell(f, dtypes[d], a, b);
}

TEST_ON(rig, update_of_a_memory_with_itself_gives_zero) {
    for (int device = 0; device < 2; device++) {
        struct values v = values_of(SB_DTYPE_F32);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        struct lent lent = device ? lend_device(f->context, v.bytes, 0) : lend_host(v.bytes, 0);
        bytes_put(lent.context, lent.ptr, v.data, v.bytes);
        assert_ok((device ? sb_mem_set_gpu : sb_mem_set_cpu)(data_of(blob), lent.ptr, v.bytes, 0,
                                                             NULL, NULL, &err));
        assert_ok((device ? sb_mem_set_gpu : sb_mem_set_cpu)(diff_of(blob), lent.ptr, v.bytes, 0,
                                                             NULL, NULL, &err));
        assert_ok(sb_blob_update(blob, &err));
        assert_true(lent_holds(&lent, 0));
    }
}

TEST(integers_and_halves_have_no_arithmetic) {
    static const sb_dtype storage_only[] = {SB_DTYPE_INTEGER_LIST(DTYPE_ITEM, )
                                                SB_DTYPE_HALF_LIST(DTYPE_ITEM, )};
    for (size_t d = 0; d < sizeof storage_only / sizeof *storage_only; d++)
        for (int64_t count = 0; count < 8; count += 4)
            for (int touched = 0; touched < 2; touched++) {
                sb_blob *blob = test_vector(NULL, storage_only[d], count);
                double sum = -1;
                if (touched)
                    (void)host_to_write(blob, SB_DATA);
                const sb_status no = SB_ERR_UNSUPPORTED;
                assert_status(no, sb_blob_update(blob, &err));
                for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
                    assert_status(no, sb_blob_asum(blob, part, &sum, &err));
                    assert_status(no, sb_blob_sumsq(blob, part, &sum, &err));
                    assert_status(no, sb_blob_scale(blob, part, 2, &err));
                }
                assert_true(sum == -1);
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
