#include "memory/lease.h"

#include "memory/mem.h"

sb_status sb__lease_prepare(const sb_mem *mem, struct sb__lease **out, sb_error *err) {
    void *object;
    sb_status st = sb__object_alloc(mem->context, sizeof(struct sb__lease), &object, err);
    if (st != SB_OK)
        return st;
    struct sb__lease *lease = object;
    lease->context = sb__context(sb_context_retain(sb__context_public(mem->context)));
    lease->bytes = mem->bytes;
    *out = lease;
    return SB_OK;
}

void sb__lease_discard(struct sb__lease *lease) {
    sb_context *context = lease->context;
    sb__object_free(context, lease, sizeof *lease);
    sb_context_release(context);
}

struct sb__lease *sb__lease_take(sb_mem *mem, int32_t side, struct sb__lease *lease) {
    struct sb__lease *unused = lease;
    pthread_mutex_lock(&mem->lock);
    struct sb__storage *storage = &mem->side[side];
    if (!storage->lease) {
        lease->side = side;
        lease->storage = *storage;
        atomic_store_explicit(&lease->holders, 1, memory_order_relaxed);
        storage->lease = lease;
        unused = NULL;
    }
    lease = storage->lease;
    atomic_fetch_add_explicit(&lease->holders, 1, memory_order_relaxed);
    pthread_mutex_unlock(&mem->lock);
    if (unused)
        sb__lease_discard(unused);
    return lease;
}

void sb__lease_release(struct sb__lease *lease) {
    if (atomic_fetch_sub_explicit(&lease->holders, 1, memory_order_acq_rel) != 1)
        return;
    sb__storage_drop(&lease->storage, lease->context, lease->side, lease->bytes);
    sb__lease_discard(lease);
}
