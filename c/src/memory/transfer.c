#include "memory/mem.h"

#include "base/error.h"
#include "memory/write.h"

#include <string.h>

/* Returns false for host storage that has users, because a copy may still be using the storage. */
static bool may_write(const sb_mem *mem, int32_t side) {
    const struct sb__storage *storage = &mem->side[side];
    return storage->ptr && storage->kind != SB_STORAGE_BORROWED_READ_ONLY &&
           (side == SB_SIDE_GPU || !storage->users);
}

/* Returns the bits SB__READ_AT_HOST and SB__WRITTEN_AT_HOST that follow from `word`. */
static uint32_t at_host(uint32_t word) {
    const uint32_t pending = SB__CPU_PENDING | SB__GPU_PENDING;
    const uint32_t written = SB_HEAD_AT_CPU | SB__CPU_READY | SB__CPU_WRITABLE;
    if (!(word & SB__CPU_READY) || word & SB__CPU_NOT_IN_CHILD)
        return 0;
    if ((word & (SB__HEAD_MASK | pending | written)) != written)
        return SB__READ_AT_HOST;
    return SB__READ_AT_HOST | SB__WRITTEN_AT_HOST;
}

static bool is_coherent(const sb_mem *mem) {
    return mem->context->backend.flags & SB_BACKEND_HOST_COHERENT && mem->bytes;
}

/* Makes the host side share the device side's storage, or ends the sharing. The host side shares
   storage that the library owns on a host-coherent device, unless the host side has separate
   storage. Writes mem->side only if a value changes, because other threads may be reading
   mem->side. */
static void share_storage(sb_mem *mem) {
    struct sb__storage *host = &mem->side[SB_SIDE_CPU];
    const struct sb__storage *device = &mem->side[SB_SIDE_GPU];
    const bool shares = is_coherent(mem) && device->kind == SB_STORAGE_OWNED;
    void *ptr = shares ? device->ptr : NULL;
    if ((!host->ptr || host->is_alias) && host->ptr != ptr)
        *host = (struct sb__storage){
            .ptr = ptr, .kind = shares ? device->kind : SB_STORAGE_NONE, .is_alias = shares};
}

void sb__publish(sb_mem *mem, int32_t head) {
    share_storage(mem);
    uint32_t word = (uint32_t)head;
    bool cpu = head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED;
    bool gpu = head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
    if (cpu && mem->pending != SB_SIDE_CPU)
        word |= SB__CPU_READY;
    if (gpu && mem->pending != SB_SIDE_GPU && mem->writer < 0 && mem->own_work != SB__OWN_WRITES &&
        !mem->made_by.count && mem->side[SB_SIDE_GPU].is_exposed)
        word |= SB__GPU_READY;
    if (may_write(mem, SB_SIDE_CPU))
        word |= SB__CPU_WRITABLE;
    if (may_write(mem, SB_SIDE_GPU) && !mem->side[SB_SIDE_GPU].users &&
        mem->own_work == SB__OWN_NONE)
        word |= SB__GPU_WRITABLE;
    if (mem->pending == SB_SIDE_CPU)
        word |= SB__CPU_PENDING;
    if (mem->pending == SB_SIDE_GPU)
        word |= SB__GPU_PENDING;
    if (!sb__storage_is_in_child(&mem->side[SB_SIDE_CPU], mem->context))
        word |= SB__CPU_NOT_IN_CHILD;
    word |= (uint32_t)mem->side[SB_SIDE_CPU].kind << SB__CPU_KIND;
    word |= (uint32_t)mem->side[SB_SIDE_GPU].kind << SB__GPU_KIND;
    word |= at_host(word);
    atomic_store_explicit(&mem->word, word, memory_order_release);
}

sb_status sb__side_check(const sb_mem *mem, int32_t side, sb_error *err) {
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_relaxed);
    if (side == SB_SIDE_GPU)
        return sb__device_check(mem->context, err);
    return sb__host_is_mapped(mem, word) ? (sb_status)SB_OK
                                         : sb__device_check_process(mem->context, err);
}

struct sb__target sb__own_target(const sb_mem *mem, enum sb__target_kind kind) {
    return (struct sb__target){.kind = kind, .slot = SB__OWN_SLOT, .stream = mem->context->stream};
}

sb_status sb__stream_target(sb_mem *mem, sb_stream stream, struct sb__target *out, sb_error *err) {
    *out = (struct sb__target){.kind = SB__FOR_STREAM,
                               .stream = sb__stream_of_caller(mem->context, stream)};
    return sb__stream_slot(mem->context, out->stream, &out->slot, err);
}

sb_status sb__fail_lost(sb_error *err) {
    return sb__fail(err, SB_ERR_UNINITIALIZED,
                    "the bytes are lost, with the device or with queued work that failed; set or "
                    "overwrite the memory first");
}

sb_status sb__fail_overlap(sb_error *err) {
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                    "the bytes to read and the bytes to write overlap only in part");
}

/* Records `slot` as a user of both sides' storage, because the slot's work may still be running. */
static void leave_in_use(sb_mem *mem, struct sb__storage *fresh, int32_t slot) {
    uint64_t bit = sb__slot_bit(slot);
    mem->side[SB_SIDE_CPU].users |= bit;
    mem->side[SB_SIDE_GPU].users |= bit;
    if (fresh)
        fresh->users |= bit;
    sb__publish(mem, sb__head(mem));
}

uint64_t sb__writers(const sb_mem *mem) {
    uint64_t writers = mem->writer < 0 ? 0 : sb__slot_bit(mem->writer);
    return mem->own_work == SB__OWN_WRITES ? writers | sb__slot_bit(SB__OWN_SLOT) : writers;
}

uint64_t sb__other_writers(const sb_mem *mem, const struct sb__target *target) {
    const bool is_same = target->slot < SB__FIRST_NAMED || mem->writer == target->slot;
    return sb__writers(mem) & ~(is_same ? sb__slot_bit(target->slot) : 0);
}

sb_status sb__note_writers(sb_mem *mem, uint64_t writers, sb_error *err) {
    sb_status st = sb__check_writer(mem, err);
    writers &= sb__writers(mem); /* the check may have found that a writer's work has ended */
    if (st != SB_OK || !writers || !mem->bytes)
        return st;
    st = sb__streams_record(mem->context, writers, mem->exposed_at, &mem->made_by, err);
    /* The event does not report a failure that another wait reported before the record. */
    return st == SB_OK ? sb__check_writer(mem, err) : st;
}

void sb__forget_writers(sb_mem *mem) {
    mem->writer = -1;
    mem->exposed_at = SB__NOT_EXPOSED;
    if (mem->made_by.capacity)
        sb__events_end(mem->context, &mem->made_by);
}

/* Returns the head after device work has failed. If a copy to the host is pending, the copy
   contains bytes that the failed work wrote, so the host's bytes are lost, too. */
static int32_t head_without_device(const sb_mem *mem) {
    const int32_t head = sb__head(mem);
    if (head == SB_HEAD_SYNCED)
        return mem->pending == SB_SIDE_CPU ? SB_HEAD_LOST : SB_HEAD_AT_CPU;
    return head == SB_HEAD_AT_GPU ? SB_HEAD_LOST : head;
}

static void lose_device_bytes(sb_mem *mem) {
    sb__forget_writers(mem);
    sb__publish(mem, head_without_device(mem));
}

sb_status sb__check_writer(sb_mem *mem, sb_error *err) {
    bool is_over;
    if (mem->writer < 0 || mem->exposed_at == SB__NOT_EXPOSED)
        return SB_OK;
    const sb_status st = sb__device_check_process(mem->context, err);
    if (st != SB_OK)
        return st; /* a forked child acquires no lock of the context */
    if (!sb__slot_has_failed(mem->context, mem->writer, mem->exposed_at, &is_over)) {
        if (is_over)
            mem->writer = -1;
        return SB_OK;
    }
    lose_device_bytes(mem);
    return sb__fail_elsewhere(err);
}

static sb_status await(sb_mem *mem, int32_t count, sb_error *err) {
    sb_status st = sb__events_wait(mem->context, &mem->made_by, count, err);
    if (st == SB_OK || st == SB_ERR_DEVICE_LOST || sb__is_unknown(st))
        return st;
    lose_device_bytes(mem);
    return st;
}

sb_status sb__await_writers(sb_mem *mem, uint64_t writers, sb_error *err) {
    const uint64_t own = sb__slot_bit(SB__OWN_SLOT);
    sb_status st = writers & own ? sb__own_wait(mem->context, err) : (sb_status)SB_OK;
    if (st == SB_OK)
        st = sb__note_writers(mem, writers & ~own, err);
    if (st == SB_OK && mem->made_by.count)
        st = await(mem, mem->made_by.count, err);
    if (st == SB_OK) /* another wait may have returned a failure meanwhile */
        st = sb__check_writer(mem, err);
    if (st == SB_OK)
        sb__events_end(mem->context, &mem->made_by);
    return st;
}

/* If a memory has more events than MOST_EVENTS, sb__await_oldest waits, because callers may never
   wait for the events. */
enum { MOST_EVENTS = 32 };

sb_status sb__await_oldest(sb_mem *mem, sb_error *err) {
    return mem->made_by.count > MOST_EVENTS ? await(mem, mem->made_by.count - MOST_EVENTS / 2, err)
                                            : (sb_status)SB_OK;
}

/* Returns the head after a failed transfer: usually the source's side. The head stays AT_GPU on a
   lost device if a write through an exposed pointer has made the device's bytes newer. */
static int32_t head_after_failure(const sb_mem *mem, sb_status st) {
    bool wrote = sb__head(mem) == SB_HEAD_AT_GPU && mem->fallback == SB_HEAD_AT_CPU;
    if (sb__head(mem) == SB_HEAD_LOST)
        return SB_HEAD_LOST; /* the work that wrote the source had failed */
    return wrote && st == SB_ERR_DEVICE_LOST ? SB_HEAD_AT_GPU : mem->fallback;
}

static void end_pending(sb_mem *mem) {
    sb__event_release(mem->context, mem->event);
    mem->event = NULL;
    mem->pending = -1;
}

sb_status sb__settle(sb_mem *mem, sb_error *err) {
    int32_t side = mem->pending, slot = mem->pending_slot;
    if (side < 0)
        return SB_OK;
    sb_status st = sb__event_ask(mem->context, mem->event, err);
    if (sb__is_unknown(st))
        return st;
    bool copied = st == SB_OK;
    if (side == SB_SIDE_CPU && (copied || st == SB_ERR_DEVICE_FAILURE)) {
        /* The copy may have failed because the writers' work has failed. */
        const sb_status written = await(mem, mem->made_by.count, copied ? err : NULL);
        if (copied && sb__is_unknown(written))
            return written;
        st = copied ? written : st;
    }
    if (side == SB_SIDE_CPU && st == SB_OK)
        st = sb__check_writer(mem, err);
    /* The copy was ordered after the writers' work, which has therefore ended, too. */
    if (side == SB_SIDE_CPU ? st == SB_OK : !copied)
        sb__forget_writers(mem);
    int32_t head = st == SB_OK ? sb__head(mem) : head_after_failure(mem, st);
    end_pending(mem);
    sb__publish(mem, head);
    if (!copied && st != SB_ERR_DEVICE_LOST && !sb__streams_over(mem->context, sb__slot_bit(slot)))
        leave_in_use(mem, NULL, slot);
    return st;
}

void sb__end_transfer(sb_mem *mem) {
    (void)sb__settle(mem, NULL);
    if (mem->pending >= 0 && sb__context_is_ours(mem->context))
        leave_in_use(mem, NULL, mem->pending_slot); /* the transfer may still run */
}

uint64_t sb__default_users(const sb_mem *mem, const struct sb__target *target) {
    if (target->kind != SB__FOR_STREAM || !mem->side[SB_SIDE_GPU].is_exposed || !mem->bytes)
        return 0;
    return sb__default_stream(mem->context) & ~sb__slot_bit(target->slot);
}

/* Returns the streams with earlier work on the device side, including the writer's stream. */
static uint64_t users_before(const sb_mem *mem, const struct sb__target *target) {
    uint64_t users = mem->side[SB_SIDE_GPU].users;
    if (mem->own_work != SB__OWN_NONE && !sb__is_for_own(target))
        users |= sb__slot_bit(SB__OWN_SLOT);
    return users | sb__default_users(mem, target);
}

sb_status sb__after_default(sb_mem *mem, const struct sb__storage *storage,
                            const struct sb__target *target, sb_error *err) {
    const bool is_ordered = target->write && target->write->is_ordered;
    if (is_ordered || target->kind == SB__FOR_STREAM || !storage->is_exposed || !mem->bytes)
        return SB_OK;
    return sb__device_try_after_default(mem->context, err);
}

sb_status sb__after_users(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    uint64_t users = users_before(mem, target);
    if (!users && (sb__is_queued(target) || !mem->made_by.count))
        return SB_OK;
    if (sb__is_queued(target))
        return sb__streams_order(mem->context, users, target->stream, err);
    sb_status st = sb__await_writers(mem, users & sb__writers(mem), err);
    users &= ~sb__writers(mem);
    if (st == SB_OK && users)
        st = sb__streams_wait(mem->context, users, err);
    if (st == SB_OK && target->kind == SB__FOR_POINTER)
        mem->own_work = SB__OWN_NONE;
    return st;
}

/* Returns the streams on which callers may use a pointer that they fetched without a stream. */
static uint64_t exposed_users(const sb_mem *mem) {
    return mem->side[SB_SIDE_GPU].is_exposed ? sb__default_stream(mem->context) : 0;
}

/* Waits for the callers' work on the default stream. A wait for the library's stream covers this
   work only if the library has queued a copy behind the work. */
static sb_status await_default(sb_mem *mem, sb_error *err) {
    const uint64_t users = exposed_users(mem);
    return users ? sb__streams_wait(mem->context, users, err) : (sb_status)SB_OK;
}

sb_status sb__await_users(sb_mem *mem, sb_error *err) {
    const struct sb__target target = sb__own_target(mem, SB__FOR_POINTER);
    const struct sb__storage *storage = &mem->side[SB_SIDE_GPU];
    sb_context *context = mem->context;
    const bool shares = mem->bytes && storage->ptr && storage->ptr == mem->side[SB_SIDE_CPU].ptr;
    if (!shares || sb__head(mem) == SB_HEAD_AT_CPU)
        return SB_OK;
    if (sb_context_device_status(context) == SB_ERR_DEVICE_LOST)
        return sb__streams_over(context, users_before(mem, &target) | exposed_users(mem))
                   ? (sb_status)SB_OK
                   : sb__device_check(context, err);
    sb_status st = sb__after_default(mem, storage, &target, err);
    if (st == SB_OK)
        st = sb__after_users(mem, &target, err);
    return st == SB_OK ? await_default(mem, err) : st;
}

/* Records that other streams must not use new device memory before its allocation has ended. */
static void mark_allocation(sb_mem *mem, struct sb__storage *made, bool replaces,
                            const struct sb__target *target) {
    if (target->kind == SB__FOR_STREAM)
        made->users |= sb__slot_bit(target->slot);
    else if (!replaces) /* a replacement becomes the memory's storage only after a wait */
        mem->own_work = SB__OWN_WRITES;
}

sb_status sb__reach_allocation(sb_mem *mem, sb_error *err) {
    sb_status st = sb__own_wait(mem->context, err);
    if (st == SB_OK)
        mem->own_work = SB__OWN_NONE;
    return st;
}

sb_status sb__writable_storage(sb_mem *mem, int32_t side, enum sb__contents contents,
                               const struct sb__target *target, struct sb__storage *fresh,
                               bool *replaces, sb_error *err) {
    struct sb__storage *now = &mem->side[side], *device = &mem->side[SB_SIDE_GPU];
    if (side == SB_SIDE_CPU && is_coherent(mem) && !now->ptr && !device->ptr &&
        sb__storage_alloc_coherent(device, mem->context, mem->bytes, contents))
        share_storage(mem);
    if (side == SB_SIDE_CPU && now->users && sb__streams_over(mem->context, now->users))
        now->users = 0;
    *replaces = now->ptr && !may_write(mem, side);
    if (now->ptr && !*replaces)
        return SB_OK;
    struct sb__storage *made = *replaces ? fresh : now;
    sb_status st =
        sb__storage_alloc(made, mem->context, side, mem->bytes, contents, target->stream, err);
    if (st == SB_OK && side == SB_SIDE_GPU && mem->bytes)
        mark_allocation(mem, made, *replaces, target);
    return st;
}

/* Prepares the event of work that is about to be queued. If earlier arithmetic has no event, first
   records an event for that arithmetic: see sb__own_keep. */
static sb_status prepare_event(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    if (!sb__is_queued(target))
        return SB_OK;
    sb_status st = sb__event_make(mem->context, &mem->event, err);
    return st == SB_OK ? sb__own_keep(mem->context, target->stream, err) : st;
}

/* Waits for the work that was just queued to write `side`, or marks the side as pending. `fresh` is
   NULL, or new storage that the work writes and that might not belong to the memory yet. */
static sb_status finish(sb_mem *mem, const struct sb__target *target, int32_t side,
                        struct sb__storage *fresh, int32_t fallback, sb_error *err) {
    sb_status st;
    if (sb__is_queued(target))
        st = sb__event_put(mem->context, mem->event, target->stream, err);
    else if (target->slot == SB__READ_SLOT)
        st = sb__read_wait(mem->context, err);
    else
        st = sb__own_wait(mem->context, err);
    if (st != SB_OK) {
        if (!sb__streams_over(mem->context, sb__slot_bit(target->slot)))
            leave_in_use(mem, fresh, target->slot);
        return st;
    }
    if (target->slot != SB__READ_SLOT && (!sb__is_queued(target) || side == SB_SIDE_GPU))
        mem->own_work = SB__OWN_NONE; /* the library's work has ended, or precedes the pending
                                         transfer */
    if (!sb__is_queued(target))
        return SB_OK;
    mem->pending = mem->event->handle ? side : -1;
    mem->pending_slot = target->slot;
    mem->fallback = fallback;
    return SB_OK;
}

sb_status sb__zero(sb_mem *mem, int32_t side, const struct sb__target *target, sb_error *err) {
    void *ptr = mem->side[side].ptr;
    if (!mem->bytes)
        return SB_OK;
    if (side == SB_SIDE_CPU) { /* without parallel_for, because the lock is held */
        memset(ptr, 0, mem->bytes);
        return SB_OK;
    }
    sb_status st = sb__after_default(mem, &mem->side[side], target, err);
    if (st == SB_OK)
        st = prepare_event(mem, target, err);
    if (st == SB_OK)
        st = sb__device_zero(mem->context, ptr, mem->bytes, target->stream, err);
    return st == SB_OK ? finish(mem, target, side, NULL, SB_HEAD_UNINITIALIZED, err) : st;
}

/* Call before a copy from the device. Records the work that wrote the bytes, so that a wait for the
   copy also reports a failure of that work. If the call waits for the library's stream, work on
   that stream needs no record. */
static sb_status note_source(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    const bool waits = !sb__is_queued(target) && target->slot == SB__OWN_SLOT;
    const uint64_t waited = waits ? sb__slot_bit(SB__OWN_SLOT) : 0;
    sb_status st = sb__note_writers(mem, sb__writers(mem) & ~waited, err);
    return st == SB_OK ? prepare_event(mem, target, err) : st;
}

/* Returns whether the transfer may run on the stream for reads. The transfer must be a copy to the
   host for which the call waits. */
static bool reads_beside(const sb_mem *mem, int32_t side, const struct sb__target *target) {
    return side == SB_SIDE_CPU && !sb__is_queued(target) && mem->context->read_stream &&
           mem->own_work != SB__OWN_WRITES;
}

/* Makes the stream for reads wait for earlier work on the storage, except reads by the library.
   Work that has an event in made_by needs no second event. */
static sb_status order_read(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    const struct sb__storage *storage = &mem->side[SB_SIDE_GPU];
    const uint64_t users = (storage->users | exposed_users(mem)) & ~sb__writers(mem);
    sb_status st = SB_OK;
    for (int32_t i = 0; st == SB_OK && i < mem->made_by.count; i++)
        st = sb__stream_wait(mem->context, target->stream, mem->made_by.at[i]->handle, err);
    return st == SB_OK && users ? sb__streams_order(mem->context, users, target->stream, err) : st;
}

static sb_status order_copy(sb_mem *mem, const struct sb__target *target, sb_error *err) {
    if (target->slot == SB__READ_SLOT)
        return order_read(mem, target, err);
    const uint64_t users = users_before(mem, target);
    return users ? sb__streams_order(mem->context, users, target->stream, err) : (sb_status)SB_OK;
}

sb_status sb__transfer(sb_mem *mem, int32_t side, struct sb__storage *dst,
                       const struct sb__target *target, sb_error *err) {
    const void *src = mem->side[1 - side].ptr;
    const struct sb__target beside = {.slot = SB__READ_SLOT, .stream = mem->context->read_stream};
    if (!mem->bytes || (side == SB_SIDE_GPU && sb__is_one_storage(mem)))
        return SB_OK;
    if (reads_beside(mem, side, target))
        target = &beside;
    const bool from_device = side == SB_SIDE_CPU;
    sb_status st = sb__after_default(mem, from_device ? &mem->side[SB_SIDE_GPU] : dst, target, err);
    if (st == SB_OK && from_device)
        st = note_source(mem, target, err);
    else if (st == SB_OK)
        st = prepare_event(mem, target, err);
    if (st == SB_OK)
        st = order_copy(mem, target, err);
    if (st == SB_OK && src != dst->ptr) /* both sides may be the same managed memory */
        st = sb__device_copy(mem->context, from_device ? SB__DOWNLOAD : SB__UPLOAD, dst->ptr, src,
                             mem->bytes, target->stream, err);
    if (st == SB_OK && src == dst->ptr && !sb__is_queued(target))
        st = await_default(mem, err);
    if (st == SB_OK)
        st = finish(mem, target, side, dst, from_device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU, err);
    if (!from_device || sb__is_queued(target) || (st != SB_OK && st != SB_ERR_DEVICE_FAILURE))
        return st;
    /* The copy may have failed because earlier work on a caller's stream has failed. */
    const sb_status written = sb__await_writers(mem, 0, st == SB_OK ? err : NULL);
    return st == SB_OK ? written : st;
}
