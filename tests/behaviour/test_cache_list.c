/* Compares random calls of the host cache's list with a simple model. */
#include "support.h"

#include "base/draw.h"
#include "context/context.h"

#define UNIT    ((size_t)64 << 10) /* the smallest cached size */
#define ENTRIES SB__CACHE_ENTRIES

static struct {
    sb_context context;
    struct sb__cached model[ENTRIES + 1]; /* the oldest entry is first */
    int count, released;
    bool busy; /* another thread holds the lock */
    int64_t found, dropped;
} world;

/* This program does not link the library's file that defines this variable. */
sb__counter sb__fork_generation = 1;

void sb__host_release(sb_context *context, void *buffer, size_t bytes, bool pinned) {
    assert_ptr_equal(context, &world.context);
    assert_true(sb__mutex_try_lock(&world.context.cache.lock));
    sb__mutex_unlock(&world.context.cache.lock);
    assert_true(world.released < world.count);
    const struct sb__cached *entry = &world.model[world.released++];
    assert_ptr_equal(buffer, entry->ptr);
    assert_true(bytes == entry->bytes && pinned == entry->pinned);
}

static uint64_t sum_from(int first) {
    uint64_t bytes = 0;
    for (int i = first; i < world.count; i++)
        bytes += world.model[i].bytes;
    return bytes;
}

static void remove_from_model(int first, int count) {
    world.count -= count;
    memmove(world.model + first, world.model + first + count,
            (size_t)(world.count - first) * sizeof *world.model);
}

static void take(size_t bytes, bool pinned) {
    void *out = NULL;
    int newest = world.busy ? -1 : world.count - 1;
    while (newest >= 0 &&
           (world.model[newest].bytes != bytes || world.model[newest].pinned != pinned))
        newest--;
    assert_int_equal(sb__cache_take(&world.context, bytes, pinned, &out), newest >= 0);
    assert_ptr_equal(out, newest >= 0 ? world.model[newest].ptr : NULL);
    assert_int_equal(world.released, 0);
    if (newest >= 0)
        remove_from_model(newest, 1);
    world.found += newest >= 0;
}

static void put(size_t bytes, bool pinned) {
    static char buffers[64];
    static int next;
    const struct sb__cached entry = {&buffers[next++ % 64], bytes, pinned};
    const size_t most = world.context.max_cache_bytes;
    const bool is_cacheable = bytes >= UNIT && bytes <= most && !world.busy;
    int gone = 0;
    while (is_cacheable && (world.count - gone == ENTRIES || sum_from(gone) + bytes > most))
        gone++;
    assert_int_equal(sb__cache_put(&world.context, entry.ptr, bytes, pinned), is_cacheable);
    assert_int_equal(world.released, gone);
    remove_from_model(0, gone);
    if (is_cacheable)
        world.model[world.count++] = entry;
    world.dropped += gone;
}

static void shrink(size_t most) {
    int gone = 0;
    while (!world.busy && sum_from(gone) > most)
        gone++;
    sb__cache_shrink(&world.context, most);
    assert_int_equal(world.released, gone);
    remove_from_model(0, gone);
}

/* `busy` simulates a forked child. The parent held the lock at the fork, so no thread of the child
   releases the lock. */
static void make_call(uint64_t *seed) {
    struct sb__host_cache *cache = &world.context.cache;
    const size_t most = world.context.max_cache_bytes;
    const size_t sizes[] = {UNIT - 1, UNIT, 2 * UNIT, 3 * UNIT, most, most + 1, 0};
    const uint64_t call = sb__draw(seed) % 8;
    const size_t bytes = sizes[sb__draw(seed) % (call ? 6 : 7)];
    const bool pinned = sb__draw(seed) % 2;
    world.busy = sb__draw(seed) % 8 == 0;
    world.context.fork_generation = sb__counter_read(&sb__fork_generation) - world.busy;
    world.released = 0;
    if (world.busy)
        sb__mutex_lock(&cache->lock);
    if (call == 0)
        shrink(bytes);
    else
        (call < 4 ? take : put)(bytes, pinned);
    if (world.busy)
        sb__mutex_unlock(&cache->lock);
    assert_int_equal(cache->count, world.count);
    assert_int_equal(sb__counter_read(&cache->bytes), sum_from(0));
    for (int i = 0; i < world.count; i++) {
        const struct sb__cached *entry = &cache->entries[i], *same = &world.model[i];
        assert_true(entry->ptr == same->ptr && entry->bytes == same->bytes &&
                    entry->pinned == same->pinned);
    }
}

TEST(every_call_leaves_the_list_of_the_model) {
    static const size_t limits[] = {1, 3, 5, 8, 100};
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        memset(&world, 0, sizeof world);
        world.context.max_cache_bytes = limits[i] * UNIT;
        sb__mutex_init(&world.context.cache.lock);
        for (int calls = 0; calls < 40000; calls++)
            make_call(&seed);
        assert_true(world.found > 0 && world.dropped > 0);
        sb__mutex_destroy(&world.context.cache.lock);
    }
}
