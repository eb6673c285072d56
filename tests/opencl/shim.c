/* Runs tests of the simulated device on the OpenCL backend. The environment variable OPENCL_MEMORY
   is the number of the kind of memory. */
#include "shim.h"

#include "device.h"
#include "driver.h"

#include <pthread.h>

static const sb_backend *backend;

static bool has_buffers(void) {
    return *(const int32_t *)backend->user == SB_OPENCL_BUFFERS;
}

static cl_command_queue queue_of(const void *device, sb_stream stream) {
    return stream ? (cl_command_queue)stream
                  : ((const struct sb__opencl_device *)device)->own.queue;
}

/* --- the backend ----------------------------------------------------------------------- */

static sb_status open_first(void *user, int32_t ordinal, void **out, sb_error *err) {
    return backend->open(user, 0, out, err);
}

/* Records the address of a buffer in the list of driver.c. */
static void name_buffer(struct sb__opencl_device *device, const void *ptr) {
    size_t offset;
    if (has_buffers())
        driver_name_buffer(sb__opencl_locate(device, ptr, &offset), ptr);
}

static _Thread_local bool is_sticky; /* the fault of the running slot loses the device */

static sb_status alloc_named(void *device, size_t bytes, sb_stream stream, void **out,
                             sb_error *err) {
    const sb_status st = backend->alloc(device, bytes, stream, out, err);
    if (st == SB_OK)
        name_buffer(device, *out);
    else if (is_sticky) /* clSVMAlloc returns no error code */
        return sb_error_fill(err, SB_ERR_DEVICE_LOST, CL_DEVICE_NOT_AVAILABLE, "made to fail");
    return st;
}

/* Allocates ordinary memory: the tests expect page-locked memory, which OpenCL lacks. */
static sb_status alloc_ordinary(void *device, size_t bytes, void **out, sb_error *err) {
    *out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out ? SB_OK : sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
}

static void free_ordinary(void *device, void *ptr, size_t bytes) {
    free(ptr);
}

/* --- faults and schedules -------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) {
    pthread_mutex_lock(&mutex);
}

static void unlock(void) {
    pthread_mutex_unlock(&mutex);
}

static const char *function_of(int32_t op) {
    static const char *const functions[SB_SIM_OP_COUNT][2] = {
        [SB_SIM_ALLOC] = {"clSVMAlloc", "clCreateBuffer"},
        [SB_SIM_ZERO] = {"clEnqueueSVMMemFill", "clEnqueueFillBuffer"},
        [SB_SIM_UPLOAD] = {"clEnqueueSVMMemcpy", "clEnqueueWriteBuffer"},
        [SB_SIM_DOWNLOAD] = {"clEnqueueSVMMemcpy", "clEnqueueReadBuffer"},
        [SB_SIM_COPY] = {"clEnqueueSVMMemcpy", "clEnqueueCopyBuffer"},
        [SB_SIM_ALLOC_PINNED] = {"none"},
        [SB_SIM_CHECK_POINTER] = {"none"},
        [SB_SIM_CHECK_STREAM] = {"clGetCommandQueueInfo"},
        [SB_SIM_STREAM_SYNCHRONIZE] = {"clFinish"},
        [SB_SIM_EVENT_RECORD] = {"clEnqueueMarkerWithWaitList"},
        [SB_SIM_STREAM_WAIT] = {"clEnqueueBarrierWithWaitList"},
        [SB_SIM_EVENT_WAIT] = {"clWaitForEvents"},
        [SB_SIM_PREPARE_ARITHMETIC] = {"clBuildProgram"},
        [SB_SIM_AXPY] = {"clEnqueueNDRangeKernel"},
        [SB_SIM_SCALE] = {"clEnqueueNDRangeKernel"},
        [SB_SIM_ASUM] = {"clEnqueueNDRangeKernel"},
        [SB_SIM_SUMSQ] = {"clEnqueueNDRangeKernel"},
    };
    return has_buffers() && functions[op][1] ? functions[op][1] : functions[op][0];
}

/* Arms the fault. A lazy schedule delays the stream's work; a random schedule delays some work. */
static void arm(struct shim *shim, const struct shim_call *call) {
    lock();
    const bool held = shim->schedule == SB_SIM_LAZY ||
                      (shim->schedule == SB_SIM_RANDOM && test_random(&shim->random) % 2);
    unlock();
    if (held && call->stream)
        driver_close_gate(queue_of(shim->device, *call->stream));
    is_sticky = call->mode == SB_SIM_FAIL_STICKY;
    if (call->mode == SHIM_NO_FAULT)
        return;
    const char *function = function_of(call->op);
    if (is_sticky)
        driver_fail(function, 1, DRIVER_NOW, CL_DEVICE_NOT_AVAILABLE);
    else if (call->op == SB_SIM_ALLOC) /* the slot retries */
        driver_fail_from(function, 1, CL_OUT_OF_RESOURCES);
    else
        driver_fail(function, 1, call->mode == SB_SIM_FAIL_LATER ? DRIVER_LATER : DRIVER_NOW,
                    CL_INVALID_VALUE);
}

/* Waits for all work, since a lost device has no queued work. */
static void drain(const struct shim *shim) {
    (void)clFinish(queue_of(shim->device, NULL));
    for (int i = 0; i < SHIM_STREAMS; i++)
        if (shim->streams[i])
            (void)clFinish((cl_command_queue)shim->streams[i]);
}

/* Disarms the fault. Runs the stream's work if the schedule is eager. */
static bool disarm(struct shim *shim, const struct shim_call *call) {
    const bool fired = call->mode != SHIM_NO_FAULT && driver_fired();
    if (call->mode != SHIM_NO_FAULT)
        driver_fail(NULL, 0, DRIVER_NOW, 0);
    if (call->mode == SB_SIM_FAIL_STICKY)
        drain(shim);
    if (call->stream && shim->schedule == SB_SIM_EAGER)
        (void)clFinish(queue_of(shim->device, *call->stream));
    return fired;
}

/* --- the extension table --------------------------------------------------------------- */

/* Takes no lock: otherwise a kernel that looks up addresses while the host waits would deadlock. */
static void no_lock(void *device) {
}

static void set_schedule(void *device, sb_sim_schedule schedule, uint64_t seed) {
    struct shim *shim = shim_of(device);
    shim->schedule = schedule;
    shim->random = seed;
    driver_open_gates();
}

static sb_status status_of(cl_int result, sb_error *err) {
    return result == CL_SUCCESS
               ? (sb_status)SB_OK
               : sb_error_fill(err, SB_ERR_DEVICE_FAILURE, result, "the test's call failed");
}

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    const struct sb__opencl_device *opened = device;
    cl_int result;
    *out =
        (sb_stream)clCreateCommandQueueWithProperties(opened->context, opened->id, NULL, &result);
    return status_of(result, err);
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
    (void)clFinish((cl_command_queue)stream);
    return status_of(clReleaseCommandQueue((cl_command_queue)stream), err);
}

enum { MAX_BUFFERS = 64 };

struct launched {
    void (*kernel)(void *user);
    void *user;
    void *buffers[MAX_BUFFERS]; /* retained, as OpenCL retains a kernel's arguments */
};

static void CL_CALLBACK run_launched(void *arguments) {
    const struct launched *launched = arguments;
    launched->kernel(launched->user);
}

static sb_status launch(void *device, sb_stream stream, void (*kernel)(void *user), void *user,
                        sb_error *err) {
    const struct sb__opencl_device *opened = device;
    const sb_sim_schedule schedule = shim_of(device)->schedule;
    const cl_command_queue queue = queue_of(device, stream);
    struct launched launched = {kernel, user, {NULL}};
    cl_mem buffers[MAX_BUFFERS];
    const void *places[MAX_BUFFERS];
    const cl_uint count = driver_buffers(opened->context, buffers, MAX_BUFFERS);
    for (cl_uint i = 0; i < count; i++)
        places[i] = &launched.buffers[i];
    if (schedule == SB_SIM_LAZY)
        driver_close_gate(queue);
    const cl_int result =
        clEnqueueNativeKernel(queue, run_launched, &launched, sizeof launched, count,
                              count ? buffers : NULL, count ? places : NULL, 0, NULL, NULL);
    if (schedule == SB_SIM_EAGER)
        (void)clFinish(queue);
    return status_of(result, err);
}

static sb_status alloc(void *device, size_t bytes, void **out, sb_error *err) {
    struct sb__opencl_device *opened = device;
    const cl_int result = opened->memory->alloc(opened, bytes ? bytes : 1, out);
    if (result == CL_SUCCESS)
        name_buffer(opened, *out);
    return status_of(result, err);
}

static sb_status free_block(void *device, void *ptr, sb_error *err) {
    struct sb__opencl_device *opened = device;
    if (ptr) {
        opened->memory->free(opened, ptr, opened->own.queue);
        (void)clFinish(opened->own.queue);
    }
    return SB_OK;
}

static void *address(const void *device, const void *ptr, size_t bytes, int32_t *out_ready) {
    if (out_ready)
        *out_ready = 1;
    return driver_address(((const struct sb__opencl_device *)device)->context, ptr, bytes);
}

struct shim_target shim_target(void) {
    const char *memory = getenv("OPENCL_MEMORY");
    backend = opencl_backend(memory ? atoi(memory) : SB_OPENCL_SVM);
    struct shim_target target = {
        .backend = *backend,
        .controls = {.lock = no_lock,
                     .unlock = no_lock,
                     .set_schedule = set_schedule,
                     .stream_create = stream_create,
                     .stream_destroy = stream_destroy,
                     .launch = launch,
                     .alloc = alloc,
                     .free = free_block,
                     .address = address},
        .is_coherent = *(const int32_t *)backend->user == SB_OPENCL_FINE_SVM,
        .takes_stream = true,
        .lock = lock,
        .unlock = unlock,
        .arm = arm,
        .disarm = disarm,
    };
    target.backend.open = open_first;
    target.backend.alloc = alloc_named;
    target.backend.alloc_pinned = alloc_ordinary;
    target.backend.free_pinned = free_ordinary;
    return target;
}
