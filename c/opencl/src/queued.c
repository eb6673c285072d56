/* The commands that the library has queued. The library must report every failure, but OpenCL's
   queues have no error state. After a failed command clFinish succeeds, and a marker may succeed.
   Only the command's own event contains the failure. The device therefore lists the events of all
   commands until the commands are known to have ended. */
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

/* --- streams. The callers hold queued.lock. ------------------------------------------------ */

static struct sb__opencl_stream *make_stream(struct sb__opencl_device *device,
                                             cl_command_queue queue) {
    static const sb__opencl_lock unlocked = SB__OPENCL_LOCK_INIT;
    struct sb__opencl_stream *stream = malloc(sizeof *stream);
    if (!stream)
        return NULL;
    *stream = (struct sb__opencl_stream){
        .next = device->streams, .queue = queue, .lock = unlocked, .is_shared = true};
    device->streams = stream;
    return stream;
}

static struct sb__opencl_stream *find_stream(const struct sb__opencl_device *device,
                                             cl_command_queue queue) {
    struct sb__opencl_stream *stream = device->streams;
    while (stream && stream->queue != queue)
        stream = stream->next;
    return stream;
}

/* Returns the stream of a queue with a new reference, or NULL if out of memory. */
static struct sb__opencl_stream *stream_of(struct sb__opencl_device *device,
                                           cl_command_queue queue) {
    struct sb__opencl_stream *stream = find_stream(device, queue);
    if (!stream)
        stream = make_stream(device, queue);
    if (stream)
        stream->refs++;
    return stream;
}

static void release_stream(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    struct sb__opencl_stream **at = &device->streams;
    if (--stream->refs)
        return;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream);
}

/* --- the list of a stream. The callers hold queued.lock. ----------------------------------- */

/* Keeps a failed event until SB__OPENCL_FAILED further events have failed, then releases it. */
static void release_later(struct sb__opencl_queued *queued, cl_event event) {
    cl_event *slot = &queued->failed[queued->num_failed++ % SB__OPENCL_FAILED];
    if (*slot)
        (void)clReleaseEvent(*slot);
    *slot = event;
}

static void release(struct sb__opencl_queued *queued, struct sb__opencl_command *command) {
    if (--command->refs)
        return;
    if (command->failure)
        release_later(queued, command->event);
    else
        (void)clReleaseEvent(command->event);
    free(command);
}

static void append(struct sb__opencl_device *device, struct sb__opencl_command *command) {
    struct sb__opencl_stream *stream = command->stream;
    stream->refs++;
    command->refs++;
    command->number = device->queued.count++;
    command->is_listed = true;
    command->before = stream->tail;
    *(stream->tail ? &stream->tail->after : &stream->first) = command;
    stream->tail = command;
    if (!stream->running)
        stream->running = command;
    if (!stream->uncovered)
        stream->uncovered = command;
    stream->barriers += command->kind == SB__OPENCL_BARRIER;
}

static void unlist(struct sb__opencl_command *command) {
    struct sb__opencl_stream *stream = command->stream;
    *(command->before ? &command->before->after : &stream->first) = command->after;
    *(command->after ? &command->after->before : &stream->tail) = command->before;
    if (stream->running == command)
        stream->running = command->after;
    else if (command->failure)
        stream->failed[command->kind]--;
    if (stream->uncovered == command)
        stream->uncovered = command->after;
    stream->barriers -= command->kind == SB__OPENCL_BARRIER;
    command->is_listed = false;
}

/* Removes a command from the list. `progress` is negative if the command has failed. */
static void take_out(struct sb__opencl_device *device, struct sb__opencl_command *command,
                     cl_int progress) {
    unlist(command);
    if (progress < 0)
        command->failure = progress;
    if (command->freed && command->failure) /* the failed command has not freed the memory */
        clSVMFree(device->context, command->freed);
    release_stream(device, command->stream);
    release(&device->queued, command);
}

/* Returns the index in `unclaimed` of a command that `thread` has queued on `queue`, or
   num_unclaimed if there is no such command. */
static cl_uint find_unclaimed(const struct sb__opencl_queued *queued, cl_command_queue queue,
                              int64_t thread) {
    cl_uint i = 0;
    while (i < queued->num_unclaimed &&
           (queued->unclaimed[i]->queue != queue || queued->unclaimed[i]->thread != thread))
        i++;
    return i;
}

/* Adds a failed command to `unclaimed`. Retains the queue, so that OpenCL does not give the queue's
   address to a new queue. The queue still exists: before a caller releases a queue,
   sb_context_forget_stream empties the list of the queue's commands. */
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

/* Removes a command from `unclaimed`. The caller releases the command. The release of the queue
   does not wait, even if it drops the last reference. */
static struct sb__opencl_command *remove_unclaimed(struct sb__opencl_queued *queued, cl_uint i) {
    struct sb__opencl_command *command = queued->unclaimed[i];
    queued->unclaimed[i] = queued->unclaimed[--queued->num_unclaimed];
    (void)clReleaseCommandQueue(command->queue);
    return command;
}

/* Removes from `unclaimed` the command that this thread has queued on the queue. Returns the
   command, which the caller must release, or NULL. */
static struct sb__opencl_command *claim(struct sb__opencl_queued *queued, cl_command_queue queue) {
    const cl_uint i = find_unclaimed(queued, queue, this_thread());
    return i < queued->num_unclaimed ? remove_unclaimed(queued, i) : NULL;
}

/* Removes the record of a command whose result a wait has returned. */
static void take_result(struct sb__opencl_device *device, struct sb__opencl_command *command,
                        cl_int progress) {
    if (progress < 0 && command->kind == SB__OPENCL_WORK && command->thread != this_thread() &&
        !command->is_covered)
        keep_failure(&device->queued, command);
    take_out(device, command, progress);
}

/* Returns a command of the stream that has not ended and whose number is in [from, end), or NULL.
 */
static struct sb__opencl_command *running_in(const struct sb__opencl_stream *stream, int64_t from,
                                             int64_t end) {
    cl_int progress;
    for (struct sb__opencl_command *at = stream->running; at && at->number < end; at = at->after)
        if (at->number >= from &&
            (sb__opencl_progress(at, &progress) != CL_SUCCESS || progress > CL_COMPLETE))
            return at;
    return NULL;
}

/* Moves `running` to the first command that has not ended, or to `stop`. Removes the commands that
   have succeeded. Returns CL_SUCCESS, or the error of a query. The caller has a reference to the
   stream. */
static cl_int advance(struct sb__opencl_device *device, struct sb__opencl_stream *stream,
                      const struct sb__opencl_command *stop) {
    struct sb__opencl_command *next;
    for (struct sb__opencl_command *at = stream->running; at && at != stop; at = next) {
        cl_int progress;
        const cl_int result = sb__opencl_progress(at, &progress);
        next = at->after;
        if (result != CL_SUCCESS || progress > CL_COMPLETE)
            return result;
        if (progress == CL_COMPLETE) {
            take_out(device, at, progress);
            continue;
        }
        at->failure = progress;
        stream->failed[at->kind]++;
        stream->running = next;
    }
    return CL_SUCCESS;
}

/* Returns whether all commands that were queued before `command`, on any queue, have ended. */
static bool is_oldest(const struct sb__opencl_device *device,
                      const struct sb__opencl_command *command) {
    for (const struct sb__opencl_stream *at = device->streams; at; at = at->next)
        if (running_in(at, 0, command->number))
            return false;
    return true;
}

static void drop_in_stream(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    struct sb__opencl_command *next;
    if (!stream->failed[SB__OPENCL_BARRIER] && !stream->failed[SB__OPENCL_FREE])
        return;
    for (struct sb__opencl_command *at = stream->first; at != stream->running; at = next) {
        next = at->after;
        if (at->kind >= SB__OPENCL_BARRIER && is_oldest(device, at))
            take_out(device, at, at->failure);
    }
}

/* Removes failed barriers and failed frees after all earlier commands have ended. Until then,
   earlier commands may use the memory of a failed free. Also, pocl 3.1 aborts if a barrier's event
   is released before a command for which the barrier waits has ended. Visits all queues, since
   callers may release their queues. */
static void drop_unreported(struct sb__opencl_device *device) {
    struct sb__opencl_stream *next;
    for (struct sb__opencl_stream *at = device->streams; at; at = next) {
        at->refs++; /* so that `at` stays in the list */
        drop_in_stream(device, at);
        next = at->next;
        release_stream(device, at);
    }
}

static void set_last(struct sb__opencl_queued *queued, struct sb__opencl_stream *stream,
                     struct sb__opencl_command *command) {
    if (stream->last)
        release(queued, stream->last);
    stream->last = command;
    if (command)
        command->refs++;
}

/* --- a command ------------------------------------------------------------------------- */

static struct sb__opencl_command *make(const struct sb__opencl_device *device,
                                       cl_command_queue queue, sb_error *err) {
    struct sb__opencl_command *command = malloc(sizeof *command); /* calloc is slower */
    if (!command) {
        (void)sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a record of a command", err);
        return NULL;
    }
    *command = (struct sb__opencl_command){.queue = queue, .thread = this_thread()};
    return command;
}

sb_status sb__opencl_begin(struct sb__opencl_device *device, cl_command_queue queue,
                           struct sb__opencl_command **out, sb_error *err) {
    struct sb__opencl_command *command = make(device, queue, err);
    if (!command)
        return err->code;
    sb__opencl_lock_take(&device->queued.lock);
    command->stream = stream_of(device, queue);
    sb__opencl_lock_give(&device->queued.lock);
    if (!command->stream) {
        free(command);
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a record of a queue", err);
    }
    sb__opencl_lock_take(&command->stream->lock);
    *out = command;
    return SB_OK;
}

static void enlist(struct sb__opencl_device *device, struct sb__opencl_command *command) {
    struct sb__opencl_stream *stream = command->stream;
    (void)advance(device, stream, NULL);
    drop_unreported(device);
    append(device, command);
    if (!stream->is_shared)
        set_last(&device->queued, stream, command);
}

sb_status sb__opencl_end(struct sb__opencl_device *device, struct sb__opencl_command *command,
                         cl_int result, const char *call, sb_error *err) {
    const cl_command_queue queue = command->queue;
    struct sb__opencl_stream *stream = command->stream;
    sb__opencl_lock_take(&device->queued.lock);
    if (result == CL_SUCCESS)
        enlist(device, command);
    else
        free(command);
    sb__opencl_lock_give(&stream->lock);
    release_stream(device, stream);
    sb__opencl_lock_give(&device->queued.lock);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, call, err);
    (void)clFlush(queue); /* a failure is harmless: a wait also submits the command */
    return SB_OK;
}

/* Queues a marker. Call with queued.lock held, and append the marker. */
static struct sb__opencl_command *mark(const struct sb__opencl_device *device,
                                       struct sb__opencl_stream *stream, sb_error *err) {
    struct sb__opencl_command *marker = make(device, stream->queue, err);
    if (!marker)
        return NULL;
    marker->stream = stream;
    marker->kind = SB__OPENCL_MARKER;
    marker->is_covered = true; /* an event always reports its own marker */
    const cl_int result = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker->event);
    if (result == CL_SUCCESS)
        return marker;
    (void)sb__opencl_status(device, result, "clEnqueueMarkerWithWaitList", err);
    free(marker);
    return NULL;
}

cl_int sb__opencl_mark(struct sb__opencl_device *device, const struct sb__opencl_command *barrier) {
    struct sb__opencl_command *marker = NULL;
    sb_error err = {.device_code = CL_SUCCESS};
    sb__opencl_lock_take(&device->queued.lock);
    if (barrier->stream->is_shared && (marker = mark(device, barrier->stream, &err)))
        append(device, marker);
    sb__opencl_lock_give(&device->queued.lock);
    return marker ? CL_SUCCESS : err.device_code;
}

/* --- waits. The caller of a function with the parameter `stream` holds queued.lock and has a
   reference to the stream. Functions that wait release the lock meanwhile. ------------------- */

/* Returns CL_SUCCESS if the wait itself succeeded, even if the command failed. Otherwise returns
   the error of the wait. */
static cl_int ignore_failure(cl_int result) {
    return result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_SUCCESS : result;
}

/* Waits for a command. Returns an error if the command has failed, as OpenCL requires of
   clWaitForEvents. Call without queued.lock. */
static cl_int wait_for_command(struct sb__opencl_command *command) {
    const cl_int result = clWaitForEvents(1, &command->event);
    if (result == CL_SUCCESS)
        command->is_complete = true;
    return result;
}

/* Waits for the stream's commands with numbers below `end`. Returns the first error. */
static cl_int wait_below(struct sb__opencl_device *device, struct sb__opencl_stream *stream,
                         int64_t end) {
    struct sb__opencl_command *running;
    cl_int result = CL_SUCCESS;
    for (int64_t from = 0; (running = running_in(stream, from, end));) {
        from = running->number + 1;
        running->refs++;
        sb__opencl_lock_give(&device->queued.lock);
        const cl_int waited = ignore_failure(wait_for_command(running));
        sb__opencl_lock_take(&device->queued.lock);
        release(&device->queued, running);
        (void)advance(device, stream, NULL); /* shortens the next search */
        result = result == CL_SUCCESS ? waited : result;
    }
    return result;
}

/* Waits for the commands of all streams with numbers below `end`. Returns the first error. */
static cl_int wait_below_in_all(struct sb__opencl_device *device, int64_t end) {
    cl_int result = CL_SUCCESS;
    struct sb__opencl_stream *next;
    for (struct sb__opencl_stream *at = device->streams; at && end; at = next) {
        at->refs++; /* so that `at` stays in the list */
        const cl_int waited = wait_below(device, at, end);
        next = at->next;
        release_stream(device, at);
        result = result == CL_SUCCESS ? waited : result;
    }
    return result;
}

/* Waits for a marker, for the queue, and for the queue's listed commands. The marker is not enough:
   if a command of the caller fails, the marker fails, perhaps before earlier commands end. A call
   of clFinish is not enough: in pocl 3.1 the call may return while a barrier waits for another
   queue. */
static cl_int wait_for_marker(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    const int64_t end = device->queued.count;
    sb_error err;
    struct sb__opencl_command *marker = mark(device, stream, &err);
    if (!marker)
        return err.device_code;
    append(device, marker); /* so that a later event or wait returns the marker's failure */
    marker->refs++;
    sb__opencl_lock_give(&device->queued.lock);
    cl_int result = ignore_failure(wait_for_command(marker));
    if (result == CL_SUCCESS)
        result = clFinish(stream->queue);
    sb__opencl_lock_take(&device->queued.lock);
    if (result == CL_SUCCESS)
        result = wait_below(device, stream, end);
    release(&device->queued, marker);
    return result;
}

/* Waits for the last command. If that command has failed, or the stream has a barrier, also waits
   for all earlier commands, because a failed barrier ends before earlier commands. */
static cl_int wait_for_last(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    struct sb__opencl_command *last = stream->last;
    last->refs++;
    sb__opencl_lock_give(&device->queued.lock);
    cl_int result = wait_for_command(last);
    sb__opencl_lock_take(&device->queued.lock);
    if (result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
        (result == CL_SUCCESS && stream->barriers))
        result = wait_below(device, stream, last->number);
    if (result == CL_SUCCESS && stream->last == last) {
        stream->last = NULL;
        last->refs--; /* this call still holds a reference */
    }
    release(&device->queued, last);
    return result;
}

static cl_int wait_for_stream(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    if (stream->is_shared)
        return wait_for_marker(device, stream);
    return stream->last ? wait_for_last(device, stream) : CL_SUCCESS;
}

/* Returns the number of the stream's last failed barrier plus 1, or 0 if no barrier has failed. */
static int64_t failed_barrier_end(const struct sb__opencl_stream *stream) {
    int64_t end = 0;
    cl_int progress;
    for (struct sb__opencl_command *at = stream->barriers ? stream->first : NULL; at;
         at = at->after)
        if (at->kind == SB__OPENCL_BARRIER && sb__opencl_progress(at, &progress) == CL_SUCCESS &&
            progress < 0)
            end = at->number + 1;
    return end;
}

bool sb__opencl_has_failed_barrier(struct sb__opencl_device *device, cl_command_queue queue) {
    sb__opencl_lock_take(&device->queued.lock);
    const struct sb__opencl_stream *stream = find_stream(device, queue);
    const bool has = stream && failed_barrier_end(stream) > 0;
    sb__opencl_lock_give(&device->queued.lock);
    return has;
}

/* Removes the records of the commands that have ended, and writes the code of the first failure to
   `*out_failure`. Keeps the last command of the library's queue if the command is known to be
   complete. `enlist` removes that command when the next command is queued. If a query fails,
   removes nothing. */
static cl_int take_over(struct sb__opencl_device *device, struct sb__opencl_stream *stream,
                        cl_int *out_failure) {
    const struct sb__opencl_command *tail = stream->tail;
    struct sb__opencl_command *claimed, *next;
    const cl_int result =
        advance(device, stream, tail && tail->is_complete && !stream->is_shared ? tail : NULL);
    if (result != CL_SUCCESS)
        return result;
    claimed = claim(&device->queued, stream->queue);
    if (claimed) {
        *out_failure = claimed->failure;
        release(&device->queued, claimed);
    }
    drop_unreported(device);
    for (struct sb__opencl_command *at = stream->first; at != stream->running; at = next) {
        next = at->after;
        if (at->kind >= SB__OPENCL_BARRIER)
            continue;
        if (*out_failure == CL_SUCCESS)
            *out_failure = at->failure;
        take_result(device, at, at->failure);
    }
    return CL_SUCCESS;
}

/* Takes queued.lock, waits for the queue, and writes OpenCL's code of the wait. Returns the stream,
   for end_wait, or NULL if there is no memory for the stream's record. */
static struct sb__opencl_stream *begin_wait(struct sb__opencl_device *device,
                                            cl_command_queue queue, cl_int *out_result) {
    sb__opencl_lock_take(&device->queued.lock);
    struct sb__opencl_stream *stream = stream_of(device, queue);
    *out_result = stream ? wait_for_stream(device, stream) : CL_OUT_OF_HOST_MEMORY;
    return stream;
}

static void end_wait(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    if (stream)
        release_stream(device, stream);
    sb__opencl_lock_give(&device->queued.lock);
}

/* Also frees memory that failed commands should have freed. */
cl_int sb__opencl_wait(struct sb__opencl_device *device, cl_command_queue queue) {
    cl_int result;
    struct sb__opencl_stream *stream = begin_wait(device, queue, &result);
    if (result == CL_SUCCESS)
        result = wait_below_in_all(device, failed_barrier_end(stream));
    if (result == CL_SUCCESS) {
        (void)advance(device, stream, stream->last);
        drop_unreported(device);
    }
    end_wait(device, stream);
    return result;
}

cl_int sb__opencl_finish(struct sb__opencl_device *device, cl_command_queue queue,
                         cl_int *out_failure) {
    cl_int result;
    struct sb__opencl_stream *stream = begin_wait(device, queue, &result);
    *out_failure = CL_SUCCESS;
    if (result == CL_SUCCESS)
        result = take_over(device, stream, out_failure);
    end_wait(device, stream);
    return result;
}

sb_status sb__opencl_report(const struct sb__opencl_device *device, cl_int failure, sb_error *err) {
    if (!device->queued.has_dropped)
        return sb__opencl_work_status(device, failure, err);
    return sb__opencl_fail(
        err, SB_ERR_DEVICE_LOST, failure,
        "opencl:%d: more than %d failures were returned only to threads that had "
        "not queued the work",
        device->ordinal, SB__OPENCL_FAILED);
}

void sb__opencl_share(struct sb__opencl_device *device) {
    sb__opencl_lock_take(&device->queued.lock);
    if (device->has_returned_queue) {
        set_last(&device->queued, &device->own, NULL);
        device->own.is_shared = true;
    }
    device->has_returned_queue = true;
    sb__opencl_lock_give(&device->queued.lock);
}

void sb__opencl_queued_begin(struct sb__opencl_device *device) {
    device->own.refs = device->reads.refs = 1;
    device->own.next = &device->reads;
    device->streams = &device->own;
}

static void empty(struct sb__opencl_device *device, struct sb__opencl_stream *stream) {
    struct sb__opencl_command *next;
    stream->refs++;
    set_last(&device->queued, stream, NULL);
    for (struct sb__opencl_command *at = stream->first; at; at = next) {
        cl_int progress = CL_COMPLETE;
        next = at->after;
        (void)sb__opencl_progress(at, &progress);
        take_out(device, at, progress);
    }
    release_stream(device, stream);
}

void sb__opencl_queued_end(struct sb__opencl_device *device) {
    struct sb__opencl_queued *queued = &device->queued;
    struct sb__opencl_stream *next;
    sb__opencl_lock_take(&queued->lock);
    (void)wait_below_in_all(device, queued->count);
    for (struct sb__opencl_stream *at = device->streams; at; at = next) {
        next = at->next;
        empty(device, at);
    }
    while (queued->num_unclaimed)
        release(queued, remove_unclaimed(queued, 0));
    for (int i = 0; i < SB__OPENCL_FAILED; i++)
        release_later(queued, NULL);
    sb__opencl_lock_give(&queued->lock);
}

/* --- events. The callers of the functions above sb__opencl_collect hold queued.lock. ------ */

static bool is_reported(const struct sb__opencl_command *command) {
    return !command->is_covered && command->kind == SB__OPENCL_WORK;
}

static void put(struct sb__opencl_event *event, struct sb__opencl_command *command) {
    event->at[event->count++] = command;
    command->refs++;
}

/* Returns an event with the stream's commands whose failures the event reports, or NULL. */
static struct sb__opencl_event *make_event(struct sb__opencl_stream *stream) {
    cl_uint most = 2; /* room for a claimed command and for the marker or last command */
    for (struct sb__opencl_command *at = stream->uncovered; at; at = at->after)
        most += is_reported(at);
    struct sb__opencl_event *event = malloc(sizeof *event + most * sizeof(void *));
    if (!event)
        return NULL;
    *event = (struct sb__opencl_event){.stream = stream};
    stream->refs++;
    for (struct sb__opencl_command *at = stream->uncovered; at; at = at->after)
        if (is_reported(at))
            put(event, at);
    return event;
}

static void free_event(struct sb__opencl_device *device, struct sb__opencl_event *event) {
    for (cl_uint i = 0; i < event->count; i++)
        release(&device->queued, event->at[i]);
    release_stream(device, event->stream);
    free(event);
}

/* Adds this thread's command from `unclaimed`, if any, and the command after which the event's work
   has ended. That command is the marker, if there is one, or the last command. */
static void put_end(struct sb__opencl_device *device, struct sb__opencl_event *event,
                    struct sb__opencl_command *marker) {
    struct sb__opencl_stream *stream = event->stream;
    struct sb__opencl_command *claimed = claim(&device->queued, stream->queue);
    if (claimed)
        event->at[event->count++] = claimed;
    if (marker)
        put(event, marker);
    event->reported = event->count;
    if (marker)
        append(device, marker);
    else if (stream->last && (!event->count || event->at[event->count - 1] != stream->last))
        put(event, stream->last);
    event->is_ordered = !marker && !stream->barriers;
    event->end = device->queued.count;
}

/* Makes later events omit the commands that this thread queued. */
static void cover(struct sb__opencl_stream *stream) {
    for (struct sb__opencl_command *at = stream->uncovered; at; at = at->after)
        at->is_covered = at->is_covered || at->thread == this_thread();
    while (stream->uncovered && stream->uncovered->is_covered)
        stream->uncovered = stream->uncovered->after;
}

/* Creates an event for sb__opencl_collect. Does not query the last command, or the commands behind
   a running command, because a query delays the driver's thread that runs the command. */
static sb_status collect(struct sb__opencl_device *device, struct sb__opencl_stream *stream,
                         struct sb__opencl_event **out, sb_error *err) {
    struct sb__opencl_command *marker = NULL, *last = stream->last;
    (void)advance(device, stream, last && last->kind != SB__OPENCL_BARRIER ? last : NULL);
    struct sb__opencl_event *event = make_event(stream);
    if (!event)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "an event", err);
    if (stream->is_shared && !(marker = mark(device, stream, err))) {
        free_event(device, event);
        return err->code;
    }
    put_end(device, event, marker);
    cover(stream);
    *out = event;
    return SB_OK;
}

/* Flushes a queue that may have a marker, because another queue may wait for the marker. */
sb_status sb__opencl_collect(struct sb__opencl_device *device, cl_command_queue queue,
                             struct sb__opencl_event **out, sb_error *err) {
    sb__opencl_lock_take(&device->queued.lock);
    struct sb__opencl_stream *stream = stream_of(device, queue);
    sb__opencl_lock_give(&device->queued.lock);
    if (!stream)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a record of a queue", err);
    sb__opencl_lock_take(&stream->lock);
    sb__opencl_lock_take(&device->queued.lock);
    const sb_status st = collect(device, stream, out, err);
    const bool may_have_marker = stream->is_shared;
    sb__opencl_lock_give(&stream->lock);
    release_stream(device, stream);
    sb__opencl_lock_give(&device->queued.lock);
    if (may_have_marker)
        (void)clFlush(queue);
    return st;
}

/* Waits for the last command first: if the event is ordered, the other commands have then ended. */
cl_int sb__opencl_await(struct sb__opencl_device *device, const struct sb__opencl_event *event) {
    cl_int result = CL_SUCCESS;
    for (cl_uint i = event->count; i-- > 0 && result == CL_SUCCESS;)
        result = ignore_failure(wait_for_command(event->at[i]));
    if (event->is_ordered || result != CL_SUCCESS)
        return result;
    sb__opencl_lock_take(&device->queued.lock);
    result = wait_below(device, event->stream, event->end);
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}

bool sb__opencl_runs(struct sb__opencl_device *device, const struct sb__opencl_event *event) {
    if (event->is_ordered)
        return false;
    sb__opencl_lock_take(&device->queued.lock);
    const bool runs = running_in(event->stream, 0, event->end);
    sb__opencl_lock_give(&device->queued.lock);
    return runs;
}

static cl_int add_running(struct sb__opencl_command *command, cl_event *out, cl_uint *count) {
    cl_int progress;
    if (sb__opencl_progress(command, &progress) == CL_SUCCESS && progress <= CL_COMPLETE)
        return CL_SUCCESS;
    const cl_int result = clRetainEvent(command->event);
    if (result == CL_SUCCESS)
        out[(*count)++] = command->event;
    return result;
}

/* Finds a recent barrier of the queue that waits for commands of `source` and has not failed.
   Returns the number below which the barrier waits for all commands, or 0 if there is no such
   barrier. With this number, a program that frees many memories queues barriers with few events. */
static int64_t awaited_end(const struct sb__opencl_device *device, cl_command_queue queue,
                           const struct sb__opencl_stream *source) {
    enum { RECENT = 16 };
    const struct sb__opencl_stream *stream = find_stream(device, queue);
    struct sb__opencl_command *at = stream && stream->barriers ? stream->tail : NULL;
    cl_int progress;
    for (int i = 0; i < RECENT && at; i++, at = at->before)
        if (at->awaited == source)
            return sb__opencl_progress(at, &progress) == CL_SUCCESS && progress >= CL_COMPLETE
                       ? at->awaited_end
                       : 0;
    return 0;
}

/* Collects the event's commands that have not ended and whose numbers are at least `from`. The
   stream lists every command that has not ended, so an unordered event needs only that list. */
static cl_int collect_running(const struct sb__opencl_event *event, int64_t from, cl_event **out,
                              cl_uint *out_count) {
    struct sb__opencl_command *first = event->is_ordered ? NULL : event->stream->running;
    struct sb__opencl_command *last =
        event->is_ordered && event->count ? event->at[event->count - 1] : NULL;
    cl_int result = CL_SUCCESS;
    size_t most = 1;
    while (first && first->number < from)
        first = first->after;
    for (const struct sb__opencl_command *at = first; at && at->number < event->end; at = at->after)
        most++;
    *out = malloc(most * sizeof **out);
    if (!*out)
        return CL_OUT_OF_HOST_MEMORY;
    if (last && last->number >= from)
        result = add_running(last, *out, out_count);
    for (struct sb__opencl_command *at = first;
         at && at->number < event->end && result == CL_SUCCESS; at = at->after)
        result = add_running(at, *out, out_count);
    return result;
}

sb_status sb__opencl_running(struct sb__opencl_device *device, const struct sb__opencl_event *event,
                             cl_command_queue queue, cl_event **out, cl_uint *out_count,
                             sb_error *err) {
    sb__opencl_lock_take(&device->queued.lock);
    *out_count = 0;
    const cl_int result =
        collect_running(event, awaited_end(device, queue, event->stream), out, out_count);
    sb__opencl_lock_give(&device->queued.lock);
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
    free_event(device, event);
    sb__opencl_lock_give(&device->queued.lock);
}

void sb__opencl_note_failures(struct sb__opencl_device *device,
                              const struct sb__opencl_event *event) {
    sb__opencl_lock_take(&device->queued.lock);
    for (cl_uint i = 0; i < event->reported; i++) {
        struct sb__opencl_command *at = event->at[i];
        cl_int progress;
        if (at->is_listed && sb__opencl_progress(at, &progress) == CL_SUCCESS)
            take_result(device, at, progress);
    }
    sb__opencl_lock_give(&device->queued.lock);
}

cl_int sb__opencl_take_markers(struct sb__opencl_device *device, struct sb__opencl_event *event,
                               cl_int *out_failure) {
    struct sb__opencl_stream *stream = event->stream;
    struct sb__opencl_command *next;
    cl_int result = CL_SUCCESS;
    sb__opencl_lock_take(&device->queued.lock);
    if (!event->is_ordered) /* the stream of an ordered event has no markers */
        result = advance(device, stream, NULL);
    for (struct sb__opencl_command *at = stream->failed[SB__OPENCL_MARKER] ? stream->first : NULL;
         at && at != stream->running && at->number < event->end; at = next) {
        next = at->after;
        if (at->kind != SB__OPENCL_MARKER)
            continue;
        if (event->earlier_failure == CL_SUCCESS)
            event->earlier_failure = at->failure;
        take_out(device, at, at->failure);
    }
    *out_failure = event->earlier_failure;
    sb__opencl_lock_give(&device->queued.lock);
    return result;
}
