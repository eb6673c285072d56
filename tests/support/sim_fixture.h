/* A simulated device that a context opened; the tests call its slots as the core does. */
#ifndef SB_TESTS_SIM_FIXTURE_H
#define SB_TESTS_SIM_FIXTURE_H

#include "support.h"

#include "context/context.h"

#include <syncblob/sim.h>

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct sim {
    sb_context *context;
    const sb_backend *table;
    void *device;
    sb_stream own;
};

static inline void sim_open(struct sim *f) {
    assert_ok(sb_context_create(&CONTEXT_OPTIONS(.device = "sim:0"), &f->context, &err));
    f->table = &f->context->backend;
    f->device = f->context->device;
    f->own = f->table->own_stream(f->device);
}

static inline void sim_close(struct sim *f) {
    sb_context_release(f->context);
}

static inline void set_schedule(struct sim *f, int32_t schedule, uint64_t seed) {
    assert_ok(sb_sim_set_schedule(f->context, schedule, seed, &err));
}

static inline void sim_reopen(struct sim *f, int32_t schedule, uint64_t seed) {
    sim_close(f);
    sim_open(f);
    set_schedule(f, schedule, seed);
}

static inline sb_stream new_stream(struct sim *f) {
    sb_stream stream = NULL;
    assert_ok(sb_sim_stream_create(f->context, &stream, &err));
    return stream;
}

static inline char *new_memory(struct sim *f, size_t bytes, sb_stream stream) {
    void *ptr = NULL;
    assert_ok(f->table->alloc(f->device, bytes, stream, &ptr, &err));
    return ptr;
}

static inline void upload(struct sim *f, void *dst, const void *src, size_t bytes,
                          sb_stream stream) {
    assert_ok(f->table->upload(f->device, dst, src, bytes, stream, &err));
}

static inline void download(struct sim *f, void *dst, const void *src, size_t bytes,
                            sb_stream stream) {
    assert_ok(f->table->download(f->device, dst, src, bytes, stream, &err));
}

static inline sb_status try_synchronize(struct sim *f, sb_stream stream) {
    return f->table->stream_synchronize(f->device, stream, &err);
}

static inline void synchronize(struct sim *f, sb_stream stream) {
    assert_ok(try_synchronize(f, stream));
}

static inline void *record(struct sim *f, sb_stream stream) {
    void *event = NULL;
    assert_ok(f->table->event_record(f->device, stream, &event, &err));
    return event;
}

static inline void stream_wait(struct sim *f, sb_stream stream, void *event) {
    assert_ok(f->table->stream_wait(f->device, stream, event, &err));
}

static inline sb_status try_event_wait(struct sim *f, void *event) {
    return f->table->event_wait(f->device, event, &err);
}

static inline void event_wait(struct sim *f, void *event) {
    assert_ok(try_event_wait(f, event));
}

static inline void event_destroy(struct sim *f, void *event) {
    f->table->event_destroy(f->device, event);
}

static inline void free_memory(struct sim *f, void *ptr, size_t bytes, sb_stream stream) {
    f->table->free(f->device, ptr, bytes, stream);
}

/* Makes later work on `to` wait for the present work on `from`. */
static inline void order(struct sim *f, sb_stream from, sb_stream to) {
    void *event = record(f, from);
    stream_wait(f, to, event);
    event_destroy(f, event);
}

static inline void peek(struct sim *f, void *dst, const void *src, size_t bytes) {
    assert_ok(sb_sim_peek(f->context, dst, src, bytes, &err));
}

static inline void poke(struct sim *f, void *dst, const void *src, size_t bytes) {
    assert_ok(sb_sim_poke(f->context, dst, src, bytes, &err));
}

static inline void fail_call(struct sim *f, int32_t op, int64_t nth, int32_t mode) {
    assert_ok(sb_sim_fail(f->context, op, nth, mode, &err));
}

/* Calls operation `op` on 64 bytes; `dst` or `src` may be unused. */
static inline sb_status operate(struct sim *f, int32_t op, void *dst, void *src, sb_stream stream,
                                sb_error *err) {
    const sb_backend *t = f->table;
    double sum = 0;
    switch (op) {
    case SB_SIM_ZERO:
        return t->zero(f->device, dst, 64, stream, err);
    case SB_SIM_UPLOAD:
        return t->upload(f->device, dst, src, 64, stream, err);
    case SB_SIM_DOWNLOAD:
        return t->download(f->device, dst, src, 64, stream, err);
    case SB_SIM_COPY:
        return t->copy(f->device, dst, src, 64, stream, err);
    case SB_SIM_AXPY:
        return t->axpy(f->device, SB_DTYPE_F32, 16, 2, src, dst, stream, err);
    case SB_SIM_SCALE:
        return t->scale(f->device, SB_DTYPE_F64, 8, 2, dst, stream, err);
    case SB_SIM_ASUM:
        return t->asum(f->device, SB_DTYPE_F32, 16, src, &sum, stream, err);
    default:
        return t->sumsq(f->device, SB_DTYPE_F64, 8, src, &sum, stream, err);
    }
}

#endif
