#include "context/context.h"

#include "base/error.h"

#include <string.h>

static sb_status try_ordinary(sb_context *context, size_t bytes, uint32_t flags, void **out,
                              sb_error *err) {
    sb_status st = sb__account_take(&context->host, bytes, "host memory", err);
    if (st != SB_OK)
        return st;
    void *ptr =
        context->allocator.alloc(context->allocator.user, bytes, SB__BUFFER_ALIGNMENT, flags);
    if (!ptr) {
        sb__account_give(&context->host, bytes);
        return sb__fail_memory(err, bytes);
    }
    sb__account_had(&context->host);
    *out = ptr;
    return SB_OK;
}

/* Fails only if the request and the bytes in use together exceed the memory or the cap. The retry
   runs after all cached buffers are freed, while no thread can add a buffer to the cache. */
sb_status sb__ordinary_alloc(sb_context *context, size_t bytes, uint32_t flags, void **out,
                             sb_error *err) {
    sb_error first;
    const uint64_t released = sb__counter_read(&context->cache.released);
    sb_status st = try_ordinary(context, bytes, flags, out, &first);
    if (st == SB_OK)
        return SB_OK;
    if (sb__cache_lock_empty(context)) {
        if (sb__counter_read(&context->cache.released) != released)
            st = try_ordinary(context, bytes, flags, out, &first);
        sb__mutex_unlock(&context->cache.lock);
    }
    if (st != SB_OK && err)
        *err = first;
    return st;
}

sb_status sb__object_alloc(sb_context *context, size_t bytes, void **out, sb_error *err) {
    return sb__ordinary_alloc(context, bytes, SB_ALLOC_OBJECT | SB_ALLOC_ZEROED, out, err);
}

void sb__object_free(sb_context *context, void *object, size_t bytes) {
    if (object)
        sb__ordinary_free(context, object, bytes, SB_ALLOC_OBJECT | SB_ALLOC_ZEROED);
}

/* Returns the flags of an allocation. Requests zeros, because malloc may return memory with data of
   another context. Only the built-in allocator receives SB__ALLOC_ANY, which cancels that
   request. */
static uint32_t flags_of(const sb_context *context, enum sb__contents contents) {
    const bool is_ours = context->allocator.alloc == sb__default_allocator.alloc;
    return SB_ALLOC_ZEROED | (is_ours && contents == SB__ANY_BYTES ? SB__ALLOC_ANY : 0);
}

sb_status sb__object_grow(sb_context *context, void **object, size_t old_bytes, size_t new_bytes,
                          sb_error *err) {
    void *grown = NULL; /* gcc does not see that success sets the pointer */
    const uint32_t flags = SB_ALLOC_OBJECT | flags_of(context, SB__ANY_BYTES);
    sb_status st = sb__ordinary_alloc(context, new_bytes, flags, &grown, err);
    if (st != SB_OK)
        return st;
    if (old_bytes)
        memcpy(grown, *object, old_bytes);
    sb__object_free(context, *object, old_bytes);
    *object = grown;
    return SB_OK;
}

/* Returns the size to allocate for a buffer of `bytes`, which a page-locked buffer may exceed. */
static size_t size_of(const sb_context *context, size_t bytes, bool pinned) {
    return pinned ? sb__cache_class(context, bytes) : bytes;
}

static bool wants_pinned(const sb_context *context, size_t bytes) {
    return context->has_device && context->backend.alloc_pinned &&
           sb__cache_class(context, bytes) <= context->pinned.cap &&
           !(context->flags & SB_CONTEXT_NO_PINNED) && sb_context_device_status(context) == SB_OK;
}

/* Allocates page-locked memory. If the allocation fails, returns NULL, and the caller uses ordinary
   memory. Also clears the bytes beyond `bytes`, because a later buffer of the same size class may
   use them. */
static void *pinned_alloc(sb_context *context, size_t bytes, enum sb__contents contents) {
    const size_t size = sb__cache_class(context, bytes);
    const size_t kept = contents == SB__ANY_BYTES ? bytes : 0;
    void *ptr = NULL;
    if (!sb__account_add(&context->pinned, size))
        return NULL;
    if (sb__device_alloc_pinned(context, size, &ptr, NULL) != SB_OK || !ptr) {
        sb__account_give(&context->pinned, size);
        return NULL;
    }
    sb__account_had(&context->pinned);
    memset((char *)ptr + kept, 0, size - kept);
    return ptr;
}

static sb_status fresh_alloc(sb_context *context, size_t bytes, enum sb__contents contents,
                             bool *out_pinned, void **out, sb_error *err) {
    void *pinned = wants_pinned(context, bytes) ? pinned_alloc(context, bytes, contents) : NULL;
    *out_pinned = pinned != NULL;
    if (!pinned)
        return sb__ordinary_alloc(context, bytes, flags_of(context, contents), out, err);
    *out = pinned;
    return SB_OK;
}

/* Takes a buffer from the cache. The buffer contains old bytes of this context. The caller holds a
   memory's lock, so this function must not call parallel_for. */
static bool cached_alloc(sb_context *context, size_t bytes, enum sb__contents contents,
                         bool *out_pinned, void **out) {
    bool pinned = wants_pinned(context, bytes) &&
                  sb__cache_take(context, sb__cache_class(context, bytes), true, out);
    if (!pinned && !sb__cache_take(context, bytes, false, out))
        return false;
    *out_pinned = pinned;
    if (contents == SB__ZEROS)
        memset(*out, 0, bytes);
    return true;
}

/* Shrinks the cache until the cached bytes, the bytes in use and `more` bytes are together at most
   the peak of bytes in use. The cache thus never increases the peak of the process. */
static void fit_cache(sb_context *context, size_t more) {
    struct sb__host_cache *cache = &context->cache;
    const uint64_t used = sb__counter_read(&cache->used) + more;
    const uint64_t most = sb__counter_read(&cache->most_used);
    const uint64_t room = most > used ? most - used : 0;
    if (sb__counter_read(&cache->bytes) > room)
        sb__cache_shrink(context, room);
}

size_t sb__host_size(const sb_context *context, size_t bytes) {
    return size_of(context, bytes, wants_pinned(context, bytes));
}

/* Shrinks the cache before the allocation, to free old memory first. Shrinks the cache again
   afterwards, since other threads may have changed the cache. */
sb_status sb__host_alloc(sb_context *context, size_t bytes, enum sb__contents contents,
                         bool *out_pinned, void **out, sb_error *err) {
    struct sb__host_cache *cache = &context->cache;
    if (!cached_alloc(context, bytes, contents, out_pinned, out)) {
        fit_cache(context, size_of(context, bytes, wants_pinned(context, bytes)));
        sb_status st = fresh_alloc(context, bytes, contents, out_pinned, out, err);
        if (st != SB_OK)
            return st;
    }
    const size_t size = size_of(context, bytes, *out_pinned);
    sb__counter_raise(&cache->most_used, sb__counter_add(&cache->used, size));
    fit_cache(context, 0);
    return SB_OK;
}

void sb__host_free(sb_context *context, void *buffer, size_t bytes, bool pinned) {
    const size_t size = size_of(context, bytes, pinned);
    sb__counter_subtract(&context->cache.used, size);
    if (sb__cache_put(context, buffer, size, pinned))
        fit_cache(context, 0);
    else
        sb__host_release(context, buffer, size, pinned);
}
