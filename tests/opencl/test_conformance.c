/* Tests that each kind of OpenCL memory conforms. */
#include "blobs.h"
#include "child.h"
#include "conforming.h"
#include "driver.h"
#include "pointers.h"

static sb_context *open_context(const sb_backend *backend) {
    return test_context(CONTEXT_OPTIONS(.device = "opencl:0", .backend = backend));
}

TEST(unusable_devices_are_refused) {
    static const struct {
        const char *device, *function;
        cl_int code;
        const char *version;
        sb_status status;
        const char *text;
    } rows[] = {
        {"opencl:0", "clGetPlatformIDs", -1001, NULL, SB_ERR_NO_DEVICE, "install a driver"},
        {"opencl:0", "clGetDeviceIDs", CL_DEVICE_NOT_FOUND, NULL, SB_ERR_NO_DEVICE, ""},
        {"opencl:1000", NULL, 0, NULL, SB_ERR_NO_DEVICE, "the drivers report 1 device"},
        {"opencl:0", NULL, 0, "OpenCL 1.2 old", SB_ERR_UNSUPPORTED, "OpenCL 1.2"},
    };
    for (int i = 0; i < 4; i++) {
        const sb_context_options options =
            CONTEXT_OPTIONS(.device = rows[i].device, .backend = sb_opencl_backend());
        sb_context *context;
        fake_device.version = rows[i].version;
        driver_fail(rows[i].function, rows[i].function != NULL, DRIVER_NOW, rows[i].code);
        assert_reports(rows[i].status, sb_context_create(&options, &context, &err), rows[i].text);
        driver_fail(NULL, 0, DRIVER_NOW, 0);
        fake_device.version = NULL;
        assert_nothing_is_live();
    }
}

TEST(the_best_memory_of_the_device_is_chosen) {
    static const struct {
        struct fake_device properties;
        int32_t memory;
    } rows[] = {{{0}, SB_OPENCL_FINE_SVM},
                {{.hides_fine_svm = true}, SB_OPENCL_USM},
                {{.is_separate = true}, SB_OPENCL_USM},
                {{.is_separate = true, .hides_usm = true}, SB_OPENCL_SVM},
                {{.hides_usm = true, .hides_svm = true}, SB_OPENCL_BUFFERS}};
    for (int i = 0; i < 5; i++) {
        void *device;
        fake_device = rows[i].properties;
        sb_context *context = open_context(sb_opencl_backend());
        assert_int_equal(opencl_device(context, &device)->memory(device), rows[i].memory);
    }
    fake_device = (struct fake_device){0};
}

static bool open_with_fault(int32_t memory, int64_t nth, cl_int code) {
    sb_context *context;
    driver_fail(NULL, nth, DRIVER_NOW, code);
    const sb_status st = opencl_context(opencl_backend(memory), &context, &err);
    const bool fired = driver_fired() != NULL;
    driver_fail(NULL, 0, DRIVER_NOW, 0);
    if (st == SB_OK)
        sb_context_release(context);
    else
        assert_true(fired && (st == SB_ERR_NO_DEVICE || st == SB_ERR_OUT_OF_MEMORY ||
                              st == SB_ERR_DEVICE_FAILURE || st == SB_ERR_UNSUPPORTED));
    assert_nothing_is_live();
    return fired;
}

TEST(a_failed_opening_leaves_nothing_open) {
    static const cl_int codes[] = {CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE,
                                   CL_DEVICE_NOT_AVAILABLE};
    for (int32_t memory = SB_OPENCL_SVM; memory <= SB_OPENCL_FINE_SVM; memory++)
        for (int i = 0; i < 3; i++)
            for (int64_t n = 1; open_with_fault(memory, n, codes[i]); n++)
                assert_true(n < 100);
}

TEST(without_doubles_the_host_adds_floats_and_64_bit_arithmetic_is_refused) {
    enum { COUNT = 100003 }; /* more than one piece */
    float *out;
    double sum = 0;
    fake_device.hides_doubles = true;
    for (int32_t memory = SB_OPENCL_SVM; memory <= SB_OPENCL_FINE_SVM; memory++) {
        sb_context *context = open_context(opencl_backend(memory));
        sb_blob *blob = test_vector(context, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DATA, &out, &err));
        for (int i = 0; i < COUNT; i++)
            out[i] = i % 2 ? 0.5F : -0.5F;
        assert_ok(sb_blob_mutable_gpu_f32(blob, SB_DATA, &out, &err));
        assert_ok(sb_blob_scale(blob, SB_DATA, 3, &err));
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == 1.5 * COUNT);
        assert_ok(sb_blob_sumsq(blob, SB_DATA, &sum, &err));
        assert_true(sum == 2.25 * COUNT);
    }
    double *wide;
    sb_context *context = open_context(opencl_backend(SB_OPENCL_SVM));
    sb_blob *blob = test_vector(context, SB_DTYPE_F64, 7);
    assert_ok(sb_blob_mutable_gpu_f64(blob, SB_DATA, &wide, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, SB_DATA, 3, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_int_equal(sb_context_device_status(context), SB_OK);
    fake_device.hides_doubles = false;
}

static void use_in_child(void *mem) {
    const void *out;
    sb_context *context = sb_mem_context(mem), *another;
    driver_fail(NULL, 1, DRIVER_NOW, CL_DEVICE_NOT_AVAILABLE); /* any call would fail */
    child_wants(opencl_context(sb_opencl_backend(), &another, NULL) == SB_ERR_FORKED);
    child_wants(sb_mem_gpu(mem, &out, NULL) == SB_ERR_FORKED);
    child_wants(sb_mem_cpu(mem, &out, NULL) == SB_OK && *(const char *)out == 0x33);
    sb_mem_release(mem);
    sb_context_release(context);
    child_wants(!driver_fired());
}

TEST(a_forked_child_uses_nothing_of_the_driver) {
    sb_mem *mem = test_filled(open_context(opencl_backend(SB_OPENCL_SVM)), 100, 0x33);
    (void)mem_pointer(mem, GPU_DATA);
    in_child(use_in_child, mem);
}

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
    options.seconds = 1; /* few, because each round of random operations compiles the kernels */
    assert_conforms(name, &backend, &options);
    assert_nothing_is_live();
}

TEST(each_kind_of_memory_conforms) {
    check("svm", SB_OPENCL_SVM);
    check("fine-grained svm", SB_OPENCL_FINE_SVM);
    check("usm", SB_OPENCL_USM);
    check("buffers", SB_OPENCL_BUFFERS);
}
