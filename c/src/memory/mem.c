#include "memory/mem.h"

#include "base/error.h"

sb_status sb_mem_create(sb_context *context, size_t bytes, sb_mem **out, sb_error *err) {
    void *object;
    if (!out)
        return sb__fail_null(err, "out");
    if (bytes > PTRDIFF_MAX)
        return sb__fail(err, SB_ERR_SIZE_OVERFLOW, "%zu bytes are more than PTRDIFF_MAX", bytes);
    context = sb__context(context);
    sb_status st = sb__object_alloc(context, sizeof(sb_mem), &object, err);
    if (st != SB_OK)
        return st;
    sb_mem *mem = object;
    mem->context = sb__context(sb_context_retain(sb__context_public(context)));
    mem->bytes = bytes;
    mem->writer = -1;
    mem->pending = -1;
    pthread_mutex_init(&mem->lock, NULL);
    atomic_store_explicit(&mem->refs, 1, memory_order_relaxed);
    sb__publish(mem, SB_HEAD_UNINITIALIZED);
    *out = mem;
    return SB_OK;
}

sb_mem *sb_mem_retain(sb_mem *mem) {
    if (mem)
        atomic_fetch_add_explicit(&mem->refs, 1, memory_order_relaxed);
    return mem;
}

static void destroy(sb_mem *mem) {
    sb_context *context = mem->context;
    (void)sb__settle(mem, NULL);
    sb__retire(mem, SB_SIDE_CPU, &mem->side[SB_SIDE_CPU]);
    sb__retire(mem, SB_SIDE_GPU, &mem->side[SB_SIDE_GPU]);
    pthread_mutex_destroy(&mem->lock);
    sb__object_free(context, mem, sizeof *mem);
    sb_context_release(context);
}

void sb_mem_release(sb_mem *mem) {
    if (mem && atomic_fetch_sub_explicit(&mem->refs, 1, memory_order_acq_rel) == 1)
        destroy(mem);
}

int32_t sb_mem_is_unique(const sb_mem *mem) {
    return mem && atomic_load_explicit(&mem->refs, memory_order_acquire) == 1;
}

size_t sb_mem_size(const sb_mem *mem) {
    return mem ? mem->bytes : 0;
}

int32_t sb_mem_head(const sb_mem *mem) {
    return mem ? sb__head(mem) : SB_HEAD_UNINITIALIZED;
}

int32_t sb_mem_storage(const sb_mem *mem, int32_t side) {
    if (!mem || (side != SB_SIDE_CPU && side != SB_SIDE_GPU))
        return SB_STORAGE_NONE;
    sb_mem *m = (sb_mem *)mem;
    pthread_mutex_lock(&m->lock);
    int32_t kind = m->side[side].kind;
    pthread_mutex_unlock(&m->lock);
    return kind;
}

sb_context *sb_mem_context(const sb_mem *mem) {
    return mem ? sb__context_public(mem->context) : NULL;
}
