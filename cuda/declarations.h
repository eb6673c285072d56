/* Declarations of the parts of the CUDA driver API and of cuBLAS that the library uses, so that the
   build needs no toolkit. The program tests/cuda/fake/check_declarations.c compares the
   declarations with the toolkits' headers. For this comparison the types are compatible with
   NVIDIA's. Opaque structs have the tags of cuda.h and cublas_api.h. Enums of these headers are
   unsigned int here. */
#ifndef SB_CUDA_DECLARATIONS_H
#define SB_CUDA_DECLARATIONS_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int sb__cu_result;    /* CUresult */
typedef int sb__cu_device;             /* CUdevice */
typedef unsigned long long sb__cu_ptr; /* CUdeviceptr */
typedef struct CUctx_st *sb__cu_context;
typedef struct CUstream_st *sb__cu_stream;
typedef struct CUevent_st *sb__cu_event;
typedef struct CUmemPoolHandle_st *sb__cu_pool;
typedef struct CUmod_st *sb__cu_module;
typedef struct CUfunc_st *sb__cu_function;
struct CUmemPoolProps_st;  /* laid out as struct sb__cu_pool_properties */
struct CUmemLocation_st;   /* laid out as struct sb__cu_location */
struct CUmemAccessDesc_st; /* laid out as struct sb__cu_access */

typedef unsigned int sb__cublas_status; /* cublasStatus_t */
typedef struct cublasContext *sb__cublas_handle;

/* CUmemPoolProps as in CUDA 12.0 and later. */
struct sb__cu_pool_properties {
    unsigned int alloc_type, handle_types, location_type;
    int location_id;
    void *security_attributes;
    size_t max_size;
    unsigned char reserved[56];
};

struct sb__cu_location {
    unsigned int type;
    int id; /* the device's ordinal */
};

struct sb__cu_access {
    struct sb__cu_location location;
    unsigned int flags;
};

enum {
    SB__CUDA_SUCCESS = 0,
    SB__CUDA_ERROR_INVALID_VALUE = 1,
    SB__CUDA_ERROR_OUT_OF_MEMORY = 2,
    SB__CUDA_ERROR_NOT_INITIALIZED = 3,
    SB__CUDA_ERROR_DEINITIALIZED = 4,
    SB__CUDA_ERROR_NO_DEVICE = 100,
    SB__CUDA_ERROR_INVALID_DEVICE = 101,
    SB__CUDA_ERROR_INVALID_CONTEXT = 201,
    SB__CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    SB__CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    SB__CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    SB__CUDA_ERROR_INVALID_PTX = 218,
    SB__CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    SB__CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    SB__CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    SB__CUDA_ERROR_CONTAINED = 226,
    SB__CUDA_ERROR_INVALID_HANDLE = 400,
    SB__CUDA_ERROR_NOT_READY = 600,
    SB__CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    SB__CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    SB__CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    SB__CUDA_ERROR_ASSERT = 710,
    SB__CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    SB__CUDA_ERROR_LAUNCH_FAILED = 719,
    SB__CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    SB__CUDA_ERROR_NOT_SUPPORTED = 801,
    SB__CUDA_ERROR_SYSTEM_NOT_READY = 802,
    SB__CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
    SB__CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    SB__CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    SB__CUDA_ERROR_EXTERNAL_DEVICE = 911,

    SB__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    SB__CU_CTX_SCHED_BLOCKING_SYNC = 4,
    SB__CU_CTX_SCHED_MASK = 7,
    SB__CU_STREAM_DEFAULT = 0, /* blocking: ordered with the legacy default stream */
    SB__CU_STREAM_NON_BLOCKING = 1,
    SB__CU_STREAM_CAPTURE_STATUS_NONE = 0,
    SB__CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    SB__CU_EVENT_BLOCKING_SYNC = 1,
    SB__CU_EVENT_DISABLE_TIMING = 2,
    SB__CU_MEMHOSTALLOC_PORTABLE = 1,
    SB__CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    SB__CU_MEM_LOCATION_TYPE_DEVICE = 1,
    SB__CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    SB__CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    SB__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    SB__CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    SB__CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    SB__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    SB__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    SB__CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    SB__CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
    SB__CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
    SB__CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
    SB__CU_MEMORYTYPE_DEVICE = 2,

    SB__CUBLAS_STATUS_SUCCESS = 0,
    SB__CUBLAS_STATUS_NOT_INITIALIZED = 1,
    SB__CUBLAS_STATUS_ALLOC_FAILED = 3,
    SB__CUBLAS_STATUS_ARCH_MISMATCH = 8,
    SB__CUBLAS_STATUS_NOT_SUPPORTED = 15
};

#define SB__CU_STREAM_PER_THREAD ((sb__cu_stream)0x2)

/* Lists F(result, symbol, parameters) for every function of libcuda.so.1 that the backend or the
   engine over NCCL calls. */
#define SB__CUDA_FUNCTIONS(F)                                                                      \
    F(sb__cu_result, cuInit, (unsigned int flags))                                                 \
    F(sb__cu_result, cuDriverGetVersion, (int *version))                                           \
    F(sb__cu_result, cuGetErrorName, (sb__cu_result error, const char **out))                      \
    F(sb__cu_result, cuGetErrorString, (sb__cu_result error, const char **out))                    \
    F(sb__cu_result, cuDeviceGetCount, (int *count))                                               \
    F(sb__cu_result, cuDeviceGet, (sb__cu_device * device, int ordinal))                           \
    F(sb__cu_result, cuDeviceGetAttribute,                                                         \
      (int *value, unsigned int attribute, sb__cu_device device))                                  \
    F(sb__cu_result, cuDeviceCanAccessPeer, (int *can, sb__cu_device device, sb__cu_device peer))  \
    F(sb__cu_result, cuDevicePrimaryCtxRetain, (sb__cu_context * context, sb__cu_device device))   \
    F(sb__cu_result, cuDevicePrimaryCtxRelease_v2, (sb__cu_device device))                         \
    F(sb__cu_result, cuDevicePrimaryCtxGetState,                                                   \
      (sb__cu_device device, unsigned int *flags, int *active))                                    \
    F(sb__cu_result, cuCtxGetId, (sb__cu_context context, unsigned long long *id))                 \
    F(sb__cu_result, cuCtxGetCurrent, (sb__cu_context * context))                                  \
    F(sb__cu_result, cuCtxPushCurrent_v2, (sb__cu_context context))                                \
    F(sb__cu_result, cuCtxPopCurrent_v2, (sb__cu_context * context))                               \
    F(sb__cu_result, cuThreadExchangeStreamCaptureMode, (unsigned int *mode))                      \
    F(sb__cu_result, cuMemAlloc_v2, (sb__cu_ptr * ptr, size_t bytes))                              \
    F(sb__cu_result, cuMemFree_v2, (sb__cu_ptr ptr))                                               \
    F(sb__cu_result, cuMemPoolCreate,                                                              \
      (sb__cu_pool * pool, const struct CUmemPoolProps_st *properties))                            \
    F(sb__cu_result, cuMemPoolDestroy, (sb__cu_pool pool))                                         \
    F(sb__cu_result, cuMemPoolSetAttribute,                                                        \
      (sb__cu_pool pool, unsigned int attribute, void *value))                                     \
    F(sb__cu_result, cuMemPoolSetAccess,                                                           \
      (sb__cu_pool pool, const struct CUmemAccessDesc_st *access, size_t count))                   \
    F(sb__cu_result, cuMemPoolGetAccess,                                                           \
      (unsigned int *flags, sb__cu_pool pool, struct CUmemLocation_st *location))                  \
    F(sb__cu_result, cuMemPoolTrimTo, (sb__cu_pool pool, size_t keep))                             \
    F(sb__cu_result, cuMemAllocFromPoolAsync,                                                      \
      (sb__cu_ptr * ptr, size_t bytes, sb__cu_pool pool, sb__cu_stream stream))                    \
    F(sb__cu_result, cuMemFreeAsync, (sb__cu_ptr ptr, sb__cu_stream stream))                       \
    F(sb__cu_result, cuMemsetD8Async,                                                              \
      (sb__cu_ptr dst, unsigned char value, size_t bytes, sb__cu_stream stream))                   \
    F(sb__cu_result, cuMemcpyHtoDAsync_v2,                                                         \
      (sb__cu_ptr dst, const void *src, size_t bytes, sb__cu_stream stream))                       \
    F(sb__cu_result, cuMemcpyDtoHAsync_v2,                                                         \
      (void *dst, sb__cu_ptr src, size_t bytes, sb__cu_stream stream))                             \
    F(sb__cu_result, cuMemcpyDtoDAsync_v2,                                                         \
      (sb__cu_ptr dst, sb__cu_ptr src, size_t bytes, sb__cu_stream stream))                        \
    F(sb__cu_result, cuMemHostAlloc, (void **ptr, size_t bytes, unsigned int flags))               \
    F(sb__cu_result, cuMemFreeHost, (void *ptr))                                                   \
    F(sb__cu_result, cuPointerGetAttributes,                                                       \
      (unsigned int count, unsigned int *attributes, void **values, sb__cu_ptr ptr))               \
    F(sb__cu_result, cuStreamCreate, (sb__cu_stream * stream, unsigned int flags))                 \
    F(sb__cu_result, cuStreamDestroy_v2, (sb__cu_stream stream))                                   \
    F(sb__cu_result, cuStreamGetCtx, (sb__cu_stream stream, sb__cu_context * context))             \
    F(sb__cu_result, cuStreamIsCapturing, (sb__cu_stream stream, unsigned int *status))            \
    F(sb__cu_result, cuStreamSynchronize, (sb__cu_stream stream))                                  \
    F(sb__cu_result, cuStreamQuery, (sb__cu_stream stream))                                        \
    F(sb__cu_result, cuStreamWaitEvent,                                                            \
      (sb__cu_stream stream, sb__cu_event event, unsigned int flags))                              \
    F(sb__cu_result, cuEventCreate, (sb__cu_event * event, unsigned int flags))                    \
    F(sb__cu_result, cuEventRecord, (sb__cu_event event, sb__cu_stream stream))                    \
    F(sb__cu_result, cuEventSynchronize, (sb__cu_event event))                                     \
    F(sb__cu_result, cuEventQuery, (sb__cu_event event))                                           \
    F(sb__cu_result, cuEventDestroy_v2, (sb__cu_event event))                                      \
    F(sb__cu_result, cuModuleLoadData, (sb__cu_module * module, const void *image))                \
    F(sb__cu_result, cuModuleUnload, (sb__cu_module module))                                       \
    F(sb__cu_result, cuModuleGetFunction,                                                          \
      (sb__cu_function * function, sb__cu_module module, const char *name))                        \
    F(sb__cu_result, cuLaunchKernel,                                                               \
      (sb__cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,    \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,      \
       sb__cu_stream stream, void **parameters, void **extra))

/* Lists functions of libcublas in the same way. Versions of cuBLAS before 12.0 have no 64-bit
   counts. */
#define SB__CUBLAS_FUNCTIONS(F)                                                                    \
    F(sb__cublas_status, cublasCreate_v2, (sb__cublas_handle * handle))                            \
    F(sb__cublas_status, cublasSetStream_v2, (sb__cublas_handle handle, sb__cu_stream stream))     \
    F(sb__cublas_status, cublasSaxpy_v2_64,                                                        \
      (sb__cublas_handle handle, int64_t n, const float *alpha, const float *x, int64_t incx,      \
       float *y, int64_t incy))                                                                    \
    F(sb__cublas_status, cublasDaxpy_v2_64,                                                        \
      (sb__cublas_handle handle, int64_t n, const double *alpha, const double *x, int64_t incx,    \
       double *y, int64_t incy))                                                                   \
    F(sb__cublas_status, cublasSscal_v2_64,                                                        \
      (sb__cublas_handle handle, int64_t n, const float *alpha, float *x, int64_t incx))           \
    F(sb__cublas_status, cublasDscal_v2_64,                                                        \
      (sb__cublas_handle handle, int64_t n, const double *alpha, double *x, int64_t incx))

#endif
