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

static void host_holds(const sb_mem *mem, int fill) {
    const void *in;
    assert_ok(sb_mem_cpu(mem, &in, &err));
    assert_true(bytes_are(in, BYTES, fill));
}

static sb_blob *blob_on_host(sb_context *context, int64_t count, float value) {
    float *x;
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, count);
    assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &x, &err));
    for (int64_t i = 0; i < count; i++)
        x[i] = value;
    return blob;
}

static sb_blob *blob_on_device(sb_context *context, int64_t count, float value) {
    const void *in;
    sb_blob *blob = blob_on_host(context, count, value);
    assert_ok(sb_blob_gpu(blob, SB_DATA, &in, &err));
    return blob;
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

TEST_ON(stage, an_access_that_needs_no_transfer_makes_no_call) {
    sb_mem *mem = host_mem(f->context, BYTES, 7);
    step(mem, GPU);
    int64_t calls = fake_calls(NULL);
    step(mem, GPU);
    step(mem, CPU);
    assert_int_equal(fake_calls(NULL), calls);
    step(mem, MUTABLE_GPU);
    calls = fake_calls(NULL);
    step(mem, MUTABLE_GPU);
    assert_int_equal(fake_calls(NULL), calls);
}

TEST_ON(stage, the_current_context_is_not_pushed) {
    CUcontext old;
    sb_mem *mem = host_mem(f->context, BYTES, 7);
    assert_int_equal(cuCtxPushCurrent(f->primary), CUDA_SUCCESS);
    int64_t pushes = fake_calls("cuCtxPushCurrent_v2"), pops = fake_calls("cuCtxPopCurrent_v2");
    step(mem, MUTABLE_GPU);
    step(mem, CPU);
    assert_int_equal(fake_calls("cuCtxPushCurrent_v2"), pushes);
    assert_int_equal(fake_calls("cuCtxPopCurrent_v2"), pops);
    assert_int_equal(fake_depth(), 1);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
}

TEST_ON(stage, events_are_used_again) {
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = host_mem(f->context, BYTES, 7);
    int64_t created = 0;
    for (int i = 0; i < 100; i++) {
        assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
        step(mem, MUTABLE_CPU);
        if (i == 0)
            created = fake_calls("cuEventCreate");
    }
    assert_int_equal(fake_calls("cuEventCreate"), created);
    test_end(mem);
    sb_mem *many[100];
    for (int i = 0; i < 100; i++) {
        many[i] = host_mem(f->context, BYTES, 7);
        assert_ok(sb_mem_async_gpu_push(many[i], (sb_stream)stream, &err));
    }
    for (int i = 0; i < 100; i++)
        test_end(many[i]);
    assert_true(fake_live().events < 100); /* not all are kept */
}

/* --- the application's state ----------------------------------------------------------------- */

/* The caller's capture mode stays. */
static void use_everything(sb_context *context, CUstream stream) {
    double sum;
    const void *in;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    sb_blob *blob = blob_on_host(context, 1000, 0);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_ok(sb_mem_async_gpu_push(data_of(blob), (sb_stream)stream, &err));
    assert_ok(sb_mem_gpu_on(data_of(blob), (sb_stream)stream, &in, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_update(blob, &err));
    assert_ok(sb_blob_clear(blob, SB_DATA, &err));
    assert_ok(sb_context_forget_stream(context, (sb_stream)stream, &err));
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    test_end(blob);
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

/* Another thread may be capturing, by rules that a wait for the whole device breaks. The same of
   another device, whose context of the driver comes and goes. */
TEST_ON(stage, closing_leaves_a_capture_alone) {
    double sum;
    CUstream captured = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_context *other = another_context("cuda:0");
    sb_blob *blob = blob_on_device(other, 1, 0);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    test_end(blob);
    begin_capture(f, captured);
    test_end(other);
    for (int64_t nth = 1; nth < 8; nth++) { /* also where a call that keeps it from harm fails */
        other = another_context("cuda:1");
        fake_fail("cuThreadExchangeStreamCaptureMode", nth, FAKE_NOW, CUDA_ERROR_UNKNOWN);
        test_end(other);
        fake_fail(NULL, 0, FAKE_NOW, 0);
    }
    end_capture(f, captured);
}

/* And run each kernel once before the first use, not each of them. */
TEST_ON(stage, contexts_of_a_device_share_a_handle) {
    int64_t handles = 0;
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 3; i++) {
        const int64_t launches = fake_calls("cuLaunchKernel");
        sb_context *here = another_context("cuda:0"), *there = another_context("cuda:1");
        use_everything(here, stream);
        assert_true(i == 0 || fake_calls("cuLaunchKernel") == launches + 2);
        assert_ok(sb__device_prepare_arithmetic(there, &err));
        test_end(here);
        test_end(there);
        if (i == 0)
            handles = fake_calls("cublasCreate_v2");
        assert_int_equal(fake_calls("cublasCreate_v2"), handles);
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

TEST_ON(stage, devices_without_pools_work) {
    stage_reopen(f, 0, 0);
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    use_everything(f->context, stream);
    assert_int_equal(fake_live().pools, 0);
}

TEST_ON(stage, a_pool_is_our_own) {
    (void)device_mem(f->context, BYTES);
    assert_int_equal(fake_live().pools, 1);
    assert_int_equal(fake_calls("cuMemAllocAsync"), 0);
}

/* Of devices: by pools, and by kernels that were loaded. */
static size_t kept_bytes(void) {
    return fake_live().mapped_bytes - fake_live().device_bytes;
}

/* However much is in use: a pool whose threshold is below that unmaps what is free at every wait.
 */
TEST_ON(stage, a_wait_keeps_what_is_free) {
    size_t kept = kept_bytes();
    sb_mem *used = device_mem(f->context, (size_t)300 << 20),
           *freed = device_mem(f->context, BYTES);
    int64_t unmapped = fake_live().unmapped;
    test_end(freed);
    assert_ok(sb_context_synchronize(f->context, &err));
    freed = device_mem(f->context, BYTES);
    test_end(freed);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_int_equal(fake_live().unmapped, unmapped);
    sb_context_trim(f->context);
    assert_int_equal(kept_bytes(), kept);
    test_end(used);
    sb_context_trim(f->context);
    assert_int_equal(kept_bytes(), kept);
}

/* A gate that opens when it has been asked for a while. */
static bool opens_later(void *user) {
    return ++*(int *)user > 100;
}

/* What is freed may not have been freed yet, or in pieces that are too small. */
TEST_ON(stage, short_memory_is_asked_of_the_pool) {
    int asked = 0;
    void *out;
    limit_memory(2 * BYTES);
    sb_mem *one = device_mem(f->context, BYTES), *other = device_mem(f->context, BYTES);
    sb_mem *large = test_mem(f->context, 2 * BYTES);
    test_end(one);
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_mem_overwrite_gpu(large, &out, &err));
    assert_non_null(strstr(err.message, "cuMemAllocFromPoolAsync: "));
    assert_int_equal(fake_gate(f->primary, (CUstream)f->context->stream, opens_later, &asked, 0, 0),
                     CUDA_SUCCESS);
    test_end(other);
    assert_ok(sb_mem_overwrite_gpu(large, &out, &err));
    assert_int_equal(sb_context_device_status(f->context), SB_OK);
}

static void count_run(void *user) {
    ++*(int *)user;
}

static void launch(struct stage *stage, CUstream stream, void (*kernel)(void *user), void *user) {
    CUcontext old;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(fake_launch(stream, kernel, user), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
}

TEST_ON(stage, closing_waits_for_queued_work) {
    sb_stream own;
    int ran = 0;
    sb_context *context = another_context("cuda:0");
    assert_ok(sb_context_stream(context, &own, &err));
    launch(f, (CUstream)own, count_run, &ran);
    test_end(context); /* and nothing else, which might wait */
    assert_int_equal(ran, 1);
}

struct reader {
    CUdeviceptr ptr;
    int found;
};

static void read_memory(void *user) {
    struct reader *reader = user;
    reader->found = fake_address(reader->ptr, BYTES) != NULL;
}

/* Memory of the device that a kernel on the stream will read. */
static sb_mem *mem_in_use(struct stage *stage, CUstream stream, struct reader *reader) {
    const void *in;
    sb_mem *mem = host_mem(stage->context, BYTES, 7);
    assert_ok(sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    *reader = (struct reader){(CUdeviceptr)(uintptr_t)in, 0};
    launch(stage, stream, read_memory, reader);
    return mem;
}

/* With a pool and without, memory goes after the work of the streams that used it. */
TEST_ON(stage, a_free_comes_after_its_users) {
    for (int pools = 0; pools < 2; pools++) {
        struct reader reader;
        stage_reopen(f, pools, 0);
        CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
        sb_mem *mem = mem_in_use(f, stream, &reader);
        test_end(mem);
        assert_ok(sb_context_forget_stream(f->context, (sb_stream)stream, &err));
        assert_int_equal(reader.found, 1);
    }
}

/* --- memory is short ------------------------------------------------------------------------- */

static void assert_update_fails(struct stage *stage, sb_blob *blob) {
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_update(blob, &err));
    assert_int_equal(sb_context_device_status(stage->context), SB_OK);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_SYNCED);
}

/* Kernels are loaded at their first launch. */
TEST_ON(stage, arithmetic_that_cannot_load_its_kernels_loses_nothing) {
    const void *in;
    const float *x;
    double sum;
    sb_blob *blob = blob_on_device(f->context, 10, 3);
    assert_ok(sb_blob_gpu(blob, SB_DIFF, &in, &err));
    for (size_t kernels = 0; kernels < 3; kernels++) { /* with memory for some more, of eight */
        size_t left = kernels * FAKE_KERNEL_BYTES + 512;
        limit_memory(left);
        assert_update_fails(f, blob);
        fake_set(FAKE_MEMORY, ALL_MEMORY);
    }
    test_end(device_mem(f->context, 16 * FAKE_KERNEL_BYTES)); /* the pool keeps it */
    limit_memory(0);
    assert_ok(sb_blob_update(blob, &err));
    limit_memory(0);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 60);
    assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
    assert_ok(sb_blob_update(blob, &err));
    fake_set(FAKE_MEMORY, ALL_MEMORY);
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
    assert_true(x[9] == 6);
}

/* Where the driver cannot compile, that is no failure of the device, and no handle is left. */
TEST_ON(stage, arithmetic_without_a_compiler_is_unsupported) {
    static const CUresult codes[] = {
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU};
    double sum;
    sb_blob *blob = blob_on_device(f->context, 1000, 1);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fake_fail("cuModuleLoadData", 1, FAKE_NOW, codes[i]);
        assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_int_equal(err.device_code, codes[i]);
        assert_ok(sb_context_device_status(f->context));
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 1000);
}

/* Short memory, a kernel that the device does not have, a capture that another thread begins after
   the stream was asked, or a failure before the launch that passes. */
TEST_ON(stage, arithmetic_that_queued_nothing_loses_nothing) {
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
    const float *x;
    int64_t failures = 0;
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_blob *blob = blob_on_device(f->context, 10, 3);
    assert_ok(sb_blob_update(blob, &err));
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++)
        for (int64_t nth = 1, fired = 1; fired; nth++) {
            const char *launch = i % 2 ? "cublasSscal_v2_64" : "cublasSaxpy_v2_64";
            const int64_t before = fake_calls(launch);
            fake_fail(rows[i / 2].function, nth, FAKE_NOW, rows[i / 2].error);
            sb_status st = i % 2 ? sb_blob_scale_on(blob, SB_DATA, 1, (sb_stream)stream, &err)
                                 : sb_blob_update_on(blob, (sb_stream)stream, &err);
            fired = fake_fired() != NULL;
            const bool launched = fake_calls(launch) > before;
            if (st != SB_OK || !launched) /* what could not be marked by an event is waited for */
                assert_int_equal(st, fired ? rows[i / 2].told : SB_OK);
            assert_int_equal(sb_context_device_status(f->context), SB_OK);
            failures += fired;
        }
    fake_fail(NULL, 0, FAKE_NOW, 0);
    assert_true(failures > 10); /* launches once, the others in both operations */
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
    assert_true(x[9] == 6);
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
    return sb_context_synchronize(stage->context, err);
}

/* The core treats the failure of a wait as one of arithmetic, which writes in place. But a wait
   that cannot begin has reported nothing. */
TEST_ON(stage, a_passing_failure_before_a_wait_loses_nothing) {
    static const char *const calls[] = {"cuCtxGetCurrent", "cuCtxPushCurrent_v2",
                                        "cuThreadExchangeStreamCaptureMode", "cuStreamIsCapturing"};
    static sb_status (*const waits[])(struct stage * stage, sb_blob * blob,
                                      sb_error * err) = {read_back, clear, synchronize};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            sb_stream own;
            void *out;
            stage_reopen(f, true, 0);
            assert_ok(sb_context_stream(f->context, &own, &err));
            sb_blob *blob = blob_on_device(f->context, 10, 3);
            bool fired = true;
            for (int64_t nth = 1; fired; nth++) {
                assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
                assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
                fake_fail(calls[k], nth, FAKE_NOW, CUDA_ERROR_UNKNOWN);
                (void)waits[i](f, blob, &err);
                fired = fake_fired() != NULL;
                fake_fail(NULL, 0, FAKE_NOW, 0);
                if (sb_context_device_status(f->context) != SB_OK)
                    fail_with("%s lost the device in wait %zu", calls[k], i);
            }
        }
}

/* Nothing is queued where a capture forbids it, and a call of cuBLAS that fails is no reason to end
   one. */
TEST_ON(stage, arithmetic_beside_a_capture_loses_nothing) {
    static const unsigned int flags[] = {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT};
    for (int i = 0; i < 2; i++) {
        double sum;
        stage_reopen(f, true, 0);
        CUstream captured = stage_stream(f, flags[i]);
        sb_blob *blob = blob_on_device(f->context, 10, 3);
        begin_capture(f, captured);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err)); /* kernels are loaded */
        if (flags[i] == CU_STREAM_DEFAULT) /* which the legacy default stream waits for */
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale_on(blob, SB_DATA, 2, NULL, &err));
        fake_fail("cublasSscal_v2_64", 1, FAKE_NOW, BLAS_ALLOC_FAILED);
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_context_device_status(f->context));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 60);
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
        assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL); /* as before */
        end_capture(f, captured);
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

static void pair_open(struct pair *pair) {
    stage_open_on(&pair->stage, true, SB_CONTEXT_NO_HOST_CACHE);
    pair->other = another_context("cuda:0");
    pair->elsewhere = another_context("cuda:1");
    pair->used = device_mem(pair->other, BYTES);
    test_end(device_mem(pair->other, 2 * BYTES));
    test_end(device_mem(pair->elsewhere, 2 * BYTES));
    assert_ok(sb_context_synchronize(pair->elsewhere, &err));
    limit_memory(0);
}

static void pair_close(struct pair *pair) {
    stage_close(&pair->stage);
}

static void pair_reopen(struct pair *pair) {
    pair_close(pair);
    pair_open(pair);
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

TEST_ON(pair, short_memory_is_asked_of_other_contexts) {
    assert_ok(use(f->stage.context, 2 * BYTES, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, use(f->stage.context, 3 * BYTES, &err));
    assert_ok(use(f->other, 2 * BYTES, &err)); /* the other way round */
}

/* Kernels and the handle are no memory of a pool. cuBLAS may tell the lack in its own way. */
TEST_ON(pair, short_memory_for_kernels_is_asked_of_other_contexts) {
    for (int says_so = 1; says_so >= 0; says_so--) {
        pair_reopen(f);
        sb_mem *freed[16];
        fake_set(FAKE_MEMORY, ALL_MEMORY);
        for (int i = 0; i < 16; i++)
            freed[i] = device_mem(f->other, FAKE_KERNEL_BYTES);
        for (int i = 0; i < 16; i++)
            test_end(freed[i]);
        limit_memory(0);
        fake_fail("cublasCreate_v2", 1, FAKE_NOW, says_so ? BLAS_ALLOC_FAILED : BLAS_INTERNAL);
        assert_ok(sb__device_prepare_arithmetic(f->stage.context, &err));
        assert_non_null(fake_fired());
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

TEST_ON(pair, contexts_come_and_go_while_memory_is_short) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    limit_memory(4 * BYTES);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fine;
        assert_int_equal(pthread_join(threads[i], &fine), 0);
        assert_non_null(fine);
    }
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
TEST_ON(stage, a_sum_holds_up_no_arithmetic) {
    struct gate gate = {.end = time(NULL) + 20};
    sb_stream own;
    pthread_t thread;
    void *right;
    sb_context *other = another_context("cuda:0");
    assert_ok(sb_context_stream(other, &own, &err));
    sb_blob *here = blob_on_device(f->context, 10, 3), *there = blob_on_device(other, 10, 3);
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    assert_ok(sb_blob_scale(there, SB_DATA, 1, &err));
    assert_ok(sb_context_synchronize(other, &err));
    assert_int_equal(fake_gate(f->primary, (CUstream)own, passes, &gate, 0, 0), CUDA_SUCCESS);
    const int64_t waits = fake_calls("cuStreamSynchronize");
    assert_int_equal(pthread_create(&thread, NULL, add_up, there), 0);
    while (fake_calls("cuStreamSynchronize") == waits)
        (void)sched_yield();
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    assert_true(time(NULL) <= gate.end);
    atomic_store(&gate.is_open, true);
    assert_int_equal(pthread_join(thread, &right), 0);
    assert_ptr_equal(right, there);
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
TEST_ON(pair, short_memory_waits_for_no_other_context) {
    struct gate gate = {.end = time(NULL) + 20};
    assert_ok(sb_context_synchronize(f->other, &err));
    assert_int_equal(fake_gate(f->stage.primary, (CUstream)f->other->stream, passes, &gate, 0, 0),
                     CUDA_SUCCESS);
    test_end(f->used);
    assert_ok(use_inside(f->stage.context, 2 * BYTES, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, use_inside(f->stage.context, 3 * BYTES, &err));
    assert_true(time(NULL) <= gate.end);
    atomic_store(&gate.is_open, true);
    assert_ok(use_inside(f->stage.context, 3 * BYTES, &err));
}

/* --- streams --------------------------------------------------------------------------------- */

/* It may find out, where it does not crash. */
TEST_ON(stage, the_drivers_word_on_a_stream_is_handed_on) {
    static const struct {
        CUresult code;
        sb_status status;
    } rows[] = {{CUDA_ERROR_INVALID_HANDLE, SB_ERR_WRONG_DEVICE},
                {CUDA_ERROR_UNKNOWN, SB_ERR_DEVICE_FAILURE}};
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_mem *mem = host_mem(f->context, BYTES, 7);
    for (int i = 0; i < 2; i++) {
        const void *in;
        fake_fail("cuStreamGetCtx", 1, FAKE_NOW, rows[i].code);
        assert_status(rows[i].status, sb_mem_gpu_on(mem, (sb_stream)stream, &in, &err));
        assert_int_equal(err.device_code, rows[i].code);
    }
}

/* By cudaSetDeviceFlags. Waits for streams follow the flags of the context, waits for events those
   of the event. */
TEST_ON(stage, waits_block_where_the_application_wants_it) {
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_context *blocking = another_context("cuda:0");
    sb_mem *mem = host_mem(blocking, BYTES, 7);
    const int64_t waits = fake_calls("cuEventSynchronize");
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(fake_calls("cuEventSynchronize") > waits);
    test_end(mem);
    test_end(blocking);
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO), CUDA_SUCCESS);
}

/* --- devices --------------------------------------------------------------------------------- */

struct writer {
    CUdeviceptr ptr;
    int value;
};

static void write_memory(void *user) {
    const struct writer *writer = user;
    void *at = fake_address(writer->ptr, BYTES);
    if (at)
        memset(at, writer->value, BYTES);
}

/* Its bytes are on the device, and nobody has a pointer to them or has named a stream. */
static void push(struct stage *stage, sb_mem *mem, float *host, float value) {
    CUstream stream = stage_stream(stage, CU_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < BYTES / sizeof value; i++)
        host[i] = value;
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_context_forget_stream(stage->context, (sb_stream)stream, &err));
    test_end(stream);
}

static void write_per_thread(struct stage *stage, struct writer *writer, void *ptr) {
    writer->ptr = (CUdeviceptr)(uintptr_t)ptr;
    launch(stage, CU_STREAM_PER_THREAD, write_memory, writer);
}

/* The caller holds pointers to data, diff or both, and writes there. */
TEST_ON(stage, an_update_comes_after_per_thread_streams) {
    for (int which = 1; which <= 3; which++) {
        struct writer writers[2] = {{0, 0x3F}, {0, 0x3F}};
        float *host, written;
        const float *x;
        void *data = NULL, *diff = NULL;
        memset(&written, 0x3F, sizeof written);
        stage_reopen(f, true, 0);
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, BYTES / sizeof written);
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DATA, &host, &err));
        push(f, data_of(blob), host, 4);
        assert_ok(sb_blob_overwrite_cpu_f32(blob, SB_DIFF, &host, &err));
        push(f, diff_of(blob), host, 1);
        assert_ok(sb_blob_update(blob, &err)); /* arithmetic is prepared; data is 3 */
        if (which & 1)
            assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &data, &err));
        if (which & 2)
            assert_ok(sb_blob_mutable_gpu(blob, SB_DIFF, &diff, &err));
        if (data)
            write_per_thread(f, &writers[0], data);
        if (diff)
            write_per_thread(f, &writers[1], diff);
        assert_ok(sb_blob_update(blob, &err));
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
        assert_true(x[9] == (data ? written : 3) - (diff ? written : 1));
    }
}

/* While a blocking stream is captured nobody can tell whether that work is over. */
TEST_ON(stage, a_free_comes_after_per_thread_streams) {
    for (size_t captures = 0; captures < 2; captures++) {
        const void *in;
        stage_reopen(f, true, 0);
        CUstream captured = stage_stream(f, CU_STREAM_DEFAULT);
        sb_mem *mem = host_mem(f->context, BYTES, 7);
        assert_ok(sb_mem_gpu(mem, &in, &err));
        struct reader reader = {(CUdeviceptr)(uintptr_t)in, 0};
        launch(f, CU_STREAM_PER_THREAD, read_memory, &reader);
        if (captures)
            begin_capture(f, captured);
        test_end(mem);
        assert_int_equal(rig_stats(&f->rig).quarantined_bytes, captures * BYTES);
        if (captures)
            end_capture(f, captured);
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_int_equal(rig_stats(&f->rig).quarantined_bytes, 0);
        fake_drain();
        assert_int_equal(reader.found, 1);
    }
}

/* --- our own stream, captured ------------------------------------------------------------------
 */

/* Every call that would use it. */
static void assert_all_refused(struct stage *stage, sb_blob *blob, sb_stream own) {
    double sum;
    void *out;
    const void *in;
    sb_mem *fresh = host_mem(stage->context, BYTES, 7);
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
        sb_context_synchronize(stage->context, &err),
        sb_context_forget_stream(stage->context, own, &err),
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i] != SB_ERR_UNSUPPORTED)
            fail_with("call %zu while our own stream is captured: %s", i, sb_status_name(told[i]));
    assert_int_equal(sb_mem_head(fresh), SB_HEAD_AT_CPU);
    test_end(fresh);
}

/* The caller holds a plain pointer to one memory and none to the other: they are freed differently.
 */
static void free_both(struct stage *stage, sb_mem *let_out, sb_mem *pushed) {
    test_end(let_out);
    test_end(pushed);
    sb_context_trim(stage->context);
}

/* A caller with its handle may capture it. No work of the library gets into the graph, the capture
   stays valid, and memory that is retired meanwhile is freed afterwards. With and without pools;
   before arithmetic is prepared, and after. */
TEST_ON(stage, our_own_stream_may_be_captured) {
    for (int i = 0; i < 4; i++) {
        sb_stream own;
        void *host;
        const float *x;
        stage_reopen(f, i & 1, SB_CONTEXT_NO_HOST_CACHE);
        sb_blob *blob = blob_on_device(f->context, 10, 3);
        step(data_of(blob), MUTABLE_GPU);
        sb_mem *let_out = host_mem(f->context, BYTES, 7), *pushed = host_mem(f->context, BYTES, 7);
        step(let_out, MUTABLE_GPU);
        assert_ok(sb_mem_overwrite_cpu(pushed, &host, &err));
        push(f, pushed, host, 1);
        if (i & 2)
            assert_ok(sb_blob_scale(blob, SB_DATA, 1, &err));
        assert_ok(sb_context_stream(f->context, &own, &err));
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_ok(sb_context_forget_stream(f->context, own, &err));
        begin_capture(f, (CUstream)own);
        assert_all_refused(f, blob, own);
        free_both(f, let_out, pushed);
        assert_int_equal(sb_context_device_status(f->context), SB_OK);
        end_capture(f, (CUstream)own);
        assert_ok(sb_context_synchronize(f->context, &err));
        fake_drain();
        assert_int_equal(fake_live().blocks, 1);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &x, &err));
        assert_true(x[9] == 6);
    }
}

/* Not only to its own context, which would wait for the stream once more. */
TEST_ON(stage, what_a_capture_kept_is_free_for_all_after_one_wait) {
    sb_stream own;
    stage_reopen(f, true, SB_CONTEXT_NO_HOST_CACHE);
    sb_context *other = another_context("cuda:0");
    sb_mem *kept = device_mem(f->context, 4 * BYTES);
    assert_ok(sb_context_stream(f->context, &own, &err));
    assert_ok(sb_context_synchronize(f->context, &err));
    begin_capture(f, (CUstream)own);
    test_end(kept);
    assert_int_equal(rig_stats(&f->rig).quarantined_bytes, 4 * BYTES);
    end_capture(f, (CUstream)own);
    assert_ok(sb_context_synchronize(f->context, &err));
    limit_memory(0);
    (void)device_mem(other, 4 * BYTES);
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
TEST_ON(pair, short_memory_ends_no_capture_of_another_context) {
    static const char *const before[] = {"cuMemAllocFromPoolAsync", "cuStreamSynchronize",
                                         "cuMemPoolTrimTo", "cuStreamQuery"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        sb_stream own;
        pair_reopen(f);
        assert_ok(sb_context_stream(f->other, &own, &err));
        assert_ok(sb_context_synchronize(f->other, &err));
        struct capturer capturer = {f, (CUstream)own};
        fake_before(before[i], capture_now, &capturer);
        assert_ok(use(f->stage.context, 2 * BYTES, &err));
        end_capture(&f->stage, (CUstream)own);
    }
}

/* --- waits that fail ---------------------------------------------------------------------------
 */

/* Then nobody knows whether the work is over: what it uses is neither freed nor lost. */
TEST_ON(stage, memory_goes_after_a_wait_that_succeeds) {
    for (int pools = 0; pools < 2; pools++) {
        struct reader reader;
        stage_reopen(f, pools, 0);
        CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
        sb_mem *mem = mem_in_use(f, stream, &reader);
        fake_fail("cuStreamSynchronize", 1, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN);
        test_end(mem);
        fake_fail(NULL, 0, FAKE_NOW, 0);
        assert_true(pools || fake_live().blocks == 1);
        fake_drain();
        assert_int_equal(reader.found, 1);
        assert_ok(sb_context_synchronize(f->context, &err));
        fake_drain();
        assert_int_equal(fake_live().blocks, 0);
    }
}

/* Without pools, where a free waits. */
TEST_ON(stage, a_wait_that_fails_once_keeps_no_memory) {
    stage_reopen(f, 0, 0);
    sb_mem *mem = device_mem(f->context, BYTES);
    assert_ok(sb_context_synchronize(f->context, &err));
    fake_fail("cuStreamSynchronize", 1, FAKE_NOW, CUDA_ERROR_UNKNOWN);
    test_end(mem);
    assert_non_null(fake_fired());
    assert_int_equal(fake_live().blocks, 0);
}

/* What a sum downloads to, on the host: LeakSanitizer sees what is lost. */
TEST_ON(stage, a_sum_that_was_not_waited_for_loses_no_memory) {
    double sum;
    sb_blob *blob = blob_on_device(f->context, 1000, 1);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    const struct sb__cuda_device *device = f->context->device;
    for (int waits = 0; waits < 2; waits++) {
        fake_fail("cuStreamSynchronize", 1, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_asum(blob, SB_DATA, &sum, &err));
        fake_fail(NULL, 0, FAKE_NOW, 0);
        assert_non_null(atomic_load(&device->kept.first));
        if (waits)
            assert_ok(sb_context_synchronize(f->context, &err));
        assert_true(!waits || !atomic_load(&device->kept.first));
    }
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 1000);
    fake_fail("cuStreamSynchronize", 1, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN);
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_asum(blob, SB_DATA, &sum, &err));
    fake_fail(NULL, 0, FAKE_NOW, 0);
    /* closing waits */
}

/* --- a lost device --------------------------------------------------------------------------- */

/* cuBLAS may say the same of both. */
TEST_ON(stage, a_loss_is_told_from_short_memory) {
    sb_blob *blob = blob_on_device(f->context, 10, 3);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    fake_fail("cublasSscal_v2_64", 1, FAKE_STICKY, BLAS_ALLOC_FAILED);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(blob, SB_DATA, 2, &err));
}

TEST_ON(stage, a_loss_during_a_sum_is_told) {
    double sum;
    sb_blob *blob = blob_on_device(f->context, 10, 3);
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    fake_fail("cuStreamSynchronize", 1, FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_int_equal(err.device_code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_ON(stage, a_loss_leaves_current_host_bytes) {
    const void *in;
    void *out;
    sb_mem *host = host_mem(f->context, BYTES, 7), *device = host_mem(f->context, BYTES, 8);
    step(host, GPU);
    step(device, MUTABLE_GPU);
    fake_fail("cuStreamSynchronize", 1, FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_cpu(device, &in, &err));
    assert_int_equal(err.device_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(sb_context_device_status(f->context), SB_ERR_DEVICE_LOST);
    host_holds(host, 7);
    assert_status(SB_ERR_DEVICE_LOST, sb_mem_mutable_gpu(host, &out, &err));
}
