/* The structs of the fake driver, and the functions that its files share. One recursive lock
   protects the structs. The fake driver has no threads: a call that waits for queued work runs the
   work. */
#ifndef SB_TESTS_FAKE_DRIVER_H
#define SB_TESTS_FAKE_DRIVER_H

#include "fake.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#define MAX_DEVICES  8
#define MAX_CONTEXTS (MAX_DEVICES + 2) /* primary contexts, and two from cuCtxCreate */
#define RUBBISH      0xCB
#define MAX_KERNELS  16

struct record {
    int refs;
    bool done, captured;
    int queries;
    CUresult failure;
    struct CUstream_st *stream;
};

struct CUevent_st {
    CUcontext context;
    unsigned int flags;
    struct record *latest;
};

enum operation { ALLOCATE, RELEASE, SET, UPLOAD, DOWNLOAD, COPY, LAUNCH, RECORD, WAIT, GATE };

struct item {
    struct item *next;
    enum operation operation;
    uint64_t turn; /* the item's place among the items of all streams, in the order of queueing */
    int64_t thread;
    CUresult failure;
    bool passing; /* `failure` is transient: waits return `failure`, but do not lose the context */
    CUdeviceptr dst, src;
    void *host;
    char *snapshot; /* a copy of an upload's source, or NULL */
    bool staged;    /* the source was already read when the copy was queued */
    bool scribbled; /* the download's target is filled with RUBBISH until the copy runs */
    size_t bytes;
    unsigned char value;
    void (*kernel)(void *user);
    bool (*passes)(void *user); /* a GATE runs until `passes` returns true */
    void *user;
    bool owned;
    struct record *record;
};

#define MAX_FAILURES 8

/* A transient failure, which the driver keeps until the thread that queued the work waits or
   records an event. */
struct failure {
    CUresult code;
    int64_t thread;
    bool is_reported; /* a wait for the stream or for an event has returned the failure */
};

struct CUstream_st {
    CUcontext context;
    bool blocking, destroyed, per_thread, reserved;
    int64_t thread;
    struct item *head, *tail;
    struct failure failures[MAX_FAILURES];
    int failure_count;
    CUstreamCaptureStatus capture;
    int64_t capturer;
    CUstream captured_from; /* the stream that began the capture */
    size_t nodes;
    CUstream next;
};

struct CUctx_st {
    int device;
    uint64_t id; /* a new id each time the primary context is created */
    int retained;
    unsigned int flags;
    CUresult lost, lost_soon;
    const char *kernels[MAX_KERNELS];
    int kernel_count;
    struct CUstream_st legacy;
    CUstream streams; /* a list that ends with `legacy`; NULL if the context does not exist */
};

#define MAX_CHUNKS 64

struct CUmemPoolHandle_st {
    int device;
    bool destroyed;
    bool adds_dependencies; /* an allocation may wait for a free on another stream */
    unsigned int access;
    uint64_t threshold;
    int64_t blocks;
    size_t reserved;
    size_t chunks[MAX_CHUNKS]; /* sizes of mapped memory that is free */
    int chunk_count;
    CUmemoryPool next;
};

struct CUgraph_st {
    size_t nodes;
};

struct block {
    CUdeviceptr address;
    size_t bytes;
    char *backing;
    int device;
    CUmemoryPool pool; /* NULL if the memory is from cuMemAlloc or cuMemMap */
    CUcontext context; /* NULL if the memory is from a pool or from cuMemMap */
    bool ready, freeing;
    bool is_reserved;       /* by cuMemAddressReserve; the first `mapped` bytes are usable */
    size_t mapping, mapped; /* the size of each mapping, and of all mappings together */
    struct record *freed;
};

struct pinned {
    char *address;
    size_t bytes;
};

struct fake {
    pthread_mutex_t lock;
    int64_t settings[FAKE_SETTINGS];
    uint64_t random, turn;
    bool initialised, shut_down;
    pid_t process;
    struct CUctx_st contexts[MAX_CONTEXTS];
    struct block *blocks;
    size_t block_count, block_capacity;
    CUmemoryPool pools;
    struct pinned *pinned;
    size_t pinned_count, pinned_capacity;
    struct fake_live live;
    int64_t violations;
};

extern struct fake fake;

enum need {
    NOTHING,
    INITIALISED,
    CONTEXT, /* a current context */
    UNSAFE,  /* as CONTEXT; a capture may forbid the call */
    WORK     /* a current context, on which the call queues work */
};

struct call {
    CUresult result;
    CUcontext context;
    CUresult later; /* the failure of the work that the call queues or, if none, of a later call */
    bool passing;
    enum need need;
};

/* Begins a driver function, and holds the lock until the function returns. Makes the function
   return at once if the call must fail. */
#define BEGIN_AS(function, need)                                                                   \
    __attribute__((cleanup(end_call))) struct call c = begin_call(function, need);                 \
    if (c.result)                                                                                  \
    return c.result
#define BEGIN(need) BEGIN_AS(__func__, need)
/* RETURNS and SIMPLE define driver functions that return an expression or execute statements. */
#define RETURNS(name, need, parameters, ...)                                                       \
    CUresult CUDAAPI name parameters {                                                             \
        BEGIN(need);                                                                               \
        return __VA_ARGS__;                                                                        \
    }
#define SIMPLE(name, need, parameters, ...)                                                        \
    CUresult CUDAAPI name parameters {                                                             \
        BEGIN(need);                                                                               \
        __VA_ARGS__;                                                                               \
        return CUDA_SUCCESS;                                                                       \
    }
/* Defines a function of fake.h that returns an expression, evaluated under the lock. */
#define READS(type, name, parameters, expression)                                                  \
    type name parameters {                                                                         \
        FAKE_LOCKED;                                                                               \
        return expression;                                                                         \
    }
struct call begin_call(const char *function, enum need need);
void end_call(const struct call *c);
void lose(CUcontext context, CUresult code);
/* Aborts if `made` is NULL. Otherwise returns `made`. */
void *need_memory(void *made);
/* `function` must be the pointer that was passed to fake_load_kernel. */
void unload_kernel(CUcontext context, const char *function);

/* `pool` may be NULL. Returns false if the device is out of memory. */
bool map_bytes(CUmemoryPool pool, size_t bytes);
void unmap_bytes(CUmemoryPool pool, size_t bytes);
struct block *find_block(CUdeviceptr ptr, size_t bytes);
struct pinned *find_pinned(const void *ptr, size_t bytes);
bool is_device_range(const void *ptr);
void drop_block(struct block *block);
/* Trims the device's pools to their release thresholds, as CUDA does when the host waits. */
void trim_pools(int device);
void forget_memory(void);

/* Returns NULL if the context has no live stream with this handle. */
CUstream resolve(CUcontext context, CUstream handle);
/* Fails if a capture forbids unsafe calls, and invalidates the capture. */
CUresult check_unsafe(CUcontext context);
void drop_record(struct record *record);
/* Queues a copy of `item`. If the call fails, frees the objects that `item` owns. */
CUresult enqueue(struct call *c, CUstream handle, const struct item *item);
/* Returns whether queued work uses one of the `bytes` bytes at `host` or at `device`. */
bool is_pending(const void *host, CUdeviceptr device, size_t bytes);
void run_all(CUcontext context);
/* The per-thread default streams must have no queued work. */
void drop_per_thread(CUcontext context);
void forget_streams(CUcontext context);

#endif
