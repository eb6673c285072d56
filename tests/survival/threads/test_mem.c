/* First uses from many threads at once: what is missing is made once. That readers
   of every kind cause one transfer is in test_stress.c. */
#include "blobs.h"
#include "team.h"

enum { THREADS = 8, ROUNDS = 60 };
#define BYTES ((size_t)2048)

struct crowd {
    sb_mem *mem;
    sb_blob *blob;
    sb_mem *_Atomic seen;
    _Atomic int wrong;
};

static void expect(struct crowd *crowd, bool right) {
    if (!right)
        atomic_fetch_add(&crowd->wrong, 1);
}

static void touch_first(void *arg, int member) {
    struct crowd *crowd = arg;
    const void *ptr = NULL;
    (void)member;
    expect(crowd, sb_mem_cpu(crowd->mem, &ptr, NULL) == SB_OK && bytes_are(ptr, BYTES, 0));
    expect(crowd, sb_mem_gpu(crowd->mem, &ptr, NULL) == SB_OK);
}

TEST(concurrent_first_touch_allocates_once) {
    struct rig rig;
    rig_open_on(&rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd = {.wrong = 0};
        assert_ok(sb_mem_create(rig.context, BYTES, &crowd.mem, &err));
        struct tally before = rig_tally(&rig);
        team_run(THREADS, touch_first, &crowd);
        struct tally t = rig_since(&rig, &before);
        assert_int_equal(atomic_load(&crowd.wrong), 0);
        assert_int_equal(t.host_allocs, 1);
        assert_int_equal(t.device_allocs, 1);
        assert_int_equal(t.uploads, 1);
        sb_mem_release(crowd.mem);
    }
    rig_close(&rig);
}

static void ask_for_memories(void *arg, int member) {
    struct crowd *crowd = arg;
    sb_mem *data = NULL, *diff = NULL, *first = NULL;
    const void *ptr;
    (void)member;
    expect(crowd, sb_blob_mutable_mem(crowd->blob, SB_DATA, &data, NULL) == SB_OK);
    expect(crowd, sb_blob_mutable_mem(crowd->blob, SB_DIFF, &diff, NULL) == SB_OK && data != diff);
    expect(crowd, sb_blob_cpu(crowd->blob, SB_DATA, &ptr, NULL) == SB_OK && bytes_are(ptr, 40, 0));
    expect(crowd, atomic_compare_exchange_strong(&crowd->seen, &first, data) || first == data);
}

TEST_ON(rig, concurrent_readers_make_one_memory) {
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd = {.blob = blob_of_count(f->context, SB_DTYPE_F32, 10)};
        team_run(THREADS, ask_for_memories, &crowd);
        assert_int_equal(atomic_load(&crowd.wrong), 0);
        sb_blob_destroy(crowd.blob);
    }
}
