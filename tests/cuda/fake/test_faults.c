/* Makes each driver or cuBLAS call of each operation fail in each fault mode, then makes two calls
   of an operation fail. The status must match the failure. Current bytes, the caller's context and
   the capture mode must not change, a retry of the operation must succeed, the library must count
   the device memory correctly, and at the end no object may remain. */
#include "fixture.h"

#include "context/context.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 300, BYTES = COUNT * (int)sizeof(float), LARGE = 128 << 10, NEAR = 4 };

struct scene {
    struct stage stage;
    CUcontext caller; /* the caller's current context, on another device */
    CUstream stream;
    sb_context *other; /* another context of the same device */
    sb_blob *blob; /* data is 0x11, diff 0, both at the device; the caller holds pointers to both */
    sb_mem *host, *pushed, *elsewhere, *large; /* all 0x11 */
};

/* --- operations ------------------------------------------------------------------------------ */

#define OWN(s) ((s)->stage.context)
#define ON(s)  ((sb_stream)(s)->stream)

/* Waits for the context's stream, so that the call also returns a failure of queued work. */
static sb_status waited(sb_status st, sb_context *context, sb_error *err) {
    return st == SB_OK ? sb__own_wait(context, err) : st;
}

static sb_status push_and_wait(struct scene *s, sb_error *err) {
    sb_status st = sb_mem_async_gpu_push(s->host, ON(s), err);
    return st == SB_OK ? sb_mem_synchronize(s->host, err) : st;
}

static sb_status scale_on_and_wait(struct scene *s, sb_error *err) {
    sb_status st = sb_blob_scale_on(s->blob, SB_DATA, 1, ON(s), err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status pull_and_wait(struct scene *s, sb_error *err) {
    sb_status st = sb_mem_async_cpu_pull(data_of(s->blob), ON(s), err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status upload_and_evict(struct scene *s, sb_error *err) {
    sb_status st = sb_mem_gpu_on(s->host, ON(s), &(const void *){NULL}, err);
    return st == SB_OK ? sb_mem_evict_gpu(s->host, err) : st;
}

/* Releases an object that the test owns, and sets the pointer to it to NULL. */
#define END(object) (test_end(object), (object) = NULL, SB_OK)

static sb_status destroy_other(struct scene *s) {
    test_end(s->elsewhere);
    return END(s->other);
}

static sb_status lend_bytes(struct scene *s, sb_error *err) {
    const void *in;
    sb_mem *other;
    sb_status st = sb_mem_create(OWN(s), BYTES, &other, err);
    if (st != SB_OK)
        return st;
    st = sb_mem_gpu(s->host, &in, err);
    if (st == SB_OK)
        st = sb_mem_set_gpu(other, (void *)(uintptr_t)in, BYTES, SB_READ_ONLY, NULL, NULL, err);
    sb_mem_release(other);
    return st;
}

static sb_status copy_blob(struct scene *s, sb_error *err) {
    sb_blob *made;
    sb_status st = sb_blob_create(OWN(s), SB_DTYPE_F32, &made, err);
    if (st != SB_OK)
        return st;
    st = sb_blob_copy_from(made, SB_DATA, s->blob, SB_COPY_RESHAPE, err);
    sb_blob_destroy(made);
    return st;
}

static sb_status in_new_context(const char *device,
                                sb_status (*run)(sb_context *context, sb_error *err),
                                sb_error *err) {
    sb_context *context;
    sb_status st = cuda_context(device, &context, err);
    if (st != SB_OK)
        return st;
    st = run(context, err);
    sb_context_release(context);
    return st;
}

static sb_status do_nothing(sb_context *context, sb_error *err) {
    return SB_OK;
}

static sb_status push_fresh(sb_context *context, sb_error *err) {
    void *out;
    sb_mem *mem;
    sb_status st = sb_mem_create(context, BYTES, &mem, err);
    if (st != SB_OK)
        return st;
    st = sb_mem_overwrite_cpu(mem, &out, err);
    if (st == SB_OK)
        st = sb_mem_async_gpu_push(mem, context->stream, err);
    sb_mem_release(mem);
    return st;
}

enum {
    WRITES = 1,     /* the operation writes current bytes */
    LOSES = 2,      /* a failure of the operation's queued work loses the bytes */
    ONCE = 4,       /* the operation cannot be repeated */
    LONG = 8,       /* the operation makes many calls, or the calls of other operations */
    ARITHMETIC = 16 /* arithmetic must be prepared */
};

#define OPERATIONS(X)                                                                              \
    X(upload, 0, sb_mem_gpu(s->host, &(const void *){NULL}, err))                                  \
    X(upload_on, 0, sb_mem_gpu_on(s->host, ON(s), &(const void *){NULL}, err))                     \
    X(download, 0, sb_mem_cpu(data_of(s->blob), &(const void *){NULL}, err))                       \
    X(push, 0, push_and_wait(s, err))                                                              \
    X(pull, ONCE, pull_and_wait(s, err))                                                           \
    X(evict_gpu, LONG, upload_and_evict(s, err))                                                   \
    X(evict_cpu, 0, sb_mem_evict_cpu(s->pushed, err))                                              \
    X(asum, ARITHMETIC, sb_blob_asum(s->blob, SB_DATA, &(double){0}, err))                         \
    X(sumsq, ARITHMETIC, sb_blob_sumsq(s->blob, SB_DATA, &(double){0}, err))                       \
    X(scale, ARITHMETIC | WRITES | LONG,                                                           \
      waited(sb_blob_scale(s->blob, SB_DATA, 1, err), OWN(s), err))                                \
    X(scale_on, ARITHMETIC | WRITES | LOSES | ONCE, scale_on_and_wait(s, err))                     \
    X(update, ARITHMETIC | WRITES, waited(sb_blob_update(s->blob, err), OWN(s), err))              \
    X(clear, WRITES, sb_blob_clear(s->blob, SB_DATA, err))                                         \
    X(copy, 0, copy_blob(s, err))                                                                  \
    X(lend, LONG, lend_bytes(s, err))                                                              \
    X(release, ONCE, END(s->pushed))                                                               \
    X(release_exposed, ONCE, END(s->blob))                                                         \
    X(release_page_locked, ONCE, END(s->large))                                                    \
    X(trim, 0, (sb_context_trim(OWN(s)), SB_OK))                                                   \
    X(synchronize, 0, sb_context_synchronize(OWN(s), err))                                         \
    X(forget_stream, ONCE, sb_context_forget_stream(OWN(s), ON(s), err))                           \
    X(destroy, ONCE, destroy_other(s))                                                             \
    X(another_context, 0, in_new_context("cuda:0", do_nothing, err))                               \
    X(first_push_of_a_context, LONG, in_new_context("cuda:0", push_fresh, err))                    \
    X(first_arithmetic, LONG, in_new_context("cuda:1", sb_context_prepare_arithmetic, err))

#define OPERATION(name, kind, expression)                                                          \
    static sb_status name(struct scene *s, sb_error *err) {                                        \
        return expression;                                                                         \
    }
OPERATIONS(OPERATION)

#define OPERATION_ROW(name, kind, expression) {#name, name, kind},
static const struct operation {
    const char *name;
    sb_status (*run)(struct scene *s, sb_error *err);
    int kind;
} operations[] = {OPERATIONS(OPERATION_ROW)};

enum { OPERATION_COUNT = sizeof operations / sizeof *operations };

/* --- a trial --------------------------------------------------------------------------------- */

static bool pools = true;

/* Puts the bytes at the device; the caller has no pointer to them. */
static void push_inside(sb_context *context, sb_mem *mem, CUstream stream) {
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_context_forget_stream(context, (sb_stream)stream, &err));
}

static void open_scene(struct scene *s, const struct operation *o) {
    stage_open_on(&s->stage, pools, SB_CONTEXT_NO_HOST_CACHE);
    s->stream = stage_stream(&s->stage, CU_STREAM_NON_BLOCKING);
    s->other = test_context_on("cuda:0");
    s->blob = test_vector(OWN(s), SB_DTYPE_F32, COUNT);
    void *out = blob_pointer(s->blob, SB_DATA, OVERWRITE_CPU);
    memset(out, 0x11, BYTES);
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DIFF, &out, &err));
    if (o->kind & ARITHMETIC) /* so that the nth call is the same in each run */
        assert_ok(sb_context_prepare_arithmetic(OWN(s), &err));
    s->host = test_filled(OWN(s), BYTES, 0x11);
    s->pushed = test_filled(OWN(s), BYTES, 0x11);
    push_inside(OWN(s), s->pushed, s->stream);
    s->large = test_filled(OWN(s), LARGE, 0x11);
    s->elsewhere = test_filled(s->other, BYTES, 0x11);
    push_inside(s->other, s->elsewhere, s->stream);
    assert_int_equal(cuDevicePrimaryCtxRetain(&s->caller, 1), CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent(s->caller), CUDA_SUCCESS);
}

static void close_scene(struct scene *s, bool lost) {
    CUcontext now;
    (void)cuCtxPopCurrent(&now);
    (void)cuDevicePrimaryCtxRelease(1);
    ignore(sb_context_forget_stream(OWN(s), ON(s), NULL));
    (lost ? stage_abandon : stage_close)(&s->stage);
}

static bool is_callers_state(const struct scene *s) {
    CUcontext now = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == s->caller && fake_depth() == 1 &&
           cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
           mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static uint64_t counted_bytes(const struct scene *s) {
    sb_stats own = SB_STATS_INIT, other = SB_STATS_INIT;
    assert_ok(sb_context_stats(OWN(s), &own, &err));
    if (s->other)
        assert_ok(sb_context_stats(s->other, &other, &err));
    return own.device_bytes + other.device_bytes + own.leaked_bytes;
}

static int64_t writes_queued(void) {
    return fake_calls("cublasSaxpy_v2_64") + fake_calls("cublasSscal_v2_64") +
           fake_calls("cuMemsetD8Async");
}

struct fake_fault {
    enum fake_mode mode;
    unsigned int code;
};

static bool loses(const struct fake_fault *fault) {
    return fault->mode == FAKE_LATE || fault->mode == FAKE_STICKY || fault->mode == FAKE_EXIT;
}

static const char *wrong_status(const struct operation *o, const struct fake_fault *fault,
                                bool is_pair, sb_status st, bool wrote, sb_status device,
                                const char *fired) {
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE &&
        st != SB_ERR_DEVICE_LOST && st != SB_ERR_NO_DEVICE)
        return sb_status_name(st);
    if (device == SB_ERR_DEVICE_LOST && !is_pair && !loses(fault) &&
        !((o->kind & WRITES) && wrote && st == SB_ERR_DEVICE_LOST))
        return "the device is lost";
    if (fault->mode == FAKE_NOW && !is_pair && st != SB_OK && !names(&err, fired))
        return err.message;
    return NULL;
}

/* Returns the bytes on the host. Retries once, since the first wait may return a failure of earlier
   work. */
static const void *bytes_of(const sb_mem *mem) {
    const void *in = NULL;
    return sb_mem_cpu(mem, &in, NULL) == SB_OK || sb_mem_cpu(mem, &in, NULL) == SB_OK ? in : NULL;
}

static const char *wrong_bytes(struct scene *s, const struct operation *o, bool is_usable,
                               sb_status st) {
    const int fill = st == SB_OK && o->run == clear ? 0x00 : 0x11;
    const void *host = bytes_of(s->host), *data = s->blob ? bytes_of(data_of(s->blob)) : NULL;
    if (!host || !bytes_are(host, BYTES, 0x11))
        return "bytes on the host were lost";
    if (data && !bytes_are(data, BYTES, fill))
        return "the data has changed";
    if (s->blob && !data && is_usable && !(o->kind & LOSES))
        return "the data cannot be read";
    if (st != SB_OK && is_usable && !(o->kind & ONCE) && o->run(s, &err) != SB_OK)
        return "the retried call fails";
    return NULL;
}

static int64_t trials;

/* Makes the call number `first` fail and, unless `second` is 0, also the call `second` calls later.
   Returns how many calls failed. */
static int trial(const struct operation *o, const struct fake_fault *fault, int64_t first,
                 int64_t second) {
    struct scene s;
    open_scene(&s, o);
    fake_fail(NULL, first, fault->mode, fault->code);
    fake_fail_again(second);
    support_poison_error(&err);
    const int64_t before = writes_queued();
    const sb_status st = o->run(&s, &err);
    const int failures = fake_failures();
    const char *fired = fake_fired() ? fake_fired() : "";
    fake_fail(NULL, 0, FAKE_NOW, 0);
    support_check_status(st, st, &err, o->name, __FILE__, __LINE__);
    const bool exits = fault->mode == FAKE_EXIT;
    const sb_status device = sb_context_device_status(OWN(&s));
    const char *wrong =
        wrong_status(o, fault, second != 0, st, writes_queued() > before, device, fired);
    if (!wrong && !exits && !is_callers_state(&s))
        wrong = "the thread's state has changed";
    if (!loses(fault) && device == SB_OK)
        fake_drain();
    if (!wrong && !loses(fault) && counted_bytes(&s) != fake_live().device_bytes)
        wrong = "the statistics do not match the live device memory";
    if (!wrong && !exits && failures) /* at process exit queued work counts as complete */
        wrong = wrong_bytes(&s, o, !second && !loses(fault) && device == SB_OK, st);
    if (!wrong && fake_violations())
        wrong = "a rule of the driver is broken";
    if (wrong)
        fail_with("%s with calls %d, %d (%s) failing in mode %d: %s", o->name, (int)first,
                  (int)second, fired, (int)fault->mode, wrong);
    close_scene(&s, loses(fault) || device != SB_OK);
    trials += failures > 0;
    return failures;
}

TEST(one_failure_loses_nothing) {
    static const struct fake_fault faults[] = {
        {FAKE_NOW, CUDA_ERROR_UNKNOWN},        {FAKE_NOW, CUDA_ERROR_OUT_OF_MEMORY},
        {FAKE_LATE, CUDA_ERROR_LAUNCH_FAILED}, {FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS},
        {FAKE_TRANSIENT, CUDA_ERROR_UNKNOWN},  {FAKE_EXIT, CUDA_ERROR_DEINITIALIZED},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (size_t k = 0; k < OPERATION_COUNT; k++)
            for (int64_t nth = 1; trial(&operations[k], &faults[i], nth, 0); nth++)
                ;
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 1000);
}

/* Tests every pair of failing calls whose distance is at most `apart` calls. */
static void every_pair_fails(unsigned int code, int64_t apart) {
    const struct fake_fault fault = {FAKE_NOW, code};
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        const int64_t most = operations[i].kind & LONG && apart > NEAR ? NEAR : apart;
        for (int64_t first = 1, failures = 1; failures; first++) {
            failures = 2;
            for (int64_t second = 1; failures == 2 && second <= most; second++)
                failures = trial(&operations[i], &fault, first, second);
        }
    }
}

TEST(two_failures_lose_nothing) {
    const char *schedule = getenv("FAKE_SCHEDULE");
    if (!schedule || strcmp(schedule, "lazy") != 0) {
        print_message("skipped: only FAKE_SCHEDULE=lazy makes pairs of calls fail\n");
        test_skip();
    }
    trials = 0;
    every_pair_fails(CUDA_ERROR_UNKNOWN, INT64_MAX);
    every_pair_fails(CUDA_ERROR_OUT_OF_MEMORY, NEAR);
    pools = false;
    every_pair_fails(CUDA_ERROR_UNKNOWN, NEAR);
    print_message("%lld pairs of calls failed\n", (long long)trials);
    assert_true(trials > 4000);
}
