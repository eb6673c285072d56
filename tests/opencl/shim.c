/* Runs tests of the simulated device on the OpenCL backend: the linker redirects their calls of
   sb_context_create to this file (--wrap). For "sim:N" it opens an OpenCL device and adds the
   functions that the tests request from a simulated device. If the kind of memory is host-coherent,
   contexts on coherent_table() open such a device, too. The file counts the calls of each slot, and
   can make a slot's OpenCL call fail. OPENCL_MEMORY is the number of the kind of memory. */
#include "support.h"

#include "coherent.h"
#include "device.h"
#include "driver.h"
#include "modes.h"

#include <pthread.h>
#include <syncblob/dlpack.h>
#include <syncblob/sim_device.h>

#define MAX_STREAMS 128
#define MAX_FAULTS  4

/* --- devices --------------------------------------------------------------------------- */

/* The state of an open device. */
static struct shim {
    struct sb__opencl_device *device;
    int64_t calls[SB_SIM_OP_COUNT];
    sb_sim_fault faults[MAX_FAULTS];
    cl_command_queue queues[MAX_STREAMS]; /* the test's */
    int32_t schedule;
    uint64_t random;
    struct shim *next;
} * shims;
static pthread_mutex_t shims_lock = PTHREAD_MUTEX_INITIALIZER;
static const sb_backend *backend;

static struct shim *shim_of(const void *device) {
    pthread_mutex_lock(&shims_lock);
    struct shim *shim = shims;
    while (shim->device != device)
        shim = shim->next;
    pthread_mutex_unlock(&shims_lock);
    return shim;
}

static sb_status shim_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    struct shim *shim = calloc(1, sizeof *shim);
    if (!shim)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
    void *device;
    const sb_status st = backend->open(user, 0, &device, err);
    if (st != SB_OK) {
        free(shim);
        return st;
    }
    *out = shim->device = device;
    pthread_mutex_lock(&shims_lock);
    shim->next = shims;
    shims = shim;
    pthread_mutex_unlock(&shims_lock);
    return SB_OK;
}

static void shim_close(void *device) {
    struct shim *shim = shim_of(device), **link = &shims;
    for (size_t i = 0; i < MAX_STREAMS; i++)
        if (shim->queues[i]) {
            (void)clFinish(shim->queues[i]);
            (void)clReleaseCommandQueue(shim->queues[i]);
        }
    pthread_mutex_lock(&shims_lock);
    while (*link != shim)
        link = &(*link)->next;
    *link = shim->next;
    pthread_mutex_unlock(&shims_lock);
    free(shim);
    backend->close(device);
}

/* --- slots ----------------------------------------------------------------------------- */

static cl_command_queue queue_of(const struct shim *shim, sb_stream stream) {
    return stream ? (cl_command_queue)stream : shim->device->queue;
}

/* Counts down each armed fault. The first fault that is due makes the slot's OpenCL call fail.
   Returns its mode, or -1. With a lazy or random schedule, may also delay the stream's work. */
static int32_t arm(void *device, int32_t op, const char *function, const sb_stream *stream) {
    struct shim *shim = shim_of(device);
    int32_t mode = -1;
    pthread_mutex_lock(&shims_lock);
    shim->calls[op]++;
    for (sb_sim_fault *fault = shim->faults; fault < shim->faults + MAX_FAULTS; fault++)
        if (fault->countdown && (fault->op == SB_SIM_ANY || fault->op == op) &&
            --fault->countdown == 0 && mode < 0)
            mode = fault->mode;
    const bool held = shim->schedule == SB_SIM_LAZY ||
                      (shim->schedule == SB_SIM_RANDOM && test_random(&shim->random) % 2);
    pthread_mutex_unlock(&shims_lock);
    if (held && stream)
        driver_close_gate(queue_of(shim, *stream));
    cl_int code = CL_INVALID_VALUE;
    if (mode == SB_SIM_FAIL_STICKY)
        code = CL_DEVICE_NOT_AVAILABLE;
    else if (op == SB_SIM_ALLOC)
        code = CL_OUT_OF_RESOURCES;
    if (mode >= 0 && op == SB_SIM_ALLOC && mode != SB_SIM_FAIL_STICKY)
        driver_fail_from(function, 1, code); /* the slot retries */
    else if (mode >= 0)
        driver_fail(function, 1, mode == SB_SIM_FAIL_LATER ? DRIVER_LATER : DRIVER_NOW, code);
    return mode;
}

/* Waits for all work, since a lost device has no queued work. */
static void drain(const struct shim *shim) {
    (void)clFinish(shim->device->queue);
    for (size_t i = 0; i < MAX_STREAMS; i++)
        if (shim->queues[i])
            (void)clFinish(shim->queues[i]);
}

/* Ends the fault. If the slot succeeded without making the call that was to fail, returns an error
   instead. Runs the stream's work if the schedule is eager. */
static sb_status disarm(void *device, int32_t mode, sb_status st, const sb_stream *stream,
                        sb_error *err) {
    const struct shim *shim = shim_of(device);
    const char *fired = mode < 0 ? NULL : driver_fired();
    if (mode >= 0)
        driver_fail(NULL, 0, DRIVER_NOW, 0);
    if (mode == SB_SIM_FAIL_STICKY)
        drain(shim);
    if (stream && shim->schedule == SB_SIM_EAGER)
        (void)clFinish(queue_of(shim, *stream));
    if (mode < 0 || fired || st != SB_OK)
        return st;
    return sb_error_fill(err,
                         mode == SB_SIM_FAIL_STICKY ? SB_ERR_DEVICE_LOST : SB_ERR_DEVICE_FAILURE,
                         CL_INVALID_VALUE, "made to fail");
}

#define SLOT(name, op, function, stream, parameters, ...)                                          \
    static sb_status shim_##name parameters {                                                      \
        const int32_t mode = arm(device, op, function, stream);                                    \
        return disarm(device, mode, backend->name(device, __VA_ARGS__, err), stream, err);         \
    }

static bool has_buffers(void) {
    return *(const int32_t *)backend->user == SB_OPENCL_BUFFERS;
}

static bool is_coherent(void) {
    return *(const int32_t *)backend->user == SB_OPENCL_FINE_SVM;
}

#define BY_KIND(of_buffers, of_pointers) (has_buffers() ? of_buffers : of_pointers)

SLOT(zero, SB_SIM_ZERO, BY_KIND("clEnqueueFillBuffer", "clEnqueueSVMMemFill"), &stream,
     (void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err), dst, bytes, stream)
SLOT(upload, SB_SIM_UPLOAD, BY_KIND("clEnqueueWriteBuffer", "clEnqueueSVMMemcpy"), &stream,
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(download, SB_SIM_DOWNLOAD, BY_KIND("clEnqueueReadBuffer", "clEnqueueSVMMemcpy"), &stream,
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(copy, SB_SIM_COPY, BY_KIND("clEnqueueCopyBuffer", "clEnqueueSVMMemcpy"), &stream,
     (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err), dst,
     src, bytes, stream)
SLOT(check_pointer, SB_SIM_CHECK_POINTER, "none", NULL,
     (void *device, const void *ptr, size_t bytes, sb_error *err), ptr, bytes)
SLOT(check_stream, SB_SIM_CHECK_STREAM, "clGetCommandQueueInfo", NULL,
     (void *device, sb_stream stream, sb_error *err), stream)
SLOT(stream_synchronize, SB_SIM_STREAM_SYNCHRONIZE, "clFinish", NULL,
     (void *device, sb_stream stream, sb_error *err), stream)
SLOT(event_record, SB_SIM_EVENT_RECORD, "clEnqueueMarkerWithWaitList", &stream,
     (void *device, sb_stream stream, void **out, sb_error *err), stream, out)
SLOT(stream_wait, SB_SIM_STREAM_WAIT, "clEnqueueBarrierWithWaitList", &stream,
     (void *device, sb_stream stream, void *event, sb_error *err), stream, event)
SLOT(event_wait, SB_SIM_EVENT_WAIT, "clWaitForEvents", NULL,
     (void *device, void *event, sb_error *err), event)
SLOT(axpy, SB_SIM_AXPY, "clEnqueueNDRangeKernel", &stream,
     (void *device, int32_t dtype, int64_t count, double alpha, const void *x, void *y,
      sb_stream stream, sb_error *err),
     dtype, count, alpha, x, y, stream)
SLOT(scale, SB_SIM_SCALE, "clEnqueueNDRangeKernel", &stream,
     (void *device, int32_t dtype, int64_t count, double alpha, void *x, sb_stream stream,
      sb_error *err),
     dtype, count, alpha, x, stream)
SLOT(asum, SB_SIM_ASUM, "clEnqueueNDRangeKernel", NULL,
     (void *device, int32_t dtype, int64_t count, const void *x, double *out, sb_stream stream,
      sb_error *err),
     dtype, count, x, out, stream)
SLOT(sumsq, SB_SIM_SUMSQ, "clEnqueueNDRangeKernel", NULL,
     (void *device, int32_t dtype, int64_t count, const void *x, double *out, sb_stream stream,
      sb_error *err),
     dtype, count, x, out, stream)

/* Records the address of a buffer in the list of driver.c. */
static void name_buffer(struct sb__opencl_device *device, const void *ptr) {
    size_t offset;
    if (has_buffers())
        driver_name_buffer(sb__opencl_locate(device, ptr, &offset), ptr);
}

static sb_status shim_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    const int32_t mode = arm(device, SB_SIM_ALLOC, BY_KIND("clCreateBuffer", "clSVMAlloc"), NULL);
    sb_status st = disarm(device, mode, backend->alloc(device, bytes, stream, out, err), NULL, err);
    if (st == SB_OK)
        name_buffer(device, *out);
    else if (mode == SB_SIM_FAIL_STICKY) /* clSVMAlloc returns no error code */
        st = sb_error_fill(err, SB_ERR_DEVICE_LOST, CL_DEVICE_NOT_AVAILABLE, "made to fail");
    return st;
}

static sb_status shim_prepare_arithmetic(void *device, sb_error *err) {
    const int32_t mode = arm(device, SB_SIM_PREPARE_ARITHMETIC, "clBuildProgram", NULL);
    return disarm(device, mode, backend->prepare_arithmetic(device, err), NULL, err);
}

/* Allocates ordinary memory: the tests expect page-locked memory, which OpenCL lacks. */
static sb_status shim_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    const int32_t mode = arm(device, SB_SIM_ALLOC_PINNED, "none", NULL);
    void *made = mode < 0 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    if (made) {
        *out = made;
        return SB_OK;
    }
    driver_fail(NULL, 0, DRIVER_NOW, 0);
    return sb_error_fill(err,
                         mode == SB_SIM_FAIL_STICKY ? SB_ERR_DEVICE_LOST : SB_ERR_OUT_OF_MEMORY, 0,
                         "no page-locked memory");
}

static void shim_free_pinned(void *device, void *ptr, size_t bytes) {
    free(ptr);
}

/* --- the extension table --------------------------------------------------------------- */

/* Takes no lock, which could deadlock: a kernel looks up addresses while the host waits for it. */
static void lock(void *device) {
}

static void unlock(void *device) {
}

static void set_schedule(void *device, sb_sim_schedule schedule, uint64_t seed) {
    struct shim *shim = shim_of(device);
    shim->schedule = schedule;
    shim->random = seed;
    driver_open_gates();
}

static sb_sim_fault *faults(void *device, int32_t *out_count) {
    *out_count = MAX_FAULTS;
    return shim_of(device)->faults;
}

static const int64_t *calls(const void *device, int32_t *out_count) {
    *out_count = SB_SIM_OP_COUNT;
    return shim_of(device)->calls;
}

static sb_status status_of(cl_int result, sb_error *err) {
    return result == CL_SUCCESS
               ? (sb_status)SB_OK
               : sb_error_fill(err, SB_ERR_DEVICE_FAILURE, result, "the test's call failed");
}

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    struct shim *shim = shim_of(device);
    cl_command_queue *slot = shim->queues;
    cl_int result = CL_SUCCESS;
    while (*slot && slot < shim->queues + MAX_STREAMS - 1)
        slot++;
    *slot =
        clCreateCommandQueueWithProperties(shim->device->context, shim->device->id, NULL, &result);
    *out = (sb_stream)*slot;
    return status_of(result, err);
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
    struct shim *shim = shim_of(device);
    for (int i = 0; i < MAX_STREAMS; i++)
        if (shim->queues[i] == (cl_command_queue)stream) {
            shim->queues[i] = NULL;
            (void)clFinish((cl_command_queue)stream);
            return status_of(clReleaseCommandQueue((cl_command_queue)stream), err);
        }
    return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "no stream");
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
    const struct shim *shim = shim_of(device);
    const cl_command_queue queue = queue_of(shim, stream);
    struct launched launched = {kernel, user, {NULL}};
    cl_mem buffers[MAX_BUFFERS];
    const void *places[MAX_BUFFERS];
    const cl_uint count = driver_buffers(shim->device->context, buffers, MAX_BUFFERS);
    for (cl_uint i = 0; i < count; i++)
        places[i] = &launched.buffers[i];
    if (shim->schedule == SB_SIM_LAZY)
        driver_close_gate(queue);
    const cl_int result =
        clEnqueueNativeKernel(queue, run_launched, &launched, sizeof launched, count,
                              count ? buffers : NULL, count ? places : NULL, 0, NULL, NULL);
    if (shim->schedule == SB_SIM_EAGER)
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
        opened->memory->free(opened, ptr, opened->queue);
        (void)clFinish(opened->queue);
    }
    return SB_OK;
}

static void *address(const void *device, const void *ptr, size_t bytes, int32_t *out_ready) {
    if (out_ready)
        *out_ready = 1;
    return driver_address(((const struct sb__opencl_device *)device)->context, ptr, bytes);
}

static const void *extension(void *device, const char *name) {
    static const sb_sim_device controls = {
        .struct_size = sizeof(sb_sim_device),
        .lock = lock,
        .unlock = unlock,
        .set_schedule = set_schedule,
        .faults = faults,
        .calls = calls,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .launch = launch,
        .alloc = alloc,
        .free = free_block,
        .address = address,
    };
    return strcmp(name, SB_SIM_DEVICE) == 0 ? &controls : NULL;
}

/* --- contexts -------------------------------------------------------------------------- */

static sb_backend shimmed;

__attribute__((constructor)) static void make_backend(void) {
    const char *memory = getenv("OPENCL_MEMORY");
    backend = opencl_backend(memory ? atoi(memory) : SB_OPENCL_SVM);
    shimmed = *backend;
    shimmed.name = "sim";
    shimmed.dlpack_device = SB_DL_DEVICE_EXTENSION;
    shimmed.extension = extension;
    shimmed.open = shim_open;
    shimmed.close = shim_close;
    shimmed.alloc = shim_alloc;
    shimmed.zero = shim_zero;
    shimmed.upload = shim_upload;
    shimmed.download = shim_download;
    shimmed.copy = shim_copy;
    shimmed.alloc_pinned = shim_alloc_pinned;
    shimmed.free_pinned = shim_free_pinned;
    shimmed.check_pointer = shim_check_pointer;
    shimmed.check_stream = shim_check_stream;
    shimmed.stream_synchronize = shim_stream_synchronize;
    shimmed.event_record = shim_event_record;
    shimmed.stream_wait = shim_stream_wait;
    shimmed.event_wait = shim_event_wait;
    shimmed.prepare_arithmetic = shim_prepare_arithmetic;
    shimmed.axpy = shim_axpy;
    shimmed.scale = shim_scale;
    shimmed.asum = shim_asum;
    shimmed.sumsq = shim_sumsq;
}

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
sb_status __real_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);
sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);

sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err) {
    if (!options || !options->device || strncmp(options->device, "sim:", 4) != 0 ||
        (options->backend && !(is_coherent() && options->backend == coherent_table())))
        return __real_sb_context_create(options, out, err);
    sb_context_options changed = *options;
    changed.backend = &shimmed;
    const sb_status st = __real_sb_context_create(&changed, out, err);
    if (st == SB_OK) { /* the tests launch kernels on the library's queue */
        sb_stream stream;
        ignore(sb_context_stream(*out, &stream, NULL));
    }
    return st;
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
