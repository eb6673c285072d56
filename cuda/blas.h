/* A handle of cuBLAS, and our own kernels. Each context of the driver has one for all of the
   process, which lives as long as the process: destroying it would wait for the whole device, and
   at exit come after the end of cuBLAS. */
#ifndef SB_CUDA_BLAS_H
#define SB_CUDA_BLAS_H

#include "device.h"

#include <stdbool.h>

struct sb__cuda_blas {
    struct sb__cuda_blas *next;
    unsigned long long context_id;
    const struct sb__cublas *functions;
    sb__cublas_handle handle;
    sb__cu_module module; /* our own kernels (sums.c) */
    sb__cu_function sums[4];
    atomic_bool is_warm; /* every kernel has run once */
    sb__mutex lock;      /* held over the setting of the stream and the call */
};

/* That of the device's context, made when it is first asked for. Errors: UNSUPPORTED,
   OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST. */
sb_status sb__cuda_blas_get(const struct sb__cuda_device *device, struct sb__cuda_blas **out,
                            sb_error *err);
typedef sb__cublas_status sb__cuda_task(const struct sb__cuda_blas *blas, void *user);
/* Runs a task, which calls a function of cuBLAS by the name of `call`, with the handle on `stream`,
   which it has to itself meanwhile: a handle has one stream at a time. */
sb_status sb__cuda_blas_run(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                            sb__cuda_task *task, const char *call, void *user, sb_stream stream,
                            sb_error *err);
/* What became of `call`, one of cuBLAS, reported in `err`. */
sb_status sb__cuda_blas_status(const struct sb__cuda_device *device, sb__cublas_status status,
                               const char *call, sb_error *err);

/* --- sums.c ---------------------------------------------------------------------------------- */

/* Those of F32; of F64 they are the next. */
enum sb__cuda_sum { SB__CUDA_ASUM = 0, SB__CUDA_SUMSQ = 2 };
/* Lets the driver compile the kernels, once for a context. Errors: OUT_OF_MEMORY, UNSUPPORTED,
   DEVICE_FAILURE, DEVICE_LOST. */
sb_status sb__cuda_load_sums(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                             sb_error *err);
/* Nobody has used them; they need not be loaded. */
void sb__cuda_unload_sums(const struct sb__cuda_device *device, const struct sb__cuda_blas *blas);
/* Each element is widened to double, and doubles are added. Waits for the stream. */
sb_status sb__cuda_sum(struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                       enum sb__cuda_sum kind, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_stream stream, sb_error *err);

#endif
