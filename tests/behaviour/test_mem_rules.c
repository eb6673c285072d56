/* Tests rules of memories that the state table does not contain: messages, statistics of borrowed
   memory, streams. */
#include "pointers.h"
#include "scene.h"

#define BYTES ((size_t)256)
#define WRONG SB_ERR_INVALID_ARGUMENT

TEST_ON(rig, borrowed_bytes_are_counted_separately) {
    rig_reopen_on(f, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    sb_mem *mem = test_mem(f->context, BYTES);
    sb_stats before = rig_stats(f);
    struct lent host = lend_host(BYTES, LENT), device = lend_device(f->context, BYTES, LENT);
    uint64_t device_bytes = rig_stats(f).device_bytes;
    assert_ok(sb_mem_set_cpu(mem, host.ptr, BYTES, 0, lent_deleter, &host, &err));
    assert_int_equal(rig_stats(f).borrowed_bytes, BYTES);
    assert_ok(sb_mem_set_gpu(mem, device.ptr, BYTES, 0, lent_deleter, &device, &err));
    assert_int_equal(rig_stats(f).borrowed_bytes, 2 * BYTES);
    assert_int_equal(f->counting.live_buffers, 0);
    assert_int_equal(rig_stats(f).pinned_bytes, before.pinned_bytes);
    assert_int_equal(rig_stats(f).device_bytes, device_bytes);
    assert_ok(sb_mem_evict_cpu(mem, &err));
    assert_int_equal(rig_stats(f).borrowed_bytes, BYTES);
    test_end(mem);
    assert_int_equal(rig_stats(f).borrowed_bytes, 0);
    assert_int_equal(host.deleted, 1);
    assert_int_equal(device.deleted, 1);
}

TEST_ON(rig, a_refusal_reports_the_side_of_the_bytes) {
    sb_mem *mem = test_mem(f->context, BYTES);
    (void)mem_pointer(mem, MUTABLE_CPU);
    assert_error(WRONG, sb_mem_async_cpu_pull(mem, NULL, &err),
                 "the newest bytes are on the host already");
    assert_error(WRONG, sb_mem_evict_cpu(mem, &err), "the host holds the only current bytes");
    (void)mem_pointer(mem, MUTABLE_GPU);
    assert_error(WRONG, sb_mem_async_gpu_push(mem, NULL, &err),
                 "the newest bytes are on the device already");
    assert_error(WRONG, sb_mem_evict_gpu(mem, &err), "the device holds the only current bytes");
}

/* Uses more streams than there are bits in the set in which a memory records its streams. */
TEST_ON(rig, a_memory_waits_for_any_number_of_streams) {
    enum { MANY = 100 };
    struct look looks[MANY];
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    sb_mem *other = test_mem(f->context, BYTES);
    for (int i = 0; i < MANY; i++) {
        const sb_stream stream = rig_stream(f);
        const void *in = mem_pointer_on(i % 2 ? mem : other, GPU_DATA_ON, stream);
        rig_look(&looks[i], f, stream, in, BYTES);
    }
    test_end(mem);
    test_end(other);
    assert_ok(sb_context_synchronize(f->context, &err));
    for (int i = 0; i < MANY; i++)
        if (!looks[i].ran || !looks[i].reached)
            fail_with("the memory was freed before work on stream %d", i);
}

/* Later work on a transfer's stream runs after the transfer, even without an event. */
TEST_ON(rig, a_stream_is_not_ordered_after_itself) {
    rig_schedule(f, SB_SIM_LAZY, 0);
    const sb_stream stream = rig_stream(f), other = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    (void)mem_pointer(mem, MUTABLE_CPU);
    (void)mem_pointer_on(mem, GPU_DATA_ON, stream);
    struct tally before = rig_tally(f);
    (void)mem_pointer_on(mem, GPU_DATA_ON, stream);
    struct tally since = rig_since(f, &before);
    assert_int_equal(since.calls[SB_SIM_EVENT_RECORD] + since.calls[SB_SIM_STREAM_WAIT], 0);
    (void)mem_pointer_on(mem, GPU_DATA_ON, other);
    since = rig_since(f, &before);
    assert_int_equal(since.calls[SB_SIM_STREAM_WAIT], 1);
}

TEST_ON(rig, the_host_writes_separate_storage_without_a_wait) {
    sb_mem *mem = test_filled(f->context, BYTES, CURRENT);
    (void)mem_pointer(mem, GPU_DATA);
    const struct tally before = rig_tally(f);
    (void)mem_pointer(mem, MUTABLE_CPU);
    const struct tally since = rig_since(f, &before);
    assert_no_work(&since);
}

TEST_ON(rig, forgotten_streams_cost_nothing) {
    uint64_t first = 0;
    sb_mem *mem = test_mem(f->context, BYTES);
    for (int i = 0; i < 100; i++) {
        sb_stream stream = rig_stream(f);
        (void)mem_pointer_on(mem, GPU_DATA_ON, stream);
        rig_end_stream(f, stream);
        if (i == 0)
            first = rig_stats(f).host_bytes;
    }
    assert_int_equal(rig_stats(f).host_bytes, first);
}
