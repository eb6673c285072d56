/* The commands that the library has queued. The library must report every failure, but OpenCL's
   queues have no error state: after a failed command clFinish succeeds, and so may a marker. Only
   the command's own event contains the failure, so the device lists the events of all commands
   until they are known to have ended. */
#include "device.h"

#include <stdlib.h>

/* Returns an address that identifies this thread. */
static const void *this_thread(void) {
    static _Thread_local char here;
    return &here;
}

cl_int sb__opencl_progress(cl_event event, cl_int *out) {
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *out, out, NULL);
}

/* --- the list; call with the lock held ------------------------------------------------- */

static void append(struct sb__opencl_queued *queued, struct sb__opencl_command *command) {
    *(queued->last ? &queued->last->next : &queued->first) = command;
    queued->last = command;
}

/* Removes a record; `before` is the record before it, or NULL. `progress` is negative if the
   command has failed. */
static void take_out(struct sb__opencl_device *device, struct sb__opencl_command *before,
                     struct sb__opencl_command *command, cl_int progress) {
    struct sb__opencl_queued *queued = &device->queued;
    *(before ? &before->next : &queued->first) = command->next;
    if (queued->last == command)
        queued->last = before;
    if (command->freed && progress < 0) /* the queue has not freed it */
        clSVMFree(device->context, command->freed);
    (void)clReleaseEvent(command->event);
    free(command);
}

static bool is_done(const struct sb__opencl_command *command) {
    cl_int progress;
    return sb__opencl_progress(command->event, &progress) == CL_SUCCESS && progress == CL_COMPLETE;
}

/* Removes completed commands, so that the list stays short if a program never waits. */
static void drop_first(struct sb__opencl_device *device) {
    struct sb__opencl_command *first;
    while ((first = device->queued.first) && is_done(first))
        take_out(device, NULL, first, CL_COMPLETE);
}

/* --- a command ------------------------------------------------------------------------- */

sb_status sb__opencl_begin(struct sb__opencl_device *device, cl_command_queue queue,
                           struct sb__opencl_command **out, sb_error *err) {
    struct sb__opencl_command *command = calloc(1, sizeof *command);
    if (!command)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a record of a command", err);
    command->queue = queue;
    command->thread = this_thread();
    *out = command;
    return SB_OK;
}

sb_status sb__opencl_end(struct sb__opencl_device *device, struct sb__opencl_command *command,
                         cl_int result, const char *call, sb_error *err) {
    const cl_command_queue queue = command->queue;
    if (result != CL_SUCCESS) {
        free(command);
        return sb__opencl_status(device, result, call, err);
    }
    sb__opencl_lock_take(&device->queued.lock);
    drop_first(device);
    append(&device->queued, command);
    sb__opencl_lock_give(&device->queued.lock);
    (void)clFlush(queue); /* a failure is harmless: a wait also submits the command */
    return SB_OK;
}

/* Removes the records of the queue's commands that have ended, and writes the first failure. */
static cl_int take_over(struct sb__opencl_device *device, cl_command_queue queue,
                        cl_int *out_failure) {
    struct sb__opencl_command *before = NULL, *next;
    cl_int result = CL_SUCCESS;
    for (struct sb__opencl_command *at = device->queued.first; at && result == CL_SUCCESS;
         at = next) {
        cl_int progress = CL_QUEUED;
        next = at->next;
        if (at->queue == queue)
            result = sb__opencl_progress(at->event, &progress);
        if (result != CL_SUCCESS || progress > CL_COMPLETE) {
            before = at;
            continue;
        }
        if (progress < 0 && !at->is_silent && *out_failure == CL_SUCCESS)
            *out_failure = progress;
        take_out(device, before, at, progress);
    }
    return result;
}

/* clFinish is not enough: in pocl 3.1 it may return while a barrier waits for another queue. */
cl_int sb__opencl_wait(cl_command_queue queue) {
    cl_event marker;
    cl_int result = clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker);
    if (result != CL_SUCCESS)
        return result;
    result = clWaitForEvents(1, &marker);
    (void)clReleaseEvent(marker);
    if (result == CL_SUCCESS || result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        result = clFinish(queue);
    return result;
}

cl_int sb__opencl_finish(struct sb__opencl_device *device, cl_command_queue queue,
                         cl_int *out_failure) {
    cl_int result = sb__opencl_wait(queue);
    *out_failure = CL_SUCCESS;
    if (result != CL_SUCCESS)
        return result;
    sb__opencl_lock_take(&device->queued.lock);
    result = take_over(device, queue, out_failure);
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}

void sb__opencl_queued_end(struct sb__opencl_device *device) {
    while (device->queued.first) {
        cl_int progress = CL_COMPLETE;
        (void)sb__opencl_progress(device->queued.first->event, &progress);
        take_out(device, NULL, device->queued.first, progress);
    }
}

/* --- events; call the functions before sb__opencl_collect with the lock held ------------ */

static bool is_in(const struct sb__opencl_command *command, cl_command_queue queue) {
    return command->queue == queue && !command->is_covered && !command->is_silent;
}

static cl_uint count_in(struct sb__opencl_device *device, cl_command_queue queue) {
    struct sb__opencl_command *before = NULL, *next;
    cl_uint count = 0;
    for (struct sb__opencl_command *at = device->queued.first; at; at = next) {
        next = at->next;
        if (at->queue == queue && is_done(at)) {
            take_out(device, before, at, CL_COMPLETE);
            continue;
        }
        count += is_in(at, queue);
        before = at;
    }
    return count;
}

/* Adds the commands to the event. Later events omit the commands that this thread queued. */
static void cover(struct sb__opencl_device *device, cl_command_queue queue,
                  struct sb__opencl_event *event) {
    event->count = 1;
    for (struct sb__opencl_command *at = device->queued.first; at; at = at->next)
        if (is_in(at, queue) && clRetainEvent(at->event) == CL_SUCCESS) {
            event->at[event->count++] = at->event;
            at->is_covered = at->thread == this_thread();
        }
}

static sb_status collect(struct sb__opencl_device *device, cl_command_queue queue,
                         struct sb__opencl_event **out, sb_error *err) {
    const cl_uint count = count_in(device, queue);
    struct sb__opencl_event *event = malloc(sizeof *event + (count + 1) * sizeof *event->at);
    if (!event)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "an event", err);
    const cl_int result = clEnqueueMarkerWithWaitList(queue, 0, NULL, event->at);
    if (result != CL_SUCCESS) {
        free(event);
        return sb__opencl_status(device, result, "clEnqueueMarkerWithWaitList", err);
    }
    cover(device, queue, event);
    *out = event;
    return SB_OK;
}

sb_status sb__opencl_collect(struct sb__opencl_device *device, cl_command_queue queue,
                             struct sb__opencl_event **out, sb_error *err) {
    sb__opencl_lock_take(&device->queued.lock);
    const sb_status st = collect(device, queue, out, err);
    sb__opencl_lock_give(&device->queued.lock);
    return st;
}

static bool covers(const struct sb__opencl_event *event, cl_event command) {
    for (cl_uint i = 1; i < event->count; i++)
        if (event->at[i] == command)
            return true;
    return false;
}

void sb__opencl_forget(struct sb__opencl_device *device, const struct sb__opencl_event *event) {
    struct sb__opencl_command *before = NULL, *next;
    sb__opencl_lock_take(&device->queued.lock);
    for (struct sb__opencl_command *at = device->queued.first; at; at = next) {
        next = at->next;
        if (covers(event, at->event))
            take_out(device, before, at, CL_COMPLETE);
        else
            before = at;
    }
    sb__opencl_lock_give(&device->queued.lock);
}
