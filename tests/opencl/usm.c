/* Intel's unified shared memory on pocl's shared virtual memory, since pocl 3.1 has none: the linker
   redirects the queries of the library to this file (--wrap). The fake knows its allocations. */
#include <syncblob/opencl.h>

#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- the allocations ------------------------------------------------------------------------------ */

struct block {
    struct block *next;
    cl_context context;
    cl_device_id device;
    char *at;
    size_t bytes;
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
    *block = (struct block){blocks, context, device, at, bytes};
    blocks = block;
    pthread_mutex_unlock(&lock);
    return at;
}

/* Returns a copy; all zero for an unknown pointer. */
static struct block find(cl_context context, const void *ptr) {
    struct block found = {NULL};
    pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block; block = block->next)
        if (block->context == context && (const char *)ptr >= block->at &&
            (const char *)ptr < block->at + block->bytes)
            found = *block;
    pthread_mutex_unlock(&lock);
    return found;
}

/* A real driver waits only for the work that uses the memory. */
static cl_int CL_API_CALL free_fake(cl_context context, void *ptr) {
    struct block *block = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **link = &blocks; *link && !block; link = &(*link)->next)
        if ((*link)->at == ptr) {
            block = *link;
            *link = block->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!block)
        return CL_INVALID_VALUE;
    cl_int result;
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(context, block->device, NULL, &result);
    clSVMFree(context, ptr);
    free(block);
    return queue ? clReleaseCommandQueue(queue) : result;
}

static cl_int CL_API_CALL info_fake(cl_context context, const void *ptr, cl_uint what,
                                    size_t bytes, void *out, size_t *out_bytes) {
    const struct block block = find(context, ptr);
    const void *from = what == CL_MEM_ALLOC_DEVICE_INTEL     ? (const void *)&block.device
                       : what == CL_MEM_ALLOC_BASE_PTR_INTEL ? (const void *)&block.at
                                                             : (const void *)&block.bytes;
    (void)out_bytes;
    memcpy(out, from, bytes);
    return CL_SUCCESS;
}

/* --- the extension -------------------------------------------------------------------------------- */

void *__real_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);
void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);

void *__wrap_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"clDeviceMemAllocINTEL", (void (*)(void))alloc_fake},
        {"clMemBlockingFreeINTEL", (void (*)(void))free_fake},
        {"clEnqueueMemcpyINTEL", (void (*)(void))clEnqueueSVMMemcpy},
        {"clEnqueueMemFillINTEL", (void (*)(void))clEnqueueSVMMemFill},
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

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *out,
                              size_t *out_bytes);
cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *out,
                              size_t *out_bytes);

cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *out,
                              size_t *out_bytes) {
    static const char names[] = "cl_intel_unified_shared_memory_more cl_intel_unified_shared_memory";
    if (what != CL_DEVICE_EXTENSIONS)
        return __real_clGetDeviceInfo(device, what, bytes, out, out_bytes);
    if (out)
        memcpy(out, names, sizeof names);
    if (out_bytes)
        *out_bytes = sizeof names;
    return CL_SUCCESS;
}
