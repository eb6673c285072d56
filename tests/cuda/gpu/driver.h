/* The CUDA driver, which the tests call as an application does. driver.c opens the driver by name,
   so that the programs start on a machine without a driver. */
#ifndef SB_TESTS_GPU_DRIVER_H
#define SB_TESTS_GPU_DRIVER_H

#include "libraries.h"

#include <cuda.h>
#include <stdbool.h>

/* Functions that the tests use, but the library does not. */
#define APPLICATION_FUNCTIONS(F)                                                                   \
    F(cuMemGetAllocationGranularity)                                                               \
    F(cuMemAddressReserve)                                                                         \
    F(cuMemAddressFree)                                                                            \
    F(cuMemCreate)                                                                                 \
    F(cuMemRelease)                                                                                \
    F(cuMemMap)                                                                                    \
    F(cuMemSetAccess)                                                                              \
    F(cuMemUnmap)                                                                                  \
    F(cuMemAllocManaged)                                                                           \
    F(cuStreamBeginCapture_v2)                                                                     \
    F(cuStreamEndCapture)                                                                          \
    F(cuGraphGetNodes)                                                                             \
    F(cuGraphDestroy)

/* Functions that a driver may lack. The pointer to a missing function is NULL. */
#define OPTIONAL_FUNCTIONS(F)                                                                      \
    F(cuLaunchHostFunc)                                                                            \
    F(cuDeviceGetName)                                                                             \
    F(cuDeviceGetDevResource)                                                                      \
    F(cuDevResourceGenerateDesc)                                                                   \
    F(cuGreenCtxCreate)                                                                            \
    F(cuGreenCtxStreamCreate)                                                                      \
    F(cuGreenCtxDestroy)                                                                           \
    F(cuCtxDestroy_v2)                                                                             \
    F(cuCtxCreate_v2)

/* CUDA 13's header declares only a newer version of the function; the driver exports both. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

struct driver {
    SB__CUDA_FUNCTIONS(SB__CUDA_MEMBER)
#define MEMBER(symbol) __typeof__(&(symbol)) symbol;
    APPLICATION_FUNCTIONS(MEMBER)
    OPTIONAL_FUNCTIONS(MEMBER)
#undef MEMBER
    bool is_fake;
};

/* Opens the driver. On failure returns NULL, and sets `why` to the reason, a static text. */
const struct driver *driver_open(const char **why);

/* Writes "NVIDIA ... , driver for CUDA 13.0", or the description of a fake driver. Call after
   cuInit. */
void driver_describe(const struct driver *driver, char *buffer, size_t capacity);

/* Queues a pause of some milliseconds on a stream of the current context. Does nothing on a fake
   driver, whose schedule delays the work. */
void driver_pause(const struct driver *driver, sb__cu_stream stream);

#endif
