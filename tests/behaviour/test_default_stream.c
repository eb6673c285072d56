/* A device without a default stream: NULL is the library's stream, and work is ordered after that
   stream for the sake of plain pointers only if a caller has the stream. */
#include "scene.h"

#include "sim/table.h"

#define BYTES ((size_t)256)

static sb_backend table; /* the simulated device, whose slots must not be passed NULL */

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

static void reopen_without_default(struct rig *rig) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    table = sb__sim_backend;
    table.flags |= SB_BACKEND_NO_DEFAULT_STREAM;
    table.check_stream = check_stream;
    table.stream_synchronize = stream_synchronize;
    table.event_record = event_record;
    options.device = "sim:0";
    options.backend = &table;
    rig_reopen_options(rig, options);
}

/* Returns the orders between streams since `before`. */
static int64_t orders_since(struct rig *rig, const struct tally *before) {
    const struct tally since = rig_since(rig, before);
    assert_int_equal(since.calls[SB_SIM_EVENT_RECORD], since.calls[SB_SIM_STREAM_WAIT]);
    return since.calls[SB_SIM_STREAM_WAIT];
}

TEST_ON(rig, null_is_the_librarys_stream) {
    const void *in;
    void *out;
    sb_stream own;
    reopen_without_default(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_overwrite_gpu_on(mem, NULL, &out, &err));
    assert_ok(sb_context_stream(f->context, &own, &err));
    const struct tally before = rig_tally(f);
    assert_ok(sb_mem_gpu_on(mem, own, &in, &err));
    assert_ok(sb_mem_mutable_gpu_on(mem, NULL, &out, &err));
    assert_ok(sb_mem_mutable_gpu_on(mem, own, &out, &err));
    assert_int_equal(orders_since(f, &before), 0);
    assert_ok(sb_context_forget_stream(f->context, NULL, &err));
    assert_ok(sb_context_synchronize(f->context, &err));
}

TEST_ON(rig, plain_pointers_cost_no_order_until_a_caller_has_the_stream) {
    const void *in;
    void *out;
    sb_stream own;
    reopen_without_default(f);
    const sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    struct tally before = rig_tally(f);
    assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
    assert_ok(sb_mem_mutable_gpu_on(mem, stream, &out, &err));
    assert_int_equal(orders_since(f, &before), 0);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_ok(sb_context_stream(f->context, &own, &err));
    before = rig_tally(f);
    assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
    assert_int_equal(orders_since(f, &before), 1);
    test_end(mem);
    rig_end_stream(f, stream);
}

/* Work on the library's stream, which a caller has queued, is complete for a stream that the memory
   is passed to next, and before the memory is freed. */
TEST_ON(rig, work_of_the_caller_on_the_librarys_stream_is_ordered) {
    void *out;
    const void *in;
    sb_stream own;
    struct look looks[2];
    reopen_without_default(f);
    rig_schedule(f, SB_SIM_LAZY, 0);
    const sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_context_stream(f->context, &own, &err));
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    rig_look(&looks[0], f, own, out, BYTES);
    assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
    assert_ok(sb_context_forget_stream(f->context, stream, &err));
    assert_true(looks[0].ran); /* the stream waited for it */
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    rig_look(&looks[1], f, own, out, BYTES);
    test_end(mem);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_true(looks[1].ran && looks[1].reached);
    rig_end_stream(f, stream);
}
