/* The functions that a test needs to create a stream in a green context. */
#include "driver.h"

struct CUgreenCtx_st {
    CUcontext primary;
};

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                        CUdevResourceType type) {
    (void)device;
    BEGIN(INITIALISED);
    resource->type = type;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                           unsigned int count) {
    BEGIN(INITIALISED);
    *description = (CUdevResourceDesc)resources;
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device,
                                  unsigned int flags) {
    BEGIN(INITIALISED);
    if (!description || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *green = fake_object(sizeof **green);
    return cuDevicePrimaryCtxRetain(&(*green)->primary, device);
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx green) {
    BEGIN(INITIALISED);
    const CUresult result = cuDevicePrimaryCtxRelease(green->primary->device);
    fake_object_free(green);
    return result;
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                        int priority) {
    (void)priority;
    BEGIN(INITIALISED);
    return flags == CU_STREAM_NON_BLOCKING ? create_stream(green->primary, flags, green, stream)
                                           : CUDA_ERROR_INVALID_VALUE;
}
