#include "context/context.h"

void sb__host_release(sb_context *context, void *buffer, size_t bytes, bool pinned) {
    if (!pinned) {
        sb__ordinary_free(context, buffer, bytes, SB_ALLOC_ZEROED);
        return;
    }
    /* A forked child must not free the parent's page-locked memory. */
    if (sb__context_is_ours(context))
        context->backend.free_pinned(context->device, buffer, bytes);
    sb__account_give(&context->pinned, bytes);
}
