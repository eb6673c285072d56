/* A stream is an in-order command queue of the device's context. */
#include "device.h"

#include <stdlib.h>

/* --- streams --------------------------------------------------------------------------- */

sb_stream sb__opencl_own_stream(void *opened) {
    struct sb__opencl_device *device = opened;
    sb__opencl_share(device);
    return (sb_stream)device->own.queue;
}

sb_stream sb__opencl_read_stream(void *opened) {
    const struct sb__opencl_device *device = opened;
    return (sb_stream)device->reads.queue;
}

sb_status sb__opencl_check_stream(void *opened, sb_stream stream, sb_error *err) {
    const struct sb__opencl_device *device = opened;
    const cl_command_queue queue = (cl_command_queue)stream;
    cl_context context = NULL;
    cl_command_queue_properties properties = 0;
    cl_int result =
        clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, (void *)&context, NULL);
    if (result == CL_SUCCESS)
        result =
            clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (result == CL_INVALID_COMMAND_QUEUE)
        return sb__opencl_fail(err, SB_ERR_WRONG_DEVICE, 0,
                               "opencl:%d: the stream is not a command queue", device->ordinal);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, "clGetCommandQueueInfo", err);
    if (context != device->context) /* all queues of the context are on its one device */
        return sb__opencl_fail(err, SB_ERR_WRONG_DEVICE, 0,
                               "opencl:%d: the command queue has another cl_context; "
                               "SB_OPENCL_DEVICE has the library's",
                               device->ordinal);
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return sb__opencl_fail(
            err, SB_ERR_UNSUPPORTED, 0,
            "opencl:%d: the command queue is out of order; a stream runs its work in order",
            device->ordinal);
    return SB_OK;
}

sb_status sb__opencl_stream_synchronize(void *opened, sb_stream stream, sb_error *err) {
    struct sb__opencl_device *device = opened;
    cl_int failure;
    const cl_int result = sb__opencl_finish(device, (cl_command_queue)stream, &failure);
    if (result != CL_SUCCESS)
        return sb__opencl_wait_status(device, result, "a wait for the queue", err);
    return sb__opencl_report(device, failure, err);
}

/* --- events ---------------------------------------------------------------------------- */

sb_status sb__opencl_event_record(void *opened, sb_stream stream, void **out, sb_error *err) {
    struct sb__opencl_event *event;
    const sb_status st = sb__opencl_collect(opened, (cl_command_queue)stream, &event, err);
    if (st == SB_OK)
        *out = event;
    return st;
}

/* Queues a barrier that waits for `events`, the running work before `event`. If that work fails,
   the barrier also fails, but the work of the barrier's own stream does not count as failed. The
   barrier's event is released only after the barrier has ended, because pocl 3.1 aborts if a
   command fails after its event was released.

   A limit: a caller may add commands to a queue on which a barrier fails. A later marker may then
   end before the caller's earlier commands. If a command fails between sb__opencl_running and
   clEnqueueBarrierWithWaitList, pocl 3.1 never runs the barrier, and no wait for the barrier ends.
   Once a barrier has failed, pocl 3.1 runs later commands of the queue without waiting for earlier
   commands. */
static sb_status queue_barrier(struct sb__opencl_device *device, cl_command_queue queue,
                               const struct sb__opencl_event *event, cl_uint count,
                               const cl_event *events, sb_error *err) {
    struct sb__opencl_command *command;
    const sb_status st = sb__opencl_begin(device, queue, &command, err);
    if (st != SB_OK)
        return st;
    command->kind = SB__OPENCL_BARRIER;
    command->awaited = event->stream;
    command->awaited_end = event->end;
    cl_int result = sb__opencl_mark(device, command);
    if (result == CL_SUCCESS)
        result = clEnqueueBarrierWithWaitList(queue, count, events, &command->event);
    return sb__opencl_end(device, command, result, "clEnqueueBarrierWithWaitList", err);
}

sb_status sb__opencl_stream_wait(void *opened, sb_stream stream, void *event, sb_error *err) {
    struct sb__opencl_device *device = opened;
    const cl_command_queue queue = (cl_command_queue)stream;
    cl_event *events;
    cl_uint count;
    sb_status st = sb__opencl_running(device, event, queue, &events, &count, err);
    if (st != SB_OK)
        return st;
    if (count)
        st = queue_barrier(device, queue, event, count, events, err);
    sb__opencl_running_end(events, count);
    return st;
}

/* Sets `*out_failure` to the code of the first reported command that failed. Sets `*out_done` to
   false if a command of the event has not ended. The marker is the last reported command, because
   the marker's code may be less specific than another command's code. */
static cl_int inspect(const struct sb__opencl_event *event, cl_int *out_failure, bool *out_done) {
    cl_int result = CL_SUCCESS;
    *out_failure = CL_SUCCESS;
    *out_done = true;
    for (cl_uint i = 0; i < event->count && result == CL_SUCCESS; i++) {
        cl_int progress = CL_COMPLETE;
        result = sb__opencl_progress(event->at[i], &progress);
        if (progress < 0 && i < event->reported && *out_failure == CL_SUCCESS)
            *out_failure = progress;
        *out_done = *out_done && progress <= CL_COMPLETE;
    }
    return result;
}

sb_status sb__opencl_event_wait(void *opened, void *recorded, sb_error *err) {
    struct sb__opencl_device *device = opened;
    struct sb__opencl_event *event = recorded;
    cl_int failure, earlier;
    bool done;
    cl_int result = sb__opencl_await(device, event);
    if (result != CL_SUCCESS)
        return sb__opencl_wait_status(device, result, "clWaitForEvents", err);
    result = inspect(event, &failure, &done);
    if (result == CL_SUCCESS)
        result = sb__opencl_take_markers(device, event, &earlier);
    if (result != CL_SUCCESS)
        return sb__opencl_wait_status(device, result, "clGetEventInfo", err);
    if (failure != CL_SUCCESS)
        sb__opencl_note_failures(device, event);
    return sb__opencl_report(device, failure != CL_SUCCESS ? failure : earlier, err);
}

sb_status sb__opencl_event_query(void *opened, void *recorded, int32_t *out_done, sb_error *err) {
    struct sb__opencl_device *device = opened;
    cl_int failure;
    bool done;
    const cl_int result = inspect(recorded, &failure, &done);
    *out_done = result == CL_SUCCESS && done && !sb__opencl_runs(device, recorded);
    return sb__opencl_wait_status(device, result, "clGetEventInfo", err);
}

void sb__opencl_event_destroy(void *device, void *event) {
    sb__opencl_event_end(device, event);
}
