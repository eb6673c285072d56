/* sb_mem from inside. */
#ifndef SB_MEMORY_MEM_H
#define SB_MEMORY_MEM_H

#include "memory/retired.h"
#include "memory/state.h"

#include <syncblob/mem.h>

/* The one atomic word: the head in the low bits, and what the fast paths ask.
   A side is READY when its bytes may be read without waiting for anything,
   the device's only if a pointer to it was exposed before. It is WRITABLE when they may be
   written where they are; PENDING while a transfer into it is queued. Stored with release after
   everything it speaks of. */
enum {
    SB__HEAD_MASK = 7,
    SB__CPU_READY = 1 << 3,
    SB__GPU_READY = 1 << 4,
    SB__CPU_WRITABLE = 1 << 5,
    SB__GPU_WRITABLE = 1 << 6,
    SB__CPU_PENDING = 1 << 7,
    SB__GPU_PENDING = 1 << 8,
    SB__CPU_NOT_IN_CHILD = 1 << 9, /* the host side may not be mapped in a forked child */
    SB__CPU_KIND = 10,             /* where SB_STORAGE_* of the sides begin, three bits each */
    SB__GPU_KIND = 13,
    SB__KIND_MASK = 7,
    SB__READ_AT_HOST = 1 << 16,   /* what sb__is_read_at_host asks, as one bit */
    SB__WRITTEN_AT_HOST = 1 << 17 /* what sb__is_written_at_host asks, as one bit */
};

struct sb_mem {
    _Atomic uint32_t word;
    _Atomic bool is_leased; /* a side's storage has, or had, users outside the memory */
    _Atomic int64_t refs;
    sb_context *context;
    size_t bytes;
    struct sb__storage side[2];

    sb__mutex lock;              /* guards what follows, and every change of the above: sb__lock */
    _Atomic uint64_t locked_in;  /* the process, by sb__fork_generation, that last took the lock */
    int32_t own_work;            /* SB__OWN_*: of the library's own stream on the device side */
    int32_t writer;              /* slot of the stream that last wrote the device side, or -1 */
    int32_t pending;             /* side that a queued transfer or zero fill writes, or -1 */
    int32_t pending_slot;        /* of the stream of that transfer */
    int32_t fallback;            /* the head when it fails */
    _Atomic int32_t open_writes; /* that callers have begun and not ended */
    struct sb__event *event;     /* of it; NULL, or made beforehand, where nothing is pending */
    struct sb__events made_by; /* of queued work that the device's bytes come of, and that may fail
                                  yet: none where the host has bytes that are not pending */
    sb_mem *next_retired;      /* of those without owners, in a list of sb__retired */
};

/* What the library's own stream may still be doing to a side, since nobody has waited. */
enum { SB__OWN_NONE, SB__OWN_READS, SB__OWN_WRITES };

/* What a call's device work is for. That decides on which stream it goes, and who waits for it. */
enum sb__target_kind {
    SB__FOR_POINTER,   /* The caller gets a pointer and names no stream: the work goes on the
                          library's own stream, and is waited for before the call returns. */
    SB__FOR_OWN,       /* Work of the library's follows on its own stream, and is waited for. */
    SB__FOR_OWN_QUEUE, /* The same, but the thread that needs the bytes waits for it. */
    SB__FOR_STREAM     /* The caller's stream: everything is queued there. */
};

struct sb__target {
    enum sb__target_kind kind;
    int32_t slot;
    sb_stream stream;
    const struct sb__write *write; /* of arithmetic, which may read another memory; NULL: none */
};

static inline bool sb__is_queued(const struct sb__target *target) {
    return target->kind >= SB__FOR_OWN_QUEUE;
}

static inline bool sb__is_for_own(const struct sb__target *target) {
    return target->kind == SB__FOR_OWN || target->kind == SB__FOR_OWN_QUEUE;
}

/* Orders nothing: for the rest of the memory a caller takes the lock or asks the word. */
static inline int32_t sb__head(const sb_mem *mem) {
    return (int32_t)(atomic_load_explicit(&mem->word, memory_order_relaxed) & SB__HEAD_MASK);
}

/* The host side's bytes, if there are any, are there for this process. `word` is a memory's. */
static inline bool sb__host_is_mapped(const sb_mem *mem, uint32_t word) {
    return !(word & SB__CPU_NOT_IN_CHILD) || sb__context_is_ours(mem->context);
}

/* Whether both sides' bytes are where elements of a size may be: lent ones need not be. FORKED as
   of sb__lock. */
sb_status sb__check_alignment(sb_mem *mem, size_t element_size, sb_error *err);

/* What a side needs before its storage is touched: the device, or host bytes of this process. */
sb_status sb__side_check(const sb_mem *mem, int32_t side, sb_error *err);

/* The fast paths: the host's bytes are current and may be read where they are; the host is the
   ready, writable head and nothing is pending, so that there is nothing to do before a write. */
static inline bool sb__is_read_in_place(const sb_mem *mem) {
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_acquire);
    return word & SB__CPU_READY && sb__host_is_mapped(mem, word);
}

static inline bool sb__is_written_in_place(const sb_mem *mem, uint32_t head,
                                           uint32_t ready_writable) {
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_acquire);
    uint32_t mask = SB__HEAD_MASK | SB__CPU_PENDING | SB__GPU_PENDING | ready_writable;
    return (word & mask) == (head | ready_writable) && sb__host_is_mapped(mem, word);
}

static inline bool sb__is_host_written_in_place(const sb_mem *mem) {
    return sb__is_written_in_place(mem, SB_HEAD_AT_CPU, SB__CPU_READY | SB__CPU_WRITABLE);
}

/* The same of the host's bytes that any process has, which is asked faster. */
static inline bool sb__is_read_at_host(const sb_mem *mem) {
    return atomic_load_explicit(&mem->word, memory_order_acquire) & SB__READ_AT_HOST;
}

static inline bool sb__is_written_at_host(const sb_mem *mem) {
    return atomic_load_explicit(&mem->word, memory_order_acquire) & SB__WRITTEN_AT_HOST;
}

/* The common case of calls that read at the head: the host is the head, and may be read at once.
   Elsewhere the long way comes to the same, also for bytes that a forked child may not have. */
static inline bool sb__is_at_host(const sb_mem *mem) {
    const uint32_t mask = SB__HEAD_MASK | SB__CPU_NOT_IN_CHILD | SB__CPU_READY;
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_acquire);
    return (word & mask) == (SB_HEAD_AT_CPU | SB__CPU_READY);
}

static inline void *sb__host_bytes(const sb_mem *mem) {
    return mem->side[SB_SIDE_CPU].ptr;
}

/* One owner less; true if that was the last, which destroys it. */
bool sb__mem_drop_owner(sb_mem *mem);
/* Waits and runs deleters. */
void sb__mem_destroy(sb_mem *mem);

/* Takes the lock. FORKED in a child whose parent's thread held it at the fork: nobody ever gives it
   back there. */
sb_status sb__lock(sb_mem *mem, sb_error *err);
void sb__unlock(sb_mem *mem);

/* --- transfer.c; the caller holds the lock ------------------------------------ */

/* Publishes `head` with the bits that follow from the rest of the memory. */
void sb__publish(sb_mem *mem, int32_t head);

/* Of any kind but SB__FOR_STREAM, for which sb__stream_target is. */
struct sb__target sb__own_target(const sb_mem *mem, enum sb__target_kind kind);
sb_status sb__stream_target(sb_mem *mem, sb_stream stream, struct sb__target *out, sb_error *err);
/* As sb_mem_cpu and sb_mem_gpu, and as those for writing. These and the next two leave
   the storage that they replace in `retired`, whose end may take the bytes away again. */
sb_status sb__read_side(const sb_mem *mem, int32_t side, const void **out,
                        struct sb__retired *retired, sb_error *err);
sb_status sb__write_side(sb_mem *mem, int32_t side, void **out, struct sb__retired *retired,
                         sb_error *err);
/* The bytes on the device for work that the library queues on its own stream, and waits for. */
sb_status sb__read_for_own(const sb_mem *mem, const void **out, struct sb__retired *retired,
                           sb_error *err);
/* The same for arithmetic that is queued for a target. sb__note_read follows when it is queued. */
sb_status sb__read_for(const sb_mem *mem, const struct sb__target *target, const void **out,
                       struct sb__retired *retired, sb_error *err);
void sb__note_read(const sb_mem *mem, const struct sb__target *target);

/* Waits for a pending transfer. A failed one moves the head to the side it came from; one that
   may still go on leaves both sides' storage in use. One that succeeded has
   copied what queued work made: where that failed, the memory is LOST. */
sb_status sb__settle(sb_mem *mem, sb_error *err);

/* The streams that the device side's bytes were written on last, as a set. */
uint64_t sb__writers(const sb_mem *mem);
/* Notes what these have queued so far, as what the bytes come of. */
sb_status sb__note_writers(sb_mem *mem, uint64_t writers, sb_error *err);
/* Waits for what the device side's bytes come of, the work of `writers` so far included. If it
   failed, the bytes are gone: the host's become the head if they are current, else the memory is
   LOST. */
sb_status sb__await_writers(sb_mem *mem, uint64_t writers, sb_error *err);
/* The same for the oldest of what was noted, where that is much. */
sb_status sb__await_oldest(sb_mem *mem, sb_error *err);
/* The device side's bytes are of no more use. */
void sb__forget_writers(sb_mem *mem);

/* A stream that the caller named need not be ordered with the legacy default stream, on which the
   users of plain pointers work: that, where there may be such users, as a set of streams. */
uint64_t sb__default_users(const sb_mem *mem, const struct sb__target *target);
/* The same before the library's own work, which is not queued for the caller, on `storage` of the
   device: it comes after work on default streams with which its stream is not ordered. */
sb_status sb__after_default(sb_mem *mem, const struct sb__storage *storage,
                            const struct sb__target *target, sb_error *err);

/* Makes `target`'s work on the device side wait for all earlier users, or the host if not queued.
 */
sb_status sb__after_users(sb_mem *mem, const struct sb__target *target, sb_error *err);

/* Storage that may be written on a side: what is there, or, put into `fresh` with `*replaces` set,
   new storage where that is read-only or a copy may go on in it. Empty sides are filled in place.
   What is new on the device is there for work on the stream of `target` alone. */
sb_status sb__writable_storage(sb_mem *mem, int32_t side, enum sb__contents contents,
                               const struct sb__target *target, struct sb__storage *fresh,
                               bool *replaces, sb_error *err);

/* Waits for the library's own stream, so that any other may use what it has allocated. */
sb_status sb__reach_allocation(sb_mem *mem, sb_error *err);

/* Zeros all of a side's storage. */
sb_status sb__zero(sb_mem *mem, int32_t side, const struct sb__target *target, sb_error *err);

/* Copies to `dst` on `side` from the other side's storage. Queued: a transfer is pending then. */
sb_status sb__transfer(sb_mem *mem, int32_t side, struct sb__storage *dst,
                       const struct sb__target *target, sb_error *err);

/* --- without the lock ----------------------------------------------------------- */

/* As sb_mem_set_cpu and sb_mem_set_gpu of what `lease` keeps, from `ptr` on: the side takes the
   caller's place among the holders, if that succeeds. */
sb_status sb__mem_join(sb_mem *mem, int32_t side, void *ptr, uint32_t flags,
                       struct sb__lease *lease, sb_error *err);
/* Host storage that was lent with `deleter`, which will not run: `*out` is its `user`. The memory
   is released next. INVALID_ARGUMENT where that is not so, or others use it, and as sb__settle. */
sb_status sb__mem_reclaim(sb_mem *mem, sb_deleter deleter, void **out, sb_error *err);

sb_status sb__fail_lost(sb_error *err);
sb_status sb__fail_overlap(sb_error *err);

/* Whether two pieces of memory have a byte in common. */
static inline bool sb__overlap_of(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return (uintptr_t)a - (uintptr_t)b < b_bytes || (uintptr_t)b - (uintptr_t)a < a_bytes;
}

/* The same of two of one size. */
static inline bool sb__overlap(const void *a, const void *b, size_t bytes) {
    return sb__overlap_of(a, bytes, b, bytes);
}

#endif
