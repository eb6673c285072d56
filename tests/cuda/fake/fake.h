/* The functions that the fake libcuda.so.1 exports besides the driver API. With these functions,
   tests choose the fake's behaviour and read counters. Environment variables set initial settings:
   FAKE_SCHEDULE (eager, lazy, random), FAKE_VERSION, FAKE_INIT, FAKE_MEMORY. */
#ifndef SB_TESTS_FAKE_H
#define SB_TESTS_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum fake_setting {
    FAKE_SCHEDULE, /* enum fake_schedule */
    FAKE_SEED,
    FAKE_DEVICES,
    FAKE_VERSION, /* the driver's CUDA version, for example 13000 */
    FAKE_POOLS,   /* whether devices have memory pools */
    FAKE_PEERS,   /* whether devices can access one another's memory */
    FAKE_INIT,    /* the result of cuInit */
    FAKE_MEMORY,  /* the bytes of each device, and the limit of page-locked memory */
    FAKE_LOSS,    /* the driver's error after a call of cuBLAS has lost the context, such as 700 */
    FAKE_SETTINGS
};

enum fake_schedule { FAKE_EAGER, FAKE_LAZY, FAKE_RANDOM };

FAKE_API void fake_set(enum fake_setting setting, int64_t value);

/* How a chosen call fails. In the modes FAKE_LATE and FAKE_TRANSIENT, a call that queues work
   succeeds, and the work fails when it runs. If the call queues no work, a later call fails instead
   (FAKE_LATE), or the call itself fails (FAKE_TRANSIENT). */
enum fake_mode {
    FAKE_NOW,       /* the call fails and does nothing */
    FAKE_LATE,      /* the context is lost when the work runs */
    FAKE_STICKY,    /* the call fails and the context is lost */
    FAKE_TRANSIENT, /* a wait for the work returns the failure, and the context remains usable,
                       unlike with any real driver */
    FAKE_EXIT,      /* the driver shuts down, as at process exit */
    FAKE_ALWAYS     /* as FAKE_NOW, for this call and all later calls until the fault is removed */
};

/* Makes the `nth` call of `function` (NULL: of any function) fail with `code`; 1 is the next call.
   The fault ends with that call unless the mode is FAKE_ALWAYS. An `nth` of 0 removes the fault. */
FAKE_API void fake_fail(const char *function, int64_t nth, enum fake_mode mode, unsigned int code);
/* Returns the function that the latest fault made fail, or NULL. The removal of a fault does not
   change the result. */
FAKE_API const char *fake_fired(void);
/* Returns the number of calls of `function`, or of all functions if NULL. */
FAKE_API int64_t fake_calls(const char *function);

/* The live objects and the memory of the whole process. */
struct fake_live {
    int64_t blocks, pinned, pools, streams, events, retained, handles, modules;
    size_t device_bytes, pinned_bytes;
    size_t mapped_bytes; /* device memory that is allocated, or that pools keep after a free */
    int64_t unmapped;    /* how many chunks of pools a wait or a trim has unmapped */
};
FAKE_API struct fake_live fake_live(void);
/* Returns the number of contexts on this thread's stack. */
FAKE_API int fake_depth(void);

/* Returns the number of violations of the driver's rules. Each violation is printed on stderr. */
FAKE_API int64_t fake_violations(void);

/* Queues kernel(user) on a stream of the current context. A call that waits runs the kernel. */
FAKE_API CUresult fake_launch(CUstream stream, void (*kernel)(void *user), void *user);
/* For kernels and tests: returns the host memory behind [ptr, ptr + bytes) of a device, or NULL if
   the range is not allocated, or its queued allocation has not run. */
FAKE_API void *fake_address(CUdeviceptr ptr, size_t bytes);
/* Returns whether the handle belongs to a live stream. */
FAKE_API int fake_knows(CUstream stream);
/* Runs all work that is queued in any context. */
FAKE_API void fake_drain(void);
/* cuCtxCreate of CUDA 12. Drivers for CUDA 13 still export this version, but CUDA 13's header
   declares only a newer version. */
FAKE_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* Makes a lost context usable again, which no real driver does, and drops its queued copies and
   kernels. The context must not be in use. */
FAKE_API void fake_revive(CUcontext context);
/* Resets the fake driver for the next test: revives the contexts and the driver, frees all objects,
   and empties this thread's stack of contexts. */
FAKE_API void fake_heal(void);

/* Returns the number of this thread. Unlike a pthread_t, the number is never reused. */
FAKE_API int64_t fake_thread(void);

/* The lock of the fake driver, which is recursive. */
FAKE_API int fake_lock(void);
FAKE_API void fake_unlock(const int *held); /* may be NULL */
/* Holds the lock until the end of the enclosing block. */
#define FAKE_LOCKED __attribute__((cleanup(fake_unlock), unused)) const int held = fake_lock()

/* --- for the fake NCCL ----------------------------------------------------------------- */

/* Queues a gate: a kernel that uses [ptr, ptr + bytes) and is done once passes(user) returns true.
   When the stream's earlier work is done, the fake driver calls passes(user) under its lock. */
FAKE_API CUresult fake_gate(CUcontext context, CUstream stream, bool (*passes)(void *user),
                            void *user, CUdeviceptr ptr, size_t bytes);
/* Reserves a stream, or ends the reservation. Work on a reserved stream is a violation. */
FAKE_API void fake_reserve(CUcontext context, CUstream stream, bool reserved);
/* Returns whether [ptr, ptr + bytes) is allocated memory of the device. */
FAKE_API bool fake_is_memory_of(CUcontext context, CUdeviceptr ptr, size_t bytes);
/* Returns whether kernels of the context may store to [ptr, ptr + bytes). Assumes that the devices
   have enabled access to one another's memory from cuMemAlloc. */
FAKE_API bool fake_may_store(CUcontext context, CUdeviceptr ptr, size_t bytes);
FAKE_API int64_t fake_get(enum fake_setting setting);

/* --- for the fake cuBLAS -------------------------------------------------------------- */

struct fake_blas_call {
    unsigned int status; /* 0: the call continues */
    CUcontext context;
};
/* Begins and counts a call of cuBLAS or NCCL. fake_fail can also make such a call fail, with a
   cublasStatus_t or an ncclResult_t as `code`. */
FAKE_API struct fake_blas_call fake_blas(const char *function);
/* Queues a kernel like fake_launch, but in `context`. `user` must be from malloc, and is
   freed after the kernel has run. */
FAKE_API CUresult fake_blas_run(CUcontext context, CUstream stream, void (*kernel)(void *user),
                                void *user);
/* Loads the kernel of a function, unless the context has loaded it. The kernel uses device memory
   until its module is unloaded or the context ends. */
#define FAKE_KERNEL_BYTES ((size_t)65536)
FAKE_API CUresult fake_load_kernel(CUcontext context, const char *function);
FAKE_API uint64_t fake_context_id(CUcontext context);
FAKE_API void fake_count_handle(void);
/* Returns zeroed memory for an object of a fake library, which fake_heal frees. */
FAKE_API void *fake_object(size_t bytes);
FAKE_API void fake_object_free(void *object);
FAKE_API void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- of the fake libnccl.so.2 -----------------------------------------------------------

   fake_fail can make calls of NCCL fail, with an ncclResult_t as `code`. */

/* Makes the `nth` operation that the rank begins from now on, in any communicator, run forever. If
   `code` is not ncclSuccess, ncclCommGetAsyncError then reports `code`. A call with `nth` 0 removes
   the fault. */
FAKE_API void fake_nccl_fail(int rank, int64_t nth, int code);
/* Returns the number of communicators that are neither destroyed nor aborted. */
FAKE_API int64_t fake_nccl_live(void);

#endif
