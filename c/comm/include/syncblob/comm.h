/**
 * libsyncblob-comm, a library over libsyncblob. sb_comm is a rank's handle of a communicator, for
 * work on several devices and machines. Ranks, 0 to size - 1, are processes or threads; together
 * they reduce, broadcast and synchronise (Caffe's P2PSync and NCCL). The transport is an engine:
 * MPI (mpi.h, a library over this one), NCCL (nccl.h), threads of one process (sim_comm.h), or the
 * caller's table (comm_engine.h).
 *
 * Order: every rank makes a "collective" call with equal arguments and in the same order; the call
 * ends when all ranks have made it. Unequal arguments are an error if the engine detects them, else
 * the bytes are unspecified or the call does not end. A rank that returns early with an error
 * therefore leaves the others waiting, up to the engine's time limit: the simulated communicator
 * has one, MPI has none.
 *
 * Threads: one thread at a time uses a communicator and its reducers.
 *
 * Failures: COMM_FAILURE is a failure of the engine, with its text. The communicator is unusable
 * afterwards: every later collective call returns COMM_FAILURE, too, since the ranks no longer
 * agree on the next operation. After any other status the call has sent nothing and may be retried,
 * except DEVICE_LOST of a device that failed while it scaled a result. A mean on a device is scaled
 * there by queued work, as by sb_blob_scale, after the blob has the sum. If the device fails in
 * that, this rank has neither the mean nor the old values: the memory is LOST (mem.h), or only the
 * lost device has the sum. The other ranks have their means. Bytes that were being reduced or
 * received when the engine failed are unspecified. Later blobs of the call are unchanged.
 *
 * Halves: a sum of F16 or BF16 is rounded to nearest; a mean is the rounded sum, scaled and rounded
 * again; an F16 beyond 65504 is infinite. The simulated communicator adds in double and rounds
 * once, through float; MPI adds two ranks at a time as floats and rounds after each addition;
 * NCCL's own rules apply. Devices have no arithmetic of halves: means of halves are computed on the
 * host.
 *
 * Forks: in a forked child calls return FORKED, and destroying a communicator does not call the
 * engine.
 */
#ifndef SYNCBLOB_COMM_H
#define SYNCBLOB_COMM_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** A rank's end of a communicator. */
typedef struct sb_comm sb_comm;

/** The operation of a reduction, SB_COMM_SUM to SB_COMM_MAX. */
typedef int32_t sb_comm_op;

/** The operation of a reduction. */
enum {
    SB_COMM_SUM = 0,  /**< their sum */
    SB_COMM_MEAN = 1, /**< their sum, times 1 / size */
    SB_COMM_MIN = 2,  /**< the minimum; unspecified with a NaN, or for zeros of both signs: over MPI
                           the ranks' results may differ */
    SB_COMM_MAX = 3   /**< the maximum; likewise */
};

/** Destroys a rank's handle; destroy its reducers first. The call is not collective and does not
 *  wait for ranks that have ended.
 *  @param comm [owned, nullable] */
SB_API void sb_comm_destroy(sb_comm *comm);

/** The caller's rank, 0 to size - 1; -1 for NULL. */
SB_API int32_t sb_comm_rank(const sb_comm *comm);

/** The number of ranks; 0 for NULL. */
SB_API int32_t sb_comm_size(const sb_comm *comm);

/* --- the caller's host memory: losses, counters, flags ------------------- */

/** Collective: every rank gets the values of all ranks, combined element by element.
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  @param dtype SB_DTYPE_F32 or SB_DTYPE_F64; SB_DTYPE_F16 or SB_DTYPE_BF16 if the engine reduces
 *      them, as the library's engines do
 *  @param count number of values, 0 or more; 0 sends nothing
 *  @param values [borrowed, nullable when count is 0] in and out
 *  Errors: INVALID_ARGUMENT (unknown op, a negative count, a reducer's step is in progress),
 *  UNSUPPORTED (another dtype, or one that the engine does not reduce), OUT_OF_MEMORY,
 *  COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce(sb_comm *comm, sb_comm_op op, sb_dtype dtype,
                                                  int64_t count, void *values, sb_error *err);

/** Collective: every rank gets the bytes of rank `root`.
 *  @param root 0 to size - 1
 *  @param bytes [borrowed, nullable when size is 0] in at the root, out elsewhere
 *  @param size of `bytes`; 0 sends nothing
 *  Errors: INVALID_ARGUMENT (unknown rank, a reducer's step is in progress), UNSUPPORTED (the
 *  engine), OUT_OF_MEMORY, COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast(sb_comm *comm, int32_t root, void *bytes,
                                                 size_t size, sb_error *err);

/** Collective: returns when all ranks have called it.
 *  Errors: INVALID_ARGUMENT (a reducer's step is in progress), UNSUPPORTED (the engine),
 *  OUT_OF_MEMORY, COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_barrier(sb_comm *comm, sb_error *err);

/* --- blobs --------------------------------------------------------------------- */

/** Collective: every rank's blobs get the values of all ranks, combined element by element, in
 *  place: on the device if the head is there and the engine accepts its memory, else on the host.
 *  Each blob is written as by sb_blob_mutable_cpu or sb_blob_mutable_gpu; a blob that was never
 *  written counts as zeros. After COMM_FAILURE the blobs before the failed one are reduced; the
 *  failed blob's bytes are unspecified, unless both sides were current: then the other side keeps
 *  the old bytes and is the head.
 *  @param blobs [borrowed, nullable when num_blobs is 0] F32 or F64, or F16 or BF16 as
 *      sb_comm_all_reduce, of any contexts, no two with the same memory
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  Errors: INVALID_ARGUMENT (unknown op, a negative number, unknown part, a reducer's step is in
 *  progress), UNSUPPORTED (as sb_comm_all_reduce), SHARED (two blobs have one memory), as
 *  sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                        int64_t num_blobs, sb_part part,
                                                        sb_comm_op op, sb_error *err);

/** Collective: the blobs of every rank get the values of rank `root`'s blobs: initial weights, or a
 *  model that one rank has opened. The root reads its blobs on the side of their heads; the others
 *  write theirs, which have the same shapes and dtypes. After COMM_FAILURE as
 *  sb_comm_all_reduce_blobs.
 *  @param blobs [borrowed, nullable when num_blobs is 0] of any dtype and context, no two with
 *      the same memory
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param root 0 to size - 1
 *  Errors: INVALID_ARGUMENT (unknown rank, a negative number, unknown part, a reducer's step is in
 *  progress), SHARED (two blobs have one memory), as sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                       int64_t num_blobs, sb_part part,
                                                       int32_t root, sb_error *err);

SB_END_DECLS

#endif
