/* Makes each driver or cuBLAS call of each operation fail. */
#include "child.h"
#include "fixture.h"

#include "context/context.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 300, BYTES = COUNT * (int)sizeof(float), LARGE = 128 << 10 };

struct scene {
    struct stage stage;
    CUcontext caller;
    CUstream stream;
    sb_context *other;
    sb_blob *blob; /* data is 0x11, diff is 0; the caller holds device pointers to data and diff */
    sb_mem *host, *pushed, *elsewhere, *large; /* all bytes are 0x11 */
    uint64_t leaked;
};

#define OWN(s) ((s)->stage.context)
#define ON(s)  ((sb_stream)(s)->stream)

/* Returns `st` if the call has failed. Otherwise waits for the library's stream. */
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
    WRITES = 1,    /* the operation overwrites current bytes */
    LOSES = 2,     /* if queued work fails, the bytes are lost */
    ONCE = 4,      /* the operation cannot be repeated */
    ARITHMETIC = 8 /* arithmetic must be prepared */
};

#define OPERATIONS(X)                                                                              \
    X(upload, 0, sb_mem_gpu(s->host, &(const void *){NULL}, err))                                  \
    X(upload_on, 0, sb_mem_gpu_on(s->host, ON(s), &(const void *){NULL}, err))                     \
    X(download, 0, sb_mem_cpu(data_of(s->blob), &(const void *){NULL}, err))                       \
    X(push, 0, push_and_wait(s, err))                                                              \
    X(pull, ONCE, pull_and_wait(s, err))                                                           \
    X(evict_gpu, 0, upload_and_evict(s, err))                                                      \
    X(evict_cpu, 0, sb_mem_evict_cpu(s->pushed, err))                                              \
    X(asum, ARITHMETIC, sb_blob_asum(s->blob, SB_DATA, &(double){0}, err))                         \
    X(sumsq, ARITHMETIC, sb_blob_sumsq(s->blob, SB_DATA, &(double){0}, err))                       \
    X(scale, ARITHMETIC | WRITES, waited(sb_blob_scale(s->blob, SB_DATA, 1, err), OWN(s), err))    \
    X(scale_on, ARITHMETIC | WRITES | LOSES | ONCE, scale_on_and_wait(s, err))                     \
    X(update, ARITHMETIC | WRITES, waited(sb_blob_update(s->blob, err), OWN(s), err))              \
    X(clear, WRITES, sb_blob_clear(s->blob, SB_DATA, err))                                         \
    X(copy, 0, copy_blob(s, err))                                                                  \
    X(lend, 0, lend_bytes(s, err))                                                                 \
    X(release, ONCE, END(s->pushed))                                                               \
    X(release_exposed, ONCE, END(s->blob))                                                         \
    X(release_page_locked, ONCE, END(s->large))                                                    \
    X(trim, 0, (sb_context_trim(OWN(s)), SB_OK))                                                   \
    X(synchronize, 0, sb_context_synchronize(OWN(s), err))                                         \
    X(forget_stream, ONCE, sb_context_forget_stream(OWN(s), ON(s), err))                           \
    X(destroy, ONCE, destroy_other(s))                                                             \
    X(another_context, 0, in_new_context("cuda:0", do_nothing, err))                               \
    X(first_push_of_a_context, 0, in_new_context("cuda:0", push_fresh, err))                       \
    X(first_arithmetic, 0, in_new_context("cuda:1", sb_context_prepare_arithmetic, err))

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

/* Moves the bytes to the device without exposing a pointer to the caller. */
static void push_inside(sb_context *context, sb_mem *mem, CUstream stream) {
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_context_forget_stream(context, (sb_stream)stream, &err));
}

static void open_scene(struct scene *s, const struct operation *o, bool pools) {
    stage_open_on(&s->stage, pools, SB_CONTEXT_NO_HOST_CACHE);
    s->stream = stage_stream(&s->stage, CU_STREAM_NON_BLOCKING);
    s->other = test_context_on("cuda:0");
    s->blob = test_vector(OWN(s), SB_DTYPE_F32, COUNT);
    void *out = blob_pointer(s->blob, SB_DATA, OVERWRITE_CPU);
    memset(out, 0x11, BYTES);
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_mutable_gpu(s->blob, SB_DIFF, &out, &err));
    if (o->kind & ARITHMETIC) /* makes the nth call the same in each run */
        assert_ok(sb_context_prepare_arithmetic(OWN(s), &err));
    s->host = test_filled(OWN(s), BYTES, 0x11);
    s->pushed = test_filled(OWN(s), BYTES, 0x11);
    push_inside(OWN(s), s->pushed, (CUstream)OWN(s)->stream);
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
    (lost ? stage_abandon : stage_close)(&s->stage);
}

static bool is_callers_state(const struct scene *s) {
    CUcontext now = NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == s->caller && fake_depth() == 1 &&
           cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
           mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static sb_stats stats_of(const struct scene *s) {
    sb_stats own = SB_STATS_INIT, other = SB_STATS_INIT;
    assert_ok(sb_context_stats(OWN(s), &own, &err));
    if (s->other)
        assert_ok(sb_context_stats(s->other, &other, &err));
    own.device_bytes += other.device_bytes;
    own.device_peak += other.device_peak;
    own.quarantined_bytes += other.quarantined_bytes;
    return own;
}

/* The statistics must count all live memory. Leaked bytes may include page-locked memory. */
static bool is_all_counted(const struct scene *s) {
    const sb_stats stats = stats_of(s);
    const struct fake_live live = fake_live();
    const uint64_t leaked = stats.leaked_bytes - s->leaked, all = stats.device_bytes + leaked;
    return stats.device_peak >= stats.device_bytes && all >= live.device_bytes &&
           all - live.device_bytes <= (leaked ? (uint64_t)live.pinned_bytes : 0);
}

static void fail_no_more(int depth) {
    CUcontext old;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    fake_fail(NULL, 0, FAKE_NOW, 0);
    fake_drain();
    while (fake_depth() > depth)
        assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
}

static bool is_kept_freed(const struct scene *s, int64_t how) {
    void *ptr;
    if (stats_of(s).quarantined_bytes && how % 3 == 0) {
        sb_context_trim(OWN(s));
    } else if (stats_of(s).quarantined_bytes) {
        if (how % 3 == 1)
            limit_memory(0);
        assert_ok(sb__device_alloc(OWN(s), BYTES, OWN(s)->stream, &ptr, &err));
        fake_set(FAKE_MEMORY, ALL_MEMORY);
        sb__device_free(OWN(s), ptr, BYTES);
    }
    fake_drain();
    return stats_of(s).quarantined_bytes == 0 && is_all_counted(s);
}

/* The first wait may return a failure of earlier work. */
static bool is_all_freed(const struct scene *s) {
    ignore(sb_context_forget_stream(OWN(s), ON(s), NULL));
    for (int i = 0; i < 2; i++) {
        ignore(sb_context_synchronize(OWN(s), NULL));
        if (s->other)
            ignore(sb_context_synchronize(s->other, NULL));
    }
    fake_drain();
    return stats_of(s).quarantined_bytes == 0 && is_all_counted(s);
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
                                sb_status st, bool wrote, sb_status device, const char *fired) {
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE &&
        st != SB_ERR_DEVICE_LOST && st != SB_ERR_NO_DEVICE)
        return sb_status_name(st);
    if (device == SB_ERR_DEVICE_LOST && !loses(fault) && fault->mode != FAKE_ALWAYS &&
        !((o->kind & WRITES) && wrote && st == SB_ERR_DEVICE_LOST))
        return "the device is lost";
    if (fault->mode == FAKE_NOW && st != SB_OK && (!fired || !names(&err, fired)))
        return err.message;
    return NULL;
}

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

static bool trial(const struct operation *o, const struct fake_fault *fault, bool pools,
                  const char *function, int64_t nth) {
    struct scene s;
    open_scene(&s, o, pools);
    s.leaked = stats_of(&s).leaked_bytes;
    fake_fail(function, nth, fault->mode, fault->code);
    support_poison_error(&err);
    const int64_t before = writes_queued();
    const sb_status st = o->run(&s, &err);
    const char *fired = fake_fired();
    fake_fail(NULL, 0, FAKE_NOW, 0);
    support_check_status(st, st, &err, o->name, __FILE__, __LINE__);
    if (fault->mode == FAKE_ALWAYS)
        fail_no_more(1);
    const bool exits = fault->mode == FAKE_EXIT;
    const sb_status device = sb_context_device_status(OWN(&s));
    const char *wrong = wrong_status(o, fault, st, writes_queued() > before, device, fired);
    if (!wrong && !exits && !is_callers_state(&s))
        wrong = "the thread's state has changed";
    if (!loses(fault) && device == SB_OK)
        fake_drain();
    if (!wrong && !loses(fault) && (device == SB_OK || fault->mode != FAKE_ALWAYS) &&
        !is_all_counted(&s))
        wrong = "the statistics do not match the live device memory";
    if (!wrong && fault->mode == FAKE_ALWAYS && o->run == release && !is_kept_freed(&s, trials))
        wrong = "later calls do not free memory that could not be freed";
    if (!wrong && !exits && fired) /* at process exit, queued work counts as complete */
        wrong = wrong_bytes(&s, o, !loses(fault) && device == SB_OK, st);
    if (!wrong && !loses(fault) && device == SB_OK && !is_all_freed(&s))
        wrong = "a wait does not free memory that could not be freed";
    if (!wrong && fake_violations())
        wrong = "a rule of the driver is broken";
    if (wrong)
        fail_with("%s with call %d (%s) failing in mode %d: %s", o->name, (int)nth,
                  fired ? fired : "none", (int)fault->mode, wrong);
    close_scene(&s, loses(fault) || device != SB_OK || fault->mode == FAKE_ALWAYS);
    trials += fired != NULL;
    return fired != NULL;
}

TEST(one_failure_loses_nothing) {
    static const struct fake_fault faults[] = {
        {FAKE_NOW, CUDA_ERROR_UNKNOWN},        {FAKE_NOW, CUDA_ERROR_OUT_OF_MEMORY},
        {FAKE_LATE, CUDA_ERROR_LAUNCH_FAILED}, {FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS},
        {FAKE_TRANSIENT, CUDA_ERROR_UNKNOWN},  {FAKE_EXIT, CUDA_ERROR_DEINITIALIZED},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (size_t k = 0; k < OPERATION_COUNT; k++)
            for (int64_t nth = 1; trial(&operations[k], &faults[i], true, NULL, nth); nth++)
                ;
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 1000);
}

/* Functions whose failure can prevent a free of memory. */
static const char *const functions[] = {
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuThreadExchangeStreamCaptureMode",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuStreamSynchronize",
    "cuMemFreeHost",
    NULL,
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

TEST(functions_that_always_fail_lose_nothing) {
    static const struct fake_fault always = {FAKE_ALWAYS, CUDA_ERROR_UNKNOWN};
    trials = 0;
    IGNORE_LEAKS(true); /* a context that ends without a wait leaks memory in use */
    for (size_t i = 0; i < 2 * FUNCTIONS; i++)
        for (size_t k = 0; k < OPERATION_COUNT; k++)
            for (int64_t nth = 1; trial(&operations[k], &always, i % 2, functions[i / 2], nth);
                 nth++)
                ;
    IGNORE_LEAKS(false);
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 1000);
}

static uint64_t leaked_bytes(void) {
    sb_stats stats = SB_STATS_INIT;
    assert_ok(sb_context_stats(NULL, &stats, &err));
    return stats.leaked_bytes;
}

static sb_mem *mem_inside(sb_context *context, size_t bytes) {
    sb_mem *mem = test_filled(context, bytes, 0x11);
    assert_ok(sb_mem_async_gpu_push(mem, context->stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_mem_evict_cpu(mem, &err));
    return mem;
}

static void fail_always(size_t function) {
    fake_fail(functions[function], 1, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN);
}

/* Memory above 64 KiB is not in a slab. A trim frees memory in slabs. */
TEST(page_locked_memory_that_cannot_be_freed_is_kept_until_it_can) {
    static const size_t sizes[] = {LARGE, BYTES};
    for (size_t i = 0; i < 2 * FUNCTIONS; i++) {
        const size_t function = i / 2;
        struct stage stage;
        stage_open_on(&stage, true, SB_CONTEXT_NO_HOST_CACHE);
        sb_mem *mem = test_filled(stage.context, sizes[i % 2], 0x11);
        assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
        fail_always(function);
        test_end(mem);
        sb_context_trim(stage.context);
        fail_no_more(0);
        const sb_stats stats = rig_stats(&stage.rig);
        const uint64_t kept = (uint64_t)fake_live().pinned_bytes;
        if (stats.pinned_bytes != kept || stats.quarantined_bytes != kept ||
            stats.pinned_peak < kept)
            fail_with("while %s fails %d bytes are kept; the statistics: %d, %d",
                      functions[function] ? functions[function] : "any call", (int)kept,
                      (int)stats.pinned_bytes, (int)stats.quarantined_bytes);
        if (functions[function] && strcmp(functions[function], "cuMemFreeHost") == 0)
            assert_true(fake_live().pinned_bytes >= sizes[i % 2]);
        assert_ok(sb_context_synchronize(stage.context, &err));
        assert_int_equal(fake_live().pinned, 0);
        assert_int_equal(rig_stats(&stage.rig).quarantined_bytes, 0);
        stage_close(&stage);
    }
}

/* Memory of a lost CUDA context does not count as leaked: the process exit frees the memory. */
TEST(memory_that_a_context_never_freed_counts_as_leaked) {
    static const CUresult losses[] = {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_DEINITIALIZED};
    for (size_t i = 0; i < 2 * FUNCTIONS + 2; i++) {
        const bool lost = i >= 2 * FUNCTIONS;
        const size_t function = lost ? 0 : i / 2;
        struct stage stage;
        stage_open_on(&stage, i % 2, 0);
        sb_context *context = test_context_on("cuda:0");
        sb_mem *inside = mem_inside(context, LARGE), *outside = test_filled(context, LARGE, 0x11);
        const uint64_t leaked = leaked_bytes();
        fake_fail(functions[function], 1, FAKE_ALWAYS,
                  lost ? losses[i - 2 * FUNCTIONS] : CUDA_ERROR_UNKNOWN);
        test_end(inside);
        test_end(outside);
        test_end(context);
        fail_no_more(0);
        const struct fake_live live = fake_live();
        const uint64_t left = live.device_bytes + live.pinned_bytes;
        if (leaked_bytes() - leaked != (lost ? 0 : left))
            fail_with("after %s failed %d bytes are left, %d count as leaked",
                      functions[function] ? functions[function] : "any call", (int)left,
                      (int)(leaked_bytes() - leaked));
        if (function < 3 && !lost) /* memory cannot be freed */
            assert_true(live.device_bytes >= LARGE && live.pinned_bytes >= LARGE);
        stage_abandon(&stage);
    }
}

static void want_no_leak(void *arg) {
    child_wants(leaked_bytes() == 0);
}

/* The library cannot wait for the stream later: the caller may have destroyed the stream. The child
   checks that a forked child counts leaks from 0. */
TEST(memory_of_another_stream_cannot_be_kept) {
    struct stage stage;
    void *ptr;
    stage_open(&stage);
    void *device = stage.context->device;
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    assert_ok(sb__cuda_backend.alloc(device, BYTES, (sb_stream)stream, &ptr, &err));
    const uint64_t leaked = leaked_bytes();
    fail_always(0);
    sb__cuda_backend.free(device, ptr, BYTES, (sb_stream)stream);
    fail_no_more(0);
    assert_int_equal(leaked_bytes() - leaked, BYTES);
    assert_int_equal(fake_live().device_bytes, BYTES);
    in_child(want_no_leak, NULL);
    stage_abandon(&stage);
}

/* A pool can be destroyed without a current context. */
TEST(a_pool_ends_without_a_current_context) {
    struct stage stage;
    stage_open(&stage);
    sb_context *context = test_context_on("cuda:0");
    const size_t mapped = fake_live().mapped_bytes;
    test_end(mem_inside(context, LARGE));
    assert_ok(sb_context_synchronize(context, &err));
    assert_true(fake_live().mapped_bytes > mapped);
    fail_always(0);
    test_end(context);
    fail_no_more(0);
    assert_int_equal(fake_live().mapped_bytes, mapped);
    stage_abandon(&stage);
}
