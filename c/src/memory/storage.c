#include "memory/storage.h"

#include "memory/lease.h"

#include <syncblob/mem.h>

/* What a memory of size 0 points to: not NULL, aligned, never read or written. */
static _Alignas(64) char sentinel[64];

sb_status sb__storage_alloc(struct sb__storage *out, sb_context *context, int32_t side,
                            size_t bytes, bool zeroed, sb_stream stream, sb_error *err) {
    struct sb__storage made = {.ptr = sentinel, .kind = SB_STORAGE_OWNED};
    bool pinned = false;
    sb_status st = SB_OK;
    if (bytes && side == SB_SIDE_GPU)
        st = sb__device_alloc(context, bytes, stream, &made.ptr, err);
    else if (bytes)
        st = sb__host_alloc(context, bytes, zeroed, &pinned, &made.ptr, err);
    if (st != SB_OK)
        return st;
    if (pinned)
        made.kind = SB_STORAGE_PINNED;
    *out = made;
    return SB_OK;
}

static bool is_borrowed(const struct sb__storage *storage) {
    return storage->kind == SB_STORAGE_BORROWED || storage->kind == SB_STORAGE_BORROWED_READ_ONLY;
}

void sb__storage_drop(struct sb__storage *storage, sb_context *context, int32_t side,
                      size_t bytes) {
    struct sb__storage old = *storage;
    *storage = (struct sb__storage){.kind = SB_STORAGE_NONE};
    if (old.lease) {
        sb__lease_release(old.lease);
    } else if (is_borrowed(&old)) {
        sb__counter_subtract(&context->borrowed, bytes);
        if (old.deleter)
            old.deleter(old.user, old.ptr);
    } else if (old.ptr && bytes) {
        if (side == SB_SIDE_GPU)
            sb__device_free(context, old.ptr, bytes);
        else
            sb__host_free(context, old.ptr, bytes, old.kind == SB_STORAGE_PINNED);
    }
}
