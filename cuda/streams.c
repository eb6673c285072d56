/* An sb_stream is the driver's CUstream. */
#include "device.h"

#include <string.h>

/* The library makes the first call when it opens the device. Any later call passes the stream to a
   caller, who may capture it. */
sb_stream sb__cuda_own_stream(void *opened) {
    struct sb__cuda_device *device = opened;
    if (atomic_exchange(&device->core_has_stream, true))
        sb__cuda_siblings_expose(device);
    return (sb_stream)device->stream;
}

/* Orders the library's stream after the default streams of all threads: the library's stream waits
   for an event on the legacy stream, which waits for all per-thread streams. Fails while a blocking
   stream is captured, because CUDA then forbids the legacy stream, and recording the event would
   invalidate the capture. */
sb_status sb__cuda_after_default(void *opened, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_queue(device, NULL, &visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    result =
        sb__cuda_named(&visit, device->cu->cuEventRecord(device->legacy, NULL), "cuEventRecord");
    if (result == SB__CUDA_SUCCESS)
        result =
            sb__cuda_named(&visit, device->cu->cuStreamWaitEvent(device->stream, device->legacy, 0),
                           "cuStreamWaitEvent");
    return sb__cuda_status(device, sb__cuda_leave(device, &visit, result), visit.call, err);
}

static sb__cu_result inspect(const struct sb__cuda_device *device, sb__cu_stream stream,
                             sb__cu_context *context, unsigned int *capturing,
                             struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_enter_queue(device, device->stream, visit);
    if (result != SB__CUDA_SUCCESS)
        return result;
    result = sb__cuda_named(visit, device->cu->cuStreamGetCtx(stream, context), "cuStreamGetCtx");
    if (result == SB__CUDA_SUCCESS && *context == device->context)
        result = sb__cuda_named(visit, device->cu->cuStreamIsCapturing(stream, capturing),
                                "cuStreamIsCapturing");
    return sb__cuda_leave(device, visit, result);
}

/* Calls only functions that do not invalidate a capture of the stream. */
sb_status sb__cuda_check_stream(void *opened, sb_stream stream, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    sb__cu_context context = NULL;
    unsigned int capturing = SB__CU_STREAM_CAPTURE_STATUS_NONE;
    struct sb__cuda_visit visit;
    if (!stream)
        return SB_OK;
    if (sb__cuda_stream(stream) == SB__CU_STREAM_PER_THREAD)
        return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0,
                             "the per-thread default stream differs in each thread; pass NULL, "
                             "which is ordered with it, or a stream that you created");
    sb__cu_result result = inspect(device, sb__cuda_stream(stream), &context, &capturing, &visit);
    if (result == SB__CUDA_ERROR_INVALID_HANDLE)
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, (int32_t)result,
                             "the driver does not know the stream");
    if (result == SB__CUDA_ERROR_NOT_SUPPORTED && strcmp(visit.call, "cuStreamGetCtx") == 0)
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, (int32_t)result,
                             "the stream belongs to a green context"); /* CUDA 12.4 to 12.9 */
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    if (context != device->context)
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0,
                             "the stream does not belong to the device's primary context");
    if (capturing != SB__CU_STREAM_CAPTURE_STATUS_NONE)
        return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0,
                             "the stream is being captured; a graph would keep pointers that "
                             "may change");
    return SB_OK;
}

/* Returns the status of a wait. Replaces OUT_OF_MEMORY, which the driver may return for failed
   work, by DEVICE_FAILURE: the library would take OUT_OF_MEMORY as a failure of the wait alone. */
static sb_status wait_status(const struct sb__cuda_device *device, sb__cu_result result,
                             const char *call, sb_error *err) {
    sb_status st = sb__cuda_status(device, sb__cuda_done(result), call, err);
    if (st == SB_ERR_OUT_OF_MEMORY)
        st = err->code = SB_ERR_DEVICE_FAILURE;
    return st;
}

sb_status sb__cuda_stream_synchronize(void *opened, sb_stream stream, sb_error *err) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_to_wait(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(
            device, &visit, sb__cuda_wait(device, sb__cuda_stream(stream)), "cuStreamSynchronize");
    return wait_status(device, result, visit.call, err);
}

/* --- events ---------------------------------------------------------------------------- */

static sb__cu_event take_spare(struct sb__cuda_events *events) {
    sb__mutex_lock(&events->lock);
    sb__cu_event event = events->count ? events->spare[--events->count] : NULL;
    sb__mutex_unlock(&events->lock);
    return event;
}

static bool keep_spare(struct sb__cuda_events *events, sb__cu_event event) {
    sb__mutex_lock(&events->lock);
    bool kept = events->count < (int)(sizeof events->spare / sizeof *events->spare);
    if (kept)
        events->spare[events->count++] = event;
    sb__mutex_unlock(&events->lock);
    return kept;
}

/* Records `*event`, or a new event if `*event` is NULL. Events can be recorded again, because
   streams that wait for the old record do not wait for the new record. */
static sb__cu_result record(struct sb__cuda_device *device, sb__cu_stream stream,
                            sb__cu_event *event, struct sb__cuda_visit *visit) {
    sb__cu_result result = SB__CUDA_SUCCESS;
    if (!*event)
        result = sb__cuda_named(visit, device->cu->cuEventCreate(event, device->event_flags),
                                "cuEventCreate");
    if (result != SB__CUDA_SUCCESS)
        return result;
    result = sb__cuda_named(visit, device->cu->cuEventRecord(*event, stream), "cuEventRecord");
    if (result != SB__CUDA_SUCCESS && !keep_spare(&device->events, *event))
        SB__CUDA_RELEASE(device->cu->cuEventDestroy_v2(*event));
    return result;
}

sb_status sb__cuda_event_record(void *opened, sb_stream stream, void **out, sb_error *err) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_event event = take_spare(&device->events);
    sb__cu_result result = event ? sb__cuda_enter_queue(device, sb__cuda_stream(stream), &visit)
                                 : sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result =
            sb__cuda_leave(device, &visit, record(device, sb__cuda_stream(stream), &event, &visit));
    else if (event)
        sb__cuda_event_destroy(device, event);
    if (result == SB__CUDA_SUCCESS)
        *out = event;
    return sb__cuda_status(device, result, visit.call, err);
}

sb_status sb__cuda_stream_wait(void *opened, sb_stream stream, void *event, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_queue(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(
            device, &visit, device->cu->cuStreamWaitEvent(sb__cuda_stream(stream), event, 0),
            "cuStreamWaitEvent");
    return sb__cuda_status(device, result, visit.call, err);
}

sb_status sb__cuda_event_wait(void *opened, void *event, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_to_free(device, &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(device, &visit, device->cu->cuEventSynchronize(event),
                                      "cuEventSynchronize");
    return wait_status(device, result, visit.call, err);
}

sb_status sb__cuda_event_query(void *opened, void *event, int32_t *out_done, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    bool is_busy = false;
    sb__cu_result result = sb__cuda_enter_to_free(device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = device->cu->cuEventQuery(event);
        is_busy = result == SB__CUDA_ERROR_NOT_READY;
        result = sb__cuda_leave_after(
            device, &visit, is_busy ? (sb__cu_result)SB__CUDA_SUCCESS : result, "cuEventQuery");
    }
    *out_done = !is_busy && sb__cuda_done(result) == SB__CUDA_SUCCESS;
    return wait_status(device, result, visit.call, err);
}

void sb__cuda_event_destroy(void *opened, void *event) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    if (keep_spare(&device->events, event))
        return;
    if (sb__cuda_enter_to_free(device, &visit) != SB__CUDA_SUCCESS)
        return;
    SB__CUDA_RELEASE(device->cu->cuEventDestroy_v2(event));
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
}
