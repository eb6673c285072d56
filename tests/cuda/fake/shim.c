/* Runs tests of the simulated device on the CUDA backend. */
#include "shim.h"

#include "fake.h"

#include "device.h"
#include "table.h"

#include <stdatomic.h>

#define DEVICES          8
#define EXECUTION_FAILED 13u /* CUBLAS_STATUS_EXECUTION_FAILED */

static CUcontext context_of(const void *device) {
    return ((const struct sb__cuda_device *)device)->context;
}

/* The tests need a separate device for each context. */
static sb_status open_another(void *user, int32_t ordinal, void **out, sb_error *err) {
    static _Atomic int32_t opened;
    fake_set(FAKE_SCHEDULE, FAKE_EAGER);
    fake_set(FAKE_DEVICES, DEVICES);
    return sb__cuda_backend.open(user, (ordinal + atomic_fetch_add(&opened, 1)) % DEVICES, out,
                                 err);
}

static void close_device(void *device) {
    CUcontext context = context_of(device);
    sb__cuda_backend.close(device);
    fake_revive(context);
}

/* NVIDIA's driver would crash on an unknown handle. */
static sb_status check_known(void *device, sb_stream stream, sb_error *err) {
    if (stream && !fake_knows((CUstream)stream))
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "no stream");
    return sb__cuda_backend.check_stream(device, stream, err);
}

static const char *function_of(const struct shim_call *call) {
    static const char *const functions[SB_SIM_OP_COUNT] = {
        [SB_SIM_ALLOC] = "cuMemAllocFromPoolAsync",
        [SB_SIM_ZERO] = "cuMemsetD8Async",
        [SB_SIM_UPLOAD] = "cuMemcpyHtoDAsync_v2",
        [SB_SIM_DOWNLOAD] = "cuMemcpyDtoHAsync_v2",
        [SB_SIM_COPY] = "cuMemcpyDtoDAsync_v2",
        [SB_SIM_ALLOC_PINNED] = "cuMemHostAlloc", /* not called for a buffer from a slab */
        [SB_SIM_CHECK_POINTER] = "cuPointerGetAttributes",
        [SB_SIM_CHECK_STREAM] = "cuStreamGetCtx",
        [SB_SIM_STREAM_SYNCHRONIZE] = "cuStreamSynchronize",
        [SB_SIM_EVENT_RECORD] = "cuEventRecord",
        [SB_SIM_STREAM_WAIT] = "cuStreamWaitEvent",
        [SB_SIM_EVENT_WAIT] = "cuEventSynchronize",
        [SB_SIM_PREPARE_ARITHMETIC] = "cublasCreate_v2",
        [SB_SIM_AXPY] = "cublasSaxpy_v2_64",
        [SB_SIM_SCALE] = "cublasSscal_v2_64",
        [SB_SIM_ASUM] = "cuLaunchKernel",
        [SB_SIM_SUMSQ] = "cuLaunchKernel",
    };
    if (call->dtype == SB_DTYPE_F64 && call->op == SB_SIM_AXPY)
        return "cublasDaxpy_v2_64";
    if (call->dtype == SB_DTYPE_F64 && call->op == SB_SIM_SCALE)
        return "cublasDscal_v2_64";
    return functions[call->op];
}

static void arm(struct shim *shim, const struct shim_call *call) {
    static const enum fake_mode modes[] = {FAKE_NOW, FAKE_TRANSIENT, FAKE_STICKY};
    if (call->mode == SHIM_NO_FAULT)
        return;
    const char *function = function_of(call);
    unsigned int code = CUDA_ERROR_UNKNOWN;
    if (strncmp(function, "cublas", 6) == 0)
        code = EXECUTION_FAILED;
    else if (call->mode == SB_SIM_FAIL_STICKY)
        code = CUDA_ERROR_ILLEGAL_ADDRESS;
    else if (call->op == SB_SIM_ALLOC || call->op == SB_SIM_ALLOC_PINNED)
        code = CUDA_ERROR_OUT_OF_MEMORY;
    const bool is_retried = call->op == SB_SIM_ALLOC && call->mode != SB_SIM_FAIL_STICKY;
    fake_fail(function, 1, is_retried ? FAKE_ALWAYS : modes[call->mode], code);
}

static bool disarm(struct shim *shim, const struct shim_call *call) {
    if (call->mode == SHIM_NO_FAULT)
        return false;
    const bool fired = fake_fired() != NULL;
    fake_fail(NULL, 0, FAKE_NOW, 0);
    return fired;
}

static void lock(void) {
    (void)fake_lock();
}

static void unlock(void) {
    fake_unlock(NULL);
}

static void lock_device(void *device) {
    lock();
}

static void unlock_device(void *device) {
    unlock();
}

static void set_schedule(void *device, sb_sim_schedule schedule, uint64_t seed) {
    fake_set(FAKE_SCHEDULE, schedule);
    fake_set(FAKE_SEED, (int64_t)seed);
}

static sb_status status_of(CUresult result, sb_error *err) {
    if (result == CUDA_SUCCESS)
        return SB_OK;
    return sb_error_fill(
        err, result == CUDA_ERROR_ILLEGAL_ADDRESS ? SB_ERR_DEVICE_LOST : SB_ERR_DEVICE_FAILURE,
        (int32_t)result, "the fake driver refuses");
}

#define IN_CONTEXT(call)                                                                           \
    CUcontext old;                                                                                 \
    (void)cuCtxPushCurrent(context_of(device));                                                    \
    const CUresult result = call;                                                                  \
    (void)cuCtxPopCurrent(&old)

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    IN_CONTEXT(cuStreamCreate((CUstream *)(void *)out, CU_STREAM_NON_BLOCKING));
    return status_of(result, err);
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
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
    if (out_ready)
        *out_ready = 1;
    return fake_address((CUdeviceptr)(uintptr_t)ptr, bytes);
}

struct shim_target shim_target(void) {
    struct shim_target target = {
        .backend = sb__cuda_backend,
        .controls = {.lock = lock_device,
                     .unlock = unlock_device,
                     .set_schedule = set_schedule,
                     .stream_create = stream_create,
                     .stream_destroy = stream_destroy,
                     .launch = launch,
                     .alloc = alloc,
                     .free = free_block,
                     .address = address},
        .lock = lock,
        .unlock = unlock,
        .arm = arm,
        .disarm = disarm,
    };
    target.backend.open = open_another;
    target.backend.close = close_device;
    target.backend.check_stream = check_known;
    return target;
}

/* cmocka does not check the fake driver's violations. */
__attribute__((destructor)) static void judge(void) {
    if (fake_violations() || fake_depth())
        _Exit(70);
}
