/* Tests memory that cannot be freed because a driver call fails. The library keeps such memory
   allocated, counts it, and frees it when the driver works again. */
#include "child.h"
#include "fixture.h"

#include "context/context.h"
#include "device.h"

#include <string.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(float), LARGE = 128 << 10 };

/* Functions whose failure can prevent a free of memory, some of them only without pools. */
static const char *const functions[] = {
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuThreadExchangeStreamCaptureMode",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuStreamSynchronize",
    "cuMemFreeHost",
    NULL, /* any */
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const char *name_of(size_t function) {
    return functions[function] ? functions[function] : "any call";
}

static uint64_t leaked_bytes(void) {
    sb_stats stats = SB_STATS_INIT;
    assert_ok(sb_context_stats(NULL, &stats, &err));
    return stats.leaked_bytes;
}

/* Creates a memory with its bytes at the device; the caller has no pointer to them. */
static sb_mem *mem_inside(sb_context *context, size_t bytes) {
    sb_mem *mem = test_filled(context, bytes, 0x11);
    assert_ok(sb_mem_async_gpu_push(mem, context->stream, &err));
    assert_ok(sb_mem_synchronize(mem, &err));
    assert_ok(sb_mem_evict_cpu(mem, &err));
    return mem;
}

/* Makes the function fail from its `nth` call on. */
static void fail_from(size_t function, int64_t nth) {
    fake_fail(functions[function], nth, FAKE_ALWAYS, CUDA_ERROR_UNKNOWN);
}

/* Removes the fault, and pops contexts that failing pops have left on the thread's stack. */
static void fail_no_more(void) {
    CUcontext old;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    fake_fail(NULL, 0, FAKE_NOW, 0);
    fake_drain();
    while (fake_depth())
        assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
}

/* Asserts that the statistics count all live bytes, and as kept all but the `used` bytes. */
static void assert_counted(struct rig *rig, size_t function, uint64_t used, bool pinned) {
    const sb_stats stats = rig_stats(rig);
    const struct fake_live live = fake_live();
    const uint64_t kept = (pinned ? live.pinned_bytes : live.device_bytes) - used;
    if (stats.device_bytes != live.device_bytes || stats.device_peak < live.device_bytes ||
        (pinned && stats.pinned_bytes != live.pinned_bytes) ||
        stats.pinned_peak < stats.pinned_bytes || stats.quarantined_bytes != kept)
        fail_with("while %s fails %d and %d bytes of device and host are live, %d of them kept; "
                  "the statistics: %d, %d, %d",
                  name_of(function), (int)live.device_bytes, (int)live.pinned_bytes, (int)kept,
                  (int)stats.device_bytes, (int)stats.pinned_bytes, (int)stats.quarantined_bytes);
}

/* --- later frees -------------------------------------------------------------------------- */

static void synchronize(sb_context *context) {
    assert_ok(sb_context_synchronize(context, &err));
}

static void release_another(sb_context *context) {
    test_end(mem_inside(context, BYTES));
}

static void free_another(sb_context *context) {
    void *ptr;
    assert_ok(sb__device_alloc(context, BYTES, context->stream, &ptr, &err));
    sb__device_free(context, ptr, BYTES);
}

static void allocate_the_last(sb_context *context) {
    void *ptr;
    limit_memory(0);
    assert_ok(sb__device_alloc(context, BYTES, context->stream, &ptr, &err));
    fake_set(FAKE_MEMORY, ALL_MEMORY);
    sb__device_free(context, ptr, BYTES);
}

static void (*const later[])(sb_context *context) = {synchronize, sb_context_trim, release_another,
                                                     free_another, allocate_the_last};

/* --- memory of the device --------------------------------------------------------------------- */

static void release_failing(int pools, size_t function, size_t then) {
    struct stage stage;
    stage_open_on(&stage, pools, SB_CONTEXT_NO_HOST_CACHE);
    (void)mem_inside(stage.context, BYTES);
    sb_mem *freed = mem_inside(stage.context, BYTES);
    fail_from(function, 1);
    test_end(freed);
    fail_no_more();
    assert_counted(&stage.rig, function, BYTES, false);
    if (function < 3 && fake_live().blocks != 2) /* these failures prevent every free */
        fail_with("while %s fails the library keeps no memory", name_of(function));
    if (later[then] != allocate_the_last || fake_live().blocks == 2) /* memory was kept */
        later[then](stage.context);
    fake_drain();
    assert_counted(&stage.rig, function, BYTES, false);
    if (fake_live().blocks != 1)
        fail_with("memory that was kept while %s failed was not freed", name_of(function));
    stage_close(&stage);
}

TEST(memory_that_cannot_be_freed_is_kept_until_it_can) {
    for (int pools = 0; pools < 2; pools++)
        for (size_t function = 0; function < FUNCTIONS; function++)
            for (size_t then = 0; then < sizeof later / sizeof *later; then++)
                release_failing(pools, function, then);
}

/* Makes the nth and later calls of the function fail in a sum. Returns whether a call failed. */
static bool sum_failing(int pools, size_t function, int64_t nth) {
    struct stage stage;
    double sum;
    stage_open_on(&stage, pools, SB_CONTEXT_NO_HOST_CACHE);
    sb_blob *blob = test_vector(stage.context, SB_DTYPE_F32, COUNT);
    sb_mem *data = data_of(blob);
    assert_ok(sb_mem_gpu(data, &(const void *){NULL}, &err));
    assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
    fake_drain();
    const uint64_t used = fake_live().device_bytes;
    fail_from(function, nth);
    ignore(sb_blob_asum(blob, SB_DATA, &sum, &err));
    const bool fired = fake_fired() != NULL;
    fail_no_more();
    assert_counted(&stage.rig, function, used, false);
    assert_ok(sb_context_synchronize(stage.context, &err));
    fake_drain();
    assert_counted(&stage.rig, function, used, false);
    assert_int_equal(fake_live().device_bytes, used);
    stage_close(&stage);
    return fired;
}

TEST(scratch_memory_of_a_sum_is_kept_and_counted_likewise) {
    for (int pools = 0; pools < 2; pools++)
        for (size_t function = 0; function < FUNCTIONS; function++)
            for (int64_t nth = 1; sum_failing(pools, function, nth); nth++)
                ;
}

/* --- page-locked memory ----------------------------------------------------------------------- */

/* Tests memory above 64 KiB, and memory in slabs, which a trim frees. */
TEST(page_locked_memory_is_kept_and_counted_likewise) {
    static const size_t sizes[] = {LARGE, BYTES};
    for (size_t i = 0; i < 2 * FUNCTIONS; i++) {
        const size_t function = i / 2;
        struct stage stage;
        stage_open_on(&stage, true, SB_CONTEXT_NO_HOST_CACHE);
        sb_mem *mem = test_filled(stage.context, sizes[i % 2], 0x11);
        assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
        fail_from(function, 1);
        test_end(mem);
        sb_context_trim(stage.context);
        fail_no_more();
        assert_counted(&stage.rig, function, 0, true);
        if (functions[function] && strcmp(functions[function], "cuMemFreeHost") == 0)
            assert_true(fake_live().pinned_bytes >= sizes[i % 2]);
        assert_ok(sb_context_synchronize(stage.context, &err));
        assert_int_equal(fake_live().pinned, 0);
        assert_int_equal(rig_stats(&stage.rig).quarantined_bytes, 0);
        stage_close(&stage);
    }
}

/* --- at the end ------------------------------------------------------------------------------- */

/* After the context is closed, no call of the library can free the memory. Only memory of a lost
   context is not leaked: the context's destruction or the process exit frees it. */
TEST(memory_that_a_context_never_freed_counts_as_leaked) {
    static const CUresult losses[] = {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_DEINITIALIZED};
    for (size_t i = 0; i < 2 * FUNCTIONS + 2; i++) {
        const bool lost = i >= 2 * FUNCTIONS;
        const size_t function = lost ? 0 : i / 2;
        struct stage stage;
        stage_open_on(&stage, i % 2, 0);
        sb_context *context = test_context_on("cuda:0");
        sb_mem *inside = mem_inside(context, LARGE), *outside = test_filled(context, LARGE, 0x11);
        const uint64_t leaked = leaked_bytes();
        fake_fail(functions[function], 1, FAKE_ALWAYS,
                  lost ? losses[i - 2 * FUNCTIONS] : CUDA_ERROR_UNKNOWN);
        test_end(inside);
        test_end(outside);
        test_end(context);
        fail_no_more();
        const struct fake_live live = fake_live();
        const uint64_t left = live.device_bytes + live.pinned_bytes;
        if (leaked_bytes() - leaked != (lost ? 0 : left))
            fail_with("after %s failed %d bytes are left, %d count as leaked", name_of(function),
                      (int)left, (int)(leaked_bytes() - leaked));
        if (function < 3 && !lost) /* these failures prevent every free */
            assert_true(live.device_bytes >= LARGE && live.pinned_bytes >= LARGE);
        stage_abandon(&stage);
    }
}

static void want_no_leak(void *arg) {
    child_wants(leaked_bytes() == 0);
}

/* The memory counts as leaked, since the caller's stream may not exist any more when the library
   could wait for it. A forked child counts leaks from 0. */
TEST(memory_of_another_stream_cannot_be_kept) {
    struct stage stage;
    void *ptr;
    stage_open(&stage);
    void *device = stage.context->device;
    CUstream stream = stage_stream(&stage, CU_STREAM_NON_BLOCKING);
    assert_ok(sb__cuda_backend.alloc(device, BYTES, (sb_stream)stream, &ptr, &err));
    const uint64_t leaked = leaked_bytes();
    fail_from(0, 1);
    sb__cuda_backend.free(device, ptr, BYTES, (sb_stream)stream);
    fail_no_more();
    assert_int_equal(leaked_bytes() - leaked, BYTES);
    assert_int_equal(fake_live().device_bytes, BYTES);
    in_child(want_no_leak, NULL);
    stage_abandon(&stage);
}

/* --- a pool ----------------------------------------------------------------------------------- */

/* A pool can be destroyed, which frees its memory, without a current context. */
TEST(a_pool_ends_without_a_current_context) {
    struct stage stage;
    stage_open(&stage);
    sb_context *context = test_context_on("cuda:0");
    const size_t mapped = fake_live().mapped_bytes;
    test_end(mem_inside(context, LARGE));
    assert_ok(sb_context_synchronize(context, &err));
    assert_true(fake_live().mapped_bytes > mapped);
    fail_from(0, 1);
    test_end(context);
    fail_no_more();
    assert_int_equal(fake_live().mapped_bytes, mapped);
    stage_abandon(&stage);
}
