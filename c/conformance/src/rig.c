#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"any slot",
#define NAME(slot) #slot,
                                    SB__RIG_SLOTS(NAME)
#undef NAME
};

/* --- failures ------------------------------------------------------------------------- */

static sb_status fill(sb_error *err, sb_status status, enum sb__rig_slot slot) {
    char text[96];
    (void)snprintf(text, sizeof text, "a planted failure of %s", names[slot]);
    return sb_error_fill(err, status, 1, text);
}

/* Returns whether bytes may be lost when `slot` fails at once with `status`. Arithmetic may have
   changed its output, and a wait may report that earlier work has failed. */
static bool is_harmful(enum sb__rig_slot slot, sb_status status) {
    switch (slot) {
    case SB__RIG_stream_synchronize:
    case SB__RIG_event_wait:
        return true;
    case SB__RIG_axpy:
    case SB__RIG_scale:
    case SB__RIG_asum:
    case SB__RIG_sumsq:
    case SB__RIG_event_record:
        return status == SB_ERR_DEVICE_FAILURE;
    default:
        return false;
    }
}

/* Counts a call. If the planted failure is due, returns the failure, or sets `*is_late` if the
   queued work must fail. `is_late` is NULL for a slot that queues nothing. */
static sb_status enter(struct sb__rig *rig, enum sb__rig_slot slot, bool *is_late, sb_error *err) {
    if (is_late)
        *is_late = false;
    if (rig->is_lost)
        return fill(err, SB_ERR_DEVICE_LOST, slot);
    if (!rig->countdown || (rig->slot != slot && (rig->slot || slot == SB__RIG_open)) ||
        --rig->countdown)
        return SB_OK;
    rig->fired++;
    if (is_late && rig->is_late && rig->inner.event_record &&
        rig->failure_count < SB__RIG_MAX_FAILURES) {
        *is_late = true;
        rig->late++;
        rig->harmful++;
        return SB_OK;
    }
    rig->is_lost = rig->status == SB_ERR_DEVICE_LOST;
    rig->harmful += rig->is_lost || is_harmful(slot, rig->status);
    return fill(err, rig->status, slot);
}

/* If `st` is SB_OK, records that work on `stream` has failed. Returns `st`. */
static sb_status add_failure(struct sb__rig *rig, sb_stream stream, sb_status st) {
    if (st == SB_OK)
        rig->failures[rig->failure_count++] = (struct sb__rig_failure){.stream = stream};
    return st;
}

/* Queues the effect of work that fails halfway: zeroes the first half of the target. */
static sb_status spoil(struct sb__rig *rig, void *dst, size_t bytes, sb_stream stream,
                       sb_error *err) {
    return add_failure(rig, stream,
                       rig->inner.zero(rig->device, dst, (bytes + 1) / 2, stream, err));
}

/* Removes the failures of `event`, or of `stream` if `event` is NULL. Returns whether any
   existed. */
static bool take_failures(struct sb__rig *rig, sb_stream stream,
                          const struct sb__rig_event *event) {
    int32_t kept = 0;
    for (int32_t i = 0; i < rig->failure_count; i++) {
        const struct sb__rig_failure failure = rig->failures[i];
        if (event ? failure.event != event : failure.stream != stream)
            rig->failures[kept++] = failure;
    }
    const bool found = kept < rig->failure_count;
    rig->failure_count = kept;
    return found;
}

/* Converts the status `st` of the backend's wait to the status that the core receives. */
static sb_status leave_wait(const struct sb__rig *rig, enum sb__rig_slot slot, bool has_failed,
                            sb_status st, sb_error *err) {
    if (rig->is_lost)
        return fill(err, SB_ERR_DEVICE_LOST, slot);
    return st == SB_OK && has_failed ? fill(err, SB_ERR_DEVICE_FAILURE, slot) : st;
}

/* --- life and memory -------------------------------------------------------------------- */

static sb_status rig_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    struct sb__rig *rig = user;
    sb_status st = enter(rig, SB__RIG_open, NULL, err);
    if (st == SB_OK)
        st = rig->inner.open(rig->inner.user, ordinal, &rig->device, err);
    if (st != SB_OK)
        return st;
    rig->devices++;
    *out = rig;
    return SB_OK;
}

static void rig_close(void *device) {
    struct sb__rig *rig = device;
    rig->inner.close(rig->device);
    rig->devices--;
}

static sb_status rig_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                           sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_alloc, NULL, err);
    if (st == SB_OK)
        st = rig->inner.alloc(rig->device, bytes, stream, out, err);
    rig->blocks += st == SB_OK;
    return st;
}

static void rig_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    struct sb__rig *rig = device;
    rig->inner.free(rig->device, ptr, bytes, stream);
    rig->blocks--;
}

static sb_status rig_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_zero, &is_late, err);
    if (st != SB_OK)
        return st;
    return is_late ? spoil(rig, dst, bytes, stream, err)
                   : rig->inner.zero(rig->device, dst, bytes, stream, err);
}

static sb_status rig_upload(void *device, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_upload, &is_late, err);
    if (st != SB_OK)
        return st;
    return is_late ? spoil(rig, dst, bytes, stream, err)
                   : rig->inner.upload(rig->device, dst, src, bytes, stream, err);
}

static sb_status rig_download(void *device, void *dst, const void *src, size_t bytes,
                              sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_download, &is_late, err);
    if (st != SB_OK)
        return st;
    st = rig->inner.download(rig->device, dst, src, is_late ? (bytes + 1) / 2 : bytes, stream, err);
    return is_late ? add_failure(rig, stream, st) : st;
}

static sb_status rig_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_copy, &is_late, err);
    if (st != SB_OK)
        return st;
    return is_late ? spoil(rig, dst, bytes, stream, err)
                   : rig->inner.copy(rig->device, dst, src, bytes, stream, err);
}

static sb_status rig_alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_alloc_pinned, NULL, err);
    if (st == SB_OK)
        st = rig->inner.alloc_pinned(rig->device, bytes, out, err);
    rig->pinned += st == SB_OK;
    return st;
}

static void rig_free_pinned(void *device, void *ptr, size_t bytes) {
    struct sb__rig *rig = device;
    rig->inner.free_pinned(rig->device, ptr, bytes);
    rig->pinned--;
}

static sb_status rig_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_check_pointer, NULL, err);
    return st == SB_OK ? rig->inner.check_pointer(rig->device, ptr, bytes, err) : st;
}

static void rig_trim(void *device) {
    struct sb__rig *rig = device;
    rig->inner.trim(rig->device);
}

/* --- streams and events ------------------------------------------------------------------- */

static sb_stream rig_own_stream(void *device) {
    struct sb__rig *rig = device;
    return rig->own = rig->inner.own_stream(rig->device);
}

static uint32_t rig_lacks(void *device) {
    const struct sb__rig *rig = device;
    return rig->inner.lacks(rig->device);
}

static sb_stream rig_read_stream(void *device) {
    struct sb__rig *rig = device;
    return rig->inner.read_stream(rig->device);
}

static sb_status rig_check_stream(void *device, sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_check_stream, NULL, err);
    return st == SB_OK ? rig->inner.check_stream(rig->device, stream, err) : st;
}

/* Waits for the backend's stream even if the device is lost. */
static sb_status rig_stream_synchronize(void *device, sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st =
        rig->is_lost ? (sb_status)SB_OK : enter(rig, SB__RIG_stream_synchronize, NULL, err);
    if (st != SB_OK && !rig->is_lost)
        return st;
    st = rig->inner.stream_synchronize(rig->device, stream, err);
    const bool has_failed = take_failures(rig, stream, NULL);
    return leave_wait(rig, SB__RIG_stream_synchronize, has_failed, st, err);
}

static sb_status rig_event_record(void *device, sb_stream stream, void **out, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_event_record, NULL, err);
    if (st != SB_OK)
        return st;
    struct sb__rig_event *event = calloc(1, sizeof *event);
    if (!event)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, NULL);
    st = rig->inner.event_record(rig->device, stream, &event->inner, err);
    if (st != SB_OK) {
        free(event);
        return st;
    }
    for (int32_t i = 0; i < rig->failure_count; i++) {
        struct sb__rig_failure *failure = &rig->failures[i];
        if (failure->stream != stream || failure->is_covered)
            continue;
        failure->is_covered = event->has_failed = true;
        failure->event = event;
    }
    rig->events++;
    *out = event;
    return SB_OK;
}

static sb_status rig_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    struct sb__rig *rig = device;
    const struct sb__rig_event *waited = event;
    sb_status st = enter(rig, SB__RIG_stream_wait, NULL, err);
    return st == SB_OK ? rig->inner.stream_wait(rig->device, stream, waited->inner, err) : st;
}

static sb_status rig_event_wait(void *device, void *event, sb_error *err) {
    struct sb__rig *rig = device;
    const struct sb__rig_event *waited = event;
    sb_status st = rig->is_lost ? (sb_status)SB_OK : enter(rig, SB__RIG_event_wait, NULL, err);
    if (st != SB_OK && !rig->is_lost)
        return st;
    st = rig->inner.event_wait(rig->device, waited->inner, err);
    (void)take_failures(rig, NULL, waited);
    return leave_wait(rig, SB__RIG_event_wait, waited->has_failed, st, err);
}

static void rig_event_destroy(void *device, void *event) {
    struct sb__rig *rig = device;
    struct sb__rig_event *destroyed = event;
    for (int32_t i = 0; i < rig->failure_count; i++)
        if (rig->failures[i].event == destroyed)
            rig->failures[i].event = NULL;
    rig->inner.event_destroy(rig->device, destroyed->inner);
    free(destroyed);
    rig->events--;
}

static sb_status rig_after_default(void *device, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_after_default, NULL, err);
    return st == SB_OK ? rig->inner.after_default(rig->device, err) : st;
}

static sb_status rig_event_query(void *device, void *event, int32_t *out_done, sb_error *err) {
    struct sb__rig *rig = device;
    const struct sb__rig_event *asked = event;
    sb_status st = rig->is_lost ? (sb_status)SB_OK : enter(rig, SB__RIG_event_query, NULL, err);
    if (st != SB_OK && !rig->is_lost)
        return st;
    return rig->inner.event_query(rig->device, asked->inner, out_done, err);
}

/* --- arithmetic ----------------------------------------------------------------------------- */

static sb_status rig_prepare_arithmetic(void *device, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_prepare_arithmetic, NULL, err);
    return st == SB_OK ? rig->inner.prepare_arithmetic(rig->device, err) : st;
}

static sb_status rig_axpy(void *device, sb_dtype dtype, int64_t count, double alpha, const void *x,
                          void *y, sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_axpy, &is_late, err);
    if (st != SB_OK)
        return st;
    return is_late ? spoil(rig, y, (size_t)count * sb_dtype_size(dtype), stream, err)
                   : rig->inner.axpy(rig->device, dtype, count, alpha, x, y, stream, err);
}

static sb_status rig_scale(void *device, sb_dtype dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    bool is_late;
    sb_status st = enter(rig, SB__RIG_scale, &is_late, err);
    if (st != SB_OK)
        return st;
    return is_late ? spoil(rig, x, (size_t)count * sb_dtype_size(dtype), stream, err)
                   : rig->inner.scale(rig->device, dtype, count, alpha, x, stream, err);
}

/* A sum waits for its stream, so the sum returns failures of the stream's work. */
static sb_status rig_asum(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_asum, NULL, err);
    if (st != SB_OK)
        return st;
    st = rig->inner.asum(rig->device, dtype, count, x, out, stream, err);
    return leave_wait(rig, SB__RIG_asum, take_failures(rig, stream, NULL), st, err);
}

static sb_status rig_sumsq(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    struct sb__rig *rig = device;
    sb_status st = enter(rig, SB__RIG_sumsq, NULL, err);
    if (st != SB_OK)
        return st;
    st = rig->inner.sumsq(rig->device, dtype, count, x, out, stream, err);
    return leave_wait(rig, SB__RIG_sumsq, take_failures(rig, stream, NULL), st, err);
}

void sb__rig_make(struct sb__rig *rig, const sb_backend *inner) {
    *rig = (struct sb__rig){.inner = *inner, .table = *inner};
    rig->table.user = rig;
    rig->table.extension = NULL; /* its functions would receive the rig, not the device */
#define WRAP(slot)                                                                                 \
    if (inner->slot)                                                                               \
        rig->table.slot = rig_##slot;
    SB__RIG_SLOTS(WRAP)
    WRAP(close)
    WRAP(free)
    WRAP(free_pinned)
    WRAP(trim)
    WRAP(own_stream)
    WRAP(lacks)
    WRAP(read_stream)
    WRAP(event_destroy)
#undef WRAP
}
