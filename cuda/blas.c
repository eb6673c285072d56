#include "blas.h"

#include <stdio.h>
#include <stdlib.h>

static sb_status status_of(sb__cublas_status status) {
    switch (status) {
    case SB__CUBLAS_STATUS_ALLOC_FAILED:
        return SB_ERR_OUT_OF_MEMORY;
    case SB__CUBLAS_STATUS_ARCH_MISMATCH:
    case SB__CUBLAS_STATUS_NOT_SUPPORTED:
        return SB_ERR_UNSUPPORTED;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

static sb_status fail(const struct sb__cuda_device *device, sb__cublas_status status,
                      const char *call, sb_error *err) {
    char message[sizeof err->message];
    (void)snprintf(message, sizeof message, "cuda:%d: %s: cuBLAS status %u", device->ordinal, call,
                   status);
    return sb_error_fill(err, status_of(status), (int32_t)status, message);
}

/* Waits for the library's stream and returns the driver's result, because cuBLAS does not report a
   lost device reliably. If a stream capture forbids the wait, returns the capture's error. */
static sb__cu_result ask_driver(const struct sb__cuda_device *device) {
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_stream(device, device->stream, &visit);
    if (result != SB__CUDA_SUCCESS)
        return result;
    return sb__cuda_leave(device, &visit, device->cu->cuStreamSynchronize(device->stream));
}

sb_status sb__cuda_blas_status(const struct sb__cuda_device *device, sb__cublas_status status,
                               const char *call, sb_error *err) {
    if (status == SB__CUBLAS_STATUS_SUCCESS)
        return SB_OK;
    sb__cu_result result = ask_driver(device);
    if (sb__cuda_is_sticky(result))
        return sb__cuda_status(device, result, call, err);
    return fail(device, status, call, err);
}

/* --- handles ----------------------------------------------------------------------------- */

/* Protects `handles`. A forked child never takes the lock, since it cannot open the driver. */
static sb__mutex handles_lock = SB__MUTEX_INIT;
static struct sb__cuda_blas *handles;

static sb_status create_handle(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                               sb_error *err) {
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    sb__cublas_status status = blas->functions->cublasCreate_v2(&blas->handle);
    sb_status st = sb__cuda_blas_status(device, status, "cublasCreate", err);
    if (st == SB_ERR_DEVICE_FAILURE && status == SB__CUBLAS_STATUS_NOT_INITIALIZED)
        st = err->code = SB_ERR_OUT_OF_MEMORY; /* NOT_INITIALIZED means out of memory */
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    return st;
}

/* Retains the primary context for the handle, then loads the kernels and creates the handle. */
static sb_status keep_context(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                              sb_error *err) {
    sb__cu_context kept;
    sb_status st = sb__cuda_retain(device, &kept, err);
    if (st != SB_OK)
        return st;
    st = sb__cuda_load_sums(device, blas, err);
    if (st == SB_OK)
        st = create_handle(device, blas, err);
    if (st != SB_OK)
        sb__cuda_unload_sums(device, blas);
    if (st != SB_OK)
        sb__cuda_release(device);
    return st;
}

static sb_status make(const struct sb__cuda_device *device, struct sb__cuda_blas **out,
                      sb_error *err) {
    const struct sb__cublas *functions;
    sb_status st = sb__cublas_open(device->cu, &functions, err);
    if (st != SB_OK)
        return st;
    struct sb__cuda_blas *made = calloc(1, sizeof *made);
    if (!made)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a handle of cuBLAS");
    made->context_id = device->context_id;
    made->functions = functions;
    sb__mutex_init(&made->lock);
    st = keep_context(device, made, err);
    if (st == SB_OK) {
        *out = made;
        return SB_OK;
    }
    sb__mutex_destroy(&made->lock);
    free(made);
    return st;
}

sb_status sb__cuda_blas_get(const struct sb__cuda_device *device, struct sb__cuda_blas **out,
                            sb_error *err) {
    sb_status st = SB_OK;
    sb__mutex_lock(&handles_lock);
    struct sb__cuda_blas *blas = handles;
    while (blas && blas->context_id != device->context_id)
        blas = blas->next;
    if (!blas) {
        st = make(device, &blas, err);
        if (blas) {
            blas->next = handles;
            handles = blas;
        }
    }
    sb__mutex_unlock(&handles_lock);
    *out = blas;
    return st;
}

/* --- tasks ------------------------------------------------------------------------------- */

/* Calls sb__cuda_enter_queue and sets the handle's stream. On failure nothing is queued, and the
   caller must not call sb__cuda_leave. */
static sb_status begin(const struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                       sb__cu_stream stream, struct sb__cuda_visit *visit, sb_error *err) {
    sb__cu_result result = sb__cuda_enter_queue(device, stream, visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit->call, err);
    sb__cublas_status status = blas->functions->cublasSetStream_v2(blas->handle, stream);
    sb_status st = sb__cuda_blas_status(device, status, "cublasSetStream", err);
    if (st != SB_OK)
        (void)sb__cuda_leave(device, visit, SB__CUDA_SUCCESS);
    return st;
}

/* Retries a call that fails before the work is queued, because after a DEVICE_FAILURE callers
   assume that the output may have been written. */
static sb_status run_locked(const struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                            sb__cuda_task *task, const char *call, void *user, sb_stream stream,
                            sb_error *err) {
    struct sb__cuda_visit visit;
    sb_status st = begin(device, blas, sb__cuda_stream(stream), &visit, err);
    if (st == SB_ERR_DEVICE_FAILURE)
        st = begin(device, blas, sb__cuda_stream(stream), &visit, err);
    if (st != SB_OK)
        return st;
    st = sb__cuda_blas_status(device, task(blas, user), call, err);
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    return st;
}

sb_status sb__cuda_blas_run(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                            sb__cuda_task *task, const char *call, void *user, sb_stream stream,
                            sb_error *err) {
    sb__mutex_lock(&blas->lock);
    sb_status st = run_locked(device, blas, task, call, user, stream, err);
    sb__mutex_unlock(&blas->lock);
    return st;
}
