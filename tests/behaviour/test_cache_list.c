/* Tests the list of the host cache, for a cache of four entries. Makes every call on every valid
   list of entries of three sizes, pinned or not, and checks that the list is valid after the call.
   The empty list is valid, so by induction a list is valid after every sequence of calls. */
#include "support.h"

#include "context/context.h"

#define UNIT    ((size_t)64 << 10) /* the smallest size that is cached */
#define KINDS   6                  /* three sizes, pinned or not */
#define ENTRIES SB__CACHE_ENTRIES

enum call { TAKE, PUT, SHRINK };

struct world {
    sb_context context;
    struct sb__cached before[ENTRIES];
    int count; /* entries in `before` */
    bool busy; /* another thread holds the lock */
    int released;
    int64_t found, dropped;
};

/* This program does not link the library's file that defines this variable. */
sb__counter sb__fork_generation = 1;
static struct world world;
static char buffers[ENTRIES + 1]; /* the test uses only addresses of these bytes */

/* Checks that the cache releases each buffer once, the oldest first, without holding the lock. */
void sb__host_release(sb_context *context, void *buffer, size_t bytes, bool pinned) {
    assert_ptr_equal(context, &world.context);
    assert_true(sb__mutex_try_lock(&world.context.cache.lock));
    sb__mutex_unlock(&world.context.cache.lock);
    assert_true(world.released < world.count);
    const struct sb__cached *entry = &world.before[world.released++];
    assert_ptr_equal(buffer, entry->ptr);
    assert_true(bytes == entry->bytes && pinned == entry->pinned);
}

static struct sb__cached entry_of(int kind, int buffer) {
    return (struct sb__cached){&buffers[buffer], UNIT * (size_t)(kind / 2 + 1), kind % 2};
}

static bool is_same(const struct sb__cached *a, const struct sb__cached *b) {
    return a->ptr == b->ptr && a->bytes == b->bytes && a->pinned == b->pinned;
}

static uint64_t sum(const struct sb__cached *entries, int count) {
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += entries[i].bytes;
    return bytes;
}

/* --- what each call promises ----------------------------------------------------- */

/* Checks that the first `gone` entries and entry `skipped` are gone, that the other entries keep
   their order, and that `added` is the last entry. */
static void check_list(int gone, int skipped, const struct sb__cached *added) {
    const struct sb__host_cache *cache = &world.context.cache;
    int now = 0;
    for (int i = gone; i < world.count; i++)
        if (i != skipped)
            assert_true(is_same(&cache->entries[now++], &world.before[i]));
    if (added)
        assert_true(is_same(&cache->entries[now++], added));
    assert_int_equal(cache->count, now);
    assert_in_range(now, 0, ENTRIES);
    assert_int_equal(sb__counter_read(&cache->bytes), sum(cache->entries, now));
    assert_true(sb__counter_read(&cache->bytes) <= world.context.max_cache_bytes);
}

static bool is_cacheable(size_t bytes) {
    return bytes >= UNIT && bytes <= world.context.max_cache_bytes && !world.busy;
}

static void take(size_t bytes, bool pinned) {
    void *out = NULL;
    int newest = -1;
    for (int i = 0; i < world.count && is_cacheable(bytes); i++)
        if (world.before[i].bytes == bytes && world.before[i].pinned == pinned)
            newest = i;
    assert_int_equal(sb__cache_take(&world.context, bytes, pinned, &out), newest >= 0);
    assert_ptr_equal(out, newest >= 0 ? world.before[newest].ptr : NULL);
    assert_int_equal(world.released, 0);
    check_list(0, newest, NULL);
    world.found += newest >= 0;
}

static void put(size_t bytes, bool pinned) {
    const struct sb__cached entry = {&buffers[ENTRIES], bytes, pinned};
    const size_t most = world.context.max_cache_bytes;
    int gone = 0; /* how many of the oldest entries must be removed for the new entry */
    while (is_cacheable(bytes) && (world.count - gone == ENTRIES ||
                                   sum(world.before + gone, world.count - gone) + bytes > most))
        gone++;
    assert_int_equal(sb__cache_put(&world.context, entry.ptr, bytes, pinned), is_cacheable(bytes));
    assert_int_equal(world.released, gone);
    check_list(gone, -1, is_cacheable(bytes) ? &entry : NULL);
    world.dropped += gone;
}

static void shrink(size_t most) {
    int gone = 0; /* how many of the oldest entries must be removed */
    while (!world.busy && sum(world.before + gone, world.count - gone) > most)
        gone++;
    sb__cache_shrink(&world.context, most);
    assert_int_equal(world.released, gone);
    check_list(gone, -1, NULL);
}

/* --- every list, every call --------------------------------------------------------- */

/* Restores the list and makes the call. `busy` simulates a forked child whose parent held the lock
   at the fork, so that no thread of the child ever releases the lock. */
static void check_call(enum call call, size_t bytes, bool pinned, bool busy) {
    struct sb__host_cache *cache = &world.context.cache;
    memcpy(cache->entries, world.before, sizeof world.before);
    cache->count = world.count;
    atomic_store(&cache->bytes, sum(world.before, world.count));
    world.context.fork_generation = sb__counter_read(&sb__fork_generation) - busy;
    world.busy = busy;
    world.released = 0;
    if (busy)
        sb__mutex_lock(&cache->lock);
    if (call == SHRINK)
        shrink(bytes);
    else
        (call == TAKE ? take : put)(bytes, pinned);
    if (busy)
        sb__mutex_unlock(&cache->lock);
}

static void check_calls(bool busy) {
    const size_t sizes[] = {UNIT - 1,
                            UNIT,
                            2 * UNIT,
                            3 * UNIT,
                            world.context.max_cache_bytes,
                            world.context.max_cache_bytes + 1};
    check_call(SHRINK, 0, false, busy);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_call(SHRINK, sizes[i], false, busy);
        for (int pinned = 0; pinned < 2; pinned++) {
            check_call(TAKE, sizes[i], pinned, busy);
            check_call(PUT, sizes[i], pinned, busy);
        }
    }
}

/* Checks every valid list that begins with the entries of world.before. */
static void check_lists(void) {
    if (sum(world.before, world.count) > world.context.max_cache_bytes)
        return;
    check_calls(false);
    check_calls(true);
    for (int kind = 0; kind < KINDS && world.count < ENTRIES; kind++) {
        world.before[world.count] = entry_of(kind, world.count);
        world.count++;
        check_lists();
        world.count--;
    }
}

TEST(every_call_leaves_a_valid_list) {
    static const size_t limits[] = {1, 3, 5, 8, 100};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        world = (struct world){.context = {.max_cache_bytes = limits[i] * UNIT}};
        sb__mutex_init(&world.context.cache.lock);
        check_lists();
        assert_true(world.found > 0 && world.dropped > 0);
        sb__mutex_destroy(&world.context.cache.lock);
    }
}
