/* Tests that trimming returns cached memory to the system. */
#include "blobs.h"
#include "child.h"

#define MIB ((size_t)1 << 20)

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
