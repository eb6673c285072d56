/* Runs tests of the simulated device on the CUDA backend: the linker redirects their calls of
   sb_context_create to this file (--wrap). For "sim:N" it opens the CUDA backend and adds the
   functions that the tests request from a simulated device. It counts the calls of each slot of the
   backend, and can make a driver call fail within a chosen call of a slot. */
#include "fake.h"

#include "device.h"
#include "table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim_device.h>

#define DEVICES          8
#define MAX_STREAMS      128
#define MAX_FAULTS       4
#define EXECUTION_FAILED 13u /* CUBLAS_STATUS_EXECUTION_FAILED */

static sb_status status_of(CUresult result, sb_error *err) {
    if (result == CUDA_SUCCESS)
        return SB_OK;
    return sb_error_fill(
        err, result == CUDA_ERROR_ILLEGAL_ADDRESS ? SB_ERR_DEVICE_LOST : SB_ERR_DEVICE_FAILURE,
        (int32_t)result, "the fake driver refuses");
}

/* --- devices --------------------------------------------------------------------------------- */

/* The state of an open device of the backend, in a list that the fake driver's lock protects. */
static struct shim {
    void *device;
    int64_t calls[SB_SIM_OP_COUNT];
    sb_sim_fault faults[MAX_FAULTS];
    CUstream streams[MAX_STREAMS]; /* of the test; shim_close destroys the rest */
    struct shim *next;
} * shims;

static struct shim *shim_of(const void *device) {
    FAKE_LOCKED;
    struct shim *shim = shims;
    while (shim->device != device)
        shim = shim->next;
    return shim;
}

static CUcontext context_of(const void *device) {
    return ((const struct sb__cuda_device *)device)->context;
}

/* Opens a separate device for each context, as the simulated device does. */
static sb_status shim_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    static _Atomic int32_t opened;
    struct shim *shim = calloc(1, sizeof *shim);
    if (!shim)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
    fake_set(FAKE_DEVICES, DEVICES);
    ordinal = (ordinal + atomic_fetch_add(&opened, 1)) % DEVICES;
    const sb_status st = sb__cuda_backend.open(user, ordinal, &shim->device, err);
    if (st != SB_OK) {
        free(shim);
        return st;
    }
    *out = shim->device;
    (void)fake_lock();
    shim->next = shims;
    shims = shim;
    fake_unlock(NULL);
    return SB_OK;
}

static void shim_close(void *device) {
    CUcontext old, context = context_of(device);
    struct shim *shim = shim_of(device), **link = &shims;
    (void)cuCtxPushCurrent(context);
    for (size_t i = 0; i < MAX_STREAMS; i++)
        if (shim->streams[i]) {
            (void)cuStreamSynchronize(shim->streams[i]);
            (void)cuStreamDestroy(shim->streams[i]);
        }
    (void)cuCtxPopCurrent(&old);
    (void)fake_lock();
    while (*link != shim)
        link = &(*link)->next;
    *link = shim->next;
    fake_unlock(NULL);
    free(shim);
    sb__cuda_backend.close(device);
    fake_revive(context); /* since a later test opens the same device */
}

/* --- slots ----------------------------------------------------------------------------------- */

/* Counts down each armed fault. The first fault whose countdown ends makes the slot's driver call
   fail. Returns the mode of this fault, or -1 if no countdown ends. */
static int32_t arm(void *device, int32_t op, const char *function) {
    static const enum fake_mode modes[] = {FAKE_NOW, FAKE_TRANSIENT, FAKE_STICKY};
    struct shim *shim = shim_of(device);
    int32_t mode = -1;
    (void)fake_lock();
    shim->calls[op]++;
    for (sb_sim_fault *fault = shim->faults; fault < shim->faults + MAX_FAULTS; fault++)
        if (fault->countdown && (fault->op == SB_SIM_ANY || fault->op == op) &&
            --fault->countdown == 0 && mode < 0)
            mode = fault->mode;
    fake_unlock(NULL);
    if (mode < 0)
        return mode;
    unsigned int code = CUDA_ERROR_UNKNOWN;
    if (mode == SB_SIM_FAIL_STICKY)
        code = CUDA_ERROR_ILLEGAL_ADDRESS;
    else if (op == SB_SIM_ALLOC || op == SB_SIM_ALLOC_PINNED)
        code = CUDA_ERROR_OUT_OF_MEMORY;
    if (strncmp(function, "cublas", 6) == 0)
        code = EXECUTION_FAILED;
    const bool is_retried = op == SB_SIM_ALLOC && mode != SB_SIM_FAIL_STICKY;
    fake_fail(function, 1, is_retried ? FAKE_ALWAYS : modes[mode], code);
    return mode;
}

/* Ends the fault. Returns an error if the slot has not made the driver call that was to fail. */
static sb_status disarm(int32_t mode, sb_status st, sb_error *err) {
    if (mode < 0)
        return st;
    const char *fired = fake_fired();
    fake_fail(NULL, 0, FAKE_NOW, 0);
    if (fired || st != SB_OK)
        return st;
    return sb_error_fill(err,
                         mode == SB_SIM_FAIL_STICKY ? SB_ERR_DEVICE_LOST : SB_ERR_DEVICE_FAILURE,
                         (int32_t)CUDA_ERROR_UNKNOWN, "made to fail");
}

#define SLOT(name, op, function, parameters, ...)                                                  \
    static sb_status shim_##name parameters {                                                      \
        const int32_t mode = arm(device, op, function);                                            \
        return disarm(mode, sb__cuda_backend.name(device, __VA_ARGS__, err), err);                 \
    }
#define BLAS(name) (dtype == SB_DTYPE_F32 ? "cublasS" name "_v2_64" : "cublasD" name "_v2_64")

SLOT(alloc, SB_SIM_ALLOC, "cuMemAllocFromPoolAsync",
     (void *device, size_t bytes, sb_stream stream, void **out, sb_error *err), bytes, stream, out)
SLOT(zero, SB_SIM_ZERO, "cuMemsetD8Async",
     (void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err), dst, bytes, stream)
SLOT(upload, SB_SIM_UPLOAD, "cuMemcpyHtoDAsync_v2",
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(download, SB_SIM_DOWNLOAD, "cuMemcpyDtoHAsync_v2",
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(copy, SB_SIM_COPY, "cuMemcpyDtoDAsync_v2",
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(check_pointer, SB_SIM_CHECK_POINTER, "cuPointerGetAttributes",
     (void *device, const void *ptr, size_t bytes, sb_error *err), ptr, bytes)
SLOT(check_stream, SB_SIM_CHECK_STREAM, "cuStreamGetCtx",
     (void *device, sb_stream stream, sb_error *err), stream)
SLOT(stream_synchronize, SB_SIM_STREAM_SYNCHRONIZE, "cuStreamSynchronize",
     (void *device, sb_stream stream, sb_error *err), stream)
SLOT(event_record, SB_SIM_EVENT_RECORD, "cuEventRecord",
     (void *device, sb_stream stream, void **out, sb_error *err), stream, out)
SLOT(stream_wait, SB_SIM_STREAM_WAIT, "cuStreamWaitEvent",
     (void *device, sb_stream stream, void *event, sb_error *err), stream, event)
SLOT(event_wait, SB_SIM_EVENT_WAIT, "cuEventSynchronize",
     (void *device, void *event, sb_error *err), event)
SLOT(axpy, SB_SIM_AXPY, BLAS("axpy"),
     (void *device, int32_t dtype, int64_t count, double alpha, const void *x, void *y,
      sb_stream stream, sb_error *err),
     dtype, count, alpha, x, y, stream)
SLOT(scale, SB_SIM_SCALE, BLAS("scal"),
     (void *device, int32_t dtype, int64_t count, double alpha, void *x, sb_stream stream,
      sb_error *err),
     dtype, count, alpha, x, stream)
SLOT(asum, SB_SIM_ASUM, "cuLaunchKernel",
     (void *device, int32_t dtype, int64_t count, const void *x, double *out, sb_stream stream,
      sb_error *err),
     dtype, count, x, out, stream)
SLOT(sumsq, SB_SIM_SUMSQ, "cuLaunchKernel",
     (void *device, int32_t dtype, int64_t count, const void *x, double *out, sb_stream stream,
      sb_error *err),
     dtype, count, x, out, stream)

static sb_status shim_prepare_arithmetic(void *device, sb_error *err) {
    const int32_t mode = arm(device, SB_SIM_PREPARE_ARITHMETIC, "cublasCreate_v2");
    return disarm(mode, sb__cuda_backend.prepare_arithmetic(device, err), err);
}

/* A buffer from a slab needs no driver call that could fail. If the slot must fail, frees the
   buffer. */
static sb_status shim_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    void *made = NULL;
    const int32_t mode = arm(device, SB_SIM_ALLOC_PINNED, "cuMemHostAlloc");
    const sb_status st =
        disarm(mode, sb__cuda_backend.alloc_pinned(device, bytes, &made, err), err);
    if (st == SB_OK)
        *out = made;
    else if (made)
        sb__cuda_backend.free_pinned(device, made, bytes);
    return st;
}

/* Refuses unknown handles, as the simulated device does: NVIDIA's driver would crash. */
static sb_status shim_check_known(void *device, sb_stream stream, sb_error *err) {
    if (stream && !fake_knows((CUstream)stream))
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "no stream");
    return shim_check_stream(device, stream, err);
}

/* --- the extension table --------------------------------------------------------------------- */

static void lock(void *device) {
    (void)device;
    (void)fake_lock();
}

static void unlock(void *device) {
    (void)device;
    fake_unlock(NULL);
}

static void set_schedule(void *device, sb_sim_schedule schedule, uint64_t seed) {
    (void)device;
    fake_set(FAKE_SCHEDULE, schedule);
    fake_set(FAKE_SEED, (int64_t)seed);
}

static sb_sim_fault *faults(void *device, int32_t *out_count) {
    *out_count = MAX_FAULTS;
    return shim_of(device)->faults;
}

static const int64_t *calls(const void *device, int32_t *out_count) {
    *out_count = SB_SIM_OP_COUNT;
    return shim_of(device)->calls;
}

/* Makes the call with the device's context current, as an application does. */
#define IN_CONTEXT(call)                                                                           \
    CUcontext old;                                                                                 \
    (void)cuCtxPushCurrent(context_of(device));                                                    \
    const CUresult result = call;                                                                  \
    (void)cuCtxPopCurrent(&old)

static CUstream *slot_of(void *device, CUstream stream) {
    CUstream *slot = shim_of(device)->streams, *const end = slot + MAX_STREAMS;
    while (slot < end && *slot != stream)
        slot++;
    return slot < end ? slot : NULL;
}

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    CUstream *slot = slot_of(device, NULL);
    if (!slot)
        return sb_error_fill(err, SB_ERR_OVER_LIMIT, 0, "too many streams");
    IN_CONTEXT(cuStreamCreate(slot, CU_STREAM_NON_BLOCKING));
    if (result == CUDA_SUCCESS)
        *out = (sb_stream)*slot;
    return status_of(result, err);
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
    CUstream *slot = slot_of(device, (CUstream)stream);
    if (slot)
        *slot = NULL;
    IN_CONTEXT(cuStreamSynchronize((CUstream)stream));
    (void)result;
    return status_of(cuStreamDestroy((CUstream)stream), err);
}

static sb_status launch(void *device, sb_stream stream, void (*kernel)(void *user), void *user,
                        sb_error *err) {
    IN_CONTEXT(fake_launch((CUstream)stream, kernel, user));
    return status_of(result, err);
}

static sb_status alloc(void *device, size_t bytes, void **out, sb_error *err) {
    CUdeviceptr ptr = 0;
    IN_CONTEXT(cuMemAlloc(&ptr, bytes ? bytes : 1)); /* CUDA refuses to allocate 0 bytes */
    if (result == CUDA_SUCCESS)
        *out = (void *)(uintptr_t)ptr;
    return status_of(result, err);
}

static sb_status free_block(void *device, void *ptr, sb_error *err) {
    if (!ptr)
        return SB_OK;
    IN_CONTEXT(cuMemFree((CUdeviceptr)(uintptr_t)ptr));
    return status_of(result, err);
}

static void *address(const void *device, const void *ptr, size_t bytes, int32_t *out_ready) {
    (void)device;
    if (out_ready)
        *out_ready = 1;
    return fake_address((CUdeviceptr)(uintptr_t)ptr, bytes);
}

static const void *extension(void *device, const char *name) {
    static const sb_sim_device controls = {
        .struct_size = sizeof(sb_sim_device),
        .lock = lock,
        .unlock = unlock,
        .set_schedule = set_schedule,
        .faults = faults,
        .calls = calls,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .launch = launch,
        .alloc = alloc,
        .free = free_block,
        .address = address,
    };
    (void)device;
    return strcmp(name, SB_SIM_DEVICE) == 0 ? &controls : NULL;
}

/* --- contexts -------------------------------------------------------------------------------- */

static sb_backend backend;

__attribute__((constructor)) static void make_backend(void) {
    backend = sb__cuda_backend;
    backend.name = "sim";
    backend.dlpack_device = SB_DL_DEVICE_EXTENSION;
    backend.extension = extension;
    backend.open = shim_open;
    backend.close = shim_close;
    backend.alloc = shim_alloc;
    backend.zero = shim_zero;
    backend.upload = shim_upload;
    backend.download = shim_download;
    backend.copy = shim_copy;
    backend.alloc_pinned = shim_alloc_pinned;
    backend.check_pointer = shim_check_pointer;
    backend.check_stream = shim_check_known;
    backend.stream_synchronize = shim_stream_synchronize;
    backend.event_record = shim_event_record;
    backend.stream_wait = shim_stream_wait;
    backend.event_wait = shim_event_wait;
    backend.prepare_arithmetic = shim_prepare_arithmetic;
    backend.axpy = shim_axpy;
    backend.scale = shim_scale;
    backend.asum = shim_asum;
    backend.sumsq = shim_sumsq;
}

sb_status __real_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);
sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);

sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err) {
    if (!options || !options->device || strncmp(options->device, "sim:", 4) != 0 ||
        options->backend)
        return __real_sb_context_create(options, out, err);
    sb_context_options changed = *options;
    changed.backend = &backend;
    fake_set(FAKE_SCHEDULE, FAKE_EAGER);
    return __real_sb_context_create(&changed, out, err);
}

/* --- the end --------------------------------------------------------------------------------- */

/* Makes the process fail if the fake driver has counted a violation, which cmocka does not check.
   A test that writes to lent memory while a copy of that memory is queued sets FAKE_FORGIVE. */
__attribute__((destructor)) static void judge(void) {
    if ((fake_violations() && !getenv("FAKE_FORGIVE")) || fake_depth())
        _Exit(70);
}
