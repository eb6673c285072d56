#include "blob/blob.h"

#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/clear.h"
#include "memory/mem.h"

/* Not inlined, like fail_shapes: keeps the fast path's stack frame small. */
__attribute__((noinline)) static sb_status fail_dtypes(const sb_blob *blob, const sb_blob *source,
                                                       sb_error *err) {
    return sb__fail(err, SB_ERR_DTYPE_MISMATCH, "a blob of %s cannot copy a blob of %s",
                    sb_dtype_name(blob->dtype), sb_dtype_name(source->dtype));
}

__attribute__((noinline)) static sb_status fail_shapes(const sb_blob *blob, const sb_blob *source,
                                                       sb_error *err) {
    char ours[96], theirs[96];
    sb__ignore(sb_blob_shape_string(blob, ours, sizeof ours, NULL, NULL));
    sb__ignore(sb_blob_shape_string(source, theirs, sizeof theirs, NULL, NULL));
    return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "shapes %s and %s differ", ours, theirs);
}

/* Writes zeros to the destination, because a source that was never written reads as zeros. As in
   Caffe, the destination then counts as written, so that a later Update accepts the data. */
static sb_status write_zeros(sb_mem *mem, size_t bytes, struct sb__retired *retired,
                             sb_error *err) {
    struct sb__write write;
    if (sb__head(mem) != SB_HEAD_UNINITIALIZED)
        return sb__mem_clear(mem, bytes, retired, err);
    sb_status st = sb__write_begin(&write, mem, SB_SIDE_CPU, SB__WRITE_KEEP, err);
    if (st == SB_OK)
        sb__write_commit(&write, retired);
    return st;
}

static sb_status copy_zeros(sb_blob *blob, const sb_blob *source, sb_part part,
                            struct sb__retired *retired, sb_error *err) {
    const size_t bytes = sb__blob_bytes(source);
    sb_mem *mem = sb__blob_peek(blob, part), *fresh = NULL;
    sb_status st = SB_OK;
    if (!mem || mem->bytes < bytes) {
        st = sb_mem_create(sb__context_public(blob->context), bytes, &fresh, err);
        mem = fresh;
    }
    if (st == SB_OK)
        st = write_zeros(mem, bytes, retired, err);
    if (st != SB_OK) {
        sb__retire_mem(retired, fresh);
        return st;
    }
    if (fresh)
        sb__swap(&blob->memory[part], fresh, retired);
    (void)sb__blob_take_shape(blob, &source->shape, retired);
    return SB_OK;
}

static sb_status run_on_device(struct sb__write *write, const void *from, size_t bytes,
                               sb_error *err) {
    sb_context *context = write->mem->context;
    sb_status st = SB_OK;
    if (write->ptr != from)
        st = sb__device_copy(context, SB__DEVICE_COPY, write->ptr, from, bytes, context->stream,
                             err);
    sb__write_refused(write, st);
    return st == SB_OK ? sb__write_wait(write, err) : st;
}

/* A write to `to` may first transfer all bytes of `to` to `side`. Checks that neither the transfer
   nor the write can overwrite bytes of `from`. */
static sb_status check_apart(const sb_mem *to, int32_t side, sb_mem *from, size_t bytes,
                             sb_error *err) {
    if (!to || to->bytes <= bytes || to->side[side].kind != SB_STORAGE_BORROWED)
        return SB_OK;
    const int32_t head = sb__head(to);
    if (head == SB_HEAD_SYNCED || head == (side == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU))
        return SB_OK;
    sb_status st = sb__lock(from, err); /* const calls of other threads may replace the storage */
    if (st != SB_OK)
        return st;
    const void *theirs = from->side[side].ptr;
    sb__unlock(from);
    return theirs && sb__overlap_of(to->side[side].ptr, to->bytes, theirs, bytes)
               ? sb__fail_overlap(err)
               : SB_OK;
}

/* Copies the source's bytes to write->ptr, unless write->ptr is the source's address. */
static sb_status run(struct sb__write *write, sb_mem *source, size_t bytes,
                     struct sb__retired *retired, sb_error *err) {
    const void *from;
    sb_status st = write->side == SB_SIDE_GPU
                       ? sb__read_for_own(source, &from, retired, err)
                       : sb__read_side(source, SB_SIDE_CPU, &from, retired, err);
    if (st != SB_OK)
        return st;
    if (write->ptr != from && sb__overlap(write->ptr, from, bytes))
        return sb__fail_overlap(err);
    if (write->side == SB_SIDE_GPU)
        return run_on_device(write, from, bytes, err);
    if (write->ptr == from)
        return SB_OK;
    sb__host_copy(&write->mem->context->parallel, write->ptr, from, bytes);
    sb__count_copy(write->mem->context, SB__HOST_COPY, bytes);
    return SB_OK;
}

static sb_status copy_bytes(sb_blob *blob, const sb_blob *source, sb_part part, sb_mem *from,
                            struct sb__retired *retired, sb_error *err) {
    bool on_device =
        sb__head(from) != SB_HEAD_AT_CPU && sb_blob_context(blob) == sb_blob_context(source);
    const int32_t side = on_device ? SB_SIDE_GPU : SB_SIDE_CPU;
    const size_t bytes = sb__blob_bytes(source);
    struct sb__load_side to;
    sb_status st = check_apart(sb__blob_peek(blob, part), side, from, bytes, err);
    if (st == SB_OK)
        st = sb__load_side_begin(&to, blob, part, &source->shape, side, retired, err);
    if (st != SB_OK)
        return st;
    st = run(&to.write, from, bytes, retired, err);
    if (st != SB_OK) {
        sb__load_side_cancel(&to, retired);
        return st;
    }
    sb__load_side_commit(&to, blob, part, retired);
    (void)sb__blob_take_shape(blob, &source->shape, retired);
    return SB_OK;
}

/* The fast path for equal shapes. If only the host has the current bytes of each blob, and the
   blobs do not overlap, copies the bytes and returns true. Otherwise returns false. */
static bool copy_in_place(const sb_blob *blob, const sb_blob *source, sb_part part) {
    const sb_mem *to = sb__blob_memory_or_none(blob, part),
                 *from = sb__blob_memory_or_none(source, part);
    const size_t bytes = sb__blob_bytes(source);
    if (!sb__is_written_at_host(to) || !sb__is_at_host(from) || bytes == 0 ||
        sb__overlap(sb__host_bytes(to), sb__host_bytes(from), bytes))
        return false;
    sb_context *context = to->context;
    sb__count_copy(context, SB__HOST_COPY, bytes);
    sb__host_copy(&context->parallel, sb__host_bytes(to), sb__host_bytes(from), bytes);
    return true;
}

static sb_status copy_memory(sb_blob *blob, const sb_blob *source, sb_part part,
                             struct sb__retired *retired, sb_error *err) {
    sb_mem *from = sb__blob_peek(source, part);
    if (sb_blob_count(source) == 0 || (from && from == sb__blob_peek(blob, part))) {
        (void)sb__blob_take_shape(blob, &source->shape, retired);
        return SB_OK;
    }
    if (!from || sb__head(from) == SB_HEAD_UNINITIALIZED)
        return copy_zeros(blob, source, part, retired, err);
    if (sb__head(from) == SB_HEAD_LOST)
        return sb__fail_lost(err);
    return copy_bytes(blob, source, part, from, retired, err);
}

/* Not inlined, so that the fast path need not save registers. */
__attribute__((noinline)) static sb_status copy(sb_blob *blob, const sb_blob *source, sb_part part,
                                                sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    sb_status st = sb__check_part(part, err);
    if (st != SB_OK || blob == source)
        return st;
    st = copy_memory(blob, source, part, &retired, err);
    sb__retired_end(&retired);
    return st;
}

sb_status sb_blob_copy_from(sb_blob *blob, sb_part part, const sb_blob *source, uint32_t flags,
                            sb_error *err) {
    if (!blob || !source)
        return sb__fail_null(err, blob ? "source" : "blob");
    if (flags & ~(uint32_t)SB_COPY_RESHAPE)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
    if (blob->dtype != source->dtype)
        return fail_dtypes(blob, source, err);
    const bool same = sb__shape_same(&blob->shape, &source->shape);
    if (!same && !(flags & SB_COPY_RESHAPE))
        return fail_shapes(blob, source, err);
    return same && copy_in_place(blob, source, part) ? SB_OK : copy(blob, source, part, err);
}
