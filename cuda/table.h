/* The CUDA backend, "cuda:N". */
#ifndef SB_CUDA_TABLE_H
#define SB_CUDA_TABLE_H

#include <syncblob/backend.h>

extern const sb_backend sb__cuda_backend;
/* Returns the bytes of device memory and of page-locked memory that the driver has failed to free
   so far. */
void sb__cuda_kept_bytes(const void *device, uint64_t *out_device, uint64_t *out_pinned);

#endif
