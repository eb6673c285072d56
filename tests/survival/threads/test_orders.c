/* What one thread did is seen by another that learned of it through the
   library alone: through a reference count, a memory's word, a pointer that
   was published. The flags of these tests order nothing, so that a memory
   order that is too weak is a race for ThreadSanitizer. */
#include "team.h"
#include "tiny.h"

#include <string.h>

#define BYTES ((size_t)256)

static sb_mem *new_mem(sb_context *context, size_t bytes) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    return mem;
}

static bool holds(const void *ptr, size_t bytes, unsigned char value) {
    const unsigned char *p = ptr;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != value)
            return false;
    return true;
}

/* --- reference counts ------------------------------------------------------------ */

static void release_context(void *arg) {
    sb_context *context = arg;
    assert_string_equal(sb_context_device(context), "cpu");
    sb_context_release(context);
}

TEST(the_last_release_of_a_context_comes_after_all_uses) {
    sb_context *context;
    assert_ok(sb_context_create(NULL, &context, &err));
    (void)sb_context_retain(context);
    hand_over(release_context, release_context, context);
}

static void release_mem(void *arg) {
    sb_mem *mem = arg;
    assert_int_equal(sb_mem_size(mem), BYTES);
    sb_mem_release(mem);
}

TEST(the_last_release_of_a_memory_comes_after_all_uses) {
    sb_mem *mem = new_mem(NULL, BYTES);
    (void)sb_mem_retain(mem);
    hand_over(release_mem, release_mem, mem);
}

static void read_and_release(void *arg) {
    const void *ptr;
    assert_ok(sb_mem_cpu(arg, &ptr, &err));
    assert_true(holds(ptr, BYTES, 0x11));
    sb_mem_release(arg);
}

static void write_when_alone(void *arg) {
    void *ptr;
    while (!sb_mem_is_unique(arg))
        sched_yield();
    assert_ok(sb_mem_mutable_cpu(arg, &ptr, &err));
    memset(ptr, 0x22, BYTES);
}

TEST(the_only_owner_comes_after_all_others) {
    void *ptr;
    sb_mem *mem = sb_mem_retain(new_mem(NULL, BYTES));
    assert_int_equal(sb_mem_is_unique(mem), 0);
    assert_ok(sb_mem_overwrite_cpu(mem, &ptr, &err));
    memset(ptr, 0x11, BYTES);
    hand_over(read_and_release, write_when_alone, mem);
    assert_true(holds(ptr, BYTES, 0x22));
    sb_mem_release(mem);
}

/* --- the word of a memory ---------------------------------------------------------- */

static void read_zeros_cpu(void *arg) {
    const void *ptr;
    assert_ok(sb_mem_cpu(arg, &ptr, &err));
    assert_true(holds(ptr, BYTES, 0));
}

TEST(a_host_side_that_is_ready_is_whole) {
    sb_mem *mem = new_mem(NULL, BYTES);
    hand_over(read_zeros_cpu, read_zeros_cpu, mem);
    sb_mem_release(mem);
}

/* The device's memory is the host's. */
static void read_zeros_gpu(void *arg) {
    const void *ptr;
    assert_ok(sb_mem_gpu(arg, &ptr, &err));
    assert_true(holds(ptr, BYTES, 0));
}

TEST(a_device_side_that_is_ready_is_whole) {
    struct tiny tiny = {.calls = 0};
    const sb_backend table = tiny_table(&tiny);
    sb_context *context = tiny_context(&table);
    sb_mem *mem = new_mem(context, BYTES);
    hand_over(read_zeros_gpu, read_zeros_gpu, mem);
    sb_mem_release(mem);
    sb_context_release(context);
}

/* Writers exclude each other by the contract; the memory itself stays whole even so. */
static void ask_to_write(void *arg) {
    void *ptr;
    assert_ok(sb_mem_mutable_cpu(arg, &ptr, &err));
    assert_non_null(ptr);
}

TEST(a_side_that_is_writable_is_whole) {
    sb_mem *mem = new_mem(NULL, BYTES);
    hand_over(ask_to_write, ask_to_write, mem);
    sb_mem_release(mem);
}

/* A blob's short ways look at the same word. */
static sb_blob *new_blob(void) {
    sb_blob *blob;
    assert_ok(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (int64_t[]){10}, 1, &blob, &err));
    return blob;
}

static void read_blob(void *arg) {
    const void *ptr;
    assert_ok(sb_blob_cpu(arg, SB_DATA, &ptr, &err));
    assert_true(holds(ptr, 10 * sizeof(float), 0));
}

static void sum_zeros(void *arg) {
    double sum = 1;
    assert_ok(sb_blob_asum(arg, SB_DATA, &sum, &err));
    assert_true(sum == 0);
}

TEST(a_host_side_that_is_summed_at_once_is_whole) {
    sb_blob *blob = new_blob();
    hand_over(read_blob, sum_zeros, blob);
    sb_blob_destroy(blob);
}

static void ask_blob_to_write(void *arg) {
    void *ptr;
    assert_ok(sb_blob_mutable_cpu(arg, SB_DATA, &ptr, &err));
    assert_non_null(ptr);
}

TEST(a_side_that_is_written_at_once_is_whole) {
    sb_blob *blob = new_blob();
    hand_over(ask_blob_to_write, ask_blob_to_write, blob);
    sb_blob_destroy(blob);
}

/* --- memories that const calls make -------------------------------------------------- */

static void look_at_memories(void *arg) {
    sb_mem *mem;
    assert_ok(sb_blob_mutable_mem(arg, SB_DATA, &mem, &err));
    assert_int_equal(sb_mem_size(mem), 10 * sizeof(float));
    assert_ok(sb_blob_mutable_mem(arg, SB_DIFF, &mem, &err));
    assert_int_equal(sb_mem_size(mem), 10 * sizeof(float));
}

TEST(a_memory_that_a_const_call_made_is_whole) {
    sb_blob *blob = new_blob();
    hand_over(look_at_memories, look_at_memories, blob);
    sb_blob_destroy(blob);
}

/* Two threads find no memory and make one each. The slower one is held up in its allocation until
   the other is done. */
struct duel {
    sb_blob *blob;
    quiet_flag slow_is_in, fast_is_done;
    atomic_int live; /* blocks of memory */
};

static _Thread_local bool is_slow;

static void *duel_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct duel *duel = user;
    (void)flags;
    void *ptr = test_aligned_alloc(alignment, bytes);
    if (is_slow) {
        quiet_raise(&duel->slow_is_in);
        quiet_await(&duel->fast_is_done);
    }
    (void)atomic_fetch_add_explicit(&duel->live, ptr != NULL, memory_order_relaxed);
    return ptr ? memset(ptr, 0, bytes) : NULL;
}

static void duel_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
    (void)atomic_fetch_sub_explicit(&((struct duel *)user)->live, 1, memory_order_relaxed);
    (void)bytes;
    (void)alignment;
    (void)flags;
    test_aligned_free(ptr);
}

static void *come_second(void *user) {
    struct duel *duel = user;
    sb_mem *mem = NULL;
    is_slow = true;
    ignore(sb_blob_mutable_mem(duel->blob, SB_DATA, &mem, NULL));
    return sb_mem_size(mem) == 10 * sizeof(float) ? mem : NULL;
}

TEST(whoever_comes_second_sees_the_first_one_s_memory) {
    struct duel duel = {.blob = NULL};
    sb_context *context;
    sb_mem *mem;
    pthread_t slow;
    void *seen;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.allocator = (sb_allocator){duel_alloc, duel_free, &duel};
    assert_ok(sb_context_create(&options, &context, &err));
    assert_ok(sb_blob_create_shaped(context, SB_DTYPE_F32, (int64_t[]){10}, 1, &duel.blob, &err));
    assert_int_equal(pthread_create(&slow, NULL, come_second, &duel), 0);
    quiet_await(&duel.slow_is_in);
    assert_ok(sb_blob_mutable_mem(duel.blob, SB_DATA, &mem, &err));
    quiet_raise(&duel.fast_is_done);
    assert_int_equal(pthread_join(slow, &seen), 0);
    assert_ptr_equal(seen, mem);
    assert_int_equal(sb_mem_is_unique(mem), 1);
    sb_blob_destroy(duel.blob);
    sb_context_release(context);
    assert_int_equal(atomic_load_explicit(&duel.live, memory_order_relaxed), 0);
}

/* A host side that is lent, so that its bytes can be read without asking for a pointer. */
struct pulled {
    sb_mem *mem;
    unsigned char bytes[BYTES];
};

static void pull_and_wait(void *arg) {
    struct pulled *p = arg;
    assert_ok(sb_mem_async_cpu_pull(p->mem, NULL, &err));
    assert_ok(sb_mem_synchronize(p->mem, &err));
}

static void wait_and_look(void *arg) {
    struct pulled *p = arg;
    assert_ok(sb_mem_synchronize(p->mem, &err));
    assert_true(holds(p->bytes, BYTES, 0x11));
}

TEST(a_copy_that_another_thread_waited_for_is_over) {
    struct tiny tiny = {.calls = 0};
    const sb_backend table = tiny_table(&tiny);
    struct pulled p;
    void *ptr;
    sb_context *context = tiny_context(&table);
    p.mem = new_mem(context, BYTES);
    assert_ok(sb_mem_set_cpu(p.mem, p.bytes, BYTES, 0, NULL, NULL, &err));
    assert_ok(sb_mem_overwrite_gpu(p.mem, &ptr, &err));
    memset(ptr, 0x11, BYTES);
    hand_over(pull_and_wait, wait_and_look, &p);
    sb_mem_release(p.mem);
    sb_context_release(context);
}
