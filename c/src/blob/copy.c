#include "blob/blob.h"

#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/clear.h"
#include "memory/mem.h"

static bool may_copy(const sb_blob *blob, const sb_blob *source, uint32_t flags) {
    return blob && source && !(flags & ~(uint32_t)(SB_COPY_DIFF | SB_COPY_RESHAPE)) &&
           blob->dtype == source->dtype;
}

/* Apart, so that the fast path makes no room for the texts. */
__attribute__((noinline)) static sb_status refuse(const sb_blob *blob, const sb_blob *source,
                                                  uint32_t flags, sb_error *err) {
    if (!blob || !source)
        return sb__fail_null(err, blob ? "source" : "blob");
    if (flags & ~(uint32_t)(SB_COPY_DIFF | SB_COPY_RESHAPE))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "unknown flags 0x%x", flags);
    if (blob->dtype != source->dtype)
        return sb__fail(err, SB_ERR_DTYPE_MISMATCH, "a blob of %s cannot take one of %s",
                        sb_dtype_name(blob->dtype), sb_dtype_name(source->dtype));
    char ours[96], theirs[96];
    (void)sb_blob_shape_string(blob, ours, sizeof ours, NULL, NULL);
    (void)sb_blob_shape_string(source, theirs, sizeof theirs, NULL, NULL);
    return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "shapes %s and %s differ", ours, theirs);
}

/* What was never written reads as zeros, and they count as written: Update finds them, as in Caffe.
 */
static sb_status write_zeros(sb_mem *mem, size_t bytes, sb_error *err) {
    void *zeros;
    if (sb__head(mem) == SB_HEAD_UNINITIALIZED)
        return sb_mem_mutable_cpu_data(mem, &zeros, err);
    return sb__mem_clear(mem, bytes, err);
}

static sb_status copy_zeros(sb_blob *blob, const sb_blob *source, enum sb__side_name name,
                            sb_error *err) {
    const size_t bytes = sb__blob_bytes(source);
    sb_mem *mem = sb__blob_peek(blob, name), *fresh = NULL;
    sb_status st = SB_OK;
    if (!mem || mem->bytes < bytes) {
        st = sb_mem_create(sb__context_public(blob->context), bytes, &fresh, err);
        mem = fresh;
    }
    if (st == SB_OK)
        st = write_zeros(mem, bytes, err);
    if (st != SB_OK) {
        sb_mem_release(fresh);
        return st;
    }
    if (fresh)
        sb__replace(&blob->memory[name], fresh);
    (void)sb__blob_take_shape(blob, &source->shape);
    return SB_OK;
}

static sb_status run_on_device(struct sb__write *write, const void *from, size_t bytes,
                               sb_error *err) {
    sb_context *context = write->mem->context;
    sb_status st =
        sb__device_copy(context, SB__DEVICE_COPY, write->ptr, from, bytes, context->stream, err);
    if (st != SB_OK)
        return st;
    st = sb__own_wait(context, err);
    if (st == SB_OK || !sb__write_in_place(write))
        return st;
    sb__write_spoiled(write);
    return sb__device_spoiled(context, err);
}

static sb_status run(struct sb__write *write, sb_mem *from, size_t bytes, sb_error *err) {
    const void *src;
    if (write->side == SB_SIDE_GPU) {
        sb_status st = sb__read_for_own(from, &src, err);
        return st == SB_OK ? run_on_device(write, src, bytes, err) : st;
    }
    sb_status st = sb_mem_cpu_data(from, &src, err);
    if (st != SB_OK)
        return st;
    sb__host_copy(&write->mem->context->parallel, write->ptr, src, bytes);
    sb__count_copy(write->mem->context, SB__HOST_COPY, bytes);
    return SB_OK;
}

static sb_status copy_bytes(sb_blob *blob, const sb_blob *source, enum sb__side_name name,
                            sb_mem *from, sb_error *err) {
    bool on_device =
        sb__head(from) != SB_HEAD_AT_CPU && sb_blob_context(blob) == sb_blob_context(source);
    struct sb__load_side to;
    sb_status st = sb__load_side_begin(&to, blob, name, &source->shape,
                                       on_device ? SB_SIDE_GPU : SB_SIDE_CPU, err);
    if (st != SB_OK)
        return st;
    st = run(&to.write, from, sb__blob_bytes(source), err);
    if (st != SB_OK) {
        sb__load_side_cancel(&to);
        return st;
    }
    sb__load_side_commit(&to, blob, name);
    (void)sb__blob_take_shape(blob, &source->shape);
    return SB_OK;
}

/* The common case: both are on the host, and nothing about the blob, whose shape is the source's,
   changes but its bytes. */
static bool copy_in_place(const sb_blob *blob, const sb_blob *source, enum sb__side_name name) {
    const sb_mem *to = sb__blob_peek(blob, name), *from = sb__blob_peek(source, name);
    const size_t bytes = sb__blob_bytes(source);
    if (!to || !sb__is_written_at_host(to) || !from || !sb__is_at_host(from) || to == from ||
        bytes == 0)
        return false;
    sb_context *context = to->context;
    sb__count_copy(context, SB__HOST_COPY, bytes);
    sb__host_copy(&context->parallel, sb__host_bytes(to), sb__host_bytes(from), bytes);
    return true;
}

/* Apart, so that the fast path saves no registers for it. */
__attribute__((noinline)) static sb_status copy(sb_blob *blob, const sb_blob *source,
                                                enum sb__side_name name, sb_error *err) {
    sb_mem *from = sb__blob_peek(source, name);
    if (blob == source)
        return SB_OK;
    if (sb_blob_count(source) == 0 || (from && from == sb__blob_peek(blob, name))) {
        (void)sb__blob_take_shape(blob, &source->shape);
        return SB_OK;
    }
    if (!from || sb__head(from) == SB_HEAD_UNINITIALIZED)
        return copy_zeros(blob, source, name, err);
    if (sb__head(from) == SB_HEAD_LOST)
        return sb__fail_lost(err);
    return copy_bytes(blob, source, name, from, err);
}

sb_status sb_blob_copy_from(sb_blob *blob, const sb_blob *source, uint32_t flags, sb_error *err) {
    if (!may_copy(blob, source, flags))
        return refuse(blob, source, flags, err);
    const enum sb__side_name name = flags & SB_COPY_DIFF ? SB__DIFF : SB__DATA;
    const bool same = sb__shape_same(&blob->shape, &source->shape);
    if (same && copy_in_place(blob, source, name))
        return SB_OK;
    return same || flags & SB_COPY_RESHAPE ? copy(blob, source, name, err)
                                           : refuse(blob, source, flags, err);
}
