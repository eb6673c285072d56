/**
 * The backend table, for authors of a backend for another accelerator. Programs that use the
 * backend call sb_backend_load or sb_backend_register, at the end of this header.
 *
 * The core checks every argument before it calls a slot. Pointers are not NULL, sizes and counts
 * are above 0, and the slot supports the dtype. Slots may run on any thread, on several threads at
 * once, and while the core holds the lock of an sb_mem. The only library function that a slot may
 * call is sb_error_fill. Every slot that can fail returns SB_OK or one of NO_DEVICE, OUT_OF_MEMORY,
 * DEVICE_FAILURE, DEVICE_LOST, UNSUPPORTED, WRONG_DEVICE, FORKED. The core returns these codes to
 * the program, and replaces any other code with DEVICE_FAILURE. A slot that fails must fill `err`
 * (never NULL) with sb_error_fill, must have no other effect, and must not have queued work. A C++
 * exception must not leave a slot. If a slot returns DEVICE_LOST, the whole context is lost: from
 * then on the core calls only stream_synchronize, event_wait, event_query, free, free_pinned,
 * event_destroy, extension and close. The guide c/guide/backend.md develops a backend step by step.
 *
 * "Queued on `stream`" means ordered after all earlier work on `stream`. The slot may return before
 * the work is complete. If work on a stream fails, later work on the stream may run or may fail,
 * too. If every slot completes its work before the slot returns, the backend leaves all stream and
 * event slots NULL. The library's asynchronous calls are then synchronous, and the library's `_on`
 * calls accept only the NULL stream. The stream NULL is the device's legacy default stream. With
 * SB_BACKEND_NO_DEFAULT_STREAM the device has no default stream. If a caller passes NULL, the core
 * uses own_stream, so that slots never receive the stream NULL.
 */
#ifndef SYNCBLOB_BACKEND_H
#define SYNCBLOB_BACKEND_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** The version of the table, which increases when the meaning of a slot changes. */
#define SB_BACKEND_ABI_VERSION 1

/** Flags of a backend. */
enum {
    SB_BACKEND_PINNED_NOT_IN_CHILD = 1, /**< a forked child may be unable to access the parent's
                                             page-locked memory. In the child the core returns
                                             FORKED instead of a pointer to that memory */
    SB_BACKEND_NO_DEFAULT_STREAM = 2,   /**< the device has no default stream, as in OpenCL: work
                                             runs only on own_stream, which callers get from
                                             sb_context_stream, and on callers' streams */
    SB_BACKEND_HOST_COHERENT = 4 /**< the host can access memory of `alloc` at the device's address
                                      while no work on the device uses the memory. After a wait for
                                      work, the host sees the bytes that the work wrote. Work that
                                      is queued later sees the bytes that the host wrote. The host
                                      and all streams may use the memory once `alloc` returns */
};

/** Features that this device lacks, although the backend's table has their slot or flag. */
enum {
    SB_DEVICE_LACKS_F64 = 1,           /**< the device cannot compute with doubles. For arithmetic
                                            on F64 the core returns UNSUPPORTED, copies no bytes and
                                            calls no slot */
    SB_DEVICE_LACKS_CHECK_POINTER = 2, /**< the device cannot check pointers: the core ignores
                                            check_pointer */
    SB_DEVICE_LACKS_HOST_COHERENT = 4  /**< the device has no host-coherent memory: the
                                            core ignores SB_BACKEND_HOST_COHERENT */
};

/** The table of a backend. Members beyond the implementer's struct_size count as NULL or 0. The
 *  library refuses a struct_size that ends in the middle of a member. */
typedef struct sb_backend {
    size_t struct_size;   /**< the implementer's sizeof(sb_backend) */
    uint32_t abi_version; /**< SB_BACKEND_ABI_VERSION */
    uint32_t flags;       /**< SB_BACKEND_* */
    const char *name;     /**< for example "cuda"; only letters and digits */
    void *user;           /**< passed to `open` */

    /* --- open and close: both required ---------------------------------- */

    /** Opens the device with the number `ordinal`, counted from 0. `*out` is the first argument of
     *  all other slots. A call that fails must leave nothing open. NO_DEVICE means that no such
     *  device exists. */
    sb_status (*open)(void *user, int32_t ordinal, void **out, sb_error *err);
    /** Waits for queued work and closes the device. Before the call, the core has freed all memory
     *  and destroyed all events, but callers' streams may still exist. No other slot runs during or
     *  after the call. The core also calls the slot on a lost device. The slot must not fail. */
    void (*close)(void *device);

    /* --- memory: required ------------------------------------------------ */

    /** Allocates device memory, aligned to 64 bytes or more, with unspecified contents. If too
     *  little memory is free, the slot must wait for queued frees before it returns OUT_OF_MEMORY:
     *  the core does not retry. The core treats SB_OK with a NULL pointer as DEVICE_FAILURE. Later
     *  work on `stream` may use the memory. Work on any other stream may use the memory once
     *  `stream` has been synchronised. */
    sb_status (*alloc)(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err);
    /** Frees memory once the work queued so far on `stream` has ended. On a lost device, frees the
     *  memory if possible. The slot may wait for `stream` and may allocate memory, but cannot
     *  report a failure: memory that cannot be freed stays allocated until `close`. */
    void (*free)(void *device, void *ptr, size_t bytes, sb_stream stream);
    /** Sets `bytes` bytes at `dst` to zero, queued on `stream`. */
    sb_status (*zero)(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err);
    /** Copies from host to device, queued on `stream`. The core keeps `src` unchanged until the
     *  copy is complete. The regions never overlap. `dst` may point to any byte of a block: the
     *  core adds offsets in bytes to the pointer that `alloc` returned. The result of `alloc` need
     *  not be a host address. Other slots, except `free`, may also receive pointers into a block.
     *  Arithmetic receives only pointers to the first byte of an element. */
    sb_status (*upload)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                        sb_error *err);
    /** Copies from device to host, queued on `stream`, under the rules of upload. */
    sb_status (*download)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err);
    /** Copies within the device between regions that do not overlap, queued on `stream`. */
    sb_status (*copy)(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                      sb_error *err);

    /* --- page-locked host memory: both slots or neither; if NULL, host memory is ordinary */

    /** Allocates host memory, aligned to 64 bytes or more, which the device can read and write
     *  without an intermediate copy. */
    sb_status (*alloc_pinned)(void *device, size_t bytes, void **out, sb_error *err);
    /** Frees memory that alloc_pinned returned. No work uses the memory any more. */
    void (*free_pinned)(void *device, void *ptr, size_t bytes);

    /* --- callers' pointers: optional; if NULL, all pointers are accepted --- */

    /** Returns SB_OK if [ptr, ptr + bytes) is memory of this device that the slots can use, else
     *  WRONG_DEVICE. A backend may also accept memory of another `open` of the same device, if the
     *  slots can use that memory. A backend that cannot detect freed memory may accept a range of
     *  freed memory. A backend that cannot detect the end of a block may accept a range that
     *  extends beyond the block. */
    sb_status (*check_pointer)(void *device, const void *ptr, size_t bytes, sb_error *err);

    /* --- streams and events: all slots or none ---------------------------- */

    /** Returns the stream on which the library queues its work: always the same stream, from `open`
     *  to `close`. The stream is not the legacy default stream, because the core detects failed
     *  arithmetic only on a separate stream. If the device has a legacy default stream, own_stream
     *  is ordered with that stream. If the slot returns NULL, the core refuses the device
     *  (DEVICE_FAILURE). The core calls this slot once after `open`, and again each time before it
     *  passes the stream to a caller. The caller may then capture the stream. During the capture,
     *  slots that would use the stream return UNSUPPORTED, and memory passed to `free` is freed
     *  later. */
    sb_stream (*own_stream)(void *device);
    /** Returns WRONG_DEVICE for a stream of another device. Also returns WRONG_DEVICE for a stream
     *  of another `open` of this device, unless the slots can use that stream. Returns UNSUPPORTED
     *  for a stream that is being captured. The result of own_stream is always valid. NULL is valid
     *  if the device has a default stream. A device need not support other streams. A caller
     *  creates streams with functions of the driver or of a table from `extension`. If the handle
     *  is not an existing stream, the driver defines the behaviour. */
    sb_status (*check_stream)(void *device, sb_stream stream, sb_error *err);
    /** Waits for all work queued on `stream`. If the work fails, the first wait of the thread that
     *  queued the work returns the failure. The wait returns the failure even if another thread's
     *  wait has returned the failure before. If that thread has recorded an event after the work,
     *  the wait for the event must return the failure, and this slot need not. On own_stream, if no
     *  wait has returned the failure yet, the next wait of any thread returns the failure. The core
     *  detects failed arithmetic on own_stream only with this slot. Later waits need not return the
     *  failure. On other streams the core waits for events, but may also call this slot. All waits
     *  and sums must report failed work as DEVICE_FAILURE or DEVICE_LOST. The core may treat any
     *  other status, such as OUT_OF_MEMORY, as a failure of the wait alone. SB_OK and DEVICE_LOST
     *  mean that the work has ended, successfully or not. After any other status the core retries
     *  the wait. Until a wait returns SB_OK or DEVICE_LOST, the core does not free or reuse memory
     *  that the work uses, or run its deleter. The core also calls the slot on a lost device, where
     *  work may continue after another slot has failed. */
    sb_status (*stream_synchronize)(void *device, sb_stream stream, sb_error *err);
    /** Records an event, which completes when all work queued so far on `stream` has completed. */
    sb_status (*event_record)(void *device, sb_stream stream, void **out, sb_error *err);
    /** Makes later work on `stream` wait for the event. The host does not wait. Even if this slot
     *  fails, the later work must not run before the event is complete. The later work may be a
     *  `free` of memory that the work before the event uses. If the work before the event has
     *  failed, the later work may run and succeed. The core waits for the event separately to
     *  detect the failure. */
    sb_status (*stream_wait)(void *device, sb_stream stream, void *event, sb_error *err);
    /** Waits on the host for the event. If work on the event's stream failed before the event,
     *  every wait for the event, on any thread, returns the failure in three cases. First, the
     *  thread that queued the work recorded the event as its first event after the work, and no
     *  wait of that thread had returned the failure before. Second, the failed work is a caller's,
     *  and no wait of any thread has returned the failure yet. Third, another thread recorded the
     *  event before the event of the first case, and no wait of any thread has returned the failure
     *  yet. Other events need not return the failure. If a wait returns an old failure again, the
     *  core treats all work before the event as failed, even work queued after the old failure. If
     *  the waits for all later events return the old failure, the stream stays unusable. The core
     *  records an event after each copy and each arithmetic operation whose failure it must detect.
     *  The core retries a failed wait: if the second wait returns SB_OK, the work has succeeded. If
     *  both waits return OUT_OF_MEMORY, a later call of the core waits again. An event may outlive
     *  its stream. Statuses have the same meanings as in stream_synchronize. */
    sb_status (*event_wait)(void *device, void *event, sb_error *err);
    /** Destroys the event, complete or not. */
    void (*event_destroy)(void *device, void *event);

    /* --- arithmetic: all slots or none; if NULL, the core returns UNSUPPORTED */
    /* dtype is F32 or F64. A device without doubles sets SB_DEVICE_LACKS_F64: no slot then receives
       F64. Without that flag, all slots of the device return UNSUPPORTED for F64. An axpy or scale
       that returns OUT_OF_MEMORY or UNSUPPORTED has queued nothing. After any other failure of axpy
       or scale the output may have changed, and the core treats the device as lost. */

    /** Prepares for arithmetic: does everything that may fail, such as opening a library. A call
     *  that fails has changed nothing. */
    sb_status (*prepare_arithmetic)(void *device, sb_error *err);
    /** y[i] += alpha * x[i], queued on `stream`. x may be y. Rounds `alpha` to `dtype` first. */
    sb_status (*axpy)(void *device, sb_dtype dtype, int64_t count, double alpha, const void *x,
                      void *y, sb_stream stream, sb_error *err);
    /** x[i] *= alpha, queued on `stream`. `alpha` is first rounded to `dtype`. */
    sb_status (*scale)(void *device, sb_dtype dtype, int64_t count, double alpha, void *x,
                       sb_stream stream, sb_error *err);
    /** Writes the sum of |x[i]| to `*out` on the host. The sum has the precision and range of a sum
     *  in double. A device without doubles may add on the host, or add scaled pairs of floats. The
     *  sums of large values, small values, infinity and NaN must be the same as in double. Waits
     *  for the result. Like stream_synchronize, the slot returns a failure of earlier work on
     *  `stream`, because the core does not wait for that work again. A call that fails may have
     *  written `*out`. */
    sb_status (*asum)(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                      sb_stream stream, sb_error *err);
    /** Writes the sum of x[i]^2, under the rules of asum. */
    sb_status (*sumsq)(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                       sb_stream stream, sb_error *err);

    /* --- DLPack's types of the device's memory (dlpack.h) ---------------- */

    /** DLPack's device type of the device's memory, or 0 if the memory cannot be exchanged through
     *  DLPack. The device "NAME:N" has DLPack's device id N. */
    int32_t dlpack_device;
    /** DLPack's device type of memory from alloc_pinned; 0 means SB_DL_DEVICE_CPU. */
    int32_t dlpack_pinned;

    /* --- memory that the backend caches: optional; NULL if it caches none ---- */

    /** Releases freed memory that the backend caches for `alloc`. Waits if necessary. The core
     *  calls this slot in sb_context_trim. An `alloc` that runs out of memory must release the
     *  cache itself. */
    void (*trim)(void *device);

    /* --- default streams: optional; NULL if all are ordered with the NULL stream */

    /** Makes later work on own_stream wait for work queued so far on other default streams, such as
     *  CUDA's per-thread streams. Default streams that own_stream is ordered with need no wait. If
     *  a caller has fetched a pointer to memory without passing a stream, the core calls this slot
     *  before it queues work on that memory or frees it. UNSUPPORTED means that a capture forbids
     *  this wait. The core then queues its work without the wait, but frees the memory only after a
     *  wait for the NULL stream. */
    sb_status (*after_default)(void *device, sb_error *err);

    /* --- queries: optional; if NULL, only a wait detects completion ------ */

    /** Sets `*out_done` to 1 if all work before the event has ended, successfully or not, else to
     *  0. The slot returns SB_OK even if the work has failed. Never waits. A later event_wait must
     *  still return the failure. When a context ends, the core also calls this slot on the devices
     *  of other contexts. DEVICE_LOST means that the work has ended. After any other failure the
     *  core does not know whether the work has ended. The core also calls the slot on a lost
     *  device. */
    sb_status (*event_query)(void *device, void *event, int32_t *out_done, sb_error *err);

    /* --- extensions: optional ------ */

    /** Returns the table that sb_context_extension returns for `name`, or NULL if the backend has
     *  no such table. The table is valid as long as the device is open. The core also calls the
     *  slot on a lost device. */
    const void *(*extension)(void *device, const char *name);

    /* --- reads: optional, only with SB_BACKEND_NO_DEFAULT_STREAM ------------------------ */

    /** Returns a second stream of the device, which exists until `close`, is neither NULL nor
     *  own_stream, and is not ordered with other streams. The core never passes this stream to a
     *  caller. If a caller reads bytes that no work on own_stream has written, the core downloads
     *  the bytes on this stream. The read then does not wait for own_stream. The core waits for
     *  work on this stream in the same way as for work on callers' streams. Called once, after
     *  `open`. */
    sb_stream (*read_stream)(void *device);

    /* --- limits of one device: optional ------------------------------------ */

    /** Returns SB_DEVICE_LACKS_* flags, the same flags on every call and for every `open` of the
     *  device. The core calls this slot once, after `open`, and returns UNSUPPORTED for a device
     *  with unknown flags. */
    uint32_t (*lacks)(void *device);
} sb_backend;

/* --- devices by name ---------------------------------------------------------- */

/** Makes "NAME:N" a device of the process, where NAME is the backend's name. Every context can then
 *  open this device, unless the context's options contain a table (sb_context_options::backend).
 *  Meant for programs that are linked with a backend. Registering the same table again changes
 *  nothing. A backend stays registered until the process ends. May be called on any thread, and in
 *  a forked child.
 *  @param backend [borrowed] must stay valid and unchanged until the process ends
 *  Errors: INVALID_ARGUMENT (a table without a required slot; a name that is not 1 to 29 letters
 *  and digits; a name that is built in ("cpu", "sim", "cuda") or that another table has),
 *  ABI_MISMATCH (a table of another version), UNSUPPORTED (unknown flags, an unknown tail that is
 *  not zero), OVER_LIMIT (64 backends are registered). */
SB_API SB_MUST_CHECK sb_status sb_backend_register(const sb_backend *backend, sb_error *err);

/** The name of the function (sb_backend_entry) that a shared library with a backend exports. In C++
 *  the function is `extern "C"`. */
#define SB_BACKEND_ENTRY "syncblob_backend"

/** The function of a shared library that sb_backend_load calls. Returns the table, or NULL if the
 *  library has no backend for this machine. The library may call the function on any thread, and
 *  several times. The function returns the same table each time. */
typedef const sb_backend *(*sb_backend_entry)(void);

/** Opens the shared library at `path` and registers its backend, as sb_backend_register does. The
 *  library stays open until the process ends. A failed call closes the library, unless a backend
 *  was registered during the call. Loading a library again changes nothing. Opening a library runs
 *  its code with all rights of the process: pass only paths of trusted files. The system may search
 *  folders for other libraries on which this library depends. In a forked child the call may hang
 *  if another thread of the parent was opening a library at the fork.
 *  @param path [borrowed] NUL-terminated, on Windows UTF-8. No folders are searched: a path without
 *      a folder names a file in the current folder
 *  @param out [borrowed, nullable] the table, with the backend's name; valid until the process ends
 *  Errors: IO (the file cannot be opened, or the system's loader refuses it; in the second case
 *  device_code is 0), NOT_FOUND (the library does not export SB_BACKEND_ENTRY), UNSUPPORTED (the
 *  entry returned NULL; this system has no shared libraries), as sb_backend_register. */
SB_API SB_MUST_CHECK sb_status sb_backend_load(const char *path, const sb_backend **out,
                                               sb_error *err);

SB_END_DECLS

#endif
