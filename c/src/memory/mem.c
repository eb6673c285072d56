#include "memory/mem.h"

#include "base/error.h"
#include "memory/lease.h"

sb_status sb_mem_create(sb_context *context, size_t bytes, sb_mem **out, sb_error *err) {
    void *object;
    if (!out)
        return sb__fail_null(err, "out");
    if (bytes > PTRDIFF_MAX)
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW, "%zu bytes are more than PTRDIFF_MAX", bytes);
    context = sb__context(context);
    sb_status st = sb__object_alloc(context, sizeof(sb_mem), &object, err);
    if (st != SB_OK)
        return st;
    sb_mem *mem = object;
    mem->context = sb_context_retain(context);
    mem->bytes = bytes;
    mem->writer = -1;
    mem->exposed_at = SB__NOT_EXPOSED;
    mem->pending = -1;
    sb__mutex_init(&mem->lock);
    atomic_store_explicit(&mem->refs, 1, memory_order_relaxed);
    sb__publish(mem, SB_HEAD_UNINITIALIZED);
    *out = mem;
    return SB_OK;
}

/* After this many failed tries a forked child concludes that a thread of the parent held the lock
   at the fork. If a thread of the child held the lock, it would have set locked_in. */
enum { ORPHAN_TRIES = 200 };

static bool lock_in_child(sb_mem *mem) {
    for (int tries = 0; tries < ORPHAN_TRIES; tries++) {
        if (sb__mutex_try_lock(&mem->lock))
            return true;
        if (atomic_load_explicit(&mem->locked_in, memory_order_relaxed) ==
            sb__counter_read(&sb__fork_generation)) {
            sb__mutex_lock(&mem->lock);
            return true;
        }
        sb__sleep_milliseconds(1);
    }
    return false;
}

sb_status sb__lock(sb_mem *mem, sb_error *err) {
    if (sb__context_is_ours(mem->context))
        sb__mutex_lock(&mem->lock);
    else if (!lock_in_child(mem))
        return sb__fail(err, SB_ERR_FORKED,
                        "another thread was changing the memory when the process was forked");
    atomic_store_explicit(&mem->locked_in, sb__counter_read(&sb__fork_generation),
                          memory_order_relaxed);
    return SB_OK;
}

void sb__unlock(sb_mem *mem) {
    sb__mutex_unlock(&mem->lock);
}

sb_status sb__check_alignment(sb_mem *mem, size_t element_size, sb_error *err) {
    sb_status st = sb__lock(mem, err);
    if (st != SB_OK)
        return st;
    const uintptr_t both =
        (uintptr_t)mem->side[SB_SIDE_CPU].ptr | (uintptr_t)mem->side[SB_SIDE_GPU].ptr;
    sb__unlock(mem);
    if (both % element_size == 0) /* element_size is a power of two */
        return SB_OK;
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                    "the memory's bytes are not aligned for elements of %zu bytes", element_size);
}

sb_mem *sb_mem_retain(sb_mem *mem) {
    if (mem)
        atomic_fetch_add_explicit(&mem->refs, 1, memory_order_relaxed);
    return mem;
}

void sb__mem_destroy(sb_mem *mem) {
    sb_context *context = mem->context;
    sb__end_transfer(mem);
    sb__event_release(context, mem->event);
    sb__forget_writers(mem);
    sb__quarantine_ask(context);
    sb__storage_end(&mem->side[SB_SIDE_CPU], context, SB_SIDE_CPU, mem->bytes);
    sb__storage_end(&mem->side[SB_SIDE_GPU], context, SB_SIDE_GPU, mem->bytes);
    sb__mutex_destroy(&mem->lock);
    sb__object_free(context, mem, sizeof *mem);
    sb_context_release(context);
}

bool sb__mem_drop_owner(sb_mem *mem) {
    return atomic_fetch_sub_explicit(&mem->refs, 1, memory_order_acq_rel) == 1;
}

void sb_mem_release(sb_mem *mem) {
    if (mem && sb__mem_drop_owner(mem))
        sb__mem_destroy(mem);
}

/* Returns whether other holders of the storage may write it, or may see writes to this memory.
   Other holders never see writes to read-only storage, because a write replaces that storage
   first. */
static bool is_written_by_others(const sb_mem *mem, int32_t side) {
    const struct sb__storage *storage = &mem->side[side];
    return storage->kind != SB_STORAGE_BORROWED_READ_ONLY && sb__lease_is_shared(storage);
}

static bool has_guests(const sb_mem *mem) {
    sb_mem *m = (sb_mem *)mem;
    if (sb__lock(m, NULL) != SB_OK)
        return true;
    bool has = is_written_by_others(m, SB_SIDE_CPU) || is_written_by_others(m, SB_SIDE_GPU);
    sb__unlock(m);
    return has;
}

int32_t sb_mem_is_unique(const sb_mem *mem) {
    if (!mem || atomic_load_explicit(&mem->refs, memory_order_acquire) != 1)
        return 0;
    return !atomic_load_explicit(&mem->is_leased, memory_order_relaxed) || !has_guests(mem);
}

size_t sb_mem_size(const sb_mem *mem) {
    return mem ? mem->bytes : 0;
}

sb_head sb_mem_head(const sb_mem *mem) {
    return mem ? sb__head(mem) : SB_HEAD_UNINITIALIZED;
}

sb_storage sb_mem_storage(const sb_mem *mem, sb_side side) {
    if (!mem || (side != SB_SIDE_CPU && side != SB_SIDE_GPU))
        return SB_STORAGE_NONE;
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_relaxed);
    return (int32_t)(word >> (side == SB_SIDE_CPU ? SB__CPU_KIND : SB__GPU_KIND) & SB__KIND_MASK);
}

sb_context *sb_mem_context(const sb_mem *mem) {
    return mem ? sb__context_public(mem->context) : NULL;
}
