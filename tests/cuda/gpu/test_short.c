/* Arithmetic on a device whose memory others have taken, first of all before it
   has ever run in the process: kernels are loaded then. */
#include "gpu.h"

#include <string.h>

enum { COUNT = 1 << 18, CHUNKS = 4096 };

struct taken {
    void *chunks[CHUNKS];
    int count;
};

/* All that is free, in pieces that become smaller. */
static void take_all(const struct stage *stage, struct taken *taken) {
    sb__cu_ptr ptr;
    taken->count = 0;
    enter(stage);
    for (size_t bytes = (size_t)64 << 30; bytes >= 4096; bytes /= 2)
        while (taken->count < CHUNKS && driver->cuMemAlloc_v2(&ptr, bytes) == SB__CUDA_SUCCESS)
            taken->chunks[taken->count++] = (void *)(uintptr_t)ptr;
    leave();
}

static void give_all(const struct stage *stage, struct taken *taken) {
    while (taken->count)
        device_end(stage, taken->chunks[--taken->count]);
}

static sb_blob *ones(const struct stage *stage) {
    sb_blob *blob;
    float *x;
    void *out;
    assert_ok(
        sb_blob_create_shaped(stage->context, SB_DTYPE_F32, (int64_t[]){COUNT}, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
    return blob;
}

/* It was done, or nothing was. */
static bool is_done(const struct stage *stage, sb_status st) {
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE)
        fail_with("arithmetic without memory: %s", sb_status_name(st));
    assert_int_equal(sb_context_device_status(stage->context), SB_OK);
    return st == SB_OK;
}

TEST(arithmetic_survives_short_memory) {
    struct stage stage;
    struct taken taken;
    double sum, factor = 1;
    int done = 0;
    stage_open(&stage, NULL);
    sb_blob *blob = ones(&stage);
    for (int round = 0; round < 2; round++) { /* before the first arithmetic, and after it */
        take_all(&stage, &taken);
        for (int i = 0; i < 3; i++) {
            if (is_done(&stage, sb_blob_scale(blob, SB_DATA, 2, &err))) {
                factor *= 2;
                done++;
            }
            if (is_done(&stage, sb_blob_asum(blob, SB_DATA, &sum, &err)))
                assert_true(sum == factor * COUNT);
        }
        print_message("%d pieces were taken; then %d of 3 scalings were done\n", taken.count, done);
        done = 0;
        give_all(&stage, &taken);
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == factor * COUNT);
    }
    sb_blob_destroy(blob);
    stage_close(&stage);
}

int main(void) {
    (void)setenv("STANDIN_MEMORY", "33554432", 1); /* it is the host's */
    int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
