/* A handle of cuBLAS. Each context of the driver has one for all of the process,
   which lives as long as the process: destroying it would wait for the whole
   device, and at exit come after the end of cuBLAS. */
#ifndef SB_CUDA_BLAS_H
#define SB_CUDA_BLAS_H

#include "device.h"

#include <pthread.h>
#include <stdbool.h>

struct sb__cuda_blas {
    struct sb__cuda_blas *next;
    unsigned long long context_id;
    const struct sb__cublas *functions;
    sb__cublas_handle handle;
    atomic_bool is_warm;  /* every kernel has run once */
    pthread_mutex_t lock; /* held over the setting of the stream and the call */
};

/* That of the device's context, made when it is first asked for. Errors: UNSUPPORTED,
   OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST. */
sb_status sb__cuda_blas_get(const struct sb__cuda_device *device, struct sb__cuda_blas **out,
                            sb_error *err);
/* What became of a call of cuBLAS, told in `err`. */
sb_status sb__cuda_blas_status(const struct sb__cuda_device *device, sb__cublas_status status,
                               const char *what, sb_error *err);

#endif
