#include "fixture.h"

#include <string.h>

sb_status cuda_context(const char *device, sb_context **out, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    return sb_context_create(&options, out, err);
}

void stage_open(struct stage *stage, uint32_t flags) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "cuda:0";
    options.flags = flags;
    rig_open_options(&stage->rig, options);
    assert_int_equal(cuDevicePrimaryCtxRetain(&stage->primary, 0), CUDA_SUCCESS);
}

void stage_close(struct stage *stage) {
    rig_close(&stage->rig);
    assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    assert_untouched();
}

CUstream stage_stream(struct stage *stage, unsigned int flags) {
    CUstream stream;
    CUcontext old;
    assert_int_equal(cuCtxPushCurrent(stage->primary), CUDA_SUCCESS);
    assert_int_equal(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent(&old), CUDA_SUCCESS);
    return stream;
}

void stage_stream_destroy(struct stage *stage, CUstream stream) {
    (void)stage;
    assert_int_equal(cuStreamDestroy(stream), CUDA_SUCCESS);
}

sb_mem *host_mem(sb_context *context, size_t bytes) {
    sb_error err;
    sb_mem *mem;
    void *out;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    memset(out, 0x11, bytes);
    return mem;
}

sb_status cuda_come_and_go(sb_error *err) {
    sb_context *context;
    sb_status st = cuda_context("cuda:0", &context, err);
    if (st == SB_OK)
        sb_context_release(context);
    return st;
}

void assert_untouched(void) {
    standin_drain();
    struct standin_live live = standin_live();
    assert_int_equal(live.blocks, 0);
    assert_int_equal(live.pinned, 0);
    assert_int_equal(live.pools, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.events, 0);
    assert_int_equal(live.retained, live.handles); /* a handle keeps its context, both for good */
    assert_true(live.handles <= standin_calls("cublasCreate_v2"));
    assert_int_equal(standin_depth(), 0);
    assert_int_equal(standin_violations(), 0);
}
