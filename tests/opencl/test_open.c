/* Tests which device and kind of memory are opened, and that a failure leaves nothing open. */
#include "blobs.h"
#include "child.h"
#include "driver.h"
#include "pointers.h"

static sb_context *open_context(const sb_backend *backend) {
    return test_context(CONTEXT_OPTIONS(.device = "opencl:0", .backend = backend));
}

TEST(without_a_driver_there_is_no_device) {
    sb_context *context;
    driver_fail("clGetPlatformIDs", 1, DRIVER_NOW, -1001);
    assert_reports(SB_ERR_NO_DEVICE, opencl_context(sb_opencl_backend(), &context, &err),
                   "install a driver");
    driver_fail("clGetDeviceIDs", 1, DRIVER_NOW, CL_DEVICE_NOT_FOUND);
    assert_status(SB_ERR_NO_DEVICE, opencl_context(sb_opencl_backend(), &context, &err));
    driver_fail(NULL, 0, DRIVER_NOW, 0);
}

TEST(numbers_past_the_last_device_are_refused) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    options.backend = sb_opencl_backend();
    options.device = "opencl:1000";
    assert_reports(SB_ERR_NO_DEVICE, sb_context_create(&options, &context, &err),
                   "the drivers report 1 device");
}

TEST(devices_of_opencl_1_are_refused) {
    sb_context *context;
    fake_device.version = "OpenCL 1.2 old";
    assert_reports(SB_ERR_UNSUPPORTED, opencl_context(sb_opencl_backend(), &context, &err),
                   "OpenCL 1.2");
    fake_device.version = NULL;
    assert_nothing_is_live();
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

/* --- a device without doubles ---------------------------------------------------------- */

TEST(without_doubles_the_host_adds_floats) {
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
    fake_device.hides_doubles = false;
}

TEST(without_doubles_64_bit_arithmetic_is_refused) {
    double *out, sum;
    fake_device.hides_doubles = true;
    sb_context *context = open_context(opencl_backend(SB_OPENCL_SVM));
    sb_blob *blob = test_vector(context, SB_DTYPE_F64, 7);
    assert_ok(sb_blob_mutable_gpu_f64(blob, SB_DATA, &out, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_scale(blob, SB_DATA, 3, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_asum(blob, SB_DATA, &sum, &err));
    assert_int_equal(sb_context_device_status(context), SB_OK);
    fake_device.hides_doubles = false;
}

/* --- forks ----------------------------------------------------------------------------- */

static void use_in_child(void *mem) {
    const void *out;
    sb_context *context = sb_mem_context(mem), *another;
    driver_fail(NULL, 1, DRIVER_NOW, CL_DEVICE_NOT_AVAILABLE); /* a call would fail, once */
    child_wants(opencl_context(sb_opencl_backend(), &another, NULL) == SB_ERR_FORKED);
    child_wants(sb_mem_gpu(mem, &out, NULL) == SB_ERR_FORKED);
    child_wants(sb_mem_cpu(mem, &out, NULL) == SB_OK && *(const char *)out == 0x33);
    sb_mem_release(mem);
    sb_context_release(context);
    child_wants(!driver_fired());
}

TEST(a_forked_child_uses_nothing_of_the_driver) {
    sb_mem *mem = test_filled(open_context(opencl_backend(SB_OPENCL_SVM)), 100, 0x33);
    (void)mem_pointer(mem, GPU_DATA); /* both sides are current */
    in_child(use_in_child, mem);
}
