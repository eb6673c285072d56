/* Memories beside the state table: creation, messages, figures of loans, pinned memory, caps,
   streams. */
#include "scene.h"

#define BYTES ((size_t)256)
#define WRONG SB_ERR_INVALID_ARGUMENT

TEST(the_built_in_context_works_like_any_host) {
    const void *ptr;
    sb_mem *mem = test_mem(NULL, BYTES);
    assert_null(sb_mem_context(mem));
    assert_ok(sb_mem_cpu(mem, &ptr, &err));
    assert_true(bytes_are(ptr, BYTES, 0));
    const sb_stream streams[] = {NULL, (sb_stream)&err};
    for (int i = 0; i < 2; i++) {
        assert_status(SB_ERR_NO_DEVICE, sb_mem_async_gpu_push(mem, streams[i], &err));
        assert_status(SB_ERR_NO_DEVICE, sb_mem_async_cpu_pull(mem, streams[i], &err));
    }
    assert_status(SB_ERR_NO_DEVICE, sb_mem_gpu(mem, &ptr, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
}

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

TEST_ON(rig, borrowed_bytes_are_accounted_apart) {
    sb_mem *mem;
    rig_reopen_on(f, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(sb_mem_create(f->context, BYTES, &mem, &err));
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
    sb_mem_release(mem);
    assert_int_equal(rig_stats(f).borrowed_bytes, 0);
    assert_int_equal(host.deleted, 1);
    assert_int_equal(device.deleted, 1);
    lent_free(&host);
    lent_free(&device);
}

TEST_ON(rig, lending_the_same_pointer_again_ends_the_first_loan) {
    sb_mem *mem;
    rig_reopen_on(f, "cpu", 0);
    assert_ok(sb_mem_create(f->context, BYTES, &mem, &err));
    struct lent first = lend_host(BYTES, LENT), second = first;
    assert_ok(sb_mem_set_cpu(mem, first.ptr, BYTES, 0, lent_deleter, &first, &err));
    assert_ok(sb_mem_set_cpu(mem, first.ptr, BYTES, 0, lent_deleter, &second, &err));
    assert_int_equal(first.deleted, 1);
    assert_int_equal(second.deleted, 0);
    sb_mem_release(mem);
    assert_int_equal(first.deleted, 1);
    assert_int_equal(second.deleted, 1);
    lent_free(&first);
}

TEST_ON(rig, a_refusal_says_where_the_bytes_are) {
    void *out;
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    assert_status(WRONG, sb_mem_async_cpu_pull(mem, NULL, &err));
    assert_string_equal(err.message, "the newest bytes are on the host already");
    assert_status(WRONG, sb_mem_evict_cpu(mem, &err));
    assert_string_equal(err.message, "the host holds the only current bytes");
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_status(WRONG, sb_mem_async_gpu_push(mem, NULL, &err));
    assert_string_equal(err.message, "the newest bytes are on the device already");
    assert_status(WRONG, sb_mem_evict_gpu(mem, &err));
    assert_string_equal(err.message, "the device holds the only current bytes");
}

/* --- pinned memory -------------------------------------------------------------------- */

static int32_t kind_of_touched(sb_context *context, size_t bytes, sb_mem **out) {
    assert_ok(sb_mem_create(context, bytes, out, &err));
    assert_true(bytes_are(read_cpu(*out), bytes, 0));
    return sb_mem_storage(*out, SB_SIDE_CPU);
}

TEST_ON(rig, host_memory_is_pinned_up_to_the_cap) {
    sb_mem *a, *b, *c;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:0";
    options.max_pinned_bytes = 3 * BYTES;
    rig_reopen_options(f, options);
    assert_int_equal(kind_of_touched(f->context, 2 * BYTES, &a), SB_STORAGE_PINNED);
    assert_int_equal(rig_stats(f).pinned_bytes, 2 * BYTES);
    assert_int_equal(kind_of_touched(f->context, 2 * BYTES, &b), SB_STORAGE_OWNED);
    assert_int_equal(kind_of_touched(f->context, BYTES, &c), SB_STORAGE_PINNED);
    assert_int_equal(rig_stats(f).pinned_bytes, 3 * BYTES);
    assert_int_equal(rig_stats(f).pinned_peak, 3 * BYTES);
    sb_mem_release(a);
    sb_mem_release(b);
    sb_mem_release(c);
    sb_context_trim(f->context);
    assert_int_equal(rig_stats(f).pinned_bytes, 0);
    assert_int_equal(rig_stats(f).pinned_peak, 3 * BYTES);
}

TEST_ON(rig, memory_is_ordinary_when_pinning_fails) {
    sb_mem *mem;
    device_fail(f->context, SB_SIM_ALLOC_PINNED, 1, SB_SIM_FAIL_NOW);
    assert_int_equal(kind_of_touched(f->context, BYTES, &mem), SB_STORAGE_OWNED);
    assert_true(device_bytes_are(f->context, read_gpu(mem), BYTES, 0));
    sb_mem_release(mem);
    assert_int_equal(kind_of_touched(f->context, BYTES, &mem), SB_STORAGE_PINNED);
    sb_mem_release(mem);
}

/* --- caps ------------------------------------------------------------------------------ */

TEST_ON(rig, caps_refuse_and_change_nothing) {
    sb_mem *mem;
    const void *in = NULL;
    void *out = NULL;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "sim:0";
    options.flags = SB_CONTEXT_NO_PINNED;
    options.max_host_bytes = (size_t)1 << 20;
    options.max_device_bytes = (size_t)1 << 20;
    rig_reopen_options(f, options);
    assert_ok(sb_mem_create(f->context, ((size_t)1 << 20) + 1, &mem, &err));
    const sb_status cap = SB_ERR_CAP_REACHED;
    assert_status(cap, sb_mem_cpu(mem, &in, &err));
    assert_status(cap, sb_mem_mutable_cpu(mem, &out, &err));
    assert_status(cap, sb_mem_overwrite_cpu(mem, &out, &err));
    assert_status(cap, sb_mem_prefetch_cpu(mem, NULL, &err));
    assert_status(cap, sb_mem_gpu(mem, &in, &err));
    assert_status(cap, sb_mem_mutable_gpu(mem, &out, &err));
    assert_status(cap, sb_mem_overwrite_gpu(mem, &out, &err));
    assert_status(cap, sb_mem_prefetch_gpu(mem, NULL, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    assert_null(in);
    assert_null(out);
    struct lent lent = lend_host(((size_t)1 << 20) + 1, LENT); /* lent memory is under no cap */
    assert_ok(sb_mem_set_cpu(mem, lent.ptr, lent.bytes, 0, lent_deleter, &lent, &err));
    assert_status(cap, sb_mem_gpu(mem, &in, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    sb_mem_release(mem);
    lent_free(&lent);
    assert_true(rig_stats(f).host_peak <= (size_t)1 << 20);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Storage that a failed call left behind belongs to the stream that it was allocated on. */
TEST_ON(rig, spare_storage_is_zeroed_after_its_allocation) {
    const void *out;
    sb_stream first = rig_stream(f), second = rig_stream(f);
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    device_fail(f->context, SB_SIM_ZERO, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_gpu_on(mem, first, &out, &err));
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_GPU), SB_STORAGE_OWNED);
    device_fail(f->context, SB_SIM_STREAM_WAIT, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_gpu_on(mem, second, &out, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
    assert_ok(sb_mem_gpu_on(mem, second, &out, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(device_bytes_are(f->context, out, BYTES, 0));
    test_end(mem);
    rig_end_stream(f, first);
    rig_end_stream(f, second);
}

/* More than there are bits in a memory's set of streams. */
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
            fail_with("the memory went before the work on stream %d", i);
    for (int i = 0; i < MANY; i++)
        rig_end_stream(f, streams[i]);
}

/* Forgotten ones leave room: their slots are taken again. */
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
