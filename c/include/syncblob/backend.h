/**
 * The backend table, for implementers of another accelerator. Users of blobs do not need this
 * header.
 *
 * The core checks every argument before it calls a slot: pointers are not NULL, bytes and counts
 * are above 0, the slot is defined for the dtype. Slots may run on any thread, several at once, and
 * under the lock of one memory; they must not call the library, except sb_error_fill. Every slot
 * that can fail returns SB_OK or one of NO_DEVICE, OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST,
 * UNSUPPORTED, WRONG_DEVICE, FORKED. On failure it fills `err` (never NULL) with sb_error_fill, and
 * has done and queued nothing. DEVICE_LOST makes the whole context lost: from then on the core
 * calls only stream_synchronize, event_wait, event_query, free, free_pinned, event_destroy,
 * extension and close. The core passes these codes on to its caller, and any other code as
 * DEVICE_FAILURE. c/guide/backend.md develops a backend step by step.
 *
 * "Queued on `stream`" means ordered after all work that was queued there before; the slot need not
 * wait for it. A backend whose work is always complete on return leaves all stream and event slots
 * NULL; then asynchronous calls are synchronous, and `_on` calls accept only the NULL stream.
 */
#ifndef SYNCBLOB_BACKEND_H
#define SYNCBLOB_BACKEND_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** Raised when a slot changes its meaning. */
#define SB_BACKEND_ABI_VERSION 1

/** Flags of a backend. */
enum {
    SB_BACKEND_PINNED_NOT_IN_CHILD = 1 /**< in a forked child, page-locked memory of the parent may
                                            not be mapped: the core returns FORKED there instead of
                                            a pointer to it */
};

/** The table. With a smaller struct_size the missing tail is NULL and 0; a struct that ends within
 *  a slot is refused. */
typedef struct sb_backend {
    size_t struct_size;   /**< sizeof(sb_backend) of the implementer */
    uint32_t abi_version; /**< SB_BACKEND_ABI_VERSION */
    uint32_t flags;       /**< SB_BACKEND_* */
    const char *name;     /**< "cuda"; letters and digits */
    void *user;           /**< passed to `open` */

    /* --- life: both required -------------------------------------------- */

    /** Opens device `ordinal`; `*out` is the first argument of all other slots. On failure nothing
     *  stays open. */
    sb_status (*open)(void *user, int32_t ordinal, void **out, sb_error *err);
    /** Waits for queued work and closes the device. All memory has been freed before. Also called
     *  on a lost device. Must not fail. */
    void (*close)(void *device);

    /* --- memory: required ------------------------------------------------ */

    /** Memory of the device, aligned to 64 or more, of unspecified contents,
     *  usable by work queued on `stream` from now on and by any stream once
     *  `stream` has been synchronised. */
    sb_status (*alloc)(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
    /** Frees memory after the work queued so far on `stream`. On a lost device: frees it if
     *  possible. */
    void (*free)(void *device, void *ptr, size_t bytes, sb_stream stream);
    /** Sets `bytes` to zero, queued on `stream`. */
    sb_status (*zero)(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err);
    /** Copies host to device, queued on `stream`; the core keeps `src` unchanged until the copy is
     *  complete. The regions do not overlap: the core skips a copy between equal addresses. */
    sb_status (*upload)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                        sb_error *err);
    /** Copies device to host, queued on `stream`; otherwise as upload. */
    sb_status (*download)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err);
    /** Copies within the device between regions that do not overlap, queued on `stream`. */
    sb_status (*copy)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                      sb_error *err);

    /* --- pinned host memory: both or neither; missing: ordinary memory ---- */

    /** Host memory that the device copies from and to without another copy, aligned
     *  to 64 or more. */
    sb_status (*alloc_pinned)(void *device, size_t bytes, void **out, sb_error *err);
    /** Frees memory of alloc_pinned. No work uses it any more. */
    void (*free_pinned)(void *device, void *ptr, size_t bytes);

    /* --- adopted pointers: optional; missing: any pointer is taken -------- */

    /** WRONG_DEVICE unless [ptr, ptr + bytes) is memory of this device. */
    sb_status (*check_pointer)(void *device, const void *ptr, size_t bytes, sb_error *err);

    /* --- streams and events: all or none ---------------------------------- */

    /** The stream on which the library queues its work; it is ordered with the legacy default
     *  stream (NULL). Exists from open to close. The core calls this slot once after `open`, and
     *  again each time it returns the stream to a caller: from then on a caller may capture the
     *  stream, and slots refuse to use it during the capture, as check_stream does for other
     *  streams. Memory that `free` receives meanwhile is freed later. */
    sb_stream (*own_stream)(void *device);
    /** WRONG_DEVICE for a stream of another device or context, UNSUPPORTED for a stream that is
     *  being captured. NULL is always valid. For a handle that is not an existing stream the
     *  driver's behaviour applies. */
    sb_status (*check_stream)(void *device, sb_stream stream, sb_error *err);
    /** Waits for all work queued on `stream` and returns a failure of that work at least once: for
     *  own_stream to any thread, since the core learns only here that its arithmetic on own_stream
     *  has failed; for other streams the core waits for events. SB_OK and DEVICE_LOST mean that the
     *  work has ended, successfully or not. After any other status the core retries the wait; until
     *  a wait returns one of these two, memory that the work uses is neither freed nor reused, and
     *  its deleter does not run. Also called on a lost device, where work may continue after
     *  another slot has failed. */
    sb_status (*stream_synchronize)(void *device, sb_stream stream, sb_error *err);
    /** Records an event, which completes when all work queued so far on `stream` has completed. */
    sb_status (*event_record)(void *device, sb_stream stream, void **out, sb_error *err);
    /** Makes later work on `stream` wait for the event; the host does not wait. Even if the wait
     *  later fails, work behind it must not run before the event is complete: the core frees memory
     *  on a stream that waits for the memory's last users. */
    sb_status (*stream_wait)(void *device, sb_stream stream, void *event, sb_error *err);
    /** Waits on the host for the event and returns a failure of the work before it, each time it is
     *  called, on any thread. The work before an event is all work on its stream whose failure no
     *  wait had returned, and no event of the same thread had covered, when the event was recorded:
     *  the core records an event behind each copy and each arithmetic operation whose failure it
     *  needs to know. After a failure the core retries the wait: SB_OK then means that only the
     *  wait had failed. An event may outlive its stream. Statuses are those of stream_synchronize.
     *  */
    sb_status (*event_wait)(void *device, void *event, sb_error *err);
    /** Destroys the event, complete or not. */
    void (*event_destroy)(void *device, void *event);

    /* --- arithmetic: all or none; missing: UNSUPPORTED on the device ------- */
    /* dtype is F32 or F64. OUT_OF_MEMORY and UNSUPPORTED of axpy or scale mean that nothing was
       queued. After any other failure the output may be spoiled, unlike above: the core then treats
       the device as lost, even if the slot failed before it queued anything. */

    /** Does all that may fail before arithmetic starts (opening a library, creating a handle). A
     *  failure here has changed nothing. */
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

    /** The device type of the device's memory; device N of "NAME:N" has the id N. 0: memory is not
     *  exchanged. */
    int32_t dlpack_device;
    /** The device type of memory from alloc_pinned; 0: SB_DL_DEVICE_CPU. */
    int32_t dlpack_pinned;

    /* --- memory that the backend caches: optional; missing: no cache ---- */

    /** Releases freed memory that the backend caches for `alloc`; waits if necessary.
     *  sb_context_trim calls it. An `alloc` that is out of memory must trim without this call. */
    void (*trim)(void *device);

    /* --- default streams: optional; missing: NULL stands for all of them ------ */

    /** Makes later work on own_stream wait for work queued so far on default streams that
     *  own_stream is not ordered with, such as CUDA's per-thread ones. The core calls it before
     *  work on memory to which a caller holds a pointer without having named a stream, and before
     *  it frees such memory. UNSUPPORTED means that a capture forbids it: the core then continues
     *  with the work, and frees no such memory before it has waited for NULL. */
    sb_status (*after_default)(void *device, sb_error *err);

    /* --- queries: optional; missing: only a wait detects completion --------- */

    /** Sets `*out_done` to 1 if all work before the event has ended, successfully or not, else to
     *  0. Never waits, and does not clear a failure that event_wait returns. The core calls this on
     *  the device of one context when another context ends. DEVICE_LOST means that the work has
     *  ended; any other failure, that its state is unknown. Also called on a lost device. */
    sb_status (*event_query)(void *device, void *event, int32_t *out_done, sb_error *err);

    /* --- extensions: optional; missing: none ------ */

    /** The table that sb_context_extension returns for `name`, valid as long as the device is open;
     *  NULL if there is none. Also called on a lost device. */
    const void *(*extension)(void *device, const char *name);
} sb_backend;

SB_END_DECLS

#endif
