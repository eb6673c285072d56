/* Tests rules of memories that the state table does not contain: creation, messages, statistics of
   borrowed memory, pinned memory, caps, streams. */
#include "scene.h"

#define BYTES ((size_t)256)
#define WRONG SB_ERR_INVALID_ARGUMENT

/* --- creation, ownership, arguments --------------------------------------------- */

TEST_ON(rig, creation_allocates_no_buffer) {
    int64_t buffers = f->counting.buffer_calls;
    struct tally before = rig_tally(f);
    sb_mem *mem = test_mem(f->context, PTRDIFF_MAX);
    assert_int_equal(sb_mem_size(mem), PTRDIFF_MAX);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_NONE);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_GPU), SB_STORAGE_NONE);
    assert_int_equal(sb_mem_storage(mem, 7), SB_STORAGE_NONE);
    assert_ptr_equal(sb_mem_context(mem), f->context);
    struct tally t = rig_since(f, &before);
    assert_no_work(&t);
    assert_int_equal(f->counting.buffer_calls, buffers);
}

/* --- borrowed memory --------------------------------------------------------------- */

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
    void *out;
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    assert_error(WRONG, sb_mem_async_cpu_pull(mem, NULL, &err),
                 "the newest bytes are on the host already");
    assert_error(WRONG, sb_mem_evict_cpu(mem, &err), "the host holds the only current bytes");
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_error(WRONG, sb_mem_async_gpu_push(mem, NULL, &err),
                 "the newest bytes are on the device already");
    assert_error(WRONG, sb_mem_evict_gpu(mem, &err), "the device holds the only current bytes");
}

/* --- pinned memory -------------------------------------------------------------------- */

static sb_mem *touched(sb_context *context, size_t bytes, int32_t expected_storage) {
    sb_mem *mem = test_mem(context, bytes);
    assert_true(bytes_are(read_cpu(mem), bytes, 0));
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), expected_storage);
    return mem;
}

TEST_ON(rig, host_memory_is_pinned_up_to_the_cap) {
    skip_if_coherent();
    rig_reopen_options(f, CONTEXT_OPTIONS(.device = "sim:0", .max_pinned_bytes = 3 * BYTES));
    sb_mem *first = touched(f->context, 2 * BYTES, SB_STORAGE_PINNED);
    assert_int_equal(rig_stats(f).pinned_bytes, 2 * BYTES);
    (void)touched(f->context, 2 * BYTES, SB_STORAGE_OWNED);
    sb_mem *last = touched(f->context, BYTES, SB_STORAGE_PINNED);
    assert_int_equal(rig_stats(f).pinned_bytes, 3 * BYTES);
    assert_int_equal(rig_stats(f).pinned_peak, 3 * BYTES);
    test_end(first);
    test_end(last);
    sb_context_trim(f->context);
    assert_int_equal(rig_stats(f).pinned_bytes, 0);
    assert_int_equal(rig_stats(f).pinned_peak, 3 * BYTES);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Uses more streams than there are bits in the set in which a memory records its streams. */
TEST_ON(rig, a_memory_waits_for_any_number_of_streams) {
    enum { MANY = 100 };
    const void *in = NULL;
    sb_stream streams[MANY];
    struct look looks[MANY];
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    sb_mem *other = test_mem(f->context, BYTES);
    for (int i = 0; i < MANY; i++) {
        streams[i] = rig_stream(f);
        assert_ok(sb_mem_gpu_on(i % 2 ? mem : other, streams[i], &in, &err));
        rig_look(&looks[i], f, streams[i], in, BYTES);
    }
    test_end(mem);
    test_end(other);
    assert_ok(sb_context_synchronize(f->context, &err));
    for (int i = 0; i < MANY; i++)
        if (!looks[i].ran || !looks[i].reached)
            fail_with("the memory was freed before work on stream %d", i);
    for (int i = 0; i < MANY; i++)
        rig_end_stream(f, streams[i]);
}

/* Later work on a transfer's stream runs after the transfer, even without an event. */
TEST_ON(rig, a_stream_is_not_ordered_after_itself) {
    const void *in;
    void *out;
    rig_schedule(f, SB_SIM_LAZY, 0);
    const sb_stream stream = rig_stream(f), other = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
    struct tally before = rig_tally(f);
    assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
    struct tally since = rig_since(f, &before);
    assert_int_equal(since.calls[SB_SIM_EVENT_RECORD] + since.calls[SB_SIM_STREAM_WAIT], 0);
    assert_ok(sb_mem_gpu_on(mem, other, &in, &err));
    since = rig_since(f, &before);
    assert_int_equal(since.calls[SB_SIM_STREAM_WAIT], !sim_is_coherent()); /* coherent: no copy */
    test_end(mem);
    rig_end_stream(f, other);
    rig_end_stream(f, stream);
}

TEST_ON(rig, forgotten_streams_cost_nothing) {
    const void *in;
    uint64_t first = 0;
    sb_mem *mem = test_mem(f->context, BYTES);
    for (int i = 0; i < 100; i++) {
        sb_stream stream = rig_stream(f);
        assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
        rig_end_stream(f, stream);
        if (i == 0)
            first = rig_stats(f).host_bytes;
    }
    assert_int_equal(rig_stats(f).host_bytes, first);
}
