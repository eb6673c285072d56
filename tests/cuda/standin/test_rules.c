/* What the backend does to the driver, and what it leaves alone. */
#include "fixture.h"

#include "context/context.h"
#include "device.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define BYTES              ((size_t)4096)
#define BLAS_ALLOC_FAILED  3  /* CUBLAS_STATUS_ALLOC_FAILED */
#define BLAS_INTERNAL      14 /* CUBLAS_STATUS_INTERNAL_ERROR */
#define BLAS_NOT_SUPPORTED 15 /* CUBLAS_STATUS_NOT_SUPPORTED */

static sb_mem *mem_on_host(struct stage *stage, int fill) {
    sb_mem *mem;
    void *out;
    assert_ok(sb_mem_create(stage->rig.context, BYTES, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    memset(out, fill, BYTES);
    return mem;
}

static void host_holds(const sb_mem *mem, int fill) {
    const void *in;
    assert_ok(sb_mem_cpu(mem, &in, &err));
    assert_true(bytes_are(in, BYTES, fill));
}

/* --- transfers ------------------------------------------------------------------------------- */

enum step { GPU, CPU, MUTABLE_GPU, MUTABLE_CPU };

static void step(sb_mem *mem, enum step s) {
    const void *in;
    void *out;
    if (s == GPU)
        assert_ok(sb_mem_gpu(mem, &in, &err));
    else if (s == CPU)
        assert_ok(sb_mem_cpu(mem, &in, &err));
    else if (s == MUTABLE_GPU)
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    else
        assert_ok(sb_mem_mutable_cpu(mem, &out, &err));
}

TEST(an_access_that_needs_no_transfer_makes_no_call) {
    struct stage stage;
    stage_open(&stage, 0);
    sb_mem *mem = mem_on_host(&stage, 7);
    step(mem, GPU);
    int64_t calls = standin_calls(NULL);
    step(mem, GPU);
    step(mem, CPU);
    assert_int_equal(standin_calls(NULL), calls);
    step(mem, MUTABLE_GPU);
    calls = standin_calls(NULL);
    step(mem, MUTABLE_GPU);
    assert_int_equal(standin_calls(NULL), calls);
    sb_mem_release(mem);
    stage_close(&stage);
}

TEST(the_current_context_is_not_pushed) {
    struct stage stage;
    CUcontext old;
    stage_open(&stage, 0);
    sb_mem *mem = mem_on_host(&stage, 7);
    assert_int_equal(cuCtxPushCurrent(stage.primary), CUDA_SUCCESS);
    int64_t pushes = standin_calls("cuCtxPushCurrent_v2"),
            pops = standin_calls("cuCtxPopCurrent_v2");
    step(mem, MUTABLE_GPU);
    step(mem, CPU);
    assert_int_equal(standin_calls("cuCtxPushCurrent_v2"), pushes);
    assert_int_equal(standin_calls("cuCtxPopCurrent_v2"), pops);
    assert_int_equal(standin_depth(), 1);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    sb_mem_release(mem);
    stage_close(&stage);
}

TEST(events_are_used_again) {
    struct stage stage;
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = mem_on_host(&stage, 7);
    int64_t created = 0;
    for (int i = 0; i < 100; i++) {
        assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
        step(mem, MUTABLE_CPU);
        if (i == 0)
            created = standin_calls("cuEventCreate");
    }
    assert_int_equal(standin_calls("cuEventCreate"), created);
    sb_mem_release(mem);
    sb_mem *many[100];
    for (int i = 0; i < 100; i++) {
        many[i] = mem_on_host(&stage, 7);
        assert_ok(sb_mem_async_gpu_push(many[i], (sb_stream)stream, &err));
    }
    for (int i = 0; i < 100; i++)
        sb_mem_release(many[i]);
    assert_true(standin_live().events < 100); /* not all are kept */
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
}

/* --- the application's state ----------------------------------------------------------------- */

static void use_everything(struct stage *stage, CUstream stream) {
    const int64_t shape[] = {1000};
    double sum;
    float *out;
    const void *in;
    sb_blob *blob;
    assert_ok(sb_blob_create_shaped(stage->rig.context, SB_DTYPE_F32, shape, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &out, &err));
    memset(out, 0, 4000);
    assert_ok(sb_mem_async_gpu_push(data_of(blob), (sb_stream)stream, &err));
    assert_ok(sb_mem_gpu_on(data_of(blob), (sb_stream)stream, &in, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_context_forget_stream(stage->rig.context, (sb_stream)stream, &err));
    sb_blob_destroy(blob);
}

TEST(the_current_context_stays) {
    struct stage stage;
    CUcontext other, now;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    assert_int_equal(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent(other), CUDA_SUCCESS);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    use_everything(&stage, stream);
    assert_int_equal(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, other);
    assert_int_equal(standin_depth(), 1);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    assert_int_equal(cuCtxPopCurrent(&now), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
}

/* --- captures -------------------------------------------------------------------------------- */

static void begin_capture(struct stage *stage, CUstream stream) {
    CUcontext old;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
}

/* The capture went on, and nothing of ours is in it. */
static void end_capture(struct stage *stage, CUstream stream) {
    CUcontext old;
    CUgraph graph;
    size_t nodes = 99;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(cuGraphGetNodes(graph, NULL, &nodes), CUDA_SUCCESS);
    assert_int_equal(nodes, 0);
    assert_int_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
}

TEST(a_capture_elsewhere_goes_on) {
    static const unsigned int flags[] = {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT};
    for (int i = 0; i < 2; i++) {
        struct stage stage;
        const void *in;
        stage_open(&stage, SB_CONTEXT_NO_HOST_CACHE);
        CUstream captured = stage_stream(&stage, flags[i]);
        begin_capture(&stage, captured);
        sb_mem *mem = mem_on_host(&stage, 7);
        assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, (sb_stream)captured, &in, &err));
        step(mem, MUTABLE_GPU);
        host_holds(mem, 7);
        assert_status(SB_ERR_UNSUPPORTED, sb__cuda_backend.check_stream(stage.rig.context->device,
                                                                        (sb_stream)captured, &err));
        step(mem, MUTABLE_CPU);
        if (i == 1) /* the legacy default stream is ordered with the captured one */
            assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, NULL, &in, &err));
        sb_mem_release(mem);
        end_capture(&stage, captured);
        stage_stream_destroy(&stage, captured);
        stage_close(&stage);
    }
}

/* It was a user before; an event recorded on it now would join the graph. */
TEST(a_known_stream_may_be_captured) {
    struct stage stage;
    const void *in;
    void *out;
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = mem_on_host(&stage, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    begin_capture(&stage, stream);
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_mutable_gpu(mem, &out, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_non_null(strstr(err.message, "the stream is being captured"));
    assert_int_equal(err.device_code, 0);
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_context_forget_stream(stage.rig.context, (sb_stream)stream, &err));
    end_capture(&stage, stream);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    assert_ok(sb_context_forget_stream(stage.rig.context, (sb_stream)stream, &err));
    sb_mem_release(mem);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
}

/* Another thread may be capturing, by rules that a wait for the whole device breaks. The same of
   another device, whose context of the driver comes and goes. */
TEST(closing_leaves_a_capture_alone) {
    struct stage stage;
    sb_context *other;
    double sum;
    sb_blob *blob;
    const void *in;
    standin_heal();
    stage_open(&stage, 0);
    CUstream captured = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    assert_ok(cuda_context("cuda:0", &other, &err));
    assert_ok(sb_blob_create_legacy(other, SB_DTYPE_F32, 1, 1, 1, 1, &blob, &err));
    assert_ok(sb_blob_gpu(blob, SB_DATA, &in, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    sb_blob_destroy(blob);
    begin_capture(&stage, captured);
    sb_context_release(other);
    for (int64_t nth = 1; nth < 8; nth++) { /* also where a call that keeps it from harm fails */
        assert_ok(cuda_context("cuda:1", &other, &err));
        standin_fail("cuThreadExchangeStreamCaptureMode", nth, STANDIN_NOW, CUDA_ERROR_UNKNOWN);
        sb_context_release(other);
        standin_fail(NULL, 0, STANDIN_NOW, 0);
    }
    end_capture(&stage, captured);
    stage_stream_destroy(&stage, captured);
    stage_close(&stage);
}

/* And run each kernel once before the first use, not each of them. */
TEST(contexts_of_a_device_share_a_handle) {
    int64_t handles = 0;
    for (int i = 0; i < 3; i++) {
        struct stage stage;
        sb_context *other;
        const int64_t launches = standin_calls("cuLaunchKernel");
        stage_open(&stage, 0);
        CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
        use_everything(&stage, stream);
        assert_true(i == 0 || standin_calls("cuLaunchKernel") == launches + 2);
        assert_ok(cuda_context("cuda:1", &other, &err));
        assert_ok(sb__device_prepare_arithmetic(other, &err));
        sb_context_release(other);
        if (i == 0)
            handles = standin_calls("cublasCreate_v2");
        assert_int_equal(standin_calls("cublasCreate_v2"), handles);
        stage_stream_destroy(&stage, stream);
        stage_close(&stage);
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

TEST(devices_without_pools_work) {
    struct stage stage;
    standin_set(STANDIN_POOLS, 0);
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    use_everything(&stage, stream);
    assert_int_equal(standin_live().pools, 0);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
    standin_set(STANDIN_POOLS, 1);
}

TEST(a_pool_is_our_own) {
    struct stage stage;
    stage_open(&stage, 0);
    assert_int_equal(standin_live().pools, 1);
    assert_int_equal(standin_calls("cuMemAllocAsync"), 0);
    stage_close(&stage);
}

static sb_mem *mem_of(sb_context *context, size_t bytes) {
    sb_mem *mem;
    void *out;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    assert_ok(sb_mem_overwrite_gpu(mem, &out, &err));
    return mem;
}

static sb_mem *mem_on_device(struct stage *stage, size_t bytes) {
    return mem_of(stage->rig.context, bytes);
}

/* Of devices: by pools, and by kernels that were loaded. */
static size_t kept_bytes(void) {
    return standin_live().mapped_bytes - standin_live().device_bytes;
}

/* However much is in use: a pool whose threshold is below that unmaps what is free at every wait.
 */
TEST(a_wait_keeps_what_is_free) {
    struct stage stage;
    stage_open(&stage, 0);
    size_t kept = kept_bytes();
    sb_mem *used = mem_on_device(&stage, (size_t)300 << 20), *freed = mem_on_device(&stage, BYTES);
    int64_t unmapped = standin_live().unmapped;
    sb_mem_release(freed);
    assert_ok(sb_context_synchronize(stage.rig.context, &err));
    freed = mem_on_device(&stage, BYTES);
    sb_mem_release(freed);
    assert_ok(sb_context_synchronize(stage.rig.context, &err));
    assert_int_equal(standin_live().unmapped, unmapped);
    sb_context_trim(stage.rig.context);
    assert_int_equal(kept_bytes(), kept);
    sb_mem_release(used);
    sb_context_trim(stage.rig.context);
    assert_int_equal(kept_bytes(), kept);
    stage_close(&stage);
}

/* A gate that opens when it has been asked for a while. */
static bool opens_later(void *user) {
    return ++*(int *)user > 100;
}

/* What is freed may not have been freed yet, or in pieces that are too small. */
TEST(short_memory_is_asked_of_the_pool) {
    int asked = 0;
    struct stage stage;
    sb_mem *large;
    void *out;
    stage_open(&stage, 0);
    standin_set(STANDIN_MEMORY, (int64_t)(standin_live().mapped_bytes + 2 * BYTES));
    sb_mem *one = mem_on_device(&stage, BYTES), *other = mem_on_device(&stage, BYTES);
    assert_ok(sb_mem_create(stage.rig.context, 2 * BYTES, &large, &err));
    sb_mem_release(one);
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_mem_overwrite_gpu(large, &out, &err));
    assert_non_null(strstr(err.message, "cuMemAllocFromPoolAsync: "));
    assert_int_equal(
        standin_gate(stage.primary, (CUstream)stage.rig.context->stream, opens_later, &asked, 0, 0),
        CUDA_SUCCESS);
    sb_mem_release(other);
    assert_ok(sb_mem_overwrite_gpu(large, &out, &err));
    assert_int_equal(sb_context_device_status(stage.rig.context), SB_OK);
    sb_mem_release(large);
    stage_close(&stage);
    standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
}

static void count_run(void *user) {
    ++*(int *)user;
}

static void launch(struct stage *stage, CUstream stream, void (*kernel)(void *user), void *user) {
    CUcontext old;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(standin_launch(stream, kernel, user), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
}

TEST(closing_waits_for_queued_work) {
    struct stage stage;
    sb_context *context;
    sb_stream own;
    int ran = 0;
    stage_open(&stage, 0);
    assert_ok(cuda_context("cuda:0", &context, &err));
    assert_ok(sb_context_stream(context, &own, &err));
    launch(&stage, (CUstream)own, count_run, &ran);
    sb_context_release(context); /* and nothing else, which might wait */
    assert_int_equal(ran, 1);
    stage_close(&stage);
}

struct reader {
    CUdeviceptr ptr;
    int found;
};

static void read_memory(void *user) {
    struct reader *reader = user;
    reader->found = standin_address(reader->ptr, BYTES) != NULL;
}

/* Memory of the device that a kernel on the stream will read. */
static sb_mem *mem_in_use(struct stage *stage, CUstream stream, struct reader *reader) {
    const void *in;
    sb_mem *mem = mem_on_host(stage, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    *reader = (struct reader){(CUdeviceptr)(uintptr_t)in, 0};
    launch(stage, stream, read_memory, reader);
    return mem;
}

/* With a pool and without, memory goes after the work of the streams that used it. */
TEST(a_free_comes_after_its_users) {
    for (int pools = 0; pools < 2; pools++) {
        struct stage stage;
        struct reader reader;
        standin_set(STANDIN_POOLS, pools);
        stage_open(&stage, 0);
        CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
        sb_mem *mem = mem_in_use(&stage, stream, &reader);
        sb_mem_release(mem);
        assert_ok(sb_context_forget_stream(stage.rig.context, (sb_stream)stream, &err));
        assert_int_equal(reader.found, 1);
        stage_stream_destroy(&stage, stream);
        stage_close(&stage);
    }
}

/* --- memory is short ------------------------------------------------------------------------- */

static sb_blob *blob_on_device(sb_context *context, int count, float value) {
    sb_blob *blob;
    float *x;
    const void *in;
    assert_ok(sb_blob_create_legacy(context, SB_DTYPE_F32, count, 1, 1, 1, &blob, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
    for (int i = 0; i < count; i++)
        x[i] = value;
    assert_ok(sb_blob_gpu(blob, SB_DATA, &in, &err));
    return blob;
}

static void assert_update_fails(struct stage *stage, sb_blob *blob) {
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_update(blob, &err));
    assert_int_equal(sb_context_device_status(stage->rig.context), SB_OK);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_SYNCED);
}

/* Kernels are loaded at their first launch. */
TEST(arithmetic_that_cannot_load_its_kernels_loses_nothing) {
    struct stage stage;
    const void *in;
    const float *x;
    double sum;
    standin_heal(); /* no kernel is loaded */
    stage_open(&stage, 0);
    sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
    assert_ok(sb_blob_gpu(blob, SB_DIFF, &in, &err));
    for (size_t kernels = 0; kernels < 3; kernels++) { /* with memory for some more, of eight */
        size_t left = kernels * STANDIN_KERNEL_BYTES + 512;
        standin_set(STANDIN_MEMORY, (int64_t)(standin_live().mapped_bytes + left));
        assert_update_fails(&stage, blob);
        standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
    }
    sb_mem_release(mem_on_device(&stage, 16 * STANDIN_KERNEL_BYTES)); /* the pool keeps it */
    standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes);
    assert_ok(sb_blob_update(blob, &err));
    standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 60);
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_update(blob, &err));
    standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
    assert_true(x[9] == 6);
    sb_blob_destroy(blob);
    stage_close(&stage);
}

/* Where the driver cannot compile, that is no failure of the device, and no handle is left. */
TEST(arithmetic_without_a_compiler_is_unsupported) {
    static const CUresult codes[] = {
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU};
    struct stage stage;
    double sum;
    standin_heal(); /* no handle of an earlier test's */
    stage_open(&stage, 0);
    sb_blob *blob = blob_on_device(stage.rig.context, 1000, 1);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        standin_fail("cuModuleLoadData", 1, STANDIN_NOW, codes[i]);
        assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_int_equal(err.device_code, codes[i]);
        assert_ok(sb_context_device_status(stage.rig.context));
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 1000);
    sb_blob_destroy(blob);
    stage_close(&stage);
}

/* Short memory, a kernel that the device does not have, a capture that another thread begins after
   the stream was asked, or a failure before the launch that passes. */
TEST(arithmetic_that_queued_nothing_loses_nothing) {
    static const struct {
        const char *function;
        unsigned int error;
        sb_status told;
    } rows[] = {
        {"cublasSaxpy_v2_64", BLAS_ALLOC_FAILED, SB_ERR_OUT_OF_MEMORY},
        {"cublasSscal_v2_64", BLAS_ALLOC_FAILED, SB_ERR_OUT_OF_MEMORY},
        {"cublasSaxpy_v2_64", BLAS_NOT_SUPPORTED, SB_ERR_UNSUPPORTED},
        {"cublasSscal_v2_64", BLAS_NOT_SUPPORTED, SB_ERR_UNSUPPORTED},
        {"cublasSetStream_v2", BLAS_ALLOC_FAILED, SB_ERR_OUT_OF_MEMORY},
        {"cublasSetStream_v2", BLAS_INTERNAL, SB_OK},
        {"cuStreamIsCapturing", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, SB_ERR_UNSUPPORTED},
    };
    struct stage stage;
    const float *x;
    int64_t failures = 0;
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
    assert_ok(sb_blob_update(blob, &err));
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++)
        for (int64_t nth = 1, fired = 1; fired; nth++) {
            const char *launch = i % 2 ? "cublasSscal_v2_64" : "cublasSaxpy_v2_64";
            const int64_t before = standin_calls(launch);
            standin_fail(rows[i / 2].function, nth, STANDIN_NOW, rows[i / 2].error);
            sb_status st = i % 2 ? sb_blob_scale_on(blob, SB_DATA, 1, (sb_stream)stream, &err)
                                 : sb_blob_update_on(blob, (sb_stream)stream, &err);
            fired = standin_fired() != NULL;
            const bool launched = standin_calls(launch) > before;
            if (st != SB_OK || !launched) /* what could not be marked by an event is waited for */
                assert_int_equal(st, fired ? rows[i / 2].told : SB_OK);
            assert_int_equal(sb_context_device_status(stage.rig.context), SB_OK);
            failures += fired;
        }
    standin_fail(NULL, 0, STANDIN_NOW, 0);
    assert_true(failures > 10); /* launches once, the others in both operations */
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
    assert_true(x[9] == 6);
    sb_blob_destroy(blob);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
}

static sb_status read_back(struct stage *stage, sb_blob *blob, sb_error *err) {
    const float *x;
    (void)stage;
    return sb_blob_cpu_f32(blob, SB_DATA, &x, err);
}

static sb_status clear(struct stage *stage, sb_blob *blob, sb_error *err) {
    (void)stage;
    return sb_blob_clear(blob, SB_DATA, err);
}

static sb_status synchronize(struct stage *stage, sb_blob *blob, sb_error *err) {
    (void)blob;
    return sb_context_synchronize(stage->rig.context, err);
}

/* Whoever waits for arithmetic takes a failure for one of it, which works in place. But a wait that
   cannot begin has seen nothing. */
TEST(a_passing_failure_before_a_wait_loses_nothing) {
    static const char *const calls[] = {"cuCtxGetCurrent", "cuCtxPushCurrent_v2",
                                        "cuThreadExchangeStreamCaptureMode", "cuStreamIsCapturing"};
    static sb_status (*const waits[])(struct stage * stage, sb_blob * blob,
                                      sb_error * err) = {read_back, clear, synchronize};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            struct stage stage;
            sb_stream own;
            void *out;
            stage_open(&stage, 0);
            assert_ok(sb_context_stream(stage.rig.context, &own, &err));
            sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
            bool fired = true;
            for (int64_t nth = 1; fired; nth++) {
                assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
                assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
                standin_fail(calls[k], nth, STANDIN_NOW, CUDA_ERROR_UNKNOWN);
                (void)waits[i](&stage, blob, &err);
                fired = standin_fired() != NULL;
                standin_fail(NULL, 0, STANDIN_NOW, 0);
                if (sb_context_device_status(stage.rig.context) != SB_OK)
                    fail_with("%s lost the device in wait %zu", calls[k], i);
            }
            sb_blob_destroy(blob);
            stage_close(&stage);
        }
}

/* Nothing is queued where a capture forbids it, and a call of cuBLAS that fails is no reason to end
   one. */
TEST(arithmetic_beside_a_capture_loses_nothing) {
    static const unsigned int flags[] = {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT};
    for (int i = 0; i < 2; i++) {
        struct stage stage;
        double sum;
        standin_heal();
        stage_open(&stage, 0);
        CUstream captured = stage_stream(&stage, flags[i]);
        sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
        begin_capture(&stage, captured);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err)); /* kernels are loaded */
        if (flags[i] == CU_STREAM_DEFAULT) /* which the legacy default stream waits for */
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale_on(blob, SB_DATA, 2, NULL, &err));
        standin_fail("cublasSscal_v2_64", 1, STANDIN_NOW, BLAS_ALLOC_FAILED);
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_context_device_status(stage.rig.context));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 60);
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
        assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL); /* as before */
        end_capture(&stage, captured);
        sb_blob_destroy(blob);
        stage_stream_destroy(&stage, captured);
        stage_close(&stage);
    }
}

/* --- short memory, and other contexts of the device ------------------------------------------- */

/* Two contexts of a device, and one of another. All but the first keep what they have freed, and
   all else is taken. */
struct pair {
    struct stage stage;
    sb_context *other, *elsewhere;
    sb_mem *used; /* of the second */
};

static void open_pair(struct pair *pair) {
    stage_open(&pair->stage, SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(cuda_context("cuda:0", &pair->other, &err));
    assert_ok(cuda_context("cuda:1", &pair->elsewhere, &err));
    pair->used = mem_of(pair->other, BYTES);
    sb_mem_release(mem_of(pair->other, 2 * BYTES));
    sb_mem_release(mem_of(pair->elsewhere, 2 * BYTES));
    assert_ok(sb_context_synchronize(pair->elsewhere, &err));
    standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes);
}

static void close_pair(struct pair *pair) {
    standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
    sb_mem_release(pair->used);
    sb_context_release(pair->other);
    sb_context_release(pair->elsewhere);
    stage_close(&pair->stage);
}

/* Takes memory of the device, and gives it back. */
static sb_status use(sb_context *context, size_t bytes, sb_error *err) {
    sb_mem *mem;
    void *out;
    sb_status st = sb_mem_create(context, bytes, &mem, err);
    if (st != SB_OK)
        return st;
    st = sb_mem_overwrite_gpu(mem, &out, err);
    sb_mem_release(mem);
    return st;
}

TEST(short_memory_is_asked_of_other_contexts) {
    struct pair pair;
    open_pair(&pair);
    assert_ok(use(pair.stage.rig.context, 2 * BYTES, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, use(pair.stage.rig.context, 3 * BYTES, &err));
    assert_ok(use(pair.other, 2 * BYTES, &err)); /* the other way round */
    close_pair(&pair);
}

/* Kernels and the handle are no memory of a pool. cuBLAS may tell the lack in its own way. */
TEST(short_memory_for_kernels_is_asked_of_other_contexts) {
    for (int says_so = 1; says_so >= 0; says_so--) {
        struct pair pair;
        standin_heal(); /* nothing is loaded */
        open_pair(&pair);
        sb_mem *freed[16];
        standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
        for (int i = 0; i < 16; i++)
            freed[i] = mem_of(pair.other, STANDIN_KERNEL_BYTES);
        for (int i = 0; i < 16; i++)
            sb_mem_release(freed[i]);
        standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes);
        standin_fail("cublasCreate_v2", 1, STANDIN_NOW,
                     says_so ? BLAS_ALLOC_FAILED : BLAS_INTERNAL);
        assert_ok(sb__device_prepare_arithmetic(pair.stage.rig.context, &err));
        assert_non_null(standin_fired());
        close_pair(&pair);
    }
}

static void *come_and_go(void *user) {
    int rounds = 0;
    for (bool fine = true; fine && rounds < 100; rounds++) {
        sb_context *context;
        fine = cuda_context("cuda:0", &context, &err) == SB_OK;
        for (size_t n = 1; fine && n <= 8; n++) {
            const sb_status st = use(context, n * BYTES, &err);
            fine = st == SB_OK || st == SB_ERR_OUT_OF_MEMORY;
        }
        sb_context_release(context);
        if (!fine)
            return NULL;
    }
    return user;
}

TEST(contexts_come_and_go_while_memory_is_short) {
    enum { THREADS = 3 };
    struct pair pair;
    pthread_t threads[THREADS];
    open_pair(&pair);
    standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes + (int64_t)(4 * BYTES));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &pair), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fine;
        assert_int_equal(pthread_join(threads[i], &fine), 0);
        assert_non_null(fine);
    }
    close_pair(&pair);
}

/* --- while a sum waits -------------------------------------------------------------------------
 */

struct gate {
    atomic_bool is_open;
    time_t end; /* it opens by itself, so that a test fails and does not hang */
};

static bool passes(void *user) {
    struct gate *gate = user;
    return atomic_load(&gate->is_open) || time(NULL) > gate->end;
}

static void *add_up(void *user) {
    double sum = 0;
    return sb_blob_asum(user, SB_DATA, &sum, NULL) == SB_OK && sum == 30 ? user : NULL;
}

/* Contexts of a device have one handle of cuBLAS, with a lock. */
TEST(a_sum_holds_up_no_arithmetic) {
    struct stage stage;
    struct gate gate = {.end = time(NULL) + 20};
    sb_context *other;
    sb_stream own;
    pthread_t thread;
    void *right;
    stage_open(&stage, 0);
    assert_ok(cuda_context("cuda:0", &other, &err));
    assert_ok(sb_context_stream(other, &own, &err));
    sb_blob *here = blob_on_device(stage.rig.context, 10, 3), *there = blob_on_device(other, 10, 3);
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    assert_ok(sb_blob_scale(there, SB_DATA, 1, &err));
    assert_ok(sb_context_synchronize(other, &err));
    assert_int_equal(standin_gate(stage.primary, (CUstream)own, passes, &gate, 0, 0), CUDA_SUCCESS);
    const int64_t waits = standin_calls("cuStreamSynchronize");
    assert_int_equal(pthread_create(&thread, NULL, add_up, there), 0);
    while (standin_calls("cuStreamSynchronize") == waits)
        (void)sched_yield();
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    assert_true(time(NULL) <= gate.end);
    atomic_store(&gate.is_open, true);
    assert_int_equal(pthread_join(thread, &right), 0);
    assert_ptr_equal(right, there);
    sb_blob_destroy(here);
    sb_blob_destroy(there);
    sb_context_release(other);
    stage_close(&stage);
}

/* Memory of which no caller has a pointer, so that nothing has to wait for default streams. */
static sb_status use_inside(sb_context *context, size_t bytes, sb_error *err) {
    void *device = context->device, *ptr;
    const sb_status st = sb__cuda_backend.alloc(device, bytes, context->stream, &ptr, err);
    if (st == SB_OK)
        sb__cuda_backend.free(device, ptr, bytes, context->stream);
    return st;
}

/* Its thread may wait for the one that lacks memory. */
TEST(short_memory_waits_for_no_other_context) {
    struct pair pair;
    struct gate gate = {.end = time(NULL) + 20};
    open_pair(&pair);
    assert_ok(sb_context_synchronize(pair.other, &err));
    assert_int_equal(
        standin_gate(pair.stage.primary, (CUstream)pair.other->stream, passes, &gate, 0, 0),
        CUDA_SUCCESS);
    sb_mem_release(pair.used);
    assert_ok(use_inside(pair.stage.rig.context, 2 * BYTES, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, use_inside(pair.stage.rig.context, 3 * BYTES, &err));
    assert_true(time(NULL) <= gate.end);
    atomic_store(&gate.is_open, true);
    assert_ok(use_inside(pair.stage.rig.context, 3 * BYTES, &err));
    pair.used = NULL;
    close_pair(&pair);
}

/* --- streams --------------------------------------------------------------------------------- */

/* It may find out, where it does not crash. */
TEST(the_drivers_word_on_a_stream_is_handed_on) {
    static const struct {
        CUresult code;
        sb_status status;
    } rows[] = {{CUDA_ERROR_INVALID_HANDLE, SB_ERR_WRONG_DEVICE},
                {CUDA_ERROR_UNKNOWN, SB_ERR_DEVICE_FAILURE}};
    struct stage stage;
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = mem_on_host(&stage, 7);
    for (int i = 0; i < 2; i++) {
        const void *in;
        standin_fail("cuStreamGetCtx", 1, STANDIN_NOW, rows[i].code);
        assert_status(rows[i].status, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
        assert_int_equal(err.device_code, rows[i].code);
    }
    sb_mem_release(mem);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
}

/* As cudaSetDeviceFlags tells it. Waits for streams follow the context, those for events the event.
 */
TEST(waits_block_where_the_application_wants_it) {
    struct stage stage;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
    stage_open(&stage, 0);
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = mem_on_host(&stage, 7);
    const int64_t waits = standin_calls("cuEventSynchronize");
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(standin_calls("cuEventSynchronize") > waits);
    sb_mem_release(mem);
    stage_stream_destroy(&stage, stream);
    stage_close(&stage);
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO), CUDA_SUCCESS);
}

/* --- devices --------------------------------------------------------------------------------- */

struct writer {
    CUdeviceptr ptr;
    int value;
};

static void write_memory(void *user) {
    const struct writer *writer = user;
    void *at = standin_address(writer->ptr, BYTES);
    if (at)
        memset(at, writer->value, BYTES);
}

TEST(work_comes_after_per_thread_streams) {
    struct stage stage;
    void *out;
    stage_open(&stage, 0);
    sb_mem *mem = mem_on_host(&stage, 7);
    assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
    struct writer writer = {(CUdeviceptr)(uintptr_t)out, 3};
    launch(&stage, CU_STREAM_PER_THREAD, write_memory, &writer);
    host_holds(mem, 3);
    sb_mem_release(mem);
    stage_close(&stage);
}

/* Its bytes are on the device, and nobody has a pointer to them or has named a stream. */
static void push(struct stage *stage, sb_mem *mem, float *host, float value) {
    CUstream stream = stage_stream(stage, CU_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < BYTES / sizeof value; i++)
        host[i] = value;
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_context_forget_stream(stage->rig.context, (sb_stream)stream, &err));
    stage_stream_destroy(stage, stream);
}

static void write_per_thread(struct stage *stage, struct writer *writer, void *ptr) {
    writer->ptr = (CUdeviceptr)(uintptr_t)ptr;
    launch(stage, CU_STREAM_PER_THREAD, write_memory, writer);
}

/* Data, diff, or both are let out and written there. */
TEST(an_update_comes_after_per_thread_streams) {
    for (int which = 1; which <= 3; which++) {
        struct stage stage;
        struct writer writers[2] = {{0, 0x3F}, {0, 0x3F}};
        float *host, written;
        const float *x;
        void *data = NULL, *diff = NULL;
        sb_blob *blob;
        sb_mem *mem;
        memset(&written, 0x3F, sizeof written);
        stage_open(&stage, 0);
        assert_ok(sb_blob_create_legacy(stage.rig.context, SB_DTYPE_F32, BYTES / sizeof written, 1,
                                        1, 1, &blob, &err));
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &host, &err));
        push(&stage, data_of(blob), host, 4);
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DIFF, &host, &err));
        assert_ok(sb_blob_mutable_mem(blob, SB_DIFF, &mem, &err));
        push(&stage, mem, host, 1);
        assert_ok(sb_blob_update(blob, &err)); /* arithmetic is prepared; data is 3 */
        if (which & 1)
            assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &data, &err));
        if (which & 2)
            assert_ok(sb_blob_mutable_gpu(blob, SB_DIFF, &diff, &err));
        if (data)
            write_per_thread(&stage, &writers[0], data);
        if (diff)
            write_per_thread(&stage, &writers[1], diff);
        assert_ok(sb_blob_update(blob, &err));
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
        assert_true(x[9] == (data ? written : 3) - (diff ? written : 1));
        sb_blob_destroy(blob);
        stage_close(&stage);
    }
}

/* While a blocking stream is captured nobody can tell whether that work is over. */
TEST(a_free_comes_after_per_thread_streams) {
    for (size_t captures = 0; captures < 2; captures++) {
        struct stage stage;
        const void *in;
        stage_open(&stage, 0);
        CUstream captured = stage_stream(&stage, CU_STREAM_DEFAULT);
        sb_mem *mem = mem_on_host(&stage, 7);
        assert_ok(sb_mem_gpu(mem, &in, &err));
        struct reader reader = {(CUdeviceptr)(uintptr_t)in, 0};
        launch(&stage, CU_STREAM_PER_THREAD, read_memory, &reader);
        if (captures)
            begin_capture(&stage, captured);
        sb_mem_release(mem);
        assert_int_equal(rig_stats(&stage.rig).quarantined_bytes, captures * BYTES);
        if (captures)
            end_capture(&stage, captured);
        assert_ok(sb_context_synchronize(stage.rig.context, &err));
        assert_int_equal(rig_stats(&stage.rig).quarantined_bytes, 0);
        standin_drain();
        assert_int_equal(reader.found, 1);
        stage_stream_destroy(&stage, captured);
        stage_close(&stage);
    }
}

/* --- our own stream, captured ------------------------------------------------------------------
 */

/* Every call that would use it. */
static void assert_all_refused(struct stage *stage, sb_blob *blob, sb_stream own) {
    double sum;
    void *out;
    const void *in;
    sb_mem *fresh = mem_on_host(stage, 7);
    const sb_status told[] = {
        sb_blob_update(blob, &err),
        sb_blob_scale(blob, SB_DATA, 2, &err),
        sb_blob_update_on(blob, own, &err),
        sb_blob_asum(blob, SB_DATA, &sum, &err),
        sb_blob_sumsq(blob, SB_DATA, &sum, &err),
        sb_blob_clear(blob, SB_DATA, &err),
        sb_blob_cpu(blob, SB_DATA, &in, &err),
        sb_mem_gpu(fresh, &in, &err),
        sb_mem_mutable_gpu(fresh, &out, &err),
        sb_mem_gpu_on(fresh, own, &in, &err),
        sb_mem_async_gpu_push(fresh, own, &err),
        sb_context_synchronize(stage->rig.context, &err),
        sb_context_forget_stream(stage->rig.context, own, &err),
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i] != SB_ERR_UNSUPPORTED)
            fail_with("call %zu while our own stream is captured: %s", i, sb_status_name(told[i]));
    assert_int_equal(sb_mem_head(fresh), SB_HEAD_AT_CPU);
    sb_mem_release(fresh);
}

/* A plain pointer to the one was let out, none to the other: they are freed in other ways. */
static void free_both(struct stage *stage, sb_mem *let_out, sb_mem *pushed) {
    sb_mem_release(let_out);
    sb_mem_release(pushed);
    sb_context_trim(stage->rig.context);
}

/* Whoever has its handle may do so. Nothing of ours gets into the graph, nothing ends the capture,
   and what was freed meanwhile goes back afterwards. With and without pools; before arithmetic is
   prepared, and after. */
TEST(our_own_stream_may_be_captured) {
    for (int i = 0; i < 4; i++) {
        struct stage stage;
        sb_stream own;
        void *host;
        const float *x;
        standin_heal();
        standin_set(STANDIN_POOLS, i & 1);
        stage_open(&stage, SB_CONTEXT_NO_HOST_CACHE);
        sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
        step(data_of(blob), MUTABLE_GPU);
        sb_mem *let_out = mem_on_host(&stage, 7), *pushed = mem_on_host(&stage, 7);
        step(let_out, MUTABLE_GPU);
        assert_ok(sb_mem_overwrite_cpu(pushed, &host, &err));
        push(&stage, pushed, host, 1);
        if (i & 2)
            assert_ok(sb_blob_scale(blob, SB_DATA, 1, &err));
        assert_ok(sb_context_stream(stage.rig.context, &own, &err));
        assert_ok(sb_context_synchronize(stage.rig.context, &err));
        assert_ok(sb_context_forget_stream(stage.rig.context, own, &err));
        begin_capture(&stage, (CUstream)own);
        assert_all_refused(&stage, blob, own);
        free_both(&stage, let_out, pushed);
        assert_int_equal(sb_context_device_status(stage.rig.context), SB_OK);
        end_capture(&stage, (CUstream)own);
        assert_ok(sb_context_synchronize(stage.rig.context, &err));
        standin_drain();
        assert_int_equal(standin_live().blocks, 1);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
        assert_true(x[9] == 6);
        sb_blob_destroy(blob);
        stage_close(&stage);
    }
    standin_set(STANDIN_POOLS, 1);
}

/* Not only to its own context, which would wait for the stream once more. */
TEST(what_a_capture_kept_is_free_for_all_after_one_wait) {
    struct stage stage;
    sb_stats stats = SB_STATS_INIT;
    sb_stream own;
    sb_context *other;
    sb_mem *wanted;
    void *out;
    stage_open(&stage, SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(cuda_context("cuda:0", &other, &err));
    sb_mem *kept = mem_on_device(&stage, 4 * BYTES);
    assert_ok(sb_context_stream(stage.rig.context, &own, &err));
    assert_ok(sb_context_synchronize(stage.rig.context, &err));
    begin_capture(&stage, (CUstream)own);
    sb_mem_release(kept);
    assert_ok(sb_context_stats(stage.rig.context, &stats, &err));
    assert_int_equal(stats.quarantined_bytes, 4 * BYTES);
    end_capture(&stage, (CUstream)own);
    assert_ok(sb_context_synchronize(stage.rig.context, &err));
    standin_set(STANDIN_MEMORY, (int64_t)standin_live().mapped_bytes);
    assert_ok(sb_mem_create(other, 4 * BYTES, &wanted, &err));
    assert_ok(sb_mem_overwrite_gpu(wanted, &out, &err));
    standin_set(STANDIN_MEMORY, (int64_t)16 << 30);
    sb_mem_release(wanted);
    sb_context_release(other);
    stage_close(&stage);
}

struct capturer {
    struct pair *pair;
    CUstream own; /* of the other context */
};

static void capture_now(void *user) {
    const struct capturer *capturer = user;
    begin_capture(&capturer->pair->stage, capturer->own);
}

/* A context that lacks memory leaves the capture as it is, also one that begins in between. */
TEST(short_memory_ends_no_capture_of_another_context) {
    static const char *const before[] = {"cuMemAllocFromPoolAsync", "cuStreamSynchronize",
                                         "cuMemPoolTrimTo", "cuStreamQuery"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct pair pair;
        sb_stream own;
        open_pair(&pair);
        assert_ok(sb_context_stream(pair.other, &own, &err));
        assert_ok(sb_context_synchronize(pair.other, &err));
        struct capturer capturer = {&pair, (CUstream)own};
        standin_before(before[i], capture_now, &capturer);
        assert_ok(use(pair.stage.rig.context, 2 * BYTES, &err));
        end_capture(&pair.stage, (CUstream)own);
        close_pair(&pair);
    }
}

/* --- waits that fail ---------------------------------------------------------------------------
 */

/* Then nobody knows whether the work is over: what it uses is neither freed nor lost. */
TEST(memory_goes_after_a_wait_that_succeeds) {
    for (int pools = 0; pools < 2; pools++) {
        struct stage stage;
        struct reader reader;
        standin_set(STANDIN_POOLS, pools);
        stage_open(&stage, 0);
        CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
        sb_mem *mem = mem_in_use(&stage, stream, &reader);
        standin_fail("cuStreamSynchronize", 1, STANDIN_ALWAYS, CUDA_ERROR_UNKNOWN);
        sb_mem_release(mem);
        standin_fail(NULL, 0, STANDIN_NOW, 0);
        assert_true(pools || standin_live().blocks == 1);
        standin_drain();
        assert_int_equal(reader.found, 1);
        assert_ok(sb_context_synchronize(stage.rig.context, &err));
        standin_drain();
        assert_int_equal(standin_live().blocks, 0);
        stage_stream_destroy(&stage, stream);
        stage_close(&stage);
    }
}

/* Without pools, where a free waits. */
TEST(a_wait_that_fails_once_keeps_no_memory) {
    struct stage stage;
    standin_set(STANDIN_POOLS, 0);
    stage_open(&stage, 0);
    sb_mem *mem = mem_on_device(&stage, BYTES);
    assert_ok(sb_context_synchronize(stage.rig.context, &err));
    standin_fail("cuStreamSynchronize", 1, STANDIN_NOW, CUDA_ERROR_UNKNOWN);
    sb_mem_release(mem);
    assert_non_null(standin_fired());
    assert_int_equal(standin_live().blocks, 0);
    stage_close(&stage);
    standin_set(STANDIN_POOLS, 1);
}

/* What a sum downloads to, on the host: LeakSanitizer sees what is lost. */
TEST(a_sum_that_was_not_waited_for_loses_no_memory) {
    struct stage stage;
    double sum;
    stage_open(&stage, 0);
    sb_blob *blob = blob_on_device(stage.rig.context, 1000, 1);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    const struct sb__cuda_device *device = stage.rig.context->device;
    for (int waits = 0; waits < 2; waits++) {
        standin_fail("cuStreamSynchronize", 1, STANDIN_ALWAYS, CUDA_ERROR_UNKNOWN);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_asum(blob, SB_DATA, &sum, &err));
        standin_fail(NULL, 0, STANDIN_NOW, 0);
        assert_non_null(atomic_load(&device->kept.first));
        if (waits)
            assert_ok(sb_context_synchronize(stage.rig.context, &err));
        assert_true(!waits || !atomic_load(&device->kept.first));
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 1000);
    standin_fail("cuStreamSynchronize", 1, STANDIN_ALWAYS, CUDA_ERROR_UNKNOWN);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_asum(blob, SB_DATA, &sum, &err));
    standin_fail(NULL, 0, STANDIN_NOW, 0);
    sb_blob_destroy(blob);
    stage_close(&stage); /* which waits */
}

static void refuses_memory(sb_mem *mem, CUdeviceptr ptr, size_t bytes, const char *words) {
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_mem_set_gpu(mem, (void *)(uintptr_t)ptr, bytes, 0, NULL, NULL, &err));
    assert_non_null(strstr(err.message, words));
    assert_int_equal(err.device_code, 0);
}

/* In a context that the application made. */
static CUdeviceptr memory_of_another_context(CUcontext *out) {
    CUdeviceptr ptr;
    CUcontext old;
    assert_int_equal(cuCtxCreate_v2(out, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&ptr, BYTES), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    return ptr;
}

TEST(memory_of_another_context_is_refused) {
    struct stage stage;
    CUcontext context;
    stage_open(&stage, 0);
    sb_mem *mem = mem_on_host(&stage, 7);
    const CUdeviceptr ptr = memory_of_another_context(&context);
    refuses_memory(mem, ptr, BYTES, "is not of the primary context of cuda:0");
    sb_mem_release(mem);
    assert_int_equal(cuCtxPushCurrent(context), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(ptr), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy(context), CUDA_SUCCESS);
    stage_close(&stage);
}

TEST(what_is_another_devices_is_refused) {
    struct stage stage;
    struct rig other;
    const void *in;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "cuda:1";
    stage_open(&stage, 0);
    rig_open_options(&other, options);
    sb_stream stream;
    sb_mem *here = mem_on_host(&stage, 7), *there;
    assert_ok(sb_context_stream(other.context, &stream, &err));
    assert_status(SB_ERR_WRONG_DEVICE, sb_mem_gpu_on(here, stream, &in, &err));
    assert_int_equal(err.device_code, 0); /* no call of the driver's failed */
    assert_status(SB_ERR_UNSUPPORTED,
                  sb_mem_gpu_on(here, (sb_stream)CU_STREAM_PER_THREAD, &in, &err));
    assert_int_equal(err.device_code, 0);
    assert_ok(sb_mem_create(other.context, BYTES, &there, &err));
    assert_ok(sb_mem_gpu(there, &in, &err));
    refuses_memory(here, (CUdeviceptr)(uintptr_t)in, BYTES, "is no memory of cuda:0");
    refuses_memory(there, (CUdeviceptr)(uintptr_t)in + 1, BYTES, "bytes at 0x");
    sb_mem_release(there);
    sb_mem_release(here);
    rig_close(&other);
    stage_close(&stage);
}

TEST(blobs_are_copied_between_devices) {
    struct stage stage;
    struct rig other;
    const int64_t shape[] = {1000};
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_blob *a, *b;
    float *out;
    const float *in;
    const void *ptr;
    options.device = "cuda:1";
    stage_open(&stage, 0);
    rig_open_options(&other, options);
    assert_ok(sb_blob_create_shaped(stage.rig.context, SB_DTYPE_F32, shape, 1, &a, &err));
    assert_ok(sb_blob_create_shaped(other.context, SB_DTYPE_F32, shape, 1, &b, &err));
    assert_ok(sb_blob_overwrite_cpu_f32(a, SB_DATA, &out, &err));
    for (int i = 0; i < 1000; i++)
        out[i] = (float)i;
    assert_ok(sb_mem_gpu(data_of(a), &ptr, &err));
    assert_ok(sb_blob_copy_from(b, SB_DATA, a, 0, &err));
    assert_ok(sb_mem_gpu(data_of(b), &ptr, &err));
    assert_ok(sb_blob_cpu_f32(b, SB_DATA, &in, &err));
    for (int i = 0; i < 1000; i++)
        assert_true(in[i] == (float)i);
    sb_blob_destroy(a);
    sb_blob_destroy(b);
    rig_close(&other);
    stage_close(&stage);
}

/* --- a lost device --------------------------------------------------------------------------- */

/* cuBLAS may say the same of both. */
TEST(a_loss_is_told_from_short_memory) {
    struct stage stage;
    stage_open(&stage, 0);
    sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    standin_fail("cublasSscal_v2_64", 1, STANDIN_STICKY, BLAS_ALLOC_FAILED);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(blob, SB_DATA, 2, &err));
    sb_blob_destroy(blob);
    rig_close(&stage.rig);
    assert_int_equal(standin_violations(), 0);
    standin_heal();
}

TEST(a_loss_during_a_sum_is_told) {
    struct stage stage;
    double sum;
    stage_open(&stage, 0);
    sb_blob *blob = blob_on_device(stage.rig.context, 10, 3);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    standin_fail("cuStreamSynchronize", 1, STANDIN_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_int_equal(err.device_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    sb_blob_destroy(blob);
    rig_close(&stage.rig);
    assert_int_equal(standin_violations(), 0);
    standin_heal();
}

TEST(a_loss_leaves_current_host_bytes) {
    struct stage stage;
    const void *in;
    void *out;
    stage_open(&stage, 0);
    sb_mem *host = mem_on_host(&stage, 7), *device = mem_on_host(&stage, 8);
    step(host, GPU);
    step(device, MUTABLE_GPU);
    standin_fail("cuStreamSynchronize", 1, STANDIN_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_cpu(device, &in, &err));
    assert_int_equal(err.device_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(sb_context_device_status(stage.rig.context), SB_ERR_DEVICE_LOST);
    host_holds(host, 7);
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_mutable_gpu(host, &out, &err));
    sb_mem_release(host);
    sb_mem_release(device);
    rig_close(&stage.rig);
    assert_int_equal(standin_depth(), 0);
    assert_int_equal(standin_violations(), 0);
    standin_heal();
}
