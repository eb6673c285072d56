/* An opened CUDA device: its primary context, retained, with a stream and a pool
   of our own. Calls of the driver stand between sb__cuda_enter and
   sb__cuda_leave, which make that context the thread's and put back what was
   there. */
#ifndef SB_CUDA_DEVICE_H
#define SB_CUDA_DEVICE_H

#include "libraries.h"

#include "base/counter.h"
#include "port/threads.h"

#include <stdatomic.h>
#include <stdbool.h>

struct sb__cuda_blas; /* blas.h */

/* Released events, for the next that are asked for. */
struct sb__cuda_events {
    sb__mutex lock;
    int count;
    sb__cu_event spare[32];
};

/* Page-locked memory in small buffers, by size (pinned.c). */
enum { SB__CUDA_SLAB_CLASSES = 11 };

struct sb__cuda_slabs {
    sb__mutex lock;
    struct sb__cuda_slab *first[SB__CUDA_SLAB_CLASSES];
};

/* Memory that could not be freed yet (kept.c). */
enum sb__cuda_kept_kind {
    SB__CUDA_KEPT_BLOCK,  /* of the device */
    SB__CUDA_KEPT_PINNED, /* page-locked */
    SB__CUDA_KEPT_PARTS,  /* of the host, from malloc; it begins with the entry */
    SB__CUDA_KEPT_KINDS
};

struct sb__cuda_kept {
    struct sb__cuda_kept *next;
    enum sb__cuda_kept_kind kind;
    void *ptr; /* unused for PARTS */
    size_t bytes;
};

struct sb__cuda_kept_list {
    sb__mutex lock;
    _Atomic(struct sb__cuda_kept *) first;
    sb__counter bytes[SB__CUDA_KEPT_KINDS];
};

struct sb__cuda_device {
    struct sb__cuda_device *next; /* of those that are open (siblings.c) */
    const struct sb__cuda_driver *cu;
    int32_t ordinal;
    sb__cu_device handle;
    sb__cu_context context;
    unsigned long long context_id; /* no other context of the process ever has it */
    unsigned int event_flags;
    sb__cu_stream stream;
    atomic_bool core_has_stream, caller_has_stream; /* a caller may capture it */
    sb__cu_event legacy; /* recorded on the legacy default stream again and again */
    sb__cu_pool pool;    /* NULL: the device has none, memory comes from cuMemAlloc */
    _Atomic(struct sb__cuda_blas *) blas; /* NULL until arithmetic is prepared */
    struct sb__cuda_events events;
    struct sb__cuda_slabs slabs;
    struct sb__cuda_kept_list kept;
};

sb_status sb__cuda_open(void *user, int32_t ordinal, void **out, sb_error *err);
void sb__cuda_close(void *device);

/* Calls of the driver: which of them failed, and what is put back when they end. */
struct sb__cuda_visit {
    const char *call;  /* that failed, as it was passed to sb__cuda_named */
    unsigned int mode; /* of captures */
    bool relaxed;      /* that mode; false: it was left alone */
    bool pushed;       /* our context; false: it was current already */
};

/* Notes in the visit which call it was that failed; hands `result` through. */
static inline sb__cu_result sb__cuda_named(struct sb__cuda_visit *visit, sb__cu_result result,
                                           const char *call) {
    if (result != SB__CUDA_SUCCESS)
        visit->call = call;
    return result;
}

/* Begins calls of the driver on this thread. They may allocate even while the thread captures a
   stream elsewhere. On failure there is nothing to leave, and the visit names the call. */
sb__cu_result sb__cuda_enter(const struct sb__cuda_device *device, struct sb__cuda_visit *visit);
/* Fails where work on `stream` would become a part of somebody's capture, or end it. Nothing is
   asked of a stream that nobody else has. Between enter and leave. */
sb__cu_result sb__cuda_refuse_captured(const struct sb__cuda_device *device, sb__cu_stream stream,
                                       struct sb__cuda_visit *visit);
/* The same before work on `stream`, after sb__cuda_refuse_captured. */
sb__cu_result sb__cuda_enter_stream(const struct sb__cuda_device *device, sb__cu_stream stream,
                                    struct sb__cuda_visit *visit);
/* The same before calls that only queue a kernel, an event or a wait: no capture elsewhere forbids
   those. */
sb__cu_result sb__cuda_enter_queue(const struct sb__cuda_device *device, sb__cu_stream stream,
                                   struct sb__cuda_visit *visit);
/* The same before something is freed, or an event waited for: tried several times. */
sb__cu_result sb__cuda_enter_to_free(const struct sb__cuda_device *device,
                                     struct sb__cuda_visit *visit);
/* The same before a wait, whose failure may be taken for one of the work: tried several times. */
sb__cu_result sb__cuda_enter_to_wait(const struct sb__cuda_device *device, sb__cu_stream stream,
                                     struct sb__cuda_visit *visit);
/* Ends them; hands `result` through. */
sb__cu_result sb__cuda_leave(const struct sb__cuda_device *device,
                             const struct sb__cuda_visit *visit, sb__cu_result result);
/* The same with the result of `call`. */
static inline sb__cu_result sb__cuda_leave_after(const struct sb__cuda_device *device,
                                                 struct sb__cuda_visit *visit, sb__cu_result result,
                                                 const char *call) {
    return sb__cuda_leave(device, visit, sb__cuda_named(visit, result, call));
}

/* One more user of the device's primary context, and one less; in the relaxed mode of captures. */
sb_status sb__cuda_retain(const struct sb__cuda_device *device, sb__cu_context *out, sb_error *err);
void sb__cuda_release(const struct sb__cuda_device *device);

/* The status of a result of `call`, reported in `err`. */
sb_status sb__cuda_status(const struct sb__cuda_device *device, sb__cu_result result,
                          const char *call, sb_error *err);
/* The process is ending and the driver has gone: what was queued counts as done. */
static inline sb__cu_result sb__cuda_done(sb__cu_result result) {
    return result == SB__CUDA_ERROR_DEINITIALIZED ? (sb__cu_result)SB__CUDA_SUCCESS : result;
}

/* The error loses the context: every later call fails with it. */
int sb__cuda_is_sticky(sb__cu_result result);

/* Whether the work is over, by the result of a wait: a lost device has ended it, too. */
static inline bool sb__cuda_is_over(sb__cu_result wait) {
    return wait == SB__CUDA_SUCCESS || sb__cuda_is_sticky(wait);
}

/* How often a call is made whose failure is not reported: any two failures come to nothing. */
#define SB__CUDA_TRIES 3

/* A call that frees something is retried, but not where that may be gone with the context. */
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

/* The core's word for a stream of the driver's. */
static inline sb__cu_stream sb__cuda_stream(sb_stream stream) {
    return (sb__cu_stream)stream;
}

/* --- siblings.c ------------------------------------------------------------------------------ */

/* Once it is open, and before it is closed. */
void sb__cuda_siblings_join(struct sb__cuda_device *device);
void sb__cuda_siblings_part(struct sb__cuda_device *device);
/* Trims the pool of each context of this device, which has one. What was freed behind work that
   still runs stays, and what was freed on a stream that a caller has stays until that context
   waits. Between enter and leave. */
void sb__cuda_siblings_trim(const struct sb__cuda_device *device);
/* A caller has the device's stream from now on, and may capture it: no other context asks it. */
void sb__cuda_siblings_expose(struct sb__cuda_device *device);

/* --- kept.c ---------------------------------------------------------------------------------- */

/* Each keeps what work on `stream` may still use until somebody has waited for that work. It is
   lost for good, and counted so, where the work is on another stream than our own, or where the
   host is out of memory to remember it. PARTS come with their kind and bytes. */
void sb__cuda_keep_parts(struct sb__cuda_device *device, struct sb__cuda_kept *entry,
                         sb_stream stream);
void sb__cuda_keep(struct sb__cuda_device *device, enum sb__cuda_kept_kind kind, void *ptr,
                   size_t bytes, sb_stream stream);
bool sb__cuda_keeps_any(const struct sb__cuda_device *device);
/* Frees memory that nothing uses, whatever stream it was used on: false where the driver refuses.
   Between enter and leave. */
bool sb__cuda_try_free(const struct sb__cuda_device *device, enum sb__cuda_kept_kind kind,
                       void *ptr);
/* Waits for the stream and, where that is our own, frees what was kept. Between enter and leave. */
sb__cu_result sb__cuda_wait(struct sb__cuda_device *device, sb__cu_stream stream);
/* Frees kept blocks of a pool behind all that is queued on our stream. Between enter and leave. */
void sb__cuda_free_kept(struct sb__cuda_device *device);
/* Before the device is closed: what is still kept is lost, unless it is gone with the context. */
void sb__cuda_end_kept(struct sb__cuda_device *device, bool is_gone);

/* --- memory.c, pinned.c, streams.c, arithmetic.c: the other slots of the table --------------- */

sb_status sb__cuda_alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
/* Waits for what was freed on our stream and returns what the pool keeps to the driver. */
void sb__cuda_trim(void *device);
/* The same where the device is out of memory; the other contexts are trimmed, too. */
void sb__cuda_make_room(struct sb__cuda_device *device);
/* Whether the device has not one page left. */
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
/* Gives slabs back in which nothing is used. */
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
