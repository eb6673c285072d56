/* Defines sb_context, and declares the functions that account for host memory, call the device and
   manage its streams. The word "slot" means a function pointer of the backend's table, or the index
   of a stream. Lock order of the whole library: a thread that holds a lock may acquire only locks
   that are later in this list. A function "runs under" a lock if a thread that holds the lock may
   call the function.

     1. an sb_mem's lock       a thread holds only one such lock; slots of the allocator and of the
                               backend run under this lock, but no deleter and no parallel_for
     2. waits.lock             event_query and event_wait run under this lock; streams.lock may be
                               acquired under this lock
        streams.lock           event_record, stream_synchronize and the allocator run under this
                               lock; events.lock may be acquired under this lock
        own_lock               stream_synchronize, asum, sumsq, event_wait and event_destroy run
                               under this lock; events.lock may be acquired under this lock
        cache.lock             the allocator and free_pinned run under this lock after a failed
                               request
        events.lock, quarantine.lock, waiting_lock (quarantine.c):
                               no slot runs under these locks
     3. a backend's own locks  the simulated device has one recursive lock; kernels run under this
                               lock and call only sb_sim_address

   Fork handlers acquire no lock. In a forked child, a thread of the parent may have left any lock
   locked. The child acquires the lock of a memory only if no thread of the parent held that lock at
   the fork (sb__lock). The child acquires cache.lock only if cache.lock is free. The child
   initialises waiting_lock and the list of waiting contexts anew, and never acquires the other
   locks. */
#ifndef SB_CONTEXT_CONTEXT_H
#define SB_CONTEXT_CONTEXT_H

#include "context/account.h"
#include "port/threads.h"

#include <syncblob/backend.h>
#include <syncblob/context.h>

#include <stdatomic.h>
#include <stdbool.h>

struct sb__parallel {
    sb_parallel_for run; /* NULL if tasks run in a plain loop */
    void *user;
};

/* The number of buffers that the cache can store. A test defines a smaller number. */
#ifndef SB__CACHE_ENTRIES
#define SB__CACHE_ENTRIES 64
#endif

struct sb__cached {
    void *ptr;
    size_t bytes;
    bool pinned;
};

struct sb__host_cache {
    sb__mutex lock;
    int count;
    int leaving;          /* number of removed buffers that threads are freeing */
    sb__counter released; /* number of removed buffers freed so far */
    sb__counter bytes;
    sb__counter used, most_used; /* bytes of buffers in use, and their peak */
    struct sb__cached entries[SB__CACHE_ENTRIES];
};

enum {
    SB__LEGACY_SLOT, /* the legacy default stream (NULL), if the device has one */
    SB__OWN_SLOT,    /* the library's stream */
    SB__READ_SLOT,   /* the library's stream for reads, if the device has one */
    SB__FIRST_NAMED
};

/* The last failure that a wait for the slot's stream has reported. The times are values of
   events.clock. Later events of the stream might not report the failure again. A slot with a
   failure is never reused. */
struct sb__failures {
    uint64_t since; /* the time at which the stream was added */
    uint64_t last;  /* the failed work was queued before this time (0: no failure) */
};

/* The streams that have used memories of the context: streams that callers have passed (`named`),
   the legacy default stream and the library's two streams. */
struct sb__streams {
    sb__mutex lock;
    struct sb__named_stream *named;             /* indexed by slot - SB__FIRST_NAMED */
    int32_t count, capacity;                    /* number of streams in `named`, and its capacity */
    struct sb__failures fixed[SB__FIRST_NAMED]; /* failures of the slots below SB__FIRST_NAMED */
};

/* A wait for an event. The struct is on the stack of the waiting thread. */
struct sb__wait {
    struct sb__wait *next;
    int32_t slot;
    void *handle;    /* the event's handle */
    uint64_t number; /* the event's number: if the wait fails, work queued before the event has
                        failed */
};

struct sb__waits {
    sb__mutex lock;
    struct sb__wait *first;
};

/* Events of queued work that no call has waited for. */
struct sb__event_list {
    sb__mutex lock;
    struct sb__event *first, *last;
    sb__counter clock; /* counts events, added streams, and reports of failures */
    int64_t kept;      /* number of listed events with is_kept */
};

/* An entry of quarantine, allocated in advance, because retiring storage must not fail. */
struct sb__quarantined {
    struct sb__quarantined *next;
    uint64_t users; /* a non-empty set: the work of these streams must end before the release */
    size_t bytes;
    void (*release)(struct sb__quarantined *entry); /* runs deleters, without any lock */
};

/* Where a check has stopped. A check asks whether the work of the streams that share a bit has
   ended. A check never waits: it stops at a stream with unfinished work, where the next check
   continues. */
struct sb__mark {
    void *event; /* an event on the stream of `slot`, or NULL */
    int32_t slot;
};

/* Entries with the same first user. Each pointer refers to the last entry of a circular list. */
struct sb__waiting {
    struct sb__quarantined *entries;
    struct sb__quarantined *marked; /* entries older than the mark's event */
    struct sb__mark mark;
};

struct sb__quarantine {
    sb__mutex lock;
    struct sb__waiting waiting[64]; /* indexed by the bit of an entry's first user */
    sb__counter bytes;
};

/* Reports the bytes that a built-in backend has failed to free so far. */
typedef void sb__kept_bytes(const void *device, uint64_t *out_device, uint64_t *out_pinned);

struct sb_context {
    _Atomic int64_t refs;
    uint32_t flags;
    uint64_t fork_generation; /* the fork count when the context was created */
    sb_allocator allocator;
    sb_limits limits; /* all members are set */
    struct sb__parallel parallel;
    size_t max_cache_bytes;
    struct sb__host_cache cache;

    char device_name[32];
    bool has_device;
    sb_backend backend; /* valid if has_device; members that the table lacks are zero */
    void *device;
    sb__kept_bytes *kept_bytes;   /* NULL if the backend does not report kept bytes */
    int32_t ordinal;              /* N of "NAME:N" */
    sb_stream stream;             /* the library's stream; NULL for a backend without streams */
    sb_stream read_stream;        /* runs downloads that the host awaits; if NULL, `stream` does */
    uint32_t lacks;               /* SB_DEVICE_LACKS_* */
    _Atomic bool has_lent_stream; /* sb_context_stream has passed `stream` to a caller */
    _Atomic int32_t device_lost;  /* SB_OK, or permanently SB_ERR_DEVICE_LOST */

    struct sb__account host, pinned, device_memory;
    sb__counter borrowed;
    sb__counter copies[4], copied_bytes[4]; /* indexed by enum sb__direction */

    /* Four counts of arithmetic operations on the library's stream: */
    sb__counter arithmetic_begun;  /* operations whose slot is running or has returned SB_OK
                                      (another thread's wait may report a failure before the slot
                                      returns) */
    sb__counter arithmetic_queued; /* operations whose slot has returned SB_OK: a wait that begins
                                      now covers them */
    sb__counter arithmetic_over;   /* operations that are known to have succeeded */
    sb__counter arithmetic_kept;   /* operations that a kept event covers: see sb__own_keep */
    sb__mutex own_lock;            /* serialises waits for the library's stream */
    struct sb__waits waits;

    struct sb__streams streams;
    struct sb__event_list events;
    struct sb__quarantine quarantine;
    /* Links of the list of contexts with entries in quarantine: */
    sb_context *next_waiting;
    sb_context **waiting_link; /* the list's pointer to this context; NULL if not in the list */
};

enum sb__direction { SB__UPLOAD, SB__DOWNLOAD, SB__DEVICE_COPY, SB__HOST_COPY };

/* --- contexts (builtin.c, life.c, limits.c) ------------------------------------ */

/* Marks a built-in context. No public flag has this bit. A test of the address would not suffice,
   because another copy of the library has a different built-in context. */
#define SB__CONTEXT_BUILT_IN 0x80000000u

#define SB__DEFAULT_CACHE_CAP ((size_t)256 << 20)

static inline bool sb__context_is_built_in(const sb_context *context) {
    return context->flags & SB__CONTEXT_BUILT_IN;
}

/* Returns `context`, or the built-in context for NULL. */
sb_context *sb__context(const sb_context *context);
/* Returns the pointer that callers use for `context`: NULL for the built-in context. */
sb_context *sb__context_public(sb_context *context);
/* Removes an owner and returns how many remain. Removing the last owner frees the context. Unlike
   sb_context_release, does not check quarantine, and so never waits and runs no deleter. */
int64_t sb__context_drop_owner(sb_context *context);
/* Computes the limits of a call that reads messages, and sets all members of `*out`. Members of
   `limits` (may be NULL) that are not 0 override the context's limits. */
sb_status sb__limits_resolve(const sb_context *context, const sb_limits *limits, sb_limits *out,
                             sb_error *err);

/* --- forks (fork.c) ------------------------------------------------------------- */

/* Counts forks. After the first call of sb__fork_watch, the child of each fork increments the
   counter. */
extern sb__counter sb__fork_generation;

void sb__fork_watch(void);

static inline bool sb__context_is_ours(const sb_context *context) {
    return context->fork_generation == sb__counter_read(&sb__fork_generation);
}

/* --- host memory (host_memory.c): accounted, capped ------------------------ */

/* Allocates a zeroed object of the library, for example an sb_mem. `bytes` > 0. */
sb_status sb__object_alloc(sb_context *context, size_t bytes, void **out, sb_error *err);
void sb__object_free(sb_context *context, void *object, size_t bytes);
/* Grows an array of objects. The old array stays valid on failure. `old_bytes` may be 0. The added
   bytes are unspecified. */
sb_status sb__object_grow(sb_context *context, void **object, size_t old_bytes, size_t new_bytes,
                          sb_error *err);

/* Allocates from the context's allocator. sb__ordinary_free requires the same `flags` (SB_ALLOC_*).
   If the allocator fails or the cap is reached, empties the cache and retries. */
sb_status sb__ordinary_alloc(sb_context *context, size_t bytes, uint32_t flags, void **out,
                             sb_error *err);

enum sb__contents {
    SB__OWN_BYTES, /* zeros, or old bytes of this context, which callers may see */
    SB__ZEROS,
    SB__ANY_BYTES /* may be bytes of another context: the caller must overwrite them */
};

/* A flag that permits SB__ANY_BYTES as contents. Only the built-in allocator receives this flag, in
   addition to the public SB_ALLOC_ZEROED. */
#define SB__ALLOC_ANY 0x80000000u

/* Allocates a buffer of `bytes` > 0. The memory is page-locked if the device and the cap allow
   page-locked memory, else ordinary. */
sb_status sb__host_alloc(sb_context *context, size_t bytes, enum sb__contents contents,
                         bool *out_pinned, void **out, sb_error *err);
void sb__host_free(sb_context *context, void *buffer, size_t bytes, bool pinned);
/* Returns an upper bound of the bytes that sb__host_alloc allocates for a buffer of `bytes`. The
   size of a page-locked buffer may be rounded up. */
size_t sb__host_size(const sb_context *context, size_t bytes);
/* --- the cache of freed buffers (host_cache.c) ------------------------------------ */

/* Removes a buffer of `bytes` bytes from the cache. Returns false if the cache is locked or has no
   such buffer. */
bool sb__cache_take(sb_context *context, size_t bytes, bool pinned, void **out);
bool sb__cache_put(sb_context *context, void *ptr, size_t bytes, bool pinned);
/* Rounds the size of a page-locked buffer up to a size class, by at most an eighth. Requests of
   similar sizes can thus reuse the same buffers. Returns `bytes` if the cache does not store
   buffers of that size. */
size_t sb__cache_class(const sb_context *context, size_t bytes);
/* Frees the oldest buffers until at most `most` bytes remain. */
void sb__cache_shrink(sb_context *context, uint64_t most);
/* Empties the cache, waits up to a second for buffers that other threads are freeing, and leaves
   cache.lock locked. Returns false if a forked child cannot acquire cache.lock. */
bool sb__cache_lock_empty(sb_context *context);

/* --- release of host memory (host_release.c) ---------------------------------------- */

#define SB__BUFFER_ALIGNMENT 64

static inline void sb__ordinary_free(sb_context *context, void *ptr, size_t bytes, uint32_t flags) {
    context->allocator.free(context->allocator.user, ptr, bytes, SB__BUFFER_ALIGNMENT, flags);
    sb__account_give(&context->host, bytes);
}

/* Frees a buffer that is not cached. For page-locked memory `bytes` is the buffer's size class. */
void sb__host_release(sb_context *context, void *buffer, size_t bytes, bool pinned);

extern const sb_allocator sb__default_allocator; /* default_allocator.c */

/* --- the device (device.c) ------------------------------------------------------- */

/* Unless noted, a function of this section fails if the device is not usable, and updates the
   statistics. If a slot returns DEVICE_LOST, the function marks the device as lost. */

static inline void sb__count_copy(sb_context *context, enum sb__direction direction, size_t bytes) {
    (void)sb__counter_add(&context->copies[direction], 1);
    (void)sb__counter_add(&context->copied_bytes[direction], bytes);
}

/* Returns SB_OK, NO_DEVICE, FORKED or DEVICE_LOST. */
sb_status sb__device_check(const sb_context *context, sb_error *err);
/* Checks the process before a wait. Returns FORKED in a forked child, else SB_OK. Does not fail on
   a lost device, because work that was queued before the loss must end. */
sb_status sb__device_check_process(const sb_context *context, sb_error *err);
void sb__device_lose(sb_context *context);
/* Handles a failure of a slot. Records DEVICE_LOST. Replaces a status that slots must not return by
   DEVICE_FAILURE. Fills `err` from the slot's error. Returns the resulting status. */
sb_status sb__device_failed(sb_context *context, sb_status status, const sb_error *slot_err,
                            sb_error *err);
sb_status sb__device_check_stream(sb_context *context, sb_stream stream, sb_error *err);
/* Calls the slot, but does not check the device or update the statistics. */
sb_status sb__device_alloc_pinned(sb_context *context, size_t bytes, void **out, sb_error *err);
sb_status sb__device_alloc(sb_context *context, size_t bytes, sb_stream stream, void **out,
                           sb_error *err);
/* Frees device memory. In a forked child only updates the statistics. */
void sb__device_free(sb_context *context, void *ptr, size_t bytes);
void sb__device_trim(sb_context *context);
sb_status sb__device_zero(sb_context *context, void *dst, size_t bytes, sb_stream stream,
                          sb_error *err);
sb_status sb__device_copy(sb_context *context, enum sb__direction direction, void *dst,
                          const void *src, size_t bytes, sb_stream stream, sb_error *err);
sb_status sb__device_check_pointer(sb_context *context, const void *ptr, size_t bytes,
                                   sb_error *err);
/* Makes later work on the library's stream wait for work queued on default streams. Called before
   work on memory whose pointer a caller has fetched without a stream, or that a caller has lent. */
sb_status sb__device_after_default(sb_context *context, sb_error *err);
/* As sb__device_after_default, but returns SB_OK without effect if a stream capture forbids the
   wait. */
sb_status sb__device_try_after_default(sb_context *context, sb_error *err);
/* Waits for the stream. Does nothing for a backend without streams. Like sb__event_wait, waits even
   on a lost device, because earlier work may continue. Retries once if the wait fails with a status
   other than DEVICE_FAILURE and DEVICE_LOST. */
sb_status sb__device_synchronize(sb_context *context, sb_stream stream, sb_error *err);
/* Calls the slot without sb__own_keep. Callers outside events.c use sb__event_record. */
sb_status sb__device_record(sb_context *context, sb_stream stream, void **out, sb_error *err);
sb_status sb__event_wait(sb_context *context, void *event, sb_error *err);
/* Sets `*out_done` to whether the work before the event has ended. Never waits. The backend must
   have event_query. */
sb_status sb__event_query(sb_context *context, void *event, int32_t *out_done, sb_error *err);
void sb__event_destroy(sb_context *context, void *event);
sb_status sb__stream_wait(sb_context *context, sb_stream stream, void *event, sb_error *err);
/* Returns UNSUPPORTED if the device has no arithmetic on the dtype. */
sb_status sb__device_prepare_arithmetic(sb_context *context, int32_t dtype, sb_error *err);
sb_status sb__device_axpy(sb_context *context, int32_t dtype, int64_t count, double alpha,
                          const void *x, void *y, sb_stream stream, sb_error *err);
sb_status sb__device_scale(sb_context *context, int32_t dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err);
/* The slots of the next two functions wait for the library's stream. Callers outside waits.c use
   sb__own_asum and sb__own_sumsq. */
sb_status sb__device_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                          double *out, sb_error *err);
sb_status sb__device_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                           double *out, sb_error *err);
/* Returns whether `st`, the result of a wait for the library's stream, may be a failure of
   arithmetic on that stream. If so, sb__own_lose marks the device as lost. */
bool sb__own_may_have_failed(const sb_context *context, sb_status st);
void sb__own_lose(sb_context *context, sb_status st);

/* --- opening a device by name (backends.c) -------------------------------------------- */

/* Opens `device`, "NAME:N". Errors: INVALID_ARGUMENT, UNSUPPORTED, ABI_MISMATCH, NO_DEVICE, and the
   backend's statuses. */
sb_status sb__device_open(sb_context *context, const sb_context_options *options,
                          const char *device, sb_error *err);
bool sb__backend_is_named(const sb_backend *backend, const char *name, size_t length);
/* Checks a table before its registration: the name, and everything that sb__device_open checks.
   Returns ABI_MISMATCH, INVALID_ARGUMENT or UNSUPPORTED. */
sb_status sb__backend_check(const sb_backend *table, sb_error *err);

/* --- registered backends (registry.c) --------------------------------------------- */

/* Returns the registered backend with the name `name`, or NULL. */
const sb_backend *sb__registered_backend(const char *name, size_t length);

/* --- events of queued work that writes bytes (events.c) ------------------------- */

/* The value of exposed_at if no caller has got a pointer. */
#define SB__NOT_EXPOSED UINT64_MAX

struct sb__event {
    _Atomic int64_t refs;
    void *handle;                     /* NULL until the event is recorded */
    sb_stream stream;                 /* the stream on which the event is recorded */
    _Atomic bool is_over;             /* a wait has shown that the event's work has succeeded */
    bool is_listed;                   /* the event is in the context's list */
    bool is_kept;                     /* the list holds a reference to the event until a wait */
    int32_t slot;                     /* slot of `stream`, if a caller's work may precede the
                                         event */
    uint64_t exposed_at;              /* when the caller got the pointer for that work, or
                                         SB__NOT_EXPOSED */
    uint64_t number;                  /* numbers increase along the list */
    struct sb__event *before, *after; /* neighbours in the context's list */
};

struct sb__events {
    struct sb__event **at; /* events, the oldest first */
    int32_t count, capacity;
    struct sb__event *next; /* the event of work that is about to be queued */
};

/* Creates an event if `*out` is NULL, for work that is about to be queued. */
sb_status sb__event_make(sb_context *context, struct sb__event **out, sb_error *err);
/* Records the event on `stream`. event->handle remains NULL if the backend has no events. Call
   sb__own_keep before the event's work is queued. */
sb_status sb__event_put(sb_context *context, struct sb__event *event, sb_stream stream,
                        sb_error *err);
void sb__event_release(sb_context *context, struct sb__event *event);
/* Waits for the event `handle`. Retries a failed wait once. After OUT_OF_MEMORY and FORKED the
   result of the work is unknown: see sb__is_unknown. */
sb_status sb__event_ask_twice(sb_context *context, void *handle, sb_error *err);
/* Removes the event from the context's list. Called after a wait for the event. */
void sb__event_delist(sb_context *context, struct sb__event *event);
/* Searches the list after `event` (NULL: from the start) for an event on `*stream` (NULL: on any
   stream) whose number is at most `last`. Retains and returns the first such event, or returns
   NULL. */
struct sb__event *sb__event_behind(struct sb__event_list *list, const struct sb__event *event,
                                   const sb_stream *stream, uint64_t last);
uint64_t sb__event_last_number(struct sb__event_list *list);
/* Records an event on `stream`. If the backend has no events, queued work is complete when a slot
   returns, and `*out` remains NULL. */
sb_status sb__event_record(sb_context *context, sb_stream stream, void **out, sb_error *err);
/* Does nothing if a call has waited for the last arithmetic on the library's stream. Otherwise
   records an event for that arithmetic, and keeps the event in the context's list. A backend may
   report a failure only through the first event after the failed work. Without the kept event, the
   first event could be an event for which no call ever waits. Call this function before queueing
   work that gets an event on `stream`. The first event after the work is then the work's event.
   Only for arithmetic, call this function after queueing the work. A wait for the work's event also
   waits for the kept events. */
sb_status sb__own_keep(sb_context *context, sb_stream stream, sb_error *err);
/* Waits for the kept events. Returns the first failure. If arithmetic may have failed, marks the
   device as lost before other threads can find the list empty. */
sb_status sb__own_kept(sb_context *context, sb_error *err);
void sb__own_kept_end(sb_context *context);

/* Creates events->next, the event of the next work, and makes room in events->at for two more
   events. */
sb_status sb__events_prepare(sb_context *context, struct sb__events *events, sb_error *err);
/* Records events->next after the queued work and appends it to events->at. */
sb_status sb__events_record(sb_context *context, struct sb__events *events, sb_stream stream,
                            sb_error *err);
sb_status sb__events_add(sb_context *context, struct sb__events *events, struct sb__event *event,
                         sb_error *err);
sb_status sb__events_share(sb_context *context, struct sb__events *events,
                           const struct sb__events *from, sb_error *err);
void sb__events_end(sb_context *context, struct sb__events *events);

/* --- streams (streams.c) --------------------------------------------------------

   Each stream has a slot. A set of streams is a 64-bit word, in which each slot has a bit. If there
   are many streams, several slots share a bit. A wait for the bit waits for the streams of all
   these slots. */

#define SB__ALL_STREAMS (~(uint64_t)0)

static inline uint64_t sb__slot_bit(int32_t slot) {
    const int32_t shared = 64 - SB__FIRST_NAMED;
    return (uint64_t)1 << (slot < SB__FIRST_NAMED
                               ? slot
                               : SB__FIRST_NAMED + (slot - SB__FIRST_NAMED) % shared);
}

static inline bool sb__has_default_stream(const sb_context *context) {
    return !(context->backend.flags & SB_BACKEND_NO_DEFAULT_STREAM);
}

/* Returns a set of at most one stream: the stream on which callers may use pointers that they
   fetched without a stream. This is the legacy default stream, if the device has one. Otherwise it
   is the library's stream, but the set is empty until sb_context_stream has returned the library's
   stream. */
static inline uint64_t sb__default_stream(const sb_context *context) {
    if (sb__has_default_stream(context))
        return sb__slot_bit(SB__LEGACY_SLOT);
    return atomic_load_explicit(&context->has_lent_stream, memory_order_relaxed)
               ? sb__slot_bit(SB__OWN_SLOT)
               : 0;
}

/* Returns `stream`. If `stream` is NULL and the device has no default stream, returns the library's
   stream. */
static inline sb_stream sb__stream_of_caller(const sb_context *context, sb_stream stream) {
    return stream || sb__has_default_stream(context) ? stream : context->stream;
}

/* Checks a stream and finds its slot, or assigns a new slot. */
sb_status sb__stream_slot(sb_context *context, sb_stream stream, int32_t *out, sb_error *err);
/* Records that a wait has reported a failure of work that was queued before `time` (0: before now)
   on the stream in `slot`. */
void sb__slot_failed(sb_context *context, int32_t slot, uint64_t time);
/* Returns true if a wait has reported failed work that may have been queued after `time`. The work
   was on the stream that was in `slot` at `time`. Sets `*out_over` if that stream has been
   forgotten, because the stream's work has then ended. */
bool sb__slot_has_failed(sb_context *context, int32_t slot, uint64_t time, bool *out_over);
int32_t sb__slot_of(sb_context *context, sb_stream stream);
/* Makes `stream` wait for the work queued so far on every other stream of `users`. */
sb_status sb__streams_order(sb_context *context, uint64_t users, sb_stream stream, sb_error *err);
/* Records an event on each stream of `users`, after the work queued so far. A wait for the event
   reports a failure of that work. `exposed_at` is the time at which a caller got a pointer for work
   on the streams, or SB__NOT_EXPOSED. If another wait has returned a failure since that time, a
   wait for the event fails, too. The backend might not report the failure twice. */
sb_status sb__streams_record(sb_context *context, uint64_t users, uint64_t exposed_at,
                             struct sb__events *out, sb_error *err);
/* Returns whether the work that was queued on `users` before the first check with `mark` is known
   to have ended. Never waits. If the work has not ended, `mark` stores the progress for the next
   check. */
bool sb__streams_known_over(sb_context *context, uint64_t users, struct sb__mark *mark);
/* Finds the first stream of `users`, other than `except`, whose slot is `*slot` or later. Records
   an event after the work that the stream has so far. Sets `*slot` to the stream's slot, or to -1
   if there is no such stream. Sets `*event` to NULL if the backend has no events. */
sb_status sb__streams_record_next(sb_context *context, uint64_t users, const sb_stream *except,
                                  int32_t *slot, void **event, sb_error *err);
/* Finds a stream and sets `*slot` as sb__streams_record_next does. Waits for the stream's work,
   also on a lost device, and returns whether the work has ended. */
bool sb__streams_slot_over(sb_context *context, uint64_t users, int32_t *slot);
/* If `stream` is a caller's stream, tries to record an event. Returns the stream's slot, or -1. */
int32_t sb__stream_record(sb_context *context, sb_stream stream, void **event);
/* Waits for a caller's stream and frees its slot. Returns the status of the wait. */
sb_status sb__stream_forget(sb_context *context, sb_stream stream, sb_error *err);
void sb__streams_free(sb_context *context);

/* --- waits (waits.c) --------------------------------------------------------------

   After a failure these functions may wait for all streams: the caller must hold neither
   streams.lock nor own_lock. */

/* Waits for the library's stream. If arithmetic queued there may have failed, marks the device as
   lost, because arithmetic writes in place. Only one thread waits at a time. The driver may report
   a failure to only one wait, but all waits must fail. Also returns DEVICE_LOST if the device was
   lost meanwhile. */
sb_status sb__own_wait(sb_context *context, sb_error *err);
/* Waits for an event of the stream in `slot`, and records a failure of the stream's work. */
sb_status sb__slot_wait(sb_context *context, int32_t slot, void *event, sb_error *err);
/* Waits for `stream`, whose slot is `slot`. If the wait fails with DEVICE_FAILURE, records a
   failure of the stream's work. */
sb_status sb__slot_synchronize(sb_context *context, int32_t slot, sb_stream stream, sb_error *err);
/* Waits for the work queued so far on the stream for reads. */
sb_status sb__read_wait(sb_context *context, sb_error *err);
/* Waits for the library's stream, also on a lost device. Returns whether the stream's work has
   ended. */
bool sb__own_over(sb_context *context);
/* Handles `st`, the status of a wait for an event on the library's stream. If arithmetic may have
   failed, acts as sb__device_spoiled. Otherwise returns `st`. */
sb_status sb__own_failed(sb_context *context, sb_status st, sb_error *err);
/* Both functions compute a sum, and wait for the library's stream as sb__own_wait does. The caller
   has called sb__device_prepare_arithmetic, which fails in a forked child. */
sb_status sb__own_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_error *err);
sb_status sb__own_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                        double *out, sb_error *err);
/* Called after a write in place has failed with `st`. Marks the device as lost, waits for all work
   and returns DEVICE_LOST. Rewords `err`, unless `st` is DEVICE_LOST. */
sb_status sb__device_spoiled(sb_context *context, sb_status st, sb_error *err);
/* Fails with DEVICE_FAILURE because of a failure that another call has returned. */
sb_status sb__fail_elsewhere(sb_error *err);
/* Returns whether `st`, the status of a wait for an event, leaves the result of the work unknown.
   If so, the event is kept, and a later call waits for the event again. */
static inline bool sb__is_unknown(sb_status st) {
    return st == SB_ERR_FORKED || st == SB_ERR_OUT_OF_MEMORY;
}

/* Waits for the event. Retries a failed wait once. Returns SB_OK, the failure of the event's work,
   or a status that leaves the result unknown (sb__is_unknown). */
sb_status sb__event_ask(sb_context *context, struct sb__event *event, sb_error *err);

/* Waits for all events on `stream` (NULL: on all streams) that no call has waited for. Returns the
   first failure. Called after a wait for the work of these events. */
sb_status sb__events_check(sb_context *context, const sb_stream *stream, sb_error *err);
/* Waits for the oldest `count` events and drops them. Returns the first failure. */
sb_status sb__events_wait(sb_context *context, struct sb__events *events, int32_t count,
                          sb_error *err);
/* Waits on the host for the work of all `users`. Continues after a failed wait, and returns the
   first failure. */
sb_status sb__streams_wait(sb_context *context, uint64_t users, sb_error *err);
/* Waits for the work of `users`, also on a lost device. Returns whether all of the work is known to
   have ended. After a failed wait, the work may still be running. */
bool sb__streams_over(sb_context *context, uint64_t users);

/* --- quarantine (quarantine.c) ---------------------------------------------------- */

/* Adds storage that must not be freed or reused before the work of entry->users has ended. */
void sb__quarantine_put(sb_context *context, struct sb__quarantined *entry);
/* Waits for the streams that use entries, and releases entries whose work has ended. Runs deleters,
   so the caller must hold no lock. */
void sb__quarantine_ask(sb_context *context);
bool sb__quarantine_is_empty(const sb_context *context);
/* Calls sb__quarantine_ask for every context of the process that has entries. Some of these
   contexts are retained only by quarantine.c's list, so no owner could call sb__quarantine_ask. */
void sb__quarantine_ask_all(void);
/* Called after the release of `context`, which may already be freed, so only its address is used.
   Checks the entries of all contexts, but waits only for the work of this context. */
void sb__quarantine_end(const sb_context *context);
/* Adds `bytes` to the count of bytes that a backend can never free. */
void sb__quarantine_lose(size_t bytes);
/* Returns the bytes counted by sb__quarantine_lose plus the quarantined bytes of contexts that only
   quarantine owns. */
uint64_t sb__quarantine_leaked(void);
/* Called in a forked child: forgets the parent's entries. */
void sb__quarantine_forked(void);

#endif
