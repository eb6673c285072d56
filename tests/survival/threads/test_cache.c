/* Threads that take and release host memory of many sizes: when they have ended, no more is kept
   than was in use at once. */
#include "rig.h"

#include <stdatomic.h>

#define THREADS 6
#define ROUNDS  (IS_SANITIZED ? 150 : 3000) /* a race is seen in few */
#define HANDLES 20000                       /* bytes that are no buffer's */

static sb_context *context;
static atomic_size_t in_use, most;

/* Before a memory is asked for, so that the figure is never too low. */
static void count(size_t bytes) {
    const size_t now = atomic_fetch_add(&in_use, bytes) + bytes;
    size_t seen = atomic_load(&most);
    while (seen < now && !atomic_compare_exchange_weak(&most, &seen, now)) {
    }
}

static void *take_and_release(void *user) {
    uint64_t seed = (uint64_t)(uintptr_t)user + 1;
    for (int i = 0; i < ROUNDS; i++) {
        const size_t bytes = 1 + test_random(&seed) % 400000;
        sb_mem *mem;
        void *p;
        count(bytes);
        if (sb_mem_create(context, bytes, &mem, &err) != SB_OK ||
            sb_mem_overwrite_cpu(mem, &p, &err) != SB_OK)
            return user;
        sb_mem_release(mem);
        atomic_fetch_sub(&in_use, bytes);
    }
    return NULL;
}

TEST(threads_keep_no_more_than_they_used) {
    for (int round = 0; round < 5; round++) {
        struct rig rig;
        pthread_t threads[THREADS];
        rig_open_on(&rig, "cpu", 0);
        context = rig.context;
        atomic_store(&most, 0);
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_and_release, (void *)i), 0);
        for (int i = 0; i < THREADS; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        assert_true(rig_stats(&rig).cached_bytes <= atomic_load(&most) + HANDLES);
        rig_close(&rig);
    }
}
