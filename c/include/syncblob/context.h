/**
 * sb_context: what Caffe keeps in a global (mode, device, cuBLAS handle),
 * made explicit. It owns the allocator, the limits, the caches and at most
 * one device. Reference counted and shareable between threads; all that is
 * made from it keeps it alive.
 *
 * NULL where a context is asked for means a built-in one: host only, default
 * limits, never destroyed.
 *
 * Quarantine: work on a device is over when the device says so, not when waiting
 * for it has failed. Storage may be given up while nobody can tell whether work on
 * it is over. It is then neither freed nor used again, its deleter does not run,
 * and it counts as live. The context asks for it again whenever it is synchronised
 * or trimmed and whenever a memory of it is released. If another thread is asking
 * at that moment, that thread gives the storage back, perhaps later. What a driver
 * does not take back, since its calls fail, is kept and counted likewise.
 *
 * If the last owner releases the context first, the context stays until the device
 * answers (sb_stats::leaked_bytes until then). It is asked when any context is
 * trimmed or ends. Until then its allocator and backend may be called.
 */
#ifndef SYNCBLOB_CONTEXT_H
#define SYNCBLOB_CONTEXT_H

#include <syncblob/status.h>

SB_BEGIN_DECLS

/** A context: allocator, limits, caches and at most one device. */
typedef struct sb_context sb_context;
struct sb_backend; /* backend.h */

/** Flags that an allocator is called with. */
enum {
    SB_ALLOC_ZEROED = 1, /**< the memory must read as zeros */
    SB_ALLOC_OBJECT = 2  /**< for a handle or an index of the library, or a blob of less than 4 KiB
                              that a model holds; without it, for a buffer of an sb_mem or of
                              encoded bytes */
};

/**
 * Where host memory comes from. Both slots are given or neither; neither
 * means the built-in allocator. They may run on any thread, several at once,
 * possibly under a lock of the library, and must not call the library.
 */
typedef struct sb_allocator {
    /** `bytes` > 0, `alignment` a power of two of at least 64. NULL on failure. */
    void *(*alloc)(void *user, size_t bytes, size_t alignment, uint32_t flags);
    /** Takes back what `alloc` gave, with the same arguments. */
    void (*free)(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags);
    void *user; /**< passed to both */
} sb_allocator;

/**
 * Runs task(arg, i) exactly once for every i in [0, tasks), on any threads,
 * and returns when all have returned. The tasks neither block nor fail. No lock of the
 * library is held, and it may call the library, but not on the objects that the call works on.
 */
typedef void (*sb_parallel_for)(void *user, int64_t tasks, void (*task)(void *arg, int64_t i),
                                void *arg);

/** Bounds on what one read of untrusted bytes may ask for; 0 in a member
 *  means the default given there. */
typedef struct sb_limits {
    size_t struct_size;    /**< sizeof(sb_limits) of the caller */
    size_t max_memory;     /**< bytes that one read may hold live: index and payload together,
                                and what the blob has room for where all of that has to come
                                to the host; with the objects that the library makes for
                                them, and the up to an eighth by which page-locked memory is
                                rounded up; default: no bound but the context's cap */
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
    SB_CONTEXT_NO_HOST_CACHE = 1 << 9 /**< freed host buffers go back to the allocator at once */
};

/** All that a context is made from. A member of 0 or NULL means its default. */
typedef struct sb_context_options {
    size_t struct_size; /**< sizeof(sb_context_options) of the caller */
    uint32_t flags;     /**< SB_CONTEXT_* */
    uint32_t reserved;  /**< 0 */
    const char *device; /**< "cpu" (default), "sim:N", "cuda:N"; N is up to INT32_MAX, without
                             leading zeros */
    /** [nullable] a device of the caller's own: device index N of "NAME:N" in
     *  `device` is opened from this table, which must outlive the context. */
    const struct sb_backend *backend;
    sb_allocator allocator;       /**< where host memory comes from */
    const sb_limits *limits;      /**< [nullable] copied; for reads that are given none of their
                                       own */
    size_t max_host_bytes;        /**< hard cap on live ordinary host memory; 0: none */
    size_t max_device_bytes;      /**< hard cap on live device memory; 0: none. What a backend takes
                                       for itself is not counted, as a sum's scratch memory on
                                       "cuda:N", nor what its driver did not take back */
    size_t max_pinned_bytes;      /**< page-locked memory used at most, as sb_stats::pinned_bytes
                                       counts it; 0: 1 GiB; above it host memory is ordinary */
    size_t max_cache_bytes;       /**< host memory kept for reuse; 0: 256 MiB. Together with the
                                       memory in use it is never more than was once in use,
                                       handles and requests under way aside */
    sb_parallel_for parallel_for; /**< [nullable] spreads large operations over the caller's
                                       threads; NULL: the calling thread does it all */
    void *parallel_for_user;      /**< passed to `parallel_for` */
} sb_context_options;

/** Fills in the defaults. For languages that cannot use SB_CONTEXT_OPTIONS_INIT, a macro of C.
 *  @param options [nullable]
 *  @param struct_size sizeof(sb_context_options) of the caller, which it gets: a newer caller's
 *      tail is zero */
SB_API void sb_context_options_init(sb_context_options *options, size_t struct_size);

/** The defaults as an initialiser. */
#define SB_CONTEXT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(sb_context_options), 0, 0, NULL, NULL, {NULL, NULL, NULL}, NULL, 0, 0, 0, 0, NULL,  \
            NULL                                                                                   \
    }

/** Makes a context. A smaller `struct_size` is an older caller's: the missing
 *  tail takes its defaults; a larger one may hold only zeros past our end.
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param out [owned] release with sb_context_release
 *  Errors: INVALID_ARGUMENT (flags, half an allocator, a device name of another form, a limit
 *  below 0, a backend table that lacks slots), UNSUPPORTED (unknown tail that is not zero, unknown
 *  device kind, unknown flags of a backend), ABI_MISMATCH (struct_size is no version's, a backend
 *  table of another version), NO_DEVICE, DEVICE_FAILURE, DEVICE_LOST, FORKED (the process
 *  was forked after its parent had used the device's driver), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_context_create(const sb_context_options *options,
                                                 sb_context **out, sb_error *err);

/** One more owner. @param context [nullable] @return [owned] `context` */
SB_API sb_context *sb_context_retain(sb_context *context);

/** One owner less; the last one frees it, and waits for what it has in quarantine. Other contexts
 *  of the process that have something there are asked whether their devices are done with it, and
 *  none of them is waited for. @param context [owned, nullable] */
SB_API void sb_context_release(sb_context *context);

/** "cpu", or the device's "NAME:N". @param context [nullable] the built-in one
 *  @return [borrowed] lives as long as the context */
SB_API const char *sb_context_device(const sb_context *context);

/** 1 if the context has a device beside the host. @param context [nullable] */
SB_API int32_t sb_context_has_device(const sb_context *context);

/** SB_OK, or why the device can no longer be used.
 *  @param context [nullable] the built-in one
 *  Errors: DEVICE_LOST, FORKED, NO_DEVICE (host-only). */
SB_API SB_MUST_CHECK sb_status sb_context_device_status(const sb_context *context);

/** The device's stream that the library's own work is queued on. You may capture it into a
 *  graph. A call that would queue work on it or wait for it then says UNSUPPORTED and has done
 *  nothing, the capture goes on, and what is freed meanwhile goes back after it. No capture may
 *  begin while such a call runs, here or on any stream that the call uses: it asks, then works.
 *  Other contexts leave the stream alone, but where one is trimmed or ends while this one has
 *  something in quarantine.
 *  @param context [nullable] the built-in one
 *  @param out [borrowed] lives as long as the context
 *  Errors: NO_DEVICE, DEVICE_LOST, FORKED, UNSUPPORTED (a backend without streams). */
SB_API SB_MUST_CHECK sb_status sb_context_stream(const sb_context *context, sb_stream *out,
                                                 sb_error *err);

/** A table that the context's device offers beside the slots of its backend: for a library that
 *  goes with a backend, as libsyncblob-testing does with the simulated device (sim_device.h), or
 *  that calls a driver itself, as libsyncblob-comm does (cuda_device.h). A lost device offers its
 *  tables, too; what their functions do then is the backend's to say.
 *  @param context [borrowed, nullable] the built-in one
 *  @param name [borrowed] the table's, which ends in NUL
 *  @param out_table [borrowed] what `name` stands for, as long as the context lives
 *  @param out_device [borrowed] the device that the table's functions are passed, equally long
 *  Errors: NO_DEVICE (host-only), FORKED, UNSUPPORTED (the device has no such table). */
SB_API SB_MUST_CHECK sb_status sb_context_extension(const sb_context *context, const char *name,
                                                    const void **out_table, void **out_device,
                                                    sb_error *err);

/** Makes the device ready for arithmetic, as the first sum, update or scaling would: "cuda:N" opens
 *  cuBLAS. For a program that measures or is about to capture a graph, and for one that has to know
 *  beforehand whether the device has arithmetic, such as a transport before it sends what it will
 *  scale there.
 *  @param context [nullable] the built-in one, which has no device
 *  Errors: NO_DEVICE, UNSUPPORTED (the device has none, or its library cannot be opened),
 *  OUT_OF_MEMORY, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_context_prepare_arithmetic(sb_context *context, sb_error *err);

/** Waits until all work queued on the device by the library is done; a failure of it that
 *  no other call has reported is returned. Then gives back
 *  what is in quarantine and no longer in use. Host-only: nothing to wait for, SB_OK.
 *  @param context [nullable] the built-in one
 *  Errors: OUT_OF_MEMORY, UNSUPPORTED (a stream in use is being captured; on "cuda:N" any
 *  blocking stream, since nobody can wait for the default streams then), DEVICE_FAILURE,
 *  DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_context_synchronize(sb_context *context, sb_error *err);

/** Waits for the work on `stream` that this context's memories depend on and
 *  drops the stream from their users; after DEVICE_FAILURE, of the wait or of work there, it is
 * still known: call it again. Call it before destroying a stream that was passed to an `_on`
 * function, while no other thread is between such a call and its own work on the stream. Forgetting
 * a stream that was never passed is fine.
 *  @param context [nullable] the built-in one, which has no device
 *  @param stream [borrowed]
 *  Errors: NO_DEVICE, UNSUPPORTED (the stream is being captured), DEVICE_FAILURE, FORKED,
 *  DEVICE_LOST (the stream is forgotten all the same, and its work is over). */
SB_API SB_MUST_CHECK sb_status sb_context_forget_stream(sb_context *context, sb_stream stream,
                                                        sb_error *err);

/** Bytes and copies of a context so far; see sb_context_stats. Host bytes
 *  count the library's own handles too; pinned bytes are not among them;
 *  borrowed bytes are in no other figure. A page-locked buffer of more than 64 KiB that could
 *  be kept for reuse is taken, and counted as pinned, cached or in use, up to an eighth larger than
 *  its memory: buffers of near sizes are taken alike, so that one is used again for another. */
typedef struct sb_stats {
    size_t struct_size;      /**< sizeof(sb_stats) of the caller */
    uint64_t host_bytes;     /**< ordinary host memory, live */
    uint64_t host_peak;      /**< the most there was */
    uint64_t pinned_bytes;   /**< page-locked host memory, live */
    uint64_t pinned_peak;    /**< the most there was */
    uint64_t device_bytes;   /**< device memory, live */
    uint64_t device_peak;    /**< the most there was */
    uint64_t borrowed_bytes; /**< callers' memory in use, either side */
    uint64_t cached_bytes;   /**< host memory kept for reuse (also in host_bytes or pinned_bytes) */
    uint64_t uploads;        /**< copies host to device */
    uint64_t upload_bytes;   /**< their bytes */
    uint64_t downloads;      /**< copies device to host */
    uint64_t download_bytes; /**< their bytes */
    uint64_t device_copies;  /**< copies within the device */
    uint64_t device_copy_bytes; /**< their bytes */
    uint64_t host_copies;       /**< copies of whole buffers within the host */
    uint64_t host_copy_bytes;   /**< their bytes */
    uint64_t quarantined_bytes; /**< given up, but kept: the device may still use them, and nobody
                                     could find out, or its driver did not take them back (also in
                                     the live figures above) */
    uint64_t leaked_bytes; /**< of the process: what contexts that have ended keep in quarantine,
                              and what no driver can be given back any more */
} sb_stats;

/** No figures, as an initialiser. */
#define SB_STATS_INIT                                                                              \
    { sizeof(sb_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Reads the figures; may be called at any time from any thread.
 *  @param context [nullable] the built-in one
 *  @param out `struct_size` set by the caller; that many bytes are written at most
 *  Errors: ABI_MISMATCH (struct_size is no version's). */
SB_API SB_MUST_CHECK sb_status sb_context_stats(const sb_context *context, sb_stats *out,
                                                sb_error *err);

/** Gives cached memory back, that of the host to the allocator and that of the device to
 *  its driver: until then "cuda:N" keeps what it frees, for itself, unless another context of
 *  the device lacks memory. Waits for what is in quarantine, in all contexts of the process,
 *  and gives it back if the device is done with it. Pointers in use stay valid.
 *  @param context [nullable] */
SB_API void sb_context_trim(sb_context *context);

SB_END_DECLS

#endif
