/* Waits on the host for queued work and handles failed waits. Arithmetic on the library's stream
   writes in place. If the arithmetic may have failed, the library marks the device as lost and
   waits for all queued work. */
#include "context/context.h"

#include "base/error.h"

#include <string.h>

/* --- the library's stream ------------------------------------------------------- */

sb_status sb__own_failed(sb_context *context, sb_status st, sb_error *err) {
    return sb__own_may_have_failed(context, st) ? sb__device_spoiled(context, st, err) : st;
}

/* Begins a wait for the library's stream. Returns the number of arithmetic operations that a
   successful wait covers. */
static uint64_t begin_own_wait(sb_context *context) {
    sb__mutex_lock(&context->own_lock);
    return sb__counter_read(&context->arithmetic_queued);
}

/* If arithmetic may have failed, marks the device as lost before the next wait begins, because the
   driver might not report the failure to that wait. */
static sb_status end_own_wait(sb_context *context, uint64_t queued, sb_status st, sb_error *err) {
    if (st == SB_OK)
        st = sb__own_kept(context, err);
    if (st == SB_OK)
        sb__counter_raise(&context->arithmetic_over, queued);
    const bool is_spoiled = sb__own_may_have_failed(context, st);
    if (is_spoiled)
        sb__device_lose(context);
    sb__mutex_unlock(&context->own_lock);
    if (is_spoiled)
        return sb__device_spoiled(context, st, err);
    return st == SB_OK ? sb__device_check(context, err) : st;
}

sb_status sb__own_wait(sb_context *context, sb_error *err) {
    sb_status st = sb__device_check_process(context, err); /* a forked child must not lock */
    if (st != SB_OK)
        return st;
    const uint64_t queued = begin_own_wait(context);
    return end_own_wait(context, queued, sb__device_synchronize(context, context->stream, err),
                        err);
}

/* The event is not listed, because it covers only downloads and no later call needs it. */
sb_status sb__read_wait(sb_context *context, sb_error *err) {
    void *event = NULL;
    sb_status st = sb__event_record(context, context->read_stream, &event, err);
    if (st == SB_OK)
        st = sb__event_ask_twice(context, event, err);
    sb__event_destroy(context, event);
    return st;
}

/* Retries a failed wait once, because the wait may have returned early. */
bool sb__own_over(sb_context *context) {
    sb_status st = SB_ERR_DEVICE_FAILURE;
    for (int tries = 0; tries < 2 && st != SB_OK && st != SB_ERR_DEVICE_LOST; tries++) {
        const bool was_lost = sb__device_check(context, NULL) != SB_OK;
        const uint64_t queued = begin_own_wait(context);
        st = sb__device_synchronize(context, context->stream, NULL);
        if (!was_lost)
            (void)end_own_wait(context, queued, st, NULL);
        else
            sb__mutex_unlock(&context->own_lock);
    }
    return st == SB_OK || st == SB_ERR_DEVICE_LOST;
}

sb_status sb__own_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_error *err) {
    const uint64_t queued = begin_own_wait(context);
    return end_own_wait(context, queued, sb__device_asum(context, dtype, count, x, out, err), err);
}

sb_status sb__own_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                        double *out, sb_error *err) {
    const uint64_t queued = begin_own_wait(context);
    return end_own_wait(context, queued, sb__device_sumsq(context, dtype, count, x, out, err), err);
}

sb_status sb__device_spoiled(sb_context *context, sb_status st, sb_error *err) {
    char reason[sizeof err->message] = "";
    /* From here on the device refuses new work, so only queued work must end. */
    sb__device_lose(context);
    (void)sb__streams_over(context, SB__ALL_STREAMS);
    if (!err || st == SB_ERR_DEVICE_LOST)
        return SB_ERR_DEVICE_LOST;
    int32_t code = err->device_code;
    memcpy(reason, err->message, sizeof reason);
    (void)sb__fail(err, SB_ERR_DEVICE_LOST, "%s failed while it wrote: %.180s",
                   context->device_name, reason);
    err->device_code = code;
    return SB_ERR_DEVICE_LOST;
}

/* --- events -------------------------------------------------------------------------- */

sb_status sb__fail_elsewhere(sb_error *err) {
    return sb__fail(
        err, SB_ERR_DEVICE_FAILURE,
        "queued work has failed on the stream that wrote the bytes, as another call reported");
}

/* Returns whether `st`, the status of a retried wait for an event, is a failure of the event's
   work. */
static bool is_of_work(sb_status st) {
    return st != SB_OK && st != SB_ERR_DEVICE_LOST && !sb__is_unknown(st);
}

/* Until a failure is recorded, the wait is in context->waits, where other threads find it. */
static sb_status ask_listed(sb_context *context, int32_t slot, void *handle, uint64_t number,
                            sb_error *err) {
    struct sb__wait wait = {.slot = slot, .handle = handle, .number = number};
    struct sb__wait **at = &context->waits.first;
    sb__mutex_lock(&context->waits.lock);
    wait.next = context->waits.first;
    context->waits.first = &wait;
    sb__mutex_unlock(&context->waits.lock);
    const sb_status st = sb__event_ask_twice(context, handle, err);
    if (is_of_work(st) && slot >= 0)
        sb__slot_failed(context, slot, number);
    sb__mutex_lock(&context->waits.lock);
    while (*at != &wait)
        at = &(*at)->next;
    *at = wait.next;
    sb__mutex_unlock(&context->waits.lock);
    return st;
}

/* Records failures that waits of other threads have received from the backend, but have not
   recorded yet. An event whose work has ended returns its failure at once, on every thread. */
static void note_failures_of_others(sb_context *context, int32_t slot) {
    sb__mutex_lock(&context->waits.lock);
    for (const struct sb__wait *at = context->waits.first; at; at = at->next) {
        int32_t done = 0;
        if (at->slot == slot && context->backend.event_query &&
            sb__event_query(context, at->handle, &done, NULL) == SB_OK && done &&
            is_of_work(sb__event_wait(context, at->handle, NULL)))
            sb__slot_failed(context, slot, at->number);
    }
    sb__mutex_unlock(&context->waits.lock);
}

/* Fails if another wait has returned a failure of a caller's work that precedes the event. */
static sb_status check_caller(sb_context *context, const struct sb__event *event, sb_error *err) {
    bool is_over;
    if (event->exposed_at == SB__NOT_EXPOSED)
        return SB_OK;
    note_failures_of_others(context, event->slot);
    return sb__slot_has_failed(context, event->slot, event->exposed_at, &is_over)
               ? sb__fail_elsewhere(err)
               : (sb_status)SB_OK;
}

sb_status sb__event_ask(sb_context *context, struct sb__event *event, sb_error *err) {
    sb_error story = {.code = SB_OK};
    if (atomic_load_explicit(&event->is_over, memory_order_acquire) && sb__context_is_ours(context))
        return SB_OK;
    sb_status st = sb__device_check_process(context, err); /* a forked child must not lock */
    if (st != SB_OK)
        return st;
    const bool is_own = event->stream == context->stream;
    const int32_t slot = is_own ? SB__OWN_SLOT : sb__slot_of(context, event->stream);
    st = ask_listed(context, slot, event->handle, event->number, &story);
    if (st == SB_OK && is_own)
        st = sb__own_kept(context, &story);
    if (st == SB_OK && is_own) /* another thread may have got the failure of a kept event */
        st = sb__device_check(context, &story);
    if (st == SB_OK)
        st = check_caller(context, event, &story);
    if (st == SB_OK)
        atomic_store_explicit(&event->is_over, true, memory_order_release);
    else if (err)
        *err = story;
    if (!sb__is_unknown(st))
        sb__event_delist(context, event);
    return is_own ? sb__own_failed(context, st, err) : st;
}

sb_status sb__events_check(sb_context *context, const sb_stream *stream, sb_error *err) {
    sb_status first = sb__device_check(context, err); /* a forked child must not lock */
    if (first == SB_ERR_FORKED || first == SB_ERR_DEVICE_LOST)
        return first;
    const uint64_t last = sb__event_last_number(&context->events);
    struct sb__event *event = sb__event_behind(&context->events, NULL, stream, last);
    while (event) { /* finds the next event before `event` leaves the list */
        struct sb__event *next = sb__event_behind(&context->events, event, stream, last);
        sb_status st = sb__event_ask(context, event, first == SB_OK ? err : NULL);
        if (first == SB_OK)
            first = st;
        sb__event_release(context, event);
        event = next;
    }
    return first;
}

sb_status sb__events_wait(sb_context *context, struct sb__events *events, int32_t count,
                          sb_error *err) {
    sb_status first = SB_OK;
    int32_t asked = 0;
    bool is_known = true;
    while (asked < count && is_known) {
        sb_status st = sb__event_ask(context, events->at[asked], first == SB_OK ? err : NULL);
        is_known = !sb__is_unknown(st);
        if (first == SB_OK)
            first = st;
        if (is_known)
            sb__event_release(context, events->at[asked++]);
    }
    events->count -= asked;
    if (asked && events->count)
        memmove((void *)events->at, (void *)(events->at + asked),
                (size_t)events->count * sizeof(struct sb__event *));
    return first;
}

/* --- streams ------------------------------------------------------------------------- */

sb_status sb__slot_wait(sb_context *context, int32_t slot, void *event, sb_error *err) {
    const uint64_t now = sb__counter_add(&context->events.clock, 1);
    return ask_listed(context, slot, event, now, err);
}

sb_status sb__slot_synchronize(sb_context *context, int32_t slot, sb_stream stream, sb_error *err) {
    const sb_status st = sb__device_synchronize(context, stream, err);
    if (st == SB_ERR_DEVICE_FAILURE)
        sb__slot_failed(context, slot, 0);
    return st;
}

sb_status sb__streams_wait(sb_context *context, uint64_t users, sb_error *err) {
    const uint64_t own = sb__slot_bit(SB__OWN_SLOT);
    sb_status first = sb__device_check(context, err);
    void *event;
    if (first != SB_OK)
        return first;
    if (users & own) /* needs no event: this stream is never destroyed */
        first = sb__own_wait(context, err);
    users &= ~own;
    for (int32_t slot = 0;; slot++) {
        sb_error *story = first == SB_OK ? err : NULL;
        sb_status st = sb__streams_record_next(context, users, NULL, &slot, &event, story);
        if (st == SB_OK && event)
            st = sb__slot_wait(context, slot, event, story);
        sb__event_destroy(context, event);
        if (first == SB_OK)
            first = st;
        if (slot < 0)
            return first;
        st = sb__device_check(context, first == SB_OK ? err : NULL);
        if (st != SB_OK) /* the device was lost meanwhile: waits for no more streams */
            return first == SB_OK ? st : first;
    }
}

bool sb__streams_over(sb_context *context, uint64_t users) {
    const uint64_t own = sb__slot_bit(SB__OWN_SLOT);
    if (!context->has_device || !sb__context_is_ours(context))
        return true; /* the parent's work does not use the memory of a forked child */
    bool over = !(users & own) || sb__own_over(context);
    users &= ~own;
    for (int32_t slot = 0; slot >= 0; slot = slot < 0 ? slot : slot + 1)
        over = sb__streams_slot_over(context, users, &slot) && over;
    return over;
}

/* Waits without a lock, so another thread may destroy the stream meanwhile. If an event can be
   recorded on the stream, therefore waits for the event instead of the stream. */
static sb_status wait_unlocked(sb_context *context, sb_stream stream, sb_error *err) {
    void *event = NULL;
    const int32_t slot = sb__stream_record(context, stream, &event);
    if (slot == SB__OWN_SLOT) /* needs no event: this stream is never destroyed */
        return sb__own_wait(context, err);
    if (slot == SB__LEGACY_SLOT)
        return sb__slot_synchronize(context, slot, stream, err);
    sb_status st = event ? sb__slot_wait(context, slot, event, err) : (sb_status)SB_OK;
    sb__event_destroy(context, event);
    return st;
}

/* Also waits on a lost device: the caller is about to destroy the stream. */
sb_status sb_context_forget_stream(sb_context *context, sb_stream stream, sb_error *err) {
    sb_status st = sb__device_check(context, err);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
        return st;
    stream = sb__stream_of_caller(context, stream);
    sb_status waited = wait_unlocked(context, stream, err);
    if (waited == SB_OK && st == SB_OK)
        waited = sb__events_check(context, &stream, err);
    if (waited != SB_OK && waited != SB_ERR_DEVICE_LOST)
        return waited;
    /* Waits for work queued after the event, or for all work if no event was recorded. */
    sb_status rest = sb__stream_forget(context, stream, waited == SB_OK ? err : NULL);
    if (waited == SB_OK)
        waited = rest;
    return waited == SB_OK ? st : waited;
}
