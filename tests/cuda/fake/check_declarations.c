/* Compares the library's declarations of the driver API, of cuBLAS and of NCCL with NVIDIA's
   headers. The file is only compiled; the compiler rejects an incompatible prototype. */
#include "declarations.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <nccl.h>
#include <stddef.h>

#define SAME_PROTOTYPE(result, symbol, parameters)                                                 \
    extern result(*const check_##symbol) parameters;                                               \
    result(*const check_##symbol) parameters = &symbol;
SB__CUDA_FUNCTIONS(SAME_PROTOTYPE)
SB__CUBLAS_FUNCTIONS(SAME_PROTOTYPE)

/* The tags of NCCL's structs differ between versions. Therefore this file compares the structs'
   layouts, then the prototypes with NCCL's structs in place of the library's. */
#define SAME_NCCL(ours, theirs)                                                                    \
    _Static_assert(offsetof(sb__nccl_config, ours) == offsetof(ncclConfig_t, theirs), #ours)
SAME_NCCL(size, size);
SAME_NCCL(magic, magic);
SAME_NCCL(version, version);
SAME_NCCL(blocking, blocking);
SAME_NCCL(cga_cluster_size, cgaClusterSize);
_Static_assert(sizeof(sb__nccl_config) <= sizeof(ncclConfig_t), "config");
_Static_assert(sizeof(sb__nccl_id) == sizeof(ncclUniqueId), "id");
#define sb__nccl_config ncclConfig_t
#define sb__nccl_id     ncclUniqueId
SB__NCCL_FUNCTIONS(SAME_PROTOTYPE)
#undef sb__nccl_config
#undef sb__nccl_id

#define SAME_AS(ours, theirs) _Static_assert((int)SB__NCCL_##ours == (int)(theirs), #theirs)
SAME_AS(SUCCESS, ncclSuccess);
SAME_AS(IN_PROGRESS, ncclInProgress);
SAME_AS(UINT8, ncclUint8);
SAME_AS(FLOAT16, ncclFloat16);
SAME_AS(FLOAT32, ncclFloat32);
SAME_AS(FLOAT64, ncclFloat64);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 32, 0) /* 2.18 declares ncclBfloat16 only for C++ */
SAME_AS(BFLOAT16, ncclBfloat16);
#endif
SAME_AS(SUM, ncclSum);
SAME_AS(MAX, ncclMax);
SAME_AS(MIN, ncclMin);
SAME_AS(ID_BYTES, NCCL_UNIQUE_ID_BYTES);
SAME_AS(UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME_AS(VERSION_2_14, NCCL_VERSION(2, 14, 0));
/* The magic number is not compared, because NCCL 2.18 defines the number only in an initialiser.
   The fake NCCL checks the number. */

#define SAME(name) _Static_assert((int)SB__##name == (int)name, #name)
SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_ERROR_DEINITIALIZED);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_INVALID_PTX);
SAME(CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_ERROR_JIT_COMPILATION_DISABLED);
SAME(CUDA_ERROR_CONTAINED);
SAME(CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(CUDA_ERROR_ASSERT);
SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_ERROR_TENSOR_MEMORY_LEAK);
SAME(CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(CUDA_ERROR_EXTERNAL_DEVICE);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(CU_CTX_SCHED_BLOCKING_SYNC);
SAME(CU_CTX_SCHED_MASK);
SAME(CU_STREAM_DEFAULT);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_EVENT_BLOCKING_SYNC);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME(CU_MEMORYTYPE_DEVICE);
SAME(CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_STATUS_NOT_INITIALIZED);
SAME(CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLAS_STATUS_ARCH_MISMATCH);
SAME(CUBLAS_STATUS_NOT_SUPPORTED);
_Static_assert(SB__CU_MEMHOSTALLOC_PORTABLE == CU_MEMHOSTALLOC_PORTABLE, "portable");

#define SAME_OFFSET(ours, theirs)                                                                  \
    _Static_assert(                                                                                \
        offsetof(struct sb__cu_pool_properties, ours) == offsetof(CUmemPoolProps, theirs), #ours)
SAME_OFFSET(alloc_type, allocType);
SAME_OFFSET(handle_types, handleTypes);
SAME_OFFSET(location_type, location.type);
SAME_OFFSET(location_id, location.id);
SAME_OFFSET(security_attributes, win32SecurityAttributes);
_Static_assert(sizeof(struct sb__cu_pool_properties) == sizeof(CUmemPoolProps), "pool");
_Static_assert(offsetof(struct sb__cu_location, id) == offsetof(CUmemLocation, id), "location");
_Static_assert(sizeof(struct sb__cu_location) == sizeof(CUmemLocation), "location");
_Static_assert(offsetof(struct sb__cu_access, flags) == offsetof(CUmemAccessDesc, flags), "access");
_Static_assert(sizeof(struct sb__cu_access) == sizeof(CUmemAccessDesc), "access");
_Static_assert(sizeof(sb__cu_ptr) == sizeof(CUdeviceptr), "CUdeviceptr");
_Static_assert(sizeof(sb__cu_device) == sizeof(CUdevice), "CUdevice");
