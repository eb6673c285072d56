/* The backend table of the simulated device. Most slots count the call, apply an armed fault that
   is due, and queue work or return. */
#include "sim/table.h"

#include "base/checked.h"
#include "port/pages.h"
#include "sim/device.h"

#include <syncblob/dlpack.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- life ---------------------------------------------------------------------------- */

static sb_status sim_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    (void)ordinal; /* every ordinal is valid */
    struct sb__sim *sim = calloc(1, sizeof *sim);
    if (!sim || !sb__recursive_mutex_init(&sim->lock)) {
        free(sim);
        return sb__sim_fail_memory(err, sizeof *sim);
    }
    sim->rubbish = SB__NOTHING_KEPT;
    sim->is_coherent = user != NULL;
    sb__sim_streams_open(sim);
    *out = sim;
    return SB_OK;
}

static void sim_close(void *device) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb__sim_streams_close(sim);
    sb__sim_memory_close(sim);
    sb__recursive_mutex_unlock(&sim->lock);
    sb__recursive_mutex_destroy(&sim->lock);
    free(sim);
}

/* --- queued work ---------------------------------------------------------------------- */

static struct sb__sim_op *make_op(const struct sb__sim_work *work, bool doomed) {
    struct sb__sim_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->work = *work;
    op->doomed = doomed;
    (void)snprintf(op->reason, sizeof op->reason, "a queued %s was made to fail",
                   sb__sim_op_name(work->op));
    return op;
}

static sb_status finish(struct sb__sim *sim, struct sb__sim_stream *stream, sb_error *err) {
    char reason[SB__SIM_REASON];
    sb__sim_run(sim, stream, stream->queued);
    if (sb__sim_take_failure(stream, stream->queued, false, reason))
        return sim->lost ? sb__sim_check_lost(sim, err) : sb__sim_fail_device(err, reason);
    return sb__sim_check_lost(sim, err);
}

static sb_status submit_locked(struct sb__sim *sim, const struct sb__sim_work *work,
                               sb_stream handle, sb_error *err) {
    char reason[SB__SIM_REASON];
    bool breaks = false;
    sb_status st = sb__sim_enter(sim, work->op, &breaks, err);
    bool valid = sb__sim_is_valid(sim, work, false, reason);
    if (st != SB_OK && breaks && valid)
        sb__sim_spoil(sim, work);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, handle);
    if (!stream)
        return sb__sim_fail_stream(err, handle);
    if (!valid)
        return sb__sim_fail_device(err, reason);
    struct sb__sim_op *op = make_op(work, breaks);
    if (!op)
        return sb__sim_fail_memory(err, sizeof *op);
    if (work->event) {
        work->event->refs++;
        if (work->op == SB_SIM_EVENT_RECORD) {
            work->event->stream = handle;
            work->event->ticket = stream->queued + 1;
        }
    }
    sb__sim_enqueue(sim, stream, op);
    return work->result ? finish(sim, stream, err) : SB_OK;
}

static sb_status submit(void *device, const struct sb__sim_work *work, sb_stream stream,
                        sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = submit_locked(sim, work, stream, err);
    sb__recursive_mutex_unlock(&sim->lock);
    return st;
}

static sb_status sim_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    struct sb__sim_work work = {.op = SB_SIM_ZERO, .dst = dst, .bytes = bytes};
    return submit(device, &work, stream, err);
}

static sb_status sim_upload(void *device, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err) {
    struct sb__sim_work work = {.op = SB_SIM_UPLOAD, .dst = dst, .src = src, .bytes = bytes};
    return submit(device, &work, stream, err);
}

static sb_status sim_download(void *device, void *dst, const void *src, size_t bytes,
                              sb_stream stream, sb_error *err) {
    struct sb__sim_work work = {.op = SB_SIM_DOWNLOAD, .dst = dst, .src = src, .bytes = bytes};
    return submit(device, &work, stream, err);
}

static sb_status sim_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err) {
    struct sb__sim_work work = {.op = SB_SIM_COPY, .dst = dst, .src = src, .bytes = bytes};
    return submit(device, &work, stream, err);
}

/* --- memory ----------------------------------------------------------------------------- */

/* Runs all queued work, and returns whether a queued free has released memory. */
static bool run_frees(struct sb__sim *sim) {
    const size_t before = sim->block_count;
    sb__sim_drain(sim);
    return sim->block_count < before;
}

static sb_status alloc_locked(struct sb__sim *sim, size_t bytes, sb_stream handle, void **out,
                              sb_error *err) {
    sb_status st = sb__sim_enter(sim, SB_SIM_ALLOC, NULL, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, handle);
    if (!stream)
        return sb__sim_fail_stream(err, handle);
    struct sb__sim_block *block = sb__sim_block_create(sim, bytes);
    if (!block && run_frees(sim))
        block = sb__sim_block_create(sim, bytes);
    if (!block)
        return sb__sim_fail_memory(err, bytes);
    *out = block->address;
    if (!block->ready)
        sb__sim_enqueue(sim, stream, &block->reach);
    return SB_OK;
}

static sb_status sim_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                           sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = alloc_locked(sim, bytes, stream, out, err);
    sb__recursive_mutex_unlock(&sim->lock);
    return st;
}

/* Marks the device as lost after an invalid free, which cannot return an error. */
static void sim_free(void *device, void *ptr, size_t bytes, sb_stream handle) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    struct sb__sim_block *block = sb__sim_block_find(sim, ptr, bytes);
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, handle);
    bool is_whole = block && block->bytes == bytes;
    if (!stream || !is_whole || block->user_owned || block->release.ticket)
        sb__sim_lose(sim, "free of %zu bytes at %p: not an allocation of the library", bytes, ptr);
    else
        sb__sim_enqueue(sim, stream, &block->release);
    if (sim->lost)
        sb__sim_drain(sim);
    sb__recursive_mutex_unlock(&sim->lock);
}

static sb_status sim_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = sb__sim_enter(sim, SB_SIM_ALLOC_PINNED, NULL, err);
    void *pinned = st == SB_OK ? sb__sim_backing_alloc(sim, bytes) : NULL;
    sb__recursive_mutex_unlock(&sim->lock);
    if (st != SB_OK)
        return st;
    if (!pinned)
        return sb__sim_fail_memory(err, bytes);
    *out = pinned;
    return SB_OK;
}

static void sim_free_pinned(void *device, void *ptr, size_t bytes) {
    (void)device;
    sb__sim_backing_free(ptr, bytes);
}

static sb_status sim_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err) {
    struct sb__sim *sim = device;
    char reason[SB__SIM_REASON];
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = sb__sim_enter(sim, SB_SIM_CHECK_POINTER, NULL, err);
    bool found = sb__sim_block_find(sim, ptr, bytes) != NULL;
    sb__recursive_mutex_unlock(&sim->lock);
    if (st != SB_OK || found)
        return st;
    (void)snprintf(reason, sizeof reason, "%zu bytes at %p are not allocated on this device", bytes,
                   ptr);
    return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, reason);
}

/* --- streams and events ------------------------------------------------------------------ */

static sb_stream sim_own_stream(void *device) {
    const struct sb__sim *sim = device;
    return sim->own.handle;
}

static sb_status sim_check_stream(void *device, sb_stream handle, sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = sb__sim_enter(sim, SB_SIM_CHECK_STREAM, NULL, err);
    bool found = sb__sim_stream_find(sim, handle) != NULL;
    sb__recursive_mutex_unlock(&sim->lock);
    if (st != SB_OK || found)
        return st;
    return sb__sim_fail_stream(err, handle);
}

static sb_status sim_stream_synchronize(void *device, sb_stream handle, sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = sb__sim_enter(sim, SB_SIM_STREAM_SYNCHRONIZE, NULL, err);
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, handle);
    if (st == SB_OK)
        st = stream ? finish(sim, stream, err) : sb__sim_fail_stream(err, handle);
    sb__recursive_mutex_unlock(&sim->lock);
    return st;
}

static sb_status sim_event_record(void *device, sb_stream stream, void **out, sb_error *err) {
    struct sb__sim_event *event = calloc(1, sizeof *event);
    struct sb__sim_work work = {.op = SB_SIM_EVENT_RECORD, .event = event};
    if (!event)
        return sb__sim_fail_memory(err, sizeof *event);
    event->sim = device;
    event->refs = 1;
    sb_status st = submit(device, &work, stream, err);
    if (st != SB_OK) {
        free(event);
        return st;
    }
    *out = event;
    return SB_OK;
}

static sb_status sim_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    struct sb__sim_work work = {.op = SB_SIM_STREAM_WAIT, .event = event};
    if (work.event->sim != device)
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "the event belongs to another device");
    return submit(device, &work, stream, err);
}

static sb_status event_wait_locked(struct sb__sim *sim, struct sb__sim_event *event,
                                   sb_error *err) {
    char reason[SB__SIM_REASON];
    sb_status st = sb__sim_enter(sim, SB_SIM_EVENT_WAIT, NULL, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, event->stream);
    if (!event->done)
        sb__sim_run(sim, stream, event->ticket);
    if (event->failed && stream)
        (void)sb__sim_take_failure(stream, event->ticket, true, reason);
    if (sim->lost)
        return sb__sim_check_lost(sim, err);
    return event->failed ? sb__sim_fail_device(err, event->reason) : SB_OK;
}

static sb_status sim_event_wait(void *device, void *event, sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = event_wait_locked(sim, event, err);
    sb__recursive_mutex_unlock(&sim->lock);
    return st;
}

/* Does not count the call. No fault can make the call fail. */
static sb_status sim_event_query(void *device, void *event, int32_t *out_done, sb_error *err) {
    struct sb__sim *sim = device;
    const struct sb__sim_event *asked = event;
    (void)err;
    sb__recursive_mutex_lock(&sim->lock);
    *out_done = asked->done;
    sb__recursive_mutex_unlock(&sim->lock);
    return SB_OK;
}

static void sim_event_destroy(void *device, void *event) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb__sim_event_release(event);
    sb__recursive_mutex_unlock(&sim->lock);
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static sb_status sim_prepare_arithmetic(void *device, sb_error *err) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
    sb_status st = sb__sim_enter(sim, SB_SIM_PREPARE_ARITHMETIC, NULL, err);
    sb__recursive_mutex_unlock(&sim->lock);
    return st;
}

static sb_status submit_arithmetic(void *device, struct sb__sim_work *work, sb_stream stream,
                                   sb_error *err) {
    if (!sb__bytes_of(work->count, sb_dtype_size(work->dtype), &work->bytes))
        return sb__sim_fail_device(err, "no memory can hold that many elements");
    return submit(device, work, stream, err);
}

static sb_status sim_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                          void *y, sb_stream stream, sb_error *err) {
    struct sb__sim_work work = {
        .op = SB_SIM_AXPY, .dst = y, .src = x, .dtype = dtype, .count = count, .alpha = alpha};
    return submit_arithmetic(device, &work, stream, err);
}

static sb_status sim_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err) {
    struct sb__sim_work work = {
        .op = SB_SIM_SCALE, .dst = x, .dtype = dtype, .count = count, .alpha = alpha};
    return submit_arithmetic(device, &work, stream, err);
}

static sb_status sum(void *device, int32_t op, int32_t dtype, int64_t count, const void *x,
                     double *out, sb_stream stream, sb_error *err) {
    double result = 0;
    struct sb__sim_work work = {
        .op = op, .src = x, .dtype = dtype, .count = count, .result = &result};
    sb_status st = submit_arithmetic(device, &work, stream, err);
    if (st == SB_OK)
        *out = result;
    return st;
}

static sb_status sim_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    return sum(device, SB_SIM_ASUM, dtype, count, x, out, stream, err);
}

static sb_status sim_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    return sum(device, SB_SIM_SUMSQ, dtype, count, x, out, stream, err);
}

static const void *sim_extension(void *device, const char *name) {
    (void)device;
    return strcmp(name, SB_SIM_DEVICE) == 0 ? &sb__sim_controls : NULL;
}

const sb_backend sb__sim_backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .alloc = sim_alloc,
    .free = sim_free,
    .zero = sim_zero,
    .upload = sim_upload,
    .download = sim_download,
    .copy = sim_copy,
    .alloc_pinned = sim_alloc_pinned,
    .free_pinned = sim_free_pinned,
    .check_pointer = sim_check_pointer,
    .own_stream = sim_own_stream,
    .check_stream = sim_check_stream,
    .stream_synchronize = sim_stream_synchronize,
    .event_record = sim_event_record,
    .stream_wait = sim_stream_wait,
    .event_wait = sim_event_wait,
    .event_destroy = sim_event_destroy,
    .prepare_arithmetic = sim_prepare_arithmetic,
    .axpy = sim_axpy,
    .scale = sim_scale,
    .asum = sim_asum,
    .sumsq = sim_sumsq,
    .dlpack_device = SB_DL_DEVICE_EXTENSION,
    .event_query = sim_event_query,
    .extension = sim_extension,
};
