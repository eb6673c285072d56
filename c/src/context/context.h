/* The context from inside: accounted host memory, guarded calls of the device,
   and the streams that its memories are used on.

   Lock order of the whole library; a thread that holds one may take those after it:

     1. an sb_mem's lock       never two of them; under it run slots of the
                               allocator and of the backend, but no deleter and
                               no parallel_for
     2. streams.lock           under it run event_record, stream_synchronize and the
                               allocator; events.lock is taken under it
        own_lock               under it run stream_synchronize, asum, sumsq, event_wait and
                               event_destroy; events.lock is taken under it
        cache.lock, events.lock, quarantine.lock, and that of the contexts that wait:
                               under them runs nothing
     3. a backend's own locks  the simulated device has one, recursive, under
                               which kernels run; they call sb_sim_address alone

   A handler of fork takes none. In a forked child another thread may have left
   any of them locked: there the lock of a memory is taken only if it is not
   held by a thread of the parent's (sb__lock), cache.lock only if it is free,
   that of the contexts that wait is made anew with their list, the others are
   never taken. */
#ifndef SB_CONTEXT_CONTEXT_H
#define SB_CONTEXT_CONTEXT_H

#include "context/account.h"
#include "port/threads.h"

#include <syncblob/backend.h>
#include <syncblob/context.h>

#include <stdatomic.h>
#include <stdbool.h>

struct sb__parallel {
    sb_parallel_for run; /* NULL: in a plain loop */
    void *user;
};

/* A test goes through every list of fewer. */
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
    sb__counter bytes;
    sb__counter used, most_used; /* buffers that are in use, and the most that were at once */
    struct sb__cached entries[SB__CACHE_ENTRIES];
};

/* The caller's streams that memories were used on, by slot. */
struct sb__streams {
    sb__mutex lock;
    struct sb__named_stream *named; /* of slot SB__FIRST_NAMED and up */
    int32_t count, capacity;        /* of `named` */
};

/* Events of queued work that nobody has waited for yet. */
struct sb__event_list {
    sb__mutex lock;
    struct sb__event *first, *last;
    uint64_t numbers; /* given so far */
    int64_t kept;     /* those that the list is a user of */
};

/* Retired storage. Made beforehand, since retiring cannot fail. */
struct sb__quarantined {
    struct sb__quarantined *next;
    uint64_t users; /* the work that has to be over, as a set of streams, not empty */
    size_t bytes;
    void (*release)(struct sb__quarantined *entry); /* runs deleters: without any lock */
};

/* How far a question that does not wait has come through the streams of a bit. */
struct sb__mark {
    void *event; /* of the stream in `slot`; NULL: none is recorded */
    int32_t slot;
};

/* Entries with the same first user. A list is its last entry. */
struct sb__waiting {
    struct sb__quarantined *entries;
    struct sb__quarantined *marked; /* entries that were here before the mark's event */
    struct sb__mark mark;
};

struct sb__quarantine {
    sb__mutex lock;
    struct sb__waiting waiting[64]; /* by bit */
    sb__counter bytes;
};

/* Bytes that a backend of the library's own was to return to its driver and could not yet. */
typedef void sb__kept_bytes(const void *device, uint64_t *out_device, uint64_t *out_pinned);

struct sb_context {
    _Atomic int64_t refs;
    uint32_t flags;
    uint64_t fork_generation; /* when the context was made */
    sb_allocator allocator;
    sb_limits limits; /* every member filled in */
    struct sb__parallel parallel;
    size_t max_cache_bytes;
    struct sb__host_cache cache;

    char device_name[32];
    bool has_device;
    sb_backend backend; /* a copy, its missing tail zero; valid if has_device */
    void *device;
    sb__kept_bytes *kept_bytes;  /* NULL: the backend reports none */
    int32_t ordinal;             /* N of "NAME:N" */
    sb_stream stream;            /* the library's own; NULL for a backend without streams */
    _Atomic int32_t device_lost; /* SB_OK or SB_ERR_DEVICE_LOST, for good */

    struct sb__account host, pinned, device_memory;
    sb__counter borrowed;
    sb__counter copies[4], copied_bytes[4]; /* by enum sb__direction */

    /* Arithmetic that was queued on the library's own stream, and how much of it is known to have
       ended well. */
    sb__counter arithmetic_queued, arithmetic_over;
    sb__counter arithmetic_kept; /* how much of it an event is kept of: see sb__own_keep */
    sb__mutex own_lock;          /* of waits for that stream: see sb__own_wait */

    struct sb__streams streams;
    struct sb__event_list events;
    struct sb__quarantine quarantine;
    /* In the list of contexts with something in quarantine: */
    sb_context *next_waiting;
    sb_context **waiting_link; /* what points to this one; NULL: it is not in the list */
};

enum sb__direction { SB__UPLOAD, SB__DOWNLOAD, SB__DEVICE_COPY, SB__HOST_COPY };

/* --- contexts (builtin.c, life.c, limits.c) ------------------------------------ */

/* Of a built-in context; no flag of the caller's has its bit. The mark and not the address is
   asked: objects of another copy of the library have a built-in context, too. */
#define SB__CONTEXT_BUILT_IN 0x80000000u

#define SB__DEFAULT_CACHE_CAP ((size_t)256 << 20)

static inline bool sb__context_is_built_in(const sb_context *context) {
    return context->flags & SB__CONTEXT_BUILT_IN;
}

/* `context`, or the built-in one for NULL. */
sb_context *sb__context(const sb_context *context);
/* What the caller passed: NULL for the built-in one. */
sb_context *sb__context_public(sb_context *context);
/* One owner less; the last one frees it. Returns how many are left. Unlike sb_context_release it
   asks no quarantine, so that nothing waits and no deleter runs. */
int64_t sb__context_drop_owner(sb_context *context);
/* The limits of a read: `limits` (may be NULL) over the context's, every member filled in. */
sb_status sb__limits_resolve(const sb_context *context, const sb_limits *limits, sb_limits *out,
                             sb_error *err);

/* --- forks (fork.c) ------------------------------------------------------------- */

/* Bumped in the child of every fork. */
extern sb__counter sb__fork_generation;

/* From now on forks are counted. */
void sb__fork_watch(void);

/* The context was made by this process and not by one that forked it. */
static inline bool sb__context_is_ours(const sb_context *context) {
    return context->fork_generation == sb__counter_read(&sb__fork_generation);
}

/* --- host memory (host_memory.c): accounted, capped ------------------------ */

/* Handles and indices of the library. `bytes` > 0; contents are zero. */
sb_status sb__object_alloc(sb_context *context, size_t bytes, void **out, sb_error *err);
void sb__object_free(sb_context *context, void *object, size_t bytes);
/* Grows an array of objects; the old one stays valid on failure. `old_bytes` may be 0. */
sb_status sb__object_grow(sb_context *context, void **object, size_t old_bytes, size_t new_bytes,
                          sb_error *err);

/* Ordinary memory as it comes from the allocator; flags SB_ALLOC_*, the same for
   sb__ordinary_free. Where there is none left, the cache is emptied for it. */
sb_status sb__ordinary_alloc(sb_context *context, size_t bytes, uint32_t flags, void **out,
                             sb_error *err);

/* What a new buffer holds. */
enum sb__contents {
    SB__OWN_BYTES, /* zeros, or bytes of this context's: the caller may see them */
    SB__ZEROS,
    SB__ANY_BYTES /* perhaps another context's: all are written before anybody sees one */
};

/* A flag to the built-in allocator alone, beside SB_ALLOC_ZEROED: SB__ANY_BYTES will do. */
#define SB__ALLOC_ANY 0x80000000u

/* A buffer of `bytes` > 0: page-locked where the device offers it and the cap
   allows, else ordinary. */
sb_status sb__host_alloc(sb_context *context, size_t bytes, enum sb__contents contents,
                         bool *out_pinned, void **out, sb_error *err);
void sb__host_free(sb_context *context, void *buffer, size_t bytes, bool pinned);
/* What such a buffer takes at most: a page-locked one has the size of its class. */
size_t sb__host_size(const sb_context *context, size_t bytes);
/* --- the cache of freed buffers (host_cache.c) ------------------------------------ */

/* False: there is none such, or it is not kept. */
bool sb__cache_take(sb_context *context, size_t bytes, bool pinned, void **out);
bool sb__cache_put(sb_context *context, void *ptr, size_t bytes, bool pinned);
/* The size that page-locked buffers of about `bytes` share, at most an eighth above it, so that one
   can be used again for another; `bytes` itself where nothing is kept. */
size_t sb__cache_class(const sb_context *context, size_t bytes);
/* Drops the oldest until there are `most` bytes. */
void sb__cache_shrink(sb_context *context, uint64_t most);

/* --- host memory released (host_release.c) ---------------------------------------- */

#define SB__BUFFER_ALIGNMENT 64

static inline void sb__ordinary_free(sb_context *context, void *ptr, size_t bytes, uint32_t flags) {
    context->allocator.free(context->allocator.user, ptr, bytes, SB__BUFFER_ALIGNMENT, flags);
    sb__account_give(&context->host, bytes);
}

/* A buffer to where it came from, without the cache; page-locked memory by its class's size. */
void sb__host_release(sb_context *context, void *buffer, size_t bytes, bool pinned);

extern const sb_allocator sb__default_allocator; /* default_allocator.c */

/* --- the device (device.c): each checks that it can be used, makes a failure
   that loses the device stick, and counts ------------------------------------- */

/* Counts a copy. */
static inline void sb__count_copy(sb_context *context, enum sb__direction direction, size_t bytes) {
    (void)sb__counter_add(&context->copies[direction], 1);
    (void)sb__counter_add(&context->copied_bytes[direction], bytes);
}

/* SB_OK, NO_DEVICE, FORKED or DEVICE_LOST. */
sb_status sb__device_check(const sb_context *context, sb_error *err);
/* For waits: SB_OK or FORKED. What was queued before the loss of the device has to end, too. */
sb_status sb__device_check_process(const sb_context *context, sb_error *err);
/* The device is lost, for good. */
void sb__device_lose(sb_context *context);
/* What the core goes on with after a slot returned a failure: DEVICE_LOST sticks, a status that no
   slot may return becomes DEVICE_FAILURE, and `err` is filled in from the slot's. */
sb_status sb__device_failed(sb_context *context, sb_status status, const sb_error *slot_err,
                            sb_error *err);
sb_status sb__device_check_stream(sb_context *context, sb_stream stream, sb_error *err);
sb_status sb__device_alloc_pinned(sb_context *context, size_t bytes, void **out, sb_error *err);
sb_status sb__device_alloc(sb_context *context, size_t bytes, sb_stream stream, void **out,
                           sb_error *err);
/* Never fails; does nothing in a forked child. */
void sb__device_free(sb_context *context, void *ptr, size_t bytes);
/* Has the backend free what it keeps for reuse, if the device can be used. */
void sb__device_trim(sb_context *context);
sb_status sb__device_zero(sb_context *context, void *dst, size_t bytes, sb_stream stream,
                          sb_error *err);
sb_status sb__device_copy(sb_context *context, enum sb__direction direction, void *dst,
                          const void *src, size_t bytes, sb_stream stream, sb_error *err);
sb_status sb__device_check_pointer(sb_context *context, const void *ptr, size_t bytes,
                                   sb_error *err);
/* Before work on the library's own stream that uses memory of which somebody has a plain pointer:
   it comes after what is queued on default streams. */
sb_status sb__device_after_default(sb_context *context, sb_error *err);
/* The same as far as captures let it: one that forbids the order forbids nothing else. */
sb_status sb__device_try_after_default(sb_context *context, sb_error *err);
/* Waits for the stream; nothing to do for a backend without streams. This and sb__event_wait ask a
   lost device too: work that was queued before the loss may go on. */
sb_status sb__device_synchronize(sb_context *context, sb_stream stream, sb_error *err);
/* The slot alone: sb__event_record is for all else. */
sb_status sb__device_record(sb_context *context, sb_stream stream, void **out, sb_error *err);
sb_status sb__event_wait(sb_context *context, void *event, sb_error *err);
/* `*out_done`: the work before the event has ended; never waits. The backend has this slot. */
sb_status sb__event_query(sb_context *context, void *event, int32_t *out_done, sb_error *err);
void sb__event_destroy(sb_context *context, void *event);
sb_status sb__stream_wait(sb_context *context, sb_stream stream, void *event, sb_error *err);
/* Arithmetic where the table has it; UNSUPPORTED otherwise. */
sb_status sb__device_prepare_arithmetic(sb_context *context, sb_error *err);
sb_status sb__device_axpy(sb_context *context, int32_t dtype, int64_t count, double alpha,
                          const void *x, void *y, sb_stream stream, sb_error *err);
sb_status sb__device_scale(sb_context *context, int32_t dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err);
/* The slots alone, whose sums wait for the library's own stream: see sb__own_asum. */
sb_status sb__device_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                          double *out, sb_error *err);
sb_status sb__device_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                           double *out, sb_error *err);
/* Whether `st`, what a wait for the library's own stream came to, may be of arithmetic there; then
   the device is lost. */
bool sb__own_may_have_failed(const sb_context *context, sb_status st);
void sb__own_lose(sb_context *context, sb_status st);

/* --- the device of a name (backends.c) -------------------------------------------- */

/* Opens `device`, "NAME:N". INVALID_ARGUMENT, UNSUPPORTED, ABI_MISMATCH, NO_DEVICE, and what the
   backend returns. */
sb_status sb__device_open(sb_context *context, const sb_context_options *options,
                          const char *device, sb_error *err);

/* --- events of queued work that bytes come of (events.c) ------------------------- */

struct sb__event {
    _Atomic int64_t refs;
    void *handle;                     /* NULL: not recorded yet */
    sb_stream stream;                 /* that it was recorded on */
    _Atomic bool is_over;             /* a wait has shown that its work has succeeded */
    bool is_listed;                   /* in the context's list */
    bool is_kept;                     /* which is a user of it until it has been asked */
    uint64_t number;                  /* rising in the list */
    struct sb__event *before, *after; /* there */
};

struct sb__events {
    struct sb__event **at; /* the oldest first */
    int32_t count, capacity;
    struct sb__event *next; /* for work that is about to be queued */
};

/* Makes one where `*out` is NULL, for work that is about to be queued. */
sb_status sb__event_make(sb_context *context, struct sb__event **out, sb_error *err);
/* Records it behind the work; its handle stays NULL for a backend without events. */
sb_status sb__event_put(sb_context *context, struct sb__event *event, sb_stream stream,
                        sb_error *err);
void sb__event_release(sb_context *context, struct sb__event *event);
/* Waits for the event `handle`, twice where the first wait fails. */
sb_status sb__event_ask_twice(sb_context *context, void *handle, sb_error *err);
/* Takes it out of the context's list: it has been asked. */
void sb__event_delist(sb_context *context, struct sb__event *event);
/* The first in the list behind `event`, or of all, of `stream` or for NULL of every one, up to the
   number `last`; retained. */
struct sb__event *sb__event_behind(struct sb__event_list *list, const struct sb__event *event,
                                   const sb_stream *stream, uint64_t last);
uint64_t sb__event_last_number(struct sb__event_list *list);
/* `*out` stays NULL for a backend without events: its work is done already. */
sb_status sb__event_record(sb_context *context, sb_stream stream, void **out, sb_error *err);
/* Before an event is recorded on `stream`, which takes up the failure of the work before it and may
   be dropped unasked: the context keeps an event of arithmetic on its own stream that nobody has
   waited for. */
sb_status sb__own_keep(sb_context *context, sb_stream stream, sb_error *err);
/* Asks those that are kept: the first failure. If that may be arithmetic's, the device is lost
   before another thread finds nothing to ask. */
sb_status sb__own_kept(sb_context *context, sb_error *err);
void sb__own_kept_end(sb_context *context);

/* Room for the event of the next work, and for one that is added before. */
sb_status sb__events_prepare(sb_context *context, struct sb__events *events, sb_error *err);
/* Records it, behind the work. */
sb_status sb__events_record(sb_context *context, struct sb__events *events, sb_stream stream,
                            sb_error *err);
sb_status sb__events_add(sb_context *context, struct sb__events *events, struct sb__event *event,
                         sb_error *err);
sb_status sb__events_share(sb_context *context, struct sb__events *events,
                           const struct sb__events *from, sb_error *err);
void sb__events_end(sb_context *context, struct sb__events *events);

/* --- streams (streams.c) --------------------------------------------------------

   Each stream has a slot; a set of streams is one word, in which streams share bits once there
   are many. A wait for a bit is one for all streams that share it. */

enum {
    SB__LEGACY_SLOT, /* NULL, the legacy default stream */
    SB__OWN_SLOT,    /* the library's own */
    SB__FIRST_NAMED
};

#define SB__ALL_STREAMS (~(uint64_t)0)

static inline uint64_t sb__slot_bit(int32_t slot) {
    const int32_t shared = 64 - SB__FIRST_NAMED;
    return (uint64_t)1 << (slot < SB__FIRST_NAMED
                               ? slot
                               : SB__FIRST_NAMED + (slot - SB__FIRST_NAMED) % shared);
}

/* The slot of a stream, a new one if need be, after check_stream. */
sb_status sb__stream_slot(sb_context *context, sb_stream stream, int32_t *out, sb_error *err);
/* Makes `stream` wait for the work queued so far on every stream of `users` but itself. */
sb_status sb__streams_order(sb_context *context, uint64_t users, sb_stream stream, sb_error *err);
/* An event of the same work on each of them, to be asked for its failure. */
sb_status sb__streams_record(sb_context *context, uint64_t users, struct sb__events *out,
                             sb_error *err);
/* Whether the work that was queued when `mark` was empty is known to be over. Waits for nothing. If
 * not, `mark` may be left for the next time. */
bool sb__streams_known_over(sb_context *context, uint64_t users, struct sb__mark *mark);
/* An event of the work queued so far on the next stream of `users` but `except` from `*slot` on;
   `*slot` becomes its slot, or -1. `*event` stays NULL for a backend without events. */
sb_status sb__streams_record_next(sb_context *context, uint64_t users, const sb_stream *except,
                                  int32_t *slot, void **event, sb_error *err);
/* Waits for that work, on a lost device too: whether it is over. */
bool sb__streams_slot_over(sb_context *context, uint64_t users, int32_t *slot);
/* An event of a stream that the caller named, if it can be had; the slot, or -1. */
int32_t sb__stream_record(sb_context *context, sb_stream stream, void **event);
/* Waits for a stream that the caller named and empties its slot; what the wait returned. */
sb_status sb__stream_forget(sb_context *context, sb_stream stream, sb_error *err);
void sb__streams_free(sb_context *context);

/* --- waits (waits.c) --------------------------------------------------------------

   All streams may be waited for where one has failed: no lock of streams is held. */

/* Waits for the library's own stream. A failure that may be one of arithmetic queued there
   loses the device, since arithmetic writes in place. Its waits come one after
   another: a failure may be reported to one of them alone, and the others have to know of it.
   DEVICE_LOST also of a device that was lost meanwhile. */
sb_status sb__own_wait(sb_context *context, sb_error *err);
/* Waits for it, on a lost device too, and returns whether its work is over. */
bool sb__own_over(sb_context *context);
/* What a failure `st` of work on that stream, which an event has reported, comes to. */
sb_status sb__own_failed(sb_context *context, sb_status st, sb_error *err);
/* The sums wait for the library's own stream, as sb__own_wait does. */
sb_status sb__own_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_error *err);
sb_status sb__own_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                        double *out, sb_error *err);
/* A write in place failed before its end: the device is lost. Returns DEVICE_LOST, `err` reworded.
 */
sb_status sb__device_spoiled(sb_context *context, sb_error *err);
/* Waits for the event, twice where the first wait fails: SB_OK, or the failure of its work. */
sb_status sb__event_ask(sb_context *context, struct sb__event *event, sb_error *err);

/* Asks all that nobody has had an answer of yet, those of `stream`, or for NULL of every stream;
   the first failure. Their work is over. */
sb_status sb__events_check(sb_context *context, const sb_stream *stream, sb_error *err);
/* Waits for the oldest `count` and drops them; the first failure. */
sb_status sb__events_wait(sb_context *context, struct sb__events *events, int32_t count,
                          sb_error *err);
/* The host waits for the same work, for all of it also where a wait fails; the first failure. */
sb_status sb__streams_wait(sb_context *context, uint64_t users, sb_error *err);
/* Waits for the same work, on a lost device too, and returns whether it is over: false if that is
   not known of a stream, since waits may fail without having waited. */
bool sb__streams_over(sb_context *context, uint64_t users);

/* --- quarantine (quarantine.c) ---------------------------------------------------- */

/* Takes what must not be freed or used again before the work of entry->users is over. */
void sb__quarantine_put(sb_context *context, struct sb__quarantined *entry);
/* Releases what is over by now. Waits; no lock may be held, since deleters run. */
void sb__quarantine_ask(sb_context *context);
bool sb__quarantine_is_empty(const sb_context *context);
/* Asks all contexts of the process that wait: the owner that released one is not there to ask. */
void sb__quarantine_ask_all(void);
/* The same at the end of a context, of which the address alone is used. Waits for its own work, for
   that of other contexts not. */
void sb__quarantine_end(const sb_context *context);
/* Memory that a backend can never return to its driver. */
void sb__quarantine_lose(size_t bytes);
/* That, and what is in quarantine of contexts that nobody else owns. */
uint64_t sb__quarantine_leaked(void);
/* In the child of a fork: what waits there is the parent's. */
void sb__quarantine_forked(void);

#endif
