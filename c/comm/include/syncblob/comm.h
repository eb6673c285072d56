/**
 * libsyncblob-comm, over libsyncblob. sb_comm: a communicator, for work on many devices and many
 * machines. Its ranks, 0 to size - 1, are processes or threads; each holds a communicator of its
 * own, and together they sum, spread and wait (Caffe's P2PSync and NCCL). The transport is an
 * engine: MPI (mpi.h, a library over this one), NCCL (nccl.h), threads of one process (sim_comm.h),
 * or a table of the caller's (comm_engine.h).
 *
 * Order: a call that is "collective" is made by every rank, with equal arguments and in
 * the same order; it ends when all ranks have made it. Unequal ones are an error where the
 * engine finds them, else the bytes are unspecified or the call does not end. So a rank
 * that returns early with an error leaves the others waiting, as long as the engine lets
 * them: the simulated one has a time limit, MPI has none.
 *
 * Threads: one thread at a time uses a communicator and its reducers.
 *
 * Failures: COMM_FAILURE comes from the engine, with its text. The communicator is of no
 * use then: every later collective call returns it, too, since the ranks no longer agree on
 * what is next. Whatever else a call returns, it has sent nothing, and you may call again;
 * only DEVICE_LOST may come of a device that failed while it scaled what was sent.
 * A mean on a device is scaled there by queued work, as by sb_blob_scale, once the sum is the
 * blob's. Where the device fails in that, this rank has neither the mean nor what was there before:
 * the memory is LOST (mem.h), or the lost device alone has the sum. The other ranks have their
 * means.
 * What was being reduced or received when the engine failed is unspecified. Blobs that were
 * not reached are as they were.
 *
 * Halves: a sum of F16 or BF16 is rounded to one, to the nearest, before it is a mean, and a mean
 * once more; an F16 beyond 65504 is infinite. The simulated ranks are added in double and rounded
 * once, by way of float; MPI adds two ranks at a time as floats and rounds after each; NCCL does as
 * it does. Devices' arithmetic has none, so that a mean of halves is made on the host.
 *
 * Forks: in the child of a fork calls return FORKED, and destroying leaves the engine alone.
 */
#ifndef SYNCBLOB_COMM_H
#define SYNCBLOB_COMM_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** A rank's end of a communicator. */
typedef struct sb_comm sb_comm;

/** How values of all ranks become one, SB_COMM_SUM to SB_COMM_MAX. */
typedef int32_t sb_comm_op;

/** How values of all ranks become one. */
enum {
    SB_COMM_SUM = 0,  /**< their sum */
    SB_COMM_MEAN = 1, /**< their sum, times 1 / size */
    SB_COMM_MIN = 2,  /**< the least; with a NaN, and of zeros of both signs, unspecified: over MPI
                           ranks may differ in it */
    SB_COMM_MAX = 3   /**< the greatest; the same */
};

/** Ends a rank's communicator; its reducers were destroyed before. It is not collective and does
 *  not wait for ranks that are gone.
 *  @param comm [owned, nullable] */
SB_API void sb_comm_destroy(sb_comm *comm);

/** The caller's rank, 0 to size - 1; -1 for NULL. */
SB_API int32_t sb_comm_rank(const sb_comm *comm);

/** How many ranks there are; 0 for NULL. */
SB_API int32_t sb_comm_size(const sb_comm *comm);

/* --- host memory of the caller's: losses, counters, flags ------------------- */

/** Collective: every rank gets the values of all ranks, combined element by element.
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  @param dtype SB_DTYPE_F32 or SB_DTYPE_F64; SB_DTYPE_F16 or SB_DTYPE_BF16 where the engine
 *      reduces them, as those of the library do
 *  @param count of values, 0 or more; 0 sends nothing
 *  @param values [borrowed, nullable when count is 0] in and out
 *  Errors: INVALID_ARGUMENT (no op, a negative count, a reducer's step is under way),
 *  UNSUPPORTED (another dtype, or one that the engine does not reduce), OUT_OF_MEMORY,
 *  COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce(sb_comm *comm, sb_comm_op op, sb_dtype dtype,
                                                  int64_t count, void *values, sb_error *err);

/** Collective: every rank gets the bytes of rank `root`.
 *  @param root 0 to size - 1
 *  @param bytes [borrowed, nullable when size is 0] in at the root, out elsewhere
 *  @param size of `bytes`; 0 sends nothing
 *  Errors: INVALID_ARGUMENT (no such rank, a reducer's step is under way), UNSUPPORTED (the
 *  engine), OUT_OF_MEMORY, COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast(sb_comm *comm, int32_t root, void *bytes,
                                                 size_t size, sb_error *err);

/** Collective: returns when all ranks have called it.
 *  Errors: INVALID_ARGUMENT (a reducer's step is under way), UNSUPPORTED (the engine),
 *  OUT_OF_MEMORY, COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_barrier(sb_comm *comm, sb_error *err);

/* --- blobs --------------------------------------------------------------------- */

/** Collective: every rank's blobs get the values of all ranks, combined element by element,
 *  in place: on the device if the head is there and the engine takes its memory, else on the
 *  host. Each blob is written as by sb_blob_mutable_cpu or sb_blob_mutable_gpu; one
 *  that was never written counts as zeros. After COMM_FAILURE the blobs before the one that
 *  failed are reduced; that one's bytes are unspecified, unless both sides were current: then
 *  the other side keeps them and is the head.
 *  @param blobs [borrowed, nullable when num_blobs is 0] F32 or F64, or F16 or BF16 as
 *      sb_comm_all_reduce, of any contexts, no two with the same memory
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  Errors: INVALID_ARGUMENT (no op, a negative number, unknown part, a reducer's step is under
 *  way), UNSUPPORTED (as sb_comm_all_reduce), SHARED (two blobs have one memory), as
 *  sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                        int64_t num_blobs, sb_part part,
                                                        sb_comm_op op, sb_error *err);

/** Collective: the blobs of every rank get the values of those of rank `root`: weights at the
 *  start, a model as one rank has opened it. The root reads its blobs where their heads are;
 *  the others write theirs, which have shapes and dtypes equal to the root's. After
 *  COMM_FAILURE as sb_comm_all_reduce_blobs.
 *  @param blobs [borrowed, nullable when num_blobs is 0] of any dtype and context, no two with
 *      the same memory
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param root 0 to size - 1
 *  Errors: INVALID_ARGUMENT (no such rank, a negative number, unknown part, a reducer's step is
 *  under way), SHARED (two blobs have one memory), as sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                       int64_t num_blobs, sb_part part,
                                                       int32_t root, sb_error *err);

SB_END_DECLS

#endif
