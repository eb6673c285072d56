/* The structs of the simulated device. One recursive lock protects a device: the backend's slots,
   the functions of sim_device.h, and the queued work run under this lock. The device calls no
   function of context/, memory/ or blob/. The file memory.c contains address ranges, the table of
   allocations and address translation. Operations run in work.c. The file streams.c contains
   queues, events and schedules. Counters and armed faults are in faults.c. The slots are in
   table.c, and the extension table is in control.c. */
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

/* Operations in addition to SB_SIM_*. These operations cannot fail and are not counted. */
enum { SB__SIM_LAUNCH = SB_SIM_OP_COUNT, SB__SIM_READY, SB__SIM_FREE };

struct sb__sim;
struct sb__sim_block;
struct sb__sim_stream;

/* An event completes when its stream reaches the event's ticket. */
struct sb__sim_event {
    struct sb__sim *sim;
    sb_stream stream; /* a handle: the stream may be destroyed after the event completes */
    uint64_t ticket;
    int32_t refs; /* references from the handle, the queued record and each queued wait */
    bool done, failed;
    char reason[SB__SIM_REASON]; /* the reason of the failure */
};

/* An operation, with the arguments of the slot that queued it. */
struct sb__sim_work {
    int32_t op;      /* SB_SIM_* or SB__SIM_* */
    void *dst;       /* the target: y of axpy, x of scale */
    const void *src; /* the source: x of axpy, asum and sumsq */
    size_t bytes;    /* the size of dst, and of src */
    int32_t dtype;
    int64_t count;
    double alpha;
    double *result;
    void (*kernel)(void *user);
    void *user;
    struct sb__sim_event *event; /* an owned reference to the event of a record or wait */
    struct sb__sim_block *block; /* the block of SB__SIM_READY and SB__SIM_FREE */
};

/* A queued operation. A failed operation remains with its stream until a wait reports the
   failure. */
struct sb__sim_op {
    struct sb__sim_op *next;
    struct sb__sim_work work;
    uint64_t ticket;              /* position in its stream, from 1 */
    struct sb__sim_stream *after; /* [nullable] this stream must first run to `after_ticket` */
    uint64_t after_ticket;
    int64_t thread; /* the thread that queued the operation */
    bool embedded;  /* the operation is a member of a block and is freed with the block */
    bool waits;     /* queued under SB_SIM_LAZY: runs only if a wait needs it */
    bool doomed;    /* will fail when it runs */
    bool scribbles; /* the target must be filled with garbage when earlier work has ended */
    bool captured;  /* an event of the same thread reports the failure */
    bool is_told;   /* the failure was reported to some thread */
    char reason[SB__SIM_REASON];
};

struct sb__sim_stream {
    struct sb__sim_stream *next;
    sb_stream handle; /* never dereferenced or reused; NULL for the legacy default stream */
    struct sb__sim_stream *ordered_with; /* the other blocking stream, or NULL if not blocking */
    struct sb__sim_op *head, *tail;
    uint64_t queued, done;       /* the last assigned ticket, and the last executed ticket */
    struct sb__sim_op *failures; /* failed operations whose failure must still be reported */
};

/* An allocation. */
struct sb__sim_block {
    char *address; /* the device pointer, which the host cannot access */
    size_t bytes;
    void *backing;   /* host memory with the block's bytes */
    bool user_owned; /* allocated by sb_sim_device::alloc */
    bool ready;      /* the stream has reached the allocation */
    bool orphan;     /* freed before it was ready */
    struct sb__sim_op reach, release;
};

/* A reserved range of addresses. Blocks are allocated in rotation, so that addresses are reused as
   late as possible. */
struct sb__sim_segment {
    char *base;
    size_t size, next;
};

struct sb__sim {
    sb__recursive_mutex lock; /* held while kernels run and call sb_sim_address */

    struct sb__sim_segment segments[SB__SIM_MAX_SEGMENTS];
    int32_t segment_count;
    struct sb__sim_block **blocks; /* sorted by address */
    size_t block_count, block_capacity;
    intptr_t rubbish; /* the argument `kept` of sb__pages_filled */
    bool is_coherent; /* device pointers are also host addresses of the bytes */

    struct sb__sim_stream legacy, own; /* the list of all streams begins with `legacy` */
    int32_t schedule;
    uint64_t random;

    int64_t calls[SB_SIM_OP_COUNT];
    sb_sim_fault faults[SB__SIM_MAX_FAULTS];
    bool lost;
    char lost_reason[SB__SIM_REASON];
};

extern const sb_sim_device sb__sim_controls; /* control.c */

/* --- memory.c ------------------------------------------------------------------- */

/* Allocates host memory filled with garbage. Returns NULL on failure. */
void *sb__sim_backing_alloc(struct sb__sim *sim, size_t bytes);
void sb__sim_backing_free(void *backing, size_t bytes);
void sb__sim_scribble(void *host, size_t bytes);

/* Adds a block to the table. Returns NULL if out of memory. */
struct sb__sim_block *sb__sim_block_create(struct sb__sim *sim, size_t bytes);
/* Removes a block from the table. Its address becomes invalid. */
void sb__sim_block_remove(struct sb__sim *sim, struct sb__sim_block *block);
void sb__sim_block_free(struct sb__sim_block *block);
/* Returns the block that contains [ptr, ptr + bytes), or NULL. */
struct sb__sim_block *sb__sim_block_find(const struct sb__sim *sim, const void *ptr, size_t bytes);
/* Returns the host memory that stores the bytes of [ptr, ptr + bytes), or NULL. */
void *sb__sim_translate(const struct sb__sim *sim, const void *ptr, size_t bytes);
/* Returns whether the address is in one of the device's ranges, even if it is not allocated. */
bool sb__sim_is_device_address(const struct sb__sim *sim, const void *ptr);
void sb__sim_memory_close(struct sb__sim *sim);

/* --- work.c ------------------------------------------------------------------------ */

const char *sb__sim_op_name(int32_t op);
/* Returns whether the operation overwrites its whole target. */
bool sb__sim_replaces_target(int32_t op);
/* Returns whether the operation can run. If not, writes the cause to `reason`. If `at_turn`, the
   operation is about to run, so its allocations must be ready. */
bool sb__sim_is_valid(const struct sb__sim *sim, const struct sb__sim_work *work, bool at_turn,
                      char reason[SB__SIM_REASON]);
/* Executes valid copies, fills and arithmetic. */
void sb__sim_perform(const struct sb__sim *sim, const struct sb__sim_work *work);
/* Fills the target with garbage: all of it if the operation replaces every byte, else the first
   half. */
void sb__sim_spoil(const struct sb__sim *sim, const struct sb__sim_work *work);

/* --- streams.c ---------------------------------------------------------------------- */

void sb__sim_streams_open(struct sb__sim *sim);
/* Runs all queued work, or drops it on a lost device. */
void sb__sim_drain(struct sb__sim *sim);
void sb__sim_streams_close(struct sb__sim *sim);
struct sb__sim_stream *sb__sim_stream_find(struct sb__sim *sim, sb_stream handle);
struct sb__sim_stream *sb__sim_stream_add(struct sb__sim *sim);
void sb__sim_stream_remove(struct sb__sim *sim, struct sb__sim_stream *stream);
/* Appends `op` and runs the work that the schedule requires. */
void sb__sim_enqueue(struct sb__sim *sim, struct sb__sim_stream *stream, struct sb__sim_op *op);
/* Runs the stream up to a ticket, and the work of other streams on which that work depends. */
void sb__sim_run(struct sb__sim *sim, struct sb__sim_stream *stream, uint64_t ticket);
void sb__sim_event_release(struct sb__sim_event *event);
/* Returns whether work up to `ticket` failed, and writes the reason. Then discards captured
   failures and, unless `by_event`, failures of work that the calling thread queued. */
bool sb__sim_take_failure(struct sb__sim_stream *stream, uint64_t ticket, bool by_event,
                          char reason[SB__SIM_REASON]);

/* --- faults.c ----------------------------------------------------------------------- */

/* Counts the call. Returns DEVICE_LOST on a lost device, the status of the armed fault that is due,
   or SB_OK. Sets `*breaks` if the mode of the fault is not SB_SIM_FAIL_NOW. If the call sets
   `*breaks` and returns SB_OK, the caller queues work that will fail. If the call sets `*breaks`
   and returns DEVICE_LOST, the caller fills the target with garbage. `breaks` is NULL for a call
   that queues nothing. */
sb_status sb__sim_enter(struct sb__sim *sim, int32_t op, bool *breaks, sb_error *err);
sb_status sb__sim_check_lost(const struct sb__sim *sim, sb_error *err);
void sb__sim_lose(struct sb__sim *sim, const char *format, ...) SB__PRINTF(2, 3);
sb_status sb__sim_fail_device(sb_error *err, const char *reason);
sb_status sb__sim_fail_memory(sb_error *err, size_t bytes);
sb_status sb__sim_fail_stream(sb_error *err, sb_stream stream);

#endif
