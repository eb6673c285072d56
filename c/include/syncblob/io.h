/**
 * Sources and sinks: callbacks for bytes that are neither in memory nor in a file with a path. The
 * bytes may be in an object store, an archive or an encrypted file, or behind a descriptor from
 * another process. The library reads a source at offsets and writes a sink in order. The headers
 * proto.h and model.h have the functions that use sources and sinks.
 *
 * Callbacks run on the thread that called the library. The library holds no lock during a callback.
 * A callback may call the library, but must not change or destroy the object that is being read or
 * written. While a blob is being loaded, a callback must not call any function on that blob or on
 * the blob's memories. Callbacks must not throw or longjmp.
 *
 * A callback that fails returns SB_ERR_IO, SB_ERR_OUT_OF_MEMORY or SB_ERR_CANCELLED and fills `err`
 * (never NULL) with sb_error_fill. The library's call returns the callback's status and text. Any
 * other status becomes SB_ERR_IO.
 *
 * On Linux and macOS a call on a file, a source or a sink uses at most 24 KiB of the thread's
 * stack. The stack of callbacks and of the backend is not counted.
 */
#ifndef SYNCBLOB_IO_H
#define SYNCBLOB_IO_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/**
 * A source of bytes that can be read at any offset.
 *
 * The library does not trust a source. If bytes differ between two reads, the call returns
 * SB_ERR_IO or an error for malformed data, and has no other effect.
 */
typedef struct sb_source {
    size_t struct_size; /**< sizeof(sb_source) of the caller */
    void *user;         /**< passed to all slots */
    uint64_t size;      /**< number of bytes. A call fails with SB_ERR_DATA_LIMIT if the number is
                             above 2^31 - 1 */
    /** Copies the bytes [offset, offset + bytes) of the source to `buffer`, and returns SB_OK only
     *  if all of these bytes were copied. The range is inside the source's size, and `bytes` is
     *  above 0. If the program uses a const model on several threads, the slot runs on several
     *  threads at once.
     *
     *  The library reads everything except values in pieces of up to 4 KiB, and more than once.
     *  Opening a model reads the source several times from its beginning to its end. Loading a blob
     *  reads the blob's message. In each of these passes the offsets increase, with one exception:
     *  a name is read after bytes that follow the name. Contiguous values of the blob's element
     *  type are read in one call, or with a progress callback in calls of up to 1 MiB. Other values
     *  are read 4 KiB at a time. A save to memory reads each unchanged part of the source in one
     *  call. A save to a file or a sink reads 4 KiB at a time. If each read is slow, the slot
     *  should cache the piece that it read last. */
    sb_status (*read_at)(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err);
    /** [nullable] Writes a number to `*out` that changes when the bytes change, for example from a
     *  modification time or an ETag. The library calls the slot when it opens the source and after
     *  each complete read. A different number results in SB_ERR_IO. The slot may run on several
     *  threads at once, as read_at may. */
    sb_status (*version)(void *user, uint64_t *out, sb_error *err);
    /** [nullable] Runs once, when a model releases the source. Does not run if opening the model
     *  failed, or after a call that only borrows the source. */
    void (*close)(void *user);
} sb_source;

/** An initialiser for a source: all slots are NULL. */
#define SB_SOURCE_INIT                                                                             \
    { sizeof(sb_source), NULL, 0, NULL, NULL, NULL }

/**
 * A sink that accepts bytes in order, borrowed for one call. If the call fails, the sink has
 * received an unknown part of the bytes, and the sink's owner must discard them. If the call
 * returns SB_OK, the sink has received all bytes exactly once, and the owner may close or publish
 * the sink.
 */
typedef struct sb_sink {
    size_t struct_size; /**< sizeof(sb_sink) of the caller */
    void *user;         /**< passed to `write` */
    /** Accepts all of the `size` bytes (above 0), or fails. After a failure the slot is not called
     *  again. The library collects small pieces into calls of up to 4 KiB. */
    sb_status (*write)(void *user, const void *bytes, size_t size, sb_error *err);
} sb_sink;

/** An initialiser for a sink: the slot is NULL. */
#define SB_SINK_INIT                                                                               \
    { sizeof(sb_sink), NULL, NULL }

/** A progress callback, which can also cancel a long call. */
typedef struct sb_progress {
    size_t struct_size; /**< sizeof(sb_progress) of the caller */
    void *user;         /**< passed to `report` */
    /** Reports `done` of `total` bytes. `done` never decreases, and `total` is 0 while the total is
     *  unknown. Runs about once per MiB that is read or written, and once with `done` equal to
     *  `total` before the call publishes its result. Between two reports `done` may increase by
     *  much more than a MiB, because opening a model skips the values. If a blob's diff is before
     *  its data in the file, `done` is already at the diff's end while the data are read. A return
     *  value other than 0 ends the library's call with SB_ERR_CANCELLED: nothing has changed,
     *  except the contents of a sink. Runs on several threads at once if the program uses a const
     *  model on several threads. */
    int32_t (*report)(void *user, uint64_t done, uint64_t total);
} sb_progress;

/** An initialiser: the callback is NULL. */
#define SB_PROGRESS_INIT                                                                           \
    { sizeof(sb_progress), NULL, NULL }

/** Flag of sb_source_of_descriptor. */
enum {
    SB_SOURCE_CLOSES = 1 << 10 /**< `close` closes the descriptor. Without the flag `close` is
                                    NULL */
};

/** Creates a source that reads an open descriptor of a regular file (pread), and neither uses nor
 *  moves the descriptor's offset. The source's size is the file's current size. The source's
 *  version depends on the file's modification time and size. When the library checks the version,
 *  it also compares the time of the last change (ctime), as sb_blob_load_file does. Meant for
 *  programs that receive descriptors instead of paths (a sandbox, an archive).
 *  @param descriptor must stay open as long as the source is used. On Windows the descriptor is a
 *      HANDLE, whose value has 32 bits, and reads move the handle's offset
 *  @param flags 0 or SB_SOURCE_CLOSES
 *  @param out [owned] the caller sets `struct_size`. If no model is opened from the source, the
 *      caller must call the source's `close`, unless `close` is NULL. The caller may replace a slot
 *      by a function that calls the old slot
 *  Errors: INVALID_ARGUMENT (unknown flag), ABI_MISMATCH (struct_size too small), IO (errno in
 *  device_code; also for a descriptor that is not of a regular file, and for a file of size 0 that
 *  has bytes, as in procfs). */
SB_API SB_MUST_CHECK sb_status sb_source_of_descriptor(int32_t descriptor, uint32_t flags,
                                                       sb_source *out, sb_error *err);

/** A piece of memory. */
typedef struct sb_span {
    const void *bytes; /**< [nullable when size is 0] `size` bytes */
    size_t size;       /**< bytes */
} sb_span;

/** Creates a source of bytes in several pieces, such as a message received over a network, without
 *  joining them. The values of a blob are copied once, from the pieces to the blob. The time to
 *  find the piece of a read is logarithmic in the number of pieces.
 *  @param context [borrowed, nullable] the source retains the context, which allocates the list of
 *      pieces
 *  @param spans [borrowed, nullable when num_spans is 0] `num_spans` pieces in order. The list is
 *      copied. The bytes must not change as long as the source is used
 *  @param out [owned] the caller sets `struct_size`. If no model is opened from the source, the
 *      caller must call the source's `close`
 *  Errors: INVALID_ARGUMENT (a NULL piece of a size above 0), ABI_MISMATCH (struct_size too small),
 *  SIZE_OVERFLOW (the sum of the sizes), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_source_of_spans(sb_context *context, const sb_span *spans,
                                                  size_t num_spans, sb_source *out, sb_error *err);

SB_END_DECLS

#endif
