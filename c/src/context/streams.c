/* The streams that memories of a context are used on: the legacy default one,
   the library's own, and those that the caller named. Forgetting a stream
   empties its slot; a memory that still names the slot then waits for nothing,
   or for one stream more than it needs. */
#include "context/context.h"

#define FIRST_CAPACITY 8

struct sb__named_stream {
    sb_stream stream;
    bool in_use;
};

/* Of a slot in use. */
static sb_stream stream_of(const sb_context *context, int32_t slot) {
    switch (slot) {
    case SB__LEGACY_SLOT:
        return NULL;
    case SB__OWN_SLOT:
        return context->stream;
    default:
        return context->streams.named[slot - SB__FIRST_NAMED].stream;
    }
}

static bool is_in_use(const sb_context *context, int32_t slot) {
    return slot < SB__FIRST_NAMED || context->streams.named[slot - SB__FIRST_NAMED].in_use;
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
    while (i < streams->count && streams->named[i].in_use)
        i++;
    sb_status st = i < streams->capacity ? SB_OK : grow(context, err);
    if (st != SB_OK)
        return st;
    if (i == streams->count)
        streams->count++;
    streams->named[i] = (struct sb__named_stream){stream, true};
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

/* The first slot from `slot` on that is in use by a stream of `users` but `except`; -1: none. */
static int32_t next_user(const sb_context *context, uint64_t users, int32_t slot,
                         const sb_stream *except) {
    for (; slot < slot_count(context); slot++)
        if (users & sb__slot_bit(slot) && is_in_use(context, slot) &&
            (!except || stream_of(context, slot) != *except))
            return slot;
    return -1;
}

/* An event of the work queued so far on the next user from `*slot` on; `*slot` becomes its slot, or
   -1. The lock keeps a stream from being forgotten and destroyed meanwhile; what has to wait does
   so without it. */
static sb_status record_next(sb_context *context, uint64_t users, const sb_stream *except,
                             int32_t *slot, void **event, sb_error *err) {
    sb_status st = sb__device_check(context, err); /* no lock is taken in a forked child */
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
        sb_status st = record_next(context, users, &stream, &slot, &event, err);
        if (st == SB_OK && event)
            st = sb__stream_wait(context, stream, event, err);
        sb__event_destroy(context, event);
        if (st != SB_OK || slot < 0)
            return st;
    }
}

sb_status sb__streams_record(sb_context *context, uint64_t users, struct sb__events *out,
                             sb_error *err) {
    sb_status st = sb__device_check(context, err); /* no lock is taken in a forked child */
    for (int32_t slot = 0; st == SB_OK && users && slot >= 0; slot += slot >= 0) {
        st = sb__events_prepare(context, out, err);
        if (st != SB_OK)
            return st;
        sb__mutex_lock(&context->streams.lock);
        slot = next_user(context, users, slot, NULL);
        if (slot >= 0)
            st = sb__events_record(context, out, stream_of(context, slot), err);
        sb__mutex_unlock(&context->streams.lock);
    }
    return st;
}

sb_status sb__streams_wait(sb_context *context, uint64_t users, sb_error *err) {
    const uint64_t own = sb__slot_bit(SB__OWN_SLOT);
    sb_status first = sb__device_check(context, err);
    void *event;
    if (first != SB_OK)
        return first;
    if (users & own) /* it is not destroyed meanwhile: that needs no event */
        first = sb__own_wait(context, err);
    users &= ~own;
    for (int32_t slot = 0;; slot++) {
        sb_error *story = first == SB_OK ? err : NULL;
        sb_status st = record_next(context, users, NULL, &slot, &event, story);
        if (st == SB_OK && event)
            st = sb__event_wait(context, event, story);
        sb__event_destroy(context, event);
        if (first == SB_OK)
            first = st;
        if (slot < 0)
            return first;
        st = sb__device_check(context, first == SB_OK ? err : NULL);
        if (st != SB_OK) /* lost meanwhile: nobody waited for the rest */
            return first == SB_OK ? st : first;
    }
}

/* Asked twice: a wait may fail without having waited, and a failure of the work is told once.
   DEVICE_LOST says that the work has ended, too. */
static bool is_over(sb_context *context, sb_stream stream) {
    sb_status st = sb__device_synchronize(context, stream, NULL);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
        st = sb__device_synchronize(context, stream, NULL);
    return st == SB_OK || st == SB_ERR_DEVICE_LOST;
}

/* By an event, so that other calls need not wait for the lock meanwhile; where that fails, under
   the lock. */
static bool is_slot_over(sb_context *context, uint64_t users, int32_t *slot) {
    void *event;
    sb_status st = record_next(context, users, NULL, slot, &event, NULL);
    if (st == SB_OK && event)
        st = sb__event_wait(context, event, NULL);
    sb__event_destroy(context, event);
    if (st == SB_OK)
        return true;
    sb__mutex_lock(&context->streams.lock);
    *slot = next_user(context, users, *slot, NULL);
    bool over = *slot < 0 || is_over(context, stream_of(context, *slot));
    sb__mutex_unlock(&context->streams.lock);
    return over;
}

bool sb__streams_over(sb_context *context, uint64_t users) {
    const uint64_t own = sb__slot_bit(SB__OWN_SLOT);
    if (!context->has_device || !sb__context_is_ours(context))
        return true; /* nothing of a parent's work goes on in the memory of a forked child */
    bool over = !(users & own) || sb__own_over(context);
    users &= ~own;
    for (int32_t slot = 0; slot >= 0; slot = slot < 0 ? slot : slot + 1)
        over = is_slot_over(context, users, &slot) && over;
    return over;
}

/* Another thread may wait for a stream while it holds the lock: then nothing is known. */
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

/* DEVICE_LOST says that the work has ended, too. */
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

/* Waits without the lock where it can. Two threads may forget the same stream, and one of them
   destroy it meanwhile: then it takes an event, which the device may not have to give. */
static sb_status wait_unlocked(sb_context *context, sb_stream stream, sb_error *err) {
    void *event = NULL;
    sb__mutex_lock(&context->streams.lock);
    int32_t slot = find_slot(context, stream);
    if (slot >= SB__FIRST_NAMED)
        (void)sb__event_record(context, stream, &event, NULL);
    sb__mutex_unlock(&context->streams.lock);
    if (slot == SB__OWN_SLOT) /* nobody destroys it, nor the legacy one */
        return sb__own_wait(context, err);
    if (slot == SB__LEGACY_SLOT)
        return sb__device_synchronize(context, stream, err);
    sb_status st = event ? sb__event_wait(context, event, err) : (sb_status)SB_OK;
    sb__event_destroy(context, event);
    return st;
}

/* On a lost device, too: whoever calls this goes on to destroy the stream. */
sb_status sb_context_forget_stream(sb_context *context, sb_stream stream, sb_error *err) {
    sb_status st = sb__device_check(context, err);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
        return st;
    sb_status waited = wait_unlocked(context, stream, err);
    if (waited == SB_OK && st == SB_OK)
        waited = sb__events_check(context, &stream, err);
    if (waited != SB_OK && waited != SB_ERR_DEVICE_LOST)
        return waited;
    sb__mutex_lock(&context->streams.lock);
    int32_t slot = find_slot(context, stream);
    sb_status rest = SB_OK; /* what was queued since, or all where there was no event */
    if (slot >= SB__FIRST_NAMED)
        rest = sb__device_synchronize(context, stream, waited == SB_OK ? err : NULL);
    if (slot >= SB__FIRST_NAMED && (rest == SB_OK || rest == SB_ERR_DEVICE_LOST))
        context->streams.named[slot - SB__FIRST_NAMED].in_use = false;
    sb__mutex_unlock(&context->streams.lock);
    if (waited == SB_OK)
        waited = rest;
    return waited == SB_OK ? st : waited;
}
