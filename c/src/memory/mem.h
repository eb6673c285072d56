/* Defines sb_mem. The head of a memory is the side with the current bytes: host, device or both. */
#ifndef SB_MEMORY_MEM_H
#define SB_MEMORY_MEM_H

#include "memory/retired.h"
#include "memory/state.h"

#include <syncblob/mem.h>

/* The atomic state word holds the head in its low bits, and the conditions of the fast paths in the
   other bits. A side is READY if its bytes may be read without a wait. The device side is READY
   only if, in addition, a caller has received or lent a pointer to its bytes. A side is WRITABLE if
   its bytes may be written in place, and PENDING while a transfer into the side is queued. The
   library stores the word with release order, after it has stored the members that the word
   describes. */
enum {
    SB__HEAD_MASK = 7,
    SB__CPU_READY = 1 << 3,
    SB__GPU_READY = 1 << 4,
    SB__CPU_WRITABLE = 1 << 5,
    SB__GPU_WRITABLE = 1 << 6,
    SB__CPU_PENDING = 1 << 7,
    SB__GPU_PENDING = 1 << 8,
    SB__CPU_NOT_IN_CHILD = 1 << 9, /* a forked child may be unable to access the host side */
    SB__CPU_KIND = 10,             /* lowest of three bits with the host side's SB_STORAGE_* */
    SB__GPU_KIND = 13,
    SB__KIND_MASK = 7,
    SB__READ_AT_HOST = 1 << 16,   /* the result of sb__is_read_at_host */
    SB__WRITTEN_AT_HOST = 1 << 17 /* the result of sb__is_written_at_host */
};

struct sb_mem {
    _Atomic uint32_t word;
    _Atomic bool is_leased; /* a side's storage has or had a lease: see lease.h */
    _Atomic int64_t refs;
    sb_context *context;
    size_t bytes;
    struct sb__storage side[2];

    sb__mutex lock;              /* guards the members below, and changes to the members above */
    _Atomic uint64_t locked_in;  /* fork generation of the process that last acquired the lock */
    int32_t own_work;            /* SB__OWN_*: work of the library's stream on the device side */
    int32_t writer;              /* slot of the stream that last wrote the device side, or -1 */
    uint64_t exposed_at;         /* value of events.clock when the caller received a pointer for
                                    writes on `writer`'s stream, or SB__NOT_EXPOSED */
    int32_t pending;             /* side that a queued transfer or zero fill writes, or -1 */
    int32_t pending_slot;        /* the slot of the pending transfer's stream */
    int32_t fallback;            /* the new head if the pending transfer fails */
    _Atomic int32_t open_writes; /* number of sb_write objects that have not ended */
    struct sb__event *event;     /* the event of the pending or next transfer, or NULL */
    struct sb__events made_by; /* events of queued work that writes the device's bytes and may still
                                  fail. Empty if the host's bytes are current and no transfer is
                                  pending. */
    sb_mem *next_retired;      /* the next memory in the list sb__retired.mems */
};

/* Work on the device side that the library's stream may not have finished: reads, or writes. */
enum { SB__OWN_NONE, SB__OWN_READS, SB__OWN_WRITES };

/* Each purpose of device work determines the work's stream and the call that waits for the work. */
enum sb__target_kind {
    SB__FOR_POINTER,   /* The caller receives a pointer without passing a stream: the work is queued
                          on the library's stream, and the call waits for it. */
    SB__FOR_OWN,       /* The library queues further work on its stream, and waits for that work. */
    SB__FOR_OWN_QUEUE, /* As SB__FOR_OWN, but only a later call that needs the bytes waits. */
    SB__FOR_STREAM     /* All work is queued on the caller's stream. */
};

struct sb__target {
    enum sb__target_kind kind;
    int32_t slot;
    sb_stream stream;
    struct sb__write *write; /* the write of the arithmetic's result; NULL for other work */
};

static inline bool sb__is_queued(const struct sb__target *target) {
    return target->kind >= SB__FOR_OWN_QUEUE;
}

static inline bool sb__is_for_own(const struct sb__target *target) {
    return target->kind == SB__FOR_OWN || target->kind == SB__FOR_OWN_QUEUE;
}

/* Loads the head with relaxed order. A caller that then reads other members must hold the lock, or
   load the word with acquire order. */
static inline int32_t sb__head(const sb_mem *mem) {
    return (int32_t)(atomic_load_explicit(&mem->word, memory_order_relaxed) & SB__HEAD_MASK);
}

/* Returns false in a forked child that may be unable to access the host side. `word` is the state
   word of `mem`. */
static inline bool sb__host_is_mapped(const sb_mem *mem, uint32_t word) {
    return !(word & SB__CPU_NOT_IN_CHILD) || sb__context_is_ours(mem->context);
}

/* Returns whether the device's storage serves both sides. If so, a transfer only waits and copies
   nothing, and no queued work uses the bytes while the head is AT_CPU. */
static inline bool sb__is_one_storage(const sb_mem *mem) {
    return mem->side[SB_SIDE_CPU].is_alias;
}

/* Checks that the bytes of both sides are aligned for elements of `element_size`. Bytes that a
   caller has lent may be unaligned. Fails with INVALID_ARGUMENT, or with FORKED as sb__lock
   does. */
sb_status sb__check_alignment(sb_mem *mem, size_t element_size, sb_error *err);

/* Checks that this process can access `side`. For the device, checks that the device is usable. */
sb_status sb__side_check(const sb_mem *mem, int32_t side, sb_error *err);

/* A read takes the fast path if the host's bytes are current and accessible. A write takes the fast
   path if the written side has the head and is READY and WRITABLE, and no side is PENDING. */
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

/* Each of the next two functions tests one bit of the state word. The bit is set only if a forked
   child can access the host's bytes. */
static inline bool sb__is_read_at_host(const sb_mem *mem) {
    return atomic_load_explicit(&mem->word, memory_order_acquire) & SB__READ_AT_HOST;
}

static inline bool sb__is_written_at_host(const sb_mem *mem) {
    return atomic_load_explicit(&mem->word, memory_order_acquire) & SB__WRITTEN_AT_HOST;
}

/* Returns whether only the host's bytes are current, and can be read without a wait, even by a
   forked child. */
static inline bool sb__is_at_host(const sb_mem *mem) {
    const uint32_t mask = SB__HEAD_MASK | SB__CPU_NOT_IN_CHILD | SB__CPU_READY;
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_acquire);
    return (word & mask) == (SB_HEAD_AT_CPU | SB__CPU_READY);
}

static inline void *sb__host_bytes(const sb_mem *mem) {
    return mem->side[SB_SIDE_CPU].ptr;
}

/* Removes an owner. Returns true if that was the last owner. The caller must then destroy the
   memory. */
bool sb__mem_drop_owner(sb_mem *mem);
/* Destroys a memory that has no owners. Waits for queued work and runs deleters. */
void sb__mem_destroy(sb_mem *mem);

/* Acquires the lock. Fails with FORKED in a forked child if a thread of the parent held the lock at
   the fork. In the child nothing would release that lock. */
sb_status sb__lock(sb_mem *mem, sb_error *err);
void sb__unlock(sb_mem *mem);

/* --- transfer.c: the caller holds the lock ------------------------------------ */

/* Stores the state word, which consists of `head` and of bits that follow from other members. */
void sb__publish(sb_mem *mem, int32_t head);

/* Returns a target of `kind`, which is not SB__FOR_STREAM, on the library's stream. */
struct sb__target sb__own_target(const sb_mem *mem, enum sb__target_kind kind);
sb_status sb__stream_target(sb_mem *mem, sb_stream stream, struct sb__target *out, sb_error *err);
/* sb__read_side works as sb_mem_cpu or sb_mem_gpu. sb__write_side works as sb_mem_mutable_cpu or
   sb_mem_mutable_gpu. Functions with a parameter `retired` add the storage that they replace to
   `retired`. */
sb_status sb__read_side(const sb_mem *mem, int32_t side, const void **out,
                        struct sb__retired *retired, sb_error *err);
sb_status sb__write_side(sb_mem *mem, int32_t side, void **out, struct sb__retired *retired,
                         sb_error *err);
/* Makes the bytes current on the device, for work that the library queues on its stream and waits
   for. */
sb_status sb__read_for_own(const sb_mem *mem, const void **out, struct sb__retired *retired,
                           sb_error *err);
/* As sb__read_for_own, for arithmetic on the stream of `target`. The caller calls sb__note_read
   after it has queued the arithmetic. */
sb_status sb__read_for(const sb_mem *mem, const struct sb__target *target, const void **out,
                       struct sb__retired *retired, sb_error *err);
void sb__note_read(const sb_mem *mem, const struct sb__target *target);

/* Waits for a pending transfer. If the transfer has failed, the head moves back to the source's
   side. If the failed transfer may still be running, both sides' storage counts as in use. If a
   successful transfer has copied the result of failed work, the memory becomes LOST. */
sb_status sb__settle(sb_mem *mem, sb_error *err);
/* Calls sb__settle for a memory that is being destroyed. If the transfer may still be running after
   sb__settle, both sides' storage counts as in use. */
void sb__end_transfer(sb_mem *mem);

/* Returns the set of streams that last wrote the device side's bytes. */
uint64_t sb__writers(const sb_mem *mem);
/* Returns the writers except the target's stream. The target's bit remains set if the writer is
   another stream that shares the bit. */
uint64_t sb__other_writers(const sb_mem *mem, const struct sb__target *target);
/* Fails as sb__await_writers does if another wait has reported a failure of work that may have
   written the bytes. A later wait might not report that failure again. */
sb_status sb__check_writer(sb_mem *mem, sb_error *err);
/* Records an event on each stream of `writers`, because the bytes depend on the work that is queued
   on these streams. Also fails in the same cases as sb__check_writer. */
sb_status sb__note_writers(sb_mem *mem, uint64_t writers, sb_error *err);
/* Waits for the work that the device side's bytes depend on, including the work queued so far on
   `writers`. If that work failed, the device's bytes are lost. The head moves to the host if the
   host's bytes are current. Otherwise the memory is LOST. */
sb_status sb__await_writers(sb_mem *mem, uint64_t writers, sb_error *err);
/* If made_by has many events, waits for the oldest of them. */
sb_status sb__await_oldest(sb_mem *mem, sb_error *err);
/* Forgets the writers. Called when the device side's bytes are no longer needed. */
void sb__forget_writers(sb_mem *mem);

/* A caller that fetched a pointer without a stream may use the pointer on a default stream. Returns
   sb__default_stream if `target`'s work must wait for that use, else 0. */
uint64_t sb__default_users(const sb_mem *mem, const struct sb__target *target);
/* Makes the library's work on the device storage `storage` wait for earlier work on default
   streams. Does nothing if the library's stream is already ordered after that work. */
sb_status sb__after_default(sb_mem *mem, const struct sb__storage *storage,
                            const struct sb__target *target, sb_error *err);

/* Makes `target`'s work wait for all streams that have used the device side. If `target` is not
   queued, the host waits instead. */
sb_status sb__after_users(sb_mem *mem, const struct sb__target *target, sb_error *err);

/* Called before the host writes. If both sides have the same address, waits for the device work
   that uses the bytes, even on a lost device. */
sb_status sb__await_users(sb_mem *mem, sb_error *err);

/* Provides writable storage on a side. If the existing storage is read-only, or a copy may still be
   using it, allocates new storage in `fresh` and sets `*replaces`. If the side has no storage, adds
   storage. On a host-coherent device, new host storage is device storage, which both sides share,
   unless the device is out of memory. New device storage may be used only on `target`'s stream. */
sb_status sb__writable_storage(sb_mem *mem, int32_t side, enum sb__contents contents,
                               const struct sb__target *target, struct sb__storage *fresh,
                               bool *replaces, sb_error *err);

/* Waits until other streams may use memory that was allocated on the library's stream. */
sb_status sb__reach_allocation(sb_mem *mem, sb_error *err);

sb_status sb__zero(sb_mem *mem, int32_t side, const struct sb__target *target, sb_error *err);

/* Copies the other side's bytes to `dst`, which is storage for `side`. If `target` is queued, the
   transfer is pending afterwards. */
sb_status sb__transfer(sb_mem *mem, int32_t side, struct sb__storage *dst,
                       const struct sb__target *target, sb_error *err);

/* --- without the lock ----------------------------------------------------------- */

/* As sb_mem_set_cpu or sb_mem_set_gpu, sets the storage of `side` of a new memory to the bytes at
   `ptr`. The bytes belong to the storage of `lease`. On success the side replaces the caller as a
   holder of the lease. */
sb_status sb__mem_join(sb_mem *mem, int32_t side, void *ptr, uint32_t flags,
                       struct sb__lease *lease, sb_error *err);
/* Returns host storage to the caller that has lent the storage with `deleter`. Sets `*out` to the
   `user` that was passed with `deleter`. `deleter` will not run. The caller then releases the
   memory. Fails with INVALID_ARGUMENT if the storage was not lent with `deleter`, has other users,
   or does not contain the current bytes. Also fails with INVALID_ARGUMENT if a copy may still use
   the storage. Also fails as sb__settle does. */
sb_status sb__mem_reclaim(sb_mem *mem, sb_deleter deleter, void **out, sb_error *err);

sb_status sb__fail_lost(sb_error *err);
sb_status sb__fail_overlap(sb_error *err);

static inline bool sb__overlap_of(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return (uintptr_t)a - (uintptr_t)b < b_bytes || (uintptr_t)b - (uintptr_t)a < a_bytes;
}

static inline bool sb__overlap(const void *a, const void *b, size_t bytes) {
    return sb__overlap_of(a, bytes, b, bytes);
}

#endif
