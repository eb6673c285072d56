#include "modes.h"

#include "support.h"

const sb_backend *opencl_backend(int32_t memory) {
    static int32_t kinds[SB_OPENCL_FINE_SVM + 1];
    static sb_backend tables[SB_OPENCL_FINE_SVM + 1];
    kinds[memory] = memory;
    tables[memory] = *sb_opencl_backend();
    tables[memory].user = &kinds[memory];
    return &tables[memory];
}

sb_status opencl_context(const sb_backend *backend, sb_context **out, sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.backend = backend;
    options.device = "opencl:0";
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    return sb_context_create(&options, out, err);
}

const sb_opencl_device *opencl_device(const sb_context *context, void **out_device) {
    const void *table;
    assert_ok(sb_context_extension(context, SB_OPENCL_DEVICE, &table, out_device, &err));
    return table;
}

cl_command_queue opencl_queue(const sb_context *context, const cl_queue_properties *properties) {
    void *device;
    cl_int code;
    const sb_opencl_device *opencl = opencl_device(context, &device);
    cl_command_queue queue = clCreateCommandQueueWithProperties(
        opencl->context(device), opencl->id(device), properties, &code);
    assert_non_null(queue);
    return queue;
}
