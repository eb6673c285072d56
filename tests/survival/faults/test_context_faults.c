/* A context's own calls while the device or the allocator fails. */
#include "blobs.h"
#include "faults.h"

struct queued {
    struct rig rig;
    sb_mem *mem;
    sb_stream stream;
};

/* A push is queued on a stream of the caller's. */
static void queued_open(struct queued *q) {
    rig_open_on(&q->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    q->stream = rig_stream(&q->rig);
    q->mem = mem_filled(q->rig.context, 64, 0x21);
    rig_schedule(&q->rig, SB_SIM_LAZY, 1);
    assert_ok(sb_mem_async_gpu_push(q->mem, q->stream, &err));
}

static void queued_close(struct queued *q) {
    sb_mem_release(q->mem);
    ignore(sb_context_forget_stream(q->rig.context, q->stream, NULL));
    ignore(sb_sim_stream_destroy(q->rig.context, q->stream, NULL));
    rig_close(&q->rig);
}

enum call { SYNCHRONIZE, FORGET_STREAM, STREAM, PREPARE, STATS, TRIM, CALLS };

static sb_status call_context(struct queued *q, enum call call, sb_error *err) {
    sb_stream stream;
    sb_stats stats = SB_STATS_INIT;
    switch (call) {
    case SYNCHRONIZE:
        return sb_context_synchronize(q->rig.context, err);
    case FORGET_STREAM:
        return sb_context_forget_stream(q->rig.context, q->stream, err);
    case STREAM:
        return sb_context_stream(q->rig.context, &stream, err);
    case PREPARE:
        return sb_context_prepare_arithmetic(q->rig.context, err);
    case STATS:
        return sb_context_stats(q->rig.context, &stats, err);
    default:
        sb_context_trim(q->rig.context);
        return SB_OK;
    }
}

/* How often a call waits for an event where nothing fails. */
static int64_t waits_of(enum call call) {
    struct queued q;
    queued_open(&q);
    const struct tally before = rig_tally(&q.rig);
    (void)call_context(&q, call, NULL);
    const int64_t waits = rig_since(&q.rig, &before).calls[SB_SIM_EVENT_WAIT];
    queued_close(&q);
    return waits;
}

static bool try_call(enum call call, enum fault fault, int64_t nth) {
    struct queued q;
    const void *in;
    queued_open(&q);
    struct armed armed = fault_arm(&q.rig, fault, nth);
    support_poison_error(&err);
    const struct tally before = rig_tally(&q.rig);
    sb_status status = call_context(&q, call, &err);
    const struct tally since = rig_since(&q.rig, &before);
    bool fired = fault_disarm(&armed);
    support_check_status(status, status, &err, "a call of the context", __FILE__, __LINE__);
    /* an event is asked for first, and it goes without where there is none */
    bool does_without = call == FORGET_STREAM && fault == FAULT_NOW && nth == 1;
    /* the copy's own event is asked once more */
    does_without |= since.calls[SB_SIM_EVENT_WAIT] > waits_of(call);
    assert_int_equal(status != SB_OK, fired && !does_without);
    assert_int_equal(sb_mem_head(q.mem), SB_HEAD_SYNCED);
    if (status != SB_OK)
        assert_true(fault_explains(fault, status, false));
    assert_ok(sb_mem_cpu(q.mem, &in, &err));
    assert_true(bytes_are(in, 64, 0x21));
    if (fired && fault == FAULT_STICKY) {
        assert_int_equal(sb_context_device_status(q.rig.context), SB_ERR_DEVICE_LOST);
    } else {
        assert_ok(call_context(&q, call, &err));
        assert_ok(sb_mem_gpu(q.mem, &in, &err));
        assert_true(device_bytes_are(q.rig.context, in, 64, 0x21));
    }
    queued_close(&q);
    return fired;
}

TEST(every_call_survives_every_fault) {
    for (enum call call = 0; call < CALLS; call++)
        for (enum fault fault = 0; fault < FAULTS; fault++)
            for (int64_t n = 1; try_call(call, fault, n); n++)
                assert_true(n < 50);
}

/* The failure belongs to the memory, whose head goes back, and not to who waited first. */
TEST_ON(rig, a_failed_push_is_still_told_after_the_stream_is_forgotten) {
    const void *in;
    sb_stream stream = rig_stream(f);
    sb_mem *mem = test_mem(f->context, 64);
    assert_ok(sb_mem_cpu(mem, &in, &err));
    device_fail(f->context, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    assert_ok(sb_mem_async_gpu_push(mem, stream, &err));
    ignore(sb_context_forget_stream(f->context, stream, NULL));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_synchronize(mem, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
}

TEST_ON(rig, a_lost_context_still_serves_the_host) {
    float *x;
    double sum = -1;
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 3);
    device_fail(f->context, SB_SIM_ANY, 1, SB_SIM_FAIL_STICKY);
    assert_int_not_equal(sb_context_synchronize(f->context, NULL), SB_OK);
    assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DATA, &x, &err));
    x[0] = x[1] = x[2] = 2;
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 6);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_gpu_f32(blob, SB_DATA, (const float **)&x, &err));
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_overwrite_gpu_f32(blob, SB_DATA, &x, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
}
