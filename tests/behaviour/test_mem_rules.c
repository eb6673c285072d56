/* Tests rules of memories that the state table does not contain. */
#include "pointers.h"
#include "scene.h"

#define BYTES ((size_t)256)

TEST_ON(rig, a_refusal_reports_the_side_of_the_bytes) {
    sb_mem *mem = test_mem(f->context, BYTES);
    (void)mem_pointer(mem, MUTABLE_CPU);
    assert_error(INVALID, sb_mem_async_cpu_pull(mem, NULL, &err),
                 "the newest bytes are on the host already");
    assert_error(INVALID, sb_mem_evict_cpu(mem, &err), "the host holds the only current bytes");
    (void)mem_pointer(mem, MUTABLE_GPU);
    assert_error(INVALID, sb_mem_async_gpu_push(mem, NULL, &err),
                 "the newest bytes are on the device already");
    assert_error(INVALID, sb_mem_evict_gpu(mem, &err), "the device holds the only current bytes");
}

/* MANY streams do not fit into the set in which a memory records its streams. */
TEST_ON(rig, a_memory_waits_for_any_number_of_streams) {
    enum { MANY = 100 };
    struct look looks[MANY];
    rig_schedule(f, SB_SIM_LAZY, 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    sb_mem *other = test_mem(f->context, BYTES);
    for (int i = 0; i < MANY; i++) {
        const sb_stream stream = rig_stream(f);
        const void *in = mem_pointer_on(i % 2 ? mem : other, GPU_DATA_ON, stream);
        rig_look(&looks[i], f, stream, in, BYTES);
    }
    test_end(mem);
    test_end(other);
    assert_ok(sb_context_synchronize(f->context, &err));
    for (int i = 0; i < MANY; i++)
        if (!looks[i].ran || !looks[i].reached)
            fail_with("the memory was freed before work on stream %d", i);
}

TEST_ON(rig, the_host_writes_separate_storage_without_a_wait) {
    sb_mem *mem = test_filled(f->context, BYTES, CURRENT);
    (void)mem_pointer(mem, GPU_DATA);
    const struct tally before = rig_tally(f);
    (void)mem_pointer(mem, MUTABLE_CPU);
    const struct tally since = rig_since(f, &before);
    assert_no_work(&since);
}

TEST_ON(rig, forgotten_streams_cost_nothing) {
    uint64_t first = 0;
    sb_mem *mem = test_mem(f->context, BYTES);
    for (int i = 0; i < 100; i++) {
        sb_stream stream = rig_stream(f);
        (void)mem_pointer_on(mem, GPU_DATA_ON, stream);
        rig_end_stream(f, stream);
        if (i == 0)
            first = rig_stats(f).host_bytes;
    }
    assert_int_equal(rig_stats(f).host_bytes, first);
}
