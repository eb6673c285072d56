/* Work of the library among work of the test, on streams of the test. A pause
   keeps a stream busy on a device; on a stand-in the schedule does. */
#include "gpu.h"

#include <pthread.h>
#include <string.h>

#define BYTES ((size_t)3 << 20)

static const unsigned int stream_flags[] = {STREAM_BLOCKING, STREAM_NON_BLOCKING};

/* A stage with a stream of either kind, and memory of the test's own that keeps what queued work
   has seen. */
struct scene {
    struct stage stage;
    sb_context *context;
    sb__cu_stream stream;
    void *seen;
};

static void scene_open(struct scene *scene, unsigned int flags) {
    stage_open(&scene->stage, NULL);
    scene->context = scene->stage.context;
    scene->stream = stream_make(&scene->stage, flags);
    scene->seen = device_make(&scene->stage, BYTES);
    queue_fill(&scene->stage, NULL, scene->seen, 0xEE, BYTES);
    stream_wait(&scene->stage, NULL);
}

static void scene_close(struct scene *scene) {
    assert_ok(sb_context_forget_stream(scene->context, (sb_stream)scene->stream, &err));
    stream_end(&scene->stage, scene->stream);
    device_end(&scene->stage, scene->seen);
    stage_close(&scene->stage);
}

static void for_each_kind_of_stream(void (*claim)(struct scene *scene)) {
    for (size_t i = 0; i < sizeof stream_flags / sizeof stream_flags[0]; i++) {
        struct scene scene;
        scene_open(&scene, stream_flags[i]);
        claim(&scene);
        scene_close(&scene);
    }
}

/* What reads on the scene's stream from now on is kept in `seen`, but not soon. */
static void look_later(struct scene *scene, const void *ptr) {
    queue_pause(&scene->stage, scene->stream);
    queue_copy(&scene->stage, scene->stream, scene->seen, ptr, BYTES);
}

static void assert_seen(struct scene *scene, int value) {
    stream_wait(&scene->stage, scene->stream);
    assert_true(device_holds(&scene->stage, scene->seen, BYTES, value));
}

/* --- transfers on streams -------------------------------------------------------------------- */

static void push_comes_before_use(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    struct copies before = copies_so_far(scene->context);
    queue_pause(&scene->stage, scene->stage.stream);
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)scene->stage.stream, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    queue_copy(&scene->stage, scene->stream, scene->seen, in, BYTES);
    assert_seen(scene, 7);
    assert_transfers(scene->context, &before, 1, 0, BYTES);
    sb_mem_release(mem);
}

static void pull_comes_after_the_writer(struct scene *scene) {
    void *out;
    sb_mem *mem = mem_make(scene->context, BYTES);
    assert_ok(sb_mem_overwrite_gpu_on(mem, (sb_stream)scene->stream, &out, &err));
    struct copies before = copies_so_far(scene->context);
    queue_pause(&scene->stage, scene->stream);
    queue_fill(&scene->stage, scene->stream, out, 9, BYTES);
    assert_ok(sb_mem_async_cpu_pull(mem, (sb_stream)scene->stage.stream, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
    assert_true(host_holds(mem, 9));
    assert_transfers(scene->context, &before, 0, 1, BYTES);
    sb_mem_release(mem);
}

static void prefetch_is_the_const_access_queued(struct scene *scene) {
    void *out;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 5);
    struct copies before = copies_so_far(scene->context);
    queue_pause(&scene->stage, scene->stream);
    assert_ok(sb_mem_prefetch_gpu(mem, (sb_stream)scene->stream, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_SYNCED);
    assert_true(device_holds(&scene->stage, gpu_pointer(mem), BYTES, 5));
    assert_ok(sb_mem_mutable_gpu_on(mem, (sb_stream)scene->stream, &out, &err));
    queue_pause(&scene->stage, scene->stream);
    queue_fill(&scene->stage, scene->stream, out, 6, BYTES);
    assert_ok(sb_mem_prefetch_cpu(mem, (sb_stream)scene->stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(host_holds(mem, 6));
    assert_transfers(scene->context, &before, 1, 1, BYTES);
    sb_mem_release(mem);
}

/* --- last users ------------------------------------------------------------------------------ */

static void host_writes_wait_for_a_push(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    queue_pause(&scene->stage, scene->stream);
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)scene->stream, &err));
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    memset(out, 8, BYTES);
    assert_seen(scene, 7);
    sb_mem_release(mem);
}

static void a_transfer_waits_for_readers(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
    memset(out, 8, BYTES);
    assert_true(device_holds(&scene->stage, gpu_pointer(mem), BYTES, 8));
    assert_seen(scene, 7);
    sb_mem_release(mem);
}

static void clear_waits_for_readers(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_device(&scene->stage, scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    assert_ok(sb_mem_clear(mem, &err));
    assert_true(host_holds(mem, 0));
    assert_seen(scene, 7);
    sb_mem_release(mem);
}

/* The next memory of the same size is likely to get the same place. */
static void reuse_device_memory(struct scene *scene) {
    sb_mem *next = mem_on_device(&scene->stage, scene->context, BYTES, 9);
    assert_true(host_holds(next, 9));
    sb_mem_release(next);
}

static void a_free_waits_for_readers(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    sb_mem_release(mem);
    reuse_device_memory(scene);
    assert_seen(scene, 7);
}

static void evict_waits_for_readers(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    assert_ok(sb_mem_evict_gpu(mem, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    reuse_device_memory(scene);
    assert_seen(scene, 7);
    sb_mem_release(mem);
}

/* Page-locked memory is given on only when the copy from it is done. */
static void freed_host_memory_waits_for_a_push(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    queue_pause(&scene->stage, scene->stream);
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)scene->stream, &err));
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    queue_copy(&scene->stage, scene->stream, scene->seen, in, BYTES);
    sb_mem_release(mem);
    sb_mem *next = mem_on_host(scene->context, BYTES, 9);
    assert_seen(scene, 7);
    sb_mem_release(next);
}

/* --- fresh memory ---------------------------------------------------------------------------- */

/* Each round leaves rubbish in the memory that the next one gets. */
static void fresh_memory_is_ready_on_another_stream(struct scene *scene) {
    const void *in;
    void *out;
    for (int i = 0; i < 8; i++) {
        sb_mem *zeros = mem_make(scene->context, BYTES), *filled = mem_make(scene->context, BYTES);
        assert_ok(sb_mem_gpu_on(zeros, (sb_stream)scene->stream, &in, &err));
        queue_copy(&scene->stage, scene->stream, scene->seen, in, BYTES);
        assert_ok(sb_mem_overwrite_gpu_on(filled, (sb_stream)scene->stream, &out, &err));
        queue_fill(&scene->stage, scene->stream, out, 0xA0 + i, BYTES);
        assert_true(host_holds(filled, 0xA0 + i));
        assert_seen(scene, 0);
        sb_mem_release(zeros);
        sb_mem_release(filled);
    }
}

static void a_plain_pointer_is_ready_on_any_stream(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *mem = mem_make(scene->context, BYTES), *zeros = mem_make(scene->context, BYTES);
    sb_mem *uploaded = mem_on_host(scene->context, BYTES, 4);
    assert_ok(sb_mem_overwrite_gpu(mem, &out, &err));
    queue_fill(&scene->stage, scene->stream, out, 3, BYTES);
    look_later(scene, out);
    assert_seen(scene, 3);
    assert_ok(sb_mem_gpu(zeros, &in, &err));
    look_later(scene, in);
    assert_seen(scene, 0);
    assert_ok(sb_mem_gpu(uploaded, &in, &err));
    look_later(scene, in);
    assert_seen(scene, 4);
    sb_mem_release(mem);
    sb_mem_release(zeros);
    sb_mem_release(uploaded);
}

/* --- the legacy default stream --------------------------------------------------------------- */

TEST(the_legacy_stream_is_ordered_as_in_caffe) {
    struct scene scene;
    sb_stream own;
    const void *in;
    void *out;
    scene_open(&scene, STREAM_BLOCKING);
    sb_mem *mem = mem_on_host(scene.context, BYTES, 7);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    queue_pause(&scene.stage, NULL);
    queue_fill(&scene.stage, NULL, out, 3, BYTES);
    assert_true(host_holds(mem, 3));
    host_fill(mem, 4);
    assert_ok(sb_context_stream(scene.context, &own, &err));
    queue_pause(&scene.stage, (sb__cu_stream)own);
    assert_ok(sb_mem_gpu_on(mem, own, &in, &err));
    queue_copy(&scene.stage, NULL, scene.seen, in, BYTES);
    stream_wait(&scene.stage, NULL);
    assert_seen(&scene, 4);
    sb_mem_release(mem);
    scene_close(&scene);
}

/* Programs that are compiled for per-thread default streams launch there whatever they launch
   without a stream. */
#define PER_THREAD ((sb__cu_stream)0x2)

TEST(plain_writes_may_be_on_the_per_thread_stream) {
    struct scene scene;
    void *out;
    scene_open(&scene, STREAM_BLOCKING);
    sb_mem *mem = mem_on_host(scene.context, BYTES, 7);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    queue_pause(&scene.stage, PER_THREAD);
    queue_fill(&scene.stage, PER_THREAD, out, 3, BYTES);
    assert_true(host_holds(mem, 3));
    host_fill(mem, 4);
    sb_mem_release(mem);
    scene_close(&scene);
}

/* Uploads and zeros, by the library, under what the thread still reads. */
TEST(plain_reads_may_be_on_the_per_thread_stream) {
    for (int clears = 0; clears < 2; clears++) {
        struct scene scene;
        scene_open(&scene, STREAM_BLOCKING);
        sb_mem *mem = mem_on_host(scene.context, BYTES, 7);
        const void *in = gpu_pointer(mem);
        host_fill(mem, 8);
        if (clears)
            in = gpu_pointer(mem);
        queue_pause(&scene.stage, PER_THREAD);
        queue_copy(&scene.stage, PER_THREAD, scene.seen, in, BYTES);
        if (clears)
            assert_ok(sb_mem_clear(mem, &err));
        else
            (void)gpu_pointer(mem);
        stream_wait(&scene.stage, PER_THREAD);
        assert_true(device_holds(&scene.stage, scene.seen, BYTES, clears ? 8 : 7));
        sb_mem_release(mem);
        scene_close(&scene);
    }
}

TEST(arithmetic_comes_after_the_per_thread_stream) {
    struct scene scene;
    const int64_t shape[] = {BYTES / sizeof(float)};
    sb_blob *blob;
    void *out;
    double sum;
    scene_open(&scene, STREAM_BLOCKING);
    assert_ok(sb_blob_create_shaped(scene.context, SB_DTYPE_F32, shape, 1, &blob, &err));
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 1, &err)); /* arithmetic is prepared */
    queue_pause(&scene.stage, PER_THREAD);
    queue_fill(&scene.stage, PER_THREAD, out, 0, BYTES / 2);
    queue_fill(&scene.stage, PER_THREAD, (char *)out + BYTES / 2, 0x3F, BYTES / 2);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum > 0);
    sb_blob_destroy(blob);
    scene_close(&scene);
}

/* What is allocated next may have the same memory, and is filled at once. */
TEST(a_free_waits_for_the_per_thread_stream) {
    struct scene scene;
    scene_open(&scene, STREAM_BLOCKING);
    void *copy = device_make(&scene.stage, BYTES);
    sb_mem *mem = mem_on_device(&scene.stage, scene.context, BYTES, 0x11);
    const void *in = gpu_pointer(mem);
    queue_pause(&scene.stage, PER_THREAD);
    queue_copy(&scene.stage, PER_THREAD, copy, in, BYTES);
    sb_mem_release(mem);
    sb_mem *next = mem_make(scene.context, BYTES);
    assert_ok(sb_mem_clear(next, &err));
    (void)gpu_pointer(next);
    stream_wait(&scene.stage, PER_THREAD);
    assert_true(device_holds(&scene.stage, copy, BYTES, 0x11));
    sb_mem_release(next);
    device_end(&scene.stage, copy);
    scene_close(&scene);
}

/* A scaling does not wait for what is before it; whoever reads the bytes does. */
TEST(arithmetic_is_queued) {
    struct scene scene;
    const int64_t shape[] = {BYTES / sizeof(float)};
    const float *host;
    float *x;
    sb_blob *blob;
    scene_open(&scene, STREAM_NON_BLOCKING);
    sb_stream stream = (sb_stream)scene.stream;
    assert_ok(sb_blob_create_shaped(scene.context, SB_DTYPE_F32, shape, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
    for (int64_t i = 0; i < shape[0]; i++)
        x[i] = 1;
    assert_ok(sb_blob_clear(blob, SB_DIFF, &err));
    queue_pause(&scene.stage, scene.stream);
    void *out;
    assert_ok(sb_blob_mutable_gpu_on(blob, SB_DATA, stream, &out, &err));
    assert_ok(sb_blob_scale_on(blob, SB_DATA, 2, stream, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 4, &err));
    assert_ok(sb_blob_update_on(blob, stream, &err));
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &host, &err));
    for (int64_t i = 0; i < shape[0]; i++)
        assert_true(host[i] == 8);
    sb_blob_destroy(blob);
    scene_close(&scene);
}

/* By a handle, or as NULL. */
TEST(the_legacy_stream_may_be_named) {
    for (int as_handle = 0; as_handle < 2; as_handle++) {
        struct scene scene;
        void *out;
        scene_open(&scene, STREAM_BLOCKING);
        sb_stream legacy = as_handle ? (sb_stream)(sb__cu_stream)0x1 : NULL;
        sb_mem *mem = mem_on_host(scene.context, BYTES, 7);
        assert_ok(sb_mem_async_gpu_push(mem, legacy, &err));
        assert_ok(sb_mem_mutable_gpu_on(mem, legacy, &out, &err));
        queue_pause(&scene.stage, NULL);
        queue_fill(&scene.stage, NULL, out, 8, BYTES);
        assert_ok(sb_mem_async_cpu_pull(mem, legacy, &err));
        assert_true(host_holds(mem, 8));
        sb_mem_release(mem);
        assert_ok(sb_context_forget_stream(scene.context, legacy, &err));
        scene_close(&scene);
    }
}

/* Whoever has a plain pointer works on the legacy default stream; a non-blocking stream is not
   ordered with that, but where the library knows of it. */
static void a_named_stream_comes_after_the_legacy_one(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    queue_pause(&scene->stage, NULL);
    queue_fill(&scene->stage, NULL, out, 3, BYTES);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    queue_copy(&scene->stage, scene->stream, scene->seen, in, BYTES);
    assert_seen(scene, 3);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    queue_pause(&scene->stage, NULL);
    queue_fill(&scene->stage, NULL, out, 4, BYTES);
    assert_ok(sb_mem_async_cpu_pull(mem, (sb_stream)scene->stream, &err));
    assert_true(host_holds(mem, 4));
    sb_mem_release(mem);
}

/* --- captures -------------------------------------------------------------------------------- */

static void begin_capture(struct scene *scene) {
    enter(&scene->stage);
    cu_ok(cuStreamBeginCapture_v2(scene->stream, CAPTURE_GLOBAL));
    leave();
}

/* It went on, and nothing of ours is in it. */
static void end_capture(struct scene *scene) {
    struct CUgraph_st *graph = NULL;
    size_t nodes = 99;
    enter(&scene->stage);
    cu_ok(cuStreamEndCapture(scene->stream, &graph));
    cu_ok(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    cu_ok(cuGraphDestroy(graph));
    leave();
}

static void a_captured_stream_is_refused(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *ready = mem_on_device(&scene->stage, scene->context, BYTES, 6);
    begin_capture(scene);
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(ready, (sb_stream)scene->stream, &in, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_async_gpu_push(mem, (sb_stream)scene->stream, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_prefetch_gpu(mem, (sb_stream)scene->stream, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err)); /* work elsewhere is no part of it */
    assert_true(host_holds(mem, 7));
    assert_true(host_holds(ready, 6));
    sb_mem_release(mem);
    sb_mem_release(ready);
    end_capture(scene);
}

/* It was a user before: an event recorded on it now would join the graph. */
static void a_known_stream_may_be_captured(struct scene *scene) {
    const void *in;
    void *out;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    stream_wait(&scene->stage, scene->stream);
    begin_capture(scene);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_mutable_gpu(mem, &out, &err));
    end_capture(scene);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    sb_mem_release(mem);
}

struct closing {
    sb_context *context;
    sb_blob *blob;
};

static void *close_all(void *user) {
    struct closing *closing = user;
    sb_blob_destroy(closing->blob);
    sb_context_release(closing->context);
    return NULL;
}

/* Nor does the end of arithmetic, on another thread. */
static void closing_leaves_a_capture_alone(struct scene *scene) {
    struct closing closing = {.context = another_context("cuda:0")};
    const int64_t shape[] = {BYTES / sizeof(float)};
    void *out;
    pthread_t thread;
    assert_ok(sb_blob_create_shaped(closing.context, SB_DTYPE_F32, shape, 1, &closing.blob, &err));
    assert_ok(sb_blob_overwrite_cpu(closing.blob, SB_DATA, &out, &err));
    memset(out, 0, BYTES);
    assert_ok(sb_blob_mutable_gpu(closing.blob, SB_DATA, &out, &err));
    assert_ok(sb_blob_scale(closing.blob, SB_DATA, 2, &err));
    begin_capture(scene);
    assert_int_equal(pthread_create(&thread, NULL, close_all, &closing), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_capture(scene);
}

/* While a stream is captured nobody can ask it whether its work is over. */
static void a_release_outlasts_a_capture(struct scene *scene) {
    const void *in;
    sb_mem *mem = mem_on_host(scene->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)scene->stream, &in, &err));
    look_later(scene, in);
    begin_capture(scene);
    sb_mem_release(mem);
    assert_int_equal(stats_of(scene->context).device_bytes, BYTES);
    end_capture(scene);
    assert_ok(sb_context_synchronize(scene->context, &err));
    assert_int_equal(stats_of(scene->context).device_bytes, 0);
    assert_seen(scene, 7);
}

/* --- the caller's current context ------------------------------------------------------------ */

static void use_everything(struct scene *scene) {
    const int64_t shape[] = {1001};
    double sum;
    const void *in;
    void *out;
    sb_blob *blob;
    sb_mem *mem;
    assert_ok(sb_blob_create_shaped(scene->context, SB_DTYPE_F32, shape, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &out, &err));
    memset(out, 0, 4004);
    assert_ok(sb_blob_mutable_mem(blob, SB_DATA, &mem, &err));
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)scene->stream, &err));
    assert_ok(sb_blob_gpu_on(blob, SB_DATA, (sb_stream)scene->stream, &in, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_blob_cpu(blob, SB_DATA, &in, &err));
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_set_gpu(mem, &sum, 4004, 0, NULL, NULL, &err));
    sb_blob_destroy(blob);
    assert_ok(sb_context_synchronize(scene->context, &err));
    sb_context_release(another_context("cuda:0"));
}

static sb__cu_context current(void) {
    sb__cu_context context = NULL;
    cu_ok(cuCtxGetCurrent(&context));
    return context;
}

TEST(a_thread_with_no_context_keeps_none) {
    struct scene scene;
    scene_open(&scene, STREAM_NON_BLOCKING);
    assert_null(current());
    use_everything(&scene);
    assert_null(current());
    scene_close(&scene);
}

static void assert_stays_current(struct scene *scene, sb__cu_context context) {
    sb__cu_context popped = NULL;
    cu_ok(cuCtxPushCurrent_v2(context));
    use_everything(scene);
    assert_ptr_equal(current(), context);
    cu_ok(cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, context);
    assert_null(current()); /* nothing was left below it */
}

/* Another device's primary context, or a second one of this device where there is no other. */
struct other {
    sb__cu_context context;
    sb__cu_device device;
    bool is_primary;
};

static struct other other_make(void) {
    struct other other = {0};
    sb__cu_context popped;
    other.is_primary = device_count() > 1;
    cu_ok(cuDeviceGet(&other.device, other.is_primary));
    if (other.is_primary) {
        cu_ok(cuDevicePrimaryCtxRetain(&other.context, other.device));
    } else {
        assert_non_null(driver->cuCtxCreate_v2);
        cu_ok(cuCtxCreate_v2(&other.context, 0, other.device));
        cu_ok(cuCtxPopCurrent_v2(&popped));
    }
    return other;
}

static void other_end(const struct other *other) {
    if (other->is_primary)
        cu_ok(cuDevicePrimaryCtxRelease_v2(other->device));
    else
        cu_ok(cuCtxDestroy_v2(other->context));
}

TEST(a_thread_with_another_context_keeps_it) {
    struct scene scene;
    scene_open(&scene, STREAM_NON_BLOCKING);
    assert_stays_current(&scene, scene.stage.primary);
    struct other other = other_make();
    assert_stays_current(&scene, other.context);
    other_end(&other);
    scene_close(&scene);
}

TEST(a_stream_of_another_context_is_refused) {
    struct scene scene;
    const void *in;
    sb__cu_stream stream = NULL;
    sb__cu_context popped;
    scene_open(&scene, STREAM_NON_BLOCKING);
    struct other other = other_make();
    cu_ok(cuCtxPushCurrent_v2(other.context));
    cu_ok(cuStreamCreate(&stream, STREAM_NON_BLOCKING));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    sb_mem *mem = mem_on_host(scene.context, BYTES, 7);
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_mem_gpu_on(mem, (sb_stream)SB__CU_STREAM_PER_THREAD, &in, &err));
    assert_int_equal(sb_mem_head(mem), SB_HEAD_AT_CPU);
    sb_mem_release(mem);
    cu_ok(cuCtxPushCurrent_v2(other.context));
    cu_ok(cuStreamDestroy_v2(stream));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    other_end(&other);
    scene_close(&scene);
}

/* --- for each kind of stream ----------------------------------------------------------------- */

#define EACH(claim)                                                                                \
    TEST(test_##claim) {                                                                           \
        for_each_kind_of_stream(claim);                                                            \
    }

EACH(push_comes_before_use)
EACH(pull_comes_after_the_writer)
EACH(prefetch_is_the_const_access_queued)
EACH(host_writes_wait_for_a_push)
EACH(a_transfer_waits_for_readers)
EACH(clear_waits_for_readers)
EACH(a_free_waits_for_readers)
EACH(evict_waits_for_readers)
EACH(freed_host_memory_waits_for_a_push)
EACH(fresh_memory_is_ready_on_another_stream)
EACH(a_plain_pointer_is_ready_on_any_stream)
EACH(a_named_stream_comes_after_the_legacy_one)
EACH(a_captured_stream_is_refused)
EACH(a_known_stream_may_be_captured)
EACH(closing_leaves_a_capture_alone)
EACH(a_release_outlasts_a_capture)

int main(void) {
    int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
