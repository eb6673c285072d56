/* Tests written for the simulated device, on the CUDA backend: the linker sends
   their calls of sb_context_create and of sb_sim_* here (--wrap). "sim:N" opens
   the CUDA backend behind a table that counts slots and, for the chosen one,
   makes the driver's call behind it fail. */
#include "fake.h"

#include "context/context.h"
#include "device.h"
#include "table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim.h>

#define FAILURE          ((unsigned int)CUDA_ERROR_UNKNOWN)
#define DEVICES          8
#define MAX_STREAMS      128
#define EXECUTION_FAILED 13u /* CUBLAS_STATUS_EXECUTION_FAILED */

/* --- a device that counts -------------------------------------------------------------------- */

struct shim {
    void *device; /* the backend's */
    CUcontext context;
    pthread_mutex_t lock;
    int64_t calls[SB_SIM_OP_COUNT];
    int32_t armed_op, armed_mode;
    int64_t armed_in;
    CUstream streams[MAX_STREAMS]; /* of the test; what is left goes with the device */
};

/* Each context has a separate device, as on the simulated device. */
static _Atomic int32_t opened;

static sb_status shim_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    struct shim *shim = calloc(1, sizeof *shim);
    if (!shim)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
    ordinal = (ordinal + atomic_fetch_add(&opened, 1)) % DEVICES;
    fake_set(FAKE_DEVICES, DEVICES);
    sb_status st = sb__cuda_backend.open(user, ordinal, &shim->device, err);
    if (st != SB_OK) {
        free(shim);
        return st;
    }
    shim->context = ((struct sb__cuda_device *)shim->device)->context;
    (void)pthread_mutex_init(&shim->lock, NULL);
    *out = shim;
    return SB_OK;
}

/* Puts one in the other's place. */
static bool replace_stream(struct shim *shim, CUstream old, CUstream new) {
    bool found = false;
    (void)pthread_mutex_lock(&shim->lock);
    for (size_t i = 0; i < MAX_STREAMS && !found; i++) {
        found = shim->streams[i] == old;
        if (found)
            shim->streams[i] = new;
    }
    (void)pthread_mutex_unlock(&shim->lock);
    return found;
}

static void destroy_streams(struct shim *shim) {
    CUcontext old;
    (void)cuCtxPushCurrent(shim->context);
    for (size_t i = 0; i < MAX_STREAMS; i++)
        if (shim->streams[i]) {
            (void)cuStreamSynchronize(shim->streams[i]);
            (void)cuStreamDestroy(shim->streams[i]);
        }
    (void)cuCtxPopCurrent(&old);
}

static void shim_close(void *device) {
    struct shim *shim = device;
    destroy_streams(shim);
    sb__cuda_backend.close(shim->device);
    fake_revive(shim->context); /* a later test gets the same device */
    (void)pthread_mutex_destroy(&shim->lock);
    free(shim);
}

static bool is_due(struct shim *shim, int32_t op) {
    (void)pthread_mutex_lock(&shim->lock);
    shim->calls[op]++;
    bool due = shim->armed_in && (shim->armed_op == SB_SIM_ANY || shim->armed_op == op) &&
               --shim->armed_in == 0;
    (void)pthread_mutex_unlock(&shim->lock);
    return due;
}

/* Arms the driver's call behind the slot. */
static void arm(struct shim *shim, int32_t op, const char *function) {
    static const enum fake_mode modes[] = {FAKE_NOW, FAKE_TRANSIENT, FAKE_STICKY};
    unsigned int code =
        op == SB_SIM_ALLOC || op == SB_SIM_ALLOC_PINNED ? CUDA_ERROR_OUT_OF_MEMORY : FAILURE;
    enum fake_mode mode = modes[shim->armed_mode];
    if (op == SB_SIM_ALLOC && mode != FAKE_STICKY)
        mode = FAKE_ALWAYS; /* the backend tries again */
    if (mode == FAKE_STICKY)
        code = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (strncmp(function, "cublas", 6) == 0)
        code = EXECUTION_FAILED;
    fake_fail(function, 1, mode, code);
}

/* What the call did not do, because the slot never made it, is failed here. */
static sb_status disarm(struct shim *shim, sb_status st, sb_error *err) {
    const char *fired = fake_fired();
    fake_fail(NULL, 0, FAKE_NOW, 0);
    if (fired || st != SB_OK)
        return st;
    if (shim->armed_mode == SB_SIM_FAIL_STICKY)
        return sb_error_fill(err, SB_ERR_DEVICE_LOST, (int32_t)FAILURE, "made to be lost");
    return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, (int32_t)FAILURE, "made to fail");
}

#define SLOT(op, function, call)                                                                   \
    struct shim *shim = device;                                                                    \
    bool due = is_due(shim, op);                                                                   \
    if (due)                                                                                       \
        arm(shim, op, function);                                                                   \
    sb_status st = sb__cuda_backend.call;                                                          \
    return due ? disarm(shim, st, err) : st

static sb_status shim_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    SLOT(SB_SIM_ALLOC, "cuMemAllocFromPoolAsync", alloc(shim->device, bytes, stream, out, err));
}

static void shim_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    sb__cuda_backend.free(((struct shim *)device)->device, ptr, bytes, stream);
}

static void shim_trim(void *device) {
    sb__cuda_backend.trim(((struct shim *)device)->device);
}

static sb_status shim_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_ZERO, "cuMemsetD8Async", zero(shim->device, dst, bytes, stream, err));
}

static sb_status shim_upload(void *device, void *dst, const void *src, size_t bytes,
                             sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_UPLOAD, "cuMemcpyHtoDAsync_v2", upload(shim->device, dst, src, bytes, stream, err));
}

static sb_status shim_download(void *device, void *dst, const void *src, size_t bytes,
                               sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_DOWNLOAD, "cuMemcpyDtoHAsync_v2",
         download(shim->device, dst, src, bytes, stream, err));
}

static sb_status shim_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                           sb_error *err) {
    SLOT(SB_SIM_COPY, "cuMemcpyDtoDAsync_v2", copy(shim->device, dst, src, bytes, stream, err));
}

static sb_status make_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    SLOT(SB_SIM_ALLOC_PINNED, "cuMemHostAlloc", alloc_pinned(shim->device, bytes, out, err));
}

/* A buffer that came out of a slab took no call of the driver that could have failed. */
static sb_status shim_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    void *made = NULL;
    const sb_status st = make_pinned(device, bytes, &made, err);
    if (st == SB_OK)
        *out = made;
    else if (made)
        sb__cuda_backend.free_pinned(((struct shim *)device)->device, made, bytes);
    return st;
}

static void shim_free_pinned(void *device, void *ptr, size_t bytes) {
    sb__cuda_backend.free_pinned(((struct shim *)device)->device, ptr, bytes);
}

static sb_status shim_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err) {
    SLOT(SB_SIM_CHECK_POINTER, "cuPointerGetAttributes",
         check_pointer(shim->device, ptr, bytes, err));
}

static sb_stream shim_own_stream(void *device) {
    return sb__cuda_backend.own_stream(((struct shim *)device)->device);
}

/* Simulated devices look handles up, and their tests pass some that are none. */
static sb_status shim_check_stream(void *device, sb_stream stream, sb_error *err) {
    if (stream && !fake_knows((CUstream)stream))
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "no stream");
    SLOT(SB_SIM_CHECK_STREAM, "cuStreamGetCtx", check_stream(shim->device, stream, err));
}

static sb_status shim_stream_synchronize(void *device, sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_STREAM_SYNCHRONIZE, "cuStreamSynchronize",
         stream_synchronize(shim->device, stream, err));
}

static sb_status shim_event_record(void *device, sb_stream stream, void **out, sb_error *err) {
    SLOT(SB_SIM_EVENT_RECORD, "cuEventRecord", event_record(shim->device, stream, out, err));
}

static sb_status shim_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    SLOT(SB_SIM_STREAM_WAIT, "cuStreamWaitEvent", stream_wait(shim->device, stream, event, err));
}

static sb_status shim_event_wait(void *device, void *event, sb_error *err) {
    SLOT(SB_SIM_EVENT_WAIT, "cuEventSynchronize", event_wait(shim->device, event, err));
}

static void shim_event_destroy(void *device, void *event) {
    sb__cuda_backend.event_destroy(((struct shim *)device)->device, event);
}

static sb_status shim_prepare(void *device, sb_error *err) {
    SLOT(SB_SIM_PREPARE_ARITHMETIC, "cublasCreate_v2", prepare_arithmetic(shim->device, err));
}

#define BLAS(name) (dtype == SB_DTYPE_F32 ? "cublasS" name "_v2_64" : "cublasD" name "_v2_64")

static sb_status shim_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_AXPY, BLAS("axpy"), axpy(shim->device, dtype, count, alpha, x, y, stream, err));
}

static sb_status shim_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                            sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_SCALE, BLAS("scal"), scale(shim->device, dtype, count, alpha, x, stream, err));
}

static sb_status shim_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_ASUM, BLAS("asum"), asum(shim->device, dtype, count, x, out, stream, err));
}

static sb_status shim_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                            sb_stream stream, sb_error *err) {
    SLOT(SB_SIM_SUMSQ, BLAS("dot"), sumsq(shim->device, dtype, count, x, out, stream, err));
}

static const sb_backend shim_backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .name = "sim",
    .open = shim_open,
    .close = shim_close,
    .alloc = shim_alloc,
    .free = shim_free,
    .zero = shim_zero,
    .upload = shim_upload,
    .download = shim_download,
    .copy = shim_copy,
    .alloc_pinned = shim_alloc_pinned,
    .free_pinned = shim_free_pinned,
    .check_pointer = shim_check_pointer,
    .own_stream = shim_own_stream,
    .check_stream = shim_check_stream,
    .stream_synchronize = shim_stream_synchronize,
    .event_record = shim_event_record,
    .stream_wait = shim_stream_wait,
    .event_wait = shim_event_wait,
    .event_destroy = shim_event_destroy,
    .prepare_arithmetic = shim_prepare,
    .axpy = shim_axpy,
    .scale = shim_scale,
    .asum = shim_asum,
    .sumsq = shim_sumsq,
    .trim = shim_trim,
    .dlpack_device = SB_DL_DEVICE_EXTENSION,
};

/* --- what the tests call --------------------------------------------------------------------- */

sb_status __real_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);
sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);
sb_status __wrap_sb_sim_set_schedule(sb_context *context, int32_t schedule, uint64_t seed,
                                     sb_error *err);
sb_status __wrap_sb_sim_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode,
                             sb_error *err);
sb_status __wrap_sb_sim_calls(const sb_context *context, int64_t *out, int32_t count,
                              sb_error *err);
sb_status __wrap_sb_sim_stream_create(sb_context *context, sb_stream *out, sb_error *err);
sb_status __wrap_sb_sim_stream_destroy(sb_context *context, sb_stream stream, sb_error *err);
sb_status __wrap_sb_sim_launch(sb_context *context, sb_stream stream, void (*kernel)(void *user),
                               void *user, sb_error *err);
void *__wrap_sb_sim_address(const sb_context *context, const void *ptr, size_t bytes);
sb_status __wrap_sb_sim_malloc(sb_context *context, size_t bytes, void **out, sb_error *err);
sb_status __wrap_sb_sim_free(sb_context *context, void *ptr, sb_error *err);
sb_status __wrap_sb_sim_peek(const sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err);
sb_status __wrap_sb_sim_poke(sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err);

static struct shim *shim_of(const sb_context *context) {
    return context->device;
}

static CUdeviceptr device_pointer(const void *ptr) {
    return (CUdeviceptr)(uintptr_t)ptr;
}

static sb_status status_of(CUresult result, sb_error *err) {
    if (result == CUDA_SUCCESS)
        return SB_OK;
    return sb_error_fill(
        err, result == CUDA_ERROR_ILLEGAL_ADDRESS ? SB_ERR_DEVICE_LOST : SB_ERR_DEVICE_FAILURE,
        (int32_t)result, "the fake driver refuses");
}

sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err) {
    if (!options || !options->device || strncmp(options->device, "sim:", 4) != 0 ||
        options->backend)
        return __real_sb_context_create(options, out, err);
    sb_context_options changed = *options;
    changed.backend = &shim_backend;
    fake_set(FAKE_SCHEDULE, FAKE_EAGER);
    return __real_sb_context_create(&changed, out, err);
}

sb_status __wrap_sb_sim_set_schedule(sb_context *context, int32_t schedule, uint64_t seed,
                                     sb_error *err) {
    (void)context, (void)err;
    fake_set(FAKE_SCHEDULE, schedule);
    fake_set(FAKE_SEED, (int64_t)seed);
    return SB_OK;
}

sb_status __wrap_sb_sim_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode,
                             sb_error *err) {
    struct shim *shim = shim_of(context);
    (void)err;
    (void)pthread_mutex_lock(&shim->lock);
    shim->armed_op = op;
    shim->armed_mode = mode;
    shim->armed_in = nth;
    (void)pthread_mutex_unlock(&shim->lock);
    return SB_OK;
}

sb_status __wrap_sb_sim_calls(const sb_context *context, int64_t *out, int32_t count,
                              sb_error *err) {
    struct shim *shim = shim_of(context);
    (void)err;
    (void)pthread_mutex_lock(&shim->lock);
    memcpy(out, shim->calls, (size_t)count * sizeof *out);
    (void)pthread_mutex_unlock(&shim->lock);
    return SB_OK;
}

/* In the context, as an application would. */
#define IN_CONTEXT(context, call)                                                                  \
    CUcontext old;                                                                                 \
    (void)cuCtxPushCurrent(shim_of(context)->context);                                             \
    CUresult result = call;                                                                        \
    (void)cuCtxPopCurrent(&old)

sb_status __wrap_sb_sim_stream_create(sb_context *context, sb_stream *out, sb_error *err) {
    CUstream stream;
    IN_CONTEXT(context, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (result == CUDA_SUCCESS && !replace_stream(shim_of(context), NULL, stream))
        return sb_error_fill(err, SB_ERR_OVER_LIMIT, 0, "more streams than the shim keeps");
    if (result == CUDA_SUCCESS)
        *out = (sb_stream)stream;
    return status_of(result, err);
}

sb_status __wrap_sb_sim_stream_destroy(sb_context *context, sb_stream stream, sb_error *err) {
    (void)replace_stream(shim_of(context), (CUstream)stream, NULL);
    IN_CONTEXT(context, cuStreamSynchronize((CUstream)stream));
    (void)result;
    return status_of(cuStreamDestroy((CUstream)stream), err);
}

sb_status __wrap_sb_sim_launch(sb_context *context, sb_stream stream, void (*kernel)(void *user),
                               void *user, sb_error *err) {
    IN_CONTEXT(context, fake_launch((CUstream)stream, kernel, user));
    return status_of(result, err);
}

void *__wrap_sb_sim_address(const sb_context *context, const void *ptr, size_t bytes) {
    (void)context;
    return fake_address(device_pointer(ptr), bytes);
}

/* Around a fault and a loss: the test's own memory. */
sb_status __wrap_sb_sim_malloc(sb_context *context, size_t bytes, void **out, sb_error *err) {
    CUdeviceptr ptr = 0;
    IN_CONTEXT(context, cuMemAlloc(&ptr, bytes ? bytes : 1)); /* CUDA allocates no 0 bytes */
    if (result == CUDA_SUCCESS)
        *out = (void *)(uintptr_t)ptr;
    return status_of(result, err);
}

sb_status __wrap_sb_sim_free(sb_context *context, void *ptr, sb_error *err) {
    if (!ptr)
        return SB_OK;
    IN_CONTEXT(context, cuMemFree(device_pointer(ptr)));
    return status_of(result, err);
}

static sb_status look(void *host, const void *device, size_t bytes, bool up, sb_error *err) {
    void *at = fake_address(device_pointer(device), bytes);
    if (!at)
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0, "no memory of the device");
    memcpy(up ? at : host, up ? host : at, bytes);
    return SB_OK;
}

sb_status __wrap_sb_sim_peek(const sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err) {
    (void)context;
    return look(dst, src, bytes, false, err);
}

sb_status __wrap_sb_sim_poke(sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err) {
    (void)context;
    return look((void *)(uintptr_t)src, dst, bytes, true, err);
}

/* --- the end --------------------------------------------------------------------------------- */

/* cmocka knows nothing of the fake driver, so the process says it. FAKE_FORGIVE is for a test that
   writes to what it has lent while a copy is queued. */
__attribute__((destructor)) static void judge(void) {
    if ((fake_violations() && !getenv("FAKE_FORGIVE")) || fake_depth())
        _Exit(70);
}
