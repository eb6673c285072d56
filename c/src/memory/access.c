/* Implements the calls that read a side, queue a transfer to a side, or wait for such a
   transfer. */
#include "memory/mem.h"

#include "base/error.h"
#include "memory/write.h"

/* Makes the work of `target` wait for the streams `writers`. The result of arithmetic depends on
   the work that wrote `mem`. For arithmetic, therefore adds mem->made_by and new events of the
   writers to the result's made_by. */
static sb_status order_behind(sb_mem *mem, uint64_t writers, const struct sb__target *target,
                              sb_error *err) {
    sb_context *context = mem->context;
    sb_status st = SB_OK;
    if (target->write && mem->bytes) {
        struct sb__events *made_by = &target->write->mem->made_by;
        if (mem->writer == target->slot && mem->exposed_at < target->write->exposed_at)
            target->write->exposed_at = mem->exposed_at;
        st = sb__await_oldest(mem, err);
        if (st == SB_OK)
            st = sb__events_share(context, made_by, &mem->made_by, err);
        if (st == SB_OK)
            st = sb__streams_record(context, sb__other_writers(mem, target), mem->exposed_at,
                                    made_by, err);
    }
    return st == SB_OK && writers ? sb__streams_order(context, writers, target->stream, err) : st;
}

/* Called if the side's bytes are current. If a queued copy or another stream may still be writing
   the bytes, waits, or makes the target's queued work wait. Before arithmetic the host waits for
   the copy, because the copy's failure must be known before the arithmetic uses the bytes. */
static sb_status make_ready(sb_mem *mem, int32_t side, const struct sb__target *target,
                            sb_error *err) {
    sb_status st = SB_OK;
    if (mem->pending == side && (!sb__is_queued(target) || target->write))
        st = sb__settle(mem, err);
    if (st != SB_OK || side == SB_SIDE_CPU)
        return st;
    if (mem->pending == side && mem->pending_slot != target->slot)
        st = sb__stream_wait(mem->context, target->stream, mem->event->handle, err);
    if (st == SB_OK)
        st = sb__check_writer(mem, err);
    uint64_t writers = sb__writers(mem);
    if (sb__is_for_own(target))
        writers &= ~sb__slot_bit(SB__OWN_SLOT);
    if (st == SB_OK && sb__is_queued(target))
        return order_behind(mem, writers | sb__default_users(mem, target), target, err);
    if (st == SB_OK && (writers || mem->made_by.count))
        st = sb__await_writers(mem, writers, err);
    if (st == SB_OK && writers & sb__slot_bit(SB__OWN_SLOT))
        mem->own_work = SB__OWN_NONE;
    return st;
}

static void record_user(sb_mem *mem, const struct sb__target *target, bool wrote) {
    if (target->kind == SB__FOR_POINTER)
        mem->side[SB_SIDE_GPU].is_exposed = true;
    if (target->kind != SB__FOR_STREAM || !mem->bytes)
        return;
    mem->side[SB_SIDE_GPU].users |= sb__slot_bit(target->slot);
    if (wrote)
        mem->writer = target->slot;
}

/* Storage that a read frees after it has released the lock. */
struct left {
    struct sb__storage unused;   /* new storage that a failed read does not need */
    struct sb__retired *retired; /* replaced storage */
};

static void replace(sb_mem *mem, int32_t side, const struct sb__storage *fresh,
                    struct sb__retiree *place, struct left *left) {
    sb__retire_storage(left->retired, place, mem, side, &mem->side[side]);
    mem->side[side] = *fresh;
}

/* Makes the side's bytes current: transfers the other side's bytes, or sets the bytes to zero. Uses
   new storage if this side's storage must not be written. */
static sb_status make_current(sb_mem *mem, enum sb__work work, int32_t side,
                              const struct sb__target *target, struct left *left, sb_error *err) {
    const bool zeroes = work == SB__ZERO, had_spare = mem->side[side].ptr != NULL;
    struct sb__storage fresh;
    struct sb__retiree *place = NULL;
    bool replaces;
    sb_status st = sb__writable_storage(mem, side, zeroes ? SB__ZEROS : SB__OWN_BYTES, target,
                                        &fresh, &replaces, err);
    if (st != SB_OK)
        return st;
    if (replaces)
        st = sb__retiree_make(mem->context, &place, err);
    if (st == SB_OK && !zeroes)
        st = sb__transfer(mem, side, replaces ? &fresh : &mem->side[side], target, err);
    if (st == SB_OK && replaces) {
        replace(mem, side, &fresh, place, left);
    } else if (replaces) {
        left->unused = fresh;
        sb__retiree_free(mem->context, place);
    }
    if (st == SB_OK && zeroes && (side == SB_SIDE_GPU || (had_spare && !replaces)))
        st = sb__zero(mem, side, target, err);
    return st;
}

/* Allocates zeroed storage, or clears storage that an earlier, failed call has allocated. */
static sb_status read_zeros(sb_mem *mem, int32_t side, const struct sb__target *target,
                            struct left *left, sb_error *err) {
    sb_status st = SB_OK;
    if (mem->side[side].ptr) /* the call that allocated it may have used another stream */
        st = side == SB_SIDE_GPU ? sb__after_users(mem, target, err) : sb__await_users(mem, err);
    return st == SB_OK ? make_current(mem, SB__ZERO, side, target, left, err) : st;
}

static sb_status read_transfer(sb_mem *mem, int32_t side, const struct sb__target *target,
                               struct left *left, sb_error *err) {
    sb_status st = sb__settle(mem, err);
    if (st == SB_OK)
        st = make_current(mem, SB__TRANSFER, side, target, left, err);
    if (st == SB_OK && side == SB_SIDE_CPU && !sb__is_queued(target))
        sb__forget_writers(mem); /* the writers' work has ended, and pointers for writes to the
                                    device have become invalid */
    return st;
}

static sb_status refuse(const sb_mem *mem, enum sb__call call, sb_error *err) {
    int32_t head = sb__head(mem);
    if (head == SB_HEAD_LOST)
        return sb__fail_lost(err);
    if (head == SB_HEAD_UNINITIALIZED)
        return sb__fail(err, SB_ERR_UNINITIALIZED,
                        "there is nothing to copy: the memory was never "
                        "written");
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the newest bytes are on the %s already",
                    call == SB__PUSH ? "device" : "host");
}

static sb_status read_locked(sb_mem *mem, enum sb__call call, int32_t side,
                             const struct sb__target *target, struct left *left, sb_error *err) {
    struct sb__cell cell = sb__state(sb__head(mem), call);
    bool zeroed = cell.work == SB__ZERO && side == SB_SIDE_GPU;
    sb_status st;
    switch (cell.work) {
    case SB__NOTHING:
        st = make_ready(mem, side, target, err);
        break;
    case SB__ZERO:
        st = read_zeros(mem, side, target, left, err);
        break;
    case SB__TRANSFER:
        st = read_transfer(mem, side, target, left, err);
        break;
    default:
        return refuse(mem, call, err);
    }
    if (st == SB_OK && side == SB_SIDE_GPU)
        record_user(mem, target, zeroed);
    sb__publish(mem, st == SB_OK ? cell.head : sb__head(mem)); /* a failed call may have added
                                                                  storage */
    return st;
}

static sb_status read_on(sb_mem *m, enum sb__call call, int32_t side,
                         const struct sb__target *target, const void **out,
                         struct sb__retired *retired, sb_error *err) {
    struct left left = {{.kind = SB_STORAGE_NONE}, retired};
    sb_status st = sb__lock(m, err);
    if (st != SB_OK)
        return st;
    st = read_locked(m, call, side, target, &left, err);
    if (st == SB_OK && target->write && m->pending == side) /* the arithmetic's result depends on
                                                               the copy */
        st = sb__events_add(m->context, &target->write->mem->made_by, m->event, err);
    if (st == SB_OK && sb__is_for_own(target))
        st = sb__after_default(m, &m->side[side], target, err);
    if (st == SB_OK && out)
        *out = m->side[side].ptr;
    sb__unlock(m);
    sb__storage_end(&left.unused, m->context, side, m->bytes);
    return st;
}

/* Reads `side`. If `stream` is NULL, uses the library's stream and waits. `out` may be NULL. */
static sb_status read_into(const sb_mem *mem, enum sb__call call, int32_t side,
                           const sb_stream *stream, const void **out, struct sb__retired *retired,
                           sb_error *err) {
    sb_mem *m = (sb_mem *)mem;
    struct sb__target target = sb__own_target(m, SB__FOR_POINTER);
    sb_status st = sb__side_check(m, side, err);
    if (st == SB_OK && stream)
        st = sb__stream_target(m, *stream, &target, err);
    return st == SB_OK ? read_on(m, call, side, &target, out, retired, err) : st;
}

sb_status sb__read_side(const sb_mem *mem, int32_t side, const void **out,
                        struct sb__retired *retired, sb_error *err) {
    if (side == SB_SIDE_CPU && sb__is_read_in_place(mem)) {
        *out = mem->side[SB_SIDE_CPU].ptr;
        return SB_OK;
    }
    const enum sb__call call = side == SB_SIDE_CPU ? SB__READ_CPU : SB__READ_GPU;
    return read_into(mem, call, side, NULL, out, retired, err);
}

/* Not inlined, so that the fast paths need not save registers. */
__attribute__((noinline)) static sb_status read_side(const sb_mem *mem, enum sb__call call,
                                                     int32_t side, const sb_stream *stream,
                                                     const void **out, sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    sb_status st = read_into(mem, call, side, stream, out, &retired, err);
    sb__retired_end(&retired);
    return st;
}

sb_status sb__read_for_own(const sb_mem *mem, const void **out, struct sb__retired *retired,
                           sb_error *err) {
    sb_mem *m = (sb_mem *)mem;
    const struct sb__target target = sb__own_target(m, SB__FOR_OWN);
    sb_status st = sb__device_check(m->context, err);
    return st == SB_OK ? read_on(m, SB__READ_GPU, SB_SIDE_GPU, &target, out, retired, err) : st;
}

/* If the work is queued on the library's stream, and the device's bytes are not current yet, waits
   for the transfer. */
sb_status sb__read_for(const sb_mem *mem, const struct sb__target *target, const void **out,
                       struct sb__retired *retired, sb_error *err) {
    sb_mem *m = (sb_mem *)mem;
    struct sb__target now = *target;
    int32_t head = sb__head(m);
    if (now.kind == SB__FOR_OWN_QUEUE && head != SB_HEAD_AT_GPU && head != SB_HEAD_SYNCED)
        now.kind = SB__FOR_OWN;
    return read_on(m, SB__READ_GPU, SB_SIDE_GPU, &now, out, retired, err);
}

void sb__note_read(const sb_mem *mem, const struct sb__target *target) {
    sb_mem *m = (sb_mem *)mem;
    if (target->kind != SB__FOR_OWN_QUEUE || !m->bytes)
        return;
    (void)sb__lock(m, NULL); /* cannot fail: the read has just held the lock in this process */
    if (m->own_work == SB__OWN_NONE)
        m->own_work = SB__OWN_READS;
    sb__publish(m, sb__head(m));
    sb__unlock(m);
}

sb_status sb_mem_cpu(const sb_mem *mem, const void **out, sb_error *err) {
    if (!mem || !out)
        return sb__fail_null(err, mem ? "out" : "mem");
    if (sb__is_read_in_place(mem)) {
        *out = mem->side[SB_SIDE_CPU].ptr;
        return SB_OK;
    }
    return read_side(mem, SB__READ_CPU, SB_SIDE_CPU, NULL, out, err);
}

sb_status sb_mem_gpu(const sb_mem *mem, const void **out, sb_error *err) {
    if (!mem || !out)
        return sb__fail_null(err, mem ? "out" : "mem");
    if (atomic_load_explicit(&mem->word, memory_order_acquire) & SB__GPU_READY &&
        sb_context_device_status(mem->context) == SB_OK) {
        *out = mem->side[SB_SIDE_GPU].ptr;
        return SB_OK;
    }
    return read_side(mem, SB__READ_GPU, SB_SIDE_GPU, NULL, out, err);
}

sb_status sb_mem_gpu_on(const sb_mem *mem, sb_stream stream, const void **out, sb_error *err) {
    if (!mem || !out)
        return sb__fail_null(err, mem ? "out" : "mem");
    return read_side(mem, SB__READ_GPU, SB_SIDE_GPU, &stream, out, err);
}

sb_status sb_mem_prefetch_gpu(const sb_mem *mem, sb_stream stream, sb_error *err) {
    if (!mem)
        return sb__fail_null(err, "mem");
    return read_side(mem, SB__READ_GPU, SB_SIDE_GPU, &stream, NULL, err);
}

sb_status sb_mem_prefetch_cpu(const sb_mem *mem, sb_stream stream, sb_error *err) {
    if (!mem)
        return sb__fail_null(err, "mem");
    if (sb__is_read_in_place(mem))
        return SB_OK;
    uint32_t word = atomic_load_explicit(&mem->word, memory_order_relaxed);
    bool on_stream = (word & SB__HEAD_MASK) == SB_HEAD_AT_GPU || word & SB__CPU_PENDING;
    return read_side(mem, SB__READ_CPU, SB_SIDE_CPU, on_stream ? &stream : NULL, NULL, err);
}

sb_status sb_mem_async_gpu_push(const sb_mem *mem, sb_stream stream, sb_error *err) {
    if (!mem)
        return sb__fail_null(err, "mem");
    return read_side(mem, SB__PUSH, SB_SIDE_GPU, &stream, NULL, err);
}

sb_status sb_mem_async_cpu_pull(const sb_mem *mem, sb_stream stream, sb_error *err) {
    if (!mem)
        return sb__fail_null(err, "mem");
    return read_side(mem, SB__PULL, SB_SIDE_CPU, &stream, NULL, err);
}

sb_status sb_mem_synchronize(const sb_mem *mem, sb_error *err) {
    if (!mem)
        return sb__fail_null(err, "mem");
    sb_mem *m = (sb_mem *)mem;
    if (!(atomic_load_explicit(&m->word, memory_order_acquire) &
          (SB__CPU_PENDING | SB__GPU_PENDING)))
        return SB_OK;
    sb_status st = sb__lock(m, err);
    if (st != SB_OK)
        return st;
    st = sb__settle(m, err);
    sb__unlock(m);
    return st;
}
