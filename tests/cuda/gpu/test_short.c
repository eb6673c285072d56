/* Tests arithmetic on a device without free memory. In the first round the driver still has to load
   the kernels. */
#include "gpu.h"

enum { COUNT = 1 << 18, CHUNKS = 4096 };

static sb__cu_ptr taken[CHUNKS];

/* Allocates all free memory in ever smaller pieces. Returns the number of pieces. */
static int take_all(void) {
    int count = 0;
    enter();
    for (size_t bytes = (size_t)64 << 30; bytes >= 4096; bytes /= 2)
        while (count < CHUNKS && driver.cuMemAlloc_v2(&taken[count], bytes) == SB__CUDA_SUCCESS)
            count++;
    leave();
    return count;
}

static void give_all(int count) {
    enter();
    while (count)
        cu_ok(cuMemFree_v2(taken[--count]));
    leave();
}

/* Returns whether the call succeeded. A failed call must have changed nothing; the caller checks
   this. */
static bool is_done(const struct stage *stage, sb_status st) {
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE)
        fail_with("arithmetic without memory: %s", sb_status_name(st));
    assert_int_equal(sb_context_device_status(stage->context), SB_OK);
    return st == SB_OK;
}

TEST_ON(stage, arithmetic_without_free_memory_works_or_changes_nothing) {
    double sum, factor = 1;
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
    float *x = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    for (int round = 0; round < 2; round++) { /* before the first arithmetic, then after it */
        const int pieces = take_all();
        int done = 0;
        for (int i = 0; i < 3; i++) {
            if (is_done(f, sb_blob_scale(blob, SB_DATA, 2, &err))) {
                factor *= 2;
                done++;
            }
            if (is_done(f, sb_blob_asum(blob, SB_DATA, &sum, &err)))
                assert_true(sum == factor * COUNT);
        }
        print_message("%d pieces were allocated; then %d of 3 scalings succeeded\n", pieces, done);
        give_all(pieces);
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == factor * COUNT);
    }
}

/* Limits the fake driver's memory, which is memory of the host. */
__attribute__((constructor)) static void limit_memory(void) {
    (void)setenv("FAKE_MEMORY", "33554432", 1);
}
