/**
 * Where bytes come from and go to when they are neither in memory nor in a
 * file with a path: an object store, an archive, an encrypted file, a
 * descriptor that another process handed over. The library reads a source
 * by asking for bytes at an offset, and writes a sink by giving it bytes in
 * order. proto.h and model.h have the functions that take them.
 *
 * Callbacks run on the thread that made the call, without any lock of the
 * library held. They may call the library, but for calls that change or end
 * what is being read or written, and for any call on a blob that is being loaded or on its
 * memories. They must not throw or longjmp.
 *
 * One that fails returns SB_ERR_IO, SB_ERR_OUT_OF_MEMORY or SB_ERR_CANCELLED
 * and fills `err` (never NULL there) with sb_error_fill; the call of the
 * library ends with that status and that text. Any other status arrives as
 * SB_ERR_IO.
 *
 * On Linux and macOS a call that reads or writes a file, a source or a sink takes at
 * most 24 KiB of its thread's stack, without what callbacks and a backend take.
 */
#ifndef SYNCBLOB_IO_H
#define SYNCBLOB_IO_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/**
 * A source of bytes that can be read at any offset.
 *
 * What it says is not trusted: bytes that are not what they were the last time
 * they were read, by error or intent, give SB_ERR_IO or an error of the data,
 * and nothing else.
 */
typedef struct sb_source {
    size_t struct_size; /**< sizeof(sb_source) of the caller */
    void *user;         /**< passed to all slots */
    uint64_t size;      /**< bytes that there are; over 2^31 - 1 is SB_ERR_DATA_LIMIT */
    /** Writes bytes [offset, offset + bytes) to `buffer`, all of them or fails. The
     *  range lies inside the size; `bytes` is above 0. Runs on several threads at
     *  once when calls on a const model do.
     *
     *  What is not values is read in pieces of up to 4 KiB, over and over: an opening
     *  walks the source several times from its beginning to its end, a load the blob's
     *  message. Within a walk offsets rise, but for names. Values come as one read where
     *  the file keeps them in one piece and the blob has their element type (with a
     *  progress, reads of up to 1 MiB), else 4 KiB at a time; so does what a save copies
     *  into memory, and what it copies into a file or a sink 4 KiB at a time. A source
     *  whose reads are slow should keep what it fetched last. */
    sb_status (*read_at)(void *user, uint64_t offset, void *buffer, size_t bytes, sb_error *err);
    /** [nullable] A number that is another one once the bytes have changed: of a
     *  modification time, an ETag. Asked when the source is opened and after each
     *  read of a whole; a difference is SB_ERR_IO. As many threads as read_at. */
    sb_status (*version)(void *user, uint64_t *out, sb_error *err);
    /** [nullable] Runs once when a model lets go of the source; not at all when it
     *  could not be opened, nor after calls that only borrow the source. */
    void (*close)(void *user);
} sb_source;

/** A source without slots, as an initialiser. */
#define SB_SOURCE_INIT                                                                             \
    { sizeof(sb_source), NULL, 0, NULL, NULL, NULL }

/**
 * A sink that takes bytes in order, borrowed for one call. The library cannot
 * take back what was written: when the call fails, the sink has had some of
 * the bytes, or none, and whoever owns it throws them away. It has had all of
 * them, exactly once, when the call returns SB_OK; then is the time to close
 * or publish it.
 */
typedef struct sb_sink {
    size_t struct_size; /**< sizeof(sb_sink) of the caller */
    void *user;         /**< passed to `write` */
    /** Takes `size` bytes, above 0, all of them or fails; after a failure it is not
     *  called again. Small pieces are gathered to 4 KiB first. */
    sb_status (*write)(void *user, const void *bytes, size_t size, sb_error *err);
} sb_sink;

/** A sink without slots, as an initialiser. */
#define SB_SINK_INIT                                                                               \
    { sizeof(sb_sink), NULL, NULL }

/** Who is told how far a long call has come, and may end it. */
typedef struct sb_progress {
    size_t struct_size; /**< sizeof(sb_progress) of the caller */
    void *user;         /**< passed to `report` */
    /** `done` of `total` bytes; `done` never falls, and `total` is 0 while it is not
     *  known. Runs at least once for about each MiB that is read or written, and with
     *  `done` equal to `total` before the result is published. An opening skips the
     *  values, which are then done at once: there reports may be much more than a MiB
     *  of `done` apart. Anything but 0 ends the call with SB_ERR_CANCELLED: nothing
     *  has changed, but for what a sink has had. Several threads at once when calls on
     *  a const model are. */
    int32_t (*report)(void *user, uint64_t done, uint64_t total);
} sb_progress;

/** Nobody is told, as an initialiser. */
#define SB_PROGRESS_INIT                                                                           \
    { sizeof(sb_progress), NULL, NULL }

/** Flag of sb_source_of_descriptor. */
enum {
    SB_SOURCE_CLOSES = 1 << 10 /**< `close` closes the descriptor; without it there is no `close` */
};

/** A source that reads an open descriptor of a regular file (pread), whose offset
 *  it neither uses nor moves. Its size is that of now, its version the file's
 *  modification time and size. Where the library itself asks for the version, it
 *  compares the time of the last change (ctime) too, as for a file that it opened
 *  (proto.h). For programs that are handed descriptors instead of paths (a sandbox, an archive).
 *  @param descriptor stays open as long as the source is used. On Windows a handle (HANDLE, whose
 *      value has 32 bits), whose offset is moved
 *  @param flags 0 or SB_SOURCE_CLOSES
 *  @param out [owned] `struct_size` set by the caller; what is not given to a model is ended by
 *      calling its `close`, if there is one. A slot may be replaced by one that calls it
 *  Errors: INVALID_ARGUMENT (unknown flag), ABI_MISMATCH (struct_size too small), IO (errno in
 *  device_code; also a descriptor of something else, and a file that has a size of 0 and bytes, as
 *  those of procfs have). */
SB_API SB_MUST_CHECK sb_status sb_source_of_descriptor(int32_t descriptor, uint32_t flags,
                                                       sb_source *out, sb_error *err);

/** A piece of memory. */
typedef struct sb_span {
    const void *bytes; /**< [nullable when size is 0] `size` of them */
    size_t size;       /**< bytes */
} sb_span;

/** A source of bytes that are held in pieces, as a message that arrived is: they need not
 *  be joined first. The values of a blob are copied once, from the pieces to the blob. A
 *  read finds its piece in steps that grow with the logarithm of their number. For programs that
 *  receive files over a network.
 *  @param context [borrowed, nullable] where the list of pieces is kept; retained
 *  @param spans [borrowed, nullable when num_spans is 0] `num_spans` pieces in order, copied; what
 *      they point to must stay as it is as long as the source is used
 *  @param out [owned] `struct_size` set by the caller; what is not given to a model is ended by
 *      calling its `close`
 *  Errors: INVALID_ARGUMENT (a piece of NULL with a size), ABI_MISMATCH (struct_size too small),
 *  SIZE_OVERFLOW (all sizes together), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_source_of_spans(sb_context *context, const sb_span *spans,
                                                  size_t num_spans, sb_source *out, sb_error *err);

SB_END_DECLS

#endif
