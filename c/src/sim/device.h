/* The simulated device from inside. One recursive lock guards all of a
   device: slots, the functions of sim_device.h, and the work itself run under it. Nothing
   of the core is called from here but sb_error_fill.

     memory.c   address ranges, the table of allocations, translation
     work.c     what an operation does when its turn comes
     streams.c  queues, events, schedules
     faults.c   counters and armed faults
     table.c    the slots
     control.c  the table of sim_device.h, by which others steer it */
#ifndef SB_SIM_DEVICE_H
#define SB_SIM_DEVICE_H

#include "port/text.h"
#include "port/threads.h"

#include <syncblob/backend.h>
#include <syncblob/sim_device.h>

#include <stdbool.h>

#define SB__SIM_MAX_SEGMENTS 64
#define SB__SIM_MAX_FAULTS   16
#define SB__SIM_REASON       112

/* Work that has no SB_SIM_* number, since it can neither fail nor be counted. */
enum { SB__SIM_LAUNCH = SB_SIM_OP_COUNT, SB__SIM_READY, SB__SIM_FREE };

struct sb__sim;
struct sb__sim_block;
struct sb__sim_stream;

/* Completes on its stream's turn; its ticket says when. */
struct sb__sim_event {
    struct sb__sim *sim;
    sb_stream stream; /* a handle: the stream itself may be gone once the event is done */
    uint64_t ticket;
    int32_t refs; /* the holder of the handle, the queued record, the queued waits */
    bool done, failed;
    char reason[SB__SIM_REASON]; /* if failed */
};

/* One operation: the arguments of a slot. */
struct sb__sim_work {
    int32_t op;      /* SB_SIM_* or SB__SIM_* */
    void *dst;       /* what is written: y of axpy, x of scale */
    const void *src; /* what is read: x of axpy, asum and sumsq */
    size_t bytes;    /* of dst and src each */
    int32_t dtype;
    int64_t count;
    double alpha;
    double *result;
    void (*kernel)(void *user);
    void *user;
    struct sb__sim_event *event; /* of record and wait: one reference */
    struct sb__sim_block *block; /* of ready and free */
};

/* A queued operation; a failed one stays with its stream until it was told. */
struct sb__sim_op {
    struct sb__sim_op *next;
    struct sb__sim_work work;
    uint64_t ticket;              /* place in its stream, from 1 */
    struct sb__sim_stream *after; /* [nullable] runs after this stream's `after_ticket` */
    uint64_t after_ticket;
    sb__thread thread; /* who queued it */
    bool embedded;     /* part of a block, not freed by itself */
    bool waits;        /* queued in LAZY: runs only for somebody who waits */
    bool doomed;       /* fails when its turn comes */
    bool scribbles;    /* its target is to be scribbled as soon as the work before it is over */
    bool captured;     /* failed, and an event of its own thread tells so */
    bool is_told;      /* somebody knows of the failure, though perhaps not its own thread */
    char reason[SB__SIM_REASON];
};

struct sb__sim_stream {
    struct sb__sim_stream *next;
    sb_stream handle; /* never dereferenced, never used twice; NULL: the legacy default stream */
    struct sb__sim_stream *ordered_with; /* the other blocking stream; NULL: non-blocking */
    struct sb__sim_op *head, *tail;
    uint64_t queued, done;       /* tickets given, tickets run */
    struct sb__sim_op *failures; /* failed operations that were not told yet */
};

/* An allocation. */
struct sb__sim_block {
    char *address; /* what the library sees; nothing can be accessed there */
    size_t bytes;
    void *backing;   /* where the bytes are */
    bool user_owned; /* from sb_sim_device::alloc */
    bool ready;      /* its stream has reached the allocation */
    bool orphan;     /* given back before it was ready */
    struct sb__sim_op reach, release;
};

/* A range of addresses that nobody can access; blocks are cut from it in turn, so that an address
   is used again as late as possible. */
struct sb__sim_segment {
    char *base;
    size_t size, next;
};

struct sb__sim {
    sb__recursive_mutex lock; /* a kernel that runs under it asks for addresses */

    struct sb__sim_segment segments[SB__SIM_MAX_SEGMENTS];
    int32_t segment_count;
    struct sb__sim_block **blocks; /* by address */
    size_t block_count, block_capacity;
    intptr_t rubbish; /* for sb__pages_filled */

    struct sb__sim_stream legacy, own; /* `legacy` heads the list of all */
    int32_t schedule;
    uint64_t random;

    int64_t calls[SB_SIM_OP_COUNT];
    sb_sim_fault faults[SB__SIM_MAX_FAULTS];
    bool lost;
    char lost_reason[SB__SIM_REASON];
};

extern const sb_sim_device sb__sim_controls; /* control.c */

/* --- memory.c ------------------------------------------------------------------- */

/* Rubbish-filled host memory; NULL on failure. */
void *sb__sim_backing_alloc(struct sb__sim *sim, size_t bytes);
void sb__sim_backing_free(void *backing, size_t bytes);
/* Bytes that nobody wrote. */
void sb__sim_scribble(void *host, size_t bytes);

/* An entry of the table, not ready yet; NULL when memory ran out. */
struct sb__sim_block *sb__sim_block_create(struct sb__sim *sim, size_t bytes);
/* Takes it out of the table; nothing can be accessed through it any more. */
void sb__sim_block_remove(struct sb__sim *sim, struct sb__sim_block *block);
/* Gives the memory of a removed block back. */
void sb__sim_block_free(struct sb__sim_block *block);
/* The block that holds [ptr, ptr + bytes), or NULL. */
struct sb__sim_block *sb__sim_block_find(const struct sb__sim *sim, const void *ptr, size_t bytes);
/* Host memory behind [ptr, ptr + bytes), or NULL. */
void *sb__sim_translate(const struct sb__sim *sim, const void *ptr, size_t bytes);
/* The address is one of the device's, allocated or not. */
bool sb__sim_is_device_address(const struct sb__sim *sim, const void *ptr);
/* Gives everything back. */
void sb__sim_memory_close(struct sb__sim *sim);

/* --- work.c ------------------------------------------------------------------------ */

const char *sb__sim_op_name(int32_t op);
/* The target holds nothing of use until the operation has run. */
bool sb__sim_replaces_target(int32_t op);
/* True, or false with why the operation cannot run in `reason`. `at_turn`: its allocations must be
   ready. */
bool sb__sim_is_valid(const struct sb__sim *sim, const struct sb__sim_work *work, bool at_turn,
                      char reason[SB__SIM_REASON]);
/* Does valid copies, fills and arithmetic. */
void sb__sim_perform(const struct sb__sim *sim, const struct sb__sim_work *work);
/* Leaves in the target what a failure on the way would. */
void sb__sim_spoil(const struct sb__sim *sim, const struct sb__sim_work *work);

/* --- streams.c ---------------------------------------------------------------------- */

void sb__sim_streams_open(struct sb__sim *sim);
/* Runs, or drops on a lost device, all that is queued. */
void sb__sim_drain(struct sb__sim *sim);
void sb__sim_streams_close(struct sb__sim *sim);
struct sb__sim_stream *sb__sim_stream_find(struct sb__sim *sim, sb_stream handle);
struct sb__sim_stream *sb__sim_stream_add(struct sb__sim *sim);
void sb__sim_stream_remove(struct sb__sim *sim, struct sb__sim_stream *stream);
/* Appends `op` and lets the schedule decide what runs now. */
void sb__sim_enqueue(struct sb__sim *sim, struct sb__sim_stream *stream, struct sb__sim_op *op);
/* Runs the stream up to a ticket, and what that depends on. */
void sb__sim_run(struct sb__sim *sim, struct sb__sim_stream *stream, uint64_t ticket);
void sb__sim_event_release(struct sb__sim_event *event);
/* Whether work up to `ticket` failed, and why. Forgotten is then what an event of its own thread
   has told of, and, unless it was an event that told, what the asking thread queued. */
bool sb__sim_take_failure(struct sb__sim_stream *stream, uint64_t ticket, bool by_event,
                          char reason[SB__SIM_REASON]);

/* --- faults.c ----------------------------------------------------------------------- */

/* Counts the call and says how it goes: SB_OK, or the failure to return. `*breaks` (NULL for a
   call that queues nothing) is set when the fault hits the work itself: it is to be queued and to
   fail (SB_OK), or the device was lost over it (DEVICE_LOST). */
sb_status sb__sim_enter(struct sb__sim *sim, int32_t op, bool *breaks, sb_error *err);
/* DEVICE_LOST if the device is lost. */
sb_status sb__sim_check_lost(const struct sb__sim *sim, sb_error *err);
void sb__sim_lose(struct sb__sim *sim, const char *format, ...) SB__PRINTF(2, 3);
sb_status sb__sim_fail_device(sb_error *err, const char *reason);
sb_status sb__sim_fail_memory(sb_error *err, size_t bytes);
sb_status sb__sim_fail_stream(sb_error *err, sb_stream stream);

#endif
