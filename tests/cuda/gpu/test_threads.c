/* Tests threads that share one device. */
#include "../../survival/threads/team.h"
#include "gpu.h"

enum { THREADS = 16, COUNT = 10007, ROUNDS = 20 };
#define BYTES ((size_t)2 << 20)

struct reading {
    const sb_mem *mem;
    sb_side side;
    const void *seen[THREADS];
};

static void read_once(void *arg, int member) {
    struct reading *r = arg;
    sb_status st = r->side == SB_SIDE_GPU ? sb_mem_gpu(r->mem, &r->seen[member], NULL)
                                          : sb_mem_cpu(r->mem, &r->seen[member], NULL);
    if (st != SB_OK)
        r->seen[member] = NULL;
}

static const void *read_at_once(const sb_mem *mem, sb_side side) {
    struct reading r = {.mem = mem, .side = side};
    team_run(THREADS, read_once, &r);
    assert_non_null(r.seen[0]);
    for (int i = 1; i < THREADS; i++)
        assert_ptr_equal(r.seen[i], r.seen[0]);
    return r.seen[0];
}

TEST_ON(stage, readers_of_one_memory_share_one_transfer) {
    for (int round = 0; round < 5; round++) {
        sb_mem *mem = test_filled(f->context, BYTES, round + 1);
        struct tally before = rig_tally(&f->rig);
        const void *seen = read_at_once(mem, SB_SIDE_GPU);
        assert_transfers(&f->rig, &before, 1, 0);
        assert_true(device_holds(seen, BYTES, round + 1));
        test_end(mem);
        mem = mem_on_device(f->context, BYTES, round + 0x80);
        before = rig_tally(&f->rig);
        seen = read_at_once(mem, SB_SIDE_CPU);
        assert_transfers(&f->rig, &before, 0, 1);
        assert_true(bytes_are(seen, BYTES, round + 0x80));
        test_end(mem);
    }
}

struct workers {
    sb_context *context;
    sb_stream streams[THREADS];
};

static void work(void *arg, int member) {
    const struct workers *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        float *x;
        const float *in;
        sb_blob *blob = test_vector(w->context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)member;
        assert_ok(sb_mem_async_gpu_push(data_of(blob), w->streams[member], &err));
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &in, &err));
        assert_true(in[COUNT - 1] == 2 * (float)member && sum == 2.0 * member * COUNT);
        test_end(blob);
    }
}

TEST_ON(stage, threads_with_separate_blobs_and_streams) {
    struct workers workers = {.context = f->context};
    for (int i = 0; i < THREADS; i++)
        workers.streams[i] = stream_make(STREAM_NON_BLOCKING);
    team_run(THREADS, work, &workers);
}
