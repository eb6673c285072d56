/* Tests the order of the library's work and the test's work on streams. */
#include "gpu.h"

#include <pthread.h>
#include <string.h>

#define BYTES ((size_t)1 << 18)
#define COUNT ((int64_t)(BYTES / sizeof(float)))

/* A program that is compiled for per-thread streams launches its kernels on this stream. */
#define PER_THREAD ((sb_stream)0x2)

TEST_ON(stage, arithmetic_comes_after_the_per_thread_stream) {
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        double sum;
        float written;
        memset(&written, 0x3F, sizeof written);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
        host_fill(data_of(blob), 0);
        host_fill(diff_of(blob), 0);
        assert_ok(sb_mem_async_gpu_push(data_of(blob), f->stream, &err));
        assert_ok(sb_mem_async_gpu_push(diff_of(blob), f->stream, &err));
        assert_ok(sb_blob_update(blob, &err)); /* prepares arithmetic */
        void *out = blob_pointer(blob, part, MUTABLE_GPU);
        queue_pause(PER_THREAD);
        queue_fill(PER_THREAD, out, 0x3F, BYTES);
        assert_ok(sb_blob_update(blob, &err));
        const float *x = blob_pointer(blob, SB_DATA, CPU_DATA);
        assert_true(x[COUNT - 1] == (part == SB_DATA ? written : -written));
        assert_ok(sb_blob_mutable_gpu(blob, part, &out, &err));
        queue_pause(PER_THREAD);
        queue_fill(PER_THREAD, out, 0, BYTES);
        assert_ok(sb_blob_asum(blob, part, &sum, &err));
        assert_true(sum == 0);
    }
}

TEST_ON(stage, the_legacy_stream_may_be_named) {
    for (int as_handle = 0; as_handle < 2; as_handle++) {
        sb_stream legacy = as_handle ? (sb_stream)0x1 : NULL;
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        assert_ok(sb_mem_async_gpu_push(mem, legacy, &err));
        void *out = mem_pointer_on(mem, MUTABLE_GPU_ON, legacy);
        queue_pause(NULL);
        queue_fill(NULL, out, 8, BYTES);
        assert_ok(sb_mem_async_cpu_pull(mem, legacy, &err));
        assert_true(host_holds(mem, 8));
        assert_ok(sb_context_forget_stream(f->context, legacy, &err));
    }
}

static void begin_capture(sb_stream stream) {
    primary_ok(cuStreamBeginCapture_v2((sb__cu_stream)stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void end_capture(sb_stream stream) {
    CUgraph graph = NULL;
    size_t nodes = 99;
    enter();
    cu_ok(cuStreamEndCapture((sb__cu_stream)stream, &graph));
    cu_ok(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    cu_ok(cuGraphDestroy(graph));
    leave();
}

/* An event in the capture would be a node of the graph. */
TEST_ON(stage, a_captured_stream_is_refused) {
    for (unsigned int kind = CU_STREAM_DEFAULT; kind <= CU_STREAM_NON_BLOCKING; kind++) {
        sb_stream stream = stream_make(kind);
        void *out;
        sb_mem *ready = mem_on_device(f->context, BYTES, 6),
               *known = test_filled(f->context, BYTES, 7);
        const void *in = mem_pointer_on(known, GPU_DATA_ON, stream);
        assert_ok(sb_mem_synchronize(known, &err));
        stream_wait(stream);
        begin_capture(stream);
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_mutable_gpu(known, &out, &err));
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(known, stream, &in, &err));
        assert_non_null(strstr(err.message, "the stream is being captured"));
        assert_int_equal(err.device_code, 0);
        assert_status(SB_ERR_UNSUPPORTED, sb_context_forget_stream(f->context, stream, &err));
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(ready, stream, &in, &err));
        assert_non_null(strstr(err.message, "the stream is being captured"));
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, stream, &in, &err));
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_async_gpu_push(mem, stream, &err));
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_prefetch_gpu(mem, stream, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
        (void)mem_pointer(mem, MUTABLE_GPU);
        assert_true(host_holds(mem, 7));
        assert_true(host_holds(ready, 6));
        host_fill(mem, 8);
        if (kind == CU_STREAM_DEFAULT) /* a blocking stream is ordered with the legacy stream */
            assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, NULL, &in, &err));
        end_capture(stream);
        assert_ok(sb_mem_gpu_on(mem, stream, &in, &err));
        assert_ok(sb_mem_mutable_gpu(known, &out, &err));
    }
}

static void *close_both(void *user) {
    sb_blob *blob = user;
    sb_context *context = sb_blob_context(blob);
    test_end(blob);
    test_end(context);
    return NULL;
}

TEST_ON(stage, closing_leaves_a_capture_alone) {
    for (unsigned int kind = CU_STREAM_DEFAULT; kind <= CU_STREAM_NON_BLOCKING; kind++) {
        sb_stream stream = stream_make(kind);
        pthread_t thread;
        sb_blob *blob = test_vector(test_context_on("cuda:0"), SB_DTYPE_F32, COUNT);
        host_fill(data_of(blob), 0);
        (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        begin_capture(stream);
        assert_int_equal(pthread_create(&thread, NULL, close_both, blob), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        end_capture(stream);
    }
}

/* During a capture, the driver does not report whether the stream's earlier work is done. */
TEST_ON(stage, a_release_outlasts_a_capture) {
    for (unsigned int kind = CU_STREAM_DEFAULT; kind <= CU_STREAM_NON_BLOCKING; kind++) {
        sb_stream stream = stream_make(kind);
        void *seen = device_make(BYTES);
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        const void *in = mem_pointer_on(mem, GPU_DATA_ON, stream);
        queue_pause(stream);
        queue_copy(stream, seen, in, BYTES);
        begin_capture(stream);
        test_end(mem);
        assert_int_equal(rig_stats(&f->rig).device_bytes, BYTES);
        end_capture(stream);
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_int_equal(rig_stats(&f->rig).device_bytes, 0);
        stream_wait(stream);
        assert_true(device_holds(seen, BYTES, 7));
    }
}

TEST_ON(stage, a_stream_of_a_green_context_is_refused) {
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green;
    sb__cu_stream stream;
    const void *in;
    if (!driver.cuGreenCtxStreamCreate) {
        print_message("skipped: the driver has no green contexts\n");
        test_skip();
    }
    cu_ok(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    cu_ok(cuDevResourceGenerateDesc(&description, &resource, 1));
    cu_ok(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    cu_ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    cu_ok(cuStreamDestroy_v2(stream));
    cu_ok(cuGreenCtxDestroy(green));
}

TEST_ON(stage, a_stream_of_another_context_is_refused) {
    const void *in;
    sb__cu_stream stream = NULL;
    sb__cu_context made, popped;
    sb__cu_device device;
    cu_ok(cuDeviceGet(&device, device_count() - 1));
    cu_ok(cuCtxCreate_v2(&made, 0, device));
    cu_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_int_equal(err.device_code, 0);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, PER_THREAD, &in, &err));
    assert_int_equal(err.device_code, 0);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    cu_ok(cuStreamDestroy_v2(stream));
    cu_ok(cuCtxDestroy_v2(made));
}
