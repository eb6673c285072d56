/* The device of plain.h with streams, events and arithmetic on F32. Each operation completes before
   it returns, and no lock orders the threads that use the device. */
#ifndef SB_TESTS_TINY_H
#define SB_TESTS_TINY_H

#include "plain.h"

struct tiny {
    struct plain plain; /* must be first: the slots of plain.c point to it */
    bool fails_scale;
    sb_status (*on_event_wait)(void *user); /* may be NULL */
    void *user;
};

static sb_stream tiny_own_stream(void *device) {
    return (sb_stream)device;
}

static sb_status tiny_stream(void *device, sb_stream stream, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_record(void *device, sb_stream stream, void **out, sb_error *err) {
    *out = device;
    return SB_OK;
}

static sb_status tiny_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_event_wait(void *device, void *event, sb_error *err) {
    const struct tiny *tiny = device;
    sb_status status = tiny->on_event_wait ? tiny->on_event_wait(tiny->user) : SB_OK;
    return status == SB_OK ? SB_OK : sb_error_fill(err, status, 0, "planted");
}

static void tiny_event_destroy(void *device, void *event) {
}

static sb_status tiny_prepare(void *device, sb_error *err) {
    return SB_OK;
}

static sb_status tiny_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    assert_int_equal(dtype, SB_DTYPE_F32);
    const float *from = x;
    float *to = y;
    for (int64_t i = 0; i < count; i++)
        to[i] += (float)alpha * from[i];
    return SB_OK;
}

static sb_status tiny_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                            sb_stream stream, sb_error *err) {
    float *to = x;
    assert_int_equal(dtype, SB_DTYPE_F32);
    if (((const struct tiny *)device)->fails_scale)
        return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "planted");
    for (int64_t i = 0; i < count; i++)
        to[i] *= (float)alpha;
    return SB_OK;
}

static sb_status tiny_sum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    assert_int_equal(dtype, SB_DTYPE_F32);
    *out = 0;
    for (int64_t i = 0; i < count; i++)
        *out += (double)((const float *)x)[i]; /* correct if each value is 0 or 1 */
    return SB_OK;
}

/* Returns the backend for "tiny:0"; the backend and `tiny` must outlive the context. */
static inline sb_backend tiny_table(struct tiny *tiny) {
    sb_backend table = plain_backend(&tiny->plain);
    table.name = "tiny";
    table.own_stream = tiny_own_stream;
    table.check_stream = tiny_stream;
    table.stream_synchronize = tiny_stream;
    table.event_record = tiny_record;
    table.stream_wait = tiny_stream_wait;
    table.event_wait = tiny_event_wait;
    table.event_destroy = tiny_event_destroy;
    table.prepare_arithmetic = tiny_prepare;
    table.axpy = tiny_axpy;
    table.scale = tiny_scale;
    table.asum = tiny_sum;
    table.sumsq = tiny_sum;
    return table;
}

/* Creates a context with the built-in allocator, which takes no lock of the test. */
static inline sb_context *tiny_context(const sb_backend *table) {
    sb_context *context;
    assert_ok(create_with_backend(table, "tiny:0", &context, &err));
    return context;
}

#endif
