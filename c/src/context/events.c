/* An event marks the end of queued work that writes bytes. Memories share events, because the
   result of arithmetic depends on the work that wrote the operands. An event reports a failure of
   its work on every wait, so that another thread's wait cannot consume the report. The context
   lists the events that no call has waited for; a wait for a stream also waits for the stream's
   listed events. */
#include "context/context.h"

#define FIRST_CAPACITY 4

sb_status sb__event_make(sb_context *context, struct sb__event **out, sb_error *err) {
    void *object;
    if (*out)
        return SB_OK;
    sb_status st = sb__object_alloc(context, sizeof(struct sb__event), &object, err);
    if (st != SB_OK)
        return st;
    *out = object;
    atomic_store_explicit(&(*out)->refs, 1, memory_order_relaxed);
    (*out)->exposed_at = SB__NOT_EXPOSED;
    return SB_OK;
}

/* --- the context's list ---------------------------------------------------------- */

static void enlist(struct sb__event_list *list, struct sb__event *event) {
    sb__mutex_lock(&list->lock);
    event->number = sb__counter_add(&list->clock, 1);
    event->is_listed = true;
    list->kept += event->is_kept;
    event->before = list->last;
    if (list->last)
        list->last->after = event;
    else
        list->first = event;
    list->last = event;
    sb__mutex_unlock(&list->lock);
}

static void unlink_event(struct sb__event_list *list, struct sb__event *event) {
    *(event->before ? &event->before->after : &list->first) = event->after;
    *(event->after ? &event->after->before : &list->last) = event->before;
    event->is_listed = false;
    list->kept -= event->is_kept;
}

/* Does nothing in a forked child, where no call waits and the lock may have been locked at the
   fork. */
void sb__event_delist(sb_context *context, struct sb__event *event) {
    struct sb__event_list *list = &context->events;
    if (!sb__context_is_ours(context))
        return;
    sb__mutex_lock(&list->lock);
    const bool is_kept = event->is_kept && event->is_listed;
    if (event->is_listed)
        unlink_event(list, event);
    sb__mutex_unlock(&list->lock);
    if (is_kept) /* never the last reference, because the caller has a reference */
        atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel);
}

/* Adds a reference, unless the last reference is being released. */
static bool retain(struct sb__event *event) {
    int64_t refs = atomic_load_explicit(&event->refs, memory_order_relaxed);
    while (refs && !atomic_compare_exchange_weak_explicit(
                       &event->refs, &refs, refs + 1, memory_order_acquire, memory_order_relaxed))
        continue;
    return refs != 0;
}

struct sb__event *sb__event_behind(struct sb__event_list *list, const struct sb__event *event,
                                   const sb_stream *stream, uint64_t last) {
    sb__mutex_lock(&list->lock);
    const uint64_t from = event ? event->number : 0;
    struct sb__event *found = NULL;
    struct sb__event *next = event && event->is_listed ? event->after : list->first;
    for (; next && next->number <= last && !found; next = next->after)
        if (next->number > from && (!stream || next->stream == *stream) && retain(next))
            found = next;
    sb__mutex_unlock(&list->lock);
    return found;
}

uint64_t sb__event_last_number(struct sb__event_list *list) {
    sb__mutex_lock(&list->lock);
    const uint64_t number = sb__counter_read(&list->clock);
    sb__mutex_unlock(&list->lock);
    return number;
}

/* Retries a failed wait, since a wait may fail although the work succeeds. If both waits fail, a
   DEVICE_FAILURE of the first wait takes precedence over the second status. */
sb_status sb__event_ask_twice(sb_context *context, void *handle, sb_error *err) {
    sb_error causes[2];
    const sb_status first = sb__event_wait(context, handle, &causes[0]);
    const bool is_final = first == SB_ERR_DEVICE_LOST || first == SB_ERR_FORKED;
    const sb_status second =
        first == SB_OK || is_final ? first : sb__event_wait(context, handle, &causes[1]);
    if (second == SB_OK)
        return SB_OK;
    const bool is_first = is_final || first == SB_ERR_DEVICE_FAILURE;
    if (err)
        *err = causes[is_first ? 0 : 1];
    return is_first ? first : second;
}

/* --- events of arithmetic on the library's own stream ------------------------------- */

sb_status sb__own_keep(sb_context *context, sb_stream stream, sb_error *err) {
    const uint64_t queued = sb__counter_read(&context->arithmetic_queued);
    struct sb__event *event = NULL;
    if (stream != context->stream || sb__counter_read(&context->arithmetic_over) >= queued ||
        sb__counter_read(&context->arithmetic_kept) >= queued)
        return SB_OK;
    sb_status st = sb__event_make(context, &event, err);
    if (st == SB_OK)
        st = sb__device_record(context, stream, &event->handle, err);
    if (st != SB_OK || !event->handle) {
        sb__event_release(context, event);
        return st;
    }
    event->stream = stream;
    event->is_kept = true;
    enlist(&context->events, event);
    sb__counter_raise(&context->arithmetic_kept, queued);
    return SB_OK;
}

static struct sb__event *first_kept(struct sb__event_list *list) {
    sb__mutex_lock(&list->lock);
    struct sb__event *event = list->kept ? list->first : NULL;
    while (event && !(event->is_kept && retain(event)))
        event = event->after;
    sb__mutex_unlock(&list->lock);
    return event;
}

sb_status sb__own_kept(sb_context *context, sb_error *err) {
    struct sb__event *event;
    sb_status first = SB_OK;
    bool is_known = true;
    while (is_known && (event = first_kept(&context->events)) != NULL) {
        sb_status st = sb__event_ask_twice(context, event->handle, first == SB_OK ? err : NULL);
        is_known = !sb__is_unknown(st);
        if (first == SB_OK)
            first = st;
        sb__own_lose(context, st);
        if (is_known)
            sb__event_delist(context, event);
        sb__event_release(context, event);
    }
    return first;
}

/* Releases the listed events, except in a forked child, where they belong to the parent. The caller
   has exclusive access. */
void sb__own_kept_end(sb_context *context) {
    struct sb__event *event = sb__context_is_ours(context) ? context->events.first : NULL;
    while (event) {
        struct sb__event *next = event->after;
        unlink_event(&context->events, event);
        sb__event_release(context, event);
        event = next;
    }
}

/* --- one event --------------------------------------------------------------------- */

sb_status sb__event_record(sb_context *context, sb_stream stream, void **out, sb_error *err) {
    sb_status st = sb__own_keep(context, stream, err);
    return st == SB_OK ? sb__device_record(context, stream, out, err) : st;
}

sb_status sb__event_put(sb_context *context, struct sb__event *event, sb_stream stream,
                        sb_error *err) {
    sb_status st = sb__device_record(context, stream, &event->handle, err);
    if (st != SB_OK || !event->handle)
        return st;
    event->stream = stream;
    enlist(&context->events, event);
    return SB_OK;
}

void sb__event_release(sb_context *context, struct sb__event *event) {
    if (!event)
        return;
    if (atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
        return;
    sb__event_delist(context, event);
    sb__event_destroy(context, event->handle);
    sb__object_free(context, event, sizeof *event);
}

static sb_status make_room(sb_context *context, struct sb__events *events, int32_t count,
                           sb_error *err) {
    const int32_t needed = events->count + count;
    int32_t capacity = events->capacity ? events->capacity : FIRST_CAPACITY;
    void *at = (void *)events->at;
    while (capacity < needed)
        capacity *= 2;
    if (capacity == events->capacity)
        return SB_OK;
    sb_status st = sb__object_grow(context, &at, (size_t)events->capacity * sizeof *events->at,
                                   (size_t)capacity * sizeof *events->at, err);
    if (st != SB_OK)
        return st;
    events->at = at;
    events->capacity = capacity;
    return SB_OK;
}

sb_status sb__events_prepare(sb_context *context, struct sb__events *events, sb_error *err) {
    sb_status st = make_room(context, events, 2, err);
    return st == SB_OK ? sb__event_make(context, &events->next, err) : st;
}

sb_status sb__events_record(sb_context *context, struct sb__events *events, sb_stream stream,
                            sb_error *err) {
    struct sb__event *event = events->next;
    sb_status st = sb__own_keep(context, stream, err);
    if (st == SB_OK)
        st = sb__event_put(context, event, stream, err);
    if (st != SB_OK || !event->handle) {
        event->exposed_at = SB__NOT_EXPOSED; /* the event may be used for other work */
        return st;
    }
    events->at[events->count++] = event;
    events->next = NULL;
    return SB_OK;
}

static bool has(const struct sb__events *events, const struct sb__event *event) {
    for (int32_t i = 0; i < events->count; i++)
        if (events->at[i] == event)
            return true;
    return false;
}

sb_status sb__events_add(sb_context *context, struct sb__events *events, struct sb__event *event,
                         sb_error *err) {
    sb_status st = SB_OK;
    if (has(events, event))
        return SB_OK;
    if (events->count + 2 > events->capacity) /* keeps room for events->next */
        st = make_room(context, events, 2, err);
    if (st != SB_OK)
        return st;
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
    events->at[events->count++] = event;
    return SB_OK;
}

sb_status sb__events_share(sb_context *context, struct sb__events *events,
                           const struct sb__events *from, sb_error *err) {
    sb_status st = SB_OK;
    for (int32_t i = 0; st == SB_OK && i < from->count; i++)
        st = sb__events_add(context, events, from->at[i], err);
    return st;
}

void sb__events_end(sb_context *context, struct sb__events *events) {
    for (int32_t i = 0; i < events->count; i++)
        sb__event_release(context, events->at[i]);
    sb__event_release(context, events->next);
    if (events->at)
        sb__object_free(context, (void *)events->at, (size_t)events->capacity * sizeof *events->at);
    *events = (struct sb__events){.at = NULL};
}
