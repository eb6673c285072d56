/* NVIDIA's libraries, opened at first use and never closed. The CUDA backend also opens libcuda,
   but the public headers do not expose that handle, so this library opens libcuda again. */
#ifndef SB_NCCL_LIBRARIES_H
#define SB_NCCL_LIBRARIES_H

#include "declarations.h"

#include <syncblob/status.h>

#define SB__NCCL_MEMBER(result, symbol, parameters) result(*symbol) parameters;

struct sb__nccl_driver {
    SB__CUDA_FUNCTIONS(SB__NCCL_MEMBER)
};

struct sb__nccl {
    SB__NCCL_FUNCTIONS(SB__NCCL_MEMBER)
};

/* Opens libcuda.so.1. Errors: UNSUPPORTED, OUT_OF_MEMORY. */
sb_status sb__nccl_driver_open(const struct sb__nccl_driver **out, sb_error *err);
/* Opens libnccl.so.2. Errors: UNSUPPORTED, OUT_OF_MEMORY, FORKED. */
sb_status sb__nccl_open(const struct sb__nccl **out, sb_error *err);

#endif
