/* What the stand-in for libcuda.so.1 exports beside the driver API: how a test
   chooses what it does, and sees what was done. The environment sets the same
   before the program starts: STANDIN_SCHEDULE (eager, lazy, random),
   STANDIN_SEED, STANDIN_DEVICES, STANDIN_VERSION, STANDIN_POOLS,
   STANDIN_INIT (what cuInit returns), STANDIN_MEMORY. */
#ifndef SB_TESTS_STANDIN_H
#define SB_TESTS_STANDIN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_API __attribute__((visibility("default")))

enum standin_setting {
    STANDIN_SCHEDULE, /* enum standin_schedule */
    STANDIN_SEED,
    STANDIN_DEVICES,
    STANDIN_VERSION, /* of the driver: 13000 */
    STANDIN_POOLS,   /* whether devices have memory pools */
    STANDIN_INIT,    /* what cuInit returns */
    STANDIN_MEMORY,  /* bytes of each device; pinned memory likewise */
    STANDIN_LOSS,    /* what a context is lost with by a call of cuBLAS: 700 */
    STANDIN_SETTINGS
};

enum standin_schedule { STANDIN_EAGER, STANDIN_LAZY, STANDIN_RANDOM };

STANDIN_API void standin_set(enum standin_setting setting, int64_t value);

/* How a chosen call fails. LATE and PASSING: a call that queues work succeeds, and the work fails
   in its turn; any other call succeeds and the failure comes out at a later one (LATE), or fails
   at once (PASSING). */
enum standin_mode {
    STANDIN_NOW,     /* the call fails and has done nothing */
    STANDIN_LATE,    /* the context is lost when the work runs */
    STANDIN_STICKY,  /* the call fails and the context is lost */
    STANDIN_PASSING, /* who waits for the work is told; the context lives on. No driver does this */
    STANDIN_EXIT,    /* the driver shuts down, as at the end of the process */
    STANDIN_ALWAYS   /* NOW, for this call and all later ones until it is taken back */
};

/* Makes the `nth` call of `function` (NULL: any) from now on, 1 being the next, fail with `code`.
   nth 0 takes it back; firing does, too. */
STANDIN_API void standin_fail(const char *function, int64_t nth, enum standin_mode mode,
                              unsigned int code);
/* Once it has fired, the `nth` call after that fails in the same way, once. After standin_fail. */
STANDIN_API void standin_fail_again(int64_t nth);
/* The function whose call failed since standin_fail, the last of them, or NULL. */
STANDIN_API const char *standin_fired(void);
/* How many calls have failed since standin_fail. */
STANDIN_API int standin_failures(void);
/* Runs hook(user) before the next call of `function`, as another thread might. */
STANDIN_API void standin_before(const char *function, void (*hook)(void *user), void *user);

/* How often `function` was called (NULL: all); 0 for one that never was. */
STANDIN_API int64_t standin_calls(const char *function);

/* What has been made and not given back, in the whole process. */
struct standin_live {
    int64_t blocks, pinned, pools, streams, events, retained, handles, modules;
    size_t device_bytes, pinned_bytes;
    size_t mapped_bytes; /* of devices: what is allocated, and what pools keep */
    int64_t unmapped;    /* how often a wait or a trim gave a chunk of a pool back; never less */
};
STANDIN_API struct standin_live standin_live(void);
/* Contexts on this thread's stack. */
STANDIN_API int standin_depth(void);

/* What no correct program does: each is told on stderr and counted. */
STANDIN_API int64_t standin_violations(void);
STANDIN_API void standin_forgive(void);

/* Queues kernel(user) on a stream of the current context. It may run on any thread that waits. */
STANDIN_API CUresult standin_launch(CUstream stream, void (*kernel)(void *user), void *user);
/* Host memory behind [ptr, ptr + bytes) of a device; NULL where that is no allocated memory, or
   its allocation has not run. For kernels, and for a test that looks. */
STANDIN_API void *standin_address(CUdeviceptr ptr, size_t bytes);
/* Whether the handle is a stream's that somebody made and has not destroyed. */
STANDIN_API int standin_knows(CUstream stream);
/* Makes everything queued in every context run. */
STANDIN_API void standin_drain(void);
/* From now on every call says CUDA_ERROR_DEINITIALIZED. */
STANDIN_API void standin_shut_down(void);
/* By the names that the driver keeps for programs of CUDA 12; the header of 13 has another form. */
STANDIN_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* Ends the loss of one context, all of whose users are gone. No driver can do that. */
STANDIN_API void standin_revive(CUcontext context);
/* Ends the loss of contexts and the shutting down, and forgets all that was left behind and what
   this thread has current: the next test needs a device. No driver can do that. */
STANDIN_API void standin_heal(void);

/* --- for the stand-in of NCCL ----------------------------------------------------------------- */

/* Queues a kernel that uses [ptr, ptr + bytes) and is not done before passes(user) is true. It is
   asked again and again, under the lock of the stand-in, once all before it on the stream is done.
 */
STANDIN_API CUresult standin_gate(CUcontext context, CUstream stream, bool (*passes)(void *user),
                                  void *user, CUdeviceptr ptr, size_t bytes);
STANDIN_API void standin_lock(void);
STANDIN_API void standin_unlock(void);
/* Whether [ptr, ptr + bytes) is allocated memory of the device. */
STANDIN_API bool standin_is_memory_of(CUcontext context, CUdeviceptr ptr, size_t bytes);

/* --- for the stand-in of cuBLAS -------------------------------------------------------------- */

struct standin_blas_call {
    unsigned int status; /* 0: go on */
    CUcontext context;
};
/* Counts the call and lets it fail like one of the driver's; `code` of standin_fail is a
   cublasStatus_t here. */
STANDIN_API struct standin_blas_call standin_blas(const char *function);
/* The same as standin_launch in `context` and, where `wait`, waits. `user` comes from malloc and is
   freed when the kernel has run or cannot. */
STANDIN_API CUresult standin_blas_run(CUcontext context, CUstream stream,
                                      void (*kernel)(void *user), void *user, int wait);
/* Loads the kernel of a function that has not run in the context yet. It takes memory of the
   device, which the end of its module or of the context gives back. */
#define STANDIN_KERNEL_BYTES ((size_t)65536)
STANDIN_API CUresult standin_load_kernel(CUcontext context, const char *function);
/* Waits for the context as cudaDeviceSynchronize does, which ends its captures. */
STANDIN_API void standin_blas_wait(CUcontext context);
STANDIN_API uint64_t standin_context_id(CUcontext context);
STANDIN_API void standin_count_handle(int by);
/* Zeroed memory of an object of NVIDIA's, which standin_heal forgets. NULL: there is none. */
STANDIN_API void *standin_object(size_t bytes);
STANDIN_API void standin_object_free(void *object);
STANDIN_API void standin_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
