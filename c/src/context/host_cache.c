/* A cache of freed large host buffers. Reuse of a buffer is faster than an allocation. The first
   touch of fresh pages costs several times as much as a write to used pages. Each context has a
   separate cache, so that no bytes of one context appear in another context. */
#include "context/context.h"

#include "base/checked.h"

#define SMALLEST     ((size_t)64 << 10)
#define LONGEST_WAIT 1000 /* milliseconds */

static bool is_cached_size(const sb_context *context, size_t bytes) {
    return bytes >= SMALLEST && bytes <= context->max_cache_bytes &&
           !(context->flags & SB_CONTEXT_NO_HOST_CACHE);
}

/* Rounds up to one of the eight size classes between successive powers of two. */
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

/* Removes entry `i`. The remaining entries stay sorted, oldest first. */
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
    /* If the cache is locked, the caller allocates normally. In a forked child the lock may never
       be released. */
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

/* Acquires cache.lock. A forked child only tries, because a thread of the parent may have left the
   lock locked. */
static bool lock_cache(sb_context *context) {
    if (!sb__context_is_ours(context))
        return sb__mutex_try_lock(&context->cache.lock);
    sb__mutex_lock(&context->cache.lock);
    return true;
}

static void release_all(sb_context *context, const struct sb__cached *old, int count) {
    for (int i = 0; i < count; i++)
        sb__host_release(context, old[i].ptr, old[i].bytes, old[i].pinned);
    (void)sb__counter_add(&context->cache.released, (uint64_t)count);
}

/* Frees buffers that the caller has removed from the cache. The caller has added their number,
   `count`, to cache.leaving. */
static void release_leaving(sb_context *context, const struct sb__cached *old, int count) {
    if (!count)
        return;
    release_all(context, old, count);
    if (lock_cache(context)) {
        context->cache.leaving -= count;
        sb__mutex_unlock(&context->cache.lock);
    }
}

/* Removes the oldest entries until at most `most` bytes and `entries` entries remain. */
static int remove_until(struct sb__host_cache *cache, uint64_t most, int entries,
                        struct sb__cached *old) {
    int removed = 0;
    while (sb__counter_read(&cache->bytes) > most || cache->count > entries)
        old[removed++] = remove_entry(cache, 0);
    return removed;
}

bool sb__cache_put(sb_context *context, void *ptr, size_t bytes, bool pinned) {
    struct sb__host_cache *cache = &context->cache;
    struct sb__cached old[SB__CACHE_ENTRIES];
    if (!is_cached_size(context, bytes) || !sb__mutex_try_lock(&cache->lock))
        return false;
    const int removed =
        remove_until(cache, context->max_cache_bytes - bytes, SB__CACHE_ENTRIES - 1, old);
    cache->leaving += removed;
    cache->entries[cache->count++] = (struct sb__cached){ptr, bytes, pinned};
    (void)sb__counter_add(&cache->bytes, bytes);
    sb__mutex_unlock(&cache->lock);
    release_leaving(context, old, removed);
    return true;
}

void sb__cache_shrink(sb_context *context, uint64_t most) {
    struct sb__host_cache *cache = &context->cache;
    struct sb__cached old[SB__CACHE_ENTRIES];
    if (!lock_cache(context))
        return;
    const int removed = remove_until(cache, most, SB__CACHE_ENTRIES, old);
    cache->leaving += removed;
    sb__mutex_unlock(&cache->lock);
    release_leaving(context, old, removed);
}

bool sb__cache_lock_empty(sb_context *context) {
    struct sb__host_cache *cache = &context->cache;
    struct sb__cached old[SB__CACHE_ENTRIES];
    if (!lock_cache(context))
        return false;
    const int longest = sb__context_is_ours(context) ? LONGEST_WAIT : 0;
    for (int waited = 0; cache->leaving && waited < longest; waited++) {
        sb__mutex_unlock(&cache->lock);
        sb__sleep_milliseconds(1);
        sb__mutex_lock(&cache->lock);
    }
    release_all(context, old, remove_until(cache, 0, 0, old));
    return true;
}
