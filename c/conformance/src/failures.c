/* Claims about failures that the backend reports. The function options.fail_copy makes a copy
   fail. */
#include "kit.h"

#include <string.h>

enum { BYTES = 4001 };

/* The source and the target of a copy on the device, and the target's old bytes. */
struct copies {
    struct sb__kit *kit;
    sb_stream stream; /* the stream on which a failing copy was last queued; at first own_stream */
    char *from, *to;
    unsigned char old[BYTES];
};

static struct copies copies_make(struct sb__kit *kit, bool queued) {
    struct copies c = {.kit = kit, .stream = kit->stream};
    unsigned char bytes[BYTES];
    if (!kit->options.fail_copy)
        sb__kit_skip(kit, "the options have no function that makes a copy fail");
    if (queued)
        (void)sb__kit_has_streams(kit);
    sb__kit_fill(bytes, BYTES, 1);
    sb__kit_fill(c.old, BYTES, 2);
    c.from = sb__kit_alloc(kit, BYTES);
    c.to = sb__kit_alloc(kit, BYTES);
    sb__kit_upload(kit, c.from, bytes, BYTES);
    sb__kit_upload(kit, c.to, c.old, BYTES);
    sb__kit_wait(kit, kit->stream);
    return c;
}

/* Queues a copy that fails later. From then on the device may be lost. */
static void queue_failure(struct copies *c, sb_stream stream) {
    if (c->kit->wait_lost)
        sb__kit_lose(c->kit);
    if (sb__kit_goes(c->kit))
        c->kit->options.fail_copy(c->kit->options.user, c->kit->device, true);
    SB__KIT_CALL(c->kit, copy, c->to, c->from, (size_t)BYTES, stream);
    c->stream = stream;
    c->kit->may_be_lost = true;
}

/* If the device is lost, waits for its streams, since queued work may still run. */
static void end_lost_work(const struct copies *c) {
    const sb_backend *table = &c->kit->table;
    sb_error err;
    if (!c->kit->is_lost || !table->stream_synchronize)
        return;
    (void)table->stream_synchronize(c->kit->device, c->stream, &err);
    (void)table->stream_synchronize(c->kit->device, c->kit->stream, &err);
}

static void copies_free(struct copies *c) {
    end_lost_work(c);
    sb__kit_free(c->kit, c->to, BYTES);
    sb__kit_free(c->kit, c->from, BYTES);
}

static void destroy_event(struct sb__kit *kit, void *event) {
    if (event)
        kit->table.event_destroy(kit->device, event);
}

/* Calls a slot that waits for failed work. The slot must return the failure. */
#define EXPECT_FAILURE(kit, slot, ...)                                                             \
    do {                                                                                           \
        sb_error failure_;                                                                         \
        if (sb__kit_goes(kit)) {                                                                   \
            failure_ = (sb_error){.code = SB_OK};                                                  \
            expect_failure(kit, #slot, (kit)->table.slot((kit)->device, __VA_ARGS__, &failure_),   \
                           &failure_);                                                             \
        }                                                                                          \
    } while (0)

static void expect_failure(struct sb__kit *kit, const char *slot, sb_status found,
                           const sb_error *err) {
    if (found == SB_OK)
        sb__kit_fail(kit, "%s returned SB_OK, although the work before it had failed", slot);
    else if (found != SB_ERR_DEVICE_FAILURE && found != SB_ERR_DEVICE_LOST)
        sb__kit_fail(kit, "%s returned %s for failed work, not DEVICE_FAILURE or DEVICE_LOST", slot,
                     sb_status_name(found));
    else
        sb__kit_expect(kit, slot, found, found, err);
    kit->wait_lost = kit->wait_lost || found == SB_ERR_DEVICE_LOST;
}

static bool is_status_of_slot(sb_status st) {
    return st == SB_ERR_NO_DEVICE || st == SB_ERR_OUT_OF_MEMORY || st == SB_ERR_DEVICE_FAILURE ||
           st == SB_ERR_DEVICE_LOST || st == SB_ERR_UNSUPPORTED || st == SB_ERR_WRONG_DEVICE ||
           st == SB_ERR_FORKED;
}

static void failed_copies_do_nothing(struct sb__kit *kit) {
    struct copies c = copies_make(kit, false);
    sb_error err = {.code = SB_OK};
    if (sb__kit_goes(kit)) {
        kit->options.fail_copy(kit->options.user, kit->device, false);
        const sb_status st = kit->table.copy(kit->device, c.to, c.from, BYTES, kit->stream, &err);
        if (!is_status_of_slot(st))
            sb__kit_fail(kit, "copy returned %s, which a failed slot must not return",
                         sb_status_name(st));
        else
            sb__kit_expect(kit, "copy", st, st, &err);
        if (st == SB_ERR_DEVICE_LOST)
            sb__kit_lose(kit);
    }
    sb__kit_compare(kit, c.to, c.old, BYTES, "the target of a copy that failed at once");
    copies_free(&c);
}

struct waiter {
    struct sb__kit *kit;
    void *event;
};

static void wait_on_thread(void *arg) {
    const struct waiter *waiter = arg;
    EXPECT_FAILURE(waiter->kit, event_wait, waiter->event);
}

static void stream_reports_failures(struct sb__kit *kit, sb_stream stream) {
    struct copies c = copies_make(kit, true);
    struct waiter waiter = {kit, NULL};
    for (int failures = 0; failures < 2; failures++) { /* a stream may fail more than once */
        queue_failure(&c, stream);
        SB__KIT_CALL(kit, event_record, stream, &waiter.event);
        EXPECT_FAILURE(kit, event_wait, waiter.event);
        EXPECT_FAILURE(kit, event_wait, waiter.event); /* every wait must report the failure */
        sb__kit_on_thread(kit, wait_on_thread, &waiter);
        EXPECT_FAILURE(kit, event_wait, waiter.event);
        destroy_event(kit, waiter.event);
        waiter.event = NULL;
    }
    copies_free(&c);
}

static void own_stream_reports_failures(struct sb__kit *kit) {
    stream_reports_failures(kit, kit->stream);
}

static void other_streams_report_failures(struct sb__kit *kit) {
    sb_stream stream = sb__kit_stream_create(kit);
    stream_reports_failures(kit, stream);
    sb__kit_stream_destroy(kit, stream);
}

/* Returns the device's read_stream, or NULL if the claim has ended. */
static sb_stream read_stream(struct sb__kit *kit) {
    if (!kit->table.read_stream)
        sb__kit_skip(kit, "read_stream is NULL");
    return sb__kit_has_streams(kit) ? kit->table.read_stream(kit->device) : NULL;
}

static void read_stream_reports_failures(struct sb__kit *kit) {
    stream_reports_failures(kit, read_stream(kit));
}

static void stream_synchronize_reports(struct sb__kit *kit, sb_stream stream) {
    struct copies c = copies_make(kit, true);
    queue_failure(&c, stream);
    EXPECT_FAILURE(kit, stream_synchronize, stream);
    copies_free(&c);
}

static void synchronize_of_others_reports_failures(struct sb__kit *kit) {
    sb_stream stream = sb__kit_stream_create(kit);
    stream_synchronize_reports(kit, stream);
    sb__kit_stream_destroy(kit, stream);
}

static void synchronize_of_reads_reports_failures(struct sb__kit *kit) {
    stream_synchronize_reports(kit, read_stream(kit));
}

/* Waits for the stream before the stream is destroyed, since the driver may drop work of a
   destroyed stream. */
static void events_outlive_streams(struct sb__kit *kit) {
    sb_stream stream = sb__kit_stream_create(kit);
    struct copies c = copies_make(kit, true);
    void *event = NULL;
    sb_error err;
    queue_failure(&c, stream);
    SB__KIT_CALL(kit, event_record, stream, &event);
    for (int i = 0; i < 2 && stream; i++) /* the first call may return the failure */
        (void)kit->table.stream_synchronize(kit->device, stream, &err);
    sb__kit_stream_destroy(kit, stream);
    c.stream = kit->stream;
    EXPECT_FAILURE(kit, event_wait, event);
    destroy_event(kit, event);
    copies_free(&c);
}

static void record_on_thread(void *arg) {
    struct waiter *waiter = arg;
    SB__KIT_CALL(waiter->kit, event_record, waiter->kit->stream, &waiter->event);
}

/* Records an event on another thread, then an event on this thread, which queued the copy. */
static void events_of_other_threads_report(struct sb__kit *kit) {
    struct copies c = copies_make(kit, true);
    struct waiter other = {kit, NULL}, own = {kit, NULL};
    queue_failure(&c, kit->stream);
    if (sb__kit_goes(kit)) { /* `zero` may fail, since the device may be lost */
        sb_error err;
        (void)kit->table.zero(kit->device, c.from, BYTES, kit->stream, &err);
    }
    sb__kit_on_thread(kit, record_on_thread, &other);
    record_on_thread(&own);
    sb__kit_on_thread(kit, wait_on_thread, &other);
    EXPECT_FAILURE(kit, event_wait, own.event);
    destroy_event(kit, own.event);
    destroy_event(kit, other.event);
    copies_free(&c);
}

static void synchronize_keeps_failures(struct sb__kit *kit) {
    struct copies c = copies_make(kit, true);
    void *event = NULL;
    queue_failure(&c, kit->stream);
    SB__KIT_CALL(kit, event_record, kit->stream, &event);
    if (sb__kit_goes(kit)) { /* stream_synchronize may return any status */
        sb_error err;
        (void)kit->table.stream_synchronize(kit->device, kit->stream, &err);
    }
    EXPECT_FAILURE(kit, event_wait, event);
    destroy_event(kit, event);
    copies_free(&c);
}

static void queries_keep_failures(struct sb__kit *kit) {
    int32_t done = 0;
    if (!kit->table.event_query)
        sb__kit_skip(kit, "event_query is NULL");
    struct copies c = copies_make(kit, true);
    void *event = NULL, *later = NULL;
    queue_failure(&c, kit->stream);
    SB__KIT_CALL(kit, event_record, kit->stream, &event);
    SB__KIT_CALL(kit, event_record, kit->stream, &later);
    if (sb__kit_goes(kit)) {
        sb_error err;
        /* event_wait may return any status. When it returns, the work has ended */
        (void)kit->table.event_wait(kit->device, later, &err);
        err = (sb_error){.code = SB_OK};
        const sb_status st = kit->table.event_query(kit->device, event, &done, &err);
        sb__kit_expect(kit, "event_query", st == SB_ERR_DEVICE_LOST ? st : SB_OK, st, &err);
        if (st == SB_OK && done != 1)
            sb__kit_fail(kit, "event_query wrote %d, although the work had ended", (int)done);
    }
    EXPECT_FAILURE(kit, event_wait, event);
    destroy_event(kit, later);
    destroy_event(kit, event);
    copies_free(&c);
}

/* Queues failed work on own_stream and later work on `other`, which waits for the failed work. The
   later work may also fail, but if the wait for the later work succeeds, that work must have
   run. */
static void work_behind_failures_goes_on(struct sb__kit *kit, sb_stream other) {
    struct copies c = copies_make(kit, true);
    void *failed = NULL, *last = NULL;
    unsigned char *found = sb__kit_memory(kit, BYTES);
    queue_failure(&c, kit->stream);
    SB__KIT_CALL(kit, event_record, kit->stream, &failed);
    if (other != kit->stream)
        SB__KIT_CALL(kit, stream_wait, other, failed);
    c.stream = other;
    SB__KIT_CALL(kit, upload, c.from, c.old, (size_t)BYTES, other);
    SB__KIT_CALL(kit, download, found, c.from, (size_t)BYTES, other);
    SB__KIT_CALL(kit, event_record, other, &last);
    if (sb__kit_goes(kit)) {
        sb_error err;
        const sb_status st = kit->table.event_wait(kit->device, last, &err);
        if (st == SB_OK && memcmp(found, c.old, BYTES) != 0)
            sb__kit_fail(kit,
                         "event_wait returned SB_OK, but the work before the event did not run");
    }
    EXPECT_FAILURE(kit, event_wait, failed);
    destroy_event(kit, last);
    destroy_event(kit, failed);
    sb__kit_memory_free(kit, found);
    copies_free(&c);
}

static void waits_for_failures_go_on(struct sb__kit *kit) {
    sb_stream other = sb__kit_stream_create(kit);
    work_behind_failures_goes_on(kit, other);
    sb__kit_stream_destroy(kit, other);
}

static void streams_go_on(struct sb__kit *kit) {
    work_behind_failures_goes_on(kit, kit->stream);
}

static void synchronize_reports_failures(struct sb__kit *kit) {
    struct copies c = copies_make(kit, true);
    queue_failure(&c, kit->stream);
    EXPECT_FAILURE(kit, stream_synchronize, kit->stream);
    if (sb__kit_goes(kit)) {
        sb_error err;
        const sb_status st = kit->table.stream_synchronize(kit->device, kit->stream, &err);
        if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
            sb__kit_fail(kit,
                         "stream_synchronize returned %s twice for one failure: the core would "
                         "not free the memory",
                         sb_status_name(st));
    }
    copies_free(&c);
}

static void synchronize_on_thread(void *arg) {
    const struct waiter *waiter = arg;
    EXPECT_FAILURE(waiter->kit, stream_synchronize, waiter->kit->stream);
}

static void synchronize_reports_on_threads(struct sb__kit *kit) {
    struct copies c = copies_make(kit, true);
    struct waiter waiter = {kit, NULL};
    queue_failure(&c, kit->stream);
    sb__kit_on_thread(kit, synchronize_on_thread, &waiter);
    copies_free(&c);
}

/* Records an event and waits for it. Returns the first status that is not SB_OK. The device may
   already be lost, so event_record may fail. */
static sb_status wait_by_event(struct sb__kit *kit, sb_error *err) {
    void *event = NULL;
    sb_status st = kit->table.event_record(kit->device, kit->stream, &event, err);
    if (st == SB_OK)
        st = kit->table.event_wait(kit->device, event, err);
    destroy_event(kit, event);
    return st;
}

static sb_status wait_by_synchronize(struct sb__kit *kit, sb_error *err) {
    return kit->table.stream_synchronize(kit->device, kit->stream, err);
}

struct first_wait {
    struct sb__kit *kit;
    sb_status (*wait)(struct sb__kit *kit, sb_error *err);
};

static void wait_first(void *arg) { /* the wait may return any status */
    const struct first_wait *first = arg;
    sb_error err;
    if (sb__kit_goes(first->kit))
        (void)first->wait(first->kit, &err);
}

static void queue_on_thread(void *arg) {
    struct copies *c = arg;
    queue_failure(c, c->kit->stream);
}

/* Another thread waits first. The thread that queued the work must still get the failure. With
   `others_fail`, another thread's work also fails, both before and after this thread's work. */
static void failure_returns(struct sb__kit *kit, const char *slot,
                            sb_status (*wait)(struct sb__kit *kit, sb_error *err),
                            sb_status (*before)(struct sb__kit *kit, sb_error *err),
                            bool others_fail) {
    struct copies c = copies_make(kit, true);
    struct first_wait first = {kit, before};
    sb_error err = {.code = SB_OK};
    if (others_fail)
        sb__kit_on_thread(kit, queue_on_thread, &c);
    queue_failure(&c, kit->stream);
    if (others_fail)
        sb__kit_on_thread(kit, queue_on_thread, &c);
    sb__kit_on_thread(kit, wait_first, &first);
    if (sb__kit_goes(kit))
        expect_failure(kit, slot, wait(kit, &err), &err);
    copies_free(&c);
}

static void synchronize_returns_after_synchronize(struct sb__kit *kit) {
    failure_returns(kit, "stream_synchronize", wait_by_synchronize, wait_by_synchronize, false);
}

static void synchronize_returns_after_event(struct sb__kit *kit) {
    failure_returns(kit, "stream_synchronize", wait_by_synchronize, wait_by_event, false);
}

static void event_returns_after_synchronize(struct sb__kit *kit) {
    failure_returns(kit, "event_wait", wait_by_event, wait_by_synchronize, false);
}

static void event_returns_after_event(struct sb__kit *kit) {
    failure_returns(kit, "event_wait", wait_by_event, wait_by_event, false);
}

static void synchronize_returns_among_failures(struct sb__kit *kit) {
    failure_returns(kit, "stream_synchronize", wait_by_synchronize, wait_by_synchronize, true);
}

static void event_returns_among_failures(struct sb__kit *kit) {
    failure_returns(kit, "event_wait", wait_by_event, wait_by_event, true);
}

static void sum_reports_failures(struct sb__kit *kit, bool of_squares) {
    const int64_t count = BYTES / sizeof(float);
    double sum;
    if (!sb__kit_has_arithmetic(kit))
        return;
    struct copies c = copies_make(kit, true);
    queue_failure(&c, kit->stream);
    if (of_squares)
        EXPECT_FAILURE(kit, sumsq, SB_DTYPE_F32, count, c.from, &sum, kit->stream);
    else
        EXPECT_FAILURE(kit, asum, SB_DTYPE_F32, count, c.from, &sum, kit->stream);
    copies_free(&c);
}

static void asum_reports_failures(struct sb__kit *kit) {
    sum_reports_failures(kit, false);
}

static void sumsq_reports_failures(struct sb__kit *kit) {
    sum_reports_failures(kit, true);
}

const struct sb__claim sb__kit_failure_claims[] = {
    {"A copy that fails at once has done nothing", failed_copies_do_nothing},
    {"An event after failed work returns the failure on every wait and on any thread",
     own_stream_reports_failures},
    {"An event on a caller's stream returns the failure of earlier work",
     other_streams_report_failures},
    {"An event on read_stream returns the failure of earlier work", read_stream_reports_failures},
    {"stream_synchronize of a caller's stream returns the failure of queued work",
     synchronize_of_others_reports_failures},
    {"stream_synchronize of read_stream returns the failure of queued work",
     synchronize_of_reads_reports_failures},
    {"An event that outlives its stream returns the failure", events_outlive_streams},
    {"An event that another thread records returns the failure without clearing it",
     events_of_other_threads_report},
    {"event_query of failed work does not fail, and does not clear the failure",
     queries_keep_failures},
    {"stream_synchronize does not clear the failure of an earlier event",
     synchronize_keeps_failures},
    {"Work that waits for a failed event runs or fails", waits_for_failures_go_on},
    {"Work queued after failed work on a stream runs or fails", streams_go_on},
    {"stream_synchronize returns the failure of queued work", synchronize_reports_failures},
    {"stream_synchronize of own_stream returns the failure on a thread that queued nothing",
     synchronize_reports_on_threads},
    {"stream_synchronize returns a thread's failure even after another thread's stream_synchronize",
     synchronize_returns_after_synchronize},
    {"stream_synchronize returns a thread's failure even after another thread's event_wait",
     synchronize_returns_after_event},
    {"event_wait returns a thread's failure even after another thread's stream_synchronize",
     event_returns_after_synchronize},
    {"event_wait returns a thread's failure even after another thread's event_wait",
     event_returns_after_event},
    {"stream_synchronize returns a thread's failure when other threads' work also fails",
     synchronize_returns_among_failures},
    {"event_wait returns a thread's failure when other threads' work also fails",
     event_returns_among_failures},
    {"asum returns the failure of earlier work on the stream", asum_reports_failures},
    {"sumsq returns the failure of earlier work on the stream", sumsq_reports_failures},
    {NULL, NULL},
};
