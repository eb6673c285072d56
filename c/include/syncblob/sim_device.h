/**
 * The simulated device "sim:N" for libraries that go with it: the table by which
 * libsyncblob-testing (sim.h) plants failures, and by which other
 * libraries reach the device's memory. Programs use those. sb_context_extension of context.h gives
 * the table, by the name SB_SIM_DEVICE.
 *
 * The device's memory cannot be touched by the host (a read or write of a device
 * pointer faults), its streams run when the schedule says so, a copy's target
 * holds rubbish from the call until the copy has run, and every call can be
 * made to fail. Each context has a device of its own.
 */
#ifndef SYNCBLOB_SIM_DEVICE_H
#define SYNCBLOB_SIM_DEVICE_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** The name of the table sb_sim_device. */
#define SB_SIM_DEVICE "sb_sim_device"

/** When queued work runs, SB_SIM_EAGER, SB_SIM_LAZY or SB_SIM_RANDOM. */
typedef int32_t sb_sim_schedule;

/** When queued work runs. */
enum {
    SB_SIM_EAGER = 0, /**< at once, when it is queued (the default) */
    SB_SIM_LAZY = 1,  /**< when somebody waits for it */
    SB_SIM_RANDOM = 2 /**< at moments drawn from a seed, some at once, some when waited for, streams
                           in any order that their waits allow */
};

/** An operation of the device, SB_SIM_ANY to SB_SIM_SUMSQ. */
typedef int32_t sb_sim_op;

/** Operations of the device, for counting and failing: the slots of the
 *  backend table. */
enum {
    SB_SIM_ANY = -1,           /**< whichever comes */
    SB_SIM_ALLOC = 0,          /**< sb_backend::alloc */
    SB_SIM_ZERO,               /**< sb_backend::zero */
    SB_SIM_UPLOAD,             /**< sb_backend::upload */
    SB_SIM_DOWNLOAD,           /**< sb_backend::download */
    SB_SIM_COPY,               /**< sb_backend::copy */
    SB_SIM_ALLOC_PINNED,       /**< sb_backend::alloc_pinned */
    SB_SIM_CHECK_POINTER,      /**< sb_backend::check_pointer */
    SB_SIM_CHECK_STREAM,       /**< sb_backend::check_stream */
    SB_SIM_STREAM_SYNCHRONIZE, /**< sb_backend::stream_synchronize */
    SB_SIM_EVENT_RECORD,       /**< sb_backend::event_record */
    SB_SIM_STREAM_WAIT,        /**< sb_backend::stream_wait */
    SB_SIM_EVENT_WAIT,         /**< sb_backend::event_wait */
    SB_SIM_PREPARE_ARITHMETIC, /**< sb_backend::prepare_arithmetic */
    SB_SIM_AXPY,               /**< sb_backend::axpy */
    SB_SIM_SCALE,              /**< sb_backend::scale */
    SB_SIM_ASUM,               /**< sb_backend::asum */
    SB_SIM_SUMSQ,              /**< sb_backend::sumsq */
    SB_SIM_OP_COUNT            /**< of these; grows with them */
};

/** How a chosen call fails, SB_SIM_FAIL_*. */
typedef int32_t sb_sim_failure;

/** How a chosen call fails. */
enum {
    SB_SIM_FAIL_NOW = 0,   /**< the call returns DEVICE_FAILURE (ALLOC, ALLOC_PINNED:
                                OUT_OF_MEMORY) and has done nothing */
    SB_SIM_FAIL_LATER = 1, /**< the call succeeds; its work is not done and whoever waits for it
                                gets DEVICE_FAILURE: the thread that queued it, and at most one
                                other; from one event every time. STREAM_WAIT holds its stream back
                                all the same. For a call that queues nothing: as NOW */
    SB_SIM_FAIL_STICKY = 2 /**< the call and every later one return DEVICE_LOST */
};

/** A call of the device that is to fail. The struct never grows. */
typedef struct sb_sim_fault {
    sb_sim_op op;        /**< SB_SIM_ANY to SB_SIM_SUMSQ */
    sb_sim_failure mode; /**< SB_SIM_FAIL_* */
    int64_t countdown;   /**< the call that fails, 1 being the next; each call of `op` takes 1 away;
                              0: no fault is armed here */
} sb_sim_fault;

/** What the simulated device offers. Work, slots and kernels run under the device's one lock, which
 *  is recursive; `lock` takes it, and all other functions are called under it. `err` may be NULL. A
 *  device that is lost refuses new streams, kernels and memory; everything else works as before. */
typedef struct sb_sim_device {
    size_t struct_size; /**< sizeof(sb_sim_device) of the library that has the device */

    /** Takes the device's lock. */
    void (*lock)(void *device);
    /** Gives it back. */
    void (*unlock)(void *device);
    /** Chooses the schedule, SB_SIM_EAGER to SB_SIM_RANDOM, for work queued from now on; `seed` is
     *  SB_SIM_RANDOM's. */
    void (*set_schedule)(void *device, sb_sim_schedule schedule, uint64_t seed);
    /** The faults, to be armed and disarmed in place: `*out_count` of them, as long as the device
     *  is open. Where several are due with one call, the first in the list decides. */
    sb_sim_fault *(*faults)(void *device, int32_t *out_count);
    /** How often each operation was called since the device was opened, by SB_SIM_*: `*out_count`
     *  numbers, as long as the device is open. */
    const int64_t *(*calls)(const void *device, int32_t *out_count);
    /** A stream that is not ordered with the default one. DEVICE_LOST, OUT_OF_MEMORY. */
    sb_status (*stream_create)(void *device, sb_stream *out, sb_error *err);
    /** Runs what is queued and destroys the stream. WRONG_DEVICE for one of another device,
     *  INVALID_ARGUMENT for NULL and for the library's own. */
    sb_status (*stream_destroy)(void *device, sb_stream stream, sb_error *err);
    /** Queues kernel(user) on a stream. DEVICE_LOST, OUT_OF_MEMORY, WRONG_DEVICE. */
    sb_status (*launch)(void *device, sb_stream stream, void (*kernel)(void *user), void *user,
                        sb_error *err);
    /** Device memory that is the caller's own and usable at once. DEVICE_LOST, OUT_OF_MEMORY. */
    sb_status (*alloc)(void *device, size_t bytes, void **out, sb_error *err);
    /** Frees memory of `alloc`, or does nothing for NULL. DEVICE_FAILURE for any other. */
    sb_status (*free)(void *device, void *ptr, sb_error *err);
    /** Host memory behind [ptr, ptr + bytes), as long as that is allocated; NULL if it is not
     *  memory of the device. `*out_ready`, unless `out_ready` is NULL: whether the stream that it
     *  was allocated on has come so far. */
    void *(*address)(const void *device, const void *ptr, size_t bytes, int32_t *out_ready);
} sb_sim_device;

SB_END_DECLS

#endif
