/* A cache of freed large host buffers by size: the first touch of fresh pages costs several times a
   write to used ones. Each context has a separate cache, so that no bytes of one context appear in
   another. */
#include "context/context.h"

#include "base/checked.h"

#define SMALLEST ((size_t)64 << 10)

static bool is_cached_size(const sb_context *context, size_t bytes) {
    return bytes >= SMALLEST && bytes <= context->max_cache_bytes &&
           !(context->flags & SB_CONTEXT_NO_HOST_CACHE);
}

/* Eight classes between successive powers of two. */
size_t sb__cache_class(const sb_context *context, size_t bytes) {
    size_t step = SMALLEST / 8, class;
    if (!is_cached_size(context, bytes))
        return bytes;
    while (bytes / step >= 16)
        step *= 2;
    const size_t over = bytes % step;
    const bool fits = sb__add_size(bytes, over ? step - over : 0, &class);
    return fits && is_cached_size(context, class) ? class : bytes;
}

/* Entries are sorted, oldest first. */
static struct sb__cached remove_entry(struct sb__host_cache *cache, int i) {
    struct sb__cached entry = cache->entries[i];
    cache->count--;
    for (; i < cache->count; i++)
        cache->entries[i] = cache->entries[i + 1];
    sb__counter_subtract(&cache->bytes, entry.bytes);
    return entry;
}

bool sb__cache_take(sb_context *context, size_t bytes, bool pinned, void **out) {
    struct sb__host_cache *cache = &context->cache;
    bool found = false;
    /* If the cache is locked, allocate normally; in a forked child the lock may never be released.
     */
    if (!is_cached_size(context, bytes) || !sb__mutex_try_lock(&cache->lock))
        return false;
    for (int i = cache->count - 1; i >= 0 && !found; i--) {
        if (cache->entries[i].bytes != bytes || cache->entries[i].pinned != pinned)
            continue;
        *out = remove_entry(cache, i).ptr;
        found = true;
    }
    sb__mutex_unlock(&cache->lock);
    return found;
}

bool sb__cache_put(sb_context *context, void *ptr, size_t bytes, bool pinned) {
    struct sb__host_cache *cache = &context->cache;
    struct sb__cached old[SB__CACHE_ENTRIES];
    int dropped = 0;
    if (!is_cached_size(context, bytes) || !sb__mutex_try_lock(&cache->lock))
        return false;
    while (cache->count == SB__CACHE_ENTRIES ||
           sb__counter_read(&cache->bytes) > context->max_cache_bytes - bytes)
        old[dropped++] = remove_entry(cache, 0);
    cache->entries[cache->count++] = (struct sb__cached){ptr, bytes, pinned};
    (void)sb__counter_add(&cache->bytes, bytes);
    sb__mutex_unlock(&cache->lock);
    for (int i = 0; i < dropped; i++)
        sb__host_release(context, old[i].ptr, old[i].bytes, old[i].pinned);
    return true;
}

void sb__cache_shrink(sb_context *context, uint64_t most) {
    struct sb__host_cache *cache = &context->cache;
    struct sb__cached old[SB__CACHE_ENTRIES];
    int dropped = 0;
    if (sb__context_is_ours(context))
        sb__mutex_lock(&cache->lock);
    else if (!sb__mutex_try_lock(&cache->lock))
        return;
    while (sb__counter_read(&cache->bytes) > most)
        old[dropped++] = remove_entry(cache, 0);
    sb__mutex_unlock(&cache->lock);
    for (int i = 0; i < dropped; i++)
        sb__host_release(context, old[i].ptr, old[i].bytes, old[i].pinned);
}
