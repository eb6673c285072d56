/* Runs the conformance test on OpenCL, with each kind of memory. */
#include "support.h"

#include "conforming.h"
#include "driver.h"

/* Creates a queue, which OpenCL does not order with other queues. */
static sb_status stream_create(void *user, void *device, sb_stream *out, sb_error *err) {
    const sb_backend *backend = user;
    const sb_opencl_device *opencl = backend->extension(device, SB_OPENCL_DEVICE);
    cl_int code;
    cl_command_queue queue = clCreateCommandQueueWithProperties(opencl->context(device),
                                                                opencl->id(device), NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    *out = (sb_stream)queue;
    return SB_OK;
}

static void stream_destroy(void *user, void *device, sb_stream stream) {
    assert_int_equal(clReleaseCommandQueue((cl_command_queue)stream), CL_SUCCESS);
}

static void fail_copy(void *user, void *device, int32_t later) {
    const sb_backend *backend = user;
    const sb_opencl_device *opencl = backend->extension(device, SB_OPENCL_DEVICE);
    driver_fail(opencl->memory(device) == SB_OPENCL_BUFFERS ? "clEnqueueCopyBuffer"
                                                            : "clEnqueueSVMMemcpy",
                1, later ? DRIVER_LATER : DRIVER_NOW, CL_OUT_OF_RESOURCES);
}

static void check(const char *name, int32_t memory) {
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    sb_backend backend = *opencl_backend(memory);
    options.stream_create = stream_create;
    options.stream_destroy = stream_destroy;
    options.fail_copy = fail_copy;
    options.user = &backend;
    options.seconds = 1; /* few, since each round of random operations compiles the kernels */
    assert_conforms(name, &backend, &options);
    assert_nothing_is_live();
}

TEST(each_kind_of_memory_conforms) {
    check("svm", SB_OPENCL_SVM);
    check("fine-grained svm", SB_OPENCL_FINE_SVM);
    check("usm", SB_OPENCL_USM);
    check("buffers", SB_OPENCL_BUFFERS);
}
