#include "blob/blob.h"

#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/mem.h"

#include <string.h>

static bool is_shrinkable(const sb_blob *blob, const sb_mem *mem) {
    return mem && sb_mem_is_unique(mem) && sb_mem_size(mem) > sb__blob_bytes(blob) &&
           sb_mem_storage(mem, SB_SIDE_CPU) < SB_STORAGE_BORROWED &&
           sb_mem_storage(mem, SB_SIDE_GPU) < SB_STORAGE_BORROWED;
}

static sb_status copy_device(sb_mem *to, sb_mem *from, struct sb__retired *retired, sb_error *err) {
    sb_context *context = to->context;
    const void *src;
    void *dst;
    sb_status st = sb_mem_overwrite_gpu(to, &dst, err);
    if (st == SB_OK)
        st = sb__read_for_own(from, &src, retired, err);
    if (st == SB_OK)
        st = sb__device_copy(context, SB__DEVICE_COPY, dst, src, to->bytes, context->stream, err);
    return st == SB_OK ? sb__own_wait(context, err) : st;
}

static sb_status copy_host(sb_mem *to, sb_mem *from, struct sb__retired *retired, sb_error *err) {
    const void *src;
    void *dst;
    sb_status st = sb_mem_overwrite_cpu(to, &dst, err);
    if (st == SB_OK)
        st = sb__read_side(from, SB_SIDE_CPU, &src, retired, err);
    if (st != SB_OK)
        return st;
    sb__host_copy(&to->context->parallel, dst, src, to->bytes);
    sb__count_copy(to->context, SB__HOST_COPY, to->bytes);
    return SB_OK;
}

/* Creates a memory of exactly the blob's size, with the bytes of `from`. */
static sb_status make_smaller(const sb_blob *blob, sb_mem *from, sb_mem **out,
                              struct sb__retired *retired, sb_error *err) {
    sb_mem *to;
    int32_t head = sb__head(from);
    if (head == SB_HEAD_LOST)
        return sb__fail_lost(err);
    sb_status st = sb_mem_create(sb__context_public(blob->context), sb__blob_bytes(blob), &to, err);
    if (st != SB_OK)
        return st;
    if (to->bytes && head == SB_HEAD_AT_GPU)
        st = copy_device(to, from, retired, err);
    else if (to->bytes && head != SB_HEAD_UNINITIALIZED)
        st = copy_host(to, from, retired, err);
    if (st == SB_OK)
        *out = to;
    else
        sb__retire_mem(retired, to);
    return st;
}

void sb_blob_drop(sb_blob *blob, sb_part part) {
    if (blob && sb__is_part(part))
        sb__replace(&blob->memory[part], NULL);
}

static sb_status shrink(sb_blob *blob, uint32_t *out_reallocated, struct sb__retired *retired,
                        sb_error *err) {
    sb_mem *smaller[2] = {NULL, NULL};
    uint32_t replaced = 0;
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        sb_mem *mem = sb__blob_peek(blob, part);
        sb_status st = is_shrinkable(blob, mem)
                           ? make_smaller(blob, mem, &smaller[part], retired, err)
                           : SB_OK;
        if (st != SB_OK) {
            sb__retire_mem(retired, smaller[SB_DATA]);
            return st;
        }
    }
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        if (!smaller[part])
            continue;
        sb__swap(&blob->memory[part], smaller[part], retired);
        replaced |= part == SB_DATA ? SB_REALLOCATED_DATA : SB_REALLOCATED_DIFF;
    }
    if (out_reallocated)
        *out_reallocated = replaced;
    return SB_OK;
}

sb_status sb_blob_shrink_to_fit(sb_blob *blob, uint32_t *out_reallocated, sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    if (!blob)
        return sb__fail_null(err, "blob");
    sb_status st = shrink(blob, out_reallocated, &retired, err);
    sb__retired_end(&retired);
    return st;
}
