/* Implements Intel's unified shared memory, which pocl 3.1 lacks, with shared virtual memory. */
#include "driver.h"

#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
cl_int __real_clRetainCommandQueue(cl_command_queue queue);
cl_int __real_clReleaseCommandQueue(cl_command_queue queue);
cl_int __real_clFinish(cl_command_queue queue);

/* --- the functions --------------------------------------------------------------------- */

static void *CL_API_CALL alloc_fake(cl_context context, cl_device_id device,
                                    const cl_bitfield *properties, size_t bytes, cl_uint alignment,
                                    cl_int *out) {
    cl_device_id own = NULL;
    (void)clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof own, &own, NULL);
    void *made = device == own && !properties && alignment <= 128
                     ? clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0)
                     : NULL;
    *out = made ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    return made;
}

/* Records `queue` (NULL: none) as the last user of the memory. Returns the previous user, a
   reference that the caller must release, or NULL. */
static cl_command_queue set_user(cl_command_queue queue, const void *ptr) {
    driver_lock();
    struct driver_memory *memory = driver_find(NULL, ptr);
    const cl_command_queue old = memory ? memory->queue : NULL;
    if (memory && queue)
        (void)__real_clRetainCommandQueue(queue);
    if (memory)
        memory->queue = queue;
    driver_unlock();
    return old;
}

static void use(cl_command_queue queue, const void *ptr) {
    const cl_command_queue old = set_user(queue, ptr);
    if (old)
        (void)__real_clReleaseCommandQueue(old);
}

/* Waits only for the last queue that used the memory: the work of earlier users has then run. */
static cl_int CL_API_CALL free_fake(cl_context context, void *ptr) {
    const cl_command_queue queue = set_user(NULL, ptr);
    if (queue) {
        (void)__real_clFinish(queue);
        (void)__real_clReleaseCommandQueue(queue);
    }
    clSVMFree(context, ptr);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL copy_fake(cl_command_queue queue, cl_bool blocks_host, void *to,
                                    const void *from, size_t bytes, cl_uint waits,
                                    const cl_event *list, cl_event *out) {
    use(queue, to);
    use(queue, from);
    return clEnqueueSVMMemcpy(queue, blocks_host, to, from, bytes, waits, list, out);
}

static cl_int CL_API_CALL fill_fake(cl_command_queue queue, void *to, const void *pattern,
                                    size_t size, size_t bytes, cl_uint waits, const cl_event *list,
                                    cl_event *out) {
    use(queue, to);
    return clEnqueueSVMMemFill(queue, to, pattern, size, bytes, waits, list, out);
}

/* Writes zeros for an unknown pointer. */
static cl_int CL_API_CALL info_fake(cl_context context, const void *ptr, cl_uint what, size_t bytes,
                                    void *out, size_t *out_bytes) {
    memset(out, 0, bytes);
    driver_lock();
    const struct driver_memory *memory = driver_find(context, ptr);
    if (memory && what == CL_MEM_ALLOC_DEVICE_INTEL)
        (void)clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, out, NULL);
    else if (memory)
        memcpy(out,
               what == CL_MEM_ALLOC_BASE_PTR_INTEL ? (const void *)&memory->host
                                                   : (const void *)&memory->bytes,
               bytes);
    driver_unlock();
    return CL_SUCCESS;
}

/* --- the extension --------------------------------------------------------------------- */

WRAP(void *, clGetExtensionFunctionAddressForPlatform,
     (cl_platform_id platform, const char *name)) {
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"clDeviceMemAllocINTEL", (void (*)(void))alloc_fake},
        {"clMemBlockingFreeINTEL", (void (*)(void))free_fake},
        {"clEnqueueMemcpyINTEL", (void (*)(void))copy_fake},
        {"clEnqueueMemFillINTEL", (void (*)(void))fill_fake},
        {"clSetKernelArgMemPointerINTEL", (void (*)(void))clSetKernelArgSVMPointer},
        {"clGetMemAllocInfoINTEL", (void (*)(void))info_fake},
    };
    void *found;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(name, functions[i].name) == 0) {
            memcpy(&found, &functions[i].function, sizeof found);
            return found;
        }
    return __real_clGetExtensionFunctionAddressForPlatform(platform, name);
}

struct fake_device fake_device;

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *out,
                              size_t *out_bytes);

static cl_int answer(const char *text, void *out, size_t *out_bytes) {
    if (out)
        memcpy(out, text, strlen(text) + 1);
    if (out_bytes)
        *out_bytes = strlen(text) + 1;
    return CL_SUCCESS;
}

cl_int fake_device_info(cl_device_id device, cl_device_info what, size_t bytes, void *out,
                        size_t *out_bytes) {
    if ((what == CL_DEVICE_DOUBLE_FP_CONFIG && fake_device.hides_doubles) ||
        (what == CL_DEVICE_SVM_CAPABILITIES && fake_device.hides_svm) ||
        (what == CL_DEVICE_HOST_UNIFIED_MEMORY && fake_device.is_separate)) {
        memset(out, 0, bytes);
        return CL_SUCCESS;
    }
    if (what == CL_DEVICE_VERSION && fake_device.version)
        return answer(fake_device.version, out, out_bytes);
    if (what == CL_DEVICE_EXTENSIONS)
        return answer(fake_device.hides_usm ? "cl_intel_unified_shared_memory_more"
                                            : "cl_khr_fp64 cl_intel_unified_shared_memory",
                      out, out_bytes);
    const cl_int result = __real_clGetDeviceInfo(device, what, bytes, out, out_bytes);
    if (what == CL_DEVICE_SVM_CAPABILITIES && fake_device.hides_fine_svm)
        *(cl_device_svm_capabilities *)out &= CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    return result;
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
