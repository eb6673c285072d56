/* What an operation costs in calls of the driver, where the device's context is current on the
   thread. `fake_calls` prints the table. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(float) };

struct cost {
    int64_t calls; /* of the driver, launches of cuBLAS and of kernels not counted */
    int64_t waits; /* of the host, counted among the calls */
    int64_t launches;
};

static int64_t count_of(const char *const *functions) {
    int64_t count = 0;
    for (; *functions; functions++)
        count += fake_calls(*functions);
    return count;
}

static struct cost spent(void) {
    static const char *const waits[] = {"cuStreamSynchronize", "cuEventSynchronize", NULL};
    static const char *const launches[] = {"cublasSaxpy_v2_64", "cublasDaxpy_v2_64",
                                           "cublasSscal_v2_64", "cublasDscal_v2_64",
                                           "cuLaunchKernel",    NULL};
    static const char *const others[] = {"cublasCreate_v2", "cublasSetStream_v2", NULL};
    struct cost cost = {.waits = count_of(waits), .launches = count_of(launches)};
    cost.calls = fake_calls(NULL) - cost.launches - count_of(others);
    return cost;
}

/* --- operations ------------------------------------------------------------------------------ */

struct scene {
    struct stage stage;
    sb_blob *blob;
    CUstream stream;
};

static void host_data(struct scene *scene) {
    float *out;
    assert_ok(sb_blob_overwrite_cpu_f32(scene->blob, SB_DATA, &out, &err));
    for (int i = 0; i < COUNT; i++)
        out[i] = 1;
}

/* Data and diff are on the device, and nobody has a pointer to them. */
static void device_current(struct scene *scene) {
    float *out;
    host_data(scene);
    assert_ok(sb_blob_overwrite_cpu_f32(scene->blob, SB_DIFF, &out, &err));
    for (int i = 0; i < COUNT; i++)
        out[i] = 0.25F;
    assert_ok(sb_mem_async_gpu_push(data_of(scene->blob), (sb_stream)scene->stream, &err));
    assert_ok(sb_mem_async_gpu_push(diff_of(scene->blob), (sb_stream)scene->stream, &err));
    assert_ok(sb_context_synchronize(scene->stage.context, &err));
    assert_ok(sb_blob_update(scene->blob, &err)); /* opens cuBLAS, takes events */
    assert_ok(sb_context_synchronize(scene->stage.context, &err));
    assert_ok(sb_context_forget_stream(scene->stage.context, (sb_stream)scene->stream, &err));
}

/* The same, and the application has pointers to both. */
static void let_out(struct scene *scene) {
    void *out;
    device_current(scene);
    assert_ok(sb_blob_mutable_gpu(scene->blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_mutable_gpu(scene->blob, SB_DIFF, &out, &err));
}

static void update(struct scene *scene) {
    assert_ok(sb_blob_update(scene->blob, &err));
}

static void scale(struct scene *scene) {
    assert_ok(sb_blob_scale(scene->blob, SB_DATA, 0.5, &err));
}

static void update_on(struct scene *scene) {
    assert_ok(sb_blob_update_on(scene->blob, (sb_stream)scene->stream, &err));
}

static void asum(struct scene *scene) {
    double sum;
    assert_ok(sb_blob_asum(scene->blob, SB_DATA, &sum, &err));
    assert_float_equal(sum, COUNT * 0.75, 1e-6);
}

static void read_device(struct scene *scene) {
    const void *in;
    assert_ok(sb_blob_gpu(scene->blob, SB_DATA, &in, &err));
}

static void write_device(struct scene *scene) {
    void *out;
    assert_ok(sb_blob_mutable_gpu(scene->blob, SB_DATA, &out, &err));
}

static void read_host(struct scene *scene) {
    const float *in;
    assert_ok(sb_blob_cpu_f32(scene->blob, SB_DATA, &in, &err));
}

static void updated(struct scene *scene) {
    device_current(scene);
    update(scene);
}

static void updated_on(struct scene *scene) {
    device_current(scene);
    assert_ok(sb_blob_update_on(scene->blob, (sb_stream)scene->stream, &err));
    assert_ok(sb_blob_update_on(scene->blob, (sb_stream)scene->stream, &err));
}

static void nothing(struct scene *scene) {
    (void)scene;
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct row {
    const char *what;
    void (*before)(struct scene *scene);
    void (*operation)(struct scene *scene);
    struct cost most;
} rows[] = {
    {"update, no exposed pointer", device_current, update, {1, 0, 1}},
    {"scale, no exposed pointer", device_current, scale, {1, 0, 1}},
    {"scale, an exposed pointer", let_out, scale, {5, 0, 1}},
    {"update, exposed pointers", let_out, update, {5, 0, 1}},
    /* with an event, which will say whether it has failed */
    {"update_on a stream, no exposed pointer", updated_on, update_on, {11, 0, 1}},
    {"asum, no exposed pointer", device_current, asum, {17, 1, 1}},
    {"gpu_data, first touch with a copy", host_data, read_device, {12, 1, 0}},
    {"mutable_gpu_data, first touch with a copy", host_data, write_device, {12, 1, 0}},
    {"gpu_data, first touch with zeros", nothing, read_device, {12, 1, 0}},
    {"gpu_data after update", updated, read_device, {4, 1, 0}},
    {"mutable_gpu_data after update", updated, write_device, {4, 1, 0}},
    {"cpu_data after update", updated, read_host, {8, 1, 0}},
};

static void open_scene(struct scene *scene) {
    stage_open(&scene->stage);
    scene->stream = stage_stream(&scene->stage, CU_STREAM_NON_BLOCKING);
    scene->blob = test_vector(scene->stage.context, SB_DTYPE_F32, COUNT);
    assert_int_equal(cuCtxPushCurrent(scene->stage.primary), CUDA_SUCCESS);
}

static void close_scene(struct scene *scene) {
    CUcontext old;
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    stage_close(&scene->stage);
}

TEST(each_operation_costs_so_many_calls) {
    bool fits = true;
    printf("| operation | calls of the driver | of these waits | launches |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct scene scene;
        open_scene(&scene);
        row->before(&scene);
        const struct cost before = spent();
        row->operation(&scene);
        const struct cost after = spent();
        const struct cost cost = {after.calls - before.calls, after.waits - before.waits,
                                  after.launches - before.launches};
        printf("| %s | %lld | %lld | %lld |\n", row->what, (long long)cost.calls,
               (long long)cost.waits, (long long)cost.launches);
        if (cost.calls > row->most.calls || cost.waits > row->most.waits ||
            cost.launches > row->most.launches) {
            printf("  %s: at most %lld, %lld, %lld\n", row->what, (long long)row->most.calls,
                   (long long)row->most.waits, (long long)row->most.launches);
            fits = false;
        }
        close_scene(&scene);
    }
    assert_true(fits);
}

TEST_ON(stage, small_blobs_share_page_locked_memory) {
    enum { BLOBS = 1000, AT_MOST = 8 };
    sb_mem *mems[BLOBS];
    const int64_t before = fake_calls("cuMemHostAlloc");
    for (int i = 0; i < BLOBS; i++) {
        mems[i] = host_mem(f->context, BYTES, i & 255);
        assert_int_equal(sb_mem_storage(mems[i], SB_SIDE_CPU), SB_STORAGE_PINNED);
    }
    const int64_t allocated = fake_calls("cuMemHostAlloc") - before;
    printf("%d blobs of %d bytes: page-locked memory allocated %lld times\n", BLOBS, BYTES,
           (long long)allocated);
    assert_true(allocated <= AT_MOST);
    for (int i = 0; i < BLOBS; i++) {
        const void *in;
        assert_ok(sb_mem_cpu(mems[i], &in, &err));
        assert_true(bytes_are(in, BYTES, i & 255));
        test_end(mems[i]);
    }
    sb_context_trim(f->context);
    assert_int_equal(fake_live().pinned, 0);
}

/* Slabs of a class hold 64 KiB or four buffers, and each twice as many as that before it. What is
   given back is used again. */
TEST_ON(stage, slabs_are_filled_before_there_are_more) {
    enum { MOST = 1024 };
    static const struct {
        size_t bytes;
        int buffers, slabs;
    } rows[] = {{64, 1024, 1}, {4096, 16, 1},  {4096, 17, 2},
                {65536, 4, 1}, {65536, 12, 2}, {65536, 28, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_mem *mems[MOST];
        stage_reopen(f, true, 0);
        const int64_t before = fake_calls("cuMemHostAlloc");
        for (int round = 0; round < 3; round++) {
            for (int b = round ? 1 : 0; b < rows[i].buffers; b++)
                mems[b] = host_mem(f->context, rows[i].bytes, 0);
            assert_int_equal(fake_calls("cuMemHostAlloc") - before, rows[i].slabs);
            for (int b = 1; b < rows[i].buffers; b++)
                test_end(mems[b]);
        }
    }
}

/* Above the slabs' sizes. What is page-locked is at most an eighth more than what was asked for. */
TEST_ON(stage, large_blobs_of_near_sizes_share_page_locked_memory) {
    enum { KIB = 1024, SMALLEST = 100, LARGEST = 127, AT_MOST = 4 };
    const int64_t before = fake_calls("cuMemHostAlloc");
    for (size_t kib = SMALLEST; kib <= LARGEST; kib++) {
        sb_mem *mem = host_mem(f->context, kib * KIB, 0);
        assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
        assert_true(fake_live().pinned_bytes * 8 <= kib * KIB * 9);
        test_end(mem);
    }
    const int64_t allocated = fake_calls("cuMemHostAlloc") - before;
    printf("%d blobs of %d KiB to %d KiB: page-locked memory allocated %lld times\n",
           LARGEST - SMALLEST + 1, SMALLEST, LARGEST, (long long)allocated);
    assert_true(allocated <= AT_MOST);
}
