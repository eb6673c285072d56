/* Tests that results with parallel_for equal the results of one thread bit for bit. */
#include "blobs.h"
#include "files.h"
#include "pointers.h"
#include "team.h"

#include <dlfcn.h>
#include <unistd.h>

#define LIMIT 110 /* seconds after which an alarm ends a deadlocked program */

struct pool {
    int threads;
    int64_t runs;
    _Atomic int64_t next; /* the number of tasks that no thread has taken */
    void (*task)(void *arg, int64_t i);
    void *arg;
};

static void take_tasks(void *user, int member) {
    struct pool *pool = user;
    for (int64_t i; (i = atomic_fetch_sub(&pool->next, 1) - 1) >= 0;)
        pool->task(pool->arg, i);
}

/* Runs the tasks on other threads, beginning with the last task. */
static void pool_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    struct pool *pool = user;
    assert_true(tasks <= 64);
    pool->runs++;
    pool->task = task;
    pool->arg = arg;
    atomic_store(&pool->next, tasks);
    team_run(pool->threads, take_tasks, pool);
}

static sb_context *context_with(const char *device, sb_parallel_for run, void *user) {
    return test_context(
        CONTEXT_OPTIONS(.device = device, .parallel_for = run, .parallel_for_user = user));
}

struct results {
    double sums[4];
    uint64_t updated, scaled, copied, moved;
};

static uint64_t hash_of(sb_mem *mem, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u, word = 0;
    const char *in = mem_pointer(mem, CPU_DATA);
    for (size_t i = 0; i < bytes; i += sizeof word) {
        memcpy(&word, in + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    return hash;
}

static void fill(sb_blob *blob, sb_part part, uint64_t seed) {
    void *out = blob_pointer(blob, part, OVERWRITE_CPU);
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        double value = (double)(int64_t)test_random(&seed) * 0x1p-63;
        if (sb_blob_dtype(blob) == SB_DTYPE_F32)
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
    }
}

static uint64_t move_read_only(sb_context *context, const void *bytes, size_t size) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, size, &mem, &err));
    assert_ok(sb_mem_set_cpu(mem, (void *)(uintptr_t)bytes, size, SB_READ_ONLY, NULL, NULL, &err));
    assert_ptr_not_equal(mem_pointer(mem, MUTABLE_CPU), bytes);
    const uint64_t moved = hash_of(mem, size);
    sb_mem_release(mem);
    return moved;
}

static struct results compute(sb_context *context, int32_t dtype, int64_t count) {
    struct results r;
    size_t bytes = (size_t)count * sb_dtype_size(dtype);
    sb_blob *blob = blob_of_count(context, dtype, count), *copy;
    fill(blob, SB_DATA, 1);
    fill(blob, SB_DIFF, 2);
    assert_ok(sb_blob_asum(blob, SB_DATA, &r.sums[0], &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &r.sums[1], &err));
    assert_ok(sb_blob_update(blob, &err));
    r.updated = hash_of(data_of(blob), bytes);
    assert_ok(sb_blob_scale(blob, SB_DIFF, 0.3, &err));
    r.scaled = hash_of(diff_of(blob), bytes);
    assert_ok(sb_blob_asum(blob, SB_DIFF, &r.sums[2], &err));
    assert_ok(sb_blob_sumsq(blob, SB_DIFF, &r.sums[3], &err));
    assert_ok(sb_blob_create(context, dtype, &copy, &err));
    assert_ok(sb_blob_copy_from(copy, SB_DATA, blob, SB_COPY_RESHAPE, &err));
    r.copied = hash_of(data_of(copy), bytes);
    r.moved = move_read_only(context, blob_pointer(copy, SB_DATA, CPU_DATA), bytes);
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_true(bytes_are(blob_pointer(blob, SB_DATA, CPU_DATA), bytes, 0));
    sb_blob_destroy(blob);
    sb_blob_destroy(copy);
    return r;
}

/* The filler computes the row's sum in tasks. */
static uint64_t fill_row(sb_context *context, int32_t dtype, int64_t count) {
    const sb_filler filler = filler_of(SB_FILLER_POSITIVE_UNITBALL);
    sb_blob *blob = test_blob(context, dtype, 2, (int64_t[]){1, count});
    assert_ok(sb_blob_fill(blob, &filler, 1, &err));
    const uint64_t filled = hash_of(data_of(blob), (size_t)count * sb_dtype_size(dtype));
    test_end(blob);
    return filled;
}

/* PIECE is the number of values in a task. */
enum { PIECE = 1 << 17, NEAR_8_TASKS = (7 << 17) + 12345, NEAR_64_TASKS = (64 << 17) + 1 };

/* The smaller counts are near the block size of OpenBLAS's calls. */
static const int64_t counts[] = {
    1,         255,   256,       257,           8191,          8192,         8193,
    PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 2 * PIECE + 1, NEAR_8_TASKS, NEAR_64_TASKS};

static void compare(int32_t dtype, int64_t count) {
    static const int threads[] = {1, 2, 3, 7};
    sb_context *alone = context_with("cpu", NULL, NULL);
    const struct results expected = compute(alone, dtype, count);
    assert_true(expected.copied == expected.updated && expected.copied == expected.moved);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        struct pool pool = {.threads = threads[t]};
        sb_context *context = context_with("cpu", pool_run, &pool);
        const struct results found = compute(context, dtype, count);
        assert_memory_equal(&found, &expected, sizeof found);
        assert_int_equal(pool.runs > 0, count > PIECE);
        if (count > INT64_C(2) * PIECE) /* four sums, an update, a scale, two copies, a clear */
            assert_int_equal(pool.runs, 9);
        assert_true(fill_row(context, dtype, count) == fill_row(alone, dtype, count));
        test_end(context);
    }
    test_end(alone);
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
    const int threads = files_in("/proc/self/task");
    (void)compute(context, SB_DTYPE_F64, (3 << 18) + 1);
    if (!IS_TSAN) /* ThreadSanitizer starts a thread at an unknown time */
        assert_int_equal(files_in("/proc/self/task"), threads);
    test_end(context);
}

TEST(no_thread_is_created_and_openblas_settings_are_unchanged) {
    int blas_threads = blas_number("openblas_get_num_threads");
    int blas_kind = blas_number("openblas_get_parallel");
    struct pool pool = {.threads = 3};
    expect_no_new_thread(context_with("cpu", NULL, NULL));
    expect_no_new_thread(context_with("sim:0", NULL, NULL));
    expect_no_new_thread(context_with("cpu", pool_run, &pool));
    assert_int_equal(blas_number("openblas_get_num_threads"), blas_threads);
    assert_int_equal(blas_number("openblas_get_parallel"), blas_kind);
}

/* A work-stealing pool may run any work on the waiting thread, even a call on the same memory. */
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
    void *lent = calloc(1, bytes);
    assert_non_null(lent);
    /* The cache now has a buffer, which `thief.mem` must zero. */
    sb_mem_release(mem_filled(context, bytes, 1));
    thief.mem = test_mem(context, bytes);
    assert_true(bytes_are(mem_pointer(thief.mem, CPU_DATA), bytes, 0));
    assert_ok(sb_mem_set_cpu(thief.mem, lent, bytes, SB_READ_ONLY, NULL, NULL, &err));
    assert_true(bytes_are(mem_pointer(thief.mem, MUTABLE_CPU), bytes, 0));
    assert_ok(sb_mem_clear(thief.mem, &err));
    assert_true(thief.stolen >= 2); /* the copy and the clear ran as tasks */
    test_end(thief.mem);
    free(lent);
}

int main(void) {
    (void)alarm(LIMIT);
    return run_all_tests();
}
