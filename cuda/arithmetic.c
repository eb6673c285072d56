/* Arithmetic by cuBLAS, with a handle for each device under a lock: a handle
   has one stream at a time. Scalars are in host memory, the default mode of a
   handle, so that sums wait for their results. */
#include "device.h"

#include <stdio.h>

static sb_status status_of(sb__cublas_status status) {
    switch (status) {
    case SB__CUBLAS_STATUS_NOT_INITIALIZED: /* what a handle's creation says when memory is short */
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
                      const char *what, sb_error *err) {
    char message[sizeof err->message];
    (void)snprintf(message, sizeof message, "cuda:%d: %s: cuBLAS status %u", device->ordinal, what,
                   status);
    return sb_backend_fail(err, status_of(status), (int32_t)status, message);
}

/* cuBLAS tells little of a lost device; the driver knows. */
static sb_status explain(const struct sb__cuda_device *device, sb__cublas_status status,
                         const char *what, sb_error *err) {
    sb__cu_result result = device->cu->cuStreamSynchronize(device->stream);
    if (sb__cuda_is_sticky(result))
        return sb__cuda_status(device, result, what, err);
    return fail(device, status, what, err);
}

/* --- the handle -------------------------------------------------------------------------- */

static sb_status create_handle(struct sb__cuda_device *device, sb_error *err) {
    unsigned int mode;
    sb__cu_result result = sb__cuda_enter(device, &mode);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, "cuCtxPushCurrent", err);
    sb__cublas_handle handle = NULL;
    sb__cublas_status status = device->cublas->cublasCreate_v2(&handle);
    sb_status st = SB_OK;
    if (status == SB__CUBLAS_STATUS_SUCCESS)
        device->blas = handle;
    else
        st = explain(device, status, "cublasCreate", err);
    (void)sb__cuda_leave(device, &mode, SB__CUDA_SUCCESS);
    return st;
}

sb_status sb__cuda_prepare_arithmetic(void *opened, sb_error *err) {
    struct sb__cuda_device *device = opened;
    sb_status st = SB_OK;
    (void)pthread_mutex_lock(&device->blas_lock);
    if (!device->cublas)
        st = sb__cublas_open(device->cu, &device->cublas, err);
    if (st == SB_OK && !device->blas)
        st = create_handle(device, err);
    (void)pthread_mutex_unlock(&device->blas_lock);
    return st;
}

/* --- the operations ------------------------------------------------------------------------ */

enum operation { AXPY, SCALE, ASUM, SUMSQ };

struct work {
    enum operation operation;
    int32_t dtype;
    int64_t count;
    double alpha;
    const void *x;
    void *y; /* SCALE: what x is */
    double *out;
};

static sb__cublas_status run_f32(const struct sb__cuda_device *device, const struct work *work) {
    const struct sb__cublas *blas = device->cublas;
    float alpha = (float)work->alpha, sum = 0;
    sb__cublas_status status;
    switch (work->operation) {
    case AXPY:
        return blas->cublasSaxpy_v2_64(device->blas, work->count, &alpha, work->x, 1, work->y, 1);
    case SCALE:
        return blas->cublasSscal_v2_64(device->blas, work->count, &alpha, work->y, 1);
    case ASUM:
        status = blas->cublasSasum_v2_64(device->blas, work->count, work->x, 1, &sum);
        break;
    default:
        status = blas->cublasSdot_v2_64(device->blas, work->count, work->x, 1, work->x, 1, &sum);
        break;
    }
    *work->out = (double)sum;
    return status;
}

static sb__cublas_status run_f64(const struct sb__cuda_device *device, const struct work *work) {
    const struct sb__cublas *blas = device->cublas;
    const double *alpha = &work->alpha;
    switch (work->operation) {
    case AXPY:
        return blas->cublasDaxpy_v2_64(device->blas, work->count, alpha, work->x, 1, work->y, 1);
    case SCALE:
        return blas->cublasDscal_v2_64(device->blas, work->count, alpha, work->y, 1);
    case ASUM:
        return blas->cublasDasum_v2_64(device->blas, work->count, work->x, 1, work->out);
    default:
        return blas->cublasDdot_v2_64(device->blas, work->count, work->x, 1, work->x, 1, work->out);
    }
}

static sb_status run_locked(const struct sb__cuda_device *device, const struct work *work,
                            sb_stream stream, sb_error *err) {
    unsigned int mode;
    sb__cu_result result = sb__cuda_enter(device, &mode);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, "cuCtxPushCurrent", err);
    sb__cublas_status status =
        device->cublas->cublasSetStream_v2(device->blas, sb__cuda_stream(stream));
    if (status == SB__CUBLAS_STATUS_SUCCESS)
        status = work->dtype == SB_DTYPE_F32 ? run_f32(device, work) : run_f64(device, work);
    sb_status st =
        status == SB__CUBLAS_STATUS_SUCCESS ? SB_OK : explain(device, status, "cuBLAS", err);
    (void)sb__cuda_leave(device, &mode, SB__CUDA_SUCCESS);
    return st;
}

static sb_status run(void *opened, const struct work *work, sb_stream stream, sb_error *err) {
    struct sb__cuda_device *device = opened;
    (void)pthread_mutex_lock(&device->blas_lock);
    sb_status st = run_locked(device, work, stream, err);
    (void)pthread_mutex_unlock(&device->blas_lock);
    return st;
}

sb_status sb__cuda_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                        void *y, sb_stream stream, sb_error *err) {
    struct work work = {
        .operation = AXPY, .dtype = dtype, .count = count, .alpha = alpha, .x = x, .y = y};
    return run(device, &work, stream, err);
}

sb_status sb__cuda_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                         sb_stream stream, sb_error *err) {
    struct work work = {.operation = SCALE, .dtype = dtype, .count = count, .alpha = alpha, .y = x};
    return run(device, &work, stream, err);
}

sb_status sb__cuda_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                        sb_stream stream, sb_error *err) {
    struct work work = {.operation = ASUM, .dtype = dtype, .count = count, .x = x, .out = out};
    return run(device, &work, stream, err);
}

sb_status sb__cuda_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                         sb_stream stream, sb_error *err) {
    struct work work = {.operation = SUMSQ, .dtype = dtype, .count = count, .x = x, .out = out};
    return run(device, &work, stream, err);
}
