/* Tests a device without a default stream: a NULL stream means the library's stream. */
#include "pointers.h"
#include "scene.h"

#include "sim/table.h"

#define BYTES ((size_t)256)

static sb_backend table; /* the simulated device's table, with slots that refuse a NULL stream */

static sb_status check_stream(void *device, sb_stream stream, sb_error *err) {
    assert_non_null(stream);
    return sb__sim_backend.check_stream(device, stream, err);
}

static sb_status stream_synchronize(void *device, sb_stream stream, sb_error *err) {
    assert_non_null(stream);
    return sb__sim_backend.stream_synchronize(device, stream, err);
}

static sb_status event_record(void *device, sb_stream stream, void **out, sb_error *err) {
    assert_non_null(stream);
    return sb__sim_backend.event_record(device, stream, out, err);
}

/* The slot read_stream. The library calls the slot once, and the device destroys the stream. */
static sb_stream read_stream(void *device) {
    const sb_sim_device *sim = sb__sim_backend.extension(device, SB_SIM_DEVICE);
    sb_stream stream;
    sim->lock(device);
    assert_ok(sim->stream_create(device, &stream, &err));
    sim->unlock(device);
    return stream;
}

static void reopen_without_default(struct rig *rig) {
    table = sb__sim_backend;
    table.flags |= SB_BACKEND_NO_DEFAULT_STREAM;
    table.check_stream = check_stream;
    table.stream_synchronize = stream_synchronize;
    table.event_record = event_record;
    table.read_stream = read_stream;
    rig_reopen_options(rig, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
}

/* Returns how many times the library has made a stream wait for another stream since `before`. */
static int64_t orders_since(struct rig *rig, const struct tally *before) {
    const struct tally since = rig_since(rig, before);
    assert_int_equal(since.calls[SB_SIM_EVENT_RECORD], since.calls[SB_SIM_STREAM_WAIT]);
    return since.calls[SB_SIM_STREAM_WAIT];
}

static sb_stream own_stream(struct rig *rig) {
    sb_stream own;
    assert_ok(sb_context_stream(rig->context, &own, &err));
    return own;
}

TEST_ON(rig, null_is_the_librarys_stream) {
    reopen_without_default(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    (void)mem_pointer_on(mem, OVERWRITE_GPU_ON, NULL);
    const sb_stream own = own_stream(f);
    const struct tally before = rig_tally(f);
    (void)mem_pointer_on(mem, GPU_DATA_ON, own);
    (void)mem_pointer_on(mem, MUTABLE_GPU_ON, NULL);
    (void)mem_pointer_on(mem, MUTABLE_GPU_ON, own);
    assert_int_equal(orders_since(f, &before), 0);
    assert_ok(sb_context_forget_stream(f->context, NULL, &err));
    assert_ok(sb_context_synchronize(f->context, &err));
}

/* --- reads while the library's stream is busy ------------------------------------------ */

/* Queues work on the library's stream. The work does not run before a call waits for the work. */
static void make_busy(struct rig *rig, struct look *look) {
    const void *in = mem_pointer(test_mem(rig->context, BYTES), GPU_DATA);
    rig_schedule(rig, SB_SIM_LAZY, 0);
    rig_look(look, rig, own_stream(rig), in, BYTES);
}

TEST_ON(rig, a_read_does_not_wait_for_other_work_of_the_library) {
    struct look busy, look;
    reopen_without_default(f);
    make_busy(f, &busy);
    const sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    rig_look(&look, f, stream, mem_pointer_on(mem, OVERWRITE_GPU_ON, stream), BYTES);
    (void)mem_pointer(mem, CPU_DATA);
    assert_true(look.ran);
    assert_false(busy.ran);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_true(busy.ran);
}

/* A read waits for the library's writes, and for writes through a pointer from a call without a
   stream. */
TEST_ON(rig, a_read_waits_for_writes_on_the_librarys_stream) {
    struct look busy;
    for (int exposed = 0; exposed < 2; exposed++) {
        reopen_without_default(f);
        sb_mem *mem = test_mem(f->context, BYTES);
        if (exposed)
            (void)mem_pointer(mem, MUTABLE_GPU);
        else
            (void)mem_pointer_on(mem, MUTABLE_GPU_ON, NULL);
        make_busy(f, &busy);
        assert_false(busy.ran);
        assert_true(bytes_are(mem_pointer(mem, CPU_DATA), BYTES, 0));
        assert_true(busy.ran);
    }
}

/* If a wait fails, the queued work may still be running and use the host's storage. */
TEST_ON(rig, storage_of_a_read_that_may_still_run_is_not_freed) {
    const void *in;
    for (int waits = 0; waits <= 2; waits++) { /* how many waits for a stream also fail */
        reopen_without_default(f);
        rig_schedule(f, SB_SIM_LAZY, 0);
        sb_mem *mem = test_mem(f->context, BYTES);
        (void)mem_pointer(mem, MUTABLE_GPU);
        device_fail(f->context, SB_SIM_EVENT_RECORD, 1, SB_SIM_FAIL_NOW);
        device_fail_run(f->context, SB_SIM_STREAM_SYNCHRONIZE, 1, waits);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_cpu(mem, &in, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_GPU);
        assert_true(bytes_are(mem_pointer(mem, CPU_DATA), BYTES, 0));
        test_end(mem);
        device_fail_no_more(f->context);
        assert_ok(sb_context_synchronize(f->context, &err));
    }
}
