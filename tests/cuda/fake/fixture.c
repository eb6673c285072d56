#include "fixture.h"

#include <stdio.h>
#include <string.h>

sb_status cuda_context(const char *device, sb_context **out, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    return sb_context_create(&options, out, err);
}

void stage_open_on(struct stage *stage, bool pools, uint32_t flags) {
    fake_heal();
    fake_set(FAKE_POOLS, pools);
    rig_open_on(&stage->rig, "cuda:0", flags);
    stage->context = stage->rig.context;
    assert_int_equal(cuDevicePrimaryCtxRetain(&stage->primary, 0), CUDA_SUCCESS);
}

void stage_open(struct stage *stage) {
    stage_open_on(stage, true, 0);
}

static void restore_driver(void) {
    fake_fail(NULL, 0, FAKE_NOW, 0);
    fake_set(FAKE_MEMORY, ALL_MEMORY);
    fake_set(FAKE_POOLS, 1);
}

void stage_abandon(struct stage *stage) {
    rig_close(&stage->rig);
    restore_driver();
    assert_int_equal(fake_violations(), 0);
    fake_heal();
}

void stage_close(struct stage *stage) {
    assert_int_equal(fake_depth(), 0);
    if (sb_context_device_status(stage->context) != SB_OK) {
        stage_abandon(stage);
        return;
    }
    rig_close(&stage->rig);
    restore_driver();
    assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    assert_untouched();
}

void stage_reopen(struct stage *stage, bool pools, uint32_t flags) {
    stage_close(stage);
    stage_open_on(stage, pools, flags);
}

void limit_memory(size_t more) {
    fake_set(FAKE_MEMORY, (int64_t)(fake_live().mapped_bytes + more));
}

static void end_stream(void *stream) {
    (void)cuStreamDestroy(stream); /* fails if the stream was lost with its device */
}

CUstream stage_stream(struct stage *stage, unsigned int flags) {
    CUstream stream;
    CUcontext old;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    test_own_loan(stream, end_stream);
    return stream;
}

sb_mem *device_mem(sb_context *context, size_t bytes) {
    sb_mem *mem = test_mem(context, bytes);
    (void)mem_pointer(mem, OVERWRITE_GPU);
    return mem;
}

void assert_untouched(void) {
    fake_drain();
    struct fake_live live = fake_live();
    assert_int_equal(live.blocks, 0);
    assert_int_equal(live.pinned, 0);
    assert_int_equal(live.pools, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.events, 0);
    assert_int_equal(live.retained, live.handles); /* each handle retains its context forever */
    assert_true(live.handles <= fake_calls("cublasCreate_v2"));
    assert_int_equal(fake_depth(), 0);
    assert_int_equal(fake_violations(), 0);
}

bool names(const sb_error *err, const char *function) {
    char name[80];
    (void)snprintf(name, sizeof name, ": %.*s: ", (int)strcspn(function, "_"), function);
    return strstr(err->message, name) != NULL;
}
