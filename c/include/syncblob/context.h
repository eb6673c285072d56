/**
 * sb_context: an object that replaces Caffe's global mode, device and cuBLAS handle. A context owns
 * the allocator, the limits, the caches and at most one device. A context is reference counted and
 * may be shared between threads. Every object made in a context retains the context.
 *
 * Where a function takes a context, NULL is the built-in context, which has no device, has default
 * limits and is never destroyed.
 *
 * Quarantine: after a failed wait, work may still run on the device and use retired storage
 * (storage that no memory uses any more). Retired storage that the device may still be using is in
 * quarantine. The library does not free or reuse storage in quarantine, and does not run its
 * deleter. sb_stats still counts the storage. The context checks the storage again whenever the
 * context is synchronised or trimmed and whenever a memory of the context is released. If another
 * thread is already checking the storage, that thread frees the storage, perhaps after the call
 * returns. Storage that a driver fails to free is also counted, and is in quarantine.
 *
 * A context that its last owner has released exists until its device no longer uses any storage in
 * quarantine. sb_stats::leaked_bytes counts that storage. The library checks contexts without an
 * owner when any context is trimmed or ends. Until contexts without an owner end, the library may
 * call their allocators and backends.
 */
#ifndef SYNCBLOB_CONTEXT_H
#define SYNCBLOB_CONTEXT_H

#include <syncblob/status.h>

SB_BEGIN_DECLS

/** A context: allocator, limits, caches and at most one device. */
typedef struct sb_context sb_context;
struct sb_backend; /* backend.h */

/** Flags that the library passes to an allocator. */
enum {
    SB_ALLOC_ZEROED = 1, /**< the memory must read as zeros */
    SB_ALLOC_OBJECT = 2  /**< memory for a handle or an index of the library, or for a blob below 4
                              KiB in an sb_model. Without the flag: memory for an sb_mem's buffer or
                              for encoded bytes */
};

/**
 * An allocator of host memory. Set both slots, or set both to NULL for the built-in allocator. The
 * slots run on any thread, also on several threads at once, and must not call the library, which
 * may hold a lock.
 */
typedef struct sb_allocator {
    /** Allocates `bytes` > 0 bytes; `alignment` is a power of two of at least 64. Returns NULL on
     *  failure. */
    void *(*alloc)(void *user, size_t bytes, size_t alignment, uint32_t flags);
    /** Frees `ptr`, which `alloc` returned for the same `bytes`, `alignment` and `flags`. */
    void (*free)(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags);
    void *user; /**< passed to both slots */
} sb_allocator;

/**
 * Runs task(arg, i) exactly once for every i in [0, tasks), on any threads, and returns when all
 * tasks have returned. The tasks neither block nor fail. A call of the library runs the function,
 * and holds no lock during the run. The function may call the library, but not with objects that
 * the running call uses.
 */
typedef void (*sb_parallel_for)(void *user, int64_t tasks, void (*task)(void *arg, int64_t i),
                                void *arg);

/** Bounds on one read of untrusted bytes. 0 in a member means the default. */
typedef struct sb_limits {
    size_t struct_size;    /**< sizeof(sb_limits) of the caller */
    size_t max_memory;     /**< the most bytes that one read may have allocated at a time. The bytes
                                include the index, the payload, objects of the library and the
                                rounding of page-locked memory (up to an eighth). The bytes also
                                include the blob's whole memory if the read must copy it to the
                                host. By default only the context's cap applies */
    int64_t max_layers;    /**< layers of a model; default 100000 */
    int64_t max_blobs;     /**< blobs of a model; default 1000000 */
    size_t max_name_bytes; /**< bytes of one name or type; default 65536 */
    int64_t max_axes;      /**< axes of a blob; default and maximum 32 */
} sb_limits;

/** The defaults as an initialiser. */
#define SB_LIMITS_INIT                                                                             \
    { sizeof(sb_limits), 0, 0, 0, 0, 0 }

/** Flags of sb_context_options. */
enum {
    SB_CONTEXT_NO_PINNED = 1 << 8,    /**< host memory is never page-locked */
    SB_CONTEXT_NO_HOST_CACHE = 1 << 9 /**< freed host buffers are not cached */
};

/** The options of a context. 0 or NULL in a member means the default. */
typedef struct sb_context_options {
    size_t struct_size; /**< sizeof(sb_context_options) of the caller */
    uint32_t flags;     /**< SB_CONTEXT_* */
    uint32_t reserved;  /**< 0 */
    const char *device; /**< "cpu" (default), "sim:N", "cuda:N", or "NAME:N" of a backend that the
                             program has registered or loaded (backend.h). At most 31 characters. N
                             is up to INT32_MAX, without leading zeros */
    /** [nullable] the caller's backend, which must outlive the context. If `device` is "NAME:N",
     *  the context opens device N of this backend. */
    const struct sb_backend *backend;
    sb_allocator allocator;       /**< the allocator of host memory */
    const sb_limits *limits;      /**< [nullable] copied; used by reads that pass no limits */
    size_t max_host_bytes;        /**< hard cap on live, pageable host memory; 0: no cap */
    size_t max_device_bytes;      /**< hard cap on live device memory, including host-coherent
                                       memory (mem.h); 0: no cap. The cap does not include a
                                       backend's internal memory (scratch memory of a sum on
                                       "cuda:N"), or memory that the driver failed to free */
    size_t max_pinned_bytes;      /**< cap on page-locked memory (sb_stats::pinned_bytes); 0: 1 GiB.
                                       Host memory beyond the cap is not page-locked */
    size_t max_cache_bytes;       /**< limit of cached host memory; 0: 256 MiB. Cached memory and
                                       memory in use together never exceed the peak of memory in use
                                       so far. Handles and unfinished allocations are not counted */
    sb_parallel_for parallel_for; /**< [nullable] splits large operations over the caller's threads.
                                       NULL: the calling thread does all work */
    void *parallel_for_user;      /**< passed to `parallel_for` */
} sb_context_options;

/** Writes the defaults, for languages that cannot use the C macro SB_CONTEXT_OPTIONS_INIT.
 *  @param options [nullable]
 *  @param struct_size sizeof(sb_context_options) of the caller, stored in the struct. Members that
 *      the library does not know become zero */
SB_API void sb_context_options_init(sb_context_options *options, size_t struct_size);

/** The defaults as an initialiser. */
#define SB_CONTEXT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(sb_context_options), 0, 0, NULL, NULL, {NULL, NULL, NULL}, NULL, 0, 0, 0, 0, NULL,  \
            NULL                                                                                   \
    }

/** Creates a context. If `struct_size` is smaller than the library's, the missing members have
 *  their defaults. If `struct_size` is larger, the bytes past the library's struct must be zero.
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param out [owned] release with sb_context_release
 *  Errors: INVALID_ARGUMENT (unknown flags, an allocator with one slot, a malformed device name, a
 *  limit below 0, a backend table without a required slot), UNSUPPORTED (bytes past the library's
 *  struct that are not zero, an unknown device kind, unknown flags of a backend), ABI_MISMATCH (a
 *  struct_size of no known version, a backend table of another version), NO_DEVICE, DEVICE_FAILURE,
 *  DEVICE_LOST, FORKED (the process was forked after its parent had used the device's driver),
 *  OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_context_create(const sb_context_options *options,
                                                 sb_context **out, sb_error *err);

/** Adds an owner. @param context [nullable] @return [owned] `context` */
SB_API sb_context *sb_context_retain(sb_context *context);

/** Removes an owner. Removing the last owner waits for work that uses the context's storage in
 *  quarantine, and frees the context. The call also checks the other contexts' storage in
 *  quarantine, and frees the storage that no device uses any more. The call does not wait for the
 *  other contexts' devices.
 *  @param context [owned, nullable] */
SB_API void sb_context_release(sb_context *context);

/** Returns "cpu", or the device's "NAME:N".
 *  @param context [nullable] NULL: the built-in context
 *  @return [borrowed] lives as long as the context */
SB_API const char *sb_context_device(const sb_context *context);

/** Returns SB_OK, or the reason why the device can no longer be used.
 *  @param context [nullable] NULL: the built-in context
 *  Errors: DEVICE_LOST, FORKED, NO_DEVICE (host-only). */
SB_API SB_MUST_CHECK sb_status sb_context_device_status(const sb_context *context);

/** Returns 1 if the context has a device other than the host. @param context [nullable] */
static inline int32_t sb_context_has_device(const sb_context *context) {
    return sb_context_device_status(context) != SB_ERR_NO_DEVICE;
}

/** Returns the device's stream on which the library queues its work. A program may capture the
 *  stream into a graph. During the capture, a call that would queue work on the stream or wait for
 *  the stream does nothing and returns UNSUPPORTED. The failed call does not end the capture. The
 *  library frees retired storage only after the capture. While a call runs, no capture may begin on
 *  a stream that the call uses: the call checks for captures only at its beginning. Calls on other
 *  contexts use the stream only when they trim or end a context while this context has storage in
 *  quarantine.
 *  @param context [nullable] NULL: the built-in context
 *  @param out [borrowed] lives as long as the context
 *  Errors: NO_DEVICE, DEVICE_LOST, FORKED, UNSUPPORTED (a backend without streams). */
SB_API SB_MUST_CHECK sb_status sb_context_stream(const sb_context *context, sb_stream *out,
                                                 sb_error *err);

/** Returns a table of functions that the device's backend has in addition to its slots. Meant for
 *  libraries that extend a backend or call a driver directly. For example, libsyncblob-testing
 *  extends the simulated device (sim_device.h), and libsyncblob-comm calls CUDA's driver
 *  (cuda_device.h). A lost device still has its tables. The backend documents how the functions
 *  then behave.
 *  @param context [borrowed, nullable] NULL: the built-in context
 *  @param name [borrowed] the name of the table, NUL-terminated
 *  @param out_table [borrowed] the table; lives as long as the context
 *  @param out_device [borrowed] the first argument of the table's functions; lives as long as the
 *      context
 *  Errors: NO_DEVICE (host-only), FORKED, UNSUPPORTED (the device has no such table). */
SB_API SB_MUST_CHECK sb_status sb_context_extension(const sb_context *context, const char *name,
                                                    const void **out_table, void **out_device,
                                                    sb_error *err);

/** Prepares the device for arithmetic, as the first sum, update or scaling would: "cuda:N" opens
 *  cuBLAS. Call this function before you measure times or capture a graph, or to find out early
 *  whether the device has arithmetic.
 *  @param context [nullable] NULL: the built-in context, which has no device
 *  Errors: NO_DEVICE, UNSUPPORTED (the device has no arithmetic, or its library cannot be opened),
 *  OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_context_prepare_arithmetic(sb_context *context, sb_error *err);

/** Waits until all work that the library queued on the device has ended. Returns a failure of that
 *  work if no other call has reported the failure. Finally the call frees storage in quarantine
 *  that is no longer in use. In a host-only context the call returns SB_OK at once.
 *  @param context [nullable] NULL: the built-in context
 *  Errors: OUT_OF_MEMORY, UNSUPPORTED (a stream that the context uses is being captured; on
 *  "cuda:N" also any other blocking stream, since CUDA then forbids waiting for the default
 *  streams), DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_context_synchronize(sb_context *context, sb_error *err);

/** Waits for the work on `stream` that memories of this context depend on, and removes the stream
 *  from these memories' lists of users. After DEVICE_FAILURE (the wait or the work has failed) the
 *  stream is still listed: retry the call. Call this function before you destroy a stream that was
 *  passed to an `_on` function. Before this call begins, every thread that has fetched a pointer
 *  with the stream must have queued its work on the bytes. While this call runs, no thread may pass
 *  the stream to another call. Otherwise later calls might not wait for the work. A stream that was
 *  never passed to the library is also accepted.
 *  @param context [nullable] NULL: the built-in context, which has no device
 *  @param stream [borrowed]
 *  Errors: NO_DEVICE, UNSUPPORTED (the stream is being captured), DEVICE_FAILURE, FORKED,
 *  DEVICE_LOST (the stream is removed nevertheless, and its work has ended). */
SB_API SB_MUST_CHECK sb_status sb_context_forget_stream(sb_context *context, sb_stream stream,
                                                        sb_error *err);

/** Bytes and copies of a context so far (sb_context_stats). Host bytes include the library's
 *  handles but not page-locked bytes. Memory of callers is counted only in borrowed_bytes. The
 *  library rounds up the size of a page-locked buffer of more than 64 KiB, by at most an eighth. A
 *  later request of similar size can then reuse the buffer. The figures count the rounded size. */
typedef struct sb_stats {
    size_t struct_size;         /**< sizeof(sb_stats) of the caller */
    uint64_t host_bytes;        /**< live host memory that is not page-locked */
    uint64_t host_peak;         /**< the maximum of host_bytes so far */
    uint64_t pinned_bytes;      /**< live page-locked host memory */
    uint64_t pinned_peak;       /**< the maximum of pinned_bytes so far */
    uint64_t device_bytes;      /**< live device memory */
    uint64_t device_peak;       /**< the maximum of device_bytes so far */
    uint64_t borrowed_bytes;    /**< host and device memory that callers have lent */
    uint64_t cached_bytes;      /**< cached host memory (part of host_bytes or pinned_bytes) */
    uint64_t uploads;           /**< copies from host to device */
    uint64_t upload_bytes;      /**< bytes of uploads */
    uint64_t downloads;         /**< copies from device to host */
    uint64_t download_bytes;    /**< bytes of downloads */
    uint64_t device_copies;     /**< copies within the device */
    uint64_t device_copy_bytes; /**< bytes of device_copies */
    uint64_t host_copies;       /**< copies of whole buffers within the host */
    uint64_t host_copy_bytes;   /**< bytes of host_copies */
    uint64_t quarantined_bytes; /**< retired storage that the device may still be using, or that its
                                     driver failed to free. The figures of live memory above include
                                     this storage */
    uint64_t leaked_bytes; /**< for the whole process: storage that contexts without an owner have
                                in quarantine, and storage that no driver can free any more */
} sb_stats;

/** All figures 0, as an initialiser. */
#define SB_STATS_INIT                                                                              \
    { sizeof(sb_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Reads the statistics. May be called at any time from any thread.
 *  @param context [nullable] NULL: the built-in context
 *  @param out the caller sets `struct_size`. The call writes at most `struct_size` bytes
 *  Errors: ABI_MISMATCH (a struct_size of no known version). */
SB_API SB_MUST_CHECK sb_status sb_context_stats(const sb_context *context, sb_stats *out,
                                                sb_error *err);

/** Returns cached host memory to the allocator and cached device memory to the driver. "cuda:N"
 *  caches freed memory until this call, unless another context of the device runs out of memory.
 *  The call also waits, in all contexts of the process, for work that uses storage in quarantine.
 *  Storage that its device no longer uses is then freed. Pointers in use stay valid.
 *  @param context [nullable] */
SB_API void sb_context_trim(sb_context *context);

SB_END_DECLS

#endif
