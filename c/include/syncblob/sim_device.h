/**
 * The extension table of the simulated device "sim:N", which sb_context_extension (context.h)
 * returns for SB_SIM_DEVICE. The library libsyncblob-testing (sim.h) plants failures through the
 * table. Other libraries access the device's memory through the table. Programs call these
 * libraries instead of the table.
 *
 * The host cannot access the device's memory (a read or write of a device pointer faults). A
 * schedule decides when queued work runs. Until a queued copy has run, its target holds garbage.
 * Every call can be made to fail. Each context has a separate device.
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
    SB_SIM_EAGER = 0, /**< when the work is queued (the default) */
    SB_SIM_LAZY = 1,  /**< when a call waits for the work */
    SB_SIM_RANDOM = 2 /**< at random times, drawn from a seed: at once, at a wait, or in between.
                           Streams run in a random order that respects their waits */
};

/** An operation of the device, SB_SIM_ANY to SB_SIM_SUMSQ. */
typedef int32_t sb_sim_op;

/** Operations of the device that are counted and can be made to fail: slots of the backend
 *  table. */
enum {
    SB_SIM_ANY = -1,           /**< any operation */
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
    SB_SIM_OP_COUNT            /**< the number of operations; may grow */
};

/** How a planted failure appears, SB_SIM_FAIL_*. */
typedef int32_t sb_sim_failure;

/** How a planted failure appears. */
enum {
    SB_SIM_FAIL_NOW = 0,   /**< the call returns DEVICE_FAILURE (ALLOC, ALLOC_PINNED:
                                OUT_OF_MEMORY) and has done nothing */
    SB_SIM_FAIL_LATER = 1, /**< the call succeeds, but the work that it queues fails. A wait for the
                                work returns DEVICE_FAILURE: once on the thread that queued the
                                work, and at most once on all other threads together. Every wait for
                                the first event that the queueing thread records after the work
                                returns DEVICE_FAILURE. A STREAM_WAIT that fails still delays its
                                stream. A call that queues nothing fails as with SB_SIM_FAIL_NOW */
    SB_SIM_FAIL_STICKY = 2 /**< the call and every later call return DEVICE_LOST */
};

/** A planted failure of a call of the device. The struct never grows. */
typedef struct sb_sim_fault {
    sb_sim_op op;        /**< SB_SIM_ANY to SB_SIM_SUMSQ */
    sb_sim_failure mode; /**< SB_SIM_FAIL_* */
    int64_t countdown;   /**< each call of `op` subtracts 1, and fails if the result is 0. No fault
                              is armed while the number is 0 */
} sb_sim_fault;

/** The functions of the simulated device. The device has one recursive lock, which is held while
 *  work, slots and kernels run. The caller must hold the lock during a call of any function except
 *  `lock`. `err` may be NULL. Once the device is lost, `stream_create`, `launch` and `alloc` return
 *  DEVICE_LOST. The other functions still work. */
typedef struct sb_sim_device {
    size_t struct_size; /**< set by the library that implements the device: its
                             sizeof(sb_sim_device), which may differ from the caller's */

    /** Acquires the device's lock. */
    void (*lock)(void *device);
    /** Releases the device's lock. */
    void (*unlock)(void *device);
    /** Sets the schedule, SB_SIM_EAGER to SB_SIM_RANDOM, of work queued from now on. `seed` is for
     *  SB_SIM_RANDOM. */
    void (*set_schedule)(void *device, sb_sim_schedule schedule, uint64_t seed);
    /** Returns an array of faults, which the caller arms and disarms in place, and sets
     *  `*out_count` to its length. The array is valid as long as the device is open. If several
     *  faults are due at one call, the first in the array decides. */
    sb_sim_fault *(*faults)(void *device, int32_t *out_count);
    /** Returns an array, indexed by SB_SIM_*, with the number of calls of each operation since the
     *  device was opened. Sets `*out_count` to the array's length. The array is valid as long as
     *  the device is open. */
    const int64_t *(*calls)(const void *device, int32_t *out_count);
    /** Creates a stream that is not ordered with the default stream. Returns DEVICE_LOST,
     *  OUT_OF_MEMORY. */
    sb_status (*stream_create)(void *device, sb_stream *out, sb_error *err);
    /** Runs queued work and destroys the stream. Returns WRONG_DEVICE for a stream of another
     *  device, INVALID_ARGUMENT for NULL and for the library's stream. */
    sb_status (*stream_destroy)(void *device, sb_stream stream, sb_error *err);
    /** Queues kernel(user) on a stream. Returns DEVICE_LOST, OUT_OF_MEMORY, WRONG_DEVICE. */
    sb_status (*launch)(void *device, sb_stream stream, void (*kernel)(void *user), void *user,
                        sb_error *err);
    /** Allocates device memory that may be used immediately. Returns DEVICE_LOST, OUT_OF_MEMORY. */
    sb_status (*alloc)(void *device, size_t bytes, void **out, sb_error *err);
    /** Frees memory of `alloc`. Does nothing for NULL. Returns DEVICE_FAILURE for any other
     *  pointer. */
    sb_status (*free)(void *device, void *ptr, sb_error *err);
    /** Returns the host memory behind [ptr, ptr + bytes), valid as long as the range is allocated.
     *  Returns NULL if the range is not memory of the device. For memory of the device, also sets
     *  `*out_ready` (unless `out_ready` is NULL). The value is 1 if the range's allocation has
     *  completed on its stream, else 0. */
    void *(*address)(const void *device, const void *ptr, size_t bytes, int32_t *out_ready);
} sb_sim_device;

SB_END_DECLS

#endif
