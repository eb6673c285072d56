/* Events of queued work that bytes come of. They are shared: what is computed from bytes depends on
   the work that made these, too. An event reports the failure of its work every time, so that no
   other thread's wait can take the report away. */
#include "context/context.h"

#include <string.h>

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
    return SB_OK;
}

void sb__event_release(sb_context *context, struct sb__event *event) {
    if (!event || atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
        return;
    sb__event_destroy(context, event->handle);
    sb__object_free(context, event, sizeof *event);
}

/* A wait may fail although the work did not: the answer of success is the one that proves
 * something.
 */
static sb_status ask_twice(sb_context *context, void *handle, sb_error *err) {
    sb_status st = sb__event_wait(context, handle, err);
    const bool is_final = st == SB_OK || st == SB_ERR_DEVICE_LOST || st == SB_ERR_FORKED;
    if (!is_final && sb__event_wait(context, handle, NULL) == SB_OK)
        return SB_OK;
    return st;
}

sb_status sb__event_ask(sb_context *context, const struct sb__event *event, sb_error *err) {
    sb_error story = {.code = SB_OK};
    sb_status st = ask_twice(context, event->handle, &story);
    if (st != SB_OK && err)
        *err = story;
    return event->on_own ? sb__own_failed(context, st, err) : st;
}

/* For `count` more. */
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
    sb_status st = sb__event_record(context, stream, &event->handle, err);
    if (st != SB_OK || !event->handle)
        return st;
    event->on_own = stream == context->stream;
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
    if (events->count + 2 > events->capacity) /* one is for the next */
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

sb_status sb__events_wait(sb_context *context, struct sb__events *events, int32_t count,
                          sb_error *err) {
    sb_status first = SB_OK;
    int32_t asked = 0;
    while (asked < count && first != SB_ERR_FORKED) {
        sb_status st = sb__event_ask(context, events->at[asked], first == SB_OK ? err : NULL);
        if (first == SB_OK)
            first = st;
        if (st != SB_ERR_FORKED)
            sb__event_release(context, events->at[asked++]);
    }
    events->count -= asked;
    if (asked && events->count)
        memmove((void *)events->at, (void *)(events->at + asked),
                (size_t)events->count * sizeof(struct sb__event *));
    return first;
}

void sb__events_end(sb_context *context, struct sb__events *events) {
    for (int32_t i = 0; i < events->count; i++)
        sb__event_release(context, events->at[i]);
    sb__event_release(context, events->next);
    if (events->at)
        sb__object_free(context, (void *)events->at, (size_t)events->capacity * sizeof *events->at);
    *events = (struct sb__events){.at = NULL};
}
