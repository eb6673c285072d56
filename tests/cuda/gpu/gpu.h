/* Support for programs that also call the CUDA driver, as an application does. */
#ifndef SB_TESTS_GPU_H
#define SB_TESTS_GPU_H

#include "blobs.h"
#include "libraries.h"
#include "pointers.h"

#include <cuda.h>

/* If the driver lacks the functions of green contexts, their pointers are NULL. */
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
    F(cuGraphDestroy)                                                                              \
    F(cuLaunchHostFunc)                                                                            \
    F(cuDeviceGetName)                                                                             \
    F(cuDeviceGetDevResource)                                                                      \
    F(cuDevResourceGenerateDesc)                                                                   \
    F(cuGreenCtxCreate)                                                                            \
    F(cuGreenCtxStreamCreate)                                                                      \
    F(cuGreenCtxDestroy)                                                                           \
    F(cuCtxDestroy_v2)                                                                             \
    F(cuCtxCreate_v2)

/* CUDA 13's header declares only a newer version, but the driver exports both versions. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* The CUDA driver, opened by name: the programs also start on a machine without a driver. */
extern struct driver {
    SB__CUDA_FUNCTIONS(SB__CUDA_MEMBER)
#define MEMBER(symbol) __typeof__(&(symbol)) symbol;
    APPLICATION_FUNCTIONS(MEMBER)
#undef MEMBER
    bool is_fake;
} driver;
extern sb__cu_context primary;

enum { GPU_SKIPPED = 77 };

/* Returns the program's exit status. The default definition runs all tests. */
int gpu_main(int argc, char **argv);

struct stage {
    struct rig rig;
    sb_context *context;
    sb_stream stream;
};

void stage_open(struct stage *stage);
void stage_open_options(struct stage *stage, sb_context_options options);
void stage_close(struct stage *stage);
int device_count(void);

#define cu_ok(call)                                                                                \
    do {                                                                                           \
        sb__cu_result result_ = driver.call;                                                       \
        if (result_)                                                                               \
            fail_with("%s: %u", #call, result_);                                                   \
    } while (0)
void enter(void);
void leave(void);
#define primary_ok(call)                                                                           \
    do {                                                                                           \
        enter();                                                                                   \
        cu_ok(call);                                                                               \
        leave();                                                                                   \
    } while (0)

sb_stream stream_make(unsigned int flags);
void stream_wait(sb_stream stream);

void *device_make(size_t bytes);
/* Frees the memory when the test ends, after the test's contexts. */
void *device_own(sb__cu_ptr ptr);
/* Queues a pause of some milliseconds, except on a fake driver, whose schedule delays the work. */
void queue_pause(sb_stream stream);
void queue_fill(sb_stream stream, void *ptr, int value, size_t bytes);
void queue_copy(sb_stream stream, void *dst, const void *src, size_t bytes);
/* device_write and device_holds use the legacy default stream, and wait for the copy. */
void device_write(void *dst, const void *src, size_t bytes);
bool device_holds(const void *ptr, size_t bytes, int value);

/* Creates a memory of which only the device side is current. */
sb_mem *mem_on_device(sb_context *context, size_t bytes, int value);
void host_fill(sb_mem *mem, int value);
bool host_holds(sb_mem *mem, int value);

#endif
