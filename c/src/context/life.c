/* Counts the owners of a context, and destroys the context. */
#include "context/context.h"

static void end(sb_context *context) {
    sb__cache_shrink(context, 0);
    sb__own_kept_end(context);
    if (context->has_device && sb__context_is_ours(context))
        context->backend.close(context->device);
    sb__streams_free(context);
    sb__mutex_destroy(&context->own_lock);
    sb__mutex_destroy(&context->waits.lock);
    sb__mutex_destroy(&context->streams.lock);
    sb__mutex_destroy(&context->events.lock);
    sb__mutex_destroy(&context->quarantine.lock);
    sb__mutex_destroy(&context->cache.lock);
    sb_allocator allocator = context->allocator;
    allocator.free(allocator.user, context, sizeof *context, SB__BUFFER_ALIGNMENT,
                   SB_ALLOC_OBJECT | SB_ALLOC_ZEROED);
}

sb_context *sb_context_retain(sb_context *context) {
    if (context && !sb__context_is_built_in(context))
        atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

int64_t sb__context_drop_owner(sb_context *context) {
    int64_t left = atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) - 1;
    if (left == 0)
        end(context);
    return left;
}
