/* Runs the conformance test on the CUDA backend. */
#include "support.h"

#include "conforming.h"
#include "device.h"
#include "fake.h"
#include "table.h"

#include <dlfcn.h>

static sb_status stream_create(void *user, void *device, sb_stream *out, sb_error *err) {
    const struct sb__cuda_device *cuda = device;
    struct sb__cuda_visit visit;
    sb__cu_stream stream = NULL;
    assert_int_equal(sb__cuda_enter(cuda, &visit), SB__CUDA_SUCCESS);
    const sb__cu_result result = cuda->cu->cuStreamCreate(&stream, 1 /* NON_BLOCKING */);
    assert_int_equal(sb__cuda_leave(cuda, &visit, result), SB__CUDA_SUCCESS);
    *out = (sb_stream)stream;
    return SB_OK;
}

static void stream_destroy(void *user, void *device, sb_stream stream) {
    const struct sb__cuda_device *cuda = device;
    struct sb__cuda_visit visit;
    assert_int_equal(sb__cuda_enter(cuda, &visit), SB__CUDA_SUCCESS);
    const sb__cu_result result = cuda->cu->cuStreamDestroy_v2((sb__cu_stream)stream);
    assert_int_equal(sb__cuda_leave(cuda, &visit, result), SB__CUDA_SUCCESS);
}

/* The fake driver's fake_fail; NULL with NVIDIA's driver. */
static void (*fail_call)(const char *function, int64_t nth, enum fake_mode mode, unsigned int code);

static void fail_copy(void *user, void *device, int32_t later) {
    fail_call("cuMemcpyDtoDAsync_v2", 1, later ? FAKE_TRANSIENT : FAKE_NOW, CUDA_ERROR_UNKNOWN);
}

TEST(cuda_conforms) {
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    options.stream_create = stream_create;
    options.stream_destroy = stream_destroy;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *fake = driver ? dlsym(driver, "fake_fail") : NULL;
    memcpy(&fail_call, &fake, sizeof fail_call);
    if (fail_call)
        options.fail_copy = fail_copy;
    assert_conforms("cuda", &sb__cuda_backend, &options);
}
