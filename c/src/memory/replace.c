/* Implements the calls that replace, reclaim or evict the storage of a side. */
#include "memory/mem.h"

#include "base/error.h"
#include "memory/lease.h"

static sb_status check_set(const sb_mem *mem, int32_t side, const void *ptr, size_t bytes,
                           uint32_t flags, sb_error *err) {
    if (!mem || !ptr)
        return sb__fail_null(err, mem ? "ptr" : "mem");
    if (bytes != mem->bytes)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the memory has %zu bytes, %zu were given",
                        mem->bytes, bytes);
    if (flags & ~(uint32_t)SB_READ_ONLY)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
    if (side == SB_SIDE_CPU)
        return SB_OK;
    return bytes ? sb__device_check_pointer(mem->context, ptr, bytes, err)
                 : sb__device_check(mem->context, err);
}

/* Returns whether `ptr` overlaps the other side's bytes only in part. Equal addresses are allowed:
   both sides may be the same bytes of managed memory. */
static bool overlaps_in_part(const sb_mem *mem, int32_t other, const void *ptr) {
    const void *there = mem->side[other].ptr;
    return there && there != ptr && sb__overlap(there, ptr, mem->bytes);
}

static sb_status set_side(sb_mem *mem, enum sb__call call, int32_t side,
                          const struct sb__storage *lent, sb_error *err) {
    struct sb__storage dropped;
    sb_status st = sb__lock(mem, err);
    if (st != SB_OK)
        return st;
    st = sb__settle(mem, err);
    if (st == SB_OK && overlaps_in_part(mem, 1 - side, lent->ptr))
        st = sb__fail_overlap(err);
    if (st == SB_OK) {
        dropped = mem->side[side];
        mem->side[side] = *lent;
        sb__forget_writers(mem);
        if (side == SB_SIDE_GPU)
            mem->own_work = SB__OWN_NONE; /* the library's work used the old storage */
        sb__publish(mem, sb__state(sb__head(mem), call).head);
    }
    sb__unlock(mem);
    if (st == SB_OK)
        sb__storage_end(&dropped, mem->context, side, mem->bytes);
    return st;
}

static sb_status lend_and_set(sb_mem *mem, enum sb__call call, int32_t side, void *ptr,
                              uint32_t flags, sb_deleter deleter, void *user, sb_error *err) {
    struct sb__storage lent;
    sb_status st =
        sb__storage_lend(&lent, mem->context, mem->bytes, ptr, flags, deleter, user, err);
    if (st != SB_OK)
        return st;
    st = set_side(mem, call, side, &lent, err);
    if (st != SB_OK)
        sb__storage_unlend(&lent, mem->context, mem->bytes);
    return st;
}

sb_status sb_mem_set_cpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags, sb_deleter deleter,
                         void *user, sb_error *err) {
    sb_status st = check_set(mem, SB_SIDE_CPU, ptr, bytes, flags, err);
    return st == SB_OK ? lend_and_set(mem, SB__SET_CPU, SB_SIDE_CPU, ptr, flags, deleter, user, err)
                       : st;
}

sb_status sb_mem_set_gpu(sb_mem *mem, void *ptr, size_t bytes, uint32_t flags, sb_deleter deleter,
                         void *user, sb_error *err) {
    sb_status st = check_set(mem, SB_SIDE_GPU, ptr, bytes, flags, err);
    return st == SB_OK ? lend_and_set(mem, SB__SET_GPU, SB_SIDE_GPU, ptr, flags, deleter, user, err)
                       : st;
}

/* Prepares a lease's storage for use as a side of another memory. If host-coherent device memory
   becomes a host side, waits for the queued work that may use it: later host writes do not wait for
   that work. */
static sb_status prepare_guest(int32_t side, const struct sb__lease *lease, sb_error *err) {
    const bool is_coherent = side == SB_SIDE_CPU && lease->side == SB_SIDE_GPU;
    sb_status st = SB_OK;
    if (is_coherent || !sb__storage_is_in_child(&lease->storage, lease->context))
        st = sb__device_check_process(lease->context, err);
    if (st == SB_OK && is_coherent)
        st = sb__streams_wait(lease->context, SB__ALL_STREAMS & ~sb__slot_bit(SB__READ_SLOT), err);
    return st;
}

sb_status sb__mem_join(sb_mem *mem, int32_t side, void *ptr, uint32_t flags,
                       struct sb__lease *lease, sb_error *err) {
    struct sb__storage joined;
    sb_status st = check_set(mem, side, ptr, mem->bytes, flags, err);
    if (st == SB_OK)
        st = prepare_guest(side, lease, err);
    if (st == SB_OK)
        st = sb__storage_join(&joined, mem->context, mem->bytes, ptr, flags, lease, err);
    if (st != SB_OK)
        return st;
    st = set_side(mem, side == SB_SIDE_CPU ? SB__SET_CPU : SB__SET_GPU, side, &joined, err);
    if (st == SB_OK)
        atomic_store_explicit(&mem->is_leased, true, memory_order_relaxed);
    else
        sb__storage_unlend(&joined, mem->context, mem->bytes);
    return st;
}

static bool may_be_copied(const struct sb__storage *storage, struct sb__lease *lease) {
    return storage->users ||
           (lease && atomic_load_explicit(&lease->users, memory_order_relaxed) != 0);
}

/* Returns why the storage cannot be reclaimed, or NULL if it can. */
static const char *why_not_reclaimed(const sb_mem *mem, struct sb__lease *lease,
                                     const struct sb__storage *lent, sb_deleter deleter) {
    const struct sb__storage *storage = &mem->side[SB_SIDE_CPU];
    int32_t head = sb__head(mem);
    if (!storage->ptr || lent->ptr != storage->ptr || lent->deleter != deleter)
        return "the host's bytes were not lent with that deleter";
    if (atomic_load_explicit(&mem->refs, memory_order_acquire) != 1 || sb__lease_is_shared(storage))
        return "the memory has other users";
    if (head != SB_HEAD_AT_CPU && head != SB_HEAD_SYNCED)
        return "the host's bytes are not current";
    return may_be_copied(storage, lease) ? "a copy may still use the host's bytes" : NULL;
}

sb_status sb__mem_reclaim(sb_mem *mem, sb_deleter deleter, void **out, sb_error *err) {
    sb_status st = sb__lock(mem, err);
    if (st != SB_OK)
        return st;
    st = sb__settle(mem, err);
    struct sb__lease *lease = mem->side[SB_SIDE_CPU].lease;
    struct sb__storage *lent = lease ? &lease->storage : &mem->side[SB_SIDE_CPU];
    const char *why = st == SB_OK ? why_not_reclaimed(mem, lease, lent, deleter) : NULL;
    if (why)
        st = sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%s", why);
    if (st == SB_OK) {
        *out = lent->user;
        lent->deleter = NULL;
    }
    sb__unlock(mem);
    return st;
}

static sb_status refuse_evict(const sb_mem *mem, int32_t side, sb_error *err) {
    if (sb__head(mem) == SB_HEAD_LOST)
        return sb__fail_lost(err);
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the %s holds the only current bytes",
                    side == SB_SIDE_CPU ? "host" : "device");
}

static sb_status evict(sb_mem *mem, enum sb__call call, int32_t side, sb_error *err) {
    struct sb__storage dropped = {.kind = SB_STORAGE_NONE};
    if (!mem)
        return sb__fail_null(err, "mem");
    sb_status st = sb__lock(mem, err);
    if (st != SB_OK)
        return st;
    st = sb__settle(mem, err);
    struct sb__cell cell = sb__state(sb__head(mem), call);
    if (st == SB_OK && atomic_load(&mem->open_writes))
        st = sb__fail(err, SB_ERR_INVALID_ARGUMENT, "a write to the memory is open; end it first");
    if (st == SB_OK && cell.work == SB__REFUSE)
        st = refuse_evict(mem, side, err);
    const bool keeps = sb__is_one_storage(mem); /* shared storage remains: only the head moves */
    if (st == SB_OK && keeps && side == SB_SIDE_GPU)
        st = sb__await_users(mem, err);
    if (st == SB_OK && !keeps) {
        dropped = mem->side[side];
        mem->side[side] = (struct sb__storage){.kind = SB_STORAGE_NONE};
        if (side == SB_SIDE_GPU)
            mem->own_work = SB__OWN_NONE;
    }
    if (st == SB_OK)
        sb__publish(mem, cell.head);
    sb__unlock(mem);
    sb__storage_end(&dropped, mem->context, side, mem->bytes);
    return st;
}

sb_status sb_mem_evict_cpu(sb_mem *mem, sb_error *err) {
    return evict(mem, SB__EVICT_CPU, SB_SIDE_CPU, err);
}

sb_status sb_mem_evict_gpu(sb_mem *mem, sb_error *err) {
    return evict(mem, SB__EVICT_GPU, SB_SIDE_GPU, err);
}
