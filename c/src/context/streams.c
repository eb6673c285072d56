/* The caller's streams that memories of a context were used on. Each has a
   slot; a memory keeps a set of slots. Forgetting a stream empties its slot;
   a memory that still names the slot then waits for nothing, or for one
   stream more than it needs. */
#include "context/context.h"

#include "base/error.h"

static uint64_t bit(int32_t slot) {
    return (uint64_t)1 << slot;
}

static int32_t find_slot(const sb_context *context, sb_stream stream) {
    for (int32_t i = 0; i < SB__MAX_STREAMS; i++)
        if (context->streams_used & bit(i) && context->streams[i] == stream)
            return i;
    return -1;
}

static int32_t take_slot(sb_context *context, sb_stream stream) {
    int32_t slot = find_slot(context, stream);
    for (int32_t i = 0; slot < 0 && i < SB__MAX_STREAMS; i++) {
        if (context->streams_used & bit(i))
            continue;
        context->streams[i] = stream;
        context->streams_used |= bit(i);
        slot = i;
    }
    return slot;
}

sb_status sb__stream_slot(sb_context *context, sb_stream stream, int32_t *out, sb_error *err) {
    sb_status st = sb__device_check_stream(context, stream, err);
    if (st != SB_OK)
        return st;
    pthread_mutex_lock(&context->streams_lock);
    *out = take_slot(context, stream);
    pthread_mutex_unlock(&context->streams_lock);
    if (*out < 0)
        return sb__fail(err, SB_ERR_OVER_LIMIT,
                        "%d streams are in use; forget one with sb_context_forget_stream",
                        SB__MAX_STREAMS);
    return SB_OK;
}

/* Events of the work queued so far on each stream of `users` but `except`. The lock keeps a stream
   from being forgotten and destroyed meanwhile; what has to wait does so without it. */
static sb_status record_events(sb_context *context, uint64_t users, const sb_stream *except,
                               void **events, int *count, sb_error *err) {
    sb_status st = sb__device_check(context, err); /* no lock is taken in a forked child */
    *count = 0;
    if (st != SB_OK)
        return st;
    pthread_mutex_lock(&context->streams_lock);
    users &= context->streams_used;
    for (int32_t i = 0; users && st == SB_OK; i++, users >>= 1) {
        if (!(users & 1) || (except && context->streams[i] == *except))
            continue;
        st = sb__event_record(context, context->streams[i], &events[*count], err);
        *count += st == SB_OK && events[*count];
    }
    pthread_mutex_unlock(&context->streams_lock);
    return st;
}

static void destroy_events(sb_context *context, void **events, int count) {
    for (int i = 0; i < count; i++)
        sb__event_destroy(context, events[i]);
}

sb_status sb__streams_order(sb_context *context, uint64_t users, sb_stream stream, sb_error *err) {
    void *events[SB__MAX_STREAMS];
    int count;
    sb_status st = record_events(context, users, &stream, events, &count, err);
    for (int i = 0; i < count && st == SB_OK; i++)
        st = sb__stream_wait(context, stream, events[i], err);
    destroy_events(context, events, count);
    return st;
}

sb_status sb__streams_wait(sb_context *context, uint64_t users, sb_error *err) {
    void *events[SB__MAX_STREAMS];
    int count;
    sb_status st = record_events(context, users, NULL, events, &count, err);
    for (int i = 0; i < count && st == SB_OK; i++)
        st = sb__event_wait(context, events[i], err);
    destroy_events(context, events, count);
    return st;
}

/* Asked twice: a wait may fail without having waited. */
static void end_stream(sb_context *context, sb_stream stream) {
    sb_error ignored = {.code = SB_OK};
    for (int tries = 0; tries < 2; tries++)
        if (context->backend.stream_synchronize(context->device, stream, &ignored) == SB_OK)
            return;
}

void sb__streams_end(sb_context *context) {
    if (!context->backend.stream_synchronize || !sb__context_is_ours(context))
        return;
    end_stream(context, context->stream);
    pthread_mutex_lock(&context->streams_lock);
    for (int32_t i = 0; i < SB__MAX_STREAMS; i++)
        if (context->streams_used & bit(i))
            end_stream(context, context->streams[i]);
    pthread_mutex_unlock(&context->streams_lock);
}

sb_status sb_context_forget_stream(sb_context *context, sb_stream stream, sb_error *err) {
    context = sb__context(context);
    sb_status st = sb__device_check(context, err);
    if (st != SB_OK)
        return st;
    pthread_mutex_lock(&context->streams_lock);
    int32_t slot = find_slot(context, stream);
    if (slot > 0) { /* slot 0 is the legacy default stream, which cannot be destroyed */
        st = sb__device_synchronize(context, stream, err);
        if (st == SB_OK)
            context->streams_used &= ~bit(slot);
    }
    pthread_mutex_unlock(&context->streams_lock);
    return st;
}
