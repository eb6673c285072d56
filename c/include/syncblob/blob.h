/**
 * sb_blob: Caffe's Blob. An n-dimensional array of one element type with two memories, data and
 * diff. Each memory is created at its first use.
 *
 * A blob has one owner (create, destroy). sb_blob_share and sb_blob_set_mem make blobs share a
 * memory. Elements are stored row-major. sb_blob_offset returns the index of element (i0, i1, ...).
 *
 * Threads: several threads may make calls on a const blob at the same time. Calls that may replace
 * a memory (reshape, share, shrink, set) need exclusive access to the blob. During a call that
 * writes bytes, no other call may use the memory, even through another sharer (mem.h).
 */
#ifndef SYNCBLOB_BLOB_H
#define SYNCBLOB_BLOB_H

#include <syncblob/mem.h>

SB_BEGIN_DECLS

/** A blob: shape, element type, data and diff. */
typedef struct sb_blob sb_blob;

/** The maximum number of axes of a blob (Caffe's kMaxBlobAxes). */
#define SB_MAX_AXES 32

/** The memories that a call has replaced. Pointers into the old memories are invalid. */
enum {
    SB_REALLOCATED_DATA = 1, /**< the memory of data */
    SB_REALLOCATED_DIFF = 2  /**< the memory of diff */
};

/* --- creating ------------------------------------------------------------ */

/** Creates an empty blob: never shaped, 0 axes, count 0.
 *  @param context [borrowed, nullable] the blob retains the context
 *  @param dtype SB_DTYPE_*
 *  @param out [owned] destroy with sb_blob_destroy
 *  Errors: INVALID_ARGUMENT (unknown dtype), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_blob_create(sb_context *context, sb_dtype dtype, sb_blob **out,
                                              sb_error *err);

/** Creates a blob with a shape. A shape of 0 axes makes a scalar with count 1. A dimension of 0
 *  makes the count 0. The call does not allocate the elements.
 *  @param context [borrowed, nullable] the blob retains the context
 *  @param shape [borrowed, nullable when num_axes is 0] `num_axes` dimensions
 *  @param out [owned] destroy with sb_blob_destroy
 *  Errors: as sb_blob_create, as sb_blob_reshape. */
SB_API SB_MUST_CHECK sb_status sb_blob_create_shaped(sb_context *context, sb_dtype dtype,
                                                     const int64_t *shape, int32_t num_axes,
                                                     sb_blob **out, sb_error *err);

/** Destroys the blob and releases its memories. @param blob [owned, nullable] */
SB_API void sb_blob_destroy(sb_blob *blob);

/* --- shape ----------------------------------------------------------------- */

/** Changes the shape (Blob::Reshape). The call replaces the memory of a part only if the new count
 *  exceeds the part's capacity. Otherwise contents, shares and borrowed storage stay as they are.
 *  Other blobs that share a replaced memory still use it. The capacity of a part is the blob's
 *  count at the first call that needs the part's memory, including sb_blob_mem. In Caffe the
 *  capacity is the largest count that the blob ever had, and both memories are replaced together.
 *  @param shape [borrowed, nullable when num_axes is 0] `num_axes` dimensions
 *  @param out_reallocated [nullable] SB_REALLOCATED_* bits
 *  Errors: INVALID_ARGUMENT (negative dimension), OVER_LIMIT (more than SB_MAX_AXES),
 *  SIZE_OVERFLOW (the count or its bytes do not fit). */
SB_API SB_MUST_CHECK sb_status sb_blob_reshape(sb_blob *blob, const int64_t *shape,
                                               int32_t num_axes, uint32_t *out_reallocated,
                                               sb_error *err);

/** Replaces each memory that has more bytes than the count requires. The new, smaller memory has
 *  the same contents on the side of the head (on the host if the head is SYNCED). Shared and
 *  borrowed memories stay unchanged. Caffe never shrinks a memory.
 *  @param out_reallocated [nullable] SB_REALLOCATED_* bits
 *  Errors: as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_blob_shrink_to_fit(sb_blob *blob, uint32_t *out_reallocated,
                                                     sb_error *err);

/** Returns the element type, SB_DTYPE_*. */
SB_API sb_dtype sb_blob_dtype(const sb_blob *blob);

/** Returns the context of the blob.
 *  @return [borrowed] lives as long as the blob; NULL for the built-in context */
SB_API sb_context *sb_blob_context(const sb_blob *blob);

/** Returns 1 if the blob has a shape. A blob has no shape before its first reshape, or after a copy
 *  with SB_COPY_RESHAPE from a blob without a shape. */
SB_API int32_t sb_blob_is_shaped(const sb_blob *blob);

/** Returns the number of axes, 0 to SB_MAX_AXES. */
SB_API int32_t sb_blob_num_axes(const sb_blob *blob);

/** Returns the number of elements. */
SB_API int64_t sb_blob_count(const sb_blob *blob);

/** Returns the dimensions, an array of sb_blob_num_axes elements.
 *  @return [borrowed] not NULL; valid until the next reshape */
SB_API const int64_t *sb_blob_shape(const sb_blob *blob);

/** Reads one dimension. A negative axis counts from the end (Blob::shape(index)).
 *  Errors: INDEX_OUT_OF_RANGE. */
SB_API SB_MUST_CHECK sb_status sb_blob_dim(const sb_blob *blob, int32_t axis, int64_t *out,
                                           sb_error *err);

/** Computes the product of the dimensions start to end - 1 (Blob::count(start, end)), or 1 if start
 *  == end. Requires 0 <= start <= end <= num_axes.
 *  Errors: INDEX_OUT_OF_RANGE, SIZE_OVERFLOW (the product does not fit, which is possible only if a
 *  dimension outside the range is 0). */
SB_API SB_MUST_CHECK sb_status sb_blob_count_range(const sb_blob *blob, int32_t start, int32_t end,
                                                   int64_t *out, sb_error *err);

/** Reads a dimension of a blob of at most 4 axes by its legacy index, -4 to 3 (Blob::LegacyShape).
 *  A missing axis has the dimension 1.
 *  Errors: INDEX_OUT_OF_RANGE, SHAPE_MISMATCH (more than 4 axes). */
SB_API SB_MUST_CHECK sb_status sb_blob_legacy_shape(const sb_blob *blob, int32_t index,
                                                    int64_t *out, sb_error *err);

/** Writes the shape in Caffe's form, "2 3 4 5 (120)", NUL-terminated and truncated to `capacity`.
 *  Meant for messages.
 *  @param buffer [borrowed, nullable when capacity is 0] receives the text
 *  @param capacity bytes of `buffer`
 *  @param out_length [nullable] length of the untruncated text without the NUL
 *  Errors: none. */
SB_API SB_MUST_CHECK sb_status sb_blob_shape_string(const sb_blob *blob, char *buffer,
                                                    size_t capacity, size_t *out_length,
                                                    sb_error *err);

/** Computes the linear index of an element (Blob::offset(indices)). Missing trailing indices are 0.
 *  @param indices [borrowed, nullable when num_indices is 0] `num_indices` indices
 *  Errors: INDEX_OUT_OF_RANGE (an index below 0 or not below its axis's extent, more indices than
 *  axes, a blob without elements). */
SB_API SB_MUST_CHECK sb_status sb_blob_offset(const sb_blob *blob, const int64_t *indices,
                                              int32_t num_indices, int64_t *out, sb_error *err);

/** Computes a linear index in a blob of at most 4 axes (Blob::offset(n, c, h, w)). Missing axes
 *  have the dimension 1. An index may be equal to its axis's extent, since Caffe's layers use
 *  offset(0, 1) as a step. The result may therefore be the blob's count or more.
 *  Errors: INDEX_OUT_OF_RANGE (an index that is negative or above its axis's extent),
 *  SHAPE_MISMATCH (more than 4 axes), SIZE_OVERFLOW (the offset or an intermediate product does not
 *  fit). */
SB_API SB_MUST_CHECK sb_status sb_blob_offset_legacy(const sb_blob *blob, int64_t n, int64_t c,
                                                     int64_t h, int64_t w, int64_t *out,
                                                     sb_error *err);

/** Returns a device pointer to the dimensions as int64_t (Blob::gpu_shape; int in Caffe).
 *  @param out [borrowed] num_axes dimensions, valid until the next reshape
 *  Errors: NO_DEVICE, OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_gpu_shape(const sb_blob *blob, const int64_t **out,
                                                 sb_error *err);

/** Returns SB_OK if the blob's element type is `dtype`. The typed wrappers of typed.h first call
 *  this function.
 *  Errors: DTYPE_MISMATCH. */
SB_API SB_MUST_CHECK sb_status sb_blob_check_dtype(const sb_blob *blob, sb_dtype dtype,
                                                   sb_error *err);

/* --- bytes of data and of diff --------------------------------------------- */
/* Each function below calls a function of mem.h on the memory of one part. The first call creates
   the memory. A returned pointer covers at least sb_blob_count elements. If `part` is neither
   SB_DATA nor SB_DIFF, a call returns INVALID_ARGUMENT, or the code for another invalid
   argument. */

/** Returns the memory of a part for const calls of mem.h, such as sb_mem_head, sb_mem_storage and a
 *  prefetch (Blob::data, Blob::diff).
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] until a call replaces the memory
 *  Errors: INVALID_ARGUMENT (unknown part), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_blob_mem(const sb_blob *blob, sb_part part, const sb_mem **out,
                                           sb_error *err);
/** Returns the memory of a part, for a caller that writes or retains the memory. The call does not
 *  move the head, and may run at the same time as const calls.
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] until a call replaces the memory, unless retained
 *  Errors: as sb_blob_mem. */
SB_API SB_MUST_CHECK sb_status sb_blob_mutable_mem(sb_blob *blob, sb_part part, sb_mem **out,
                                                   sb_error *err);
/** Replaces the memory of a part with `mem`, which sb_mem_create or another blob's
 *  sb_blob_mutable_mem has returned. The blob becomes an owner of `mem`. The call checks the
 *  alignment of the bytes of both sides. Later calls of sb_mem_set_cpu on `mem` do not check the
 *  alignment.
 *  @param part SB_DATA or SB_DIFF
 *  @param mem [borrowed] a memory of the blob's context with at least count x element size bytes.
 *      Further bytes are capacity. The blob retains the memory
 *  Errors: INVALID_ARGUMENT (unknown part, too few bytes, lent bytes that are not element-aligned),
 *  WRONG_DEVICE (another context), FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_set_mem(sb_blob *blob, sb_part part, sb_mem *mem,
                                               sb_error *err);
/** Returns the number of elements that fit into the memory of a part: the memory's size divided by
 *  the element size. Returns 0 if the part has no memory: the part was never used, or a reshape has
 *  exceeded the part's capacity. The call does not create the memory.
 *  @param part SB_DATA or SB_DIFF; for any other value the result is 0 */
SB_API int64_t sb_blob_capacity(const sb_blob *blob, sb_part part);
/** Returns the elements on the host, for reading (Blob::cpu_data, Blob::cpu_diff).
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_cpu
 *  Errors: as sb_mem_cpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_cpu(const sb_blob *blob, sb_part part, const void **out,
                                           sb_error *err);
/** Returns the elements on the host, for writing (Blob::mutable_cpu_data, Blob::mutable_cpu_diff).
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_mutable_cpu
 *  Errors: as sb_mem_mutable_cpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_mutable_cpu(sb_blob *blob, sb_part part, void **out,
                                                   sb_error *err);
/** Returns host memory for a caller that writes every element.
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_overwrite_cpu
 *  Errors: as sb_mem_overwrite_cpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_overwrite_cpu(sb_blob *blob, sb_part part, void **out,
                                                     sb_error *err);
/** Returns the elements on the device, for reading (Blob::gpu_data, Blob::gpu_diff).
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_gpu
 *  Errors: as sb_mem_gpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_gpu(const sb_blob *blob, sb_part part, const void **out,
                                           sb_error *err);
/** As sb_blob_gpu, for kernels that the program queues on `stream`.
 *  @param part SB_DATA or SB_DIFF
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_mem_gpu_on, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_gpu_on(const sb_blob *blob, sb_part part, sb_stream stream,
                                              const void **out, sb_error *err);
/** Returns the elements on the device, for writing (Blob::mutable_gpu_data,
 *  Blob::mutable_gpu_diff).
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_mutable_gpu
 *  Errors: as sb_mem_mutable_gpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_mutable_gpu(sb_blob *blob, sb_part part, void **out,
                                                   sb_error *err);
/** As sb_blob_mutable_gpu, for kernels that the program queues on `stream`.
 *  @param part SB_DATA or SB_DIFF
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see sb_mem_mutable_gpu_on
 *  Errors: as sb_mem_mutable_gpu_on, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_mutable_gpu_on(sb_blob *blob, sb_part part, sb_stream stream,
                                                      void **out, sb_error *err);
/** Returns device memory for a caller that writes every element with kernels on the device's
 *  default stream.
 *  @param part SB_DATA or SB_DIFF
 *  @param out [borrowed] see sb_mem_overwrite_gpu
 *  Errors: as sb_mem_overwrite_gpu, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_overwrite_gpu(sb_blob *blob, sb_part part, void **out,
                                                     sb_error *err);
/** As sb_blob_overwrite_gpu, for kernels that the program queues on `stream`.
 *  @param part SB_DATA or SB_DIFF
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  @param out [borrowed] see sb_mem_overwrite_gpu_on
 *  Errors: as sb_mem_overwrite_gpu_on, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_overwrite_gpu_on(sb_blob *blob, sb_part part,
                                                        sb_stream stream, void **out,
                                                        sb_error *err);

/** Reads one element, by indices as in sb_blob_offset (Blob::data_at, Blob::diff_at). Meant for a
 *  few elements: in a loop, use a pointer.
 *  @param part SB_DATA or SB_DIFF
 *  @param indices [borrowed, nullable when num_indices is 0] `num_indices` indices
 *  @param out [borrowed] receives one element of the blob's dtype
 *  Errors: as sb_blob_offset, as sb_blob_cpu. */
SB_API SB_MUST_CHECK sb_status sb_blob_at(const sb_blob *blob, sb_part part, const int64_t *indices,
                                          int32_t num_indices, void *out, sb_error *err);

/** Shares the memory of `other` (Blob::ShareData, Blob::ShareDiff). The memory exists as long as
 *  either blob uses it.
 *  @param part SB_DATA or SB_DIFF
 *  @param other [borrowed] of equal count and dtype; its shape may differ
 *  Errors: INVALID_ARGUMENT (unknown part), SHAPE_MISMATCH (counts differ), DTYPE_MISMATCH,
 *  WRONG_DEVICE (another context), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_blob_share(sb_blob *blob, sb_part part, const sb_blob *other,
                                             sb_error *err);

/** Lends the caller's host memory to a part of the blob (Blob::set_cpu_data). If the part is
 *  shared, the other sharers still use the old memory. In Caffe all sharers use the lent memory: to
 *  do the same, pass the result of sb_blob_mutable_mem to sb_mem_set_cpu. The other part is
 *  unchanged. On failure the caller still owns the memory.
 *  @param part SB_DATA or SB_DIFF
 *  @param ptr [borrowed] see sb_mem_set_cpu; element-aligned
 *  @param bytes at least count x element size; further bytes are capacity
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] see sb_mem_set_cpu
 *  @param user passed to `deleter`
 *  Errors: INVALID_ARGUMENT (unknown part, too few bytes, more than PTRDIFF_MAX, misaligned,
 *  unknown flag), OUT_OF_MEMORY, CAP_REACHED. */
SB_API SB_MUST_CHECK sb_status sb_blob_set_cpu(sb_blob *blob, sb_part part, void *ptr, size_t bytes,
                                               uint32_t flags, sb_deleter deleter, void *user,
                                               sb_error *err);

/** Ends the loan of host memory to a part of the blob: `deleter` does not run, and the part is as
 *  if it had never been used. The blob must be the only user of the memory, and the bytes must be
 *  current on the host (sb_blob_cpu).
 *  @param part SB_DATA or SB_DIFF
 *  @param deleter [borrowed] the deleter of the call that lent the memory, not NULL
 *  @param out_user [owned] `user` of the call that lent the memory
 *  Errors: INVALID_ARGUMENT (unknown part; memory that was not lent with `deleter`; bytes that are
 *  not current; another user of the memory: a blob, an owner of the sb_mem or a tensor; a copy that
 *  may still use the bytes), DEVICE_FAILURE, DEVICE_LOST, FORKED (the last three: a pending copy
 *  failed). */
SB_API SB_MUST_CHECK sb_status sb_blob_reclaim_cpu(sb_blob *blob, sb_part part, sb_deleter deleter,
                                                   void **out_user, sb_error *err);

/** Lends the caller's device memory to a part, as sb_blob_set_cpu lends host memory
 *  (Blob::set_gpu_data).
 *  @param part SB_DATA or SB_DIFF
 *  @param ptr [borrowed] see sb_mem_set_gpu; element-aligned
 *  @param bytes at least count x element size; further bytes are capacity
 *  @param flags 0 or SB_READ_ONLY
 *  @param deleter [nullable] see sb_mem_set_gpu
 *  @param user passed to `deleter`
 *  Errors: as sb_blob_set_cpu, NO_DEVICE, WRONG_DEVICE, DEVICE_FAILURE, DEVICE_LOST,
 *  FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_set_gpu(sb_blob *blob, sb_part part, void *ptr, size_t bytes,
                                               uint32_t flags, sb_deleter deleter, void *user,
                                               sb_error *err);

/** Sets the elements to zero on the side of the head. A memory that was never written stays
 *  unchanged.
 *  @param part SB_DATA or SB_DIFF
 *  Errors: as sb_mem_clear, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_clear(sb_blob *blob, sb_part part, sb_error *err);

/** Releases the memory of a part. Other sharers still use the memory. The next call that needs the
 *  part creates a memory of zeros. Use this function, for example, to free the diffs of a net that
 *  is no longer trained. Like sb_mem_release, the call waits for pending transfers.
 *  @param blob [nullable]
 *  @param part SB_DATA or SB_DIFF; for any other value the call does nothing */
SB_API void sb_blob_drop(sb_blob *blob, sb_part part);

/* --- arithmetic ------------------------------------------------------------ */

/** Computes the sum of absolute values as a double, on the side of the head (Blob::asum_data,
 *  Blob::asum_diff). The sum of a memory that was never written is 0. The host adds small blocks of
 *  F32 values in single precision, which changes the sum by less than one millionth.
 *  @param part SB_DATA or SB_DIFF
 *  Errors: INVALID_ARGUMENT (unknown part), UNSUPPORTED (not F32 or F64; a device without
 *  arithmetic), OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE, DEVICE_LOST, FORKED, UNINITIALIZED (a
 *  LOST memory). */
SB_API SB_MUST_CHECK sb_status sb_blob_asum(const sb_blob *blob, sb_part part, double *out,
                                            sb_error *err);
/** Computes the sum of squares, as sb_blob_asum computes its sum (Blob::sumsq_data,
 *  Blob::sumsq_diff).
 *  @param part SB_DATA or SB_DIFF
 *  Errors: as sb_blob_asum. */
SB_API SB_MUST_CHECK sb_status sb_blob_sumsq(const sb_blob *blob, sb_part part, double *out,
                                             sb_error *err);
/** Multiplies the elements by `factor`, rounded to the element type, on the side of the head
 *  (Blob::scale_data, Blob::scale_diff). Does nothing for memory that was never written. Zero times
 *  NaN or infinity is NaN on the host, where Caffe's BLAS may return 0. On the device the work is
 *  queued, as in sb_blob_update.
 *  @param part SB_DATA or SB_DIFF
 *  Errors: as sb_blob_update, INVALID_ARGUMENT (unknown part). */
SB_API SB_MUST_CHECK sb_status sb_blob_scale(sb_blob *blob, sb_part part, double factor,
                                             sb_error *err);
/** As sb_blob_scale, but work on the device is queued on `stream`, as in sb_blob_update_on.
 *  @param part SB_DATA or SB_DIFF
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_blob_update_on. */
SB_API SB_MUST_CHECK sb_status sb_blob_scale_on(sb_blob *blob, sb_part part, double factor,
                                                sb_stream stream, sb_error *err);

/** Flag of sb_blob_copy_from. */
enum {
    SB_COPY_RESHAPE = 1 << 1 /**< the call first reshapes the blob to the source's shape */
};

/** Copies a part of `source` to the same part of the blob (Blob::CopyFrom). The copy runs on the
 *  side of the source's head (SYNCED: the device). A copy between contexts runs through the host. A
 *  source that was never written stays unchanged, and the blob's part becomes zeros that count as
 *  written. These zeros are on the side of the blob's head, or on the host if the part was never
 *  written. A copy of a blob to itself does nothing. If the device is lost during the copy, the
 *  blob's bytes are in the state that sb_blob_update documents for DEVICE_LOST.
 *  @param part SB_DATA or SB_DIFF
 *  @param source [borrowed] of any context
 *  @param flags 0 or SB_COPY_RESHAPE
 *  Errors: INVALID_ARGUMENT (unknown part, unknown flag, bytes that overlap in part: see mem.h),
 *  DTYPE_MISMATCH, SHAPE_MISMATCH (without SB_COPY_RESHAPE), as sb_mem_cpu. */
SB_API SB_MUST_CHECK sb_status sb_blob_copy_from(sb_blob *blob, sb_part part, const sb_blob *source,
                                                 uint32_t flags, sb_error *err);

/** Computes data -= diff, on the side of the head of data (Blob::Update). On the device the work is
 *  queued on the library's stream. The next call that needs the bytes waits for the work, as in
 *  Caffe. If the queued work fails, the waiting call returns DEVICE_LOST, and the bytes are lost
 *  with the device.
 *  Errors: UNSUPPORTED (not F32 or F64; a device without arithmetic), UNINITIALIZED (data that was
 *  never written, or is LOST), INVALID_ARGUMENT (bytes of data and diff overlap in part: see
 *  mem.h), OUT_OF_MEMORY, CAP_REACHED, DEVICE_FAILURE (nothing was queued; or earlier work has
 *  failed, and the memory that the earlier work wrote is LOST), DEVICE_LOST (the work failed when
 *  it was queued: if the host had current bytes, the head moves to the host; else the memory is
 *  LOST), FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_update(sb_blob *blob, sb_error *err);
/** As sb_blob_update, but work on the device is queued on `stream`. The memories of data and diff
 *  record the stream, as in sb_blob_mutable_gpu_on and sb_blob_gpu_on. If the queued work fails, or
 *  the work that computed the diff fails, data is LOST, but the device is not lost. The first call
 *  that waits for data on the host returns DEVICE_FAILURE ("Failures of queued work" in mem.h).
 *  After many calls of this function without a wait, a call may wait for the oldest work. On the
 *  host the work is complete on return, and the stream is ignored.
 *  @param stream [borrowed] see sb_mem_gpu_on
 *  Errors: as sb_blob_update, WRONG_DEVICE (a stream of another device), UNSUPPORTED
 *  (a capturing stream, a per-thread default stream). */
SB_API SB_MUST_CHECK sb_status sb_blob_update_on(sb_blob *blob, sb_stream stream, sb_error *err);

SB_END_DECLS

#endif
