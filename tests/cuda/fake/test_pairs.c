/* Two calls of the driver or of cuBLAS fail in one operation, each pair of them in turn: whatever
   becomes of the operation, the caller's context and capture mode stay, memory of the device is
   what the library counts, and at the end nothing is left. */
#include "fixture.h"

#include "context/context.h"

enum { COUNT = 300, BYTES = COUNT * (int)sizeof(float), LARGE = 128 << 10, NEAR = 4 };

struct scene {
    struct stage stage;
    CUcontext caller; /* another device's, and current */
    CUstream stream;
    sb_context *other; /* of the same device */
    sb_blob *blob;     /* data and diff are on the device, and the caller holds pointers to them */
    sb_mem *host, *pushed, *elsewhere, *large;
};

/* --- operations ------------------------------------------------------------------------------ */

#define CALL(name, expression)                                                                     \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }

CALL(upload, sb_mem_gpu(s->host, &(const void *){NULL}, err))
CALL(upload_on, sb_mem_gpu_on(s->host, (sb_stream)s->stream, &(const void *){NULL}, err))
CALL(download, sb_mem_cpu(data_of(s->blob), &(const void *){NULL}, err))
CALL(asum, sb_blob_asum(s->blob, SB_DATA, &(double){0}, err))
CALL(sumsq, sb_blob_sumsq(s->blob, SB_DATA, &(double){0}, err))
CALL(update, sb_blob_update(s->blob, err))
CALL(scale, sb_blob_scale_on(s->blob, SB_DATA, 2, (sb_stream)s->stream, err))
CALL(clear, sb_blob_clear(s->blob, SB_DATA, err))
CALL(evict, sb_mem_evict_cpu(s->pushed, err))
CALL(synchronize, sb_context_synchronize(s->stage.context, err))
CALL(forget, sb_context_forget_stream(s->stage.context, (sb_stream)s->stream, err))

static sb_status push(struct scene *s, sb_error *err) {
    sb_status st = sb_mem_async_gpu_push(s->host, (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(s->host, err) : st;
}

static sb_status pull(struct scene *s, sb_error *err) {
    sb_status st = sb_mem_async_cpu_pull(data_of(s->blob), (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status copy(struct scene *s, sb_error *err) {
    sb_blob *made;
    sb_status st = sb_blob_create(s->stage.context, SB_DTYPE_F32, &made, err);
    if (st == SB_OK) {
        st = sb_blob_copy_from(made, SB_DATA, s->blob, SB_COPY_RESHAPE, err);
        sb_blob_destroy(made);
    }
    return st;
}

static sb_status release(struct scene *s, sb_error *err) {
    (void)err;
    test_end(s->pushed);
    return SB_OK;
}

static sb_status release_let_out(struct scene *s, sb_error *err) {
    (void)err;
    test_end(s->blob);
    return SB_OK;
}

static sb_status release_large(struct scene *s, sb_error *err) {
    (void)err;
    test_end(s->large);
    return SB_OK;
}

static sb_status trim(struct scene *s, sb_error *err) {
    (void)err;
    sb_context_trim(s->stage.context);
    return SB_OK;
}

static sb_status destroy(struct scene *s, sb_error *err) {
    (void)err;
    test_end(s->elsewhere);
    test_end(s->other);
    s->other = NULL;
    return SB_OK;
}

static sb_status come_and_go(struct scene *s, sb_error *err) {
    (void)s;
    return cuda_come_and_go(err);
}

/* Of a device on which nobody has done arithmetic yet. */
static sb_status prepare(struct scene *s, sb_error *err) {
    sb_context *context;
    (void)s;
    sb_status st = cuda_context("cuda:1", &context, err);
    if (st == SB_OK) {
        st = sb__device_prepare_arithmetic(context, err);
        sb_context_release(context);
    }
    return st;
}

static const struct operation {
    const char *name;
    sb_status (*run)(struct scene *s, sb_error *err);
    bool is_long; /* it makes hundreds of calls */
} operations[] = {
    {"upload", upload, false},
    {"upload on a stream", upload_on, false},
    {"download", download, false},
    {"push", push, false},
    {"pull", pull, false},
    {"copy", copy, false},
    {"asum", asum, false},
    {"sumsq", sumsq, false},
    {"update", update, false},
    {"scale on a stream", scale, false},
    {"clear", clear, false},
    {"evict", evict, false},
    {"release", release, false},
    {"release of an exposed memory", release_let_out, false},
    {"release of page-locked memory", release_large, false},
    {"trim", trim, false},
    {"synchronize", synchronize, false},
    {"forget a stream", forget, false},
    {"destroy", destroy, false},
    {"another context", come_and_go, false},
    {"the first arithmetic", prepare, true},
};

static bool pools = true;

/* --- a trial --------------------------------------------------------------------------------- */

/* On the device, and nobody has a pointer. */
static void push_inside(sb_context *context, sb_mem *mem, CUstream stream) {
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_context_forget_stream(context, (sb_stream)stream, &err));
}

static void open_scene(struct scene *s) {
    void *out;
    stage_open_on(&s->stage, pools, SB_CONTEXT_NO_HOST_CACHE);
    sb_context *context = s->stage.context;
    s->stream = stage_stream(&s->stage, CU_STREAM_NON_BLOCKING);
    s->other = another_context("cuda:0");
    s->blob = test_vector(context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DIFF, &out, &err));
    assert_ok(sb__device_prepare_arithmetic(context, &err));
    s->host = host_mem(context, BYTES, 0x11);
    s->pushed = host_mem(context, BYTES, 0x11);
    push_inside(context, s->pushed, s->stream);
    s->large = host_mem(context, LARGE, 0x11);
    s->elsewhere = host_mem(s->other, BYTES, 0x11);
    push_inside(s->other, s->elsewhere, s->stream);
    assert_int_equal(cuDevicePrimaryCtxRetain(&s->caller, 1), CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent(s->caller), CUDA_SUCCESS);
}

static void close_scene(struct scene *s) {
    CUcontext now;
    assert_int_equal(cuCtxPopCurrent(&now), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    ignore(sb_context_forget_stream(s->stage.context, (sb_stream)s->stream, NULL));
    stage_close(&s->stage);
}

static bool is_callers_state(const struct scene *s) {
    CUcontext now = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == s->caller && fake_depth() == 1 &&
           cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
           mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static uint64_t counted_bytes(const struct scene *s) {
    sb_stats one = SB_STATS_INIT, other = SB_STATS_INIT;
    assert_ok(sb_context_stats(s->stage.context, &one, &err));
    if (s->other)
        assert_ok(sb_context_stats(s->other, &other, &err));
    return one.device_bytes + other.device_bytes + one.leaked_bytes;
}

static int64_t trials;

/* Fails the call `first`, and the call `second` after it. Returns how many calls failed. */
static int trial(const struct operation *o, unsigned int code, int64_t first, int64_t second) {
    struct scene s;
    const char *fired;
    open_scene(&s);
    fake_fail(NULL, first, FAKE_NOW, code);
    fake_fail_again(second);
    sb_status st = o->run(&s, &err);
    const int failures = fake_failures();
    fired = fake_fired() ? fake_fired() : "";
    fake_fail(NULL, 0, FAKE_NOW, 0);
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE &&
        st != SB_ERR_DEVICE_LOST)
        fail_with("%s with calls %d, %d failing: %s", o->name, (int)first, (int)second,
                  sb_status_name(st));
    if (!is_callers_state(&s))
        fail_with("%s with calls %d, %d (%s) failing changes the thread's state", o->name,
                  (int)first, (int)second, fired);
    fake_drain();
    if (counted_bytes(&s) != fake_live().device_bytes)
        fail_with("%s with calls %d, %d (%s) failing: %d bytes are counted, there are %d", o->name,
                  (int)first, (int)second, fired, (int)counted_bytes(&s),
                  (int)fake_live().device_bytes);
    close_scene(&s);
    trials += failures == 2;
    return failures;
}

/* Those that are at most `apart` calls from one another. */
static void every_pair_fails(unsigned int code, int64_t apart) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const int64_t most = operations[i].is_long && apart > NEAR ? NEAR : apart;
        for (int64_t first = 1, failures = 1; failures; first++) {
            failures = 2;
            for (int64_t second = 1; failures == 2 && second <= most; second++)
                failures = trial(&operations[i], code, first, second);
        }
    }
}

TEST(two_failures_lose_nothing) {
    every_pair_fails(CUDA_ERROR_UNKNOWN, INT64_MAX);
    every_pair_fails(CUDA_ERROR_OUT_OF_MEMORY, NEAR);
    pools = false;
    every_pair_fails(CUDA_ERROR_UNKNOWN, NEAR);
    print_message("%lld pairs of calls failed\n", (long long)trials);
    assert_true(trials > 4000);
}
