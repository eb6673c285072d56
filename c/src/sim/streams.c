/* The queues of the streams. A stream runs its operations in order, at times that the schedule
   decides. Events order streams with each other. The legacy default stream and the library's stream
   are blocking. An operation on one of these two streams runs after all earlier operations on the
   other stream. The owner of a failed operation is the thread that queued the operation. The owner
   receives the failure from the owner's next wait for the stream, or from the owner's next event.
   Before that, one wait of another thread also returns the failure. Further waits and events of
   other threads do not return the failure, because the owner may have ended and may never receive
   it. A failed event reports its failure on every wait. If another stream waits for a failed event,
   the work queued after the wait runs and does not fail. */
#include "sim/device.h"

#include "base/draw.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- the set of streams ------------------------------------------------------------ */

/* Returns a handle. Handles are consecutive numbers, unique in the process, that are not
   addresses. */
static sb_stream new_handle(void) {
    static _Atomic uintptr_t next = (uintptr_t)0x51b0 << (sizeof(uintptr_t) * CHAR_BIT - 16);
    return (sb_stream)atomic_fetch_add(&next, 16);
}

void sb__sim_streams_open(struct sb__sim *sim) {
    sim->own.handle = new_handle();
    sim->legacy.next = &sim->own;
    sim->legacy.ordered_with = &sim->own;
    sim->own.ordered_with = &sim->legacy;
}

struct sb__sim_stream *sb__sim_stream_find(struct sb__sim *sim, sb_stream handle) {
    struct sb__sim_stream *stream = &sim->legacy;
    while (stream && stream->handle != handle)
        stream = stream->next;
    return stream;
}

struct sb__sim_stream *sb__sim_stream_add(struct sb__sim *sim) {
    struct sb__sim_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->handle = new_handle();
    stream->next = sim->own.next;
    sim->own.next = stream;
    return stream;
}

/* --- running ------------------------------------------------------------------------ */

void sb__sim_event_release(struct sb__sim_event *event) {
    if (--event->refs == 0)
        free(event);
}

static void fail_event(struct sb__sim_event *event, const char *reason) {
    if (!event->failed)
        memcpy(event->reason, reason, sizeof event->reason);
    event->failed = true;
}

static void complete_event(struct sb__sim_stream *stream, const struct sb__sim_op *record) {
    struct sb__sim_event *event = record->work.event;
    if (record->doomed)
        fail_event(event, record->reason);
    for (struct sb__sim_op *failure = stream->failures; failure; failure = failure->next) {
        const bool own = failure->thread == record->thread;
        if (failure->captured || (!own && failure->is_told))
            continue;
        fail_event(event, failure->reason);
        failure->captured = own;
    }
    event->done = true;
    sb__sim_event_release(event);
}

static void free_block(struct sb__sim *sim, struct sb__sim_block *block) {
    sb__sim_block_remove(sim, block);
    if (block->ready) {
        sb__sim_block_free(block);
        return;
    }
    block->orphan = true; /* the block's `reach` operation is still queued */
    sb__sim_lose(sim, "memory at %p was freed on another stream before it was allocated",
                 (void *)block->address);
}

static void reach_block(struct sb__sim_block *block) {
    block->ready = true;
    if (block->orphan)
        sb__sim_block_free(block);
}

/* Runs `op` if it belongs to an event or a block, even on a lost device. Returns false if `op` is
   other work, or a wait for an event that a fault makes fail. */
static bool run_bookkeeping(struct sb__sim *sim, struct sb__sim_stream *stream,
                            struct sb__sim_op *op) {
    switch (op->work.op) {
    case SB__SIM_FREE:
        free_block(sim, op->work.block);
        return true;
    case SB__SIM_READY:
        reach_block(op->work.block);
        return true;
    case SB_SIM_EVENT_RECORD:
        complete_event(stream, op);
        return true;
    case SB_SIM_STREAM_WAIT:
        sb__sim_event_release(op->work.event);
        return !op->doomed;
    default:
        return false;
    }
}

/* Runs an operation. If the operation fails, returns false and writes the reason to `op`. */
static bool run_work(struct sb__sim *sim, struct sb__sim_op *op) {
    const struct sb__sim_work *work = &op->work;
    if (sim->lost)
        return true; /* every later call returns DEVICE_LOST */
    if (work->op == SB__SIM_LAUNCH) {
        work->kernel(work->user);
        return true;
    }
    if (!op->doomed && sb__sim_is_valid(sim, work, true, op->reason)) {
        sb__sim_perform(sim, work);
        return true;
    }
    sb__sim_spoil(sim, work);
    return false;
}

/* Runs the first operation of a stream. */
static void step(struct sb__sim *sim, struct sb__sim_stream *stream) {
    struct sb__sim_op *op = stream->head;
    bool embedded = op->embedded;
    stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    stream->done = op->ticket;
    if (run_bookkeeping(sim, stream, op) || run_work(sim, op)) {
        if (!embedded) /* an embedded operation may have been freed with its block */
            free(op);
        return;
    }
    op->next = stream->failures;
    stream->failures = op;
}

/* Returns the stream whose work must run before the first operation of `stream`, or NULL. */
static struct sb__sim_stream *blocker(struct sb__sim *sim, const struct sb__sim_stream *stream) {
    const struct sb__sim_op *op = stream->head;
    if (op->after && op->after->done < op->after_ticket)
        return op->after;
    if (op->work.op == SB_SIM_STREAM_WAIT && !op->work.event->done)
        return sb__sim_stream_find(sim, op->work.event->stream);
    return NULL;
}

/* Fills the targets of operations with garbage when the work before the operations has ended. Does
   nothing on a lost device, which no longer writes host memory. */
static void scribble_heads(struct sb__sim *sim) {
    if (sim->lost)
        return;
    for (struct sb__sim_stream *s = &sim->legacy; s; s = s->next) {
        if (!s->head || !s->head->scribbles || blocker(sim, s))
            continue;
        sb__sim_spoil(sim, &s->head->work);
        s->head->scribbles = false;
    }
}

/* Runs a stream to `ticket`. Terminates, because the work that blocks an operation was queued
   before the operation. */
void sb__sim_run(struct sb__sim *sim, struct sb__sim_stream *stream, uint64_t ticket) {
    while (stream->done < ticket) {
        struct sb__sim_stream *first = stream;
        for (struct sb__sim_stream *b = first; b; b = blocker(sim, first))
            first = b;
        step(sim, first);
        scribble_heads(sim);
    }
}

/* --- schedules ---------------------------------------------------------------------- */

static struct sb__sim_stream *draw_stream(struct sb__sim *sim) {
    uint64_t count = 0;
    for (struct sb__sim_stream *s = &sim->legacy; s; s = s->next)
        count++;
    uint64_t index = sb__draw(&sim->random) % count;
    struct sb__sim_stream *stream = &sim->legacy;
    while (index--)
        stream = stream->next;
    return stream;
}

/* Runs random operations. */
static void drift(struct sb__sim *sim) {
    while (sb__draw(&sim->random) % 4 != 0) {
        struct sb__sim_stream *stream = draw_stream(sim);
        if (!stream->head || stream->head->waits || blocker(sim, stream))
            continue;
        step(sim, stream);
        scribble_heads(sim);
    }
}

static bool touches(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return a && (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Returns whether queued work may still use the target's old bytes. */
static bool target_is_in_use(const struct sb__sim *sim, const struct sb__sim_work *work) {
    for (const struct sb__sim_stream *s = &sim->legacy; s; s = s->next)
        for (const struct sb__sim_op *op = s->head; op; op = op->next)
            if (op->work.op == SB__SIM_LAUNCH ||
                touches(op->work.dst, op->work.bytes, work->dst, work->bytes) ||
                touches(op->work.src, op->work.bytes, work->dst, work->bytes))
                return true;
    return false;
}

static void append(struct sb__sim *sim, struct sb__sim_stream *stream, struct sb__sim_op *op) {
    op->next = NULL;
    op->ticket = ++stream->queued;
    op->thread = sb__thread_number();
    op->waits = sim->schedule == SB_SIM_LAZY;
    op->after = stream->ordered_with;
    op->after_ticket = op->after ? op->after->queued : 0;
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
}

void sb__sim_enqueue(struct sb__sim *sim, struct sb__sim_stream *stream, struct sb__sim_op *op) {
    if (sb__sim_replaces_target(op->work.op) && sim->schedule != SB_SIM_EAGER) {
        op->scribbles = target_is_in_use(sim, &op->work);
        if (!op->scribbles)
            sb__sim_spoil(sim, &op->work);
    }
    append(sim, stream, op);
    scribble_heads(sim);
    if (sim->schedule == SB_SIM_EAGER)
        sb__sim_run(sim, stream, stream->queued);
    else if (sim->schedule == SB_SIM_RANDOM)
        drift(sim);
}

/* --- failures ------------------------------------------------------------------------ */

bool sb__sim_take_failure(struct sb__sim_stream *stream, uint64_t ticket, bool by_event,
                          char reason[SB__SIM_REASON]) {
    bool found = false;
    struct sb__sim_op **link = &stream->failures;
    while (*link) {
        struct sb__sim_op *failure = *link;
        bool covered = failure->ticket <= ticket;
        bool own = failure->thread == sb__thread_number();
        bool news = own || failure->captured || !failure->is_told;
        if (covered && news) {
            memcpy(reason, failure->reason, SB__SIM_REASON);
            failure->is_told = true;
            found = true;
        }
        /* A wait for an event discards only captured failures. */
        if (covered && (failure->captured || (own && !by_event))) {
            *link = failure->next;
            free(failure);
        } else {
            link = &failure->next;
        }
    }
    return found;
}

/* --- the end ------------------------------------------------------------------------ */

static void forget_failures(struct sb__sim_stream *stream) {
    while (stream->failures) {
        struct sb__sim_op *failure = stream->failures;
        stream->failures = failure->next;
        free(failure);
    }
}

void sb__sim_drain(struct sb__sim *sim) {
    for (struct sb__sim_stream *s = &sim->legacy; s; s = s->next)
        sb__sim_run(sim, s, s->queued);
}

void sb__sim_stream_remove(struct sb__sim *sim, struct sb__sim_stream *stream) {
    struct sb__sim_stream *before = &sim->legacy;
    sb__sim_run(sim, stream, stream->queued);
    forget_failures(stream);
    while (before->next != stream)
        before = before->next;
    before->next = stream->next;
    free(stream);
}

void sb__sim_streams_close(struct sb__sim *sim) {
    sb__sim_drain(sim);
    while (sim->own.next)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the call removes the stream from the list */
        sb__sim_stream_remove(sim, sim->own.next);
    forget_failures(&sim->own);
    forget_failures(&sim->legacy);
}
