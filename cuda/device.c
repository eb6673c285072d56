#include "device.h"

#include <stdio.h>
#include <stdlib.h>

/* --- calls of the driver -------------------------------------------------------------- */

static sb__cu_result push(const struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    sb__cu_context now = NULL;
    sb__cu_result result =
        sb__cuda_named(visit, device->cu->cuCtxGetCurrent(&now), "cuCtxGetCurrent");
    visit->pushed = now != device->context;
    if (result == SB__CUDA_SUCCESS && visit->pushed)
        result = sb__cuda_named(visit, device->cu->cuCtxPushCurrent_v2(device->context),
                                "cuCtxPushCurrent");
    return result;
}

static bool is_current(const struct sb__cuda_device *device) {
    sb__cu_context now = NULL;
    for (int tries = 0; tries < SB__CUDA_TRIES; tries++)
        if (device->cu->cuCtxGetCurrent(&now) == SB__CUDA_SUCCESS)
            return now == device->context;
    return false;
}

/* Pops the device's context, if `push` has pushed the context. Does not retry once the context is
   no longer current. A call may pop the context and still return an error of earlier work. */
static void pop(const struct sb__cuda_device *device, const struct sb__cuda_visit *visit) {
    sb__cu_context now;
    if (!visit->pushed)
        return;
    for (int tries = 0; tries < SB__CUDA_TRIES; tries++)
        if (device->cu->cuCtxPopCurrent_v2(&now) == SB__CUDA_SUCCESS || !is_current(device))
            return;
}

static sb__cu_result relax(const struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    visit->mode = SB__CU_STREAM_CAPTURE_MODE_RELAXED;
    visit->relaxed = true;
    return sb__cuda_named(visit, device->cu->cuThreadExchangeStreamCaptureMode(&visit->mode),
                          "cuThreadExchangeStreamCaptureMode");
}

static void restore_mode(const struct sb__cuda_device *device, const struct sb__cuda_visit *visit) {
    for (int tries = 0; visit->relaxed && tries < SB__CUDA_TRIES; tries++) {
        unsigned int mode = visit->mode;
        if (device->cu->cuThreadExchangeStreamCaptureMode(&mode) == SB__CUDA_SUCCESS)
            return;
    }
}

sb__cu_result sb__cuda_enter(const struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    sb__cu_result result = push(device, visit);
    if (result != SB__CUDA_SUCCESS)
        return result;
    result = relax(device, visit);
    if (result != SB__CUDA_SUCCESS)
        pop(device, visit);
    return result;
}

/* For the legacy default stream, cuStreamIsCapturing fails while any blocking stream is captured.
   Unlike work on the legacy stream, the query does not invalidate the capture. */
sb__cu_result sb__cuda_refuse_captured(const struct sb__cuda_device *device, sb__cu_stream stream,
                                       struct sb__cuda_visit *visit) {
    unsigned int capturing = SB__CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream == device->stream && !atomic_load(&device->caller_has_stream))
        return SB__CUDA_SUCCESS;
    sb__cu_result result = device->cu->cuStreamIsCapturing(stream, &capturing);
    if (result == SB__CUDA_SUCCESS && capturing != SB__CU_STREAM_CAPTURE_STATUS_NONE)
        result = SB__CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return sb__cuda_named(visit, result, "cuStreamIsCapturing");
}

static sb__cu_result refuse_or_leave(const struct sb__cuda_device *device, sb__cu_stream stream,
                                     struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_refuse_captured(device, stream, visit);
    return result == SB__CUDA_SUCCESS ? result : sb__cuda_leave(device, visit, result);
}

sb__cu_result sb__cuda_enter_stream(const struct sb__cuda_device *device, sb__cu_stream stream,
                                    struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_enter(device, visit);
    return result == SB__CUDA_SUCCESS ? refuse_or_leave(device, stream, visit) : result;
}

sb__cu_result sb__cuda_enter_queue(const struct sb__cuda_device *device, sb__cu_stream stream,
                                   struct sb__cuda_visit *visit) {
    visit->relaxed = false;
    sb__cu_result result = push(device, visit);
    return result == SB__CUDA_SUCCESS ? refuse_or_leave(device, stream, visit) : result;
}

sb__cu_result sb__cuda_enter_to_free(const struct sb__cuda_device *device,
                                     struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_enter(device, visit);
    for (int tries = 1; tries < SB__CUDA_TRIES && result != SB__CUDA_SUCCESS; tries++)
        result = sb__cuda_enter(device, visit);
    return result;
}

sb__cu_result sb__cuda_enter_to_wait(const struct sb__cuda_device *device, sb__cu_stream stream,
                                     struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_enter_stream(device, stream, visit);
    for (int tries = 1; tries < SB__CUDA_TRIES && result != SB__CUDA_SUCCESS; tries++)
        result = sb__cuda_enter_stream(device, stream, visit);
    return result;
}

sb__cu_result sb__cuda_leave(const struct sb__cuda_device *device,
                             const struct sb__cuda_visit *visit, sb__cu_result result) {
    restore_mode(device, visit);
    pop(device, visit);
    return result;
}

/* Uses the relaxed capture mode, because the first retain creates the context and the last release
   destroys it. Both calls may wait for the device, which other modes forbid during a capture. */
sb_status sb__cuda_retain(const struct sb__cuda_device *device, sb__cu_context *out,
                          sb_error *err) {
    struct sb__cuda_visit visit;
    sb__cu_result result = relax(device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = sb__cuda_named(&visit, device->cu->cuDevicePrimaryCtxRetain(out, device->handle),
                                "cuDevicePrimaryCtxRetain");
        restore_mode(device, &visit);
    }
    return sb__cuda_status(device, result, visit.call, err);
}

void sb__cuda_release(const struct sb__cuda_device *device) {
    struct sb__cuda_visit visit;
    bool relaxed = false;
    for (int tries = 0; tries < SB__CUDA_TRIES && !relaxed; tries++)
        relaxed = relax(device, &visit) == SB__CUDA_SUCCESS;
    SB__CUDA_RELEASE(device->cu->cuDevicePrimaryCtxRelease_v2(device->handle));
    if (relaxed)
        restore_mode(device, &visit);
}

int sb__cuda_is_sticky(sb__cu_result result) {
    switch (result) {
    case SB__CUDA_ERROR_DEINITIALIZED:
    case SB__CUDA_ERROR_INVALID_CONTEXT:
    case SB__CUDA_ERROR_ECC_UNCORRECTABLE:
    case SB__CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case SB__CUDA_ERROR_CONTAINED:
    case SB__CUDA_ERROR_ILLEGAL_ADDRESS:
    case SB__CUDA_ERROR_LAUNCH_TIMEOUT:
    case SB__CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case SB__CUDA_ERROR_ASSERT:
    case SB__CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case SB__CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case SB__CUDA_ERROR_EXTERNAL_DEVICE:
        return 1;
    default:
        return result >= SB__CUDA_ERROR_HARDWARE_STACK_ERROR &&
               result <= SB__CUDA_ERROR_LAUNCH_FAILED;
    }
}

static sb_status status_of(sb__cu_result result) {
    if (sb__cuda_is_sticky(result))
        return SB_ERR_DEVICE_LOST;
    if (result >= SB__CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        result <= SB__CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return SB_ERR_UNSUPPORTED;
    switch (result) {
    case SB__CUDA_ERROR_OUT_OF_MEMORY:
        return SB_ERR_OUT_OF_MEMORY;
    case SB__CUDA_ERROR_NO_DEVICE:
    case SB__CUDA_ERROR_INVALID_DEVICE:
        return SB_ERR_NO_DEVICE;
    case SB__CUDA_ERROR_NOT_SUPPORTED:
    case SB__CUDA_ERROR_NO_BINARY_FOR_GPU:
    case SB__CUDA_ERROR_INVALID_PTX:
    case SB__CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case SB__CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case SB__CUDA_ERROR_JIT_COMPILATION_DISABLED:
        return SB_ERR_UNSUPPORTED;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

sb_status sb__cuda_status(const struct sb__cuda_device *device, sb__cu_result result,
                          const char *call, sb_error *err) {
    char message[sizeof err->message];
    const char *name = NULL, *text = NULL;
    if (result == SB__CUDA_SUCCESS)
        return SB_OK;
    (void)device->cu->cuGetErrorName(result, &name); /* NULL if unknown */
    (void)device->cu->cuGetErrorString(result, &text);
    (void)snprintf(message, sizeof message, "cuda:%d: %s: %s (%s)", device->ordinal, call,
                   name ? name : "an unknown error", text ? text : "no description");
    return sb_error_fill(err, status_of(result), (int32_t)result, message);
}

/* --- life ------------------------------------------------------------------------------ */

static sb_status find_device(struct sb__cuda_device *device, sb_error *err) {
    char message[sizeof err->message];
    int count = 0;
    sb__cu_result result = device->cu->cuDeviceGetCount(&count);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, "cuDeviceGetCount", err);
    if (device->ordinal < count)
        return sb__cuda_status(device, device->cu->cuDeviceGet(&device->handle, device->ordinal),
                               "cuDeviceGet", err);
    (void)snprintf(message, sizeof message, "there is no cuda:%d: the driver reports %d device%s",
                   device->ordinal, count, count == 1 ? "" : "s");
    return sb_error_fill(err, SB_ERR_NO_DEVICE, 0, message);
}

/* Sets the highest release threshold, so that the pool keeps freed memory until a trim. Memory in
   use counts toward the threshold. With a lower threshold each wait could unmap all free memory.
   Also forbids allocations that wait for a free on another stream, because a collective on that
   stream may be waiting for another rank. */
static sb__cu_result set_up_pool(const struct sb__cuda_device *device,
                                 struct sb__cuda_visit *visit) {
    uint64_t threshold = UINT64_MAX;
    int adds_dependencies = 0;
    sb__cu_result result = device->cu->cuMemPoolSetAttribute(
        device->pool, SB__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    if (result == SB__CUDA_SUCCESS)
        result = device->cu->cuMemPoolSetAttribute(
            device->pool, SB__CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
            &adds_dependencies);
    return sb__cuda_named(visit, result, "cuMemPoolSetAttribute");
}

/* Creates a private pool, since the device's default pool has the application's settings. */
static sb__cu_result create_pool(struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    struct sb__cu_pool_properties properties = {
        .alloc_type = SB__CU_MEM_ALLOCATION_TYPE_PINNED,
        .location_type = SB__CU_MEM_LOCATION_TYPE_DEVICE,
        .location_id = device->handle,
    };
    int supported = 0;
    sb__cu_result result = sb__cuda_named(
        visit,
        device->cu->cuDeviceGetAttribute(&supported, SB__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                         device->handle),
        "cuDeviceGetAttribute");
    if (result != SB__CUDA_SUCCESS || !supported)
        return result;
    result =
        sb__cuda_named(visit, device->cu->cuMemPoolCreate(&device->pool, (const void *)&properties),
                       "cuMemPoolCreate");
    return result == SB__CUDA_SUCCESS ? set_up_pool(device, visit) : result;
}

static sb__cu_result create_stream(struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_named(
        visit, device->cu->cuEventCreate(&device->legacy, device->event_flags), "cuEventCreate");
    if (result != SB__CUDA_SUCCESS)
        return result;
    return sb__cuda_named(visit, device->cu->cuStreamCreate(&device->stream, SB__CU_STREAM_DEFAULT),
                          "cuStreamCreate");
}

/* Does not wait, since the driver frees a destroyed pool's memory when no work uses it any more. */
static void destroy_pool(struct sb__cuda_device *device) {
    if (device->pool)
        SB__CUDA_RELEASE(device->cu->cuMemPoolDestroy(device->pool));
}

static void destroy_in_context(struct sb__cuda_device *device) {
    if (device->stream) {
        SB__CUDA_RELEASE(sb__cuda_wait(device, device->stream));
        SB__CUDA_RELEASE(device->cu->cuStreamDestroy_v2(device->stream));
    }
    while (device->events.count) {
        sb__cu_event event = device->events.spare[--device->events.count];
        SB__CUDA_RELEASE(device->cu->cuEventDestroy_v2(event));
    }
    if (device->legacy)
        SB__CUDA_RELEASE(device->cu->cuEventDestroy_v2(device->legacy));
    destroy_pool(device);
}

/* Destroys the stream, the events and the pool, if they were created. If the context cannot be made
   current, destroys only the pool, which needs no current context. */
static void destroy_parts(struct sb__cuda_device *device) {
    struct sb__cuda_visit visit;
    const sb__cu_result entered = sb__cuda_enter_to_free(device, &visit);
    if (entered == SB__CUDA_SUCCESS) {
        destroy_in_context(device);
        (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    } else {
        destroy_pool(device);
    }
    sb__cuda_end_kept(device, sb__cuda_is_sticky(entered));
}

/* Reads the context's id, and whether the application has chosen waits that spin or waits that
   block. The library gives its events the same setting, because a wait for an event follows the
   event's flag. */
static sb_status identify(struct sb__cuda_device *device, sb_error *err) {
    unsigned int flags = 0;
    int active = 0;
    sb_status st = sb__cuda_status(
        device, device->cu->cuCtxGetId(device->context, &device->context_id), "cuCtxGetId", err);
    if (st == SB_OK)
        st = sb__cuda_status(
            device, device->cu->cuDevicePrimaryCtxGetState(device->handle, &flags, &active),
            "cuDevicePrimaryCtxGetState", err);
    device->event_flags = SB__CU_EVENT_DISABLE_TIMING;
    if ((flags & SB__CU_CTX_SCHED_MASK) == SB__CU_CTX_SCHED_BLOCKING_SYNC)
        device->event_flags |= SB__CU_EVENT_BLOCKING_SYNC;
    return st;
}

static sb_status create_parts(struct sb__cuda_device *device, sb_error *err) {
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    result = create_pool(device, &visit);
    if (result == SB__CUDA_SUCCESS)
        result = create_stream(device, &visit);
    return sb__cuda_status(device, sb__cuda_leave(device, &visit, result), visit.call, err);
}

static sb_status open_device(struct sb__cuda_device *device, sb_error *err) {
    sb_status st = find_device(device, err);
    if (st != SB_OK)
        return st;
    st = sb__cuda_retain(device, &device->context, err);
    if (st != SB_OK)
        return st;
    st = identify(device, err);
    if (st == SB_OK)
        st = create_parts(device, err);
    if (st == SB_OK)
        return SB_OK;
    destroy_parts(device);
    sb__cuda_release(device);
    return st;
}

static void end_state(struct sb__cuda_device *device) {
    sb__mutex_destroy(&device->kept.lock);
    sb__mutex_destroy(&device->slabs.lock);
    sb__mutex_destroy(&device->events.lock);
    free(device);
}

sb_status sb__cuda_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    (void)user;
    const struct sb__cuda_driver *driver;
    sb_status st = sb__cuda_driver_open(&driver, err);
    if (st != SB_OK)
        return st;
    struct sb__cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a device's state");
    device->cu = driver;
    device->ordinal = ordinal;
    sb__mutex_init(&device->events.lock);
    sb__mutex_init(&device->slabs.lock);
    sb__mutex_init(&device->kept.lock);
    st = open_device(device, err);
    if (st == SB_OK) {
        sb__cuda_siblings_join(device);
        *out = device;
        return SB_OK;
    }
    end_state(device);
    return st;
}

void sb__cuda_close(void *opened) {
    struct sb__cuda_device *device = opened;
    sb__cuda_siblings_part(device);
    sb__cuda_trim_pinned(device);
    destroy_parts(device);
    sb__cuda_release(device);
    end_state(device);
}
