/**
 * Blobs as bytes: Caffe's BlobShape and BlobProto messages (protobuf wire
 * format). A message is always (bytes, size). All reads are safe for bytes
 * from strangers: everything is checked before the blob is touched, memory
 * and time are bounded, and a failure names the field and the byte offset, then
 * what the bytes are instead, where that is certain (model.h). A number with bits
 * beyond 64, which Google's readers cut off, is MALFORMED.
 */
#ifndef SYNCBLOB_PROTO_H
#define SYNCBLOB_PROTO_H

#include <syncblob/blob.h>
#include <syncblob/io.h>

SB_BEGIN_DECLS

/** Flags of the functions below. */
enum {
    SB_PROTO_RESHAPE = 1 << 3,   /**< reading: take the message's shape */
    SB_PROTO_WRITE_DIFF = 1 << 4 /**< writing: diff too */
};

/** Reads a BlobProto into the blob (Blob::FromProto). Legacy dimensions win
 *  over shape, double_data over data, and that over raw_data; each goes into an
 *  F32 or F64 blob, rounding to the nearest float, beyond its range to infinity, or
 *  into one of integers. A value that the integer type does not hold, such as one with
 *  a fraction (which Caffe's `Blob<int>` cuts off) or NaN, is DATA_OVERFLOW. A blob
 *  of F16 takes halves of raw_data and raw_diff as they are, and nothing else.
 *  A message with no shape at all is a scalar, so that no bytes are one without its value:
 *  LENGTH_MISMATCH, as Caffe ends there. Fields of a net or of a solver state, which
 *  protobuf would pass by, are MALFORMED.
 *
 *  A memory with room for the values is written as by a mutable call for the
 *  host: sharers and lenders see them, pointers stay, SB_READ_ONLY storage is left
 *  for storage of its own. Room beyond the values keeps its bytes, which come to
 *  the host with them: where they are not there yet, or may not be written, all of
 *  the memory counts against limits->max_memory (DATA_LIMIT). A memory without room
 *  gives way to a new one, as in sb_blob_reshape, and sharers keep theirs. Integers
 *  take as many bytes again until all have been found to fit.
 *
 *  raw_data and raw_diff are NVCaffe's: little-endian bytes of the type that
 *  raw_data_type, raw_diff_type name (DOUBLE, FLOAT, FLOAT16, INT, UINT; the
 *  integers have 32 bits). They are read and never written: Caffe would not find
 *  the values.
 *  @param bytes [borrowed, nullable when size is 0]
 *  @param flags 0 or SB_PROTO_RESHAPE; without it a shape that differs is
 *      SHAPE_MISMATCH (by Caffe's rule for legacy dimensions)
 *  @param limits [borrowed, nullable] the context's
 *  Errors: INVALID_ARGUMENT (unknown flag, a limit below 0), UNSUPPORTED (BF16; limits with an
 *  unknown tail), ABI_MISMATCH (limits of another version), SHAPE_MISMATCH, DTYPE_MISMATCH (F16,
 *  and values that are no halves), MALFORMED, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW,
 *  DATA_LIMIT, OUT_OF_MEMORY, CAP_REACHED, UNINITIALIZED (a LOST memory with room for more than the
 *  count), DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_proto(sb_blob *blob, const void *bytes, size_t size,
                                                  uint32_t flags, const sb_limits *limits,
                                                  sb_error *err);

/** Whether the blob's shape is a BlobProto's (Blob::ShapeEquals): legacy
 *  dimensions compare with the last four axes, missing ones being 1. What is of another
 *  format is MALFORMED as in sb_blob_from_proto.
 *  @param bytes [borrowed, nullable when size is 0]
 *  @param out 0 or 1
 *  Errors: MALFORMED, BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT. */
SB_API SB_MUST_CHECK sb_status sb_blob_shape_equals_proto(const sb_blob *blob, const void *bytes,
                                                          size_t size, int32_t *out, sb_error *err);

/** Reshapes to a BlobShape message (Blob::Reshape(BlobShape)).
 *  @param bytes [borrowed, nullable when size is 0]
 *  @param out_reallocated [nullable] SB_REALLOCATED_* bits
 *  Errors: MALFORMED, BAD_SHAPE, DATA_OVERFLOW, DATA_LIMIT. */
SB_API SB_MUST_CHECK sb_status sb_blob_reshape_proto(sb_blob *blob, const void *bytes, size_t size,
                                                     uint32_t *out_reallocated, sb_error *err);

/** Bytes that the blob's BlobProto takes.
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: INVALID_ARGUMENT (unknown flag), UNSUPPORTED (not F32 or F64), OVER_LIMIT (over
 *  2^31 - 1 bytes, protobuf's limit). */
SB_API SB_MUST_CHECK sb_status sb_blob_proto_size(const sb_blob *blob, uint32_t flags, size_t *out,
                                                  sb_error *err);

/** Writes the blob as a BlobProto (Blob::ToProto): F32 to data and diff, F64
 *  to double_data and double_diff. Nothing is written to the buffer on failure. Memory that
 *  was never written is zeros, which count as written from then on, also if the call then fails.
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  @param buffer [borrowed, nullable when capacity is 0] at least sb_blob_proto_size bytes
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL those needed
 *  Errors: as sb_blob_proto_size, BUFFER_TOO_SMALL, as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_proto(const sb_blob *blob, uint32_t flags, void *buffer,
                                                size_t capacity, size_t *out_size, sb_error *err);

/** Reads a file that is one BlobProto, such as mean.binaryproto
 *  (ReadProtoFromBinaryFile, then FromProto). The values go where
 *  sb_blob_from_proto puts them; into storage that was there, when all have been
 *  read: until then they take as many bytes again, and a failure changes nothing.
 *
 *  A file that changes while it is read is found by its size, the time of its last
 *  write and, on Linux and macOS, that of its last change (ctime). So is a file that is
 *  renamed, or whose permissions change, but not one that a save replaces. Three changes
 *  are not found, and the values may then be partly those of before and partly those of
 *  after: one within the same tick of the file system's clock (some milliseconds) as the
 *  last one before the opening; stores through a shared mapping, for whose first store
 *  alone many file systems set the times; and, on Windows or once a name of the file was
 *  added or removed, one whose writer sets the time of the last write back. A file that
 *  has a size of 0 and bytes, as those of procfs have, is IO. While another process holds
 *  a lease on the file, the call waits.
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_PROTO_RESHAPE
 *  @param limits [borrowed, nullable] the context's
 *  Errors: as sb_blob_from_proto, IO (errno in device_code; also a file that
 *  changes while it is read). */
SB_API SB_MUST_CHECK sb_status sb_blob_load_file(sb_blob *blob, const char *path, uint32_t flags,
                                                 const sb_limits *limits, sb_error *err);

/** Writes the blob's BlobProto to a file, atomically: whatever happens, the
 *  file is the old one or the whole new one (WriteProtoToBinaryFile). It is
 *  written beside the old one, with a name that begins with ".syncblob-", and takes
 *  its place; a process that is killed may leave that. It is enough that the folder may
 *  be written and searched; where it may not be read, a power failure soon after the call
 *  may bring the old file back.
 *
 *  A symbolic link is followed, one to nothing too, and stays. One that leads to an open
 *  file, such as /dev/stdout or /proc/self/fd/3, names no place: IO. The old file's
 *  permissions are kept, without those to run as another user, and its owner and
 *  group where the process may; where it may not keep the group, group and others
 *  get what both had. An access list of Linux (POSIX) is kept; where it cannot be, or
 *  where the group is not kept, everybody but the owner gets what all entries allow. What
 *  the folder's default list would add is left out. Other access lists and extended
 *  attributes are not kept, and other hard links go on naming the old file. On Windows
 *  the access list is what is kept, and whether the file is hidden; a read-only file is
 *  not replaced.
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: as sb_blob_proto_size, as sb_blob_cpu, IO (errno in device_code). */
SB_API SB_MUST_CHECK sb_status sb_blob_save_file(const sb_blob *blob, const char *path,
                                                 uint32_t flags, sb_error *err);

/** Reads a source that is one BlobProto, as sb_blob_load_file reads a file.
 *  @param source [borrowed] not closed
 *  @param flags 0 or SB_PROTO_RESHAPE
 *  @param limits [borrowed, nullable] the context's
 *  @param progress [borrowed, nullable] told of the bytes of the message
 *  Errors: as sb_blob_from_proto, IO (also a source that changes while it is read), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_blob_load_source(sb_blob *blob, const sb_source *source,
                                                   uint32_t flags, const sb_limits *limits,
                                                   const sb_progress *progress, sb_error *err);

/** Writes the blob's BlobProto to a sink; io.h says what a failure leaves there.
 *  @param sink [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  @param progress [borrowed, nullable] told of the bytes of the message
 *  Errors: as sb_blob_proto_size, UNSUPPORTED (sink or progress with an unknown tail), ABI_MISMATCH
 *  (of another version), as sb_blob_cpu, IO, OUT_OF_MEMORY, CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_blob_save_sink(const sb_blob *blob, const sb_sink *sink,
                                                 uint32_t flags, const sb_progress *progress,
                                                 sb_error *err);

SB_END_DECLS

#endif
