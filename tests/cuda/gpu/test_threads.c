/* Threads on one device. */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include <string.h>

enum { THREADS = 16 };
#define BYTES ((size_t)2 << 20)

struct reader {
    const sb_mem *mem;
    int32_t side;
    quiet_flag *start;
    const void *ptr;
    sb_status status;
};

static void *read_once(void *user) {
    struct reader *r = user;
    quiet_await(r->start);
    r->status = r->side == SB_SIDE_GPU ? sb_mem_gpu(r->mem, &r->ptr, NULL)
                                       : sb_mem_cpu(r->mem, &r->ptr, NULL);
    return NULL;
}

static void read_at_once(const sb_mem *mem, int32_t side, struct reader readers[THREADS]) {
    pthread_t threads[THREADS];
    quiet_flag start = 0;
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.mem = mem, .side = side, .start = &start};
        assert_int_equal(pthread_create(&threads[i], NULL, read_once, &readers[i]), 0);
    }
    quiet_raise(&start);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(readers[i].status, SB_OK);
        assert_ptr_equal(readers[i].ptr, readers[0].ptr);
    }
}

TEST(readers_of_one_memory_share_one_transfer) {
    struct stage stage;
    struct reader readers[THREADS];
    stage_open(&stage, NULL);
    for (int round = 0; round < 5; round++) {
        sb_mem *mem = mem_on_host(stage.context, BYTES, round + 1);
        struct copies before = copies_so_far(stage.context);
        read_at_once(mem, SB_SIDE_GPU, readers);
        assert_transfers(stage.context, &before, 1, 0, BYTES);
        assert_true(device_holds(&stage, readers[0].ptr, BYTES, round + 1));
        sb_mem_release(mem);
        mem = mem_on_device(&stage, stage.context, BYTES, round + 0x80);
        before = copies_so_far(stage.context);
        read_at_once(mem, SB_SIDE_CPU, readers);
        assert_transfers(stage.context, &before, 0, 1, BYTES);
        assert_true(bytes_are(readers[0].ptr, BYTES, round + 0x80));
        sb_mem_release(mem);
    }
    stage_close(&stage);
}

/* --- each with blobs of its own -------------------------------------------------------------- */

struct worker {
    sb_context *context;
    sb__cu_stream stream;
    int number;
    double sum;
    sb_status status;
};

enum { COUNT = 10007, ROUNDS = 20 };

static sb_status work_once(struct worker *w, sb_blob *blob) {
    sb_mem *mem;
    float *x;
    const void *in;
    sb_status st = sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, NULL);
    for (int i = 0; st == SB_OK && i < COUNT; i++)
        x[i] = (float)w->number;
    if (st == SB_OK)
        st = sb_blob_mutable_mem(blob, SB_DATA, &mem, NULL);
    if (st == SB_OK)
        st = sb_mem_async_gpu_push(mem, (sb_stream)w->stream, NULL);
    if (st == SB_OK)
        st = sb_blob_scale(blob, SB_DATA, 2, NULL);
    if (st == SB_OK)
        st = sb_blob_asum(blob, SB_DATA, &w->sum, NULL);
    if (st == SB_OK)
        st = sb_blob_cpu(blob, SB_DATA, &in, NULL);
    if (st == SB_OK && ((const float *)in)[COUNT - 1] != 2 * (float)w->number)
        st = SB_ERR_INTERNAL;
    return st == SB_OK && w->sum != 2.0 * w->number * (double)COUNT ? SB_ERR_INTERNAL : st;
}

static void *work(void *user) {
    struct worker *w = user;
    const int64_t shape[] = {COUNT};
    for (int i = 0; i < ROUNDS && w->status == SB_OK; i++) {
        sb_blob *blob = NULL;
        w->status = sb_blob_create_shaped(w->context, SB_DTYPE_F32, shape, 1, &blob, NULL);
        if (w->status == SB_OK)
            w->status = work_once(w, blob);
        sb_blob_destroy(blob);
    }
    return NULL;
}

TEST(threads_with_blobs_and_streams_of_their_own) {
    struct stage stage;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    stage_open(&stage, NULL);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.context = stage.context, .number = i + 1};
        workers[i].stream = stream_make(&stage, STREAM_NON_BLOCKING);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].status, SB_OK);
        assert_ok(sb_context_forget_stream(stage.context, (sb_stream)workers[i].stream, &err));
        stream_end(&stage, workers[i].stream);
    }
    stage_close(&stage);
}

int main(void) {
    int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
