/**
 * Blobs as bytes: Caffe's BlobShape and BlobProto messages (protobuf wire format). A message is
 * always passed as `bytes` and `size`. All reads are safe for untrusted bytes: a read checks
 * everything before it changes the blob, and its memory and time are bounded. The error of a
 * refused read contains the field and the byte offset. The error also contains the actual format of
 * the bytes if the library recognises that format (model.h). A number with more than 64 bits, which
 * Google's readers truncate, is MALFORMED.
 */
#ifndef SYNCBLOB_PROTO_H
#define SYNCBLOB_PROTO_H

#include <syncblob/blob.h>
#include <syncblob/io.h>

SB_BEGIN_DECLS

/** Flags of the functions below. */
enum {
    SB_PROTO_RESHAPE = 1 << 3,   /**< a read first reshapes to the message's shape */
    SB_PROTO_WRITE_DIFF = 1 << 4 /**< a write also writes diff */
};

/** Reads a BlobProto into the blob (Blob::FromProto). Legacy dimensions take precedence over shape,
 *  double_data over data, and data over raw_data. Values are converted to the blob's type: to F32
 *  by rounding to nearest, or to infinity beyond the range of F32. An integer type must represent
 *  the value exactly: a fraction (which Caffe's `Blob<int>` truncates) or NaN results in
 *  DATA_OVERFLOW. A blob of F16 accepts only 16-bit floats in raw_data and raw_diff, unchanged. A
 *  message without a shape is a scalar. An empty message (no value) is LENGTH_MISMATCH (Caffe
 *  aborts). Fields of nets or solver states, which protobuf would skip, result in MALFORMED.
 *
 *  If the values fit into the part's memory, the call writes that memory as sb_mem_mutable_cpu
 *  does. Sharers and lenders see the values, and pointers stay valid. Storage of the library
 *  replaces SB_READ_ONLY storage. Bytes of the memory beyond the values are preserved, and
 *  therefore also copied to the host. If the memory is not current on the host, or is read-only,
 *  its whole size counts towards limits->max_memory (DATA_LIMIT). If the values do not fit, the
 *  call replaces the memory, as sb_blob_reshape does. Sharers still use the old memory. For a blob
 *  of integers, the call needs twice the memory of the values until all values are checked.
 *
 *  raw_data and raw_diff are fields of NVCaffe: little-endian bytes of the type in raw_data_type
 *  and raw_diff_type. The types are DOUBLE, FLOAT, FLOAT16, INT and UINT, where integers have 32
 *  bits. The library reads these fields, but never writes them, since BVLC's Caffe would ignore
 *  them. A message with num, channels, length, height and width is a blob of C3D 1.0 with five axes
 *  (proto/README.md).
 *  @param bytes [borrowed, nullable when size is 0]
 *  @param flags 0 or SB_PROTO_RESHAPE. With 0, a shape other than the blob's is SHAPE_MISMATCH. The
 *      shapes are compared as in sb_blob_shape_equals_proto
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  Errors: INVALID_ARGUMENT (unknown flag, a limit below 0), UNSUPPORTED (BF16; limits with an
 *  unknown tail), ABI_MISMATCH (limits of another version), SHAPE_MISMATCH, DTYPE_MISMATCH (a blob
 *  of F16, values of another type), MALFORMED, LENGTH_MISMATCH, BAD_SHAPE, DATA_OVERFLOW,
 *  DATA_LIMIT, OUT_OF_MEMORY, CAP_REACHED, UNINITIALIZED (a LOST memory that is larger than the
 *  blob), DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_from_proto(sb_blob *blob, const void *bytes, size_t size,
                                                  uint32_t flags, const sb_limits *limits,
                                                  sb_error *err);

/** Compares the blob's shape with a BlobProto's (Blob::ShapeEquals). Legacy dimensions are compared
 *  with the last four axes, where a missing axis counts as 1. Bytes of another format are
 *  MALFORMED, as in sb_blob_from_proto.
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

/** Computes the size of the blob's BlobProto in bytes.
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: INVALID_ARGUMENT (unknown flag), UNSUPPORTED (not F32 or F64), OVER_LIMIT (over
 *  2^31 - 1 bytes, protobuf's limit). */
SB_API SB_MUST_CHECK sb_status sb_blob_proto_size(const sb_blob *blob, uint32_t flags, size_t *out,
                                                  sb_error *err);

/** Writes the blob as a BlobProto (Blob::ToProto): F32 to data and diff, F64 to double_data and
 *  double_diff. On failure the buffer is unchanged. A memory that was never written is saved as
 *  zeros and counts as written afterwards, even if the call fails.
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  @param buffer [borrowed, nullable when capacity is 0] at least sb_blob_proto_size bytes
 *  @param capacity bytes of `buffer`
 *  @param out_size [nullable] bytes written; with BUFFER_TOO_SMALL the bytes needed
 *  Errors: as sb_blob_proto_size, BUFFER_TOO_SMALL, as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_blob_to_proto(const sb_blob *blob, uint32_t flags, void *buffer,
                                                size_t capacity, size_t *out_size, sb_error *err);

/** Reads a file that is one BlobProto, such as mean.binaryproto (ReadProtoFromBinaryFile, then
 *  FromProto). The call stores values as sb_blob_from_proto does. The call reads all values into a
 *  second buffer before it writes existing storage, so that a failure changes nothing.
 *
 *  The call detects a change of the file during the read if the file's size or time of the last
 *  write (mtime) differs. On Linux and macOS the call also compares the time of the last change
 *  (ctime). Renaming the file or changing its permissions also counts as a change. A save that
 *  replaces the file does not count as a change. The call does not detect three kinds of changes,
 *  after which the values may be a mixture of old and new values:
 *   - a change that follows the last change before the call within one tick of the file
 *     system's clock (some milliseconds)
 *   - stores through a shared mapping, since many file systems update the times only at the first
 *     store
 *   - a change after which the writer resets mtime: on Windows, or if hard links to the file are
 *     added or removed during the read.
 *
 *  A file of size 0 that has bytes, as in procfs, results in IO. If another process has a lease on
 *  the file, the call waits until the lease ends.
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_PROTO_RESHAPE
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  Errors: as sb_blob_from_proto, IO (errno in device_code; also a file that
 *  changes while it is read). */
SB_API SB_MUST_CHECK sb_status sb_blob_load_file(sb_blob *blob, const char *path, uint32_t flags,
                                                 const sb_limits *limits, sb_error *err);

/** Writes the blob's BlobProto to a file, atomically: `path` always refers to the old file or to
 *  the complete new file (WriteProtoToBinaryFile). The call writes a temporary file in the same
 *  folder, with a name that begins with ".syncblob-", and renames that file. A killed process may
 *  leave the temporary file. The folder must be writable and searchable. If the folder is not
 *  readable, the call cannot flush the folder. A power failure soon after the call may then restore
 *  the old file.
 *
 *  A symbolic link is followed, even if it is dangling, and stays a link. A link to an open file,
 *  such as /dev/stdout or /proc/self/fd/3, has no folder and results in IO. The new file has the
 *  old file's permissions, without the set-user-ID and set-group-ID bits. The new file's owner and
 *  group are the old file's if the process may set owner and group. If the process may not set the
 *  group, the call removes permissions. The new file's group and all other users keep only
 *  permissions that the old file gave to its group and also to other users. A POSIX access list
 *  (Linux) is preserved. If the list or the group cannot be set, all users except the owner get
 *  only permissions that every entry of the list allows. The folder's default list is not applied.
 *  Other access lists and extended attributes are not preserved, and other hard links still refer
 *  to the old file. On Windows the access list and the hidden attribute are preserved. A read-only
 *  file is not replaced.
 *  @param path [borrowed] NUL-terminated
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  Errors: as sb_blob_proto_size, as sb_blob_cpu, IO (errno in device_code). */
SB_API SB_MUST_CHECK sb_status sb_blob_save_file(const sb_blob *blob, const char *path,
                                                 uint32_t flags, sb_error *err);

/** Reads a source that is one BlobProto, as sb_blob_load_file reads a file.
 *  @param source [borrowed] the call does not close it
 *  @param flags 0 or SB_PROTO_RESHAPE
 *  @param limits [borrowed, nullable] NULL: the context's limits
 *  @param progress [borrowed, nullable] reports the bytes of the message
 *  Errors: as sb_blob_from_proto, IO (also a source that changes while it is read), CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_blob_load_source(sb_blob *blob, const sb_source *source,
                                                   uint32_t flags, const sb_limits *limits,
                                                   const sb_progress *progress, sb_error *err);

/** Writes the blob's BlobProto to a sink. For the sink's contents after a failure see sb_sink.
 *  @param sink [borrowed]
 *  @param flags 0 or SB_PROTO_WRITE_DIFF
 *  @param progress [borrowed, nullable] reports the bytes of the message
 *  Errors: as sb_blob_proto_size, UNSUPPORTED (sink or progress has set members that this library
 *  does not know), ABI_MISMATCH (the struct_size of sink or progress), as sb_blob_cpu, IO,
 *  OUT_OF_MEMORY, CANCELLED. */
SB_API SB_MUST_CHECK sb_status sb_blob_save_sink(const sb_blob *blob, const sb_sink *sink,
                                                 uint32_t flags, const sb_progress *progress,
                                                 sb_error *err);

SB_END_DECLS

#endif
