// The first OpenCL device as the device of bindings/caffe.
#include "context.hpp"
#include "device.hpp"

#include "syncblob/opencl.h"

namespace {

void check(cl_int code) {
    if (code == CL_SUCCESS)
        return;
    std::fprintf(stderr, "OpenCL: %d\n", code);
    std::exit(1);
}

struct Device {
    cl_context context;
    cl_device_id id;
};

Device opened() {
    const void *found = nullptr;
    void *device = nullptr;
    must(sb_context_extension, device_context(), SB_OPENCL_DEVICE, &found, &device);
    const sb_opencl_device *table = static_cast<const sb_opencl_device *>(found);
    const int32_t kind = table->memory(device);
    if (kind != SB_OPENCL_SVM && kind != SB_OPENCL_FINE_SVM)
        check(CL_INVALID_OPERATION);
    return {table->context(device), table->id(device)};
}

cl_command_queue create_queue() {
    const Device device = opened();
    cl_int code;
    cl_command_queue made =
        clCreateCommandQueueWithProperties(device.context, device.id, nullptr, &code);
    check(code);
    return made;
}

void copy(void *to, const void *from, size_t bytes) {
    static cl_command_queue queue = create_queue();
    check(clEnqueueSVMMemcpy(queue, CL_TRUE, to, from, bytes, 0, nullptr, nullptr));
}

} // namespace

sb_context *device_context() {
    static sb_context *context = create_context(sb_opencl_backend(), "opencl:0");
    return context;
}

void *device_malloc(size_t bytes) {
    return clSVMAlloc(opened().context, CL_MEM_READ_WRITE, bytes, 0);
}

void device_free(void *memory) {
    clSVMFree(opened().context, memory);
}

void device_read(void *to, const void *device, size_t bytes) {
    copy(to, device, bytes);
}

void device_write(void *device, const void *from, size_t bytes) {
    copy(device, from, bytes);
}

cudaStream_t stream_create() {
    return reinterpret_cast<cudaStream_t>(create_queue());
}

void stream_synchronize(cudaStream_t stream) {
    must(sb_context_forget_stream, device_context(), reinterpret_cast<sb_stream>(stream));
}

void stream_destroy(cudaStream_t stream) {
    check(clReleaseCommandQueue(reinterpret_cast<cl_command_queue>(stream)));
}
