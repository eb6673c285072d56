/* Tests arithmetic on memory of any alignment, and on many threads. */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include <string.h>

#define PIECE ((int64_t)1 << 18) /* the maximum number of threads of a launch */
#define MANY  (PIECE * 13 + 5)   /* more than three vectors of floats for each thread */

/* The values are whole numbers, so that the sums are exact. */
static void check_lent(sb_context *context, int32_t dtype, const char *memory, size_t offset,
                       int64_t count) {
    const double wanted = (double)(count / 2) + (double)(count % 2);
    double asum, sumsq;
    sb_blob *blob = test_vector(context, dtype, count);
    assert_ok(sb_blob_set_gpu(blob, SB_DATA, (char *)(uintptr_t)memory + offset,
                              (size_t)count * sb_dtype_size(dtype), SB_READ_ONLY, NULL, NULL,
                              &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &asum, &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sumsq, &err));
    if (asum != wanted || sumsq != wanted)
        fail_with("%lld elements at offset %zu: %.17g and %.17g, not %.17g", (long long)count,
                  offset, asum, sumsq, wanted);
    test_end(blob);
}

/* NaNs surround the summed elements. */
TEST_ON(stage, sums_take_memory_of_any_alignment) {
    static const int64_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1023, 1024, 1025, 4099, MANY};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t shift = counts[c] == MANY; shift < (counts[c] == MANY ? 2 : 4); shift++) {
                const size_t size = sb_dtype_size(dtype), bytes = ((size_t)counts[c] + 8) * size;
                char *values = malloc(bytes), *memory = device_make(bytes);
                assert_non_null(values);
                memset(values, 0xFF, bytes);
                for (size_t i = 0; i < (size_t)counts[c]; i++)
                    if (dtype == SB_DTYPE_F32)
                        ((float *)(void *)values)[i + shift] = i % 2 ? 0 : 1;
                    else
                        ((double *)(void *)values)[i + shift] = i % 2 ? 0 : 1;
                device_write(memory, values, bytes);
                check_lent(f->context, dtype, memory, shift * size, counts[c]);
                test_end(memory);
                free(values);
            }
}

enum { THREADS = 16, COUNT = 10007, ROUNDS = 20 };

struct workers {
    sb_context *context;
    sb_stream streams[THREADS];
};

static void work(void *arg, int member) {
    const struct workers *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        sb_blob *blob = test_vector(w->context, SB_DTYPE_F32, COUNT);
        float *x = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)member;
        assert_ok(sb_mem_async_gpu_push(data_of(blob), w->streams[member], &err));
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        const float *in = blob_pointer(blob, SB_DATA, CPU_DATA);
        assert_true(in[COUNT - 1] == 2 * (float)member && sum == 2.0 * member * COUNT);
        test_end(blob);
    }
}

TEST_ON(stage, threads_with_separate_blobs_and_streams) {
    struct workers workers = {.context = f->context};
    for (int i = 0; i < THREADS; i++)
        workers.streams[i] = stream_make(CU_STREAM_NON_BLOCKING);
    team_run(THREADS, work, &workers);
}
