/* Tests updates, sums, scaling and copies: the results, and the side on which each call runs. */
#include "blobs.h"

#define COUNT 10
#define SIZE  (COUNT * sizeof(float))

static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};

struct values {
    int32_t dtype;
    size_t bytes;
    double data[COUNT], diff[COUNT];
};

static struct values values_of(int32_t dtype) {
    struct values v = {.dtype = dtype, .bytes = COUNT * sb_dtype_size(dtype)};
    fill_values(dtype, COUNT, -4, 1, v.data);
    fill_values(dtype, COUNT, 10, -2, v.diff);
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
    if (data_head) { /* subtracts the data from itself */
        assert_ok(sb_blob_set_mem(blob, SB_DIFF, data, &err));
        assert_ok(sb_blob_update(blob, &err));
        assert_true(mem_holds(data, (double[COUNT]){0}, v.bytes));
    }
    assert_int_equal(t.calls[SB_SIM_AXPY],
                     data_head && device && (diff_head || t.calls[SB_SIM_AXPY]));
    assert_int_equal(t.uploads, data_head && device && diff_head == SB_HEAD_AT_CPU);
    assert_int_equal(t.downloads, data_head && !device && diff_head == SB_HEAD_AT_GPU);
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
        assert_status(INVALID, sb_blob_asum(blob, SB_DATA, NULL, &err));
        assert_status(INVALID, sb_blob_sumsq(blob, SB_DIFF + 1, &sum, &err));
        assert_status(INVALID, sb_blob_scale(blob, -1, 2, &err));
    }
}

static const float zeros[COUNT];

static int32_t head_after(int32_t source_head, int32_t target_head) {
    const int32_t head = source_head == SB_HEAD_UNINITIALIZED ? target_head : source_head;
    return head <= SB_HEAD_AT_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
}

static uint64_t copied_bytes(struct rig *rig) {
    const sb_stats stats = rig_stats(rig);
    return stats.host_copy_bytes + stats.device_copy_bytes;
}

static void copy(struct rigs *rigs, bool across, int32_t source_head, int32_t target_head,
                 sb_part part) {
    float values[COUNT], old[COUNT];
    rigs_reopen_on(rigs, "sim:0", "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    struct rig *theirs = &rigs->a, *ours = across ? &rigs->b : theirs;
    sb_blob *source = test_vector(theirs->context, SB_DTYPE_F32, COUNT);
    sb_blob *target = test_vector(ours->context, SB_DTYPE_F32, COUNT);
    sb_mem *from = mem_of(source, part), *to = mem_of(target, part);
    sb_mem *bystander = mem_of(target, SB_DIFF - part);
    fill_values(SB_DTYPE_F32, COUNT, 1, 1, values);
    fill_values(SB_DTYPE_F32, COUNT, -50, 3, old);
    mem_place(from, source_head, values, SIZE);
    mem_place(to, target_head, old, SIZE);
    mem_place(bystander, SB_HEAD_SYNCED, old, SIZE);

    const struct tally before_theirs = rig_tally(theirs), before = rig_tally(ours);
    const uint64_t bytes = copied_bytes(ours);
    assert_ok(sb_blob_copy_from(target, part, source, 0, &err));
    const struct tally t = rig_since(theirs, &before_theirs), since = rig_since(ours, &before);

    assert_int_equal(t.downloads, across && source_head == SB_HEAD_AT_GPU);
    assert_int_equal(t.uploads, 0);
    assert_int_equal(since.downloads, 0);
    assert_int_equal(sb_mem_head(bystander), SB_HEAD_SYNCED);
    assert_true(mem_holds(bystander, old, SIZE));
    assert_true(mem_holds(to, source_head ? values : zeros, SIZE));
    if (source_head)
        assert_true(mem_holds(from, values, SIZE));
    if (across)
        return;
    assert_int_equal(sb_mem_head(from), source_head);
    assert_int_equal(sb_mem_head(to), head_after(source_head, target_head));
    assert_int_equal(since.host_copies, source_head == SB_HEAD_AT_CPU);
    assert_int_equal(since.device_copies, source_head > SB_HEAD_AT_CPU);
    assert_int_equal(copied_bytes(ours) - bytes, source_head ? SIZE : 0);
}

TEST_ON(rigs, every_pair_of_heads_within_a_context_and_across_contexts) {
    for (int32_t s = 0; s <= SB_HEAD_SYNCED; s++)
        for (int32_t t = 0; t <= SB_HEAD_SYNCED; t++)
            for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
                for (int across = 0; across < 2; across++)
                    copy(f, across, s, t, part);
}

TEST(the_longest_shape_text_is_whole) {
    int64_t shape[SB_MAX_AXES];
    char text[1024], expected[1024];
    size_t length = 0, used = 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        shape[i] = i ? PTRDIFF_MAX : 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        used +=
            (size_t)snprintf(expected + used, sizeof expected - used, "%lld ", (long long)shape[i]);
    (void)snprintf(expected + used, sizeof expected - used, "(0)");
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, SB_MAX_AXES, shape);
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, &length, &err));
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    assert_ok(sb_blob_shape_string(blob, NULL, 0, NULL, &err));
    assert_names_null("buffer", sb_blob_shape_string(blob, NULL, 5, &length, &err));
}

TEST_ON(rig, the_device_sees_the_shape) {
    skip_on_32_bits("dimensions have 31 bits");
    const int64_t *shape = NULL;
    int64_t seen[4];
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 4, (int64_t[]){2, 3, INT64_C(1) << 33, 0});
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally before = rig_tally(f);
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally since = rig_since(f, &before);
    assert_no_work(&since);
    for (int round = 0; round < 2; round++) {
        assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
        assert_ok(sb_sim_peek(f->context, seen, shape, sizeof seen, &err));
        assert_memory_equal(seen, sb_blob_shape(blob), sizeof seen);
        assert_ok(sb_blob_reshape_legacy(blob, 9, 8, 7, 6, NULL, &err));
    }
    assert_ok(sb_blob_reshape(blob, NULL, 0, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
}
