/* The CUDA backend, "cuda:N". */
#ifndef SB_CUDA_TABLE_H
#define SB_CUDA_TABLE_H

#include <syncblob/backend.h>

extern const sb_backend sb__cuda_backend;

#endif
