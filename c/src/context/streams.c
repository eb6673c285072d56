/* The streams that use memories of a context: the legacy default stream, the library's stream, and
   the named streams, which callers have passed. Forgetting a stream frees its slot (index). A
   memory that still refers to the slot then waits for nothing, or for the slot's next stream. */
#include "context/context.h"

#define FIRST_CAPACITY 8

struct sb__named_stream {
    sb_stream stream;
    bool in_use;
    struct sb__failures failures;
};

static sb_stream stream_of(const sb_context *context, int32_t slot) {
    switch (slot) {
    case SB__LEGACY_SLOT:
        return NULL;
    case SB__OWN_SLOT:
        return context->stream;
    case SB__READ_SLOT:
        return context->read_stream;
    default:
        return context->streams.named[slot - SB__FIRST_NAMED].stream;
    }
}

static bool is_in_use(const sb_context *context, int32_t slot) {
    switch (slot) {
    case SB__LEGACY_SLOT:
        return sb__has_default_stream(context);
    case SB__OWN_SLOT:
        return true;
    case SB__READ_SLOT:
        return context->read_stream != NULL;
    default:
        return context->streams.named[slot - SB__FIRST_NAMED].in_use;
    }
}

static int32_t slot_count(const sb_context *context) {
    return SB__FIRST_NAMED + context->streams.count;
}

static int32_t find_slot(const sb_context *context, sb_stream stream) {
    for (int32_t slot = 0; slot < slot_count(context); slot++)
        if (is_in_use(context, slot) && stream_of(context, slot) == stream)
            return slot;
    return -1;
}

static sb_status grow(sb_context *context, sb_error *err) {
    struct sb__streams *streams = &context->streams;
    int32_t capacity = streams->capacity ? streams->capacity * 2 : FIRST_CAPACITY;
    void *named = streams->named;
    size_t size = sizeof *streams->named;
    sb_status st = sb__object_grow(context, &named, (size_t)streams->capacity * size,
                                   (size_t)capacity * size, err);
    if (st != SB_OK)
        return st;
    streams->named = named;
    streams->capacity = capacity;
    return SB_OK;
}

static sb_status take_slot(sb_context *context, sb_stream stream, int32_t *out, sb_error *err) {
    struct sb__streams *streams = &context->streams;
    *out = find_slot(context, stream);
    if (*out >= 0)
        return SB_OK;
    int32_t i = 0;
    while (i < streams->count && (streams->named[i].in_use || streams->named[i].failures.last))
        i++;
    sb_status st = i < streams->capacity ? SB_OK : grow(context, err);
    if (st != SB_OK)
        return st;
    const uint64_t now = sb__counter_add(&context->events.clock, 1);
    if (i == streams->count)
        streams->count++;
    streams->named[i] = (struct sb__named_stream){stream, true, {now, 0}};
    *out = SB__FIRST_NAMED + i;
    return SB_OK;
}

sb_status sb__stream_slot(sb_context *context, sb_stream stream, int32_t *out, sb_error *err) {
    sb_status st = sb__device_check_stream(context, stream, err);
    if (st != SB_OK)
        return st;
    sb__mutex_lock(&context->streams.lock);
    st = take_slot(context, stream, out, err);
    sb__mutex_unlock(&context->streams.lock);
    return st;
}

void sb__streams_free(sb_context *context) {
    struct sb__streams *streams = &context->streams;
    sb__object_free(context, streams->named, (size_t)streams->capacity * sizeof *streams->named);
}

static struct sb__failures *failures_of(sb_context *context, int32_t slot) {
    struct sb__streams *streams = &context->streams;
    return slot < SB__FIRST_NAMED ? &streams->fixed[slot]
                                  : &streams->named[slot - SB__FIRST_NAMED].failures;
}

/* The caller holds streams.lock. */
static void note_failure(sb_context *context, int32_t slot, uint64_t time) {
    struct sb__failures *failures = failures_of(context, slot);
    if (!time)
        time = sb__counter_add(&context->events.clock, 1);
    if (failures->last < time)
        failures->last = time;
}

void sb__slot_failed(sb_context *context, int32_t slot, uint64_t time) {
    sb__mutex_lock(&context->streams.lock);
    note_failure(context, slot, time);
    sb__mutex_unlock(&context->streams.lock);
}

int32_t sb__slot_of(sb_context *context, sb_stream stream) {
    sb__mutex_lock(&context->streams.lock);
    const int32_t slot = find_slot(context, stream);
    sb__mutex_unlock(&context->streams.lock);
    return slot;
}

bool sb__slot_has_failed(sb_context *context, int32_t slot, uint64_t time, bool *out_over) {
    sb__mutex_lock(&context->streams.lock);
    const struct sb__failures *failures = failures_of(context, slot);
    *out_over = time < failures->since;
    const bool has_failed = !*out_over && failures->last > time;
    sb__mutex_unlock(&context->streams.lock);
    return has_failed;
}

/* Returns the first slot, from `slot` on, whose stream is in `users` and is not `except`, or -1. */
static int32_t next_user(const sb_context *context, uint64_t users, int32_t slot,
                         const sb_stream *except) {
    for (; slot < slot_count(context); slot++)
        if (users & sb__slot_bit(slot) && is_in_use(context, slot) &&
            (!except || stream_of(context, slot) != *except))
            return slot;
    return -1;
}

/* Records the event under the lock, so that no other thread forgets and destroys the stream
   meanwhile. Callers wait for the event without the lock. */
sb_status sb__streams_record_next(sb_context *context, uint64_t users, const sb_stream *except,
                                  int32_t *slot, void **event, sb_error *err) {
    sb_status st = sb__device_check(context, err); /* a forked child fails here: it must not lock */
    *event = NULL;
    if (st != SB_OK)
        return st;
    sb__mutex_lock(&context->streams.lock);
    *slot = next_user(context, users, *slot, except);
    if (*slot >= 0)
        st = sb__event_record(context, stream_of(context, *slot), event, err);
    sb__mutex_unlock(&context->streams.lock);
    return st;
}

sb_status sb__streams_order(sb_context *context, uint64_t users, sb_stream stream, sb_error *err) {
    void *event;
    for (int32_t slot = 0;; slot++) {
        sb_status st = sb__streams_record_next(context, users, &stream, &slot, &event, err);
        if (st == SB_OK && event)
            st = sb__stream_wait(context, stream, event, err);
        sb__event_destroy(context, event);
        if (st != SB_OK || slot < 0)
            return st;
    }
}

sb_status sb__streams_record(sb_context *context, uint64_t users, uint64_t exposed_at,
                             struct sb__events *out, sb_error *err) {
    sb_status st = sb__device_check(context, err); /* a forked child fails here: it must not lock */
    for (int32_t slot = 0; st == SB_OK && users && slot >= 0; slot += slot >= 0) {
        st = sb__events_prepare(context, out, err);
        if (st != SB_OK)
            return st;
        sb__mutex_lock(&context->streams.lock);
        slot = next_user(context, users, slot, NULL);
        if (slot >= 0 && slot != SB__OWN_SLOT) {
            out->next->slot = slot;
            out->next->exposed_at = exposed_at;
        }
        if (slot >= 0)
            st = sb__events_record(context, out, stream_of(context, slot), err);
        sb__mutex_unlock(&context->streams.lock);
    }
    return st;
}

/* The caller holds streams.lock. */
static sb_status synchronize(sb_context *context, int32_t slot, sb_error *err) {
    const sb_status st = sb__device_synchronize(context, stream_of(context, slot), err);
    if (st == SB_ERR_DEVICE_FAILURE)
        note_failure(context, slot, 0);
    return st;
}

/* Waits for the stream, and returns whether its work has ended. Retries a failed wait, because the
   wait may have returned early. (The retry succeeds after a failure of the work, which the driver
   reports only once.) DEVICE_LOST also means that the work has ended. */
static bool is_over(sb_context *context, int32_t slot) {
    sb_status st = synchronize(context, slot, NULL);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
        st = synchronize(context, slot, NULL);
    return st == SB_OK || st == SB_ERR_DEVICE_LOST;
}

/* Waits for an event without the lock. If that wait fails, waits for the stream under the lock. */
bool sb__streams_slot_over(sb_context *context, uint64_t users, int32_t *slot) {
    void *event;
    sb_status st = sb__streams_record_next(context, users, NULL, slot, &event, NULL);
    if (st == SB_OK && event)
        st = sb__slot_wait(context, *slot, event, NULL);
    sb__event_destroy(context, event);
    if (st == SB_OK)
        return true;
    sb__mutex_lock(&context->streams.lock);
    *slot = next_user(context, users, *slot, NULL);
    bool over = *slot < 0 || is_over(context, *slot);
    sb__mutex_unlock(&context->streams.lock);
    return over;
}

/* Records the mark's event. Returns false on failure, or if another thread holds the lock. */
static bool try_record(sb_context *context, uint64_t users, struct sb__mark *mark) {
    sb_status st = SB_OK;
    if (!sb__mutex_try_lock(&context->streams.lock))
        return false;
    mark->slot = next_user(context, users, mark->slot, NULL);
    if (mark->slot >= 0)
        st = sb__event_record(context, stream_of(context, mark->slot), &mark->event, NULL);
    sb__mutex_unlock(&context->streams.lock);
    return st == SB_OK;
}

/* DEVICE_LOST means that the work has ended. */
static bool is_done(sb_context *context, void *event, bool *out_asks_again) {
    int32_t done = 0;
    sb_status st = sb__event_query(context, event, &done, NULL);
    *out_asks_again = st == SB_OK && !done;
    return st == SB_ERR_DEVICE_LOST || (st == SB_OK && done);
}

bool sb__streams_known_over(sb_context *context, uint64_t users, struct sb__mark *mark) {
    bool asks_again = false, known = context->backend.event_query != NULL;
    for (; known && mark->slot >= 0; mark->slot++) {
        known = mark->event || try_record(context, users, mark);
        if (!known || mark->slot < 0)
            break;
        known = is_done(context, mark->event, &asks_again);
        if (asks_again)
            return false;
        sb__event_destroy(context, mark->event);
        mark->event = NULL;
    }
    mark->slot = 0;
    return known;
}

int32_t sb__stream_record(sb_context *context, sb_stream stream, void **event) {
    sb__mutex_lock(&context->streams.lock);
    int32_t slot = find_slot(context, stream);
    if (slot >= SB__FIRST_NAMED)
        (void)sb__event_record(context, stream, event, NULL);
    sb__mutex_unlock(&context->streams.lock);
    return slot;
}

sb_status sb__stream_forget(sb_context *context, sb_stream stream, sb_error *err) {
    sb_status st = SB_OK;
    sb__mutex_lock(&context->streams.lock);
    int32_t slot = find_slot(context, stream);
    if (slot >= SB__FIRST_NAMED)
        st = synchronize(context, slot, err);
    if (slot >= SB__FIRST_NAMED && (st == SB_OK || st == SB_ERR_DEVICE_LOST))
        context->streams.named[slot - SB__FIRST_NAMED].in_use = false;
    sb__mutex_unlock(&context->streams.lock);
    return st;
}
