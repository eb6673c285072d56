/* Shared virtual memory: coarse-grained, which OpenCL 2 requires of every device, or fine-grained,
   which the host can access, too. */
#include "device.h"

#include <stdlib.h>

static bool has(struct sb__opencl_device *device, cl_device_svm_capabilities asked) {
    cl_device_svm_capabilities can = 0;
    return clGetDeviceInfo(device->id, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL) ==
               CL_SUCCESS &&
           (can & asked);
}

static bool has_svm(struct sb__opencl_device *device) {
    return has(device, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
}

/* Requires unified memory: on other devices fine-grained memory is in the host's memory. */
static bool has_fine_svm(struct sb__opencl_device *device) {
    cl_bool is_unified = CL_FALSE;
    return has(device, CL_DEVICE_SVM_FINE_GRAIN_BUFFER) &&
           clGetDeviceInfo(device->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof is_unified,
                           &is_unified, NULL) == CL_SUCCESS &&
           is_unified;
}

/* Alignment 0 means the alignment of the largest type of OpenCL C, 128 bytes. */
static cl_int alloc(struct sb__opencl_device *device, cl_svm_mem_flags flags, size_t bytes,
                    void **out) {
    *out = clSVMAlloc(device->context, CL_MEM_READ_WRITE | flags, bytes, 0);
    return *out ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static cl_int alloc_svm(struct sb__opencl_device *device, size_t bytes, void **out) {
    return alloc(device, 0, bytes, out);
}

static cl_int alloc_fine_svm(struct sb__opencl_device *device, size_t bytes, void **out) {
    return alloc(device, CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, out);
}

/* Waits for the queue and frees the memory. If the wait fails twice, leaks the memory. */
static void free_now(struct sb__opencl_device *device, void *ptr, cl_command_queue queue) {
    cl_int result = sb__opencl_wait(device, queue);
    if (result != CL_SUCCESS)
        result = sb__opencl_wait(device, queue);
    if (result == CL_SUCCESS)
        clSVMFree(device->context, ptr);
}

static void free_svm(struct sb__opencl_device *device, void *ptr, cl_command_queue queue) {
    struct sb__opencl_command *command;
    sb_error err;
    if (sb__opencl_has_failed_barrier(device, queue) ||
        sb__opencl_begin(device, queue, &command, &err) != SB_OK) {
        free_now(device, ptr, queue);
        return;
    }
    command->freed = ptr;
    command->kind = SB__OPENCL_FREE;
    const cl_int result = clEnqueueSVMFree(queue, 1, &ptr, NULL, NULL, 0, NULL, &command->event);
    if (sb__opencl_end(device, command, result, "clEnqueueSVMFree", &err) != SB_OK)
        free_now(device, ptr, queue);
}

static cl_int zero_svm(struct sb__opencl_device *device, void *dst, size_t bytes,
                       cl_command_queue queue, cl_event *event) {
    static const unsigned char zero = 0;
    (void)device;
    return clEnqueueSVMMemFill(queue, dst, &zero, sizeof zero, bytes, 0, NULL, event);
}

static cl_int copy_svm(struct sb__opencl_device *device, void *dst, const void *src, size_t bytes,
                       cl_command_queue queue, cl_event *event) {
    (void)device;
    return clEnqueueSVMMemcpy(queue, CL_FALSE, dst, src, bytes, 0, NULL, event);
}

static cl_int argument_svm(struct sb__opencl_device *device, cl_kernel kernel, cl_uint *index,
                           const void *ptr, size_t element) {
    (void)device, (void)element;
    return clSetKernelArgSVMPointer(kernel, (*index)++, ptr);
}

/* `holds` is NULL: in pocl 3.1 CL_MEM_USES_SVM_POINTER is wrong for pointers into an allocation. */
#define SVM(number, has, takes)                                                                    \
    {                                                                                              \
        .kind = (number), .open = (has), .alloc = (takes), .free = free_svm, .zero = zero_svm,     \
        .upload = copy_svm, .download = copy_svm, .copy = copy_svm, .argument = argument_svm       \
    }

const struct sb__opencl_memory sb__opencl_svm = SVM(SB_OPENCL_SVM, has_svm, alloc_svm);
const struct sb__opencl_memory sb__opencl_fine_svm =
    SVM(SB_OPENCL_FINE_SVM, has_fine_svm, alloc_fine_svm);
