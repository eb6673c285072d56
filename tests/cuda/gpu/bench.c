/* How fast the backend is, against what the device does without the library:
   arithmetic against a copy within the device, transfers against bare copies of
   the same bytes, interleaved in one run. Prints Markdown, ratios first.

   usage: bench               the benchmark
          bench --quick       small sizes, to see that it runs
          bench --describe    only which device and driver it is */
#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
enum { REPEATS_MAX = 31 };

static int repeats = REPEATS_MAX;
static bool quick;

/* --- time ------------------------------------------------------------------------------------ */

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct series {
    double seconds[REPEATS_MAX];
    int count;
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct series *series) {
    qsort(series->seconds, (size_t)series->count, sizeof(double), compare);
    return series->seconds[series->count / 2];
}

static double best(const struct series *series) {
    double least = series->seconds[0];
    for (int i = 1; i < series->count; i++)
        least = series->seconds[i] < least ? series->seconds[i] : least;
    return least;
}

/* One of several things that are timed in turn; `work` returns the seconds of one. */
struct entry {
    const char *name;
    double (*work)(void *user, int times);
    double traffic; /* bytes moved for each byte of the buffer */
    struct series series;
};

/* A first round is not counted. */
static void time_in_turn(struct entry *entries, int count, void *user, int times) {
    for (int round = -1; round < repeats; round++)
        for (int i = 0; i < count; i++) {
            double seconds = entries[i].work(user, times);
            if (round >= 0)
                entries[i].series.seconds[entries[i].series.count++] = seconds;
        }
}

/* --- arithmetic ------------------------------------------------------------------------------ */

struct arithmetic {
    struct stage *stage;
    sb_blob *blob;
    const void *source;
    void *target;
    size_t bytes;
};

#define TIMED(statement, wait)                                                                     \
    struct arithmetic *a = user;                                                                   \
    sb_error err;                                                                                  \
    double start = now();                                                                          \
    for (int i = 0; i < times; i++)                                                                \
        statement;                                                                                 \
    wait;                                                                                          \
    return (now() - start) / times

static double bare_copy(void *user, int times) {
    struct arithmetic *a = user;
    enter();
    double start = now();
    for (int i = 0; i < times; i++)
        cu_ok(cuMemcpyDtoDAsync_v2((sb__cu_ptr)(uintptr_t)a->target,
                                   (sb__cu_ptr)(uintptr_t)a->source, a->bytes,
                                   (sb__cu_stream)a->stage->stream));
    cu_ok(cuStreamSynchronize((sb__cu_stream)a->stage->stream));
    double seconds = (now() - start) / times;
    leave();
    return seconds;
}

static double update(void *user, int times) {
    TIMED(assert_ok(sb_blob_update(a->blob, &err)),
          assert_ok(sb_context_synchronize(a->stage->context, &err)));
}

static double scale(void *user, int times) {
    TIMED(assert_ok(sb_blob_scale(a->blob, SB_DATA, i % 2 ? 0.5 : 2, &err)),
          assert_ok(sb_context_synchronize(a->stage->context, &err)));
}

static double asum(void *user, int times) {
    double sum;
    TIMED(assert_ok(sb_blob_asum(a->blob, SB_DATA, &sum, &err)), (void)sum);
}

static double sumsq(void *user, int times) {
    double sum;
    TIMED(assert_ok(sb_blob_sumsq(a->blob, SB_DATA, &sum, &err)), (void)sum);
}

static void print_arithmetic(struct entry *entries, int count, const char *dtype, size_t bytes) {
    double copy = 2 * (double)bytes / median(&entries[0].series);
    double best_copy = 2 * (double)bytes / best(&entries[0].series);
    for (int i = 0; i < count; i++) {
        double traffic = entries[i].traffic * (double)bytes;
        double usual = traffic / median(&entries[i].series);
        double fastest = traffic / best(&entries[i].series);
        printf("| %s | %s | %.4g | %.1f %% | %.1f %% | %.1f | %.1f | %.1f |\n", entries[i].name,
               dtype, (double)bytes / (double)MIB, 100 * usual / copy, 100 * fastest / best_copy,
               usual * 1e-9, fastest * 1e-9, median(&entries[i].series) * 1e6);
    }
}

static void fill_both(sb_blob *blob, struct arithmetic *a) {
    void *data, *diff;
    assert_ok(sb_blob_overwrite_gpu(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_overwrite_gpu(blob, SB_DIFF, &diff, &err));
    queue_fill(NULL, data, 0x3C, a->bytes); /* small numbers, that stay so */
    queue_fill(NULL, diff, 0x30, a->bytes);
    stream_wait(NULL);
    a->source = data;
}

static void time_arithmetic(struct stage *stage, int32_t dtype, size_t bytes) {
    struct entry entries[] = {{"bare copy", bare_copy, 2, {{0}, 0}},
                              {"Update", update, 3, {{0}, 0}},
                              {"asum", asum, 1, {{0}, 0}},
                              {"sumsq", sumsq, 1, {{0}, 0}},
                              {"scale", scale, 2, {{0}, 0}}};
    struct arithmetic a = {.stage = stage, .bytes = bytes};
    int64_t count = (int64_t)(bytes / sb_dtype_size(dtype));
    int entry_count = (int)(sizeof entries / sizeof entries[0]);
    size_t times = 256 * MIB / bytes;
    if (times < 2 || quick)
        times = 2;
    assert_ok(sb_blob_create_shaped(stage->context, dtype, &count, 1, &a.blob, &err));
    a.target = device_make(bytes);
    fill_both(a.blob, &a);
    time_in_turn(entries, entry_count, &a, times > 64 ? 64 : (int)times);
    print_arithmetic(entries, entry_count, dtype == SB_DTYPE_F32 ? "f32" : "f64", bytes);
    sb_blob_destroy(a.blob);
    test_end(a.target);
}

static void print_theory(void) {
    sb__cu_device device;
    int clock = 0, width = 0;
    cu_ok(cuDeviceGet(&device, 0));
    if (driver->cuDeviceGetAttribute(&clock, ATTRIBUTE_MEMORY_CLOCK, device) || clock <= 0 ||
        driver->cuDeviceGetAttribute(&width, ATTRIBUTE_BUS_WIDTH, device) || width <= 0)
        printf("The driver does not tell the clock and the width of the device's memory.\n\n");
    else
        printf("By its attributes (%d MHz, %d bits, two transfers a clock) the device's memory "
               "moves %.1f GB/s.\n\n",
               clock / 1000, width, 2e3 * clock * width / 8 * 1e-9);
}

static void bench_arithmetic(struct stage *stage, const size_t *sizes, int count) {
    printf("\n## Arithmetic, as a share of a bare copy's bandwidth within the device\n\n"
           "Bytes moved for each byte of the blob: copy 2, Update 3, sums 1, scale 2.\n\n");
    print_theory();
    printf("| operation | type | MiB | median / median | best / best | GB/s, median | "
           "GB/s, best | us a call, median |\n|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++)
        time_arithmetic(stage, SB_DTYPE_F32, sizes[i]);
    for (int i = 0; i < count; i++)
        time_arithmetic(stage, SB_DTYPE_F64, sizes[i]);
}

/* --- transfers ------------------------------------------------------------------------------- */

struct transfer {
    struct stage *stage;
    sb_mem *mem;
    void *pinned, *device; /* of the bare copies */
    size_t bytes;
};

static double library_up(void *user, int times) {
    struct transfer *t = user;
    double seconds = 0;
    for (int i = 0; i < times; i++) {
        void *out;
        const void *in;
        assert_ok(sb_mem_mutable_cpu(t->mem, &out, &err));
        double start = now();
        assert_ok(sb_mem_gpu(t->mem, &in, &err));
        seconds += now() - start;
    }
    return seconds / times;
}

static double library_down(void *user, int times) {
    struct transfer *t = user;
    double seconds = 0;
    for (int i = 0; i < times; i++) {
        void *out;
        const void *in;
        assert_ok(sb_mem_mutable_gpu(t->mem, &out, &err));
        double start = now();
        assert_ok(sb_mem_cpu(t->mem, &in, &err));
        seconds += now() - start;
    }
    return seconds / times;
}

static double bare_transfer(const struct transfer *t, bool up, int times) {
    sb__cu_ptr device = (sb__cu_ptr)(uintptr_t)t->device;
    enter();
    double start = now();
    for (int i = 0; i < times; i++) {
        if (up)
            cu_ok(
                cuMemcpyHtoDAsync_v2(device, t->pinned, t->bytes, (sb__cu_stream)t->stage->stream));
        else
            cu_ok(
                cuMemcpyDtoHAsync_v2(t->pinned, device, t->bytes, (sb__cu_stream)t->stage->stream));
        cu_ok(cuStreamSynchronize((sb__cu_stream)t->stage->stream));
    }
    double seconds = (now() - start) / times;
    leave();
    return seconds;
}

static double bare_up(void *user, int times) {
    return bare_transfer(user, true, times);
}

static double bare_down(void *user, int times) {
    return bare_transfer(user, false, times);
}

static void print_transfer(const char *name, struct entry *bare, struct entry *ours, size_t bytes) {
    printf("| %s | %.4g | %.1f %% | %.1f %% | %.2f | %.2f |\n", name, (double)bytes / (double)MIB,
           100 * median(&bare->series) / median(&ours->series),
           100 * best(&bare->series) / best(&ours->series),
           (double)bytes / median(&ours->series) * 1e-9,
           (double)bytes / median(&bare->series) * 1e-9);
}

static void time_transfers(struct stage *stage, size_t bytes) {
    struct entry entries[] = {{"bare up", bare_up, 1, {{0}, 0}},
                              {"up", library_up, 1, {{0}, 0}},
                              {"bare down", bare_down, 1, {{0}, 0}},
                              {"down", library_down, 1, {{0}, 0}}};
    struct transfer t = {.stage = stage, .bytes = bytes};
    t.mem = mem_on_host(stage->context, bytes, 1);
    if (sb_mem_storage(t.mem, SB_SIDE_CPU) != SB_STORAGE_PINNED)
        fail_with("%zu bytes could not be pinned", bytes);
    t.device = device_make(bytes);
    enter();
    cu_ok(cuMemHostAlloc(&t.pinned, bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
    leave();
    memset(t.pinned, 2, bytes);
    time_in_turn(entries, 4, &t, quick || bytes >= 64 * MIB ? 1 : 8);
    print_transfer("up", &entries[0], &entries[1], bytes);
    print_transfer("down", &entries[2], &entries[3], bytes);
    test_end(t.mem);
    test_end(t.device);
    enter();
    cu_ok(cuMemFreeHost(t.pinned));
    leave();
}

static void bench_transfers(struct stage *stage, const size_t *sizes, int count) {
    printf("\n## Transfers of page-locked memory, as a share of a bare copy of the same bytes\n\n"
           "| direction | MiB | median / median | best / best | GB/s, median | bare GB/s, median "
           "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++)
        time_transfers(stage, sizes[i]);
}

/* --- accesses -------------------------------------------------------------------------------- */

enum { CALLS = 1000000 };

static double host_access(void *user, int times) {
    const void *in;
    double start = now();
    for (int i = 0; i < times; i++)
        if (sb_mem_cpu(user, &in, NULL) != SB_OK)
            fail_with("cpu_data failed");
    return (now() - start) / times;
}

static double device_access(void *user, int times) {
    const void *in;
    double start = now();
    for (int i = 0; i < times; i++)
        if (sb_mem_gpu(user, &in, NULL) != SB_OK)
            fail_with("gpu_data failed");
    return (now() - start) / times;
}

static double mutable_access(void *user, int times) {
    void *out;
    double start = now();
    for (int i = 0; i < times; i++)
        if (sb_mem_mutable_gpu(user, &out, NULL) != SB_OK)
            fail_with("mutable_gpu_data failed");
    return (now() - start) / times;
}

static void print_access(struct entry *entry) {
    printf("| %s | %.2f | %.2f |\n", entry->name, median(&entry->series) * 1e9,
           best(&entry->series) * 1e9);
}

static void bench_accesses(struct stage *stage) {
    struct entry reads[] = {{"cpu_data", host_access, 0, {{0}, 0}},
                            {"gpu_data", device_access, 0, {{0}, 0}}};
    struct entry writes[] = {{"mutable_gpu_data", mutable_access, 0, {{0}, 0}}};
    int times = quick ? CALLS / 100 : CALLS;
    sb_mem *mem = mem_on_host(stage->context, 4096, 1);
    (void)gpu_pointer(mem);
    printf("\n## An access that needs no transfer\n\n| call | ns, median | ns, best "
           "|\n|---|---|---|\n");
    time_in_turn(reads, 2, mem, times);
    time_in_turn(writes, 1, mem, times);
    print_access(&reads[0]);
    print_access(&reads[1]);
    print_access(&writes[0]);
    test_end(mem);
}

/* --- allocation ------------------------------------------------------------------------------ */

struct allocation {
    struct stage *stage;
    size_t bytes;
};

static double bare_device(void *user, int times) {
    const struct allocation *a = user;
    sb__cu_ptr ptr;
    enter();
    double start = now();
    for (int i = 0; i < times; i++) {
        cu_ok(cuMemAlloc_v2(&ptr, a->bytes));
        cu_ok(cuMemFree_v2(ptr));
    }
    double seconds = (now() - start) / times;
    leave();
    return seconds;
}

static double bare_pinned(void *user, int times) {
    const struct allocation *a = user;
    void *ptr;
    enter();
    double start = now();
    for (int i = 0; i < times; i++) {
        cu_ok(cuMemHostAlloc(&ptr, a->bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
        cu_ok(cuMemFreeHost(ptr));
    }
    double seconds = (now() - start) / times;
    leave();
    return seconds;
}

static double memories(const struct allocation *a, int32_t side, int times) {
    void *out;
    double start = now();
    for (int i = 0; i < times; i++) {
        sb_mem *mem;
        assert_ok(sb_mem_create(a->stage->context, a->bytes, &mem, &err));
        assert_ok(side == SB_SIDE_GPU ? sb_mem_overwrite_gpu(mem, &out, &err)
                                      : sb_mem_overwrite_cpu(mem, &out, &err));
        sb_mem_release(mem);
    }
    return (now() - start) / times;
}

static double device_memories(void *user, int times) {
    return memories(user, SB_SIDE_GPU, times);
}

static double pinned_memories(void *user, int times) {
    return memories(user, SB_SIDE_CPU, times);
}

static void bench_allocation(struct stage *stage, const size_t *sizes, int count) {
    printf("\n## Allocation: a memory is made, touched on one side and released\n\n"
           "| what | KiB | us, median | us, best |\n|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        struct entry entries[] = {{"bare, on the device", bare_device, 0, {{0}, 0}},
                                  {"on the device", device_memories, 0, {{0}, 0}},
                                  {"bare, page-locked", bare_pinned, 0, {{0}, 0}},
                                  {"page-locked", pinned_memories, 0, {{0}, 0}}};
        struct allocation a = {stage, sizes[i]};
        time_in_turn(entries, 4, &a, quick ? 2 : 16);
        for (int k = 0; k < 4; k++)
            printf("| %s | %zu | %.2f | %.2f |\n", entries[k].name, sizes[i] / 1024,
                   median(&entries[k].series) * 1e6, best(&entries[k].series) * 1e6);
    }
}

/* --- small blobs ----------------------------------------------------------------------------- */

enum { BLOBS = 1000, SMALL = 4096 };

static double update_each(void *user, int times) {
    sb_blob *const *blobs = user;
    double start = now();
    for (int i = 0; i < times; i++)
        for (int k = 0; k < BLOBS; k++)
            assert_ok(sb_blob_update(blobs[k], &err));
    assert_ok(sb_context_synchronize(sb_blob_context(blobs[0]), &err));
    return (now() - start) / times / BLOBS;
}

static double download_each(void *user, int times) {
    sb_blob *const *blobs = user;
    const void *in;
    (void)times;
    double start = now();
    for (int k = 0; k < BLOBS; k++)
        assert_ok(sb_blob_cpu(blobs[k], SB_DATA, &in, &err));
    double seconds = (now() - start) / BLOBS;
    for (int k = 0; k < BLOBS; k++)
        assert_ok(sb_blob_update(blobs[k], &err)); /* the device is the head again */
    return seconds;
}

static void bench_small(struct stage *stage) {
    struct entry entries[] = {{"Update", update_each, 0, {{0}, 0}},
                              {"cpu_data after Update", download_each, 0, {{0}, 0}}};
    const int64_t shape[] = {SMALL / sizeof(float)};
    struct arithmetic a = {.bytes = SMALL};
    static sb_blob *blobs[BLOBS];
    for (int i = 0; i < BLOBS; i++) {
        assert_ok(sb_blob_create_shaped(stage->context, SB_DTYPE_F32, shape, 1, &blobs[i], &err));
        fill_both(blobs[i], &a);
    }
    time_in_turn(entries, 2, blobs, 1);
    printf("\n## %d blobs of %d bytes, with exposed plain pointers\n\n"
           "| call | us a blob, median | us a blob, best |\n|---|---|---|\n",
           BLOBS, SMALL);
    for (int i = 0; i < 2; i++)
        printf("| %s | %.2f | %.2f |\n", entries[i].name, median(&entries[i].series) * 1e6,
               best(&entries[i].series) * 1e6);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(blobs[i]);
}

/* --- overlap --------------------------------------------------------------------------------- */

struct overlap {
    struct stage *stage;
    sb_mem *mem;
    sb_blob *blob;
    int scales; /* that take about as long as the push */
};

static void queue_scales(const struct overlap *o) {
    for (int i = 0; i < o->scales; i++)
        assert_ok(sb_blob_scale(o->blob, SB_DATA, i % 2 ? 0.5 : 2, &err));
}

static double both(struct overlap *o, bool push, bool scales) {
    void *out;
    assert_ok(sb_mem_mutable_cpu(o->mem, &out, &err));
    double start = now();
    if (push)
        assert_ok(sb_mem_async_gpu_push(o->mem, o->stage->stream, &err));
    if (scales)
        queue_scales(o);
    assert_ok(sb_mem_synchronize(o->mem, &err));
    assert_ok(sb_context_synchronize(o->stage->context, &err));
    return now() - start;
}

static double push_alone(void *user, int times) {
    (void)times;
    return both(user, true, false);
}

static double scales_alone(void *user, int times) {
    (void)times;
    return both(user, false, true);
}

static double push_and_scales(void *user, int times) {
    (void)times;
    return both(user, true, true);
}

static void choose_scales(struct overlap *o) {
    o->scales = 4;
    (void)both(o, true, true);
    double each = both(o, false, true) / o->scales, push = both(o, true, false);
    double wanted = push / each;
    o->scales = wanted < 2 ? 2 : wanted > 1000 ? 1000 : (int)wanted;
}

static void bench_overlap(struct stage *stage, size_t bytes) {
    struct entry entries[] = {{"push", push_alone, 0, {{0}, 0}},
                              {"arithmetic", scales_alone, 0, {{0}, 0}},
                              {"both", push_and_scales, 0, {{0}, 0}}};
    struct overlap o = {.stage = stage, .mem = mem_on_host(stage->context, bytes, 1)};
    struct arithmetic a = {.bytes = bytes};
    int64_t count = (int64_t)(bytes / 4);
    assert_ok(sb_blob_create_shaped(stage->context, SB_DTYPE_F32, &count, 1, &o.blob, &err));
    fill_both(o.blob, &a);
    choose_scales(&o);
    time_in_turn(entries, 3, &o, 1);
    double push = median(&entries[0].series), work = median(&entries[1].series);
    double together = median(&entries[2].series);
    printf("\n## An asynchronous push beside arithmetic\n\n"
           "%.1f %% of the shorter one is hidden: a push of %zu MiB alone takes %.3f ms, %d calls "
           "of scale alone %.3f ms, both together %.3f ms (medians).\n",
           100 * (push + work - together) / (push < work ? push : work), bytes / MIB, push * 1e3,
           o.scales, work * 1e3, together * 1e3);
    test_end(o.mem);
    sb_blob_destroy(o.blob);
}

/* --- all ------------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    static const size_t full[] = {MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB};
    static const size_t small[] = {MIB / 16, MIB};
    struct stage stage;
    sb_context_options options = stage_options();
    quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    bool describe = argc == 2 && strcmp(argv[1], "--describe") == 0;
    if (argc > 2 || (argc == 2 && !quick && !describe)) {
        fprintf(stderr, "usage: bench [--quick | --describe]\n");
        return 2;
    }
    int missing = gpu_begin();
    if (missing || describe)
        return missing;
    repeats = quick ? 3 : REPEATS_MAX;
    options.max_pinned_bytes = (size_t)4 << 30;
    stage_open_options(&stage, &options);
    const size_t *sizes = quick ? small : full;
    int count = quick ? 2 : (int)(sizeof full / sizeof full[0]);
    bench_arithmetic(&stage, sizes, count);
    bench_transfers(&stage, sizes, count);
    bench_accesses(&stage);
    bench_allocation(&stage, (const size_t[]){4096, MIB, 64 * MIB}, quick ? 2 : 3);
    bench_small(&stage);
    bench_overlap(&stage, quick ? MIB : 256 * MIB);
    stage_close(&stage);
    return 0;
}
