/* Implements Intel's unified shared memory, which pocl 3.1 lacks, with shared virtual memory. */
#include "driver.h"

#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
cl_int __real_clReleaseCommandQueue(cl_command_queue queue);
cl_int __real_clFinish(cl_command_queue queue);

/* --- the allocations ------------------------------------------------------------------- */

struct block {
    struct block *next;
    cl_context context;
    cl_device_id device;
    char *at;
    size_t bytes;
    cl_command_queue queue; /* the last queue that used the memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;

static void *CL_API_CALL alloc_fake(cl_context context, cl_device_id device,
                                    const cl_bitfield *properties, size_t bytes, cl_uint alignment,
                                    cl_int *out) {
    struct block *block = calloc(1, sizeof *block);
    char *at = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    *out = at && block ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    if (*out != CL_SUCCESS || properties || alignment > 128) {
        free(block);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    *block = (struct block){blocks, context, device, at, bytes, NULL};
    blocks = block;
    pthread_mutex_unlock(&lock);
    return at;
}

/* Returns a copy of the pointer's block; all zero for an unknown pointer. */
static struct block find(cl_context context, const void *ptr) {
    struct block found = {0};
    pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block; block = block->next)
        if (block->context == context && (const char *)ptr >= block->at &&
            (const char *)ptr < block->at + block->bytes)
            found = *block;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Waits only for the last queue that used the memory: its work runs after that of other users. */
static cl_int CL_API_CALL free_fake(cl_context context, void *ptr) {
    struct block *block = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **link = &blocks; *link && !block; link = &(*link)->next)
        if ((*link)->at == ptr) {
            block = *link;
            *link = block->next;
            break;
        }
    const cl_command_queue queue = block ? block->queue : NULL;
    pthread_mutex_unlock(&lock);
    if (!block)
        return CL_INVALID_VALUE;
    if (queue) {
        driver_open_gates();
        (void)__real_clFinish(queue);
        (void)__real_clReleaseCommandQueue(queue);
    }
    clSVMFree(context, ptr);
    free(block);
    return CL_SUCCESS;
}

/* Records the queue as the last user of the memory. */
static void use(cl_command_queue queue, const void *ptr) {
    pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block; block = block->next)
        if ((const char *)ptr >= block->at && (const char *)ptr < block->at + block->bytes) {
            (void)clRetainCommandQueue(queue);
            if (block->queue)
                (void)__real_clReleaseCommandQueue(block->queue);
            block->queue = queue;
        }
    pthread_mutex_unlock(&lock);
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

static cl_int CL_API_CALL info_fake(cl_context context, const void *ptr, cl_uint what, size_t bytes,
                                    void *out, size_t *out_bytes) {
    const struct block block = find(context, ptr);
    const void *from = what == CL_MEM_ALLOC_DEVICE_INTEL     ? (const void *)&block.device
                       : what == CL_MEM_ALLOC_BASE_PTR_INTEL ? (const void *)&block.at
                                                             : (const void *)&block.bytes;
    (void)out_bytes;
    memcpy(out, from, bytes);
    return CL_SUCCESS;
}

/* --- the extension --------------------------------------------------------------------- */

void *__real_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);
void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);

void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
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
