#include "memory/mem.h"

#include "base/error.h"
#include "host/arithmetic.h"

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
    atomic_store_explicit(&mem->word, word, memory_order_release);
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

sb_status sb__settle(sb_mem *mem, sb_error *err) {
    int32_t side = mem->pending;
    if (side < 0)
        return SB_OK;
    sb_status st = sb__event_wait(mem->context, mem->event, err);
    if (st == SB_ERR_FORKED)
        return st;
    sb__event_destroy(mem->context, mem->event);
    mem->event = NULL;
    mem->pending = -1;
    if (st != SB_OK) {
        sb__publish(mem, side == SB_SIDE_CPU ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU);
        return st;
    }
    if (side == SB_SIDE_CPU) /* the copy came after the writer's work, so that is done too */
        mem->writer = -1;
    sb__publish(mem, sb__head(mem));
    return SB_OK;
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
    /* Only work on the stream of the allocation may use it at once. */
    if (st == SB_OK && side == SB_SIDE_GPU && !target->queued && mem->bytes) {
        st = sb__device_synchronize(mem->context, stream, err);
        if (st != SB_OK)
            sb__storage_drop(*replaces ? fresh : now, mem->context, side, mem->bytes);
    }
    return st;
}

/* Waits for work just queued, or leaves it to `pending` (-1: nobody has to wait on the host). */
static sb_status finish(sb_mem *mem, const struct sb__target *target, int32_t pending,
                        sb_error *err) {
    if (!target->queued)
        return sb__device_synchronize(mem->context, target->stream, err);
    if (pending < 0)
        return SB_OK;
    sb_status st = sb__event_record(mem->context, target->stream, &mem->event, err);
    if (st != SB_OK) { /* nobody could wait for the copy later, so it has to end now */
        (void)sb__device_synchronize(mem->context, target->stream, NULL);
        return st;
    }
    mem->pending = mem->event ? pending : -1;
    return SB_OK;
}

sb_status sb__zero(sb_mem *mem, int32_t side, const struct sb__target *target, sb_error *err) {
    void *ptr = mem->side[side].ptr;
    if (!mem->bytes)
        return SB_OK;
    if (side == SB_SIDE_CPU) {
        sb__host_zero(&mem->context->parallel, ptr, mem->bytes);
        return SB_OK;
    }
    sb_status st = sb__device_zero(mem->context, ptr, mem->bytes, target->stream, err);
    return st == SB_OK ? finish(mem, target, -1, err) : st;
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
    return st == SB_OK ? finish(mem, target, side, err) : st;
}

/* Orders the library's own stream, on which device memory is freed, after all users; the host waits
   too where the memory is the caller's. A device that fails here has nothing left to wait for. */
static void end_device_use(sb_mem *mem, bool wait) {
    struct sb__target own = sb__own_stream(mem);
    pthread_mutex_lock(&mem->lock);
    uint64_t users = users_before(mem, &own);
    pthread_mutex_unlock(&mem->lock);
    if (users)
        (void)sb__streams_order(mem->context, users, own.stream, NULL);
    if (wait && sb__streams_wait(mem->context, 1, NULL) == SB_OK) /* users of plain pointers */
        (void)sb__device_synchronize(mem->context, own.stream, NULL);
}

void sb__retire(sb_mem *mem, int32_t side, struct sb__storage *storage) {
    if (!storage->ptr)
        return;
    if (side == SB_SIDE_GPU && mem->bytes && sb_context_device_status(mem->context) == SB_OK)
        end_device_use(mem, storage->kind >= SB_STORAGE_BORROWED);
    sb__storage_drop(storage, mem->context, side, mem->bytes);
}
