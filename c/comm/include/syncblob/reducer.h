/**
 * sb_reducer: sums the diffs of a training step over all ranks while the rest of the step is still
 * being computed. Caffe's classes P2PSync and NCCL do the same. Blobs are registered once. In each
 * step the caller marks every blob as ready, in any order, and then waits for the end of the step.
 *
 * Buckets: blobs are assigned to buckets from the last blob of the list to the first. The reason is
 * that a backward pass finishes the last layer first. Small blobs are copied to buckets on the
 * host. A blob that would fill a bucket, or has at least 128 KiB times the number of ranks, is
 * reduced separately and in place. The reduction runs on the device if the head is on the device
 * and the engine accepts the device's memory, else on the host. A bucket starts when all of its
 * blobs are ready and earlier buckets have started. All ranks thereby start buckets in the same
 * order. The reducer needs memory for at most two buckets.
 *
 * From sb_reducer_ready for a blob to the end of sb_reducer_wait, the caller must not reshape or
 * destroy the blob. In that time the caller must not access the blob's bytes on either side. After
 * sb_reducer_wait the head is on the side on which the blob was reduced (for gathered blobs, the
 * host). The reducer identifies a blob by its address. After a blob is destroyed, no step can end,
 * unless a new blob has the old blob's address, dtype and count, and is marked as ready.
 *
 * During a step, which begins with the first sb_reducer_ready, other collective calls fail.
 *
 * Failures: COMM_FAILURE ends the step. Blobs of completed buckets are reduced. Gathered blobs of
 * other buckets are unchanged. A blob that was being reduced in place is in the state that
 * sb_comm_all_reduce_blobs describes for a failed blob. Memory that the engine may still use is
 * never freed, and sb_stats still counts the memory.
 */
#ifndef SYNCBLOB_REDUCER_H
#define SYNCBLOB_REDUCER_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** A reducer of one rank. */
typedef struct sb_reducer sb_reducer;

/** Options of a reducer, which must be equal at all ranks. */
typedef struct sb_reducer_options {
    size_t struct_size;  /**< sizeof(sb_reducer_options) of the caller */
    sb_part part;        /**< SB_DATA or SB_DIFF */
    sb_comm_op op;       /**< SB_COMM_SUM to SB_COMM_MAX */
    size_t bucket_bytes; /**< the maximum size of a bucket; 0: blobs are not gathered */
} sb_reducer_options;

/** The defaults as an initialiser: the mean of diffs, in buckets of 25 MiB. */
#define SB_REDUCER_OPTIONS_INIT                                                                    \
    { sizeof(sb_reducer_options), SB_DIFF, SB_COMM_MEAN, (size_t)25 << 20 }

/** Collective: creates a reducer and registers blobs. Ranks compare the options, and the number,
 *  order, dtypes and shapes of the blobs. If one of these values differs between two ranks, the
 *  call fails at every rank with a message that contains both values. If one rank fails before it
 *  sends (out of memory, a wrong argument), the call fails at every rank with that rank's message.
 *  After either failure the communicator remains usable. If the engine of one rank cannot begin the
 *  first reduction (OUT_OF_MEMORY, UNSUPPORTED or DEVICE_LOST), the other ranks receive no message.
 *  The other ranks then wait until that rank retries the call or ends. If the engine of one rank
 *  fails later, that rank returns COMM_FAILURE. The other ranks then return the status with which
 *  their engine reports an ended rank.
 *  @param comm [borrowed] must outlive the reducer
 *  @param blobs [borrowed, nullable when num_blobs is 0] F32 or F64, or F16 or BF16 if the engine
 *      reduces them, of any contexts. No two blobs may have the same memory, now or during a step,
 *      since the memory would be summed twice. The call does not detect blobs that will share a
 *      memory later, or that borrow overlapping memory of the caller
 *  @param num_blobs 0 or more
 *  @param options [borrowed, nullable] NULL: SB_REDUCER_OPTIONS_INIT
 *  @param out [owned] destroy with sb_reducer_destroy
 *  Errors: INVALID_ARGUMENT (unknown part, unknown op, negative num_blobs; options that differ from
 *  another rank's; a reducer's step is in progress), ABI_MISMATCH (a struct_size of no known
 *  version), UNSUPPORTED (a dtype that is not reduced, unknown tail that is not zero), SHARED (two
 *  blobs have the same memory), SHAPE_MISMATCH, DTYPE_MISMATCH (the last two: another rank's blobs
 *  differ), OUT_OF_MEMORY, CAP_REACHED, DEVICE_LOST (the engine needs the rank's device),
 *  COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_reducer_create(sb_comm *comm, sb_blob *const *blobs,
                                                 int64_t num_blobs,
                                                 const sb_reducer_options *options,
                                                 sb_reducer **out, sb_error *err);

/** Destroys the reducer. During a step the call waits for the buckets that have started. The bytes
 *  of the step's blobs are then unspecified, and the communicator is unusable, since the other
 *  ranks may be at another bucket.
 *  @param reducer [owned, nullable] */
SB_API void sb_reducer_destroy(sb_reducer *reducer);

/** Marks the blob's values as final in this step. The call starts each bucket whose blobs are all
 *  ready, and advances started buckets. The call waits for other ranks only if the engine has no
 *  requests. If a bucket cannot start because memory ran out or a device failed, later calls retry
 *  the start.
 *  @param blob [borrowed] a registered blob, with the same count as at its registration
 *  Errors: INVALID_ARGUMENT (not registered, already ready, another reducer's step is in progress),
 *  DTYPE_MISMATCH, SHAPE_MISMATCH (another dtype or count than at the registration), COMM_FAILURE,
 *  FORKED. */
SB_API SB_MUST_CHECK sb_status sb_reducer_ready(sb_reducer *reducer, sb_blob *blob, sb_error *err);

/** Collective: ends the step. Every blob then has the combined values of all ranks. If a bucket
 *  cannot start because memory ran out or a device failed, the call fails without ending the step.
 *  The call may then be retried. If queued work that wrote a blob has failed, the call also fails
 *  without ending the step. The call fails even if sb_reducer_ready waited for that work. The
 *  header mem.h defines which bytes a retry reduces. If a device fails while it scales a mean, the
 *  call ends the step and returns DEVICE_LOST. If a device is lost and the host's bytes are
 *  current, the call reduces the host's bytes. An engine that needs the device, such as NCCL,
 *  cannot reduce these bytes. If only the lost device has the bytes, or the engine needs that
 *  device, the step cannot end: destroy the reducer. The other ranks then return the status with
 *  which their engine reports an ended rank. For a blob that is LOST the call returns UNINITIALIZED
 *  until the caller overwrites the blob.
 *  Errors: INVALID_ARGUMENT (a blob is not ready: the message has its index; another reducer's step
 *  is in progress), SHAPE_MISMATCH (a blob was reshaped after it was ready), as
 *  sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_reducer_wait(sb_reducer *reducer, sb_error *err);

SB_END_DECLS

#endif
