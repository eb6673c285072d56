/* Every call of the driver and of cuBLAS fails in turn, in each way, in each
   operation: a status that explains it, current bytes stay, the same call works
   afterwards, nothing leaks, the caller's context stays. Then each call of each
   slot, with each error of the driver's and each status of cuBLAS's. */
#include "fixture.h"

#include "context/context.h"
#include "device.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <string.h>

#define COUNT 300
#define BYTES (COUNT * sizeof(float))

struct setting {
    struct stage stage;
    sb_blob *blob;
    CUstream stream;
};

static const void *bytes_of(sb_blob *blob) {
    const void *in = NULL;
    return sb_mem_cpu(data_of(blob), &in, NULL) == SB_OK ? in : NULL;
}

/* --- operations ------------------------------------------------------------------------------ */

#define CALL(name, expression)                                                                     \
    static sb_status name(struct setting *s, sb_error *err) {                                      \
        return expression;                                                                         \
    }

CALL(upload, sb_mem_gpu(data_of(s->blob), &(const void *){NULL}, err))
CALL(download, sb_mem_cpu(data_of(s->blob), &(const void *){NULL}, err))
CALL(upload_on, sb_mem_gpu_on(data_of(s->blob), (sb_stream)s->stream, &(const void *){NULL}, err))

static sb_status push(struct setting *s, sb_error *err) {
    sb_status st = sb_mem_async_gpu_push(data_of(s->blob), (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status pull(struct setting *s, sb_error *err) {
    sb_status st = sb_mem_async_cpu_pull(data_of(s->blob), (sb_stream)s->stream, err);
    return st == SB_OK ? sb_mem_synchronize(data_of(s->blob), err) : st;
}

static sb_status evict(struct setting *s, sb_error *err) {
    sb_status st = upload_on(s, err);
    return st == SB_OK ? sb_mem_evict_gpu(data_of(s->blob), err) : st;
}

CALL(asum, sb_blob_asum(s->blob, SB_DATA, &(double){0}, err))
CALL(sumsq, sb_blob_sumsq(s->blob, SB_DATA, &(double){0}, err))

/* It is queued: here its failure is a failure of the call. */
static sb_status waited(struct setting *s, sb_status st, sb_error *err) {
    return st == SB_OK ? sb__own_wait(s->stage.context, err) : st;
}

static sb_status update(struct setting *s, sb_error *err) {
    return waited(s, sb_blob_update(s->blob, err), err); /* the diff reads as zeros */
}

static sb_status scale(struct setting *s, sb_error *err) {
    return waited(s, sb_blob_scale(s->blob, SB_DATA, 1, err), err);
}

CALL(clear, sb_blob_clear(s->blob, SB_DATA, err))

static sb_status lend(struct setting *s, sb_error *err) {
    sb_mem *other;
    const void *in;
    sb_status st = sb_mem_create(s->stage.context, BYTES, &other, err);
    if (st == SB_OK) {
        st = sb_mem_gpu(data_of(s->blob), &in, err);
        if (st == SB_OK)
            st = sb_mem_set_gpu(other, (void *)(uintptr_t)in, BYTES, SB_READ_ONLY, NULL, NULL, err);
        sb_mem_release(other);
    }
    return st;
}

static sb_status come_and_go(struct setting *s, sb_error *err) {
    (void)s;
    return cuda_come_and_go(err);
}

static const struct operation {
    const char *name;
    sb_status (*run)(struct setting *s, sb_error *err);
    bool on_device; /* the head, before */
    bool writes;    /* current bytes on the device */
} operations[] = {
    {"upload", upload, false, false},
    {"download", download, true, false},
    {"upload on a stream", upload_on, false, false},
    {"push", push, false, false},
    {"pull", pull, true, false},
    {"evict", evict, false, false},
    {"asum", asum, true, false},
    {"sumsq", sumsq, true, false},
    {"scale", scale, true, true},
    {"update", update, true, true},
    {"clear", clear, true, true},
    {"lend", lend, false, false},
    {"another context", come_and_go, false, false},
};

/* --- a trial --------------------------------------------------------------------------------- */

static void open_setting(struct setting *s, const struct operation *o) {
    void *out;
    stage_open_on(&s->stage, true, SB_CONTEXT_NO_HOST_CACHE);
    s->stream = stage_stream(&s->stage, CU_STREAM_NON_BLOCKING);
    s->blob = test_vector(s->stage.context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_mem_overwrite_cpu(data_of(s->blob), &out, &err));
    memset(out, 0x11, BYTES);
    if (o->on_device) { /* and arithmetic is prepared, so that the nth call is always the same */
        assert_ok(sb_mem_mutable_gpu(data_of(s->blob), &out, &err));
        assert_ok(sb__device_prepare_arithmetic(s->stage.context, &err));
    }
}

static void close_setting(struct setting *s, bool lost) {
    test_end(s->blob);
    ignore(sb_context_forget_stream(s->stage.context, (sb_stream)s->stream, NULL));
    (lost ? stage_abandon : stage_close)(&s->stage);
}

static bool is_of_cublas(const char *function) {
    return strncmp(function, "cublas", 6) == 0;
}

/* Whatever fails before it has queued nothing. */
static bool is_launch(const char *function) {
    return is_of_cublas(function) && strcmp(function, "cublasSetStream_v2") != 0;
}

static int64_t writes_queued(void) {
    return fake_calls("cublasSaxpy_v2_64") + fake_calls("cublasSscal_v2_64") +
           fake_calls("cuMemsetD8Async");
}

/* The function by its name in NVIDIA's documents, which is without the version of its form. */
static bool names(const sb_error *err, const char *function) {
    char said[80];
    (void)snprintf(said, sizeof said, "cuda:0: %.*s: ", (int)strcspn(function, "_"), function);
    return strstr(err->message, said) != NULL;
}

static const char *const mode_names[] = {"now", "late", "for good", "in passing", "at exit"};

static void check(struct setting *s, const struct operation *o, enum fake_mode mode,
                  const char *fired, bool wrote, sb_status st, const sb_error *story) {
    bool lost = sb_context_device_status(s->stage.context) == SB_ERR_DEVICE_LOST;
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE &&
        st != SB_ERR_DEVICE_LOST && st != SB_ERR_NO_DEVICE)
        fail_with("%s with %s failing %s: %s", o->name, fired, mode_names[mode],
                  sb_status_name(st));
    bool may_lose = mode == FAKE_LATE || mode == FAKE_STICKY || mode == FAKE_EXIT ||
                    (o->writes && wrote && st == SB_ERR_DEVICE_LOST);
    if (lost && !may_lose)
        fail_with("%s with %s failing %s lost the device", o->name, fired, mode_names[mode]);
    if (mode == FAKE_NOW && st != SB_OK && !names(story, fired))
        fail_with("%s with %s failing says: %s", o->name, fired, story->message);
    if (mode == FAKE_EXIT)
        return; /* what was queued counts as done: nobody reads it any more */
    const void *now = bytes_of(s->blob);
    int fill = st == SB_OK && o->run == clear ? 0 : 0x11;
    if (now && !bytes_are(now, BYTES, fill))
        fail_with("%s with %s failing %s: other bytes", o->name, fired, mode_names[mode]);
    if (!now && !o->on_device)
        fail_with("%s with %s failing %s: host bytes are gone", o->name, fired, mode_names[mode]);
    if (lost || mode == FAKE_LATE || mode == FAKE_STICKY)
        return;
    if (!now)
        fail_with("%s with %s failing %s: no bytes", o->name, fired, mode_names[mode]);
    if (st != SB_OK && o->run != pull)
        assert_ok(o->run(s, &err));
}

static int64_t trials;

/* False when there was no nth call. */
static bool trial(const struct operation *o, enum fake_mode mode, unsigned int code, int64_t nth) {
    struct setting s;
    fake_forgive();
    open_setting(&s, o);
    fake_fail(NULL, nth, mode, code);
    support_poison_error(&err);
    const int64_t before = writes_queued();
    sb_status st = o->run(&s, &err);
    const char *fired = fake_fired();
    fake_fail(NULL, 0, FAKE_NOW, 0);
    support_check_status(st, st, &err, o->name, __FILE__, __LINE__);
    if (fired)
        check(&s, o, mode, fired, writes_queued() > before, st, &err);
    trials += fired != NULL;
    if (mode != FAKE_EXIT && fake_depth())
        fail_with("%s with %s failing %s leaves a context current", o->name, fired,
                  mode_names[mode]);
    if (fake_violations())
        fail_with("%s with %s failing %s breaks a rule of the driver", o->name, fired,
                  mode_names[mode]);
    close_setting(&s, mode == FAKE_LATE || mode == FAKE_STICKY || mode == FAKE_EXIT ||
                          sb_context_device_status(s.stage.context) != SB_OK);
    return fired != NULL;
}

static void every_call_fails(enum fake_mode mode, unsigned int code) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (int64_t nth = 1; trial(&operations[i], mode, code, nth); nth++)
            ;
}

TEST(at_once) {
    every_call_fails(FAKE_NOW, CUDA_ERROR_UNKNOWN);
    every_call_fails(FAKE_NOW, CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(late) {
    every_call_fails(FAKE_LATE, CUDA_ERROR_LAUNCH_FAILED);
}

TEST(for_good) {
    every_call_fails(FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(in_passing) {
    every_call_fails(FAKE_TRANSIENT, CUDA_ERROR_UNKNOWN);
}

/* --- each slot, each error ------------------------------------------------------------------- */

enum { SIZE = 64, PINNED = 128 << 10 }; /* of which none is carved out of a slab */

struct bench {
    void *device, *from, *to, *event, *out;
    CUstream stream;
    unsigned char host[SIZE];
};

#define SLOT(name, ...)                                                                            \
    static sb_status slot_##name(struct bench *b, sb_error *err) {                                 \
        return sb__cuda_backend.name(b->device, __VA_ARGS__, err);                                 \
    }

SLOT(alloc, SIZE, (sb_stream)b->stream, &b->out)
SLOT(alloc_pinned, PINNED, &b->out)
SLOT(event_record, (sb_stream)b->stream, &b->out)
SLOT(zero, b->to, SIZE, (sb_stream)b->stream)
SLOT(upload, b->to, b->host, SIZE, (sb_stream)b->stream)
SLOT(download, b->host, b->from, SIZE, (sb_stream)b->stream)
SLOT(copy, b->to, b->from, SIZE, (sb_stream)b->stream)
SLOT(check_pointer, b->to, SIZE)
SLOT(check_stream, (sb_stream)b->stream)
SLOT(stream_synchronize, (sb_stream)b->stream)
SLOT(stream_wait, (sb_stream)b->stream, b->event)
SLOT(event_wait, b->event)
SLOT(event_query, b->event, &(int32_t){0})
SLOT(asum, SB_DTYPE_F32, SIZE / sizeof(float), b->from, &(double){0}, (sb_stream)b->stream)
SLOT(sumsq, SB_DTYPE_F32, SIZE / sizeof(float), b->from, &(double){0}, (sb_stream)b->stream)
SLOT(axpy, SB_DTYPE_F32, SIZE / sizeof(float), 1, b->from, b->to, (sb_stream)b->stream)
SLOT(scale, SB_DTYPE_F64, SIZE / sizeof(double), 2, b->to, (sb_stream)b->stream)

static sb_status slot_after_default(struct bench *b, sb_error *err) {
    return sb__cuda_backend.after_default(b->device, err);
}

static const struct slot {
    sb_status (*run)(struct bench *b, sb_error *err);
    const char *only; /* the call that is its own; NULL: each */
    bool waits;
} slots[] = {
    {slot_alloc, NULL, false},
    {slot_alloc_pinned, NULL, false},
    {slot_event_record, NULL, false},
    {slot_zero, NULL, false},
    {slot_upload, NULL, false},
    {slot_download, NULL, false},
    {slot_copy, NULL, false},
    {slot_check_pointer, NULL, false},
    {slot_check_stream, NULL, false},
    {slot_stream_synchronize, NULL, true},
    {slot_stream_wait, NULL, false},
    {slot_event_wait, NULL, true},
    {slot_event_query, NULL, true},
    {slot_asum, "cuLaunchKernel", false},
    {slot_sumsq, "cuLaunchKernel", false},
    {slot_axpy, NULL, false},
    {slot_scale, NULL, false},
    {slot_after_default, NULL, false},
};

/* Those of cuda.h and of cublas_api.h, by the numbers that they have used so far. */
static const struct {
    unsigned int first, last;
} errors[] = {{1, 8},     {11, 16},   {34, 46},   {100, 102}, {200, 226}, {300, 304}, {400, 402},
              {500, 500}, {600, 600}, {700, 721}, {800, 812}, {900, 916}, {999, 999}};

/* Lost: cuda.h says that the process or the context cannot go on, or that the hardware failed. */
static sb_status told(unsigned int error) {
    switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return SB_ERR_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return SB_ERR_NO_DEVICE;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_NOT_SUPPORTED:
        return SB_ERR_UNSUPPORTED;
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case 226: /* CUDA_ERROR_CONTAINED, which CUDA 12.0 has not yet */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case 721: /* CUDA_ERROR_TENSOR_MEMORY_LEAK, likewise */
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return SB_ERR_DEVICE_LOST;
    default:
        if (error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
            error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            return SB_ERR_UNSUPPORTED;
        return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED
                   ? SB_ERR_DEVICE_LOST
                   : SB_ERR_DEVICE_FAILURE;
    }
}

static sb_status told_of_cublas(const char *function, unsigned int status) {
    switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED: /* of a handle that is made: for want of memory */
        return strcmp(function, "cublasCreate_v2") == 0 ? SB_ERR_OUT_OF_MEMORY
                                                        : SB_ERR_DEVICE_FAILURE;
    case CUBLAS_STATUS_ALLOC_FAILED:
        return SB_ERR_OUT_OF_MEMORY;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return SB_ERR_UNSUPPORTED;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

/* Nothing is queued yet, so that a failure that passes is none. */
static bool is_begun_again(const struct slot *slot, const char *fired, unsigned int error) {
    const sb_status st = is_of_cublas(fired) ? told_of_cublas(fired, error) : told(error);
    return (slot->run == slot_axpy || slot->run == slot_scale) && !is_launch(fired) &&
           strcmp(fired, "cuCtxPopCurrent_v2") != 0 && st == SB_ERR_DEVICE_FAILURE;
}

/* A wait that could not begin is begun again. */
static bool is_before_a_wait(const struct slot *slot, const char *fired) {
    return slot->waits &&
           (strcmp(fired, "cuCtxGetCurrent") == 0 || strcmp(fired, "cuCtxPushCurrent_v2") == 0 ||
            strcmp(fired, "cuThreadExchangeStreamCaptureMode") == 0);
}

static sb_status told_of_wait(unsigned int error) {
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return SB_ERR_DEVICE_FAILURE;                               /* it is waited for once more */
    return error == CUDA_ERROR_DEINITIALIZED ? SB_OK : told(error); /* the process ends */
}

/* The same of a call of a slot, which may know more. */
static sb_status expected(const struct slot *slot, const char *fired, unsigned int error) {
    if (strcmp(fired, "cuCtxPopCurrent_v2") == 0)
        return SB_OK; /* given back twice */
    if (is_begun_again(slot, fired, error) || is_before_a_wait(slot, fired))
        return SB_OK;
    if (is_of_cublas(fired))
        return told_of_cublas(fired, error);
    if (strcmp(fired, "cuEventQuery") == 0 && error == CUDA_ERROR_NOT_READY)
        return SB_OK;
    if (slot->waits)
        return told_of_wait(error);
    if (slot->run == slot_alloc && strcmp(fired, "cuMemAllocFromPoolAsync") == 0 &&
        error == CUDA_ERROR_OUT_OF_MEMORY)
        return SB_OK; /* the pool is trimmed, and it is asked again */
    if (slot->run == slot_check_stream && error == CUDA_ERROR_INVALID_HANDLE)
        return SB_ERR_WRONG_DEVICE;
    return told(error);
}

static void give_back(struct bench *b, const struct slot *slot) {
    if (b->out && slot->run == slot_alloc)
        sb__cuda_backend.free(b->device, b->out, SIZE, (sb_stream)b->stream);
    else if (b->out && slot->run == slot_alloc_pinned)
        sb__cuda_backend.free_pinned(b->device, b->out, PINNED);
    else if (b->out)
        sb__cuda_backend.event_destroy(b->device, b->out);
    b->out = NULL;
    fake_drain();
    memset(fake_address((CUdeviceptr)(uintptr_t)b->from, SIZE), 0x11, SIZE);
    memset(fake_address((CUdeviceptr)(uintptr_t)b->to, SIZE), 0x22, SIZE);
    memset(b->host, 0x33, SIZE);
}

static bool is_unchanged(struct bench *b) {
    fake_drain();
    return !b->out && bytes_are(b->host, SIZE, 0x33) &&
           bytes_are(fake_address((CUdeviceptr)(uintptr_t)b->from, SIZE), SIZE, 0x11) &&
           bytes_are(fake_address((CUdeviceptr)(uintptr_t)b->to, SIZE), SIZE, 0x22);
}

/* Whether this thread's capture mode is that of a new thread. */
static bool is_mode_back(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
           mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/* What the slot comes to where the nth call of `function` fails; "" in `fired` where there was
   none. */
static sb_status run_failing(struct bench *b, const struct slot *slot, const char *function,
                             int64_t nth, enum fake_mode mode, unsigned int error,
                             const char **fired) {
    fake_fail(function, nth, mode, error);
    support_poison_error(&err);
    sb_status st = slot->run(b, &err);
    *fired = fake_fired() ? fake_fired() : "";
    fake_fail(NULL, 0, FAKE_NOW, 0);
    fake_revive(((struct sb__cuda_device *)b->device)->context);
    if (fake_depth() || !is_mode_back() ||
        (st != SB_OK && (err.code != st || err.device_code != (int32_t)error || !is_unchanged(b) ||
                         (st != SB_ERR_WRONG_DEVICE && !names(&err, *fired)))))
        fail_with("slot %d with error %u of %s: %d, %d, \"%s\", or something has changed",
                  (int)(slot - slots), error, *fired, err.code, err.device_code, err.message);
    give_back(b, slot);
    return st;
}

/* cuBLAS fails since the driver has lost the device, or has told it something else. */
static void fail_below_cublas(struct bench *b, const struct slot *slot, unsigned int error,
                              int64_t nth) {
    const char *fired;
    fake_set(FAKE_LOSS, error);
    sb_status st = run_failing(b, slot, slot->only, nth, FAKE_STICKY, error, &fired);
    bool lost = told(error) == SB_ERR_DEVICE_LOST;
    if (st != (lost ? SB_ERR_DEVICE_LOST : told_of_cublas(fired, error)))
        fail_with("slot %d with error %u below %s: %s", (int)(slot - slots), error, fired,
                  sb_status_name(st));
}

/* False when there was no nth call. */
static bool fail_slot(struct bench *b, const struct slot *slot, unsigned int error, int64_t nth) {
    const char *fired;
    sb_status st = run_failing(b, slot, slot->only, nth, FAKE_NOW, error, &fired);
    if (!*fired)
        return false;
    bool restored = st == SB_OK && strcmp(fired, "cuThreadExchangeStreamCaptureMode") == 0;
    if (st != expected(slot, fired, error) && !restored)
        fail_with("slot %d with error %u of %s: %s", (int)(slot - slots), error, fired,
                  sb_status_name(st));
    if (is_begun_again(slot, fired, error) &&
        run_failing(b, slot, fired, 1, FAKE_ALWAYS, error, &fired) != SB_ERR_DEVICE_FAILURE)
        fail_with("slot %d with error %u of %s, twice", (int)(slot - slots), error, fired);
    if (is_before_a_wait(slot, fired) &&
        run_failing(b, slot, fired, 1, FAKE_ALWAYS, error, &fired) != told_of_wait(error))
        fail_with("slot %d with error %u of %s, again and again", (int)(slot - slots), error,
                  fired);
    if (is_launch(fired) || (is_of_cublas(fired) && told(error) == SB_ERR_DEVICE_LOST))
        fail_below_cublas(b, slot, error, nth);
    assert_ok(slot->run(b, &err));
    give_back(b, slot);
    trials++;
    return true;
}

TEST(each_slot_tells_each_error) {
    struct bench b = {.out = NULL};
    const sb_backend *slot = &sb__cuda_backend;
    fake_forgive();
    assert_ok(slot->open(slot->user, 0, &b.device, &err));
    b.stream = (CUstream)slot->own_stream(b.device);
    assert_ok(slot->alloc(b.device, SIZE, (sb_stream)b.stream, &b.from, &err));
    assert_ok(slot->alloc(b.device, SIZE, (sb_stream)b.stream, &b.to, &err));
    assert_ok(slot->event_record(b.device, (sb_stream)b.stream, &b.event, &err));
    assert_ok(slot->prepare_arithmetic(b.device, &err));
    fake_drain();
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        give_back(&b, &slots[i]);
        for (size_t k = 0; k < sizeof errors / sizeof errors[0]; k++)
            for (unsigned int error = errors[k].first; error <= errors[k].last; error++)
                for (int64_t nth = 1; fail_slot(&b, &slots[i], error, nth); nth++)
                    ;
    }
    slot->event_destroy(b.device, b.event);
    slot->free(b.device, b.from, SIZE, (sb_stream)b.stream);
    slot->free(b.device, b.to, SIZE, (sb_stream)b.stream);
    slot->close(b.device);
    assert_untouched();
}

/* --- opening ------------------------------------------------------------------------------- */

/* Calls that fail in turn, and what the message says of each. */
TEST(opening_tells_each_call) {
    static const struct {
        const char *function, *said;
    } calls[] = {
        {"cuDeviceGetCount", "cuDeviceGetCount"},
        {"cuDeviceGet", "cuDeviceGet"},
        {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"},
        {"cuCtxGetId", "cuCtxGetId"},
        {"cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxGetState"},
        {"cuCtxGetCurrent", "cuCtxGetCurrent"},
        {"cuCtxPushCurrent_v2", "cuCtxPushCurrent"},
        {"cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode"},
        {"cuDeviceGetAttribute", "cuDeviceGetAttribute"},
        {"cuMemPoolCreate", "cuMemPoolCreate"},
        {"cuMemPoolSetAttribute", "cuMemPoolSetAttribute"},
        {"cuEventCreate", "cuEventCreate"},
        {"cuStreamCreate", "cuStreamCreate"},
    };
    static const struct {
        unsigned int code;
        const char *said;
    } codes[] = {{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN (CUDA_ERROR_UNKNOWN)"},
                 {888, "an unknown error (no description)"}};
    char said[120];
    sb_context *context;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
            (void)snprintf(said, sizeof said, "cuda:0: %s: %s", calls[i].said, codes[k].said);
            fake_fail(calls[i].function, 1, FAKE_NOW, codes[k].code);
            support_poison_error(&err);
            assert_status(SB_ERR_DEVICE_FAILURE, cuda_context("cuda:0", &context, &err));
            assert_int_equal(err.device_code, codes[k].code);
            assert_string_equal(err.message, said);
            assert_untouched();
        }
}

/* --- preparing arithmetic, once in a context ---------------------------------------------------
 */

static const struct preparing {
    const char *function;
    int times;
    bool is_tried_again; /* once memory is trimmed */
} preparing[] = {
    {"cuDevicePrimaryCtxRetain", 1, false},
    {"cuCtxPushCurrent_v2", 2, false},
    {"cuModuleLoadData", 1, false},
    {"cuModuleGetFunction", 4, false},
    {"cublasCreate_v2", 1, false},
    {"cublasSetStream_v2", 4, true},
    {"cublasSaxpy_v2_64", 1, true},
    {"cublasDaxpy_v2_64", 1, true},
    {"cublasSscal_v2_64", 1, true},
    {"cublasDscal_v2_64", 1, true},
    {"cuLaunchKernel", 4, true},
};

/* Nothing is prepared yet, and everything is after a second attempt. */
static void fail_preparing(const char *function, int64_t nth, enum fake_mode mode,
                           unsigned int error, sb_status wanted) {
    const sb_backend *slot = &sb__cuda_backend;
    void *device;
    fake_heal();
    assert_ok(slot->open(slot->user, 0, &device, &err));
    const struct fake_live before = fake_live();
    const int64_t trims = fake_calls("cuMemPoolTrimTo");
    fake_fail(function, nth, mode, error);
    support_poison_error(&err);
    const sb_status st = slot->prepare_arithmetic(device, &err);
    assert_non_null(fake_fired());
    fake_fail(NULL, 0, FAKE_NOW, 0);
    fake_revive(((struct sb__cuda_device *)device)->context);
    fake_drain();
    const struct fake_live now = fake_live();
    const bool kept = mode == FAKE_STICKY ||
                      (now.device_bytes == before.device_bytes && now.modules == now.handles);
    if (st != wanted || (st != SB_OK && (err.code != st || err.device_code != (int32_t)error)) ||
        (st == SB_OK && fake_calls("cuMemPoolTrimTo") == trims) || !kept ||
        now.retained != before.retained + now.handles)
        fail_with("preparing with error %u of %s %d: %s", error, function, (int)nth,
                  sb_status_name(st));
    assert_ok(slot->prepare_arithmetic(device, &err));
    slot->close(device);
    if (mode != FAKE_STICKY) /* a lost context keeps what was in it */
        assert_untouched();
    trials++;
}

/* What cannot be made for want of memory is tried again, too. */
static void fail_each_way(const struct preparing *row, int64_t nth, unsigned int error) {
    const bool blas = is_of_cublas(row->function);
    const sb_status wanted = blas ? told_of_cublas(row->function, error) : told(error);
    const bool is_tried_again = row->is_tried_again || wanted == SB_ERR_OUT_OF_MEMORY;
    const bool enters = strcmp(row->function, "cuCtxPushCurrent_v2") == 0; /* to give back, too */
    if (!enters || !is_tried_again)
        fail_preparing(row->function, nth, is_tried_again ? FAKE_ALWAYS : FAKE_NOW, error, wanted);
    if (is_tried_again && wanted == SB_ERR_OUT_OF_MEMORY)
        fail_preparing(row->function, nth, FAKE_NOW, error, SB_OK);
    if (blas && told(error) == SB_ERR_DEVICE_LOST) {
        fake_set(FAKE_LOSS, error);
        fail_preparing(row->function, nth, FAKE_STICKY, error, SB_ERR_DEVICE_LOST);
    }
}

/* Each status of cuBLAS's, and of the driver's errors one or two for each of our words. */
TEST(preparing_tells_each_error) {
    static const unsigned int few[] = {
        CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED,
        CUBLAS_STATUS_INVALID_VALUE,   CUBLAS_STATUS_ARCH_MISMATCH,
        CUBLAS_STATUS_MAPPING_ERROR,   CUBLAS_STATUS_EXECUTION_FAILED,
        CUBLAS_STATUS_INTERNAL_ERROR,  CUBLAS_STATUS_NOT_SUPPORTED,
        CUBLAS_STATUS_LICENSE_ERROR,   CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_NO_DEVICE,          CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        CUDA_ERROR_ILLEGAL_ADDRESS,    CUDA_ERROR_EXTERNAL_DEVICE};
    for (size_t i = 0; i < sizeof preparing / sizeof preparing[0]; i++)
        for (size_t k = 0; k < sizeof few / sizeof few[0]; k++)
            for (int64_t nth = 1; nth <= preparing[i].times; nth++)
                fail_each_way(&preparing[i], nth, few[k]);
    fail_preparing("cuCtxPushCurrent_v2", 3, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN,
                   SB_ERR_DEVICE_FAILURE); /* all is loaded, nothing has run */
    fake_heal();
    fake_set(FAKE_LOSS, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(as_the_process_ends) {
    every_call_fails(FAKE_EXIT, CUDA_ERROR_DEINITIALIZED);
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 10000);
}
