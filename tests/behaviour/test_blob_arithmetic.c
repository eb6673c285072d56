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

TEST_ON(rig, sums_and_scaling_run_where_the_head_is) {
    for (int d = 0; d < 2; d++)
        for (int32_t head = 0; head <= SB_HEAD_SYNCED; head++)
            for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
                struct values v = values_of(dtypes[d]), scaled = v;
                sb_blob *blob = test_vector(f->context, dtypes[d], COUNT);
                sb_mem *mem = mem_of(blob, part);
                double asum = -1, sumsq = -1;
                fill_values(dtypes[d], COUNT, -10, 2.5, scaled.data);
                mem_place(mem, head, v.data, v.bytes);
                struct tally before = rig_tally(f);
                assert_ok(sb_blob_asum(blob, part, &asum, &err));
                assert_ok(sb_blob_sumsq(blob, part, &sumsq, &err));
                assert_int_equal(sb_mem_head(mem), head);
                assert_ok(sb_blob_scale(blob, part, 2.5, &err));
                struct tally t = rig_since(f, &before);
                assert_true(asum == (head ? 25 : 0) && sumsq == (head ? 85 : 0));
                assert_int_equal(sb_mem_head(mem), head == SB_HEAD_SYNCED ? SB_HEAD_AT_GPU : head);
                assert_int_equal(t.uploads + t.downloads + t.host_allocs + t.device_allocs, 0);
                assert_int_equal(t.calls[SB_SIM_ASUM], on_device(head));
                assert_int_equal(t.calls[SB_SIM_SUMSQ], on_device(head));
                assert_int_equal(t.calls[SB_SIM_SCALE], on_device(head));
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

TEST(integers_and_halves_have_no_arithmetic) {
    static const sb_dtype storage_only[] = {SB_DTYPE_INTEGER_LIST(DTYPE_ITEM, )
                                                SB_DTYPE_HALF_LIST(DTYPE_ITEM, )};
    for (size_t d = 0; d < sizeof storage_only / sizeof *storage_only; d++) {
        sb_blob *blob = test_vector(NULL, storage_only[d], 4);
        double sum = -1;
        assert_status(SB_ERR_UNSUPPORTED, sb_blob_update(blob, &err));
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, part, &sum, &err));
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_sumsq(blob, part, &sum, &err));
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, part, 2, &err));
        }
        assert_true(sum == -1);
        /* Arguments are checked before the type. */
        assert_status(INVALID, sb_blob_asum(blob, SB_DATA, NULL, &err));
        assert_status(INVALID, sb_blob_sumsq(blob, SB_DIFF + 1, &sum, &err));
        assert_status(INVALID, sb_blob_scale(blob, -1, 2, &err));
    }
}
