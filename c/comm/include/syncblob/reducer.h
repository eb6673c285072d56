/**
 * sb_reducer: sums the diffs of a training step over all ranks while the rest of the step is
 * still being computed (Caffe's P2PSync and NCCL). Blobs are registered once. In each step the
 * caller says of every blob that it is ready, in any order, then waits.
 *
 * Buckets: blobs are taken from the last of the list to the first, since a backward pass is
 * done with the last layer first. Small ones are gathered in buckets on the host; one that
 * fills a bucket by itself, or has 128 KiB for each rank, is reduced in place, on the device if its
 * head is there and the engine takes its memory. A bucket starts when all of its blobs are ready
 * and those before it have started, so that all ranks start them in one order. Beside the blobs'
 * own memory it takes two buckets at most.
 *
 * From sb_reducer_ready to sb_reducer_wait a blob is the reducer's: neither its bytes nor its
 * shape may be touched, on either side, nor may it be destroyed. Afterwards its head is where it
 * was reduced, for gathered blobs the host. Between steps the reducer knows a blob by its address
 * alone: a destroyed one is not ready, and the step cannot end; another at the same address takes
 * its place if it is of the same dtype and count.
 *
 * While a step is under way, from the first sb_reducer_ready, no other call of the
 * communicator may be made.
 *
 * Failures: after COMM_FAILURE the step is over. Blobs whose buckets had ended are reduced;
 * gathered ones of other buckets are as they were; one that was being reduced in place has
 * unspecified bytes, unless both sides were current: then the other side keeps them and is the
 * head. Memory that the engine may still use is kept for ever and counts as live.
 */
#ifndef SYNCBLOB_REDUCER_H
#define SYNCBLOB_REDUCER_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** A reducer of one rank. */
typedef struct sb_reducer sb_reducer;

/** What is reduced, and how. Equal at all ranks. */
typedef struct sb_reducer_options {
    size_t struct_size;  /**< sizeof(sb_reducer_options) of the caller */
    sb_part part;        /**< SB_DATA or SB_DIFF */
    sb_comm_op op;       /**< SB_COMM_SUM to SB_COMM_MAX */
    size_t bucket_bytes; /**< a bucket's bytes at most; 0: no blob is gathered */
} sb_reducer_options;

/** The mean of diffs, in buckets of 25 MiB, as an initialiser. */
#define SB_REDUCER_OPTIONS_INIT                                                                    \
    { sizeof(sb_reducer_options), SB_DIFF, SB_COMM_MEAN, (size_t)25 << 20 }

/** Collective: registers blobs. Ranks compare the options, and the number, order, dtypes and shapes
 *  of the blobs. A difference is a status at every rank, and the message names both sides. What
 *  fails at one rank before it sends, for lack of memory or by a wrong argument, is a status at
 *  every rank, too, told by that rank. After these statuses the communicator is as before. A rank
 *  whose engine cannot begin the first reduction (its OUT_OF_MEMORY or UNSUPPORTED) can tell
 *  nobody: the others wait until it calls again, or ends. If an engine cannot go on later, that is
 *  COMM_FAILURE at its rank, and at the others what their engine gives for a rank that has ended.
 *  @param comm [borrowed] outlives the reducer
 *  @param blobs [borrowed, nullable when num_blobs is 0] F32 or F64, or F16 or BF16 where the
 *      engine reduces them, of any contexts, no two with the same memory, now or in a step: sums
 *      would be of sums. Later sharing is not looked for, nor are lent bytes that overlap
 *  @param num_blobs 0 or more
 *  @param options [borrowed, nullable] NULL: SB_REDUCER_OPTIONS_INIT
 *  @param out [owned] sb_reducer_destroy
 *  Errors: INVALID_ARGUMENT (unknown part, no op, a negative number; options that differ from
 *  another rank's; a reducer's step is under way), ABI_MISMATCH (a struct_size of no known
 *  version), UNSUPPORTED (a dtype that is not reduced, unknown tail that is not zero), SHARED (two
 *  blobs have one memory), SHAPE_MISMATCH, DTYPE_MISMATCH (both: from another rank's),
 *  OUT_OF_MEMORY, CAP_REACHED, COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_reducer_create(sb_comm *comm, sb_blob *const *blobs,
                                                 int64_t num_blobs,
                                                 const sb_reducer_options *options,
                                                 sb_reducer **out, sb_error *err);

/** Ends the reducer. In a step it waits for the buckets that have started; the blobs' bytes are
 *  unspecified then, and the communicator is of no use, since other ranks may be at another
 *  bucket.
 *  @param reducer [owned, nullable] */
SB_API void sb_reducer_destroy(sb_reducer *reducer);

/** The blob's values are final in this step. Starts what can start, and gets on with what has
 *  started; it waits for no other rank, unless the engine has no requests. What cannot start for
 *  lack of memory or for a device's failure is tried again by later calls.
 *  @param blob [borrowed] one of those registered, in the shape that it had then
 *  Errors: INVALID_ARGUMENT (not registered; ready already; another reducer's step is under way),
 *  DTYPE_MISMATCH, SHAPE_MISMATCH (another dtype or count than when it was registered),
 *  COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_reducer_ready(sb_reducer *reducer, sb_blob *blob, sb_error *err);

/** Collective: ends the step. Every blob holds the values of all ranks, combined. If a bucket
 *  cannot start for lack of memory or for a device's failure, the step goes on, and the call may be
 *  made again; only DEVICE_LOST of a device that failed while it scaled a mean comes at the end of
 *  the step. As long as bytes are needed that are on a lost device alone, the step does not end:
 *  destroy the reducer, and the others get what their engine gives for a rank that has ended. The
 *  same holds for a blob whose bytes were to be written by queued work that failed: UNINITIALIZED,
 *  until somebody overwrites it. A device that is lost and not needed is no failure of the step:
 *  current bytes of the host are reduced there. A blob that lies on it says so when it is touched.
 *  Errors: INVALID_ARGUMENT (a blob was not ready; its index is in the message; another reducer's
 *  step is under way), SHAPE_MISMATCH (a blob was reshaped after it was ready), as
 *  sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_reducer_wait(sb_reducer *reducer, sb_error *err);

SB_END_DECLS

#endif
