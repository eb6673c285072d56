/* The host cache under many threads, and what trimming gives back to the
   system. */
#include "blobs.h"
#include "process_memory.h"
#include "team.h"

#define MIB ((size_t)1 << 20)

static size_t cached_bytes(sb_context *context) {
    sb_stats stats = SB_STATS_INIT;
    assert_ok(sb_context_stats(context, &stats, &err));
    return stats.cached_bytes;
}

static void expect_about(const char *what, size_t before, size_t after, size_t difference) {
    size_t slack = difference / 8;
    if (after + slack < before + difference || after > before + difference + slack)
        fail_with("%s: %zu KiB more, %zu expected", what, (after - before) >> 10, difference >> 10);
}

/* Sanitizers and valgrind keep memory of their own. */
static void skip_when_observed(void) {
    skip_when_quick();
    if (IS_SANITIZED) {
        print_message("skipped: the sanitizer keeps memory of its own\n");
        skip();
    }
}

/* Ordinary memory of both ways to get it (from the kernel, from malloc), and pinned. */
TEST(trimmed_memory_leaves_the_process) {
    skip_when_observed();
    static const struct {
        const char *device;
        size_t bytes;
        int count;
    } cases[] = {{"cpu", 64 * MIB, 1}, {"cpu", MIB, 64}, {"sim:0", 64 * MIB, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_context *context;
        sb_mem *mems[64];
        sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
        options.device = cases[i].device;
        assert_ok(sb_context_create(&options, &context, &err));
        size_t before = process_memory_now().resident;
        for (int k = 0; k < cases[i].count; k++)
            mems[k] = mem_filled(context, cases[i].bytes, 0x5a);
        expect_about("in use", before, process_memory_now().resident, 64 * MIB);
        for (int k = 0; k < cases[i].count; k++)
            sb_mem_release(mems[k]);
        assert_int_equal(cached_bytes(context), 64 * MIB);
        expect_about("kept", before, process_memory_now().resident, 64 * MIB);
        sb_context_trim(context);
        assert_int_equal(cached_bytes(context), 0);
        if (process_memory_now().resident > before + 8 * MIB)
            fail_with("case %d: %zu KiB stay after trimming", (int)i,
                      (process_memory_now().resident - before) >> 10);
        sb_context_release(context);
    }
}

TEST(without_a_cache_memory_leaves_when_it_is_released) {
    sb_context *context;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    skip_when_observed();
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    assert_ok(sb_context_create(&options, &context, &err));
    size_t before = process_memory_now().resident;
    sb_mem *mem = mem_filled(context, 64 * MIB, 0x5a);
    expect_about("in use", before, process_memory_now().resident, 64 * MIB);
    sb_mem_release(mem);
    assert_int_equal(cached_bytes(context), 0);
    assert_true(process_memory_now().resident < before + 8 * MIB);
    sb_context_release(context);
}

/* --- many threads ---------------------------------------------------------------------------- */

struct crowd {
    sb_context *context;
    _Atomic int wrong;
};

static void churn(void *arg, int member) {
    static const size_t large[] = {64 << 10, 128 << 10, 256 << 10};
    struct crowd *crowd = arg;
    sb_stats stats = SB_STATS_INIT;
    for (int i = 0; i < 100; i++) {
        size_t bytes = large[(i + member) % 3];
        sb_mem *mem = mem_filled(crowd->context, bytes, member + 1);
        const void *ptr;
        if (sb_mem_cpu(mem, &ptr, NULL) != SB_OK || !bytes_are(ptr, bytes, member + 1) ||
            sb_context_stats(crowd->context, &stats, NULL) != SB_OK ||
            stats.cached_bytes > 600 << 10)
            atomic_fetch_add(&crowd->wrong, 1);
        sb_mem_release(mem);
        if (i % 16 == member)
            sb_context_trim(crowd->context);
    }
}

TEST(many_threads_share_one_bounded_cache) {
    for (int device = 0; device < 2; device++) {
        struct rig rig;
        sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
        options.device = device ? "sim:0" : "cpu";
        options.max_cache_bytes = 600 << 10;
        rig_open_options(&rig, options);
        struct crowd crowd = {.context = rig.context};
        team_run(8, churn, &crowd);
        assert_int_equal(atomic_load(&crowd.wrong), 0);
        rig_close(&rig);
    }
}
