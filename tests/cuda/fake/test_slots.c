/* Makes each driver or cuBLAS call of each backend slot fail with each error. */
#include "fixture.h"

#include "device.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <string.h>

/* By cuda.h, the errors with SB_ERR_DEVICE_LOST leave the context or the hardware unusable. */
static sb_status status_of(unsigned int error) {
    static const struct {
        unsigned int first, last;
        sb_status status;
    } rows[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, SB_ERR_OUT_OF_MEMORY},
        {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE, SB_ERR_NO_DEVICE},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, SB_ERR_UNSUPPORTED},
        {CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX, SB_ERR_UNSUPPORTED},
        {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILATION_DISABLED,
         SB_ERR_UNSUPPORTED},
        {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, SB_ERR_UNSUPPORTED},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
         SB_ERR_UNSUPPORTED},
        {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ASSERT, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_LAUNCH_FAILED, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED, SB_ERR_DEVICE_LOST},
        {CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_EXTERNAL_DEVICE, SB_ERR_DEVICE_LOST},
        {226, 226, SB_ERR_DEVICE_LOST}, /* CUDA_ERROR_CONTAINED, newer than CUDA 12.0 */
        {721, 721, SB_ERR_DEVICE_LOST}, /* CUDA_ERROR_TENSOR_MEMORY_LEAK, newer than CUDA 12.0 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (error >= rows[i].first && error <= rows[i].last)
            return rows[i].status;
    return SB_ERR_DEVICE_FAILURE;
}

static bool is(const char *function, const char *name) {
    return strcmp(function, name) == 0;
}

static bool is_of_cublas(const char *function) {
    return strncmp(function, "cublas", 6) == 0;
}

static bool is_launch(const char *function) {
    return is_of_cublas(function) && !is(function, "cublasSetStream_v2") &&
           !is(function, "cublasCreate_v2");
}

static sb_status status_from(const char *function, unsigned int error) {
    if (!is_of_cublas(function))
        return status_of(error);
    switch (error) {
    case CUBLAS_STATUS_NOT_INITIALIZED: /* cublasCreate returns this status if out of memory */
        return is(function, "cublasCreate_v2") ? SB_ERR_OUT_OF_MEMORY : SB_ERR_DEVICE_FAILURE;
    case CUBLAS_STATUS_ALLOC_FAILED:
        return SB_ERR_OUT_OF_MEMORY;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return SB_ERR_UNSUPPORTED;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

enum { SIZE = 64, PINNED = 128 << 10 }; /* PINNED is too large for a slab */

struct bench {
    void *device, *from, *to, *event, *out;
    sb_stream stream;
    unsigned char host[SIZE];
    struct fake_live live;
    bool is_warming, trimmed;
};

static const sb_backend *const backend = &sb__cuda_backend;

#define FLOATS  SB_DTYPE_F32, SIZE / sizeof(float)
#define DOUBLES SB_DTYPE_F64, SIZE / sizeof(double)
/* X(slot, the only function that fails or NULL, whether the slot waits, the slot's arguments) */
#define SLOTS(X)                                                                                   \
    X(alloc, NULL, false, SIZE, b->stream, &b->out, err)                                           \
    X(alloc_pinned, NULL, false, PINNED, &b->out, err)                                             \
    X(event_record, NULL, false, b->stream, &b->out, err)                                          \
    X(zero, NULL, false, b->to, SIZE, b->stream, err)                                              \
    X(upload, NULL, false, b->to, b->host, SIZE, b->stream, err)                                   \
    X(download, NULL, false, b->host, b->from, SIZE, b->stream, err)                               \
    X(copy, NULL, false, b->to, b->from, SIZE, b->stream, err)                                     \
    X(check_pointer, NULL, false, b->to, SIZE, err)                                                \
    X(check_stream, NULL, false, b->stream, err)                                                   \
    X(stream_synchronize, NULL, true, b->stream, err)                                              \
    X(stream_wait, NULL, false, b->stream, b->event, err)                                          \
    X(event_wait, NULL, true, b->event, err)                                                       \
    X(event_query, NULL, true, b->event, &(int32_t){0}, err)                                       \
    X(asum, "cuLaunchKernel", false, FLOATS, b->from, &(double){0}, b->stream, err)                \
    X(sumsq, "cuLaunchKernel", false, FLOATS, b->from, &(double){0}, b->stream, err)               \
    X(axpy, NULL, false, FLOATS, 1, b->from, b->to, b->stream, err)                                \
    X(scale, NULL, false, DOUBLES, 2, b->to, b->stream, err)                                       \
    X(after_default, NULL, false, err)                                                             \
    X(prepare_arithmetic, "cuModuleLoadData", false, err)

#define SLOT_FUNCTION(name, only, waits, ...)                                                      \
    static sb_status name(struct bench *b, sb_error *err) {                                        \
        return backend->name(b->device, __VA_ARGS__);                                              \
    }
SLOTS(SLOT_FUNCTION)

#define SLOT_ROW(name, only, waits, ...) {name, only, waits},
static const struct slot {
    sb_status (*run)(struct bench *b, sb_error *err);
    const char *only;
    bool waits;
} slots[] = {
    SLOTS(SLOT_ROW){prepare_arithmetic, "cuDevicePrimaryCtxRetain", false},
    {prepare_arithmetic, "cuCtxPushCurrent_v2", false},
    {prepare_arithmetic, "cuModuleGetFunction", false},
    {prepare_arithmetic, "cublasCreate_v2", false},
    {prepare_arithmetic, "cublasSetStream_v2", false},
    {prepare_arithmetic, "cublasSaxpy_v2_64", false},
    {prepare_arithmetic, "cublasDaxpy_v2_64", false},
    {prepare_arithmetic, "cublasSscal_v2_64", false},
    {prepare_arithmetic, "cublasDscal_v2_64", false},
    {prepare_arithmetic, "cuLaunchKernel", false},
};

/* The backend retries only if nothing is queued yet, or if the wait has not begun. After
   cublasCreate, prepare_arithmetic only runs each kernel, so a retry may run the kernels again. */
static bool is_retried(const struct bench *b, const struct slot *slot, const char *fired,
                       unsigned int error) {
    const sb_status st = status_from(fired, error);
    if (slot->waits)
        return is(fired, "cuCtxGetCurrent") || is(fired, "cuCtxPushCurrent_v2") ||
               is(fired, "cuThreadExchangeStreamCaptureMode");
    if (slot->run == prepare_arithmetic)
        return st == SB_ERR_OUT_OF_MEMORY || (st != SB_ERR_DEVICE_LOST && b->is_warming);
    return (slot->run == axpy || slot->run == scale) && !is_launch(fired) &&
           st == SB_ERR_DEVICE_FAILURE;
}

static sb_status lasting(const struct slot *slot, const char *fired, unsigned int error) {
    if (slot->waits && error == CUDA_ERROR_OUT_OF_MEMORY)
        return SB_ERR_DEVICE_FAILURE; /* so that the core only repeats the wait */
    if (slot->waits && error == CUDA_ERROR_DEINITIALIZED)
        return SB_OK; /* at process exit, work counts as complete */
    if (slot->run == check_stream && error == CUDA_ERROR_INVALID_HANDLE)
        return SB_ERR_WRONG_DEVICE;
    if (is(fired, "cuStreamGetCtx") && error == CUDA_ERROR_NOT_SUPPORTED)
        return SB_ERR_WRONG_DEVICE; /* a stream of a green context */
    return status_from(fired, error);
}

static sb_status expected(const struct bench *b, const struct slot *slot, const char *fired,
                          unsigned int error) {
    if (is_retried(b, slot, fired, error) ||
        (is(fired, "cuEventQuery") && error == CUDA_ERROR_NOT_READY) ||
        (is(fired, "cuMemAllocFromPoolAsync") && error == CUDA_ERROR_OUT_OF_MEMORY))
        return SB_OK;
    return lasting(slot, fired, error);
}

static void open_bench(struct bench *b) {
    fake_heal();
    *b = (struct bench){.out = NULL};
    assert_ok(backend->open(backend->user, 0, &b->device, &err));
    b->stream = backend->own_stream(b->device);
    assert_ok(backend->alloc(b->device, SIZE, b->stream, &b->from, &err));
    assert_ok(backend->alloc(b->device, SIZE, b->stream, &b->to, &err));
    assert_ok(backend->event_record(b->device, b->stream, &b->event, &err));
    fake_drain();
}

static void close_bench(struct bench *b) {
    backend->event_destroy(b->device, b->event);
    backend->free(b->device, b->from, SIZE, b->stream);
    backend->free(b->device, b->to, SIZE, b->stream);
    backend->close(b->device);
}

static void reset(struct bench *b, const struct slot *slot) {
    if (slot->run == prepare_arithmetic) {
        close_bench(b);
        open_bench(b);
    } else if (b->out && slot->run == alloc) {
        backend->free(b->device, b->out, SIZE, b->stream);
    } else if (b->out && slot->run == alloc_pinned) {
        backend->free_pinned(b->device, b->out, PINNED);
    } else if (b->out) {
        backend->event_destroy(b->device, b->out);
    }
    b->out = NULL;
    fake_drain();
    memset(fake_address((CUdeviceptr)(uintptr_t)b->from, SIZE), 0x11, SIZE);
    memset(fake_address((CUdeviceptr)(uintptr_t)b->to, SIZE), 0x22, SIZE);
    memset(b->host, 0x33, SIZE);
    b->live = fake_live();
}

/* Each new cuBLAS handle has a module and retains its context. */
static bool is_unchanged(struct bench *b) {
    fake_drain();
    const struct fake_live now = fake_live();
    return !b->out && now.device_bytes == b->live.device_bytes && now.modules == now.handles &&
           now.retained - b->live.retained == now.handles - b->live.handles &&
           bytes_are(b->host, SIZE, 0x33) &&
           bytes_are(fake_address((CUdeviceptr)(uintptr_t)b->from, SIZE), SIZE, 0x11) &&
           bytes_are(fake_address((CUdeviceptr)(uintptr_t)b->to, SIZE), SIZE, 0x22);
}

static bool is_mode_back(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    return cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS &&
           mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}

/* `*fired` becomes the function that failed, or "" if there were fewer than `nth` calls. */
static sb_status run_failing(struct bench *b, const struct slot *slot, const char *function,
                             int64_t nth, enum fake_mode mode, unsigned int error,
                             const char **fired) {
    const int64_t trims = fake_calls("cuMemPoolTrimTo"), created = fake_calls("cublasCreate_v2");
    (void)is_mode_back();
    fake_fail(function, nth, mode, error);
    support_poison_error(&err);
    const sb_status st = slot->run(b, &err);
    *fired = fake_fired() ? fake_fired() : "";
    fake_fail(NULL, 0, FAKE_NOW, 0);
    const bool trimmed = fake_calls("cuMemPoolTrimTo") > trims;
    const bool is_warming =
        fake_calls("cublasCreate_v2") > created && !is(*fired, "cublasCreate_v2");
    fake_revive(((struct sb__cuda_device *)b->device)->context);
    if (fake_depth() || !is_mode_back() ||
        (st != SB_OK && (err.code != st || err.device_code != (int32_t)error ||
                         (!is_unchanged(b) && mode != FAKE_STICKY) ||
                         (st != SB_ERR_WRONG_DEVICE && !names(&err, *fired)))))
        fail_with("slot %d with error %u of %s: wrong result %d, %d, \"%s\", or changed state",
                  (int)(slot - slots), error, *fired, err.code, err.device_code, err.message);
    if (st != SB_OK)
        assert_ok(slot->run(b, &err));
    reset(b, slot);
    b->trimmed = trimmed;
    b->is_warming = is_warming;
    return st;
}

static void assert_slot(sb_status found, sb_status wanted, const struct slot *slot,
                        unsigned int error, const char *fired, const char *how) {
    if (found != wanted)
        fail_with("slot %d with error %u %s %s: %s, not %s", (int)(slot - slots), error, how, fired,
                  sb_status_name(found), sb_status_name(wanted));
}

/* The slot `copy` is tested with every error. Other slots are tested with one error of each status,
   and with errors that some slots treat specially. */
static bool is_tested(const struct slot *slot, unsigned int error) {
    unsigned int first = 1;
    while (status_of(first) != status_of(error))
        first++;
    return slot->run == copy || error == first || error == CUDA_ERROR_INVALID_HANDLE ||
           error == CUDA_ERROR_NOT_READY || error == CUDA_ERROR_NOT_SUPPORTED ||
           (slot->only && is_of_cublas(slot->only) && error < 20);
}

static int64_t trials;

static bool fail_slot(struct bench *b, const struct slot *slot, unsigned int error, int64_t nth) {
    const char *fired;
    const bool is_loss = status_of(error) == SB_ERR_DEVICE_LOST;
    sb_status st = run_failing(b, slot, slot->only, nth, FAKE_NOW, error, &fired);
    if (!*fired)
        return false;
    const bool at_end = /* neither the end of a call nor a free reports a failure */
        is(fired, "cuCtxPopCurrent_v2") ||
        (st == SB_OK && (is(fired, "cuThreadExchangeStreamCaptureMode") ||
                         (slot->run == prepare_arithmetic && is(fired, "cuCtxPushCurrent_v2"))));
    assert_slot(st, at_end ? SB_OK : expected(b, slot, fired, error), slot, error, fired, "of");
    if (is_retried(b, slot, fired, error) && !at_end) {
        assert_true(b->trimmed || !is_of_cublas(fired) ||
                    status_from(fired, error) != SB_ERR_OUT_OF_MEMORY);
        st = run_failing(b, slot, fired, 1, FAKE_ALWAYS, error, &fired);
        assert_slot(st, lasting(slot, fired, error), slot, error, fired, "of each");
    }
    if ((is_launch(fired) && slot->run != prepare_arithmetic) ||
        (is_of_cublas(fired) && is_loss)) { /* the driver fails inside cuBLAS */
        fake_set(FAKE_LOSS, error);
        st = run_failing(b, slot, slot->only, nth, FAKE_STICKY, error, &fired);
        assert_slot(st, is_loss ? SB_ERR_DEVICE_LOST : status_from(fired, error), slot, error,
                    fired, "below");
    }
    trials++;
    return true;
}

TEST(each_slot_returns_each_error) {
    struct bench b;
    open_bench(&b);
    assert_ok(backend->prepare_arithmetic(b.device, &err));
    for (const struct slot *slot = slots; slot < slots + sizeof slots / sizeof *slots; slot++) {
        reset(&b, slot);
        for (unsigned int error = 1; error < 1000; error++)
            for (int64_t nth = 1; is_tested(slot, error); nth++)
                if (!fail_slot(&b, slot, error, nth))
                    break;
    }
    close_bench(&b);
    assert_untouched();
    fake_heal();
    fake_set(FAKE_LOSS, CUDA_ERROR_ILLEGAL_ADDRESS);
    print_message("%lld calls failed\n", (long long)trials);
    assert_true(trials > 3000);
}

TEST(the_message_has_the_name_and_the_description_of_an_error) {
    sb_context *context;
    fake_fail("cuCtxGetId", 1, FAKE_NOW, CUDA_ERROR_UNKNOWN);
    assert_status(SB_ERR_DEVICE_FAILURE, cuda_context("cuda:0", &context, &err));
    assert_string_equal(err.message, "cuda:0: cuCtxGetId: CUDA_ERROR_UNKNOWN (CUDA_ERROR_UNKNOWN)");
    fake_fail("cuStreamCreate", 1, FAKE_NOW, 888);
    assert_status(SB_ERR_DEVICE_FAILURE, cuda_context("cuda:0", &context, &err));
    assert_int_equal(err.device_code, 888);
    assert_string_equal(err.message, "cuda:0: cuStreamCreate: an unknown error (no description)");
    assert_untouched();
}
