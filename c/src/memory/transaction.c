/* Implements sb_write, a write that the caller makes in two calls, begin and end. */
#include "memory/write.h"

#include "base/error.h"
#include "memory/mem.h"

struct sb_write {
    struct sb__write write;
    struct sb__retired retired; /* storage that SB_WRITE_DONE has replaced */
    sb_mem *mem;                /* [owned] */
    uint64_t fork_generation;
    bool has_ended, is_kept;
};

static bool is_ours(const sb_write *write) {
    return write->fork_generation == sb__counter_read(&sb__fork_generation);
}

/* Begins a write. On the device, without SB_WRITE_QUEUED, also waits for the library's stream and
   the default stream, because the caller's stream might not wait for these streams. */
static sb_status begin(struct sb__write *write, sb_mem *mem, sb_side side, uint32_t flags,
                       sb_error *err) {
    const enum sb__write_mode mode =
        flags & SB_WRITE_OVERWRITE ? SB__WRITE_OVERWRITE : SB__WRITE_KEEP;
    sb_status st = sb__write_begin(write, mem, side, mode, err);
    if (st != SB_OK || side == SB_SIDE_CPU || flags & SB_WRITE_QUEUED)
        return st;
    st = sb__streams_wait(mem->context, sb__slot_bit(SB__LEGACY_SLOT) | sb__slot_bit(SB__OWN_SLOT),
                          err);
    if (st != SB_OK)
        sb__write_cancel(write);
    return st;
}

sb_status sb_write_begin(sb_mem *mem, sb_side side, uint32_t flags, void **out_ptr, sb_write **out,
                         sb_error *err) {
    void *object;
    if (!mem || !out_ptr || !out)
        return sb__fail_null(err, !mem ? "mem" : !out_ptr ? "out_ptr" : "out");
    if (side != SB_SIDE_CPU && side != SB_SIDE_GPU)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%d is not a side", side);
    if (flags & ~(uint32_t)(SB_WRITE_OVERWRITE | SB_WRITE_QUEUED))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
    sb_status st = sb__object_alloc(mem->context, sizeof(sb_write), &object, err);
    if (st != SB_OK)
        return st;
    sb_write *write = object;
    st = begin(&write->write, mem, side, flags, err);
    if (st != SB_OK) {
        sb__object_free(mem->context, write, sizeof *write);
        return st;
    }
    write->mem = sb_mem_retain(mem);
    (void)atomic_fetch_add(&mem->open_writes, 1);
    write->fork_generation = sb__counter_read(&sb__fork_generation);
    *out_ptr = write->write.ptr;
    *out = write;
    return SB_OK;
}

/* Ends an abandoned write. The caller's work may still be writing, so the memory and the new
   storage, if any, are never freed. */
static void keep(sb_write *write) {
    if (write->write.replaces)
        sb__retiree_free(write->mem->context, write->write.place);
    else
        sb__write_half_done(&write->write);
    write->is_kept = true;
}

sb_status sb_write_end(sb_write *write, sb_write_outcome outcome, sb_error *err) {
    if (!write)
        return sb__fail_null(err, "write");
    if (outcome < SB_WRITE_DONE || outcome > SB_WRITE_ABANDONED)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%d is not an outcome of a write", outcome);
    if (write->has_ended)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the write has ended already");
    if (!is_ours(write))
        return sb__fail(err, SB_ERR_FORKED, "the write was begun before a fork");
    if (outcome == SB_WRITE_DONE)
        sb__write_commit(&write->write, &write->retired);
    else if (outcome == SB_WRITE_SPOILED)
        sb__write_half_done(&write->write);
    else
        keep(write);
    (void)atomic_fetch_sub(&write->mem->open_writes, 1);
    write->has_ended = true;
    return SB_OK;
}

void sb_write_destroy(sb_write *write) {
    if (!write)
        return;
    sb_mem *mem = write->mem;
    struct sb__retired retired = write->retired;
    if (!write->has_ended && is_ours(write)) {
        sb__write_cancel(&write->write);
        (void)atomic_fetch_sub(&mem->open_writes, 1);
    }
    const bool is_kept = write->is_kept || !is_ours(write);
    sb__object_free(mem->context, write, sizeof *write);
    if (!is_kept)
        sb__retire_mem(&retired, mem);
    sb__retired_end(&retired);
}
