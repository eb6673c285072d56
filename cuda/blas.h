/* A cuBLAS handle and the library's kernels, one set for each driver context of the process. A set
   is never destroyed, because the destruction of a handle waits for the whole device. Also, cuBLAS
   may already have shut down at process exit. */
#ifndef SB_CUDA_BLAS_H
#define SB_CUDA_BLAS_H

#include "device.h"

#include <stdbool.h>

struct sb__cuda_blas {
    struct sb__cuda_blas *next;
    unsigned long long context_id;
    const struct sb__cublas *functions;
    sb__cublas_handle handle;
    sb__cu_module module; /* the library's kernels (sums.c) */
    sb__cu_function sums[4];
    atomic_bool is_warm; /* every kernel has run once */
    sb__mutex lock;      /* held from cublasSetStream to the end of the call */
};

/* Returns the handle of the device's context, created at first use. Errors: UNSUPPORTED,
   OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST. */
sb_status sb__cuda_blas_get(const struct sb__cuda_device *device, struct sb__cuda_blas **out,
                            sb_error *err);
typedef sb__cublas_status sb__cuda_task(const struct sb__cuda_blas *blas, void *user);
/* Runs `task`, which calls the cuBLAS function named `call`. First locks the handle and sets its
   stream, since a handle has one stream at a time. */
sb_status sb__cuda_blas_run(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                            sb__cuda_task *task, const char *call, void *user, sb_stream stream,
                            sb_error *err);
/* Converts the result of the cuBLAS function `call` to the library's status, and fills `err`. */
sb_status sb__cuda_blas_status(const struct sb__cuda_device *device, sb__cublas_status status,
                               const char *call, sb_error *err);

/* --- sums.c ---------------------------------------------------------------------------------- */

/* Indices of the F32 kernels in sb__cuda_blas::sums. Add 1 for the F64 kernels. */
enum sb__cuda_sum { SB__CUDA_ASUM = 0, SB__CUDA_SUMSQ = 2 };
/* Makes the driver compile the kernels, once for a context. Errors: OUT_OF_MEMORY, UNSUPPORTED,
   DEVICE_FAILURE, DEVICE_LOST. */
sb_status sb__cuda_load_sums(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                             sb_error *err);
/* Unloads the kernels, if they are loaded. The kernels must never have run. */
void sb__cuda_unload_sums(const struct sb__cuda_device *device, const struct sb__cuda_blas *blas);
/* Adds the absolute values or squares of `x` in double precision. Waits for the stream. */
sb_status sb__cuda_sum(struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                       enum sb__cuda_sum kind, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_stream stream, sb_error *err);

#endif
