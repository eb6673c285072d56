/* NVIDIA's libraries, opened at first use and never closed. */
#ifndef SB_CUDA_LIBRARIES_H
#define SB_CUDA_LIBRARIES_H

#include "declarations.h"

#include <syncblob/backend.h>

#define SB__CUDA_MEMBER(result, symbol, parameters) result(*symbol) parameters;

struct sb__cuda_driver {
    SB__CUDA_FUNCTIONS(SB__CUDA_MEMBER)
    int version;    /* 13000 for CUDA 13.0 */
    int64_t opener; /* the process that called cuInit, whose forked children cannot use CUDA */
};

struct sb__cublas {
    SB__CUBLAS_FUNCTIONS(SB__CUDA_MEMBER)
};

/* Opens libcuda.so.1, on Windows nvcuda.dll, and initialises the driver. Errors: NO_DEVICE (no
   driver, a driver for CUDA before 12.0, or no device), OUT_OF_MEMORY, FORKED. */
sb_status sb__cuda_driver_open(const struct sb__cuda_driver **out, sb_error *err);
/* Opens the cuBLAS that the process has loaded. Otherwise opens version 13 if installed and
   supported by the driver, else version 12. Errors: UNSUPPORTED, OUT_OF_MEMORY. */
sb_status sb__cublas_open(const struct sb__cuda_driver *driver, const struct sb__cublas **out,
                          sb_error *err);

#endif
