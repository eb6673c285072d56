/* An opened CUDA device: its retained primary context, and a stream and a pool of the library. The
   driver is called between sb__cuda_enter, which makes this context current on the thread, and
   sb__cuda_leave, which restores the previous context. */
#ifndef SB_CUDA_DEVICE_H
#define SB_CUDA_DEVICE_H

#include "libraries.h"

#include "base/counter.h"
#include "port/threads.h"

#include <stdatomic.h>
#include <stdbool.h>

struct sb__cuda_blas; /* blas.h */

/* A cache of released events. */
struct sb__cuda_events {
    sb__mutex lock;
    int count;
    sb__cu_event spare[32];
};

/* Slabs for small buffers of page-locked memory, by size class (pinned.c). */
enum { SB__CUDA_SLAB_CLASSES = 11 };

struct sb__cuda_slabs {
    sb__mutex lock;
    struct sb__cuda_slab *first[SB__CUDA_SLAB_CLASSES];
};

/* Memory that could not be freed yet (kept.c). */
enum sb__cuda_kept_kind {
    SB__CUDA_KEPT_BLOCK,  /* device memory */
    SB__CUDA_KEPT_PINNED, /* page-locked host memory */
    SB__CUDA_KEPT_PARTS,  /* host memory from calloc, which begins with an sb__cuda_kept */
    SB__CUDA_KEPT_KINDS
};

struct sb__cuda_kept {
    struct sb__cuda_kept *next;
    enum sb__cuda_kept_kind kind;
    void *ptr; /* unused for SB__CUDA_KEPT_PARTS */
    size_t bytes;
};

struct sb__cuda_kept_list {
    sb__mutex lock;
    _Atomic(struct sb__cuda_kept *) first;
    sb__counter bytes[SB__CUDA_KEPT_KINDS];
};

struct sb__cuda_device {
    struct sb__cuda_device *next; /* the next device in the list of open devices (siblings.c) */
    const struct sb__cuda_driver *cu;
    int32_t ordinal;
    sb__cu_device handle;
    sb__cu_context context;
    unsigned long long context_id; /* unique in the process */
    unsigned int event_flags;
    sb__cu_stream stream;
    atomic_bool core_has_stream, caller_has_stream; /* whether libsyncblob's core, and whether a
                                                       caller, has received `stream` */
    sb__cu_event legacy;                  /* the event to record on the legacy default stream */
    sb__cu_pool pool;                     /* NULL if the device has no pools: cuMemAlloc is used */
    _Atomic(struct sb__cuda_blas *) blas; /* NULL until arithmetic is prepared */
    struct sb__cuda_events events;
    struct sb__cuda_slabs slabs;
    struct sb__cuda_kept_list kept;
};

sb_status sb__cuda_open(void *user, int32_t ordinal, void **out, sb_error *err);
void sb__cuda_close(void *device);

/* The state that sb__cuda_leave restores, and the name of the call that failed. */
struct sb__cuda_visit {
    const char *call;  /* the failed call, as passed to sb__cuda_named */
    unsigned int mode; /* the capture mode to restore */
    bool relaxed;      /* the mode was changed to relaxed */
    bool pushed;       /* the context was pushed, because it was not yet current */
};

/* If `result` is a failure, records the name `call` in the visit. Returns `result`. */
static inline sb__cu_result sb__cuda_named(struct sb__cuda_visit *visit, sb__cu_result result,
                                           const char *call) {
    if (result != SB__CUDA_SUCCESS)
        visit->call = call;
    return result;
}

/* Makes the context current on this thread. Also makes the capture mode relaxed, so that calls of
   the driver may allocate while a stream is captured. After a failure the caller must not call
   sb__cuda_leave, and `visit` has the name of the failed call. */
sb__cu_result sb__cuda_enter(const struct sb__cuda_device *device, struct sb__cuda_visit *visit);
/* Fails if work on `stream` would join or invalidate a stream capture. Does not query the library's
   stream until a caller has received that stream. Call between sb__cuda_enter and
   sb__cuda_leave. */
sb__cu_result sb__cuda_refuse_captured(const struct sb__cuda_device *device, sb__cu_stream stream,
                                       struct sb__cuda_visit *visit);
/* Calls sb__cuda_enter, then sb__cuda_refuse_captured for `stream`. */
sb__cu_result sb__cuda_enter_stream(const struct sb__cuda_device *device, sb__cu_stream stream,
                                    struct sb__cuda_visit *visit);
/* As sb__cuda_enter_stream, but does not change the thread's capture mode. Used for calls that only
   queue a kernel, an event or a wait: captures of other streams do not forbid these calls. */
sb__cu_result sb__cuda_enter_queue(const struct sb__cuda_device *device, sb__cu_stream stream,
                                   struct sb__cuda_visit *visit);
/* Calls sb__cuda_enter up to SB__CUDA_TRIES times, before a free or a wait for an event. */
sb__cu_result sb__cuda_enter_to_free(const struct sb__cuda_device *device,
                                     struct sb__cuda_visit *visit);
/* Calls sb__cuda_enter_stream up to SB__CUDA_TRIES times, before a wait for `stream`. Retries,
   because callers may treat a failed wait as failed work. */
sb__cu_result sb__cuda_enter_to_wait(const struct sb__cuda_device *device, sb__cu_stream stream,
                                     struct sb__cuda_visit *visit);
/* Restores the thread's context and capture mode. Returns `result`. */
sb__cu_result sb__cuda_leave(const struct sb__cuda_device *device,
                             const struct sb__cuda_visit *visit, sb__cu_result result);
/* As sb__cuda_leave. If `result` is a failure, first records the name `call`. */
static inline sb__cu_result sb__cuda_leave_after(const struct sb__cuda_device *device,
                                                 struct sb__cuda_visit *visit, sb__cu_result result,
                                                 const char *call) {
    return sb__cuda_leave(device, visit, sb__cuda_named(visit, result, call));
}

sb_status sb__cuda_retain(const struct sb__cuda_device *device, sb__cu_context *out, sb_error *err);
void sb__cuda_release(const struct sb__cuda_device *device);

/* Converts the result of the driver's function `call` to a status, and fills `err`. */
sb_status sb__cuda_status(const struct sb__cuda_device *device, sb__cu_result result,
                          const char *call, sb_error *err);
/* Converts DEINITIALIZED to success, because work is complete once the driver has shut down. */
static inline sb__cu_result sb__cuda_done(sb__cu_result result) {
    return result == SB__CUDA_ERROR_DEINITIALIZED ? (sb__cu_result)SB__CUDA_SUCCESS : result;
}

/* Returns whether the error means that the context is lost: every later call returns the same
   error. */
int sb__cuda_is_sticky(sb__cu_result result);

/* Returns whether the result of a wait shows that the work has ended: the wait succeeded, or the
   device is lost. */
static inline bool sb__cuda_is_over(sb__cu_result wait) {
    return wait == SB__CUDA_SUCCESS || sb__cuda_is_sticky(wait);
}

/* The number of attempts of a call whose failure cannot be reported. */
#define SB__CUDA_TRIES 3

/* Retries a call that frees an object, unless its error shows that the context is lost. */
#define SB__CUDA_RELEASE(call)                                                                     \
    do {                                                                                           \
        sb__cu_result given = call;                                                                \
        for (int tries = 1;                                                                        \
             tries < SB__CUDA_TRIES && given != SB__CUDA_SUCCESS && !sb__cuda_is_sticky(given);    \
             tries++)                                                                              \
            given = call;                                                                          \
    } while (0)

static inline sb__cu_ptr sb__cuda_address(const void *ptr) {
    return (sb__cu_ptr)(uintptr_t)ptr;
}

static inline sb__cu_stream sb__cuda_stream(sb_stream stream) {
    return (sb__cu_stream)stream;
}

/* --- siblings.c ------------------------------------------------------------------------------ */

/* These functions add an opened device to the list of open devices, and remove it before it is
   closed. */
void sb__cuda_siblings_join(struct sb__cuda_device *device);
void sb__cuda_siblings_part(struct sb__cuda_device *device);
/* Trims the pools of all contexts of this device. Keeps memory whose free is still queued. Also
   keeps memory freed on a stream that a caller holds, until the pool's context waits for this
   stream. Call between sb__cuda_enter and sb__cuda_leave. */
void sb__cuda_siblings_trim(const struct sb__cuda_device *device);
/* Records that a caller has the device's stream and may capture it: other contexts no longer query
   the stream. */
void sb__cuda_siblings_expose(struct sb__cuda_device *device);

/* --- kept.c ---------------------------------------------------------------------------------- */

/* Both functions keep a block that work on `stream` may still use, until a wait for that work
   succeeds. If `stream` is not the library's, or no memory is left for an entry, the memory counts
   as leaked. The caller of sb__cuda_keep_parts sets the entry's kind and size first. */
void sb__cuda_keep_parts(struct sb__cuda_device *device, struct sb__cuda_kept *entry,
                         sb_stream stream);
void sb__cuda_keep(struct sb__cuda_device *device, enum sb__cuda_kept_kind kind, void *ptr,
                   size_t bytes, sb_stream stream);
bool sb__cuda_keeps_any(const struct sb__cuda_device *device);
/* Frees memory that no stream uses any more. Returns false if the driver fails to free the memory.
   Call between sb__cuda_enter and sb__cuda_leave. */
bool sb__cuda_try_free(const struct sb__cuda_device *device, enum sb__cuda_kept_kind kind,
                       void *ptr);
/* Waits for `stream`. If `stream` is the library's stream, then frees kept memory. Call between
   sb__cuda_enter and sb__cuda_leave. */
sb__cu_result sb__cuda_wait(struct sb__cuda_device *device, sb__cu_stream stream);
/* Queues on the library's stream a free of each kept block that is from a pool. Call between
   sb__cuda_enter and sb__cuda_leave. */
void sb__cuda_free_kept(struct sb__cuda_device *device);
/* Empties the list before the device closes. If `is_gone`, the destruction of the context has freed
   the memory. Otherwise the memory counts as leaked. */
void sb__cuda_end_kept(struct sb__cuda_device *device, bool is_gone);

/* --- memory.c, pinned.c, streams.c, arithmetic.c: the other slots of the table --------------- */

sb_status sb__cuda_alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
/* Frees unused slabs, waits for memory freed on the library's stream, and returns the pool's free
   memory to the driver. */
void sb__cuda_trim(void *device);
/* Call if the device is out of memory. Waits as sb__cuda_trim does, and trims the pools of all
   contexts of the device. */
void sb__cuda_make_room(struct sb__cuda_device *device);
/* Returns whether an allocation of one page fails because the device is out of memory. */
bool sb__cuda_is_full(struct sb__cuda_device *device);
void sb__cuda_free(void *device, void *ptr, size_t bytes, sb_stream stream);
sb_status sb__cuda_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err);
sb_status sb__cuda_upload(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err);
sb_status sb__cuda_download(void *device, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err);
sb_status sb__cuda_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                        sb_error *err);
sb_status sb__cuda_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err);
void sb__cuda_free_pinned(void *device, void *ptr, size_t bytes);
void sb__cuda_trim_pinned(struct sb__cuda_device *device);
sb_status sb__cuda_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err);

sb_stream sb__cuda_own_stream(void *device);
sb_status sb__cuda_after_default(void *device, sb_error *err);
sb_status sb__cuda_check_stream(void *device, sb_stream stream, sb_error *err);
sb_status sb__cuda_stream_synchronize(void *device, sb_stream stream, sb_error *err);
sb_status sb__cuda_event_record(void *device, sb_stream stream, void **out, sb_error *err);
sb_status sb__cuda_stream_wait(void *device, sb_stream stream, void *event, sb_error *err);
sb_status sb__cuda_event_wait(void *device, void *event, sb_error *err);
sb_status sb__cuda_event_query(void *device, void *event, int32_t *out_done, sb_error *err);
void sb__cuda_event_destroy(void *device, void *event);

sb_status sb__cuda_prepare_arithmetic(void *device, sb_error *err);
sb_status sb__cuda_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                        void *y, sb_stream stream, sb_error *err);
sb_status sb__cuda_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                         sb_stream stream, sb_error *err);
sb_status sb__cuda_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                        sb_stream stream, sb_error *err);
sb_status sb__cuda_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                         sb_stream stream, sb_error *err);

#endif
