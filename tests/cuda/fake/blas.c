/* The fake libcublas.so.12 and libcublas.so.13, over the fake driver. */
#include "fake.h"

#include <cublas_v2.h>
#include <stdlib.h>

struct cublasContext {
    CUcontext context;
    uint64_t id; /* tells apart two contexts at the same address */
    CUstream stream;
};

enum operation { AXPY, SCALE };

struct work {
    enum operation operation;
    int is_double;
    int64_t n;
    double alpha;
    const void *x;
    void *y;
    size_t bytes;
};

static void *device(const void *ptr, const struct work *work) {
    return fake_address((CUdeviceptr)(uintptr_t)ptr, work->bytes);
}

static double get(const struct work *work, const void *x, int64_t i) {
    return work->is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put(const struct work *work, void *x, int64_t i, double value) {
    if (work->is_double)
        ((double *)x)[i] = value;
    else
        ((float *)x)[i] = (float)value;
}

static void kernel(void *user) {
    struct work *work = user;
    void *x = work->x ? device(work->x, work) : NULL;
    void *y = work->y ? device(work->y, work) : NULL;
    if ((work->x && !x) || (work->y && !y))
        fake_violation("a kernel of cuBLAS uses memory that is not allocated when it runs");
    else if (work->operation == AXPY)
        for (int64_t i = 0; i < work->n; i++)
            put(work, y, i, get(work, y, i) + work->alpha * get(work, x, i));
    else
        for (int64_t i = 0; i < work->n; i++)
            put(work, y, i, work->alpha * get(work, y, i));
}

static cublasStatus_t run(const char *function, cublasHandle_t handle, const struct work *given) {
    struct fake_blas_call call = fake_blas(function);
    if (call.status)
        return (cublasStatus_t)call.status;
    if (call.context != handle->context || fake_context_id(call.context) != handle->id) {
        fake_violation("%s: the handle belongs to another context", function);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (given->n <= 0)
        return given->n ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
    if (fake_load_kernel(handle->context, function))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    struct work *work = malloc(sizeof *work);
    if (!work)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *work = *given;
    work->bytes = (size_t)given->n * (given->is_double ? sizeof(double) : sizeof(float));
    CUresult result = fake_blas_run(handle->context, handle->stream, kernel, work);
    return result ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    struct fake_blas_call call = fake_blas(__func__);
    if (call.status)
        return (cublasStatus_t)call.status;
    if (!call.context)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = fake_object(sizeof **handle);
    (*handle)->context = call.context;
    (*handle)->id = fake_context_id(call.context);
    fake_count_handle();
    return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    struct fake_blas_call call = fake_blas(__func__);
    if (!call.status)
        handle->stream = (CUstream)stream;
    return (cublasStatus_t)call.status;
}

#define ONE(incx)                                                                                  \
    if ((incx) != 1)                                                                               \
    return CUBLAS_STATUS_NOT_SUPPORTED

#define OPERATIONS(letter, type, is_double_)                                                       \
    FAKE_API cublasStatus_t cublas##letter##axpy_v2_64(cublasHandle_t handle, int64_t n,           \
                                                       const type *alpha, const type *x,           \
                                                       int64_t incx, type *y, int64_t incy) {      \
        ONE(incx *incy);                                                                           \
        return run(__func__, handle, &(struct work){AXPY, is_double_, n, *alpha, x, y, 0});        \
    }                                                                                              \
    FAKE_API cublasStatus_t cublas##letter##scal_v2_64(cublasHandle_t handle, int64_t n,           \
                                                       const type *alpha, type *x, int64_t incx) { \
        ONE(incx);                                                                                 \
        return run(__func__, handle, &(struct work){SCALE, is_double_, n, *alpha, NULL, x, 0});    \
    }

OPERATIONS(S, float, 0)
OPERATIONS(D, double, 1)
