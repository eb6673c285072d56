/* Tests that the backend follows the driver's rules. */
#include "fixture.h"

#include "context/context.h"
#include "device.h"

#include "../../survival/threads/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define BYTES             ((size_t)4096)
#define BLAS_ALLOC_FAILED 3  /* CUBLAS_STATUS_ALLOC_FAILED */
#define BLAS_INTERNAL     14 /* CUBLAS_STATUS_INTERNAL_ERROR */

#define cu_ok(call)                                                                                \
    do {                                                                                           \
        CUcontext old_;                                                                            \
        assert_int_equal(cuCtxPushCurrent(f->primary), CUDA_SUCCESS);                              \
        assert_int_equal(call, CUDA_SUCCESS);                                                      \
        assert_int_equal(cuCtxPopCurrent(&old_), CUDA_SUCCESS);                                    \
    } while (0)

static sb_blob *blob_on_device(sb_context *context, int64_t count, double value) {
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, count);
    fill_values(SB_DTYPE_F32, count, value, 0, blob_pointer(blob, SB_DATA, OVERWRITE_CPU));
    (void)blob_pointer(blob, SB_DATA, GPU_DATA);
    return blob;
}

TEST_ON(stage, events_are_reused) {
    enum { MANY = 100 }; /* more events than the cache holds */
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    for (int round = 0; round < 2; round++) {
        sb_mem *mems[MANY];
        const int64_t created = fake_calls("cuEventCreate");
        for (int i = 0; i < MANY; i++) {
            mems[i] = test_filled(f->context, BYTES, 7);
            assert_ok(sb_mem_async_gpu_push(mems[i], (sb_stream)stream, &err));
        }
        for (int i = 0; i < MANY; i++)
            test_end(mems[i]);
        assert_true(fake_live().events < MANY);
        assert_true(!round || fake_calls("cuEventCreate") - created < MANY);
    }
}

static void begin_capture(struct stage *f, CUstream stream) {
    cu_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void end_capture(struct stage *f, CUstream stream) {
    CUgraph graph;
    size_t nodes = 99;
    cu_ok(cuStreamEndCapture(stream, &graph));
    cu_ok(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    cu_ok(cuGraphDestroy(graph));
}

/* Creating or destroying another device's primary context would invalidate the capture. */
TEST_ON(stage, closing_leaves_a_capture_alone) {
    CUstream captured = stage_stream(f, CU_STREAM_NON_BLOCKING);
    begin_capture(f, captured);
    for (int64_t nth = 1; nth < 8; nth++) { /* the call that protects the capture fails */
        sb_context *other = test_context_on("cuda:1");
        fake_fail("cuThreadExchangeStreamCaptureMode", nth, FAKE_NOW, CUDA_ERROR_UNKNOWN);
        test_end(other);
        fake_fail(NULL, 0, FAKE_NOW, 0);
    }
    end_capture(f, captured);
}

TEST_ON(stage, contexts_of_a_device_share_a_handle) {
    int64_t launches[2], handles[2];
    for (int i = 0; i < 3; i++) {
        sb_context *here = test_context_on("cuda:0"), *there = test_context_on("cuda:1");
        assert_ok(sb_context_prepare_arithmetic(here, &err));
        assert_ok(sb_context_prepare_arithmetic(there, &err));
        test_end(here);
        test_end(there);
        launches[i > 0] = fake_calls("cuLaunchKernel");
        handles[i > 0] = fake_calls("cublasCreate_v2");
    }
    assert_int_equal(launches[1], launches[0]);
    assert_int_equal(handles[1], handles[0]);
}

static size_t kept_bytes(void) {
    return fake_live().mapped_bytes - fake_live().device_bytes;
}

/* A pool above its release threshold unmaps free memory at every wait. */
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

struct reader {
    CUdeviceptr ptr;
    int found;
};

static void read_memory(void *user) {
    struct reader *reader = user;
    reader->found = fake_address(reader->ptr, BYTES) != NULL;
}

/* Without pools, a free waits for all streams that used the memory. */
TEST_ON(stage, a_free_comes_after_its_users) {
    enum { NEVER, ONCE, ALWAYS };
    for (int i = 0; i < 6; i++) {
        const bool pools = i & 1;
        const int fails = i / 2;
        stage_reopen(f, pools, 0);
        CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
        sb_mem *mem = test_filled(f->context, BYTES, 7);
        const void *in = mem_pointer_on(mem, GPU_DATA_ON, (sb_stream)stream);
        assert_ok(sb_mem_synchronize(mem, &err));
        struct reader reader = {(CUdeviceptr)(uintptr_t)in, 0};
        cu_ok(fake_launch(stream, read_memory, &reader));
        if (fails)
            fake_fail("cuStreamSynchronize", 1, fails == ONCE ? FAKE_NOW : FAKE_ALWAYS,
                      CUDA_ERROR_UNKNOWN);
        test_end(mem);
        fake_fail(NULL, 0, FAKE_NOW, 0);
        assert_true(pools || fake_live().blocks == (fails == ALWAYS));
        if (fails != ALWAYS)
            assert_ok(sb_context_forget_stream(f->context, (sb_stream)stream, &err));
        fake_drain();
        assert_int_equal(reader.found, 1);
        assert_ok(sb_context_synchronize(f->context, &err));
        fake_drain();
        assert_int_equal(fake_live().blocks, 0);
    }
}

/* The first launch of a kernel loads the kernel, which needs device memory. */
TEST_ON(stage, arithmetic_without_memory_for_kernels_loses_nothing) {
    double sum;
    sb_blob *blob = blob_on_device(f->context, 10, 3);
    (void)blob_pointer(blob, SB_DIFF, GPU_DATA);
    for (size_t kernels = 0; kernels < 3; kernels++) { /* memory for 0, 1 or 2 of the 8 kernels */
        limit_memory(kernels * FAKE_KERNEL_BYTES + 512);
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_update(blob, &err));
        assert_int_equal(sb_context_device_status(f->context), SB_OK);
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_SYNCED);
        fake_set(FAKE_MEMORY, ALL_MEMORY);
    }
    assert_ok(sb_blob_update(blob, &err));
    limit_memory(0);
    assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_true(sum == 60);
    fake_set(FAKE_MEMORY, ALL_MEMORY);
    const float *x = blob_pointer(blob, SB_DATA, CPU_DATA);
    assert_true(x[9] == 6);
}

/* A failing call of cuBLAS does not end a capture. */
TEST_ON(stage, arithmetic_beside_a_capture_loses_nothing) {
    static const unsigned int flags[] = {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT};
    for (int i = 0; i < 2; i++) {
        double sum;
        stage_reopen(f, true, 0);
        CUstream captured = stage_stream(f, flags[i]);
        sb_blob *blob = blob_on_device(f->context, 10, 3);
        begin_capture(f, captured);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err)); /* the kernels are already loaded */
        if (flags[i] == CU_STREAM_DEFAULT) /* the legacy stream waits for a blocking stream */
            assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale_on(blob, SB_DATA, 2, NULL, &err));
        fake_fail("cublasSscal_v2_64", 1, FAKE_NOW, BLAS_ALLOC_FAILED);
        assert_status(SB_ERR_OUT_OF_MEMORY, sb_blob_scale(blob, SB_DATA, 2, &err));
        assert_ok(sb_context_device_status(f->context));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 60);
        end_capture(f, captured);
    }
}

/* Two contexts of one device, and one context of another device. All but the first context keep
   freed memory, and no other memory is free. */
struct pair {
    struct stage stage;
    sb_context *other, *elsewhere;
    sb_mem *used;
};

static void pair_open(struct pair *pair) {
    stage_open_on(&pair->stage, true, SB_CONTEXT_NO_HOST_CACHE);
    pair->other = test_context_on("cuda:0");
    pair->elsewhere = test_context_on("cuda:1");
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

/* The caller gets no pointer, so the library does not wait for default streams. */
static sb_status use(sb_context *context, size_t bytes, sb_error *err) {
    void *device = context->device, *ptr;
    const sb_status st = sb__cuda_backend.alloc(device, bytes, context->stream, &ptr, err);
    if (st == SB_OK)
        sb__cuda_backend.free(device, ptr, bytes, context->stream);
    return st;
}

/* cuBLAS returns one of several errors if no memory outside the pools is free. */
TEST_ON(pair, other_contexts_free_memory_for_kernels) {
    for (int i = 0; i < 2; i++) {
        pair_reopen(f);
        sb_mem *freed[16];
        fake_set(FAKE_MEMORY, ALL_MEMORY);
        for (int i = 0; i < 16; i++)
            freed[i] = device_mem(f->other, FAKE_KERNEL_BYTES);
        for (int i = 0; i < 16; i++)
            test_end(freed[i]);
        limit_memory(0);
        fake_fail("cublasCreate_v2", 1, FAKE_NOW, i ? BLAS_INTERNAL : BLAS_ALLOC_FAILED);
        assert_ok(sb_context_prepare_arithmetic(f->stage.context, &err));
        assert_non_null(fake_fired());
    }
}

static void come_and_go(void *arg, int member) {
    for (int round = 0; round < 100; round++) {
        sb_context *context;
        assert_int_equal(cuda_context("cuda:0", &context, &err), SB_OK);
        for (size_t n = 1; n <= 8; n++) {
            const sb_status st = use(context, n * BYTES, &err);
            assert_true(st == SB_OK || st == SB_ERR_OUT_OF_MEMORY);
        }
        sb_context_release(context);
    }
}

TEST_ON(pair, contexts_come_and_go_out_of_memory) {
    limit_memory(4 * BYTES);
    team_run(3, come_and_go, NULL);
}

struct gate {
    atomic_bool is_open;
    time_t end; /* the gate opens at this time, so that a failing test ends */
};

static bool passes(void *user) {
    struct gate *gate = user;
    return atomic_load(&gate->is_open) || time(NULL) > gate->end;
}

static void queue_gate(struct stage *f, sb_stream stream, struct gate *gate) {
    *gate = (struct gate){.end = time(NULL) + 20};
    assert_int_equal(fake_gate(f->primary, (CUstream)stream, passes, gate, 0, 0), CUDA_SUCCESS);
}

static void open_gate(struct gate *gate) {
    assert_true(time(NULL) <= gate->end); /* no thread has waited for the gate */
    atomic_store(&gate->is_open, true);
}

static void *add_up(void *user) {
    double sum = 0;
    return sb_blob_asum(user, SB_DATA, &sum, NULL) == SB_OK && sum == 30 ? user : NULL;
}

/* The contexts of a device share one cuBLAS handle, which has a lock. */
TEST_ON(stage, arithmetic_does_not_wait_for_a_sum) {
    struct gate gate;
    sb_stream own;
    pthread_t thread;
    void *right;
    sb_context *other = test_context_on("cuda:0");
    assert_ok(sb_context_stream(other, &own, &err));
    sb_blob *here = blob_on_device(f->context, 10, 3), *there = blob_on_device(other, 10, 3);
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    assert_ok(sb_blob_scale(there, SB_DATA, 1, &err));
    assert_ok(sb_context_synchronize(other, &err));
    queue_gate(f, own, &gate);
    const int64_t waits = fake_calls("cuStreamSynchronize");
    assert_int_equal(pthread_create(&thread, NULL, add_up, there), 0);
    while (fake_calls("cuStreamSynchronize") == waits)
        (void)sched_yield();
    assert_ok(sb_blob_scale(here, SB_DATA, 2, &err));
    open_gate(&gate);
    assert_int_equal(pthread_join(thread, &right), 0);
    assert_ptr_equal(right, there);
}

/* A wait could deadlock: the other context's thread may wait for this thread. */
TEST_ON(pair, an_allocation_waits_for_no_other_context) {
    struct gate gate;
    assert_ok(sb_context_synchronize(f->other, &err));
    queue_gate(&f->stage, f->other->stream, &gate);
    test_end(f->used);
    assert_ok(use(f->stage.context, 2 * BYTES, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, use(f->stage.context, 3 * BYTES, &err));
    open_gate(&gate);
    assert_ok(use(f->stage.context, 3 * BYTES, &err));
}

/* The application chooses by cudaSetDeviceFlags whether waits block or spin. Waits for streams
   follow the flags of the context. Waits for events follow the flags of the event. */
TEST_ON(stage, waits_block_as_the_application_chose) {
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
    CUstream stream = stage_stream(f, CU_STREAM_NON_BLOCKING);
    sb_context *blocking = test_context_on("cuda:0");
    sb_mem *mem = test_filled(blocking, BYTES, 7);
    const int64_t waits = fake_calls("cuEventSynchronize");
    assert_ok(sb_mem_async_gpu_push(mem, (sb_stream)stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_true(fake_calls("cuEventSynchronize") > waits);
    test_end(mem);
    test_end(blocking);
    assert_int_equal(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO), CUDA_SUCCESS);
}

static void assert_all_refused(struct stage *f, sb_blob *blob, sb_stream own) {
    double sum;
    void *out;
    const void *in;
    sb_mem *fresh = test_filled(f->context, BYTES, 7);
    const sb_status statuses[] = {
        sb_blob_update(blob, NULL),
        sb_blob_scale(blob, SB_DATA, 2, NULL),
        sb_blob_update_on(blob, own, NULL),
        sb_blob_asum(blob, SB_DATA, &sum, NULL),
        sb_blob_clear(blob, SB_DATA, NULL),
        sb_blob_cpu(blob, SB_DATA, &in, NULL),
        sb_mem_gpu(fresh, &in, NULL),
        sb_mem_mutable_gpu(fresh, &out, NULL),
        sb_mem_gpu_on(fresh, own, &in, NULL),
        sb_mem_async_gpu_push(fresh, own, NULL),
        sb_context_synchronize(f->context, NULL),
        sb_context_forget_stream(f->context, own, NULL),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_int_equal(statuses[i], SB_ERR_UNSUPPORTED);
    assert_int_equal(sb_mem_head(fresh), SB_HEAD_AT_CPU);
    test_end(fresh);
}

TEST_ON(stage, the_librarys_stream_may_be_captured) {
    for (int i = 0; i < 4; i++) {
        sb_stream own;
        stage_reopen(f, i & 1, SB_CONTEXT_NO_HOST_CACHE);
        sb_context *other = test_context_on("cuda:0");
        sb_blob *blob = blob_on_device(f->context, 10, 3);
        (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
        sb_mem *exposed = test_filled(f->context, 4 * BYTES, 7),
               *pushed = test_filled(f->context, BYTES, 7);
        (void)mem_pointer(exposed, MUTABLE_GPU);
        assert_ok(sb_mem_async_gpu_push(pushed, f->context->stream, &err));
        assert_ok(sb_mem_synchronize(pushed, &err));
        if (i & 2)
            assert_ok(sb_blob_scale(blob, SB_DATA, 1, &err));
        assert_ok(sb_context_stream(f->context, &own, &err));
        assert_ok(sb_context_synchronize(f->context, &err));
        assert_ok(sb_context_forget_stream(f->context, own, &err));
        begin_capture(f, (CUstream)own);
        assert_all_refused(f, blob, own);
        test_end(exposed);
        test_end(pushed);
        sb_context_trim(f->context);
        assert_int_equal(sb_context_device_status(f->context), SB_OK);
        end_capture(f, (CUstream)own);
        assert_ok(sb_context_synchronize(f->context, &err));
        limit_memory(0);
        /* Unlike f->context, `other` gets the retired memory from the pool without a wait. */
        if (i & 1)
            test_end(device_mem(other, 4 * BYTES));
        fake_set(FAKE_MEMORY, ALL_MEMORY);
        fake_drain();
        assert_int_equal(fake_live().blocks, 1);
        assert_ok(sb_blob_scale(blob, SB_DATA, 2, &err));
        const float *x = blob_pointer(blob, SB_DATA, CPU_DATA);
        assert_true(x[9] == 6);
    }
}

/* By default, a pool may make an allocation wait for a free on another stream. */
TEST_ON(stage, an_allocation_waits_for_no_free_of_another_stream) {
    struct gate gate;
    void *device = f->context->device, *freed, *ptr;
    CUstream other = stage_stream(f, CU_STREAM_NON_BLOCKING);
    const sb_stream stream = (sb_stream)other, own = f->context->stream;
    assert_ok(sb__cuda_backend.alloc(device, BYTES, own, &freed, &err));
    queue_gate(f, own, &gate);
    sb__cuda_backend.free(device, freed, BYTES, own);
    assert_ok(sb__cuda_backend.alloc(device, BYTES, stream, &ptr, &err));
    cu_ok(cuStreamSynchronize(other));
    open_gate(&gate);
    sb__cuda_backend.free(device, ptr, BYTES, stream);
}

/* A query of the other context's stream would invalidate the capture. */
TEST_ON(pair, an_allocation_ends_no_capture_of_another_context) {
    sb_stream own;
    assert_ok(sb_context_stream(f->other, &own, &err));
    assert_ok(sb_context_synchronize(f->other, &err));
    begin_capture(&f->stage, (CUstream)own);
    assert_ok(use(f->stage.context, 2 * BYTES, &err));
    end_capture(&f->stage, (CUstream)own);
}
