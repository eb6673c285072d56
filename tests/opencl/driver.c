#include "driver.h"

#include "support.h"

#include <CL/cl_ext.h>
#include <pthread.h>

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

static _Thread_local struct {
    const char *name;
    int64_t countdown;
    enum driver_mode mode;
    cl_int code;
    const char *fired;
} fault;

void driver_fail(const char *name, int64_t nth, enum driver_mode mode, cl_int code) {
    fault.name = name;
    fault.countdown = nth;
    fault.mode = mode;
    fault.code = code;
    fault.fired = NULL;
}

const char *driver_fired(void) {
    return fault.fired;
}

static bool is_due(const char *name) {
    if (!fault.countdown || (fault.name && strcmp(fault.name, name) != 0))
        return false;
    if (--fault.countdown == 0)
        fault.fired = name;
    return fault.countdown == 0;
}

struct driver_live driver_live;

void assert_nothing_is_live(void) {
    static const struct driver_live none;
    assert_memory_equal(&driver_live, &none, sizeof none);
}

struct memory {
    struct memory *next;
    cl_context context;
    char *host;
    size_t bytes;
    cl_command_queue queue;
};
static struct memory *memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The caller must hold `lock`. */
static struct memory *find(cl_context context, const void *ptr) {
    struct memory *memory = memories;
    while (memory && !((!context || memory->context == context) &&
                       (uintptr_t)ptr - (uintptr_t)memory->host < memory->bytes))
        memory = memory->next;
    return memory;
}

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
#define WRAP(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

#define PARAMETERS1(a)                a p1
#define PARAMETERS2(a, b)             a p1, b p2
#define PARAMETERS3(a, b, c)          a p1, b p2, c p3
#define PARAMETERS4(a, b, c, d)       a p1, b p2, c p3, d p4
#define PARAMETERS5(a, b, c, d, e)    a p1, b p2, c p3, d p4, e p5
#define PARAMETERS6(a, b, c, d, e, f) a p1, b p2, c p3, d p4, e p5, f p6
#define ARGUMENTS1                    p1
#define ARGUMENTS2                    p1, p2
#define ARGUMENTS3                    p1, p2, p3
#define ARGUMENTS4                    p1, p2, p3, p4
#define ARGUMENTS5                    p1, p2, p3, p4, p5
#define ARGUMENTS6                    p1, p2, p3, p4, p5, p6
typedef void(CL_CALLBACK *program_notify)(cl_program, void *);
typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *svm_free)(cl_command_queue, cl_uint, void *[], void *);

#define CALL(n, name, ...)                                                                         \
    WRAP(cl_int, name, (PARAMETERS##n(__VA_ARGS__))) {                                             \
        return is_due(#name) ? fault.code : __real_##name(ARGUMENTS##n);                           \
    }

CALL(3, clGetPlatformIDs, cl_uint, cl_platform_id *, cl_uint *)
CALL(5, clGetDeviceIDs, cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *)
CALL(5, clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info, size_t, void *, size_t *)
CALL(6, clBuildProgram, cl_program, cl_uint, const cl_device_id *, const char *, program_notify,
     void *)
CALL(4, clSetKernelArg, cl_kernel, cl_uint, size_t, const void *)
CALL(3, clSetKernelArgSVMPointer, cl_kernel, cl_uint, const void *)
CALL(1, clFlush, cl_command_queue)
CALL(1, clFinish, cl_command_queue)

cl_int __real_clReleaseEvent(cl_event event);
cl_int __real_clRetainEvent(cl_event event);

enum { FAILED = 512 };

/* The failures are planted: pocl 3.1 aborts if a command that waits for other commands fails. */
static struct {
    cl_event event;
    cl_int code;
} failed[FAILED];
static int failed_next;
static pthread_mutex_t failed_lock = PTHREAD_MUTEX_INITIALIZER;

static void mark_failed(cl_event event, cl_int code) {
    pthread_mutex_lock(&failed_lock);
    if (failed[failed_next].event)
        (void)__real_clReleaseEvent(failed[failed_next].event);
    (void)__real_clRetainEvent(event);
    failed[failed_next].event = event;
    failed[failed_next].code = code;
    failed_next = (failed_next + 1) % FAILED;
    pthread_mutex_unlock(&failed_lock);
}

static cl_int code_of(cl_event event) {
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&failed_lock);
    for (int i = 0; i < FAILED; i++)
        if (failed[i].event == event)
            code = failed[i].code;
    pthread_mutex_unlock(&failed_lock);
    return code;
}

WRAP(cl_int, clGetEventInfo,
     (cl_event event, cl_event_info what, size_t room, void *out, size_t *bytes)) {
    if (is_due("clGetEventInfo"))
        return fault.code;
    const cl_int result = __real_clGetEventInfo(event, what, room, out, bytes);
    cl_int *progress = out;
    if (result == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS &&
        *progress == CL_COMPLETE)
        *progress = code_of(event);
    return result;
}

WRAP(cl_int, clWaitForEvents, (cl_uint count, const cl_event *events)) {
    if (is_due("clWaitForEvents"))
        return fault.code;
    cl_int result = __real_clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count && result == CL_SUCCESS; i++)
        if (code_of(events[i]) != CL_SUCCESS)
            result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return result;
}

cl_int __real_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits,
                                          const cl_event *list, cl_event *out);

static cl_int count_event(cl_int result, const cl_event *out) {
    if (result == CL_SUCCESS && out)
        (void)atomic_fetch_add(&driver_live.events, 1);
    return result;
}

static cl_int queue_failure(cl_command_queue queue, cl_uint waits, const cl_event *list,
                            cl_event *out) {
    const cl_int result = __real_clEnqueueMarkerWithWaitList(queue, waits, list, out);
    if (result == CL_SUCCESS)
        mark_failed(*out, fault.code);
    return count_event(result, out);
}

#define QUEUE(n, name, ...)                                                                        \
    WRAP(cl_int, name,                                                                             \
         (PARAMETERS##n(__VA_ARGS__), cl_uint waits, const cl_event *list, cl_event *out)) {       \
        if (!is_due(#name))                                                                        \
            return count_event(__real_##name(ARGUMENTS##n, waits, list, out), out);                \
        return fault.mode == DRIVER_LATER ? queue_failure(p1, waits, list, out) : fault.code;      \
    }

QUEUE(5, clEnqueueSVMMemcpy, cl_command_queue, cl_bool, void *, const void *, size_t)
QUEUE(5, clEnqueueSVMMemFill, cl_command_queue, void *, const void *, size_t, size_t)
QUEUE(6, clEnqueueWriteBuffer, cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *)
QUEUE(6, clEnqueueReadBuffer, cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *)
QUEUE(6, clEnqueueCopyBuffer, cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t)
QUEUE(6, clEnqueueFillBuffer, cl_command_queue, cl_mem, const void *, size_t, size_t, size_t)
QUEUE(6, clEnqueueNDRangeKernel, cl_command_queue, cl_kernel, cl_uint, const size_t *,
      const size_t *, const size_t *)
QUEUE(1, clEnqueueMarkerWithWaitList, cl_command_queue)
QUEUE(1, clEnqueueBarrierWithWaitList, cl_command_queue)

static void CL_CALLBACK free_queued(cl_command_queue queue, cl_uint count, void *ptrs[],
                                    void *user) {
    for (cl_uint i = 0; i < count; i++)
        clSVMFree(user, ptrs[i]);
}

cl_int __real_clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *ptrs[], svm_free free,
                               void *user, cl_uint waits, const cl_event *list, cl_event *out);
/* Frees the memory in a callback: the memory counts as live until the command runs. */
static cl_int enqueue_svm_free(cl_command_queue queue, cl_uint count, void *ptrs[], svm_free free,
                               void *user, cl_uint waits, const cl_event *list, cl_event *out) {
    cl_context context;
    (void)__real_clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, (void *)&context,
                                       NULL);
    return __real_clEnqueueSVMFree(queue, count, ptrs, free_queued, context, waits, list, out);
}
#define __real_clEnqueueSVMFree enqueue_svm_free
QUEUE(5, clEnqueueSVMFree, cl_command_queue, cl_uint, void **, svm_free, void *)

#define CREATE(n, type, name, counter, ...)                                                        \
    WRAP(type, name, (PARAMETERS##n(__VA_ARGS__), cl_int * code)) {                                \
        if (is_due(#name)) {                                                                       \
            *code = fault.code;                                                                    \
            return NULL;                                                                           \
        }                                                                                          \
        type made = __real_##name(ARGUMENTS##n, code);                                             \
        if (made)                                                                                  \
            (void)atomic_fetch_add(&driver_live.counter, 1);                                       \
        return made;                                                                               \
    }
#define RELEASE(type, name, counter)                                                               \
    WRAP(cl_int, name, (type object)) {                                                            \
        (void)atomic_fetch_sub(&driver_live.counter, 1);                                           \
        return __real_##name(object);                                                              \
    }

CREATE(5, cl_context, clCreateContext, contexts, const cl_context_properties *, cl_uint,
       const cl_device_id *, context_notify, void *)
CREATE(3, cl_command_queue, clCreateCommandQueueWithProperties, queues, cl_context, cl_device_id,
       const cl_queue_properties *)
CREATE(4, cl_program, clCreateProgramWithSource, programs, cl_context, cl_uint, const char **,
       const size_t *)
CREATE(2, cl_kernel, clCreateKernel, kernels, cl_program, const char *)
CREATE(1, cl_event, clCreateUserEvent, events, cl_context)
CREATE(4, cl_mem, clCreateBuffer, buffers, cl_context, cl_mem_flags, size_t, void *)
RELEASE(cl_context, clReleaseContext, contexts)
RELEASE(cl_command_queue, clReleaseCommandQueue, queues)
RELEASE(cl_program, clReleaseProgram, programs)
RELEASE(cl_kernel, clReleaseKernel, kernels)
RELEASE(cl_event, clReleaseEvent, events)
RELEASE(cl_mem, clReleaseMemObject, buffers)

WRAP(cl_int, clRetainCommandQueue, (cl_command_queue queue)) {
    driver_live.queues++;
    return __real_clRetainCommandQueue(queue);
}

WRAP(cl_int, clRetainEvent, (cl_event event)) {
    (void)atomic_fetch_add(&driver_live.events, 1);
    return __real_clRetainEvent(event);
}

WRAP(void *, clSVMAlloc,
     (cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint aligned)) {
    void *made = is_due("clSVMAlloc") ? NULL : __real_clSVMAlloc(context, flags, bytes, aligned);
    struct memory *memory = made ? calloc(1, sizeof *memory) : NULL;
    if (!memory)
        return NULL;
    pthread_mutex_lock(&lock);
    *memory = (struct memory){memories, context, made, bytes, NULL};
    memories = memory;
    pthread_mutex_unlock(&lock);
    (void)atomic_fetch_add(&driver_live.blocks, 1);
    return made;
}

WRAP(void, clSVMFree, (cl_context context, void *ptr)) {
    pthread_mutex_lock(&lock);
    struct memory **link = &memories, *found;
    while (*link && (*link)->host != ptr)
        link = &(*link)->next;
    found = *link;
    if (!found) {
        fprintf(stderr, "%p was freed twice\n", ptr);
        abort();
    }
    *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
    (void)atomic_fetch_sub(&driver_live.blocks, 1);
    __real_clSVMFree(context, ptr);
}

/* Without this replacement, pocl waits until each compiled program is on the disk. */
int fdatasync(int file);

int fdatasync(int file) {
    return 0;
}

/* pocl 3.1 lacks Intel's unified shared memory. */

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

/* Records `queue` as the last user of the memory. Returns the earlier user, which the caller must
   release, or NULL. */
static cl_command_queue set_user(cl_command_queue queue, const void *ptr) {
    pthread_mutex_lock(&lock);
    struct memory *memory = find(NULL, ptr);
    const cl_command_queue old = memory ? memory->queue : NULL;
    if (memory && queue)
        (void)__real_clRetainCommandQueue(queue);
    if (memory)
        memory->queue = queue;
    pthread_mutex_unlock(&lock);
    return old;
}

static void use(cl_command_queue queue, const void *ptr) {
    const cl_command_queue old = set_user(queue, ptr);
    if (old)
        (void)__real_clReleaseCommandQueue(old);
}

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

static cl_int CL_API_CALL info_fake(cl_context context, const void *ptr, cl_uint what, size_t bytes,
                                    void *out, size_t *out_bytes) {
    memset(out, 0, bytes);
    pthread_mutex_lock(&lock);
    const struct memory *memory = find(context, ptr);
    if (memory && what == CL_MEM_ALLOC_DEVICE_INTEL)
        (void)clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, out, NULL);
    else if (memory)
        memcpy(out,
               what == CL_MEM_ALLOC_BASE_PTR_INTEL ? (const void *)&memory->host
                                                   : (const void *)&memory->bytes,
               bytes);
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

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

static cl_int answer(const char *text, void *out, size_t *out_bytes) {
    if (out)
        memcpy(out, text, strlen(text) + 1);
    if (out_bytes)
        *out_bytes = strlen(text) + 1;
    return CL_SUCCESS;
}

WRAP(cl_int, clGetDeviceInfo,
     (cl_device_id device, cl_device_info what, size_t bytes, void *out, size_t *out_bytes)) {
    if (is_due("clGetDeviceInfo"))
        return fault.code;
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
