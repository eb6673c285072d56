/* Tests how many driver calls each operation makes. */
#include "fixture.h"

#include <string.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(float) };

struct cost {
    int64_t calls, waits;
};

static struct cost spent(void) {
    return (struct cost){fake_calls(NULL),
                         fake_calls("cuStreamSynchronize") + fake_calls("cuEventSynchronize")};
}

struct scene {
    struct stage stage;
    sb_blob *blob;
    sb_stream stream;
};

#define DO(name, ...)                                                                              \
    static void name(struct scene *s) {                                                            \
        __VA_ARGS__;                                                                               \
    }

DO(nothing, )
DO(update, assert_ok(sb_blob_update(s->blob, &err)))
DO(scale, assert_ok(sb_blob_scale(s->blob, SB_DATA, 0.5, &err)))
DO(update_on, assert_ok(sb_blob_update_on(s->blob, s->stream, &err)))
DO(read_device, assert_ok(sb_blob_gpu(s->blob, SB_DATA, &(const void *){NULL}, &err)))
DO(write_device, assert_ok(sb_blob_mutable_gpu(s->blob, SB_DATA, &(void *){NULL}, &err)))
DO(read_host, assert_ok(sb_blob_cpu(s->blob, SB_DATA, &(const void *){NULL}, &err)))

static void fill_on_host(struct scene *s, sb_part part, double value) {
    fill_values(SB_DTYPE_F32, COUNT, value, 0, blob_pointer(s->blob, part, OVERWRITE_CPU));
}

DO(on_host, fill_on_host(s, SB_DATA, 1))

static void on_device(struct scene *s) {
    fill_on_host(s, SB_DATA, 1);
    fill_on_host(s, SB_DIFF, 0.25);
    assert_ok(sb_mem_async_gpu_push(data_of(s->blob), s->stream, &err));
    assert_ok(sb_mem_async_gpu_push(diff_of(s->blob), s->stream, &err));
    assert_ok(sb_context_synchronize(s->stage.context, &err));
    assert_ok(sb_blob_update(s->blob, &err)); /* opens cuBLAS and creates events */
    assert_ok(sb_context_synchronize(s->stage.context, &err));
    assert_ok(sb_context_forget_stream(s->stage.context, s->stream, &err));
}

DO(exposed, on_device(s); write_device(s);
   assert_ok(sb_blob_mutable_gpu(s->blob, SB_DIFF, &(void *){NULL}, &err)))
DO(updated, on_device(s); update(s))
DO(updated_on, on_device(s); update_on(s); update_on(s))
DO(synced, on_host(s); read_device(s))

static void asum(struct scene *s) {
    double sum;
    assert_ok(sb_blob_asum(s->blob, SB_DATA, &sum, &err));
    assert_float_equal(sum, COUNT * 0.75, 1e-6);
}

static const struct row {
    const char *what;
    void (*before)(struct scene *s);
    void (*operation)(struct scene *s);
    struct cost cost;
} rows[] = {
    {"update, no exposed pointer", on_device, update, {3, 0}},
    {"scale, an exposed pointer", exposed, scale, {7, 0}},
    {"update, exposed pointers", exposed, update, {7, 0}},
    /* update_on records an event, which reports whether the operation failed */
    {"update_on a stream, no exposed pointer", updated_on, update_on, {13, 0}},
    {"asum, no exposed pointer", on_device, asum, {18, 1}},
    {"mutable_gpu_data, first access with a copy", on_host, write_device, {12, 1}},
    {"gpu_data, first access with zeros", nothing, read_device, {12, 1}},
    {"mutable_gpu_data after update", updated, write_device, {4, 1}},
    {"cpu_data after update", updated, read_host, {8, 1}},
    {"gpu_data again", synced, read_device, {0, 0}},
    {"cpu_data again", synced, read_host, {0, 0}},
    {"mutable_gpu_data again", exposed, write_device, {0, 0}},
};

TEST(each_operation_makes_a_known_number_of_calls) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct scene s;
        CUcontext old;
        stage_open(&s.stage);
        s.stream = (sb_stream)stage_stream(&s.stage, CU_STREAM_NON_BLOCKING);
        s.blob = test_vector(s.stage.context, SB_DTYPE_F32, COUNT);
        assert_int_equal(cuCtxPushCurrent(s.stage.primary), CUDA_SUCCESS);
        row->before(&s);
        const struct cost before = spent();
        row->operation(&s);
        const struct cost after = spent();
        const int calls = (int)(after.calls - before.calls),
                  waits = (int)(after.waits - before.waits);
        if (calls != row->cost.calls || waits != row->cost.waits)
            fail_with("%s: %d calls, of these %d waits", row->what, calls, waits);
        assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
        stage_close(&s.stage);
    }
}

/* The first slab of a size class has 64 KiB or four buffers; each next slab is twice as large. */
TEST_ON(stage, slabs_are_filled_before_there_are_more) {
    enum { MOST = 1024 };
    static const struct {
        size_t bytes;
        int buffers, slabs;
    } rows[] = {{64, 1024, 1}, {4000, 1000, 6}, {4096, 16, 1}, {4096, 17, 2},
                {65536, 4, 1}, {65536, 12, 2},  {65536, 28, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_mem *mems[MOST];
        stage_reopen(f, true, 0);
        const int64_t before = fake_calls("cuMemHostAlloc");
        for (int round = 0; round < 3; round++) {
            for (int b = round ? 1 : 0; b < rows[i].buffers; b++)
                mems[b] = test_filled(f->context, rows[i].bytes, b & 255);
            assert_int_equal(sb_mem_storage(mems[0], SB_SIDE_CPU), SB_STORAGE_PINNED);
            assert_int_equal(fake_calls("cuMemHostAlloc") - before, rows[i].slabs);
            for (int b = 0; b < rows[i].buffers; b++) {
                assert_true(bytes_are(mem_pointer(mems[b], CPU_DATA), rows[i].bytes, b & 255));
            }
            for (int b = 1; b < rows[i].buffers; b++)
                test_end(mems[b]);
        }
        test_end(mems[0]);
        sb_context_trim(f->context);
        assert_int_equal(fake_live().pinned, 0);
    }
}

/* The library rounds the size of a large buffer up by at most an eighth. */
TEST_ON(stage, large_blobs_of_near_sizes_share_page_locked_memory) {
    enum { KIB = 1024, SMALLEST = 100, LARGEST = 127, AT_MOST = 4 };
    const int64_t before = fake_calls("cuMemHostAlloc");
    for (size_t kib = SMALLEST; kib <= LARGEST; kib++) {
        sb_mem *mem = test_filled(f->context, kib * KIB, 0);
        assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
        assert_true(fake_live().pinned_bytes * 8 <= kib * KIB * 9);
        test_end(mem);
    }
    assert_true(fake_calls("cuMemHostAlloc") - before <= AT_MOST);
}
