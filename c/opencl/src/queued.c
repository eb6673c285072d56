/* The commands that the library has queued. The library must report every failure, but OpenCL's
   queues have no error state: after a failed command clFinish succeeds, and so may a marker. Only
   the command's own event contains the failure, so the device lists the events of all commands
   until they are known to have ended. */
#include "device.h"

#include <stdlib.h>

/* Returns the number of this thread, which no other thread of the process ever has. */
static int64_t this_thread(void) {
    static _Atomic int64_t count;
    static _Thread_local int64_t number;
    if (!number)
        number = ++count;
    return number;
}

cl_int sb__opencl_progress(struct sb__opencl_command *command, cl_int *out) {
    *out = CL_COMPLETE;
    if (command->is_complete)
        return CL_SUCCESS;
    const cl_int result =
        clGetEventInfo(command->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *out, out, NULL);
    if (result == CL_SUCCESS && *out == CL_COMPLETE)
        command->is_complete = true;
    return result;
}

/* --- the list; call with queued.lock held ----------------------------------------------- */

/* Releases an event that has failed after SB__OPENCL_FAILED later failures. */
static void release_later(struct sb__opencl_queued *queued, cl_event event) {
    cl_event *slot = &queued->failed[queued->num_failed++ % SB__OPENCL_FAILED];
    if (*slot)
        (void)clReleaseEvent(*slot);
    *slot = event;
}

static void release(struct sb__opencl_queued *queued, struct sb__opencl_command *command) {
    if (--command->refs)
        return;
    if (command->has_failed)
        release_later(queued, command->event);
    else
        (void)clReleaseEvent(command->event);
    free(command);
}

static void append(struct sb__opencl_queued *queued, struct sb__opencl_command *command) {
    command->refs++;
    command->number = queued->count++;
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
    command->has_failed = progress < 0;
    if (command->freed && command->has_failed) /* the queue has not freed it */
        clSVMFree(device->context, command->freed);
    release(queued, command);
}

/* Returns the index in `unclaimed` of the thread's command in the queue, or num_unclaimed. */
static cl_uint find_unclaimed(const struct sb__opencl_queued *queued, cl_command_queue queue,
                              int64_t thread) {
    cl_uint i = 0;
    while (i < queued->num_unclaimed &&
           (queued->unclaimed[i]->queue != queue || queued->unclaimed[i]->thread != thread))
        i++;
    return i;
}

/* The reference keeps OpenCL from giving the queue's address to a new queue. The queue exists:
   before a caller releases a queue, sb_context_forget_stream empties the list of its commands. */
static void keep_failure(struct sb__opencl_queued *queued, struct sb__opencl_command *command) {
    if (find_unclaimed(queued, command->queue, command->thread) < queued->num_unclaimed)
        return;
    if (queued->num_unclaimed == SB__OPENCL_FAILED ||
        clRetainCommandQueue(command->queue) != CL_SUCCESS) {
        queued->has_dropped = true;
        return;
    }
    command->refs++;
    queued->unclaimed[queued->num_unclaimed++] = command;
}

/* Removes a command from `unclaimed`; the caller releases it. The release of the queue does not
   wait, even if it is the last. */
static struct sb__opencl_command *remove_unclaimed(struct sb__opencl_queued *queued, cl_uint i) {
    struct sb__opencl_command *command = queued->unclaimed[i];
    queued->unclaimed[i] = queued->unclaimed[--queued->num_unclaimed];
    (void)clReleaseCommandQueue(command->queue);
    return command;
}

/* Removes from `unclaimed` a command that this thread has queued on the queue, and returns the
   command, which the caller releases, or NULL. */
static struct sb__opencl_command *claim(struct sb__opencl_queued *queued, cl_command_queue queue) {
    const cl_uint i = find_unclaimed(queued, queue, this_thread());
    return i < queued->num_unclaimed ? remove_unclaimed(queued, i) : NULL;
}

/* Removes the record of a command whose result a wait has returned. */
static void take_result(struct sb__opencl_device *device, struct sb__opencl_command *before,
                        struct sb__opencl_command *command, cl_int progress) {
    if (progress < 0 && command->kind == SB__OPENCL_WORK && command->thread != this_thread() &&
        !command->is_covered)
        keep_failure(&device->queued, command);
    take_out(device, before, command, progress);
}

/* Returns a command of the queue (NULL: of any queue) that has not ended and whose number is in
   [from, end), or NULL. */
static struct sb__opencl_command *running_in(struct sb__opencl_queued *queued,
                                             cl_command_queue queue, int64_t from, int64_t end) {
    cl_int progress;
    for (struct sb__opencl_command *at = queued->first; at && at->number < end; at = at->next)
        if (at->number >= from && (!queue || at->queue == queue) &&
            (sb__opencl_progress(at, &progress) != CL_SUCCESS || progress > CL_COMPLETE))
            return at;
    return NULL;
}

static bool has_barrier(const struct sb__opencl_device *device, cl_command_queue queue) {
    for (const struct sb__opencl_command *at = device->queued.first; at; at = at->next)
        if (at->queue == queue && at->kind == SB__OPENCL_BARRIER)
            return true;
    return false;
}

/* Removes commands that need no report, so that the list stays short if a program never waits. */
static void drop_first(struct sb__opencl_device *device) {
    struct sb__opencl_command *first;
    cl_int progress;
    while ((first = device->queued.first) && sb__opencl_progress(first, &progress) == CL_SUCCESS &&
           (progress == CL_COMPLETE || (progress < 0 && first->kind != SB__OPENCL_WORK)))
        take_out(device, NULL, first, progress);
}

/* --- the order of a queue; call with queued.lock held, except order_of ------------------- */

static struct sb__opencl_order *order_of(struct sb__opencl_device *device, cl_command_queue queue) {
    if (queue == device->queue)
        return &device->order;
    if (queue == device->reads)
        return &device->reads_order;
    return &device->callers_orders[((uintptr_t)queue >> 6) % SB__OPENCL_ORDERS];
}

static void set_last(struct sb__opencl_queued *queued, struct sb__opencl_order *order,
                     struct sb__opencl_command *command) {
    if (order->last)
        release(queued, order->last);
    order->last = command;
    if (command)
        command->refs++;
}

/* --- a command ------------------------------------------------------------------------- */

static struct sb__opencl_command *make(struct sb__opencl_device *device, cl_command_queue queue,
                                       sb_error *err) {
    struct sb__opencl_command *command = malloc(sizeof *command); /* calloc is slower */
    if (!command) {
        (void)sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a record of a command", err);
        return NULL;
    }
    *command = (struct sb__opencl_command){
        .queue = queue, .order = order_of(device, queue), .thread = this_thread()};
    return command;
}

sb_status sb__opencl_begin(struct sb__opencl_device *device, cl_command_queue queue,
                           struct sb__opencl_command **out, sb_error *err) {
    struct sb__opencl_command *command = make(device, queue, err);
    if (!command)
        return err->code;
    sb__opencl_lock_take(&command->order->lock);
    *out = command;
    return SB_OK;
}

static void enlist(struct sb__opencl_device *device, struct sb__opencl_command *command) {
    struct sb__opencl_order *order = command->order;
    sb__opencl_lock_take(&device->queued.lock);
    drop_first(device);
    append(&device->queued, command);
    if (!order->is_shared)
        set_last(&device->queued, order, command);
    sb__opencl_lock_give(&device->queued.lock);
}

sb_status sb__opencl_end(struct sb__opencl_device *device, struct sb__opencl_command *command,
                         cl_int result, const char *call, sb_error *err) {
    const cl_command_queue queue = command->queue;
    struct sb__opencl_order *order = command->order;
    if (result == CL_SUCCESS)
        enlist(device, command);
    else
        free(command);
    sb__opencl_lock_give(&order->lock);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, call, err);
    (void)clFlush(queue); /* a failure is harmless: a wait also submits the command */
    return SB_OK;
}

/* --- waits ----------------------------------------------------------------------------- */

/* Returns the result of a wait, but CL_SUCCESS if only the command has failed. */
static cl_int ignore_failure(cl_int result) {
    return result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_SUCCESS : result;
}

/* Returns an error if the command has failed, as OpenCL requires of clWaitForEvents. */
static cl_int wait_for_command(struct sb__opencl_command *command) {
    const cl_int result = clWaitForEvents(1, &command->event);
    if (result == CL_SUCCESS)
        command->is_complete = true;
    return result;
}

/* Waits for commands of the queue (NULL: of all queues) with numbers below `end`; returns the first
   error. Call with queued.lock held; releases it while it waits. */
static cl_int wait_below(struct sb__opencl_device *device, cl_command_queue queue, int64_t end) {
    struct sb__opencl_command *running;
    cl_int result = CL_SUCCESS;
    for (int64_t from = 0; (running = running_in(&device->queued, queue, from, end));) {
        from = running->number + 1;
        running->refs++;
        sb__opencl_lock_give(&device->queued.lock);
        const cl_int waited = ignore_failure(wait_for_command(running));
        sb__opencl_lock_take(&device->queued.lock);
        release(&device->queued, running);
        result = result == CL_SUCCESS ? waited : result;
    }
    return result;
}

/* Waits for a marker, for the queue, and for its listed commands: commands of the caller, and so
   the marker, may fail before earlier commands end, and in pocl 3.1 clFinish may return while a
   barrier waits for another queue. Call with queued.lock held; releases it while it waits. */
static cl_int wait_for_marker(struct sb__opencl_device *device, cl_command_queue queue) {
    const int64_t end = device->queued.count;
    cl_int waited = CL_SUCCESS;
    cl_event marker;
    sb__opencl_lock_give(&device->queued.lock);
    cl_int result = clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker);
    const bool is_queued = result == CL_SUCCESS;
    if (is_queued)
        result = ignore_failure(waited = clWaitForEvents(1, &marker));
    if (result == CL_SUCCESS)
        result = clFinish(queue);
    sb__opencl_lock_take(&device->queued.lock);
    if (result == CL_SUCCESS)
        result = wait_below(device, queue, end);
    if (is_queued && waited == CL_SUCCESS)
        (void)clReleaseEvent(marker);
    else if (is_queued)
        release_later(&device->queued, marker);
    return result;
}

/* Waits for the last command. If it has failed, or the queue has a barrier, earlier commands may
   still run, because a barrier that fails ends before earlier commands; so waits for all. Call with
   queued.lock held; releases it while it waits. */
static cl_int wait_for_last(struct sb__opencl_device *device, struct sb__opencl_order *order,
                            cl_command_queue queue) {
    struct sb__opencl_command *last = order->last;
    last->refs++;
    sb__opencl_lock_give(&device->queued.lock);
    cl_int result = wait_for_command(last);
    sb__opencl_lock_take(&device->queued.lock);
    if (result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
        (result == CL_SUCCESS && has_barrier(device, queue)))
        result = wait_below(device, queue, last->number);
    if (result == CL_SUCCESS && order->last == last) {
        order->last = NULL;
        last->refs--; /* the reference of this call remains */
    }
    release(&device->queued, last);
    return result;
}

/* Call with queued.lock held; releases it while it waits. */
static cl_int wait_locked(struct sb__opencl_device *device, cl_command_queue queue) {
    struct sb__opencl_order *order = order_of(device, queue);
    if (order->is_shared)
        return wait_for_marker(device, queue);
    return order->last ? wait_for_last(device, order, queue) : CL_SUCCESS;
}

/* Returns the number of the queue's last failed barrier plus 1, or 0; call with queued.lock held.
 */
static int64_t failed_barrier_end(const struct sb__opencl_device *device, cl_command_queue queue) {
    int64_t end = 0;
    cl_int progress;
    for (struct sb__opencl_command *at = device->queued.first; at; at = at->next)
        if (at->queue == queue && at->kind == SB__OPENCL_BARRIER &&
            sb__opencl_progress(at, &progress) == CL_SUCCESS && progress < 0)
            end = at->number + 1;
    return end;
}

bool sb__opencl_has_failed_barrier(struct sb__opencl_device *device, cl_command_queue queue) {
    sb__opencl_lock_take(&device->queued.lock);
    const bool has = failed_barrier_end(device, queue) > 0;
    sb__opencl_lock_give(&device->queued.lock);
    return has;
}

/* A barrier that failed has not waited for the other commands of its event. */
cl_int sb__opencl_wait(struct sb__opencl_device *device, cl_command_queue queue) {
    sb__opencl_lock_take(&device->queued.lock);
    cl_int result = wait_locked(device, queue);
    if (result == CL_SUCCESS)
        result = wait_below(device, NULL, failed_barrier_end(device, queue));
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}

/* Removes the records of the queue's commands that have ended, and writes the first failure. Keeps
   barriers, markers and frees that failed early: earlier commands of any queue may use the freed
   memory, and pocl 3.1 aborts if a command ends after the release of an event that waited for the
   command. Keeps the last command of the library's queue if the command is known to be
   complete: drop_first releases its event after the next command is queued. */
static cl_int take_over(struct sb__opencl_device *device, cl_command_queue queue,
                        cl_int *out_failure) {
    struct sb__opencl_command *before = NULL, *next;
    struct sb__opencl_command *claimed = claim(&device->queued, queue);
    cl_int result = CL_SUCCESS;
    if (claimed) {
        const cl_int asked = sb__opencl_progress(claimed, out_failure);
        if (asked != CL_SUCCESS)
            *out_failure = asked;
        release(&device->queued, claimed);
    }
    for (struct sb__opencl_command *at = device->queued.first; at && result == CL_SUCCESS;
         at = next) {
        cl_int progress = CL_QUEUED;
        next = at->next;
        if (at->queue == queue &&
            !(at->is_complete && at == device->queued.last && !at->order->is_shared))
            result = sb__opencl_progress(at, &progress);
        if (result != CL_SUCCESS || progress > CL_COMPLETE ||
            (progress < 0 && at->kind != SB__OPENCL_WORK &&
             running_in(&device->queued, NULL, 0, at->number))) {
            before = at;
            continue;
        }
        if (progress < 0 && at->kind == SB__OPENCL_WORK && *out_failure == CL_SUCCESS)
            *out_failure = progress;
        take_result(device, before, at, progress);
    }
    return result;
}

cl_int sb__opencl_finish(struct sb__opencl_device *device, cl_command_queue queue,
                         cl_int *out_failure) {
    *out_failure = CL_SUCCESS;
    sb__opencl_lock_take(&device->queued.lock);
    cl_int result = wait_locked(device, queue);
    if (result == CL_SUCCESS)
        result = take_over(device, queue, out_failure);
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}

sb_status sb__opencl_report(const struct sb__opencl_device *device, cl_int failure, sb_error *err) {
    if (!device->queued.has_dropped)
        return sb__opencl_wait_status(device, failure, "queued work", err);
    return sb__opencl_fail(
        err, SB_ERR_DEVICE_LOST, failure,
        "opencl:%d: more than %d failures were returned only to threads that had "
        "not queued the work",
        device->ordinal, SB__OPENCL_FAILED);
}

void sb__opencl_share(struct sb__opencl_device *device) {
    sb__opencl_lock_take(&device->queued.lock);
    if (device->has_returned_queue) {
        set_last(&device->queued, &device->order, NULL);
        device->order.is_shared = true;
    }
    device->has_returned_queue = true;
    sb__opencl_lock_give(&device->queued.lock);
}

void sb__opencl_queued_end(struct sb__opencl_device *device) {
    struct sb__opencl_queued *queued = &device->queued;
    sb__opencl_lock_take(&queued->lock);
    (void)wait_below(device, NULL, queued->count);
    set_last(queued, &device->order, NULL);
    set_last(queued, &device->reads_order, NULL);
    while (queued->first) {
        cl_int progress = CL_COMPLETE;
        (void)sb__opencl_progress(queued->first, &progress);
        take_out(device, NULL, queued->first, progress);
    }
    while (queued->num_unclaimed)
        release(queued, remove_unclaimed(queued, 0));
    for (int i = 0; i < SB__OPENCL_FAILED; i++)
        release_later(queued, NULL);
    sb__opencl_lock_give(&queued->lock);
}

/* --- events; call the functions before sb__opencl_collect with queued.lock held ---------- */

static bool is_reported(const struct sb__opencl_command *command) {
    return !command->is_covered && command->kind == SB__OPENCL_WORK;
}

/* Removes completed commands of the queue from the list, and counts the others. Does not query the
   commands behind a running one, nor the last, because a query delays the driver's thread that runs
   the command. */
static cl_uint count_in(struct sb__opencl_device *device, cl_command_queue queue) {
    struct sb__opencl_command *before = NULL, *next;
    cl_uint count = 0;
    cl_int progress = CL_COMPLETE;
    for (struct sb__opencl_command *at = device->queued.first; at; at = next) {
        next = at->next;
        const bool is_last = at == at->order->last && at->kind != SB__OPENCL_BARRIER;
        if (at->queue == queue && !is_last && progress <= CL_COMPLETE &&
            sb__opencl_progress(at, &progress) == CL_SUCCESS && progress == CL_COMPLETE) {
            take_out(device, before, at, CL_COMPLETE);
            continue;
        }
        count += at->queue == queue;
        before = at;
    }
    return count;
}

static void put(struct sb__opencl_event *event, struct sb__opencl_command *command) {
    event->at[event->count++] = command;
    command->refs++;
}

/* Adds the commands whose failures the event reports. */
static void put_reported(struct sb__opencl_device *device, cl_command_queue queue,
                         struct sb__opencl_command *marker, struct sb__opencl_event *event) {
    struct sb__opencl_command *claimed = claim(&device->queued, queue);
    event->count = 0;
    if (claimed)
        event->at[event->count++] = claimed;
    for (struct sb__opencl_command *at = device->queued.first; at; at = at->next)
        if (at->queue == queue && is_reported(at))
            put(event, at);
    if (marker)
        put(event, marker);
    event->reported = event->count;
}

/* Adds `last` as the event's last command, unless it already is. */
static void put_last(struct sb__opencl_event *event, struct sb__opencl_command *last) {
    if (last && (!event->count || event->at[event->count - 1] != last))
        put(event, last);
}

/* Makes later events omit the commands that this thread queued. */
static void cover(struct sb__opencl_device *device, cl_command_queue queue) {
    for (struct sb__opencl_command *at = device->queued.first; at; at = at->next)
        if (at->queue == queue && at->thread == this_thread())
            at->is_covered = true;
}

static struct sb__opencl_command *mark(struct sb__opencl_device *device, cl_command_queue queue,
                                       sb_error *err) {
    struct sb__opencl_command *marker = make(device, queue, err);
    if (!marker)
        return NULL;
    marker->kind = SB__OPENCL_MARKER;
    const cl_int result = clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker->event);
    if (result == CL_SUCCESS)
        return marker;
    (void)sb__opencl_status(device, result, "clEnqueueMarkerWithWaitList", err);
    free(marker);
    return NULL;
}

static sb_status collect(struct sb__opencl_device *device, cl_command_queue queue,
                         const struct sb__opencl_order *order, struct sb__opencl_event **out,
                         sb_error *err) {
    struct sb__opencl_command *marker = NULL;
    const cl_uint most = count_in(device, queue) + 2; /* a marker, a claimed command */
    struct sb__opencl_event *event = malloc(sizeof *event + most * sizeof(void *));
    if (!event)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "an event", err);
    if (order->is_shared && !(marker = mark(device, queue, err))) {
        free(event);
        return err->code;
    }
    put_reported(device, queue, marker, event);
    if (marker)
        append(&device->queued, marker);
    else
        put_last(event, order->last);
    event->is_ordered = !marker && !has_barrier(device, queue);
    event->queue = queue;
    event->end = device->queued.count;
    cover(device, queue);
    *out = event;
    return SB_OK;
}

/* Flushes a queue with a marker, because another queue may wait for the marker. */
sb_status sb__opencl_collect(struct sb__opencl_device *device, cl_command_queue queue,
                             struct sb__opencl_event **out, sb_error *err) {
    struct sb__opencl_order *order = order_of(device, queue);
    sb__opencl_lock_take(&order->lock);
    sb__opencl_lock_take(&device->queued.lock);
    const sb_status st = collect(device, queue, order, out, err);
    const bool may_have_marker = order->is_shared;
    sb__opencl_lock_give(&device->queued.lock);
    sb__opencl_lock_give(&order->lock);
    if (may_have_marker)
        (void)clFlush(queue);
    return st;
}

/* Waits for the last command first: if the event is ordered, the others have then ended. */
cl_int sb__opencl_await(struct sb__opencl_device *device, const struct sb__opencl_event *event) {
    cl_int result = CL_SUCCESS;
    for (cl_uint i = event->count; i-- > 0 && result == CL_SUCCESS;)
        result = ignore_failure(wait_for_command(event->at[i]));
    if (event->is_ordered || result != CL_SUCCESS)
        return result;
    sb__opencl_lock_take(&device->queued.lock);
    result = wait_below(device, event->queue, event->end);
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}

bool sb__opencl_runs(struct sb__opencl_device *device, const struct sb__opencl_event *event) {
    if (event->is_ordered)
        return false;
    sb__opencl_lock_take(&device->queued.lock);
    const bool runs = running_in(&device->queued, event->queue, 0, event->end);
    sb__opencl_lock_give(&device->queued.lock);
    return runs;
}

/* Adds the event of a command that has not ended. */
static cl_int add_running(struct sb__opencl_command *command, cl_event *out, cl_uint *count) {
    cl_int progress;
    if (sb__opencl_progress(command, &progress) == CL_SUCCESS && progress <= CL_COMPLETE)
        return CL_SUCCESS;
    const cl_int result = clRetainEvent(command->event);
    if (result == CL_SUCCESS)
        out[(*count)++] = command->event;
    return result;
}

/* Commands that have not ended are listed, so for an unordered event the list has all of them. */
sb_status sb__opencl_running(struct sb__opencl_device *device, const struct sb__opencl_event *event,
                             cl_event **out, cl_uint *out_count, sb_error *err) {
    struct sb__opencl_queued *queued = &device->queued;
    cl_int result = CL_SUCCESS;
    size_t most = 1;
    sb__opencl_lock_take(&queued->lock);
    for (const struct sb__opencl_command *at = queued->first; at && !event->is_ordered;
         at = at->next)
        most += at->queue == event->queue;
    *out_count = 0;
    *out = malloc(most * sizeof **out);
    if (!*out)
        result = CL_OUT_OF_HOST_MEMORY;
    else if (event->is_ordered && event->count)
        result = add_running(event->at[event->count - 1], *out, out_count);
    for (struct sb__opencl_command *at = queued->first;
         at && !event->is_ordered && result == CL_SUCCESS; at = at->next)
        if (at->queue == event->queue && at->number < event->end)
            result = add_running(at, *out, out_count);
    sb__opencl_lock_give(&queued->lock);
    if (result == CL_SUCCESS)
        return SB_OK;
    sb__opencl_running_end(*out, *out_count);
    return sb__opencl_status(device, result, "a wait for an event", err);
}

void sb__opencl_running_end(cl_event *events, cl_uint count) {
    for (cl_uint i = 0; i < count; i++)
        (void)clReleaseEvent(events[i]);
    free(events);
}

void sb__opencl_event_end(struct sb__opencl_device *device, struct sb__opencl_event *event) {
    sb__opencl_lock_take(&device->queued.lock);
    for (cl_uint i = 0; i < event->count; i++)
        release(&device->queued, event->at[i]);
    sb__opencl_lock_give(&device->queued.lock);
    free(event);
}

static bool reports(const struct sb__opencl_event *event,
                    const struct sb__opencl_command *command) {
    for (cl_uint i = 0; i < event->reported; i++)
        if (event->at[i] == command)
            return true;
    return false;
}

void sb__opencl_note_failures(struct sb__opencl_device *device,
                              const struct sb__opencl_event *event) {
    struct sb__opencl_command *before = NULL, *next;
    sb__opencl_lock_take(&device->queued.lock);
    for (struct sb__opencl_command *at = device->queued.first; at; at = next) {
        cl_int progress;
        next = at->next;
        if (!reports(event, at) || sb__opencl_progress(at, &progress) != CL_SUCCESS) {
            before = at;
            continue;
        }
        take_result(device, before, at, progress);
    }
    sb__opencl_lock_give(&device->queued.lock);
}
