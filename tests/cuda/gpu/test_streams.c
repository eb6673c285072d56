/* Tests the order of the library's work and the test's work on streams of the test. On a device a
   pause keeps a stream busy; on a fake driver the schedule determines when work runs. */
#include "gpu.h"

#include <pthread.h>
#include <string.h>

#define BYTES ((size_t)3 << 20)
#define COUNT ((int64_t)(BYTES / sizeof(float)))

/* A stage with a stream of one kind, and device memory that receives the bytes that queued work
   reads. */
struct scene {
    struct stage stage;
    sb_context *context;
    sb_stream stream, other; /* `other` is non-blocking */
    bool is_blocking;        /* whether `stream` is blocking */
    void *seen;
};

static void scene_open_on(struct scene *f, unsigned int flags) {
    stage_open(&f->stage);
    f->context = f->stage.context;
    f->other = f->stage.stream;
    f->stream = stream_make(flags);
    f->is_blocking = flags == CU_STREAM_DEFAULT;
    f->seen = device_make(BYTES);
    queue_fill(NULL, f->seen, 0xEE, BYTES);
    stream_wait(NULL);
}

static void scene_open(struct scene *f) {
    scene_open_on(f, CU_STREAM_DEFAULT);
}

static void scene_close(struct scene *f) {
    stage_close(&f->stage);
}

/* Defines a test that runs with a stream of each kind: `EACH(what_it_claims) { ... }`. */
#define EACH(claim)                                                                                \
    static void claim(struct scene *f);                                                            \
    TEST(test_##claim) {                                                                           \
        for (unsigned int flags = CU_STREAM_DEFAULT; flags <= CU_STREAM_NON_BLOCKING; flags++) {   \
            struct scene scene;                                                                    \
            scene_open_on(&scene, flags);                                                          \
            claim(&scene);                                                                         \
            scene_close(&scene);                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void claim(struct scene *f)

/* Queues a pause on the scene's stream, then a copy of the bytes at `ptr` into `seen`. */
static void look_later(struct scene *f, const void *ptr) {
    queue_pause(f->stream);
    queue_copy(f->stream, f->seen, ptr, BYTES);
}

static void assert_seen(struct scene *f, int value) {
    stream_wait(f->stream);
    assert_true(device_holds(f->seen, BYTES, value));
}

/* --- transfers on streams -------------------------------------------------------------------- */

/* Tests push and pull, then prefetches. */
EACH(queued_transfers_are_ordered_with_streams) {
    for (int prefetches = 0; prefetches < 2; prefetches++) {
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        struct tally before = rig_tally(&f->stage.rig);
        queue_pause(f->other);
        assert_ok((prefetches ? sb_mem_prefetch_gpu : sb_mem_async_gpu_push)(mem, f->other, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
        queue_copy(f->stream, f->seen, mem_pointer_on(mem, GPU_DATA_ON, f->stream), BYTES);
        assert_seen(f, 7);
        void *out = mem_pointer_on(mem, MUTABLE_GPU_ON, f->stream);
        queue_pause(f->stream);
        queue_fill(f->stream, out, 9, BYTES);
        assert_ok((prefetches ? sb_mem_prefetch_cpu : sb_mem_async_cpu_pull)(mem, f->other, &err));
        assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
        assert_true(host_holds(mem, 9));
        assert_transfers(&f->stage.rig, &before, 1, 1);
    }
}

/* --- last users ------------------------------------------------------------------------------ */

static void write_on_host(sb_context *context, sb_mem *mem) {
    memset(mem_pointer(mem, MUTABLE_CPU), 8, BYTES);
    assert_true(device_holds(mem_pointer(mem, GPU_DATA), BYTES, 8));
}

static void clear(sb_context *context, sb_mem *mem) {
    assert_ok(sb_mem_clear(mem, &err));
    assert_true(host_holds(mem, 0));
}

/* Creates memories that are likely to get the same addresses as freed memory, on each side. */
static void reuse_memory(sb_context *context) {
    sb_mem *at_device = mem_on_device(context, BYTES, 9);
    (void)test_filled(context, BYTES, 9);
    assert_true(host_holds(at_device, 9));
}

static void evict(sb_context *context, sb_mem *mem) {
    assert_ok(sb_mem_evict_gpu(mem, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    reuse_memory(context);
}

static void release(sb_context *context, sb_mem *mem) {
    test_end(mem);
    reuse_memory(context);
}

/* Queued work must read the bytes that an access or a push has provided, not later bytes. */
EACH(work_waits_for_earlier_readers) {
    static void (*const works[])(sb_context * context, sb_mem * mem) = {write_on_host, clear, evict,
                                                                        release};
    for (size_t i = 0; i < 2 * (sizeof works / sizeof *works); i++) {
        const void *in;
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        if (i % 2) {
            queue_pause(f->stream);
            assert_ok(sb_mem_async_gpu_push(mem, f->stream, &err));
        }
        assert_ok(sb_mem_gpu_on(mem, f->stream, &in, &err));
        look_later(f, in);
        works[i / 2](f->context, mem);
        assert_seen(f, 7);
    }
}

/* --- fresh memory ---------------------------------------------------------------------------- */

/* Each round leaves rubbish in memory that the next round allocates. */
EACH(fresh_memory_is_ready_on_another_stream) {
    const void *in;
    void *out;
    for (int i = 0; i < 8; i++) {
        sb_mem *zeros = test_mem(f->context, BYTES), *filled = test_mem(f->context, BYTES);
        assert_ok(sb_mem_gpu_on(zeros, f->stream, &in, &err));
        queue_copy(f->stream, f->seen, in, BYTES);
        assert_ok(sb_mem_overwrite_gpu_on(filled, f->stream, &out, &err));
        queue_fill(f->stream, out, 0xA0 + i, BYTES);
        assert_true(host_holds(filled, 0xA0 + i));
        assert_seen(f, 0);
        test_end(zeros);
        test_end(filled);
    }
}

EACH(a_plain_pointer_is_ready_on_any_stream) {
    sb_mem *mem = test_mem(f->context, BYTES), *zeros = test_mem(f->context, BYTES);
    sb_mem *uploaded = test_filled(f->context, BYTES, 4);
    void *out = mem_pointer(mem, OVERWRITE_GPU);
    queue_fill(f->stream, out, 3, BYTES);
    look_later(f, out);
    assert_seen(f, 3);
    const void *in = mem_pointer(zeros, GPU_DATA);
    look_later(f, in);
    assert_seen(f, 0);
    assert_ok(sb_mem_gpu(uploaded, &in, &err));
    look_later(f, in);
    assert_seen(f, 4);
}

/* --- default streams ------------------------------------------------------------------------- */

/* The handle of the per-thread default stream. A program that is compiled for per-thread streams
   uses this stream for each launch that names no stream. */
#define PER_THREAD ((sb_stream)0x2)

TEST_ON(scene, plain_writes_may_be_on_a_default_stream) {
    for (int i = 0; i < 2; i++) {
        sb_stream stream = i ? PER_THREAD : NULL;
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        void *out = mem_pointer(mem, MUTABLE_GPU);
        queue_pause(stream);
        queue_fill(stream, out, 3, BYTES);
        assert_true(host_holds(mem, 3));
        host_fill(mem, 4);
    }
}

static void upload(sb_context *context, sb_mem *mem) {
    host_fill(mem, 8);
    (void)mem_pointer(mem, GPU_DATA);
}

/* The library must not upload to, clear or reuse memory that the per-thread stream still reads. */
TEST_ON(scene, plain_reads_may_be_on_the_per_thread_stream) {
    static void (*const works[])(sb_context * context, sb_mem * mem) = {upload, clear, release};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        const void *in = mem_pointer(mem, GPU_DATA);
        queue_pause(PER_THREAD);
        queue_copy(PER_THREAD, f->seen, in, BYTES);
        works[i](f->context, mem);
        stream_wait(PER_THREAD);
        assert_true(device_holds(f->seen, BYTES, 7));
    }
}

/* The caller has a pointer to data or diff, and writes through it on the per-thread stream. */
TEST_ON(scene, arithmetic_comes_after_the_per_thread_stream) {
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

/* Passes the legacy stream as NULL, and as its handle. */
TEST_ON(scene, the_legacy_stream_may_be_named) {
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

/* A caller with a plain pointer uses the legacy default stream, and a non-blocking stream does not
   wait for that stream. The library adds the wait if it is passed the non-blocking stream. */
EACH(a_named_stream_comes_after_the_legacy_one) {
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    void *out = mem_pointer(mem, MUTABLE_GPU);
    queue_pause(NULL);
    queue_fill(NULL, out, 3, BYTES);
    queue_copy(f->stream, f->seen, mem_pointer_on(mem, GPU_DATA_ON, f->stream), BYTES);
    assert_seen(f, 3);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    queue_pause(NULL);
    queue_fill(NULL, out, 4, BYTES);
    assert_ok(sb_mem_async_cpu_pull(mem, f->stream, &err));
    assert_true(host_holds(mem, 4));
}

/* --- captures -------------------------------------------------------------------------------- */

static void begin_capture(struct scene *f) {
    primary_ok(cuStreamBeginCapture_v2((sb__cu_stream)f->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

/* Ends the capture, which must be valid and have no work of the library. */
static void end_capture(struct scene *f) {
    CUgraph graph = NULL;
    size_t nodes = 99;
    enter();
    cu_ok(cuStreamEndCapture((sb__cu_stream)f->stream, &graph));
    cu_ok(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    cu_ok(cuGraphDestroy(graph));
    leave();
}

EACH(a_captured_stream_is_refused) {
    const void *in;
    sb_mem *ready = mem_on_device(f->context, BYTES, 6);
    begin_capture(f);
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(ready, f->stream, &in, &err));
    assert_non_null(strstr(err.message, "the stream is being captured"));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, f->stream, &in, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_async_gpu_push(mem, f->stream, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_prefetch_gpu(mem, f->stream, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    (void)mem_pointer(mem, MUTABLE_GPU); /* does not join the capture */
    assert_true(host_holds(mem, 7));
    assert_true(host_holds(ready, 6));
    host_fill(mem, 8);
    if (f->is_blocking) /* a blocking stream is ordered with the legacy stream */
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, NULL, &in, &err));
    end_capture(f);
    assert_ok(sb_mem_gpu_on(mem, f->stream, &in, &err));
}

/* The stream used the memory before its capture. An event in the capture would be a graph node. */
EACH(a_known_stream_may_be_captured) {
    void *out;
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    const void *in = mem_pointer_on(mem, GPU_DATA_ON, f->stream);
    assert_ok(sb_mem_synchronize(mem, &err));
    stream_wait(f->stream);
    begin_capture(f);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_mutable_gpu(mem, &out, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, f->stream, &in, &err));
    assert_non_null(strstr(err.message, "the stream is being captured"));
    assert_int_equal(err.device_code, 0);
    assert_status(SB_ERR_UNSUPPORTED, sb_context_forget_stream(f->context, f->stream, &err));
    end_capture(f);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
}

/* Closes the blob, then its context. */
static void *close_both(void *user) {
    sb_blob *blob = user;
    sb_context *context = sb_blob_context(blob);
    test_end(blob);
    test_end(context);
    return NULL;
}

/* The context has done arithmetic, and is closed on another thread. */
EACH(closing_leaves_a_capture_alone) {
    pthread_t thread;
    sb_blob *blob = test_vector(test_context_on("cuda:0"), SB_DTYPE_F32, COUNT);
    host_fill(data_of(blob), 0);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    begin_capture(f);
    assert_int_equal(pthread_create(&thread, NULL, close_both, blob), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_capture(f);
}

/* While a stream is captured, the driver does not report whether its work is done, so the memory is
   not freed. */
EACH(a_release_outlasts_a_capture) {
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    look_later(f, mem_pointer_on(mem, GPU_DATA_ON, f->stream));
    begin_capture(f);
    test_end(mem);
    assert_int_equal(rig_stats(&f->stage.rig).device_bytes, BYTES);
    end_capture(f);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_int_equal(rig_stats(&f->stage.rig).device_bytes, 0);
    assert_seen(f, 7);
}

/* --- streams of other contexts --------------------------------------------------------------- */

TEST_ON(scene, a_stream_of_a_green_context_is_refused) {
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

TEST_ON(scene, a_stream_of_another_context_is_refused) {
    const void *in;
    sb__cu_stream stream = NULL;
    sb__cu_context made, popped;
    sb__cu_device device;
    cu_ok(cuDeviceGet(&device, device_count() - 1));
    cu_ok(cuCtxCreate_v2(&made, 0, device)); /* the application's context */
    cu_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    sb_mem *mem = test_filled(f->context, BYTES, 7);
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_int_equal(err.device_code, 0); /* no call of the driver failed */
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, PER_THREAD, &in, &err));
    assert_int_equal(err.device_code, 0);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    cu_ok(cuStreamDestroy_v2(stream));
    cu_ok(cuCtxDestroy_v2(made));
}
