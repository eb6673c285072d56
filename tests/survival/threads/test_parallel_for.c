/* parallel_for: bit for bit the results of one thread for any number of the
   caller's threads, none of our own, OpenBLAS as the caller set it, and no
   lock of the library held while the caller's threads work. */
#include "blobs.h"
#include "team.h"

#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define LIMIT 110 /* seconds until a deadlock ends the program */

/* --- a pool of the caller -------------------------------------------------------------------- */

struct pool {
    int threads;
    pthread_t thread[8];
    pthread_mutex_t lock, one_at_a_time;
    pthread_cond_t wake, done;
    int64_t next, tasks, finished, runs;
    void (*task)(void *arg, int64_t i);
    void *arg;
    bool closing;
};

/* Takes tasks from the end on until none is left; called and returns under the lock. */
static void pool_work(struct pool *pool) {
    while (pool->next > 0) {
        int64_t i = --pool->next;
        (void)pthread_mutex_unlock(&pool->lock);
        pool->task(pool->arg, i);
        (void)pthread_mutex_lock(&pool->lock);
        if (++pool->finished == pool->tasks)
            (void)pthread_cond_broadcast(&pool->done);
    }
}

static void *pool_thread(void *user) {
    struct pool *pool = user;
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        pool_work(pool);
        (void)pthread_cond_wait(&pool->wake, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* The caller only waits: the pool's threads do it all. */
static void pool_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    struct pool *pool = user;
    assert_true(tasks <= 64);
    (void)pthread_mutex_lock(&pool->one_at_a_time);
    (void)pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->arg = arg;
    pool->next = pool->tasks = tasks;
    pool->finished = 0;
    pool->runs++;
    (void)pthread_cond_broadcast(&pool->wake);
    while (pool->finished < tasks)
        (void)pthread_cond_wait(&pool->done, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_mutex_unlock(&pool->one_at_a_time);
}

static void pool_open(struct pool *pool, int threads) {
    memset(pool, 0, sizeof *pool);
    pool->threads = threads;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_mutex_init(&pool->one_at_a_time, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    (void)pthread_cond_init(&pool->done, NULL);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&pool->thread[i], NULL, pool_thread, pool), 0);
}

static void pool_close(struct pool *pool) {
    (void)pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->threads; i++)
        assert_int_equal(pthread_join(pool->thread[i], NULL), 0);
}

static sb_context *context_with(const char *device, sb_parallel_for run, void *user) {
    sb_context *context;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    options.parallel_for = run;
    options.parallel_for_user = user;
    assert_ok(sb_context_create(&options, &context, &err));
    return context;
}

/* --- the same bits --------------------------------------------------------------------------- */

/* What every larger operation gives, one after the other. */
struct results {
    double sums[4];
    unsigned char *updated, *scaled, *copied, *moved;
};

static unsigned char *bytes_of(const sb_mem *mem, size_t bytes) {
    const void *in;
    unsigned char *copy = malloc(bytes);
    assert_non_null(copy);
    assert_ok(sb_mem_cpu(mem, &in, &err));
    memcpy(copy, in, bytes);
    return copy;
}

static void fill(int32_t dtype, int64_t count, uint64_t seed, void *out) {
    for (int64_t i = 0; i < count; i++) {
        double value = (double)(int64_t)test_random(&seed) * 0x1p-63;
        if (dtype == SB_DTYPE_F32)
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
    }
}

/* Read-only bytes move to storage of the library's, which is a copy. */
static unsigned char *move_read_only(sb_context *context, const void *bytes, size_t size) {
    sb_mem *mem;
    void *out;
    assert_ok(sb_mem_create(context, size, &mem, &err));
    assert_ok(sb_mem_set_cpu(mem, (void *)(uintptr_t)bytes, size, SB_READ_ONLY, NULL, NULL, &err));
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    assert_ptr_not_equal(out, bytes);
    unsigned char *moved = bytes_of(mem, size);
    sb_mem_release(mem);
    return moved;
}

static struct results compute(sb_context *context, int32_t dtype, int64_t count) {
    struct results r;
    void *out;
    size_t bytes = (size_t)count * sb_dtype_size(dtype);
    sb_blob *blob = blob_of_count(context, dtype, count), *copy;
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &out, &err));
    fill(dtype, count, 1, out);
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DIFF, &out, &err));
    fill(dtype, count, 2, out);
    assert_ok(sb_blob_asum(blob, SB_DATA, &r.sums[0], &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &r.sums[1], &err));
    assert_ok(sb_blob_update(blob, &err));
    r.updated = bytes_of(data_of(blob), bytes);
    assert_ok(sb_blob_scale(blob, SB_DIFF, 0.3, &err));
    r.scaled = bytes_of(diff_of(blob), bytes);
    assert_ok(sb_blob_asum(blob, SB_DIFF, &r.sums[2], &err));
    assert_ok(sb_blob_sumsq(blob, SB_DIFF, &r.sums[3], &err));
    assert_ok(sb_blob_create(context, dtype, &copy, &err));
    assert_ok(sb_blob_copy_from(copy, SB_DATA, blob, SB_COPY_RESHAPE, &err));
    r.copied = bytes_of(data_of(copy), bytes);
    r.moved = move_read_only(context, r.copied, bytes);
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_blob_cpu(blob, SB_DATA, (const void **)&out, &err));
    assert_true(bytes_are(out, bytes, 0));
    sb_blob_destroy(blob);
    sb_blob_destroy(copy);
    return r;
}

static void free_results(struct results *r) {
    free(r->updated);
    free(r->scaled);
    free(r->copied);
    free(r->moved);
}

static void expect_same_bits(const struct results *a, const struct results *b, size_t bytes) {
    assert_memory_equal(a->sums, b->sums, sizeof a->sums);
    assert_memory_equal(a->updated, b->updated, bytes);
    assert_memory_equal(a->scaled, b->scaled, bytes);
    assert_memory_equal(a->copied, b->copied, bytes);
    assert_memory_equal(a->moved, b->moved, bytes);
    assert_memory_equal(a->copied, a->updated, bytes);
    assert_memory_equal(a->copied, a->moved, bytes);
}

/* Around the blocks of OpenBLAS's calls, the pieces of a task (2^17), and 64 tasks of one piece. */
static const int64_t counts[] = {1,
                                 255,
                                 256,
                                 257,
                                 8191,
                                 8192,
                                 8193,
                                 (1 << 17) - 1,
                                 1 << 17,
                                 (1 << 17) + 1,
                                 (2 << 17) - 1,
                                 (2 << 17) + 1,
                                 (7 << 17) + 12345,
                                 (64 << 17) + 1};

static void compare(int32_t dtype, int64_t count) {
    static const int threads[] = {1, 2, 3, 7};
    size_t bytes = (size_t)count * sb_dtype_size(dtype);
    sb_context *alone = context_with("cpu", NULL, NULL);
    struct results expected = compute(alone, dtype, count);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        struct pool pool;
        pool_open(&pool, threads[t]);
        sb_context *context = context_with("cpu", pool_run, &pool);
        struct results found = compute(context, dtype, count);
        expect_same_bits(&expected, &found, bytes);
        assert_int_equal(pool.runs > 0, count > 1 << 17);
        if (count > 1 << 18) /* two updates, four sums; from 1 MiB on clear and the copies */
            assert_int_equal(pool.runs, 9);
        free_results(&found);
        sb_context_release(context);
        pool_close(&pool);
    }
    free_results(&expected);
    sb_context_release(alone);
}

TEST(any_number_of_threads_gives_the_same_bits) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
            bool large = counts[i] > (IS_SANITIZED ? 3 : 8) << 18;
            if (large && (dtype == SB_DTYPE_F64 || test_is_quick() || IS_SANITIZED))
                continue;
            compare(dtype, counts[i]);
        }
}

/* --- no thread of ours ----------------------------------------------------------------------- */

static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    (void)closedir(tasks);
    return count;
}

static int blas_number(const char *name) {
    int (*get)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (!(sb_features() & SB_FEATURE_OPENBLAS))
        return 0;
    assert_non_null(symbol);
    memcpy(&get, &symbol, sizeof get);
    return get();
}

static void expect_no_new_thread(sb_context *context) {
    int threads = count_threads();
    struct results r = compute(context, SB_DTYPE_F64, (3 << 18) + 1);
    if (!IS_TSAN) /* ThreadSanitizer starts a thread of its own at some time */
        assert_int_equal(count_threads(), threads);
    free_results(&r);
    sb_context_release(context);
}

TEST(no_thread_is_created_and_openblas_stays_as_it_was) {
    int blas_threads = blas_number("openblas_get_num_threads");
    int blas_kind = blas_number("openblas_get_parallel");
    struct pool pool;
    expect_no_new_thread(context_with("cpu", NULL, NULL));
    expect_no_new_thread(context_with("sim:0", NULL, NULL));
    pool_open(&pool, 3);
    expect_no_new_thread(context_with("cpu", pool_run, &pool));
    pool_close(&pool);
    assert_int_equal(blas_number("openblas_get_num_threads"), blas_threads);
    assert_int_equal(blas_number("openblas_get_parallel"), blas_kind);
}

/* --- pools that do other work meanwhile ------------------------------------------------------ */

/* A pool that steals work, as many do, may run anything on the waiting thread, a call on the very
   same memory included. */
struct thief {
    sb_mem *mem;
    bool stealing;
    int stolen;
};

static void steal_first(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    struct thief *thief = user;
    if (thief->mem && !thief->stealing) {
        thief->stealing = true;
        thief->stolen++;
        ignore(sb_mem_synchronize(thief->mem, NULL));
        (void)sb_mem_storage(thief->mem, SB_SIDE_CPU);
        thief->stealing = false;
    }
    for (int64_t i = 0; i < tasks; i++)
        task(arg, i);
}

TEST(no_lock_is_held_while_the_caller_s_threads_work) {
    const size_t bytes = (size_t)4 << 20;
    struct thief thief = {.mem = NULL};
    sb_context *context = context_with("cpu", steal_first, &thief);
    void *out, *lent = calloc(1, bytes);
    const void *in;
    sb_mem *mem;
    assert_non_null(lent);
    /* the first touch of memory from the cache */
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    memset(out, 1, bytes);
    sb_mem_release(mem);
    assert_ok(sb_mem_create(context, bytes, &thief.mem, &err));
    assert_ok(sb_mem_cpu(thief.mem, &in, &err));
    assert_true(bytes_are(in, bytes, 0));
    /* read-only bytes on the move */
    assert_ok(sb_mem_set_cpu(thief.mem, lent, bytes, SB_READ_ONLY, NULL, NULL, &err));
    assert_ok(sb_mem_mutable_cpu(thief.mem, &out, &err));
    assert_true(bytes_are(out, bytes, 0));
    assert_ok(sb_mem_clear(thief.mem, &err));
    assert_true(thief.stolen >= 2); /* the copy and the clearing were spread */
    sb_mem_release(thief.mem);
    sb_context_release(context);
    free(lent);
}

/* --- a caller who breaks the contract -------------------------------------------------------- */

static void run_the_first(void *user, int64_t tasks, void (*task)(void *arg, int64_t i),
                          void *arg) {
    const int64_t *most = user;
    for (int64_t i = 0; i < tasks && i < *most; i++)
        task(arg, i);
}

static bool is_sum_of(double sum, double whole, int64_t tasks) {
    if (tasks == 0)
        return sum == 0;
    return tasks == 1 ? sum > 0 && sum < whole : sum == whole;
}

/* The sum lacks what was not added, and holds nothing else. */
TEST(tasks_that_are_not_run_add_nothing) {
    enum { COUNT = 1 << 21 };
    static const int64_t most[] = {1000, 1, 0};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        void *p;
        double sum;
        int64_t tasks = most[i];
        sb_context *context = context_with(NULL, run_the_first, &tasks);
        sb_blob *blob = blob_of_count(context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &p, &err));
        for (int64_t k = 0; k < COUNT; k++)
            ((float *)p)[k] = 1;
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(is_sum_of(sum, COUNT, tasks));
        assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
        assert_true(is_sum_of(sum, COUNT, tasks));
        sb_blob_destroy(blob);
        sb_context_release(context);
    }
}

int main(void) {
    (void)alarm(LIMIT);
    return run_all_tests();
}
