/* The CUDA driver, which the tests call as an application does. This file declares the driver's
   functions, and driver.c opens the driver by name, so that the programs need no toolkit. */
#ifndef SB_TESTS_GPU_DRIVER_H
#define SB_TESTS_GPU_DRIVER_H

#include "libraries.h"

#include <stdbool.h>

struct CUgraph_st;
struct CUgraphNode_st;
struct CUmemAllocationProp_st; /* with the layout of struct allocation */
struct CUgreenCtx_st;
struct CUdevResource_st;
struct CUdevResourceDesc_st;

/* The layout of CUmemAllocationProp. */
struct allocation {
    unsigned int type, handle_types;
    struct sb__cu_location location;
    void *handle_data;
    unsigned char flags[8];
};

enum {
    STREAM_BLOCKING = SB__CU_STREAM_DEFAULT,
    STREAM_NON_BLOCKING = 1,
    CAPTURE_GLOBAL = 0,
    ATTACH_GLOBAL = 1,
    GREEN_DEFAULT_STREAM = 1,
    RESOURCE_SM = 1,
    RESOURCE_BYTES = 256 /* at least the size of CUdevResource */
};

/* Functions that the tests use, but the library does not. */
#define APPLICATION_FUNCTIONS(F)                                                                   \
    F(sb__cu_result, cuMemGetAllocationGranularity,                                                \
      (size_t * granularity, const struct CUmemAllocationProp_st *prop, unsigned int option))      \
    F(sb__cu_result, cuMemAddressReserve,                                                          \
      (sb__cu_ptr * ptr, size_t size, size_t alignment, sb__cu_ptr address,                        \
       unsigned long long flags))                                                                  \
    F(sb__cu_result, cuMemAddressFree, (sb__cu_ptr ptr, size_t size))                              \
    F(sb__cu_result, cuMemCreate,                                                                  \
      (unsigned long long *handle, size_t size, const struct CUmemAllocationProp_st *prop,         \
       unsigned long long flags))                                                                  \
    F(sb__cu_result, cuMemRelease, (unsigned long long handle))                                    \
    F(sb__cu_result, cuMemMap,                                                                     \
      (sb__cu_ptr ptr, size_t size, size_t offset, unsigned long long handle,                      \
       unsigned long long flags))                                                                  \
    F(sb__cu_result, cuMemSetAccess,                                                               \
      (sb__cu_ptr ptr, size_t size, const struct CUmemAccessDesc_st *access, size_t count))        \
    F(sb__cu_result, cuMemUnmap, (sb__cu_ptr ptr, size_t size))                                    \
    F(sb__cu_result, cuMemAllocManaged, (sb__cu_ptr * ptr, size_t bytes, unsigned int flags))      \
    F(sb__cu_result, cuStreamBeginCapture_v2, (sb__cu_stream stream, unsigned int mode))           \
    F(sb__cu_result, cuStreamEndCapture, (sb__cu_stream stream, struct CUgraph_st * *graph))       \
    F(sb__cu_result, cuGraphGetNodes,                                                              \
      (struct CUgraph_st * graph, struct CUgraphNode_st * *nodes, size_t * count))                 \
    F(sb__cu_result, cuGraphDestroy, (struct CUgraph_st * graph))

/* Functions that a driver may lack. The pointer to a missing function is NULL. */
#define OPTIONAL_FUNCTIONS(F)                                                                      \
    F(sb__cu_result, cuLaunchHostFunc,                                                             \
      (sb__cu_stream stream, void (*function)(void *user), void *user))                            \
    F(sb__cu_result, cuDeviceGetName, (char *name, int length, sb__cu_device device))              \
    F(sb__cu_result, cuDeviceGetDevResource,                                                       \
      (sb__cu_device device, struct CUdevResource_st * resource, unsigned int type))               \
    F(sb__cu_result, cuDevResourceGenerateDesc,                                                    \
      (struct CUdevResourceDesc_st * *out, struct CUdevResource_st * resources,                    \
       unsigned int count))                                                                        \
    F(sb__cu_result, cuGreenCtxCreate,                                                             \
      (struct CUgreenCtx_st * *out, struct CUdevResourceDesc_st * description,                     \
       sb__cu_device device, unsigned int flags))                                                  \
    F(sb__cu_result, cuGreenCtxStreamCreate,                                                       \
      (sb__cu_stream * out, struct CUgreenCtx_st * green, unsigned int flags, int priority))       \
    F(sb__cu_result, cuGreenCtxDestroy, (struct CUgreenCtx_st * green))                            \
    F(sb__cu_result, cuCtxDestroy_v2, (sb__cu_context context))
/* cuCtxCreate as CUDA 12's header declares it. CUDA 13's header declares another version of the
   function; the driver exports both versions. */
#define OLD_FUNCTIONS(F)                                                                           \
    F(sb__cu_result, cuCtxCreate_v2,                                                               \
      (sb__cu_context * context, unsigned int flags, sb__cu_device device))

struct driver {
    SB__CUDA_FUNCTIONS(SB__CUDA_MEMBER)
    APPLICATION_FUNCTIONS(SB__CUDA_MEMBER)
    OPTIONAL_FUNCTIONS(SB__CUDA_MEMBER)
    OLD_FUNCTIONS(SB__CUDA_MEMBER)
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
