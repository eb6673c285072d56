/* Device memory of Intel's extension cl_intel_unified_shared_memory. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include <CL/cl_ext.h>

#define EXTENSION "cl_intel_unified_shared_memory"

/* Compares whole words, because another extension's name may begin with this extension's name. */
static bool lists_extension(const char *list) {
    for (const char *at = strstr(list, EXTENSION); at; at = strstr(at + 1, EXTENSION)) {
        const char end = at[sizeof EXTENSION - 1];
        if ((at == list || at[-1] == ' ') && (end == ' ' || end == '\0'))
            return true;
    }
    return false;
}

static bool has_extension(const struct sb__opencl_device *device) {
    size_t bytes = 0;
    bool found = false;
    if (clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != CL_SUCCESS)
        return false;
    char *list = calloc(1, bytes + 1);
    if (list && clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, bytes, list, NULL) == CL_SUCCESS)
        found = lists_extension(list);
    free(list);
    return found;
}

static bool has_usm(struct sb__opencl_device *device) {
    static const char *const names[] = {"clDeviceMemAllocINTEL",         "clMemBlockingFreeINTEL",
                                        "clEnqueueMemcpyINTEL",          "clEnqueueMemFillINTEL",
                                        "clSetKernelArgMemPointerINTEL", "clGetMemAllocInfoINTEL"};
    void *functions[6];
    if (!has_extension(device))
        return false;
    for (int i = 0; i < 6; i++) {
        functions[i] = clGetExtensionFunctionAddressForPlatform(device->platform, names[i]);
        if (!functions[i])
            return false;
    }
    _Static_assert(sizeof functions == sizeof device->usm, "a pointer for each function");
    memcpy(&device->usm, functions, sizeof functions);
    return true;
}

static cl_int alloc_usm(struct sb__opencl_device *device, size_t bytes, void **out) {
    cl_int result = CL_SUCCESS;
    *out = device->usm.alloc(device->context, device->id, NULL, bytes, 128, &result);
    return *out || result != CL_SUCCESS ? result : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

/* The extension cannot queue a free, and clMemBlockingFreeINTEL waits only for work that the driver
   knows to use the memory. This function therefore first waits for all work of the queue. A failed
   free has freed nothing, so the function retries the free. */
static void free_usm(struct sb__opencl_device *device, void *ptr, cl_command_queue queue) {
    if (sb__opencl_wait(device, queue) != CL_SUCCESS)
        (void)sb__opencl_wait(device, queue);
    if (device->usm.free(device->context, ptr) != CL_SUCCESS)
        (void)device->usm.free(device->context, ptr);
}

static cl_int zero_usm(struct sb__opencl_device *device, void *dst, size_t bytes,
                       cl_command_queue queue, cl_event *event) {
    static const unsigned char zero = 0;
    return device->usm.fill(queue, dst, &zero, sizeof zero, bytes, 0, NULL, event);
}

static cl_int copy_usm(struct sb__opencl_device *device, void *dst, const void *src, size_t bytes,
                       cl_command_queue queue, cl_event *event) {
    return device->usm.copy(queue, CL_FALSE, dst, src, bytes, 0, NULL, event);
}

static cl_int argument_usm(struct sb__opencl_device *device, cl_kernel kernel, cl_uint *index,
                           const void *ptr, size_t element) {
    (void)element;
    return device->usm.argument(kernel, (*index)++, ptr);
}

/* For unknown memory and for host memory, the driver returns NULL as the memory's device. */
static bool holds_usm(struct sb__opencl_device *device, const void *ptr, size_t bytes) {
    cl_device_id id = NULL;
    char *start = NULL;
    size_t size = 0;
    if (device->usm.info(device->context, ptr, CL_MEM_ALLOC_DEVICE_INTEL, sizeof id, &id, NULL) ||
        device->usm.info(device->context, ptr, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof start, &start,
                         NULL) ||
        device->usm.info(device->context, ptr, CL_MEM_ALLOC_SIZE_INTEL, sizeof size, &size, NULL))
        return false;
    const size_t before = (size_t)((const char *)ptr - start);
    return id == device->id && before < size && bytes <= size - before;
}

const struct sb__opencl_memory sb__opencl_usm = {
    .kind = SB_OPENCL_USM,
    .open = has_usm,
    .alloc = alloc_usm,
    .free = free_usm,
    .zero = zero_usm,
    .upload = copy_usm,
    .download = copy_usm,
    .copy = copy_usm,
    .argument = argument_usm,
    .holds = holds_usm,
};
