/* A table that wraps the backend's table and counts live objects. Only one thread may use the
   table. A slot with a planted failure fails in one of two ways: the slot fails at once and does
   nothing; or the slot succeeds, but only half of its queued work is done, and waits for the work
   return DEVICE_FAILURE (backend.h). */
#ifndef SB_CONFORMANCE_RIG_H
#define SB_CONFORMANCE_RIG_H

#include "kit.h"

/* The slots that can fail. */
#define SB__RIG_SLOTS(X)                                                                           \
    X(open)                                                                                        \
    X(alloc)                                                                                       \
    X(zero)                                                                                        \
    X(upload)                                                                                      \
    X(download)                                                                                    \
    X(copy)                                                                                        \
    X(alloc_pinned)                                                                                \
    X(check_pointer)                                                                               \
    X(check_stream)                                                                                \
    X(stream_synchronize)                                                                          \
    X(event_record)                                                                                \
    X(stream_wait)                                                                                 \
    X(event_wait)                                                                                  \
    X(prepare_arithmetic)                                                                          \
    X(axpy)                                                                                        \
    X(scale)                                                                                       \
    X(asum)                                                                                        \
    X(sumsq)                                                                                       \
    X(after_default)                                                                               \
    X(event_query)

enum sb__rig_slot {
    SB__RIG_ANY, /* the next call of any slot except open */
#define SB__RIG_SLOT(slot) SB__RIG_##slot,
    SB__RIG_SLOTS(SB__RIG_SLOT)
#undef SB__RIG_SLOT
        SB__RIG_SLOT_COUNT
};

enum { SB__RIG_MAX_FAILURES = 64 };

struct sb__rig_event {
    void *inner;
    bool has_failed;
};

/* A failure of queued work that no wait has returned yet. */
struct sb__rig_failure {
    sb_stream stream;
    bool is_covered;                   /* an event was recorded after the work */
    const struct sb__rig_event *event; /* the first event after the work; NULL before it is recorded
                                          and after it is destroyed */
};

struct sb__rig {
    sb_backend inner;
    sb_backend table;
    void *device;                            /* the device that `inner` opened */
    sb_stream own;                           /* the device's own stream; set by own_stream */
    int64_t blocks, pinned, events, devices; /* numbers of live objects */

    enum sb__rig_slot slot; /* the slot of the planted failure */
    int64_t countdown;      /* 1: the next call fails; 0: no failure is planted */
    sb_status status;
    bool is_late; /* the queued work fails instead of the call, if the slot queues work */

    int64_t fired;   /* failures so far */
    int64_t late;    /* failures of queued work */
    int64_t harmful; /* failures after which bytes of the device may be lost */
    bool is_lost;
    struct sb__rig_failure failures[SB__RIG_MAX_FAILURES];
    int32_t failure_count;
};

void sb__rig_make(struct sb__rig *rig, const sb_backend *inner);

#endif
