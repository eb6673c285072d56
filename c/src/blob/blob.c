#include "blob/blob.h"

#include "base/error.h"
#include "memory/mem.h"

#include <string.h>

const sb_mem sb__no_memory = {.word = SB_HEAD_UNINITIALIZED};

sb_status sb_blob_create(sb_context *context, sb_dtype dtype, sb_blob **out, sb_error *err) {
    void *object = NULL;
    if (!out)
        return sb__fail_null(err, "out");
    const size_t element_size = sb_dtype_size(dtype);
    if (!element_size)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%d is not a dtype", dtype);
    context = sb__context(context);
    sb_status st = sb__object_alloc(context, sizeof(sb_blob), &object, err);
    if (st != SB_OK)
        return st;
    sb_blob *blob = object;
    blob->context = sb_context_retain(context);
    blob->dtype = dtype;
    blob->element_size = (uint32_t)element_size;
    blob->shape.num_axes = -1;
    atomic_init(&blob->memory[SB_DATA], sb__no_mem());
    atomic_init(&blob->memory[SB_DIFF], sb__no_mem());
    atomic_init(&blob->gpu_shape, sb__no_mem());
    *out = blob;
    return SB_OK;
}

sb_status sb_blob_create_shaped(sb_context *context, sb_dtype dtype, const int64_t *shape,
                                int32_t num_axes, sb_blob **out, sb_error *err) {
    sb_blob *blob;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb_blob_create(context, dtype, &blob, err);
    if (st != SB_OK)
        return st;
    st = sb_blob_reshape(blob, shape, num_axes, NULL, err);
    if (st == SB_OK)
        *out = blob;
    else
        sb_blob_destroy(blob);
    return st;
}

void sb_blob_destroy(sb_blob *blob) {
    if (!blob)
        return;
    struct sb__retired retired = {NULL, NULL};
    sb_context *context = blob->context;
    sb__retire_mem(&retired, sb__peek(&blob->memory[SB_DATA]));
    sb__retire_mem(&retired, sb__peek(&blob->memory[SB_DIFF]));
    sb__retire_mem(&retired, sb__peek(&blob->gpu_shape));
    sb__retired_end(&retired);
    sb__object_free(context, blob, sizeof *blob);
    sb_context_release(context);
}

sb_dtype sb_blob_dtype(const sb_blob *blob) {
    return blob ? blob->dtype : 0;
}

sb_context *sb_blob_context(const sb_blob *blob) {
    return blob ? sb__context_public(blob->context) : NULL;
}

sb_status sb_blob_check_dtype(const sb_blob *blob, sb_dtype dtype, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    if (blob->dtype == dtype)
        return SB_OK;
    return sb__fail(err, SB_ERR_DTYPE_MISMATCH, "the blob holds %s, not %s as requested",
                    sb_dtype_name(blob->dtype), sb_dtype_name(dtype));
}

sb_status sb__check_part(sb_part part, sb_error *err) {
    if (sb__is_part(part))
        return SB_OK;
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "part %d is neither SB_DATA nor SB_DIFF", part);
}

/* Stores `made` in `*slot` unless another thread has replaced the placeholder `first`. Returns the
   memory that is then in `*slot`. */
static sb_mem *publish_first(_Atomic(sb_mem *) *slot, sb_mem *first, sb_mem *made) {
    if (atomic_compare_exchange_strong_explicit(slot, &first, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    sb_mem_release(made);
    return first;
}

sb_status sb__blob_memory(const sb_blob *blob, sb_part part, sb_mem **out, sb_error *err) {
    sb_blob *b = (sb_blob *)blob;
    sb_mem *mem = atomic_load_explicit(&b->memory[part], memory_order_acquire);
    if (sb__is_placeholder(mem)) {
        sb_mem *made;
        sb_status st = sb_mem_create(sb__context_public(b->context), sb__blob_bytes(b), &made, err);
        if (st != SB_OK)
            return st;
        mem = publish_first(&b->memory[part], mem, made);
    }
    *out = mem;
    return SB_OK;
}

void sb__swap(_Atomic(sb_mem *) *memory, sb_mem *mem, struct sb__retired *retired) {
    sb_mem *old = sb__peek(memory);
    atomic_store_explicit(memory, mem ? mem : sb__no_mem(), memory_order_relaxed);
    sb__retire_mem(retired, old);
}

void sb__replace(_Atomic(sb_mem *) *memory, sb_mem *mem) {
    struct sb__retired retired = {NULL, NULL};
    sb__swap(memory, mem, &retired);
    sb__retired_end(&retired);
}

static sb_status make_gpu_shape(const sb_blob *blob, sb_mem **out, sb_error *err) {
    size_t bytes = (size_t)sb_blob_num_axes(blob) * sizeof(int64_t);
    void *dims;
    sb_mem *mem;
    sb_status st = sb_mem_create(sb__context_public(blob->context), bytes, &mem, err);
    if (st != SB_OK)
        return st;
    st = sb_mem_overwrite_cpu(mem, &dims, err);
    if (st != SB_OK) {
        sb_mem_release(mem);
        return st;
    }
    if (bytes)
        memcpy(dims, blob->shape.dims, bytes);
    *out = mem;
    return SB_OK;
}

sb_status sb_blob_gpu_shape(const sb_blob *blob, const int64_t **out, sb_error *err) {
    const void *dims;
    if (!blob || !out)
        return sb__fail_null(err, blob ? "out" : "blob");
    sb_blob *b = (sb_blob *)blob;
    sb_mem *made, *mem = atomic_load_explicit(&b->gpu_shape, memory_order_acquire);
    sb_status st = sb__device_check(b->context, err);
    if (st == SB_OK && sb__is_placeholder(mem)) {
        st = make_gpu_shape(blob, &made, err);
        if (st == SB_OK)
            mem = publish_first(&b->gpu_shape, mem, made);
    }
    if (st == SB_OK)
        st = sb_mem_gpu(mem, &dims, err);
    if (st == SB_OK)
        *out = dims;
    return st;
}
