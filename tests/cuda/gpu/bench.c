/* Compares the speed of arithmetic with the speed of a copy within the device, and the backend's
   transfers and allocations with the driver's. Compared calls take turns. Prints Markdown.

   usage: bench               the benchmark
          bench --quick       small sizes, as a test of the program
          bench --start       only the first steps: a context, the kernels, the first arithmetic
          bench --describe    only the device and the driver */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { REPEATS_MAX = 31, SMALL_BLOBS = 1000 };

static int repeats = REPEATS_MAX;
static double medians[8]; /* median seconds of the entries of the last table row */
static bool quick;

/* The objects that are timed or used for timing. */
struct subject {
    struct stage *stage;
    size_t bytes;
    sb_blob *blob, *small[SMALL_BLOBS];
    sb_mem *mem;
    void *pinned, *device; /* for the driver's copies */
    int scales;            /* number of scale operations that take about as long as a push */
};

/* --- time ------------------------------------------------------------------------------------ */

/* A timed operation. `work` makes `times` calls and returns the seconds of one call. */
struct entry {
    const char *name;
    double (*work)(struct subject *s, int times);
    double traffic; /* bytes that a call moves for each byte of the subject */
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void begin_table(const char *title) {
    printf("\n## %s\n\n| call | MiB | us, median | us, best | GB/s, median | share of the first | "
           "best / best |\n|---|---|---|---|---|---|---|\n",
           title);
}

/* Times the entries in turn, after a first round that does not count. Returns the median of the
   last entry. */
static double time_in_turn(struct subject *s, const struct entry *entries, int count, int times) {
    double seconds[8][REPEATS_MAX], median = 0;
    for (int round = -1; round < repeats; round++)
        for (int i = 0; i < count; i++)
            seconds[i][round < 0 ? 0 : round] = entries[i].work(s, times);
    for (int i = 0; i < count; i++) {
        qsort(seconds[i], (size_t)repeats, sizeof(double), compare);
        const double *first = seconds[0], share = entries[i].traffic / entries[0].traffic;
        median = medians[i] = seconds[i][repeats / 2];
        printf("| %s | %.4g | %.4g | %.4g | %.2f | %.1f %% | %.1f %% |\n", entries[i].name,
               (double)s->bytes / (double)MIB, median * 1e6, seconds[i][0] * 1e6,
               entries[i].traffic * (double)s->bytes / median * 1e-9,
               100 * share * first[repeats / 2] / median, 100 * share * first[0] / seconds[i][0]);
    }
    return median;
}

#define EACH_TIME(prepare, statement)                                                              \
    double seconds = 0;                                                                            \
    for (int i = 0; i < times; i++) {                                                              \
        prepare;                                                                                   \
        const double start = now();                                                                \
        statement;                                                                                 \
        seconds += now() - start;                                                                  \
    }                                                                                              \
    return seconds / times
#define ALL_TIMES(statement, wait)                                                                 \
    const double start = now();                                                                    \
    for (int i = 0; i < times; i++)                                                                \
        statement;                                                                                 \
    wait;                                                                                          \
    return (now() - start) / times
#define TIMED(name, how, ...)                                                                      \
    static double name(struct subject *s, int times) {                                             \
        how(__VA_ARGS__);                                                                          \
    }
#define STREAM(s)   ((sb__cu_stream)(s)->stage->stream)
#define ADDRESS(p)  ((sb__cu_ptr)(uintptr_t)(p))
#define SYNC(s)     assert_ok(sb_context_synchronize((s)->stage->context, &err))
#define CU_WAIT(s)  cu_ok(cuStreamSynchronize(STREAM(s)))
#define NO_POINTER  (&(const void *){NULL})
#define ANY_POINTER (&(void *){NULL})

/* --- arithmetic ------------------------------------------------------------------------------ */

static const void *data_at_device(sb_blob *blob) {
    const void *in;
    assert_ok(sb_blob_gpu(blob, SB_DATA, &in, &err));
    return in;
}

TIMED(bare_copy, ALL_TIMES,
      cu_ok(cuMemcpyDtoDAsync_v2(ADDRESS(s->device), ADDRESS(data_at_device(s->blob)), s->bytes,
                                 STREAM(s))),
      CU_WAIT(s))
TIMED(update, ALL_TIMES, assert_ok(sb_blob_update(s->blob, &err)), SYNC(s))
TIMED(scale, ALL_TIMES, assert_ok(sb_blob_scale(s->blob, SB_DATA, i % 2 ? 0.5 : 2, &err)), SYNC(s))
TIMED(asum, ALL_TIMES, assert_ok(sb_blob_asum(s->blob, SB_DATA, &(double){0}, &err)), )
TIMED(sumsq, ALL_TIMES, assert_ok(sb_blob_sumsq(s->blob, SB_DATA, &(double){0}, &err)), )

/* Creates a blob at the device, with numbers that stay small in all timed calls. */
static sb_blob *make_blob(sb_context *context, int32_t dtype, size_t bytes) {
    void *data, *diff;
    sb_blob *blob = test_vector(context, dtype, (int64_t)(bytes / sb_dtype_size(dtype)));
    assert_ok(sb_blob_overwrite_gpu(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_overwrite_gpu(blob, SB_DIFF, &diff, &err));
    queue_fill(NULL, data, 0x3C, bytes);
    queue_fill(NULL, diff, 0x30, bytes);
    stream_wait(NULL);
    return blob;
}

static void bench_arithmetic(struct subject *s, int32_t dtype, const size_t *sizes, int count) {
    static const struct entry entries[] = {{"copy by the driver", bare_copy, 2},
                                           {"Update", update, 3},
                                           {"asum", asum, 1},
                                           {"sumsq", sumsq, 1},
                                           {"scale", scale, 2}};
    begin_table(dtype == SB_DTYPE_F32 ? "Arithmetic, f32" : "Arithmetic, f64");
    for (int i = 0; i < count; i++) {
        const size_t times = quick ? 2 : 256 * MIB / sizes[i];
        s->bytes = sizes[i];
        s->blob = make_blob(s->stage->context, dtype, s->bytes);
        s->device = device_make(s->bytes);
        enter();
        (void)time_in_turn(s, entries, 5, times < 2 ? 2 : times > 64 ? 64 : (int)times);
        leave();
        test_end(s->blob);
        test_end(s->device);
    }
    printf("\nBandwidth of sums of %.4g MiB, copy = 1: asum %.2f, sumsq %.2f; the aim is "
           "0.8.\n",
           (double)s->bytes / (double)MIB, medians[0] / medians[2] / 2,
           medians[0] / medians[3] / 2);
}

/* --- transfers ------------------------------------------------------------------------------- */

TIMED(bare_up, EACH_TIME, ,
      cu_ok(cuMemcpyHtoDAsync_v2(ADDRESS(s->device), s->pinned, s->bytes, STREAM(s)));
      CU_WAIT(s))
TIMED(bare_down, EACH_TIME, ,
      cu_ok(cuMemcpyDtoHAsync_v2(s->pinned, ADDRESS(s->device), s->bytes, STREAM(s)));
      CU_WAIT(s))
TIMED(up, EACH_TIME, assert_ok(sb_mem_mutable_cpu(s->mem, ANY_POINTER, &err)),
      assert_ok(sb_mem_gpu(s->mem, NO_POINTER, &err)))
TIMED(down, EACH_TIME, assert_ok(sb_mem_mutable_gpu(s->mem, ANY_POINTER, &err)),
      assert_ok(sb_mem_cpu(s->mem, NO_POINTER, &err)))

static void bench_transfers(struct subject *s, const size_t *sizes, int count) {
    static const struct entry ups[] = {{"up by the driver", bare_up, 1}, {"up", up, 1}};
    static const struct entry downs[] = {{"down by the driver", bare_down, 1}, {"down", down, 1}};
    begin_table("Transfers of page-locked memory");
    for (int i = 0; i < count; i++) {
        const int times = quick || sizes[i] >= 64 * MIB ? 1 : 8;
        s->bytes = sizes[i];
        s->mem = test_filled(s->stage->context, s->bytes, 1);
        assert_int_equal(sb_mem_storage(s->mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
        s->device = device_make(s->bytes);
        enter();
        cu_ok(cuMemHostAlloc(&s->pinned, s->bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
        memset(s->pinned, 2, s->bytes);
        (void)time_in_turn(s, ups, 2, times);
        (void)time_in_turn(s, downs, 2, times);
        cu_ok(cuMemFreeHost(s->pinned));
        leave();
        test_end(s->mem);
        test_end(s->device);
    }
}

/* --- allocation ------------------------------------------------------------------------------ */

TIMED(bare_device, EACH_TIME, sb__cu_ptr ptr, cu_ok(cuMemAlloc_v2(&ptr, s->bytes));
      cu_ok(cuMemFree_v2(ptr)))
TIMED(bare_pinned, EACH_TIME, void *ptr,
      cu_ok(cuMemHostAlloc(&ptr, s->bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
      cu_ok(cuMemFreeHost(ptr)))
TIMED(device_memory, EACH_TIME, sb_mem *mem,
      assert_ok(sb_mem_create(s->stage->context, s->bytes, &mem, &err));
      assert_ok(sb_mem_overwrite_gpu(mem, ANY_POINTER, &err)); sb_mem_release(mem))
TIMED(pinned_memory, EACH_TIME, sb_mem *mem,
      assert_ok(sb_mem_create(s->stage->context, s->bytes, &mem, &err));
      assert_ok(sb_mem_overwrite_cpu(mem, ANY_POINTER, &err)); sb_mem_release(mem))

static void bench_allocation(struct subject *s, const size_t *sizes, int count) {
    static const struct entry device[] = {{"cuMemAlloc and cuMemFree", bare_device, 1},
                                          {"a memory at the device", device_memory, 1}};
    static const struct entry pinned[] = {{"cuMemHostAlloc and cuMemFreeHost", bare_pinned, 1},
                                          {"a page-locked memory", pinned_memory, 1}};
    begin_table("Allocation: create a memory, access it on one side, release it");
    for (int i = 0; i < count; i++) {
        s->bytes = sizes[i];
        enter();
        (void)time_in_turn(s, device, 2, quick ? 2 : 16);
        (void)time_in_turn(s, pinned, 2, quick ? 2 : 16);
        leave();
    }
}

/* --- small blobs ----------------------------------------------------------------------------- */

TIMED(update_each, ALL_TIMES, assert_ok(sb_blob_update(s->small[i], &err)), SYNC(s))
TIMED(download_each, ALL_TIMES, assert_ok(sb_blob_cpu(s->small[i], SB_DATA, NO_POINTER, &err)), )

static void bench_small(struct subject *s) {
    static const struct entry entries[] = {{"Update", update_each, 1},
                                           {"cpu_data after Update", download_each, 1}};
    s->bytes = 4096;
    for (int i = 0; i < SMALL_BLOBS; i++)
        s->small[i] = make_blob(s->stage->context, SB_DTYPE_F32, s->bytes);
    begin_table("1000 blobs with exposed plain pointers, time for each");
    (void)time_in_turn(s, entries, 2, SMALL_BLOBS);
    for (int i = 0; i < SMALL_BLOBS; i++)
        test_end(s->small[i]);
}

/* --- overlap --------------------------------------------------------------------------------- */

static double run_both(struct subject *s, bool pushes, int scales) {
    assert_ok(sb_mem_mutable_cpu(s->mem, ANY_POINTER, &err));
    const double start = now();
    if (pushes)
        assert_ok(sb_mem_async_gpu_push(s->mem, s->stage->stream, &err));
    for (int i = 0; i < scales; i++)
        assert_ok(sb_blob_scale(s->blob, SB_DATA, i % 2 ? 0.5 : 2, &err));
    assert_ok(sb_mem_synchronize(s->mem, &err));
    SYNC(s);
    return now() - start;
}

#define BOTH(name, pushes, scales)                                                                 \
    static double name(struct subject *s, int times) {                                             \
        return run_both(s, pushes, scales * times);                                                \
    }
BOTH(push_alone, true, 0)
BOTH(scales_alone, false, s->scales)
BOTH(push_and_scales, true, s->scales)

static void bench_overlap(struct subject *s, size_t bytes) {
    static const struct entry push[] = {{"push", push_alone, 1}};
    static const struct entry work[] = {{"arithmetic", scales_alone, 1}};
    static const struct entry both[] = {{"both", push_and_scales, 1}};
    s->bytes = bytes;
    s->mem = test_filled(s->stage->context, bytes, 1);
    s->blob = make_blob(s->stage->context, SB_DTYPE_F32, bytes);
    (void)run_both(s, true, 4);
    const double wanted = 4 * run_both(s, true, 0) / run_both(s, false, 4);
    s->scales = wanted < 2 ? 2 : wanted > 1000 ? 1000 : (int)wanted;
    begin_table("An asynchronous push beside arithmetic");
    const double a = time_in_turn(s, push, 1, 1), b = time_in_turn(s, work, 1, 1);
    printf("\nThe overlap hides %.1f %% of the shorter work.\n",
           100 * (a + b - time_in_turn(s, both, 1, 1)) / (a < b ? a : b));
    test_end(s->mem);
    test_end(s->blob);
}

/* --- the first steps ------------------------------------------------------------------------- */

static void print_since(const char *step, double start) {
    printf("| %s | %.3f |\n", step, (now() - start) * 1e3);
}

static void create_handle(void) {
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12"};
    sb__cublas_status (*create)(sb__cublas_handle * handle) = NULL;
    sb__cublas_handle handle;
    void *symbol = NULL;
    for (int i = 0; i < 2 && !symbol; i++) {
        void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        symbol = library ? dlsym(library, "cublasCreate_v2") : NULL;
    }
    memcpy(&create, &symbol, sizeof create);
    const double start = now();
    if (create && create(&handle) == SB__CUBLAS_STATUS_SUCCESS)
        print_since("cublasCreate", start);
    else
        printf("| cublasCreate | skipped: there is no cuBLAS |\n");
}

/* Measures a context, the compilation of the kernels, a handle of cuBLAS and the first arithmetic.
 */
static int bench_start(void) {
    sb__cu_module module;
    double start = now();
    const sb_context_options options = CONTEXT_OPTIONS(.device = "cuda:0");
    sb_context *first = NULL;
    const sb_status st = sb_context_create(&options, &first, &err);
    const double first_ms = (now() - start) * 1e3;
    const int missing = gpu_begin();
    if (missing || st != SB_OK)
        return missing ? missing : 1;
    printf("\n| step | ms |\n|---|---|\n| the first context on cuda:0 | %.3f |\n", first_ms);
    start = now();
    sb_context *second = test_context_on("cuda:0");
    print_since("another context", start);
    enter();
    start = now();
    cu_ok(cuModuleLoadData(&module, sb__cuda_kernels));
    print_since("compilation of the kernels", start);
    create_handle();
    leave();
    start = now();
    assert_ok(sb_context_prepare_arithmetic(first, &err));
    print_since("preparation of arithmetic", start);
    test_end(second);
    sb_context_release(first);
    return 0;
}

/* --- all ------------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    static const size_t full[] = {MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB};
    static const size_t small[] = {MIB / 16, MIB};
    static struct subject s;
    struct stage stage;
    quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    const bool describe = argc == 2 && strcmp(argv[1], "--describe") == 0;
    if (argc == 2 && strcmp(argv[1], "--start") == 0)
        return bench_start();
    if (argc > 2 || (argc == 2 && !quick && !describe)) {
        fprintf(stderr, "usage: bench [--quick | --start | --describe]\n");
        return 2;
    }
    const int missing = gpu_begin();
    if (missing || describe)
        return missing;
    repeats = quick ? 3 : REPEATS_MAX;
    stage_open_options(&stage,
                       CONTEXT_OPTIONS(.device = "cuda:0", .max_pinned_bytes = (size_t)4 << 30));
    s.stage = &stage;
    const size_t *sizes = quick ? small : full;
    const int count = quick ? 2 : (int)(sizeof full / sizeof full[0]);
    bench_arithmetic(&s, SB_DTYPE_F32, sizes, count);
    bench_arithmetic(&s, SB_DTYPE_F64, sizes, count);
    bench_transfers(&s, sizes, count);
    bench_allocation(&s, (const size_t[]){4096, MIB, 64 * MIB}, quick ? 2 : 3);
    bench_small(&s);
    bench_overlap(&s, quick ? MIB : 256 * MIB);
    stage_close(&stage);
    return 0;
}
