/* Makes a blob share the storage of another blob, or borrow storage from the caller. */
#include "blob/blob.h"

#include "base/error.h"
#include "memory/mem.h"

static sb_status check_share(const sb_blob *blob, sb_part part, const sb_blob *other,
                             sb_error *err) {
    if (!blob || !other)
        return sb__fail_null(err, blob ? "other" : "blob");
    if (blob->dtype != other->dtype)
        return sb__fail(err, SB_ERR_DTYPE_MISMATCH, "a blob of %s cannot share with a blob of %s",
                        sb_dtype_name(blob->dtype), sb_dtype_name(other->dtype));
    if (blob->shape.count != other->shape.count)
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "counts %lld and %lld differ",
                        (long long)blob->shape.count, (long long)other->shape.count);
    if (blob->context != other->context)
        return sb__fail(err, SB_ERR_WRONG_DEVICE, "the blobs belong to different contexts");
    return sb__check_part(part, err);
}

static void use_memory(sb_blob *blob, sb_part part, sb_mem *mem) {
    sb__replace(&blob->memory[part], sb_mem_retain(mem));
}

sb_status sb_blob_share(sb_blob *blob, sb_part part, const sb_blob *other, sb_error *err) {
    sb_mem *mem;
    sb_status st = check_share(blob, part, other, err);
    if (st == SB_OK)
        st = sb__blob_memory(other, part, &mem, err);
    if (st == SB_OK)
        use_memory(blob, part, mem);
    return st;
}

static sb_status check_memory(const sb_blob *blob, sb_part part, sb_mem *mem, sb_error *err) {
    if (!blob || !mem)
        return sb__fail_null(err, blob ? "mem" : "blob");
    if (mem->bytes < sb__blob_bytes(blob))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "a memory of %zu bytes is too small for %lld elements of %s", mem->bytes,
                        (long long)blob->shape.count, sb_dtype_name(blob->dtype));
    if (mem->context != blob->context)
        return sb__fail(err, SB_ERR_WRONG_DEVICE, "the memory belongs to another context");
    sb_status st = sb__check_part(part, err);
    return st == SB_OK ? sb__check_alignment(mem, blob->element_size, err) : st;
}

sb_status sb_blob_set_mem(sb_blob *blob, sb_part part, sb_mem *mem, sb_error *err) {
    sb_status st = check_memory(blob, part, mem, err);
    if (st == SB_OK)
        use_memory(blob, part, mem);
    return st;
}

static sb_status check_lent(const sb_blob *blob, sb_part part, const void *ptr, size_t bytes,
                            sb_error *err) {
    if (!blob || !ptr)
        return sb__fail_null(err, blob ? "ptr" : "blob");
    if (bytes < sb__blob_bytes(blob))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                        "%zu bytes are too few for %lld elements of %s", bytes,
                        (long long)blob->shape.count, sb_dtype_name(blob->dtype));
    if (bytes > PTRDIFF_MAX)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%zu bytes are more than PTRDIFF_MAX", bytes);
    if ((uintptr_t)ptr % blob->element_size)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the pointer is not aligned for %s",
                        sb_dtype_name(blob->dtype));
    return sb__check_part(part, err);
}

typedef sb_status set_call(sb_mem *, void *, size_t, uint32_t, sb_deleter, void *, sb_error *);

/* Lends `ptr` to a new memory of `bytes` bytes. Blobs that share the old memory keep it. */
static sb_status lend(sb_blob *blob, sb_part part, set_call *set, void *ptr, size_t bytes,
                      uint32_t flags, sb_deleter deleter, void *user, sb_error *err) {
    sb_mem *mem;
    sb_status st = check_lent(blob, part, ptr, bytes, err);
    if (st == SB_OK)
        st = sb_mem_create(sb__context_public(blob->context), bytes, &mem, err);
    if (st != SB_OK)
        return st;
    st = set(mem, ptr, bytes, flags, deleter, user, err);
    if (st == SB_OK)
        sb__replace(&blob->memory[part], mem);
    else
        sb_mem_release(mem);
    return st;
}

sb_status sb_blob_set_cpu(sb_blob *blob, sb_part part, void *ptr, size_t bytes, uint32_t flags,
                          sb_deleter deleter, void *user, sb_error *err) {
    return lend(blob, part, sb_mem_set_cpu, ptr, bytes, flags, deleter, user, err);
}

sb_status sb_blob_set_gpu(sb_blob *blob, sb_part part, void *ptr, size_t bytes, uint32_t flags,
                          sb_deleter deleter, void *user, sb_error *err) {
    return lend(blob, part, sb_mem_set_gpu, ptr, bytes, flags, deleter, user, err);
}

sb_status sb_blob_reclaim_cpu(sb_blob *blob, sb_part part, sb_deleter deleter, void **out_user,
                              sb_error *err) {
    if (!blob || !out_user)
        return sb__fail_null(err, blob ? "out_user" : "blob");
    if (!deleter)
        return sb__fail_null(err, "deleter");
    sb_status st = sb__check_part(part, err);
    if (st != SB_OK)
        return st;
    sb_mem *mem = sb__blob_peek(blob, part);
    if (!mem)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "the blob has no memory for this part");
    st = sb__mem_reclaim(mem, deleter, out_user, err);
    if (st == SB_OK)
        sb__replace(&blob->memory[part], NULL);
    return st;
}
