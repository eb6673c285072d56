/* A minimal device: each operation completes before it returns, no lock orders the threads that use
   the device, and its memory is host memory. Its arithmetic requires F32. */
#ifndef SB_TESTS_TINY_H
#define SB_TESTS_TINY_H

#include "aligned.h"
#include "plain.h"

#include <syncblob/backend.h>

#include <stdatomic.h>
#include <string.h>

struct tiny {
    _Atomic int64_t calls; /* calls of any slot */
    bool fails_scale;
    sb_status (*on_event_wait)(void *user); /* may be NULL */
    void *user;
};

static inline struct tiny *tiny_enter(void *device) {
    struct tiny *tiny = device;
    atomic_fetch_add_explicit(&tiny->calls, 1, memory_order_relaxed);
    return tiny;
}

static inline int64_t tiny_calls(struct tiny *tiny) {
    return atomic_load_explicit(&tiny->calls, memory_order_relaxed);
}

static sb_status tiny_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    *out = tiny_enter(user);
    return SB_OK;
}

static void tiny_close(void *device) {
    (void)tiny_enter(device);
}

static sb_status tiny_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    (void)tiny_enter(device);
    *out = test_aligned_alloc(64, bytes);
    if (*out)
        return SB_OK;
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
}

static void tiny_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    (void)tiny_enter(device);
    test_aligned_free(ptr);
}

static sb_status tiny_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    (void)tiny_enter(device);
    memset(dst, 0, bytes);
    return SB_OK;
}

static sb_status tiny_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                           sb_error *err) {
    (void)tiny_enter(device);
    memcpy(dst, src, bytes);
    return SB_OK;
}

static sb_status tiny_check_pointer(void *device, const void *ptr, size_t bytes, sb_error *err) {
    (void)tiny_enter(device);
    return SB_OK;
}

static sb_stream tiny_own_stream(void *device) {
    return (sb_stream)tiny_enter(device);
}

static sb_status tiny_stream(void *device, sb_stream stream, sb_error *err) {
    (void)tiny_enter(device);
    return SB_OK;
}

static sb_status tiny_record(void *device, sb_stream stream, void **out, sb_error *err) {
    *out = tiny_enter(device);
    return SB_OK;
}

static sb_status tiny_stream_wait(void *device, sb_stream stream, void *event, sb_error *err) {
    (void)tiny_enter(device);
    return SB_OK;
}

static sb_status tiny_event_wait(void *device, void *event, sb_error *err) {
    struct tiny *tiny = tiny_enter(device);
    sb_status status = tiny->on_event_wait ? tiny->on_event_wait(tiny->user) : SB_OK;
    return status == SB_OK ? SB_OK : sb_error_fill(err, status, 0, "planted");
}

static void tiny_event_destroy(void *device, void *event) {
    (void)tiny_enter(device);
}

static sb_status tiny_prepare(void *device, sb_error *err) {
    (void)tiny_enter(device);
    return SB_OK;
}

static sb_status tiny_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    (void)tiny_enter(device);
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
    if (tiny_enter(device)->fails_scale)
        return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, 0, "planted");
    for (int64_t i = 0; i < count; i++)
        to[i] *= (float)alpha;
    return SB_OK;
}

static sb_status tiny_sum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    (void)tiny_enter(device);
    assert_int_equal(dtype, SB_DTYPE_F32);
    *out = 0;
    for (int64_t i = 0; i < count; i++)
        *out += (double)((const float *)x)[i]; /* correct if each value is 0 or 1 */
    return SB_OK;
}

/* Returns the backend for "tiny:0"; the backend and `tiny` must outlive the context. */
static inline sb_backend tiny_table(struct tiny *tiny) {
    return (sb_backend){
        .struct_size = sizeof(sb_backend),
        .abi_version = SB_BACKEND_ABI_VERSION,
        .name = "tiny",
        .user = tiny,
        .open = tiny_open,
        .close = tiny_close,
        .alloc = tiny_alloc,
        .free = tiny_free,
        .zero = tiny_zero,
        .upload = tiny_copy,
        .download = tiny_copy,
        .copy = tiny_copy,
        .check_pointer = tiny_check_pointer,
        .own_stream = tiny_own_stream,
        .check_stream = tiny_stream,
        .stream_synchronize = tiny_stream,
        .event_record = tiny_record,
        .stream_wait = tiny_stream_wait,
        .event_wait = tiny_event_wait,
        .event_destroy = tiny_event_destroy,
        .prepare_arithmetic = tiny_prepare,
        .axpy = tiny_axpy,
        .scale = tiny_scale,
        .asum = tiny_sum,
        .sumsq = tiny_sum,
    };
}

/* Creates a context with the built-in allocator, which takes no lock of the test. */
static inline sb_context *tiny_context(const sb_backend *table) {
    sb_context *context;
    assert_ok(create_with_backend(table, "tiny:0", &context, &err));
    return context;
}

#endif
