/* Tests communicators over NCCL with several numbers of ranks. */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include <syncblob/nccl.h>

enum { MOST = 8, LIMIT = 60000 };

struct rank {
    sb_context *context;
    sb_comm *comm;
    size_t bytes;
    int32_t size;
    uint8_t id[SB_NCCL_ID_BYTES];
};

/* Returns a whole number, so that the sums over the ranks are exact. */
static float value_of(int64_t i, int32_t rank) {
    return (float)(i % 1021) + (float)rank;
}

static void assert_sums(sb_blob *blob, int32_t size) {
    const float *x = blob_pointer(blob, SB_DATA, CPU_DATA);
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        float wanted = 0;
        for (int32_t rank = 0; rank < size; rank++)
            wanted += value_of(i, rank);
        if (x[i] != wanted)
            fail_with("element %lld: %g, not %g", (long long)i, (double)x[i], (double)wanted);
    }
}

static void reduce(const struct rank *rank, sb_blob *blob, bool on_device) {
    const int32_t size = sb_comm_size(rank->comm), self = sb_comm_rank(rank->comm);
    void *out;
    float *x = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        x[i] = value_of(i, self);
    if (on_device)
        assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
    assert_ok(sb_comm_barrier(rank->comm, &err));
    const double start = now();
    assert_ok(sb_comm_all_reduce_blobs(rank->comm, &blob, 1, SB_DATA, SB_COMM_SUM, &err));
    if (self == 0 && sb_blob_count(blob) >= 1 << 18)
        printf("%d ranks, %.4g MiB on the %s: %.4g ms\n", size,
               (double)sb_blob_count(blob) * sizeof(float) / 1048576, on_device ? "device" : "host",
               (now() - start) * 1e3);
    assert_sums(blob, size);
}

/* Sums each size three times, because NCCL connects in the first operation. */
static void run(void *arg, int member) {
    struct rank *rank = (struct rank *)arg + member;
    if (!rank->comm)
        assert_ok(sb_nccl_comm_create(rank->context, rank->id, member, rank->size, LIMIT,
                                      &rank->comm, &err));
    const int64_t counts[] = {1, 1000, (int64_t)(rank->bytes / sizeof(float))};
    for (size_t c = 0; c < 3; c++)
        for (int on_device = 0; on_device < 2; on_device++) {
            sb_blob *blob = test_vector(rank->context, SB_DTYPE_F32, counts[c]);
            for (int i = 0; i < 3; i++)
                reduce(rank, blob, on_device);
            test_end(blob);
        }
    sb_comm_destroy(rank->comm);
    test_end(rank->context);
}

static sb_context *open_context(int32_t ordinal) {
    char device[16];
    (void)snprintf(device, sizeof device, "cuda:%d", ordinal);
    return test_context_on(device);
}

static void run_ranks(int32_t size, size_t bytes, bool together) {
    struct rank ranks[MOST] = {{.bytes = bytes, .size = size}};
    sb_context *contexts[MOST];
    sb_comm *comms[MOST] = {NULL};
    assert_ok(sb_nccl_id_create(ranks[0].id, &err));
    for (int32_t i = 0; i < size; i++)
        contexts[i] = open_context(i);
    if (together)
        assert_ok(sb_nccl_comm_create_all(contexts, size, LIMIT, comms, &err));
    for (int32_t i = 0; i < size; i++) {
        ranks[i] = ranks[0];
        ranks[i].context = contexts[i];
        ranks[i].comm = comms[i];
    }
    team_run(size, run, ranks);
}

int gpu_main(int argc, char **argv) {
    uint8_t id[SB_NCCL_ID_BYTES];
    if (sb_nccl_id_create(id, &err) != SB_OK) {
        printf("skipped: %s\n", err.message);
        return GPU_SKIPPED;
    }
    const size_t bytes = (size_t)(driver.is_fake ? 1 : 256) << 20;
    const int32_t all = device_count() < MOST ? device_count() : MOST;
    for (int32_t size = 1; size <= all; size += size < 2 || all == size ? 1 : all - size) {
        run_ranks(size, bytes, true);
        run_ranks(size, bytes, false);
    }
    return 0;
}
