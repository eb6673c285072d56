/* Support for programs that use a context on "cuda:0" and also call the CUDA driver, as an
   application does. The programs use only public functions of the library, and run both on a device
   of NVIDIA and on the fake driver. */
#ifndef SB_TESTS_GPU_H
#define SB_TESTS_GPU_H

#include "blobs.h"
#include "libraries.h"
#include "pointers.h"

#include <cuda.h>

/* Functions that the tests use, but the library does not. A driver may lack the functions of green
   contexts; their pointers are then NULL. */
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

/* CUDA 13's header declares only a newer version of the function. The driver exports both
   versions. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* The CUDA driver, which the tests call as an application does. The driver is opened by name, so
   that the programs start on a machine without a driver. */
extern struct driver {
    SB__CUDA_FUNCTIONS(SB__CUDA_MEMBER)
#define MEMBER(symbol) __typeof__(&(symbol)) symbol;
    APPLICATION_FUNCTIONS(MEMBER)
#undef MEMBER
    bool is_fake;
} driver;
extern sb__cu_context primary; /* the primary context of device 0 */

/* The exit status of a program that skips its tests. */
enum { GPU_SKIPPED = 77 };

/* Called after the program has opened the driver and found a device. The default definition runs
   all tests. Returns the program's exit status. */
int gpu_main(int argc, char **argv);

/* A stage is a rig on "cuda:0". When the stage closes, no context may be current. */
struct stage {
    struct rig rig;
    sb_context *context; /* the context of the rig */
    sb_stream stream;    /* a non-blocking stream of the test */
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
/* Makes device 0's primary context current. */
void enter(void);
void leave(void);
#define primary_ok(call)                                                                           \
    do {                                                                                           \
        enter();                                                                                   \
        cu_ok(call);                                                                               \
        leave();                                                                                   \
    } while (0)

/* Creates a stream that the test owns. */
sb_stream stream_make(unsigned int flags);
void stream_wait(sb_stream stream);

/* --- bytes of the device: work is queued on the stream argument, if there is one ------------ */

/* Allocates device memory, which is freed when the test ends, after the test's contexts. */
void *device_make(size_t bytes);
/* Makes the test the owner of the memory. @return the memory */
void *device_own(sb__cu_ptr ptr);
/* Queues a pause of some milliseconds, except on a fake driver, whose schedule delays the work. */
void queue_pause(sb_stream stream);
void queue_fill(sb_stream stream, void *ptr, int value, size_t bytes);
void queue_copy(sb_stream stream, void *dst, const void *src, size_t bytes);
/* These two functions copy on the legacy default stream, and wait for the copy. */
void device_write(void *dst, const void *src, size_t bytes);
bool device_holds(const void *ptr, size_t bytes, int value);

/* Creates a memory that the test owns, with the head at the device. */
sb_mem *mem_on_device(sb_context *context, size_t bytes, int value);
void host_fill(sb_mem *mem, int value);
bool host_holds(sb_mem *mem, int value);

#endif
