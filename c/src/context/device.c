/* Calls the slots (function pointers) of the backend's table. */
#include "context/context.h"

#include "base/error.h"

#include <string.h>

static sb_status fail_unusable(const sb_context *context, sb_status st, sb_error *err) {
    switch (st) {
    case SB_ERR_NO_DEVICE:
        return sb__fail(err, st, "the context is host-only; create one with a device");
    case SB_ERR_FORKED:
        return sb__fail(err, st, "%s was opened before a fork; create a new context in the child",
                        context->device_name);
    default:
        return sb__fail(err, st, "%s was lost in an earlier failure; create a new context",
                        context->device_name);
    }
}

sb_status sb_context_device_status(const sb_context *context) {
    context = sb__context(context);
    if (!context->has_device)
        return SB_ERR_NO_DEVICE;
    if (!sb__context_is_ours(context))
        return SB_ERR_FORKED;
    return atomic_load_explicit(&context->device_lost, memory_order_relaxed);
}

sb_status sb__device_check(const sb_context *context, sb_error *err) {
    sb_status st = sb_context_device_status(context);
    return st == SB_OK ? SB_OK : fail_unusable(context, st, err);
}

void sb__device_lose(sb_context *context) {
    atomic_store_explicit(&context->device_lost, SB_ERR_DEVICE_LOST, memory_order_relaxed);
}

sb_status sb_context_extension(const sb_context *context, const char *name, const void **out_table,
                               void **out_device, sb_error *err) {
    char shown[64];
    if (!name || !out_table || !out_device)
        return sb__fail_null(err, !name ? "name" : !out_table ? "out_table" : "out_device");
    context = sb__context(context);
    sb_status st = sb_context_device_status(context);
    if (st != SB_OK && st != SB_ERR_DEVICE_LOST)
        return fail_unusable(context, st, err);
    const sb_backend *backend = &context->backend;
    const void *table = backend->extension ? backend->extension(context->device, name) : NULL;
    if (!table)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no table \"%s\"", context->device_name,
                        sb__escape(name, strlen(name), shown, sizeof shown));
    *out_table = table;
    *out_device = context->device;
    return SB_OK;
}

/* Returns `st`, or DEVICE_FAILURE if slots must not return `st`. */
static sb_status known_status(sb_context *context, sb_status st) {
    switch (st) {
    case SB_ERR_DEVICE_LOST:
        sb__device_lose(context);
        return st;
    case SB_OK:
    case SB_ERR_NO_DEVICE:
    case SB_ERR_OUT_OF_MEMORY:
    case SB_ERR_UNSUPPORTED:
    case SB_ERR_WRONG_DEVICE:
    case SB_ERR_FORKED:
        return st;
    default:
        return SB_ERR_DEVICE_FAILURE;
    }
}

sb_status sb__device_failed(sb_context *context, sb_status status, const sb_error *slot_err,
                            sb_error *err) {
    return sb__fail_reported(err, known_status(context, status), -1, slot_err,
                             context->device_name);
}

/* Evaluates CALL, a call of a slot with the argument `slot_err`, and handles a failure of the slot.
   The caller has checked that the device can be used. */
#define CHECKED(context, err, CALL)                                                                \
    do {                                                                                           \
        sb_error slot_error = {.code = SB_OK}, *slot_err = &slot_error;                            \
        const sb_status slot_st = CALL;                                                            \
        return slot_st == SB_OK ? SB_OK : sb__device_failed(context, slot_st, slot_err, err);      \
    } while (0)

/* Evaluates CALL as CHECKED does, if `check` succeeds. */
#define AFTER(check, context, err, CALL)                                                           \
    do {                                                                                           \
        const sb_status check_st = check(context, err);                                            \
        if (check_st != SB_OK)                                                                     \
            return check_st;                                                                       \
        CHECKED(context, err, CALL);                                                               \
    } while (0)

#define GUARDED(context, err, CALL) AFTER(sb__device_check, context, err, CALL)

sb_status sb__device_check_process(const sb_context *context, sb_error *err) {
    return sb__context_is_ours(context) ? SB_OK : fail_unusable(context, SB_ERR_FORKED, err);
}

static sb_status alloc_slot(sb_context *context, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    GUARDED(context, err, context->backend.alloc(context->device, bytes, stream, out, slot_err));
}

sb_status sb__device_alloc(sb_context *context, size_t bytes, sb_stream stream, void **out,
                           sb_error *err) {
    sb_status st = sb__account_take(&context->device_memory, bytes, "device memory", err);
    if (st != SB_OK)
        return st;
    *out = NULL;
    st = alloc_slot(context, bytes, stream, out, err);
    if (st == SB_OK && !*out)
        st = sb__fail(err, SB_ERR_DEVICE_FAILURE, "alloc of %s returned SB_OK and NULL",
                      context->device_name);
    if (st == SB_OK)
        sb__account_had(&context->device_memory);
    else
        sb__account_give(&context->device_memory, bytes);
    return st;
}

void sb__device_free(sb_context *context, void *ptr, size_t bytes) {
    if (sb__context_is_ours(context))
        context->backend.free(context->device, ptr, bytes, context->stream);
    sb__account_give(&context->device_memory, bytes);
}

void sb__device_trim(sb_context *context) {
    if (context->backend.trim && sb__device_check(context, NULL) == SB_OK)
        context->backend.trim(context->device);
}

sb_status sb__device_zero(sb_context *context, void *dst, size_t bytes, sb_stream stream,
                          sb_error *err) {
    GUARDED(context, err, context->backend.zero(context->device, dst, bytes, stream, slot_err));
}

static sb_status copy_slot(sb_context *context, enum sb__direction direction, void *dst,
                           const void *src, size_t bytes, sb_stream stream, sb_error *err) {
    const sb_backend *b = &context->backend;
    switch (direction) {
    case SB__UPLOAD:
        CHECKED(context, err, b->upload(context->device, dst, src, bytes, stream, slot_err));
    case SB__DOWNLOAD:
        CHECKED(context, err, b->download(context->device, dst, src, bytes, stream, slot_err));
    default:
        CHECKED(context, err, b->copy(context->device, dst, src, bytes, stream, slot_err));
    }
}

sb_status sb__device_copy(sb_context *context, enum sb__direction direction, void *dst,
                          const void *src, size_t bytes, sb_stream stream, sb_error *err) {
    sb_status st = sb__device_check(context, err);
    if (st == SB_OK)
        st = copy_slot(context, direction, dst, src, bytes, stream, err);
    if (st == SB_OK)
        sb__count_copy(context, direction, bytes);
    return st;
}

sb_status sb__device_check_pointer(sb_context *context, const void *ptr, size_t bytes,
                                   sb_error *err) {
    if (!context->backend.check_pointer)
        return sb__device_check(context, err);
    GUARDED(context, err, context->backend.check_pointer(context->device, ptr, bytes, slot_err));
}

sb_status sb__device_after_default(sb_context *context, sb_error *err) {
    if (!context->backend.after_default)
        return SB_OK;
    GUARDED(context, err, context->backend.after_default(context->device, slot_err));
}

sb_status sb__device_try_after_default(sb_context *context, sb_error *err) {
    sb_error story;
    sb_status st = sb__device_after_default(context, &story);
    if (st == SB_ERR_UNSUPPORTED)
        return SB_OK;
    if (st != SB_OK && err)
        *err = story;
    return st;
}

static sb_status synchronize_slot(sb_context *context, sb_stream stream, sb_error *err) {
    AFTER(sb__device_check_process, context, err,
          context->backend.stream_synchronize(context->device, stream, slot_err));
}

sb_status sb__device_synchronize(sb_context *context, sb_stream stream, sb_error *err) {
    if (!context->backend.stream_synchronize)
        return SB_OK;
    sb_error story;
    const sb_status st = synchronize_slot(context, stream, &story);
    if (st != SB_OK && st != SB_ERR_DEVICE_FAILURE && st != SB_ERR_DEVICE_LOST)
        return synchronize_slot(context, stream, err);
    if (st != SB_OK && err)
        *err = story;
    return st;
}

sb_status sb__device_record(sb_context *context, sb_stream stream, void **out, sb_error *err) {
    if (!context->backend.event_record)
        return SB_OK;
    GUARDED(context, err, context->backend.event_record(context->device, stream, out, slot_err));
}

sb_status sb__event_wait(sb_context *context, void *event, sb_error *err) {
    AFTER(sb__device_check_process, context, err,
          context->backend.event_wait(context->device, event, slot_err));
}

sb_status sb__event_query(sb_context *context, void *event, int32_t *out_done, sb_error *err) {
    AFTER(sb__device_check_process, context, err,
          context->backend.event_query(context->device, event, out_done, slot_err));
}

void sb__event_destroy(sb_context *context, void *event) {
    if (event && sb__context_is_ours(context))
        context->backend.event_destroy(context->device, event);
}

sb_status sb__stream_wait(sb_context *context, sb_stream stream, void *event, sb_error *err) {
    GUARDED(context, err, context->backend.stream_wait(context->device, stream, event, slot_err));
}

sb_status sb__device_prepare_arithmetic(sb_context *context, int32_t dtype, sb_error *err) {
    sb_status st = sb__device_check(context, err);
    if (st == SB_OK && !context->backend.prepare_arithmetic)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no arithmetic", context->device_name);
    if (st == SB_OK && dtype == SB_DTYPE_F64 && context->lacks & SB_DEVICE_LACKS_F64)
        return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has no arithmetic on f64",
                        context->device_name);
    GUARDED(context, err, context->backend.prepare_arithmetic(context->device, slot_err));
}

static sb_status axpy_slot(sb_context *context, int32_t dtype, int64_t count, double alpha,
                           const void *x, void *y, sb_stream stream, sb_error *err) {
    GUARDED(context, err,
            context->backend.axpy(context->device, dtype, count, alpha, x, y, stream, slot_err));
}

static sb_status scale_slot(sb_context *context, int32_t dtype, int64_t count, double alpha,
                            void *x, sb_stream stream, sb_error *err) {
    GUARDED(context, err,
            context->backend.scale(context->device, dtype, count, alpha, x, stream, slot_err));
}

static void note_begun(sb_context *context, sb_stream stream) {
    if (stream == context->stream)
        (void)sb__counter_add(&context->arithmetic_begun, 1);
}

static sb_status note_queued(sb_context *context, sb_stream stream, sb_status st) {
    if (stream == context->stream && st == SB_OK)
        (void)sb__counter_add(&context->arithmetic_queued, 1);
    else if (stream == context->stream)
        sb__counter_subtract(&context->arithmetic_begun, 1);
    return st;
}

sb_status sb__device_axpy(sb_context *context, int32_t dtype, int64_t count, double alpha,
                          const void *x, void *y, sb_stream stream, sb_error *err) {
    note_begun(context, stream);
    return note_queued(context, stream, axpy_slot(context, dtype, count, alpha, x, y, stream, err));
}

sb_status sb__device_scale(sb_context *context, int32_t dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err) {
    note_begun(context, stream);
    return note_queued(context, stream, scale_slot(context, dtype, count, alpha, x, stream, err));
}

bool sb__own_may_have_failed(const sb_context *context, sb_status st) {
    return st == SB_ERR_DEVICE_FAILURE && sb__counter_read(&context->arithmetic_over) <
                                              sb__counter_read(&context->arithmetic_begun);
}

void sb__own_lose(sb_context *context, sb_status st) {
    if (sb__own_may_have_failed(context, st))
        sb__device_lose(context);
}

sb_status sb__device_asum(sb_context *context, int32_t dtype, int64_t count, const void *x,
                          double *out, sb_error *err) {
    GUARDED(
        context, err,
        context->backend.asum(context->device, dtype, count, x, out, context->stream, slot_err));
}

sb_status sb__device_sumsq(sb_context *context, int32_t dtype, int64_t count, const void *x,
                           double *out, sb_error *err) {
    GUARDED(
        context, err,
        context->backend.sumsq(context->device, dtype, count, x, out, context->stream, slot_err));
}

sb_status sb__device_check_stream(sb_context *context, sb_stream stream, sb_error *err) {
    if (context->backend.check_stream)
        GUARDED(context, err, context->backend.check_stream(context->device, stream, slot_err));
    sb_status st = sb__device_check(context, err);
    if (st != SB_OK || !stream)
        return st;
    return sb__fail(err, SB_ERR_UNSUPPORTED, "%s has only the stream NULL", context->device_name);
}

sb_status sb__device_alloc_pinned(sb_context *context, size_t bytes, void **out, sb_error *err) {
    CHECKED(context, err, context->backend.alloc_pinned(context->device, bytes, out, slot_err));
}
