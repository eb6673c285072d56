#include "memory/mem.h"

#include "base/error.h"

#include <string.h>

static uint64_t slot_bit(int32_t slot) {
    return slot < 0 ? 0 : (uint64_t)1 << slot;
}

static bool may_write(const struct sb__storage *storage) {
    return storage->ptr && storage->kind != SB_STORAGE_BORROWED_READ_ONLY;
}

void sb__publish(sb_mem *mem, int32_t head) {
    uint32_t word = (uint32_t)head;
    bool cpu = head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED;
    bool gpu = head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
    if (cpu && mem->pending != SB_SIDE_CPU)
        word |= SB__CPU_READY;
    if (gpu && mem->pending != SB_SIDE_GPU && mem->writer < 0)
        word |= SB__GPU_READY;
    if (may_write(&mem->side[SB_SIDE_CPU]))
        word |= SB__CPU_WRITABLE;
    if (may_write(&mem->side[SB_SIDE_GPU]) && !mem->users)
        word |= SB__GPU_WRITABLE;
    if (mem->pending == SB_SIDE_CPU)
        word |= SB__CPU_PENDING;
    if (mem->pending == SB_SIDE_GPU)
        word |= SB__GPU_PENDING;
    if (mem->side[SB_SIDE_CPU].kind == SB_STORAGE_PINNED &&
        mem->context->backend.flags & SB_BACKEND_PINNED_NOT_IN_CHILD)
        word |= SB__CPU_NOT_IN_CHILD;
    atomic_store_explicit(&mem->word, word, memory_order_release);
}

sb_status sb__side_check(const sb_mem *mem, int32_t side, sb_error *err) {
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_relaxed);
    bool asks_device = side == SB_SIDE_GPU || !sb__host_is_mapped(mem, word);
    return asks_device ? sb__device_check(mem->context, err) : SB_OK;
}

struct sb__target sb__own_stream(const sb_mem *mem) {
    return (struct sb__target){.queued = false, .stream = mem->context->stream, .slot = -1};
}

sb_status sb__queued_on(sb_mem *mem, sb_stream stream, struct sb__target *out, sb_error *err) {
    *out = (struct sb__target){.queued = true, .stream = stream, .slot = -1};
    return sb__stream_slot(mem->context, stream, &out->slot, err);
}

sb_status sb__fail_lost(sb_error *err) {
    return sb__fail(err, SB_ERR_UNINITIALIZED,
                    "the bytes were lost with the device; set or overwrite the memory first");
}

/* A wait may fail without having waited. Host memory may be freed or written next, so that what is
   queued has to end all the same. */
static sb_status wait_out(sb_context *context, sb_stream stream, sb_error *err) {
    sb_status st = sb__device_synchronize(context, stream, err);
    if (st == SB_ERR_DEVICE_FAILURE)
        (void)sb__device_synchronize(context, stream, NULL);
    return st;
}

sb_status sb__settle(sb_mem *mem, sb_error *err) {
    int32_t side = mem->pending;
    if (side < 0)
        return SB_OK;
    sb_status st = sb__event_wait(mem->context, mem->event, err);
    if (st == SB_ERR_FORKED)
        return st;
    bool copied = st == SB_OK || (st == SB_ERR_DEVICE_FAILURE &&
                                  sb__event_wait(mem->context, mem->event, NULL) == SB_OK);
    sb__event_destroy(mem->context, mem->event);
    mem->event = NULL;
    mem->pending = -1;
    if (!copied) {
        sb__publish(mem, mem->fallback);
        return st;
    }
    if (side == SB_SIDE_CPU) /* the copy came after the writer's work, so that is done too */
        mem->writer = -1;
    sb__publish(mem, sb__head(mem));
    return st;
}

/* A stream that the caller named need not be ordered with the legacy default stream, on which the
   users of plain pointers work: slot 0 stands for them. */
static uint64_t users_before(const sb_mem *mem, const struct sb__target *target) {
    return mem->users | slot_bit(mem->writer) |
           (target->queued && target->slot > 0 && mem->bytes ? 1 : 0);
}

sb_status sb__after_users(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    uint64_t users = users_before(mem, target);
    if (!users)
        return SB_OK;
    if (target->queued)
        return sb__streams_order(mem->context, users, target->stream, err);
    return sb__streams_wait(mem->context, users, err);
}

sb_status sb__writable_storage(sb_mem *mem, int32_t side, bool force, bool zeroed,
                               const struct sb__target *target, struct sb__storage *fresh,
                               bool *replaces, sb_error *err) {
    struct sb__storage *now = &mem->side[side];
    *replaces = now->ptr && (force || !may_write(now));
    if (now->ptr && !*replaces)
        return SB_OK;
    sb_stream stream = target->stream;
    sb_status st = sb__storage_alloc(*replaces ? fresh : now, mem->context, side, mem->bytes,
                                     zeroed, stream, err);
    if (st != SB_OK || side == SB_SIDE_CPU || !mem->bytes)
        return st;
    /* Only work on the stream of the allocation may use it at once. */
    if (target->queued) {
        mem->users |= slot_bit(target->slot);
    } else {
        st = sb__device_synchronize(mem->context, stream, err);
        if (st != SB_OK)
            sb__storage_drop(*replaces ? fresh : now, mem->context, side, mem->bytes);
    }
    return st;
}

void sb__discard(sb_mem *mem, int32_t side, struct sb__storage *fresh,
                 const struct sb__target *target) {
    if (side == SB_SIDE_GPU && target->queued && mem->bytes) /* freed on another stream */
        (void)sb__device_synchronize(mem->context, target->stream, NULL);
    sb__storage_drop(fresh, mem->context, side, mem->bytes);
}

/* Waits for work just queued into `side`, or leaves it pending. */
static sb_status finish(sb_mem *mem, const struct sb__target *target, int32_t side,
                        int32_t fallback, sb_error *err) {
    if (!target->queued)
        return wait_out(mem->context, target->stream, err);
    sb_status st = sb__event_record(mem->context, target->stream, &mem->event, err);
    if (st != SB_OK) { /* nobody could wait for the copy later, so it has to end now */
        (void)sb__device_synchronize(mem->context, target->stream, NULL);
        return st;
    }
    mem->pending = mem->event ? side : -1;
    mem->fallback = fallback;
    return SB_OK;
}

sb_status sb__zero(sb_mem *mem, int32_t side, const struct sb__target *target, sb_error *err) {
    void *ptr = mem->side[side].ptr;
    if (!mem->bytes)
        return SB_OK;
    if (side == SB_SIDE_CPU) { /* not on the caller's threads: the lock is held */
        memset(ptr, 0, mem->bytes);
        return SB_OK;
    }
    sb_status st = sb__device_zero(mem->context, ptr, mem->bytes, target->stream, err);
    return st == SB_OK ? finish(mem, target, side, SB_HEAD_UNINITIALIZED, err) : st;
}

sb_status sb__transfer(sb_mem *mem, int32_t side, void *dst, const struct sb__target *target,
                       sb_error *err) {
    const void *src = mem->side[1 - side].ptr;
    if (!mem->bytes)
        return SB_OK;
    sb_status st = SB_OK;
    uint64_t users = users_before(mem, target);
    if (users)
        st = sb__streams_order(mem->context, users, target->stream, err);
    if (st == SB_OK)
        st = sb__device_copy(mem->context, side == SB_SIDE_CPU ? SB__DOWNLOAD : SB__UPLOAD, dst,
                             src, mem->bytes, target->stream, err);
    int32_t fallback = side == SB_SIDE_CPU ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU;
    return st == SB_OK ? finish(mem, target, side, fallback, err) : st;
}

/* Orders the library's own stream, on which device memory is freed, after all users; the host waits
   too where the memory is the caller's: for the legacy default stream, on which the users of plain
   pointers work and which waits for the own one. */
static sb_status end_device_use(sb_mem *mem, bool wait) {
    struct sb__target own = sb__own_stream(mem);
    pthread_mutex_lock(&mem->lock);
    uint64_t users = users_before(mem, &own);
    pthread_mutex_unlock(&mem->lock);
    sb_status st = SB_OK;
    if (users)
        st = sb__streams_order(mem->context, users, own.stream, NULL);
    if (st == SB_OK && wait)
        st = sb__streams_wait(mem->context, 1, NULL);
    return st;
}

void sb__retire(sb_mem *mem, int32_t side, struct sb__storage *storage) {
    if (!storage->ptr)
        return;
    if (side == SB_SIDE_GPU && mem->bytes && sb_context_device_status(mem->context) == SB_OK)
        for (int tries = 0; tries < 2; tries++) /* as in wait_out */
            if (end_device_use(mem, storage->kind >= SB_STORAGE_BORROWED) == SB_OK)
                break;
    sb__storage_drop(storage, mem->context, side, mem->bytes);
}
