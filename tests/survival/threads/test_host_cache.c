/* Tests that trimming returns cached memory to the system. */
#include "blobs.h"
#include "child.h"
#include "team.h"

#define MIB ((size_t)1 << 20)
#define KIB ((size_t)1 << 10)

static void expect_about(const char *what, size_t before, size_t difference) {
    const size_t after = process_memory_now().resident, slack = 8 * MIB;
    if (after + slack < before + difference || after > before + difference + slack)
        fail_with("%s: grew by %zu KiB, not %zu", what, (after - before) >> 10, difference >> 10);
}

/* The cases: ordinary memory from the kernel and from malloc, pinned memory, and memory that is not
   cached. */
TEST(trimmed_memory_returns_to_the_system) {
    static const struct {
        const char *device;
        uint32_t flags;
        size_t bytes;
        int count;
    } cases[] = {{"cpu", 0, 64 * MIB, 1},
                 {"cpu", 0, MIB, 64},
                 {"sim:0", 0, 64 * MIB, 1},
                 {"cpu", SB_CONTEXT_NO_HOST_CACHE, 64 * MIB, 1}};
    skip_when_quick();
    if (IS_SANITIZED) {
        print_message("skipped: the sanitizer keeps freed memory\n");
        test_skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_mem *mems[64];
        struct rig rig;
        rig_open_on(&rig, cases[i].device, cases[i].flags);
        const size_t kept = cases[i].flags ? 0 : 64 * MIB, before = process_memory_now().resident;
        for (int k = 0; k < cases[i].count; k++)
            mems[k] = mem_filled(rig.context, cases[i].bytes, 0x5a);
        expect_about("in use", before, 64 * MIB);
        for (int k = 0; k < cases[i].count; k++)
            sb_mem_release(mems[k]);
        assert_int_equal(rig_stats(&rig).cached_bytes, kept);
        expect_about("kept", before, kept);
        sb_context_trim(rig.context);
        assert_int_equal(rig_stats(&rig).cached_bytes, 0);
        expect_about("trimmed", before, 0);
        rig_close(&rig);
    }
}

/* An allocator that lets other threads run before it frees a block. */
static void *slow_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    void *block = NULL;
    if (posix_memalign(&block, alignment, bytes))
        return NULL;
    return flags & SB_ALLOC_ZEROED ? memset(block, 0, bytes) : block;
}

static void slow_free(void *user, void *block, size_t bytes, size_t alignment, uint32_t flags) {
    sched_yield();
    free(block);
}

struct crowded_cache {
    sb_context *context;
    _Atomic int users;
    _Atomic int refused;
};

/* Thread 2 trims; threads 0 and 1 each use one buffer of at most 512 KiB at a time. */
static void use_or_trim(void *arg, int member) {
    struct crowded_cache *c = arg;
    unsigned seed = (unsigned)member + 1;
    while (member == 2 && atomic_load(&c->users))
        sb_context_trim(c->context);
    for (int i = 0; i < 2000 && member < 2; i++) {
        void *bytes;
        sb_mem *mem = NULL;
        seed = seed * 1664525u + 1013904223u;
        if (sb_mem_create(c->context, (size_t)(1 + (seed >> 16) % 8) * 64 * KIB, &mem, NULL) !=
                SB_OK ||
            sb_mem_overwrite_cpu(mem, &bytes, NULL) != SB_OK)
            atomic_fetch_add(&c->refused, 1);
        sb_mem_release(mem);
    }
    if (member < 2)
        atomic_fetch_sub(&c->users, 1);
}

/* Cached buffers, and buffers that another thread is freeing, never cause a refusal. */
TEST(a_request_that_fits_beside_the_memory_in_use_succeeds) {
    struct crowded_cache c = {.users = 2};
    c.context =
        test_context(CONTEXT_OPTIONS(.allocator = {slow_alloc, slow_free, NULL},
                                     .max_host_bytes = MIB + 256 * KIB, .max_cache_bytes = MIB));
    team_run(3, use_or_trim, &c);
    assert_int_equal(c.refused, 0);
}
