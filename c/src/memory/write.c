#include "memory/write.h"

#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/mem.h"

#include <string.h>

static enum sb__call call_of(int32_t side, enum sb__write_mode mode) {
    if (mode == SB__WRITE_KEEP)
        return side == SB_SIDE_CPU ? SB__WRITE_CPU : SB__WRITE_GPU;
    return side == SB_SIDE_CPU ? SB__OVERWRITE_CPU : SB__OVERWRITE_GPU;
}

static int32_t head_of(int32_t side) {
    return side == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
}

/* Copies the current bytes to write->ptr from read-only storage on the same side. On the host the
   copy runs later, without the lock, since it may use parallel_for. */
static sb_status copy_within(struct sb__write *write, sb_error *err) {
    sb_mem *mem = write->mem;
    const void *src = mem->side[write->side].ptr;
    if (!mem->bytes)
        return SB_OK;
    if (write->side == SB_SIDE_CPU) {
        write->from = src;
        return SB_OK;
    }
    const struct sb__target own = sb__own_target(mem, SB__FOR_OWN);
    sb_status st = sb__after_default(mem, &mem->side[write->side], &own, err);
    if (st == SB_OK)
        st = sb__device_copy(mem->context, SB__DEVICE_COPY, write->ptr, src, mem->bytes, own.stream,
                             err);
    return st == SB_OK ? sb__reach_allocation(mem, err) : st;
}

static void copy_host(const struct sb__write *write) {
    sb_mem *mem = write->mem;
    sb__host_copy(&mem->context->parallel, write->ptr, write->from, mem->bytes);
    sb__count_copy(mem->context, SB__HOST_COPY, mem->bytes);
}

/* Fills write->ptr with the current bytes, as a mutable call must. */
static sb_status fill(struct sb__write *write, enum sb__work work, bool had_storage,
                      const struct sb__target *target, sb_error *err) {
    sb_mem *mem = write->mem;
    switch (work) {
    case SB__ZERO:
        if (write->side == SB_SIDE_CPU && (!had_storage || write->replaces))
            return SB_OK; /* the storage was allocated as zeros */
        return sb__zero(mem, write->side, target, err);
    case SB__TRANSFER:
        return sb__transfer(mem, write->side,
                            write->replaces ? &write->fresh : &mem->side[write->side], target, err);
    default: /* SB__NOTHING */
        return write->replaces ? copy_within(write, err) : SB_OK;
    }
}

/* Waits until all streams may use a new allocation: a call that overwrites has no later step that
   waits. */
static sb_status reach(struct sb__write *write, const struct sb__target *target, bool had_storage,
                       sb_error *err) {
    sb_mem *mem = write->mem;
    if (write->side == SB_SIDE_CPU || sb__is_queued(target) || (had_storage && !write->replaces))
        return SB_OK;
    return mem->bytes ? sb__reach_allocation(mem, err) : SB_OK;
}

static enum sb__contents contents_of(enum sb__work work, enum sb__write_mode mode) {
    if (work == SB__ZERO)
        return SB__ZEROS;
    return mode == SB__WRITE_FILL ? SB__ANY_BYTES : SB__OWN_BYTES;
}

/* The bytes that are not written depend on earlier work, so this function records that work. */
static sb_status note_made_by(struct sb__write *write, const struct sb__target *target,
                              sb_error *err) {
    sb_mem *mem = write->mem;
    sb_status st = sb__await_oldest(mem, err);
    return st == SB_OK ? sb__note_writers(mem, sb__other_writers(mem, target), err) : st;
}

/* Orders the write after earlier users of the device side's storage. If the caller requested
   arithmetic on a caller's stream (`asked`), reserves room for the event of the arithmetic. */
static sb_status come_after(struct sb__write *write, bool keeps, const struct sb__target *target,
                            const struct sb__target *asked, sb_error *err) {
    sb_mem *mem = write->mem;
    sb_status st = SB_OK;
    if (keeps && sb__is_queued(target))
        st = note_made_by(write, target, err);
    if (st == SB_OK)
        st = sb__after_users(mem, target, err);
    return st == SB_OK && asked->write && asked->kind == SB__FOR_STREAM
               ? sb__events_prepare(mem->context, &mem->made_by, err)
               : st;
}

static sb_status begin_locked(struct sb__write *write, enum sb__write_mode mode,
                              const struct sb__target *target, sb_error *err) {
    sb_mem *mem = write->mem;
    sb_status st = sb__settle(mem, err);
    if (st != SB_OK)
        return st;
    struct sb__cell cell = sb__state(sb__head(mem), call_of(write->side, mode));
    if (cell.work == SB__REFUSE)
        return sb__fail_lost(err);
    bool had_storage = mem->side[write->side].ptr != NULL;
    const struct sb__target own = sb__own_target(mem, SB__FOR_POINTER);
    const struct sb__target *asked = target;
    if (cell.work == SB__NOTHING && mem->side[write->side].kind == SB_STORAGE_BORROWED_READ_ONLY)
        target = &own; /* copy_within uses the library's stream, so that a failure is found before
                          commit */
    write->discards = mode != SB__WRITE_KEEP;
    if (write->side == SB_SIDE_GPU)
        st = come_after(write, cell.work == SB__NOTHING && !write->discards, target, asked, err);
    else
        st = sb__await_users(mem, err);
    if (st == SB_OK)
        st = sb__writable_storage(mem, write->side, contents_of(cell.work, mode), target,
                                  &write->fresh, &write->replaces, err);
    if (st == SB_OK && write->replaces)
        st = sb__retiree_make(mem->context, &write->place, err);
    if (st != SB_OK)
        return st;
    write->uncleared = mode == SB__WRITE_FILL && (!had_storage || write->replaces);
    write->ptr = write->replaces ? write->fresh.ptr : mem->side[write->side].ptr;
    st = mode == SB__WRITE_KEEP ? fill(write, cell.work, had_storage, target, err)
                                : reach(write, target, had_storage, err);
    if (st == SB_OK && sb__is_for_own(target) && write->side == SB_SIDE_GPU) {
        st = sb__after_default(mem, &mem->side[write->side], target, err);
        write->is_ordered = mem->side[write->side].is_exposed;
    }
    sb__publish(mem, sb__head(mem)); /* begin may have added storage or queued a transfer */
    return st;
}

static sb_status begin(struct sb__write *write, sb_mem *mem, int32_t side, enum sb__write_mode mode,
                       const struct sb__target *target, sb_error *err) {
    *write = (struct sb__write){.mem = mem, .side = side, .exposed_at = SB__NOT_EXPOSED};
    sb_status st = sb__lock(mem, err);
    if (st != SB_OK)
        return st;
    st = begin_locked(write, mode, target, err);
    sb__unlock(mem);
    if (st != SB_OK)
        sb__write_cancel(write);
    else if (write->from)
        copy_host(write);
    return st;
}

sb_status sb__write_begin(struct sb__write *write, sb_mem *mem, int32_t side,
                          enum sb__write_mode mode, sb_error *err) {
    if (side == SB_SIDE_CPU && sb__is_host_written_in_place(mem)) {
        write->mem = mem;
        write->side = side;
        write->ptr = mem->side[side].ptr;
        write->uncleared = false;
        write->replaces = false;
        return SB_OK;
    }
    const struct sb__target target = sb__own_target(mem, SB__FOR_OWN);
    return sb__write_begin_for(write, mem, side, mode, &target, err);
}

sb_status sb__write_begin_for(struct sb__write *write, sb_mem *mem, int32_t side,
                              enum sb__write_mode mode, const struct sb__target *target,
                              sb_error *err) {
    sb_status st = sb__side_check(mem, side, err);
    return st == SB_OK ? begin(write, mem, side, mode, target, err) : st;
}

static void note_writer(sb_mem *mem, const struct sb__target *target) {
    const int32_t writer = mem->writer;
    mem->writer = -1;
    switch (target->kind) {
    case SB__FOR_POINTER:
        mem->side[SB_SIDE_GPU].is_exposed = true;
        return;
    case SB__FOR_OWN:
        mem->own_work = SB__OWN_NONE;
        return;
    case SB__FOR_OWN_QUEUE:
        mem->own_work = mem->bytes ? SB__OWN_WRITES : SB__OWN_NONE;
        return;
    default: /* SB__FOR_STREAM */
        if (!mem->bytes)
            return;
        mem->own_work = SB__OWN_NONE; /* the writer is ordered after the library's work */
        if (writer != target->slot)
            mem->exposed_at = SB__NOT_EXPOSED; /* events cover the previous writer's work */
        if (!target->write && mem->exposed_at == SB__NOT_EXPOSED)
            mem->exposed_at = sb__counter_read(&mem->context->events.clock);
        if (target->write && target->write->exposed_at < mem->exposed_at)
            mem->exposed_at = target->write->exposed_at; /* the result depends on the operand's
                                                            bytes */
        mem->writer = target->slot;
        mem->side[SB_SIDE_GPU].users |= sb__slot_bit(target->slot);
    }
}

static void commit(struct sb__write *write, const struct sb__target *target,
                   struct sb__retired *retired) {
    sb_mem *mem = write->mem;
    (void)sb__lock(mem, NULL); /* cannot fail: begin held the lock in this process */
    if (write->replaces) {
        sb__retire_storage(retired, write->place, mem, write->side, &mem->side[write->side]);
        mem->side[write->side] = write->fresh;
    }
    if (write->side == SB_SIDE_CPU || write->discards)
        sb__forget_writers(mem);
    if (write->side == SB_SIDE_GPU)
        note_writer(mem, target);
    sb__publish(mem, head_of(write->side));
    sb__unlock(mem);
}

void sb__write_commit(struct sb__write *write, struct sb__retired *retired) {
    if (write->side == SB_SIDE_CPU && !write->replaces && sb__is_host_written_in_place(write->mem))
        return; /* the state word is already correct */
    /* The work of the write has ended. */
    const struct sb__target target = sb__own_target(write->mem, SB__FOR_OWN);
    commit(write, &target, retired);
}

void sb__write_commit_for(struct sb__write *write, const struct sb__target *target,
                          struct sb__retired *retired) {
    commit(write, target, retired);
}

sb_status sb__write_queued(struct sb__write *write, const struct sb__target *target,
                           sb_error *err) {
    sb_mem *mem = write->mem;
    if (target->kind != SB__FOR_STREAM)
        return SB_OK;
    (void)sb__lock(mem, NULL); /* cannot fail: see commit */
    sb_status st = sb__events_record(mem->context, &mem->made_by, target->stream, NULL);
    mem->side[SB_SIDE_GPU].users |= sb__slot_bit(target->slot);
    if (write->replaces)
        write->fresh.users |= sb__slot_bit(target->slot);
    sb__unlock(mem);
    if (st != SB_OK)
        st = sb__slot_synchronize(mem->context, target->slot, target->stream, err);
    /* UNSUPPORTED means that a stream capture has begun. A later event of the writer suffices. */
    return st == SB_ERR_UNSUPPORTED ? (sb_status)SB_OK : st;
}

void sb__write_cancel(struct sb__write *write) {
    /* Clears bytes that may belong to another context, because this memory keeps the storage, or
       the context's cache reuses the storage. */
    if (write->uncleared && write->side == SB_SIDE_CPU)
        memset(write->ptr, 0, write->mem->bytes);
    if (!write->replaces)
        return;
    sb__storage_end(&write->fresh, write->mem->context, write->side, write->mem->bytes);
    sb__retiree_free(write->mem->context, write->place);
}

/* Records that work on the library's stream may still be writing the memory. New storage
   (write->fresh) needs no record, because it is freed after the work that writes it. */
static void leave_queued(struct sb__write *write) {
    sb_mem *mem = write->mem;
    if (write->replaces || sb__own_over(mem->context))
        return;
    (void)sb__lock(mem, NULL); /* cannot fail: see commit */
    mem->own_work = SB__OWN_WRITES;
    sb__publish(mem, sb__head(mem));
    sb__unlock(mem);
}

/* Returns whether the write overwrites current bytes in place, so that a failure of the write
   spoils these bytes. */
static bool is_in_place(const struct sb__write *write) {
    const int32_t head = sb__head(write->mem);
    const bool is_other = head == head_of(1 - write->side);
    return !write->replaces && (head == SB_HEAD_SYNCED || head == head_of(write->side) ||
                                (is_other && sb__is_one_storage(write->mem)));
}

void sb__write_spoiled(struct sb__write *write) {
    sb_mem *mem = write->mem;
    (void)sb__lock(mem, NULL); /* cannot fail: see commit */
    int32_t head = sb__head(mem);
    bool host_is_current =
        (head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED) && !sb__is_one_storage(mem);
    sb__forget_writers(mem);
    sb__publish(mem, host_is_current ? SB_HEAD_AT_CPU : SB_HEAD_LOST);
    sb__unlock(mem);
    sb__write_cancel(write);
}

void sb__write_refused(struct sb__write *write, sb_status st) {
    if (st == SB_ERR_DEVICE_LOST && sb__is_one_storage(write->mem) && is_in_place(write))
        sb__write_spoiled(write);
}

void sb__write_half_done(struct sb__write *write) {
    sb_mem *mem = write->mem;
    (void)sb__lock(mem, NULL); /* cannot fail: see commit */
    if (!write->replaces && sb__head(mem) == SB_HEAD_SYNCED && !sb__is_one_storage(mem))
        sb__publish(mem, write->side == SB_SIDE_CPU ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU);
    sb__unlock(mem);
    sb__write_cancel(write);
}

sb_status sb__write_wait(struct sb__write *write, sb_error *err) {
    sb_status st = sb__own_wait(write->mem->context, err);
    if (st == SB_OK)
        return SB_OK;
    if (is_in_place(write)) {
        sb__write_spoiled(write);
        return sb__device_spoiled(write->mem->context, st, err);
    }
    leave_queued(write);
    sb__write_cancel(write);
    write->replaces = false; /* so that a later cancel does nothing */
    return st;
}

static sb_status write_into(sb_mem *mem, int32_t side, enum sb__write_mode mode,
                            const sb_stream *stream, void **out, struct sb__retired *retired,
                            sb_error *err) {
    struct sb__write write;
    struct sb__target target = sb__own_target(mem, SB__FOR_POINTER);
    sb_status st = sb__side_check(mem, side, err);
    if (st == SB_OK && stream)
        st = sb__stream_target(mem, *stream, &target, err);
    if (st == SB_OK)
        st = begin(&write, mem, side, mode, &target, err);
    if (st != SB_OK)
        return st;
    commit(&write, &target, retired);
    *out = write.ptr;
    return SB_OK;
}

sb_status sb__write_side(sb_mem *mem, int32_t side, void **out, struct sb__retired *retired,
                         sb_error *err) {
    return write_into(mem, side, SB__WRITE_KEEP, NULL, out, retired, err);
}

/* Not inlined, so that the fast paths need not save registers. */
__attribute__((noinline)) static sb_status write_side(sb_mem *mem, int32_t side,
                                                      enum sb__write_mode mode,
                                                      const sb_stream *stream, void **out,
                                                      sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    if (!mem || !out)
        return sb__fail_null(err, mem ? "out" : "mem");
    sb_status st = write_into(mem, side, mode, stream, out, &retired, err);
    sb__retired_end(&retired);
    return st;
}

sb_status sb_mem_mutable_cpu(sb_mem *mem, void **out, sb_error *err) {
    if (mem && out && sb__is_host_written_in_place(mem)) {
        *out = mem->side[SB_SIDE_CPU].ptr;
        return SB_OK;
    }
    return write_side(mem, SB_SIDE_CPU, SB__WRITE_KEEP, NULL, out, err);
}

sb_status sb_mem_mutable_gpu(sb_mem *mem, void **out, sb_error *err) {
    if (mem && out &&
        sb__is_written_in_place(mem, SB_HEAD_AT_GPU, SB__GPU_READY | SB__GPU_WRITABLE) &&
        sb_context_device_status(mem->context) == SB_OK) {
        *out = mem->side[SB_SIDE_GPU].ptr;
        return SB_OK;
    }
    return write_side(mem, SB_SIDE_GPU, SB__WRITE_KEEP, NULL, out, err);
}

sb_status sb_mem_mutable_gpu_on(sb_mem *mem, sb_stream stream, void **out, sb_error *err) {
    return write_side(mem, SB_SIDE_GPU, SB__WRITE_KEEP, &stream, out, err);
}

sb_status sb_mem_overwrite_cpu(sb_mem *mem, void **out, sb_error *err) {
    return write_side(mem, SB_SIDE_CPU, SB__WRITE_OVERWRITE, NULL, out, err);
}

sb_status sb_mem_overwrite_gpu(sb_mem *mem, void **out, sb_error *err) {
    return write_side(mem, SB_SIDE_GPU, SB__WRITE_OVERWRITE, NULL, out, err);
}

sb_status sb_mem_overwrite_gpu_on(sb_mem *mem, sb_stream stream, void **out, sb_error *err) {
    return write_side(mem, SB_SIDE_GPU, SB__WRITE_OVERWRITE, &stream, out, err);
}
