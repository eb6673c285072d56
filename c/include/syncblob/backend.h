/**
 * The backend table: what somebody implements to bring another accelerator.
 * Users of blobs do not need this header.
 *
 * The core checks every argument before a slot is called: pointers are not
 * NULL, bytes and counts are above 0, dtypes are ones the slot is given for.
 * Slots may run on any thread, several at once, and under a lock of one
 * memory; they must not call the library. Every slot that can fail returns
 * SB_OK or one of NO_DEVICE, OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST,
 * UNSUPPORTED, WRONG_DEVICE, FORKED, and writes `err` (never NULL here) on failure
 * with sb_error_fill; it has done and queued nothing then. DEVICE_LOST makes
 * the whole context lost: from then on only stream_synchronize, event_wait, event_query,
 * free, free_pinned, event_destroy and close are called. Callers see what a slot returns, and
 * any other code as DEVICE_FAILURE. c/guide/backend.md writes one from the beginning.
 *
 * "Queued on `stream`" means ordered after all that was queued there before;
 * the slot need not wait for it. A backend whose work is always complete on
 * return leaves all stream and event slots NULL; then asynchronous calls are
 * synchronous and `_on` takes only the NULL stream.
 */
#ifndef SYNCBLOB_BACKEND_H
#define SYNCBLOB_BACKEND_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** Raised when a slot changes its meaning. */
#define SB_BACKEND_ABI_VERSION 1

/** Flags of a backend. */
enum {
    SB_BACKEND_PINNED_NOT_IN_CHILD = 1 /**< in the child of a fork, page-locked memory of the parent
                                            may not be mapped: the core answers FORKED there, rather
                                            than with a pointer to it */
};

/** The table. Of a smaller struct_size the missing tail is NULL and 0; one that ends within a slot
 *  is refused. */
typedef struct sb_backend {
    size_t struct_size;   /**< sizeof(sb_backend) of the implementer */
    uint32_t abi_version; /**< SB_BACKEND_ABI_VERSION */
    uint32_t flags;       /**< SB_BACKEND_* */
    const char *name;     /**< "cuda"; letters and digits */
    void *user;           /**< passed to `open` */

    /* --- life: both required -------------------------------------------- */

    /** Opens device number `ordinal`; `*out` is the first argument of all
     *  other slots. On failure nothing stays open. */
    sb_status (*open)(void *user, int32_t ordinal, void **out, sb_error *err);
    /** Waits for queued work and closes the device. Everything allocated has
     *  been given back. Also called on a lost device: must not fail. */
    void (*close)(void *device);

    /* --- memory: required ------------------------------------------------ */

    /** Memory of the device, aligned to 64 or more, of unspecified contents,
     *  usable by work queued on `stream` from now on and by any stream once
     *  `stream` has been synchronised. */
    sb_status (*alloc)(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
    /** Takes memory back once the work queued so far on `stream` is done. On
     *  a lost device: frees what can be freed. */
    void (*free)(void *device, void *ptr, size_t bytes, sb_stream stream);
    /** Sets `bytes` to zero, queued on `stream`. */
    sb_status (*zero)(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err);
    /** Host to device, queued on `stream`; `src` stays untouched until it is done. The regions do
     *  not overlap: equal addresses are the same memory to the core, which copies nothing then. */
    sb_status (*upload)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                        sb_error *err);
    /** Device to host, queued on `stream`; otherwise the same. */
    sb_status (*download)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err);
    /** Within the device, regions that do not overlap, queued on `stream`. */
    sb_status (*copy)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                      sb_error *err);

    /* --- pinned host memory: both or neither; missing: ordinary memory ---- */

    /** Host memory that the device copies from and to without another copy, aligned
     *  to 64 or more. */
    sb_status (*alloc_pinned)(void *device, size_t bytes, void **out, sb_error *err);
    /** Takes it back. No work uses it any more. */
    void (*free_pinned)(void *device, void *ptr, size_t bytes);

    /* --- adopted pointers: optional; missing: any pointer is taken -------- */

    /** WRONG_DEVICE unless [ptr, ptr + bytes) is memory of this device. */
    sb_status (*check_pointer)(void *device, const void *ptr, size_t bytes, sb_error *err);

    /* --- streams and events: all or none ---------------------------------- */

    /** The stream that the library queues its own work on; it is ordered with
     *  the legacy default stream (NULL). Lives from open to close. The core asks once after
     *  `open`, and again whenever it lets a caller have it: from then on somebody may
     *  capture it, and the slots refuse that as check_stream does for other streams. What
     *  `free` takes meanwhile goes back later. */
    sb_stream (*own_stream)(void *device);
    /** WRONG_DEVICE for a stream of another device or context, UNSUPPORTED for
     *  one that is being captured. NULL is always right. What a handle does that is
     *  no stream, or one no longer, is between the caller and the driver. */
    sb_status (*check_stream)(void *device, sb_stream stream, sb_error *err);
    /** Waits for all work queued on `stream`; a failure of that work is
     *  returned here, once or more: to any thread for the library's own stream, since the core
     *  learns from it alone that its arithmetic there has failed; for other streams it asks events.
     *  SB_OK and DEVICE_LOST say that the work has ended, one
     *  way or the other. After any other status the core waits once more; until a
     *  wait says so, memory that the work uses is neither freed nor used again, and
     *  its deleter does not run. Also called on a lost device, where work may go on
     *  after a failure of another slot. */
    sb_status (*stream_synchronize)(void *device, sb_stream stream, sb_error *err);
    /** An event that completes when all that is queued so far on `stream` has. */
    sb_status (*event_record)(void *device, sb_stream stream, void **out, sb_error *err);
    /** Makes later work on `stream` wait for the event; the host does not wait. If the wait
     *  itself fails later on, work behind it still does not run before the event is complete:
     *  memory is given back on a stream that waits for its last users. */
    sb_status (*stream_wait)(void *device, sb_stream stream, void *event, sb_error *err);
    /** Waits on the host; a failure of the work before the event is returned
     *  here, every time it is asked, on whichever thread. Work counts as before the event whose
     *  failure no wait had returned, and no event of the same thread had taken up, when the event
     *  was recorded: the core records one behind each copy and each arithmetic whose failure it has
     *  to know. It asks once more after a failure: SB_OK then says that only the wait had failed.
     *  An event may outlive its stream. Failures are those of stream_synchronize. */
    sb_status (*event_wait)(void *device, void *event, sb_error *err);
    /** Gives the event back, complete or not. */
    void (*event_destroy)(void *device, void *event);

    /* --- arithmetic: all or none; missing: UNSUPPORTED on the device ------- */
    /* dtype is F32 or F64. OUT_OF_MEMORY and UNSUPPORTED of axpy or scale say, as above,
       that nothing was done. Unlike above, any other failure means that the output may be
       spoiled: the core then treats the device as lost. So it does where a slot failed before
       it had queued anything: no status says "a failure, but nothing was begun". */

    /** Whatever may fail before arithmetic starts (opening a library, making a
     *  handle), so that a failure here has changed nothing. */
    sb_status (*prepare_arithmetic)(void *device, sb_error *err);
    /** y[i] += alpha * x[i], queued on `stream`. x may be y. */
    sb_status (*axpy)(void *device, sb_dtype dtype, int64_t count, double alpha, const void *x,
                      void *y, sb_stream stream, sb_error *err);
    /** x[i] *= alpha, queued on `stream`. */
    sb_status (*scale)(void *device, sb_dtype dtype, int64_t count, double alpha, void *x,
                       sb_stream stream, sb_error *err);
    /** Sum of |x[i]| into host memory; waits for the result. */
    sb_status (*asum)(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                      sb_stream stream, sb_error *err);
    /** Sum of x[i]^2 into host memory; waits for the result. */
    sb_status (*sumsq)(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                       sb_stream stream, sb_error *err);

    /* --- DLPack (dlpack.h): numbers of its device types --------------------- */

    /** That of the device's memory, device N of "NAME:N" being number N there; 0: it is not
     *  exchanged. */
    int32_t dlpack_device;
    /** That of memory from alloc_pinned; 0: SB_DL_DEVICE_CPU. */
    int32_t dlpack_pinned;

    /* --- memory that the backend keeps: optional; missing: it keeps none ---- */

    /** Gives back what `free` took and the backend keeps for `alloc`; waits where it has to.
     *  sb_context_trim calls it. An `alloc` that lacks memory does the same by itself. */
    void (*trim)(void *device);

    /* --- default streams: optional; missing: NULL stands for all of them ------ */

    /** Makes later work on the own stream wait for what is queued so far on default streams that
     *  it is not ordered with by itself, such as CUDA's per-thread ones. The core calls it before
     *  work that uses memory of which a caller has a pointer without having named a stream, and
     *  before such memory is freed. UNSUPPORTED says that a capture forbids it: then the core goes
     *  on with the work, and frees nothing before it has waited for NULL. */
    sb_status (*after_default)(void *device, sb_error *err);

    /* --- questions: optional; missing: nothing is known without a wait --------- */

    /** Sets `*out_done` to 1 if all work before the event has ended, whether or not it failed, else
     *  to 0. Never waits, and takes no failure away from event_wait. The core asks this of the
     *  device of one context when another context ends. DEVICE_LOST says that the work has ended,
     *  any other failure that nobody can tell. Also called on a lost device. */
    sb_status (*event_query)(void *device, void *event, int32_t *out_done, sb_error *err);

    /* --- what the backend has beside these slots: optional; missing: nothing ------ */

    /** The table that sb_context_extension gives for `name`, as long as the device is open; NULL if
     *  there is none. Also called on a lost device. */
    const void *(*extension)(void *device, const char *name);
} sb_backend;

SB_END_DECLS

#endif
