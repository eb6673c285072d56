/* Tests sb_blob_copy_from for every pair of heads, in one context and across contexts. The fuzz
   target reshape tests copies that are refused, copies with SB_COPY_RESHAPE, and copies between
   blobs that share memory. */
#include "blobs.h"

#define COUNT 12
#define SIZE  (COUNT * sizeof(float))

/* Returns the target's head after a copy, which runs on the side of the source's head. If the
   source was never written, the target is zeroed on the side of the target's head. */
static int32_t head_after(int32_t source_head, int32_t target_head) {
    const int32_t head = source_head == SB_HEAD_UNINITIALIZED ? target_head : source_head;
    return head <= SB_HEAD_AT_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
}

static uint64_t copied_bytes(struct rig *rig) {
    const sb_stats stats = rig_stats(rig);
    return stats.host_copy_bytes + stats.device_copy_bytes;
}

static void copy_within(struct rig *rig, int32_t source_head, int32_t target_head, sb_part part) {
    float values[COUNT], old[COUNT], zeros[COUNT] = {0};
    rig_reopen_on(rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    sb_blob *source = test_vector(rig->context, SB_DTYPE_F32, COUNT);
    sb_blob *target = test_vector(rig->context, SB_DTYPE_F32, COUNT);
    sb_mem *from = mem_of(source, part), *to = mem_of(target, part);
    sb_mem *bystander = mem_of(target, SB_DIFF - part);
    fill_values(SB_DTYPE_F32, COUNT, 1, 1, values);
    fill_values(SB_DTYPE_F32, COUNT, -50, 3, old);
    mem_place(from, source_head, values, SIZE);
    mem_place(to, target_head, old, SIZE);
    mem_place(bystander, SB_HEAD_SYNCED, old, SIZE);

    struct tally before = rig_tally(rig);
    const uint64_t bytes = copied_bytes(rig);
    assert_ok(sb_blob_copy_from(target, part, source, 0, &err));
    struct tally t = rig_since(rig, &before);

    assert_int_equal(t.uploads + t.downloads, 0); /* no copy between host and device */
    assert_int_equal(sb_mem_head(from), source_head);
    assert_int_equal(sb_mem_head(to), head_after(source_head, target_head));
    assert_int_equal(sb_mem_head(bystander), SB_HEAD_SYNCED);
    assert_true(mem_holds(bystander, old, SIZE));
    if (source_head == SB_HEAD_UNINITIALIZED) {
        assert_int_equal(t.host_copies + t.device_copies, 0);
        assert_true(mem_holds(to, zeros, SIZE));
    } else {
        assert_int_equal(t.host_copies, source_head == SB_HEAD_AT_CPU);
        assert_int_equal(t.device_copies, source_head != SB_HEAD_AT_CPU);
        assert_int_equal(copied_bytes(rig) - bytes, SIZE);
        assert_true(mem_holds(to, values, SIZE));
        assert_true(mem_holds(from, values, SIZE));
    }
}

TEST_ON(rig, every_pair_of_heads_within_a_context) {
    for (int32_t s = 0; s <= SB_HEAD_SYNCED; s++)
        for (int32_t t = 0; t <= SB_HEAD_SYNCED; t++)
            for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
                copy_within(f, s, t, part);
}

static void copy_across(struct rigs *rigs, int32_t source_head, int32_t target_head) {
    float values[COUNT], old[COUNT], zeros[COUNT] = {0};
    sb_blob *source = test_vector(rigs->a.context, SB_DTYPE_F32, COUNT);
    sb_blob *target = test_vector(rigs->b.context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, 1, 1, values);
    fill_values(SB_DTYPE_F32, COUNT, -50, 3, old);
    mem_place(data_of(source), source_head, values, SIZE);
    mem_place(data_of(target), target_head, old, SIZE);
    struct tally before_a = rig_tally(&rigs->a), before_b = rig_tally(&rigs->b);
    assert_ok(sb_blob_copy_from(target, SB_DATA, source, 0, &err));
    struct tally t = rig_since(&rigs->a, &before_a);
    assert_int_equal(t.downloads, source_head == SB_HEAD_AT_GPU && !sim_is_coherent());
    assert_int_equal(t.uploads, 0);
    t = rig_since(&rigs->b, &before_b);
    assert_int_equal(t.downloads, 0); /* the target's old bytes are not downloaded */
    assert_memory_equal(host_of(target, SB_DATA), source_head ? values : zeros, SIZE);
    if (source_head)
        assert_true(mem_holds(data_of(source), values, SIZE));
}

/* The fuzz target reshape tests copies between a device and the host of another context. */
TEST_ON(rigs, every_pair_of_heads_across_contexts) {
    for (int32_t s = 0; s <= SB_HEAD_SYNCED; s++)
        for (int32_t t = 0; t <= SB_HEAD_SYNCED; t++)
            copy_across(f, s, t);
}
