/* Arithmetic. The slots axpy and scale call cuBLAS with `alpha` in host memory, which is the
   default of a cuBLAS handle. The slots asum and sumsq run the library's kernels. */
#include "blas.h"

#include <stdio.h>

/* --- the operations ------------------------------------------------------------------------ */

enum operation { AXPY, SCALE, ASUM, SUMSQ };

struct work {
    enum operation operation;
    int32_t dtype;
    int64_t count;
    double alpha;
    const void *x;
    void *y;     /* the output, which AXPY and SCALE also read */
    double *out; /* the result of a sum; NULL for AXPY and SCALE */
};

static sb__cublas_status run_f32(const struct sb__cuda_blas *blas, const struct work *work) {
    const struct sb__cublas *cublas = blas->functions;
    float alpha = (float)work->alpha;
    if (work->operation == AXPY)
        return cublas->cublasSaxpy_v2_64(blas->handle, work->count, &alpha, work->x, 1, work->y, 1);
    return cublas->cublasSscal_v2_64(blas->handle, work->count, &alpha, work->y, 1);
}

static sb__cublas_status run_f64(const struct sb__cuda_blas *blas, const struct work *work) {
    const struct sb__cublas *cublas = blas->functions;
    const double *alpha = &work->alpha;
    if (work->operation == AXPY)
        return cublas->cublasDaxpy_v2_64(blas->handle, work->count, alpha, work->x, 1, work->y, 1);
    return cublas->cublasDscal_v2_64(blas->handle, work->count, alpha, work->y, 1);
}

static sb__cublas_status run_task(const struct sb__cuda_blas *blas, void *user) {
    const struct work *work = user;
    return work->dtype == SB_DTYPE_F32 ? run_f32(blas, work) : run_f64(blas, work);
}

static const char *name_of(const struct work *work) {
    if (work->dtype == SB_DTYPE_F32)
        return work->operation == AXPY ? "cublasSaxpy" : "cublasSscal";
    return work->operation == AXPY ? "cublasDaxpy" : "cublasDscal";
}

static sb_status run_with(struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                          struct work *work, sb_stream stream, sb_error *err) {
    if (work->out)
        return sb__cuda_sum(device, blas, work->operation == ASUM ? SB__CUDA_ASUM : SB__CUDA_SUMSQ,
                            work->dtype, work->count, work->x, work->out, stream, err);
    return sb__cuda_blas_run(device, blas, run_task, name_of(work), work, stream, err);
}

static sb_status run(void *opened, struct work *work, sb_stream stream, sb_error *err) {
    struct sb__cuda_device *device = opened;
    return run_with(device, atomic_load(&device->blas), work, stream, err);
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

/* --- before the first operation ------------------------------------------------------------ */

static sb_status run_each(struct sb__cuda_device *device, struct sb__cuda_blas *blas, void *scratch,
                          sb_error *err) {
    static const int32_t dtypes[] = {SB_DTYPE_F32, SB_DTYPE_F64};
    sb_stream stream = (sb_stream)device->stream;
    double out;
    sb_status st = sb__cuda_zero(device, scratch, sizeof out, stream, err);
    for (int i = 0; i < 2; i++)
        for (int operation = AXPY; operation <= SUMSQ && st == SB_OK; operation++) {
            struct work work = {.operation = (enum operation)operation,
                                .dtype = dtypes[i],
                                .count = 1,
                                .x = scratch,
                                .y = scratch,
                                .out = operation < ASUM ? NULL : &out};
            st = run_with(device, blas, &work, stream, err);
        }
    return st;
}

/* Runs each operation once, so that the driver loads its kernel. Uses the relaxed capture mode,
   because the load may wait for the whole context, which other modes can forbid. */
static sb_status warm_once(struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                           sb_error *err) {
    sb_stream stream = (sb_stream)device->stream;
    struct sb__cuda_visit visit;
    void *scratch;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    sb_status st = sb__cuda_alloc(device, sizeof(double), stream, &scratch, err);
    if (st == SB_OK) {
        st = run_each(device, blas, scratch, err);
        sb__cuda_free(device, scratch, sizeof(double), stream);
    }
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    return st;
}

/* Loads all kernels before the caller's first operation. If an operation loaded its kernel itself,
   the operation would fail on a device that is out of memory. An operation in place might then
   already have written a part of its result. */
static sb_status warm(struct sb__cuda_device *device, struct sb__cuda_blas *blas, sb_error *err) {
    if (atomic_load(&blas->is_warm))
        return SB_OK;
    sb_status st = warm_once(device, blas, err);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST) {
        sb__cuda_make_room(device);
        st = warm_once(device, blas, err);
    }
    if (st == SB_OK)
        atomic_store(&blas->is_warm, true);
    return st;
}

/* Returns whether the device is out of memory after the failure `st`. On such a device cuBLAS may
   report any failure. The guide of cuBLAS states that a failed launch "can be caused by multiple
   reasons". */
static bool is_out_of_memory(struct sb__cuda_device *device, sb_status st) {
    return st == SB_ERR_OUT_OF_MEMORY || (st == SB_ERR_DEVICE_FAILURE && sb__cuda_is_full(device));
}

static sb_status fail_full(sb_error *err) {
    char message[sizeof err->message];
    (void)snprintf(message, sizeof message, "%.190s; the device has no memory left", err->message);
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, err->device_code, message);
}

sb_status sb__cuda_prepare_arithmetic(void *opened, sb_error *err) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_blas *blas = atomic_load(&device->blas);
    if (blas)
        return SB_OK;
    sb_status st = sb__cuda_blas_get(device, &blas, err);
    if (is_out_of_memory(device, st)) {
        sb__cuda_make_room(device);
        st = sb__cuda_blas_get(device, &blas, err);
    }
    if (st == SB_OK)
        st = warm(device, blas, err);
    if (st == SB_OK)
        atomic_store(&device->blas, blas);
    return st == SB_ERR_DEVICE_FAILURE && is_out_of_memory(device, st) ? fail_full(err) : st;
}
