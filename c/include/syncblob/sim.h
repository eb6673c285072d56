/**
 * The simulated device "sim:N": a device made of host memory, for testing
 * code that moves bytes between host and device where there is no GPU.
 *
 * Its memory cannot be touched by the host (a read or write of a device
 * pointer faults), its streams run when the schedule says so, a copy's target
 * holds rubbish from the call until the copy has run, and every call can be
 * made to fail. Open it by the device name "sim:N" in sb_context_options;
 * each context has a device of its own. All functions here return
 * WRONG_DEVICE for a context without a simulated device, INVALID_ARGUMENT for a
 * NULL and FORKED in the child of a fork (sb_sim_address: NULL).
 */
#ifndef SYNCBLOB_SIM_H
#define SYNCBLOB_SIM_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** When queued work runs. */
enum {
    SB_SIM_EAGER = 0, /**< at once, when it is queued (the default) */
    SB_SIM_LAZY = 1,  /**< when somebody waits for it */
    SB_SIM_RANDOM = 2 /**< at moments drawn from a seed, some at once, some when waited for, streams
                           in any order that their waits allow */
};

/** Chooses the schedule for work queued from now on. */
SB_API sb_status sb_sim_set_schedule(sb_context *context, int32_t schedule, uint64_t seed,
                                     sb_error *err);

/** Operations of the device, for counting and failing: the slots of the
 *  backend table. */
enum {
    SB_SIM_ANY = -1, /**< whichever comes */
    SB_SIM_ALLOC = 0,
    SB_SIM_ZERO,
    SB_SIM_UPLOAD,
    SB_SIM_DOWNLOAD,
    SB_SIM_COPY,
    SB_SIM_ALLOC_PINNED,
    SB_SIM_CHECK_POINTER,
    SB_SIM_CHECK_STREAM,
    SB_SIM_STREAM_SYNCHRONIZE,
    SB_SIM_EVENT_RECORD,
    SB_SIM_STREAM_WAIT,
    SB_SIM_EVENT_WAIT,
    SB_SIM_PREPARE_ARITHMETIC,
    SB_SIM_AXPY,
    SB_SIM_SCALE,
    SB_SIM_ASUM,
    SB_SIM_SUMSQ,
    SB_SIM_OP_COUNT
};

/** How a chosen call fails. */
enum {
    SB_SIM_FAIL_NOW = 0,   /**< the call returns DEVICE_FAILURE (ALLOC, ALLOC_PINNED:
                                OUT_OF_MEMORY) and has done nothing */
    SB_SIM_FAIL_LATER = 1, /**< the call succeeds; its work is not done and whoever waits for it
                                gets DEVICE_FAILURE. For a call that queues nothing: as NOW */
    SB_SIM_FAIL_STICKY = 2 /**< the call and every later one return DEVICE_LOST */
};

/** Makes the `nth` call of `op` from now on (1 is the next) fail in `mode`;
 *  nth 0 takes it back. One fault is armed at a time; firing disarms it. */
SB_API sb_status sb_sim_fail(sb_context *context, int32_t op, int64_t nth, int32_t mode,
                             sb_error *err);

/** How often each slot was called, by SB_SIM_*, since the context was made.
 *  @param out [borrowed] SB_SIM_OP_COUNT numbers */
SB_API sb_status sb_sim_calls(const sb_context *context, int64_t *out, sb_error *err);

/** A stream that is not ordered with the default one.
 *  @param out [owned] sb_sim_stream_destroy */
SB_API sb_status sb_sim_stream_create(sb_context *context, sb_stream *out, sb_error *err);

/** Runs what is queued and destroys the stream; forget it in the context first. */
SB_API sb_status sb_sim_stream_destroy(sb_context *context, sb_stream stream, sb_error *err);

/** Queues kernel(user) on a stream: the stand-in for a user's own kernel. It
 *  may run at once, later, or on another thread, reaches device memory through
 *  sb_sim_address alone and calls nothing else of the library. */
SB_API sb_status sb_sim_launch(sb_context *context, sb_stream stream, void (*kernel)(void *user),
                               void *user, sb_error *err);

/** Inside a kernel: host memory behind a device pointer; NULL if [ptr, ptr + bytes)
 *  is no memory of the device. */
SB_API void *sb_sim_address(const sb_context *context, const void *ptr, size_t bytes);

/** Device memory of the caller's own, to lend to sb_mem_set_gpu.
 *  @param out [owned] sb_sim_free. Errors: OUT_OF_MEMORY. */
SB_API sb_status sb_sim_malloc(sb_context *context, size_t bytes, void **out, sb_error *err);

/** Frees memory of sb_sim_malloc. @param ptr [owned, nullable] */
SB_API sb_status sb_sim_free(sb_context *context, void *ptr, sb_error *err);

/** Copies device memory to the host at once, around streams and counters: for
 *  a test that looks. */
SB_API sb_status sb_sim_peek(const sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err);

/** Copies host bytes to the device at once, around streams and counters. */
SB_API sb_status sb_sim_poke(sb_context *context, void *dst, const void *src, size_t bytes,
                             sb_error *err);

SB_END_DECLS

#endif
