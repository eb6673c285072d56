/* Controls and counters that the fake libcuda.so.1 exports besides the driver API. Environment
   variables set the initial settings: FAKE_SCHEDULE (eager, lazy or random), FAKE_VERSION,
   FAKE_INIT and FAKE_MEMORY. */
#ifndef SB_TESTS_FAKE_H
#define SB_TESTS_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum fake_setting {
    FAKE_SCHEDULE,
    FAKE_SEED,
    FAKE_DEVICES,
    FAKE_VERSION, /* the driver's CUDA version, for example 13000 */
    FAKE_POOLS,
    FAKE_PEERS,
    FAKE_INIT,   /* the result of cuInit */
    FAKE_MEMORY, /* the size of each device's memory, and of page-locked memory */
    FAKE_LOSS,   /* the driver's error (such as 700) after a cuBLAS call loses the context */
    FAKE_SETTINGS
};

enum fake_schedule { FAKE_EAGER, FAKE_LAZY, FAKE_RANDOM };

FAKE_API void fake_set(enum fake_setting setting, int64_t value);

/* If the faulty call queues no work, FAKE_LATE makes the next call lose the context, and
   FAKE_TRANSIENT makes the faulty call return the failure. */
enum fake_mode {
    FAKE_NOW,
    FAKE_LATE,      /* the call succeeds, and the context is lost when the work runs */
    FAKE_STICKY,    /* the call fails, and the context is lost */
    FAKE_TRANSIENT, /* a wait fails, but the context still works, unlike with real drivers */
    FAKE_EXIT,      /* the driver shuts down, as at process exit */
    FAKE_ALWAYS     /* all later calls fail too, until the fault is removed */
};

/* Makes the `nth` next call of `function` (NULL: of any function) fail with `code`. An `nth` of 0
   removes the fault. */
FAKE_API void fake_fail(const char *function, int64_t nth, enum fake_mode mode, unsigned int code);
/* Returns the function that the latest fault made fail, or NULL. Removing the fault does not change
   the result. */
FAKE_API const char *fake_fired(void);
/* If `function` is NULL, counts the calls of all functions. */
FAKE_API int64_t fake_calls(const char *function);

struct fake_live {
    int64_t blocks, pinned, pools, streams, events, retained, handles, modules;
    size_t device_bytes, pinned_bytes;
    size_t mapped_bytes; /* allocated memory, and free memory that pools keep */
    int64_t unmapped;    /* how often a free chunk of a pool was unmapped */
};
FAKE_API struct fake_live fake_live(void);
FAKE_API int fake_depth(void);

/* Returns how often rules of CUDA or NCCL were broken. Each violation is printed on stderr. */
FAKE_API int64_t fake_violations(void);

/* Queues kernel(user) on a stream of the current context. */
FAKE_API CUresult fake_launch(CUstream stream, void (*kernel)(void *user), void *user);
/* Returns the host memory behind a device's range, or NULL if the range is not allocated or its
   queued allocation has not run. */
FAKE_API void *fake_address(CUdeviceptr ptr, size_t bytes);
FAKE_API int fake_knows(CUstream stream);
FAKE_API void fake_drain(void);
/* CUDA 13's header declares only a newer version, but its drivers still export cuCtxCreate_v2. */
FAKE_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* Makes a lost context usable again, which no real driver does, and drops its queued copies and
   kernels. No thread may be using the context. */
FAKE_API void fake_revive(CUcontext context);
/* Frees all objects of the fake driver, revives all contexts, and empties this thread's stack of
   contexts. */
FAKE_API void fake_heal(void);

/* Returns the number of this thread. Unlike a pthread_t, the number is never reused. */
FAKE_API int64_t fake_thread(void);

/* The lock is recursive. FAKE_LOCKED holds the lock until the enclosing block ends. */
FAKE_API int fake_lock(void);
FAKE_API void fake_unlock(const int *held);
#define FAKE_LOCKED __attribute__((cleanup(fake_unlock), unused)) const int held = fake_lock()

/* Queues a kernel on [ptr, ptr + bytes) that ends once passes(user) returns true. The fake driver
   calls passes(user) under its lock, after the stream's earlier work. */
FAKE_API CUresult fake_gate(CUcontext context, CUstream stream, bool (*passes)(void *user),
                            void *user, CUdeviceptr ptr, size_t bytes);
/* Work on a reserved stream is a violation. */
FAKE_API void fake_reserve(CUcontext context, CUstream stream, bool reserved);
FAKE_API bool fake_is_memory_of(CUcontext context, CUdeviceptr ptr, size_t bytes);
/* Returns whether the context's kernels may store to the range. Assumes that all devices have
   access to memory of cuMemAlloc. */
FAKE_API bool fake_may_store(CUcontext context, CUdeviceptr ptr, size_t bytes);
FAKE_API int64_t fake_get(enum fake_setting setting);

struct fake_blas_call {
    unsigned int status; /* 0: the call may continue */
    CUcontext context;
};
/* Begins a call of cuBLAS or NCCL. fake_fail can make such calls fail, with a cublasStatus_t or an
   ncclResult_t. */
FAKE_API struct fake_blas_call fake_blas(const char *function);
/* `user` must be from malloc. The fake driver frees `user` after the kernel has run. */
FAKE_API CUresult fake_blas_run(CUcontext context, CUstream stream, void (*kernel)(void *user),
                                void *user);
/* A loaded kernel uses device memory until its module or its context ends. */
#define FAKE_KERNEL_BYTES ((size_t)65536)
FAKE_API CUresult fake_load_kernel(CUcontext context, const char *function);
FAKE_API uint64_t fake_context_id(CUcontext context);
FAKE_API void fake_count_handle(void);
/* Returns zeroed memory, which fake_heal frees. */
FAKE_API void *fake_object(size_t bytes);
FAKE_API void fake_object_free(void *object);
FAKE_API void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes the `nth` next operation of the rank run forever, and, unless `code` is ncclSuccess, report
   the error `code`. An `nth` of 0 removes the fault. */
FAKE_API void fake_nccl_fail(int rank, int64_t nth, int code);
FAKE_API int64_t fake_nccl_live(void);

#endif
