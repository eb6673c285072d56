#include "memory/lease.h"

#include "memory/mem.h"

sb_status sb__lease_prepare(const sb_mem *mem, struct sb__lease **out, sb_error *err) {
    void *object;
    sb_status st = sb__object_alloc(mem->context, sizeof(struct sb__lease), &object, err);
    if (st != SB_OK)
        return st;
    struct sb__lease *lease = object;
    lease->context = sb_context_retain(mem->context);
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
    if (side == SB_SIDE_CPU && sb__is_one_storage(mem))
        side = SB_SIDE_GPU;
    struct sb__storage *storage = &mem->side[side];
    struct sb__lease *held = NULL;
    lease->side = side;
    lease->storage.ptr = storage->ptr;
    lease->storage.kind = storage->kind;
    lease->storage.deleter = storage->deleter;
    lease->storage.user = storage->user;
    lease->storage.kept = storage->kept;
    lease->storage.is_exposed = true;
    atomic_store_explicit(&lease->holders, 2, memory_order_relaxed); /* the memory and the caller */
    atomic_store_explicit(&mem->is_leased, true, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&storage->lease, &held, lease, memory_order_acq_rel,
                                                memory_order_acquire))
        return lease;
    atomic_fetch_add_explicit(&held->holders, 1, memory_order_relaxed);
    sb__lease_discard(lease);
    return held;
}

bool sb__lease_is_shared(const struct sb__storage *storage) {
    const struct sb__lease *lease = atomic_load_explicit(&storage->lease, memory_order_acquire);
    return lease && atomic_load_explicit(&lease->holders, memory_order_acquire) > 1;
}

void sb__lease_release(struct sb__lease *lease, uint64_t users) {
    atomic_fetch_or_explicit(&lease->users, users, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&lease->holders, 1, memory_order_acq_rel) != 1)
        return;
    lease->storage.users = atomic_load_explicit(&lease->users, memory_order_relaxed);
    sb__storage_end(&lease->storage, lease->context, lease->side, lease->bytes);
    sb__lease_discard(lease);
}
