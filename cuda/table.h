/* The CUDA backend, "cuda:N". */
#ifndef SB_CUDA_TABLE_H
#define SB_CUDA_TABLE_H

#include <syncblob/backend.h>

extern const sb_backend sb__cuda_backend;
/* Device and page-locked bytes that an open device has failed to free so far.
 */
void sb__cuda_kept_bytes(const void *device, uint64_t *out_device, uint64_t *out_pinned);

#endif
