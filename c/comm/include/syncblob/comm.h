/**
 * libsyncblob-comm, a library on top of libsyncblob, distributes work over devices and machines. An
 * sb_comm is one rank's handle of a communicator. The ranks, 0 to size - 1, are processes or
 * threads. Together the ranks reduce and broadcast data, as Caffe's classes P2PSync and NCCL do.
 * The transport is an engine: MPI (mpi.h, in a separate library), NCCL (nccl.h), threads of one
 * process (sim_comm.h), or a table of functions that the caller implements (comm_engine.h).
 *
 * Order: all ranks must make the calls that are marked "Collective" in the same order and with
 * equal arguments. A call returns when all ranks have made the call. If arguments differ, the call
 * fails if the engine detects the difference. If not, the bytes of the buffers are unspecified, or
 * the call never returns. If the call of one rank fails before it sends anything, the other ranks
 * wait for that rank, up to the engine's time limit. The simulated communicator and NCCL have a
 * limit. MPI has no limit.
 *
 * Threads: only one thread at a time may use a communicator and its reducers.
 *
 * Failures: COMM_FAILURE means that the engine has failed. The error contains the engine's message.
 * The communicator is unusable afterwards: every later collective call returns COMM_FAILURE, since
 * the ranks no longer agree on the next operation. Bytes that were being reduced or received when
 * the engine failed are unspecified. Blobs after the failed blob are unchanged. A call that fails
 * with another status has sent nothing and may be retried, with one exception. To compute a mean on
 * a device, the library queues work that scales the sum (sb_blob_scale). If the device fails during
 * the scaling, the call returns DEVICE_LOST. If a later blob also fails, for example because the
 * engine needs the lost device, the call returns COMM_FAILURE. The other ranks then have the mean,
 * but this rank has neither the mean nor the old values. The memory is LOST (mem.h), or only the
 * lost device has the sum.
 *
 * Halves: a sum of F16 or BF16 values is rounded to nearest. For a mean, the rounded sum is scaled
 * and then rounded again. An F16 result beyond 65504 is infinite. The simulated communicator adds
 * in double, and converts the sum to float and then to the half type. MPI adds the values of two
 * ranks at a time as floats and rounds after each addition. NCCL rounds by its own rules. Means of
 * halves are computed on the host, because devices have no arithmetic for halves.
 *
 * Forks: in a forked child, all calls return FORKED, and sb_comm_destroy does not call the engine.
 */
#ifndef SYNCBLOB_COMM_H
#define SYNCBLOB_COMM_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** One rank's handle of a communicator. */
typedef struct sb_comm sb_comm;

/** The operation of a reduction, SB_COMM_SUM to SB_COMM_MAX. */
typedef int32_t sb_comm_op;

/** The operation of a reduction. */
enum {
    SB_COMM_SUM = 0,  /**< the sum of the ranks' values */
    SB_COMM_MEAN = 1, /**< the sum, times 1 / size */
    SB_COMM_MIN = 2,  /**< the minimum. Unspecified if a value is NaN, or if some values are 0 and
                           others -0. Over MPI the ranks may then get different results */
    SB_COMM_MAX = 3   /**< the maximum. Unspecified in the same cases as SB_COMM_MIN */
};

/** Destroys a rank's handle. Destroy its reducers first. The call is not collective: the call does
 *  not wait for other ranks, which may already have ended. With NCCL the call may wait up to 5
 *  seconds (nccl.h).
 *  @param comm [owned, nullable] */
SB_API void sb_comm_destroy(sb_comm *comm);

/** Returns the caller's rank, 0 to size - 1, or -1 for NULL. */
SB_API int32_t sb_comm_rank(const sb_comm *comm);

/** Returns the number of ranks, or 0 for NULL. */
SB_API int32_t sb_comm_size(const sb_comm *comm);

/* --- host memory of the caller, for example a loss or a counter ---------- */

/** Collective: combines the values of all ranks element by element. Every rank receives the result.
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  @param dtype SB_DTYPE_F32 or SB_DTYPE_F64; SB_DTYPE_F16 or SB_DTYPE_BF16 if the engine reduces
 *      them, as the library's engines do
 *  @param count number of values, 0 or more. With 0 the call sends nothing and needs no device
 *  @param values [borrowed, nullable when count is 0] on entry this rank's values, on return the
 *      result
 *  Errors: INVALID_ARGUMENT (unknown op, a negative count, a reducer's step is in progress),
 *  UNSUPPORTED (any other dtype, or a half type that the engine does not reduce), OUT_OF_MEMORY,
 *  DEVICE_LOST (the engine needs the rank's device), COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce(sb_comm *comm, sb_comm_op op, sb_dtype dtype,
                                                  int64_t count, void *values, sb_error *err);

/** Collective: sends the bytes of rank `root` to every rank.
 *  @param root 0 to size - 1
 *  @param bytes [borrowed, nullable when size is 0] read at the root, written at other ranks
 *  @param size size of `bytes`; 0 sends nothing
 *  Errors: INVALID_ARGUMENT (unknown rank, a reducer's step is in progress), UNSUPPORTED (the
 *  engine refuses), OUT_OF_MEMORY, DEVICE_LOST (the engine needs the rank's device), COMM_FAILURE,
 *  FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast(sb_comm *comm, int32_t root, void *bytes,
                                                 size_t size, sb_error *err);

/** Collective: returns when all ranks have called this function.
 *  Errors: INVALID_ARGUMENT (a reducer's step is in progress), UNSUPPORTED (the engine refuses),
 *  OUT_OF_MEMORY, DEVICE_LOST (the engine needs the rank's device), COMM_FAILURE, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_comm_barrier(sb_comm *comm, sb_error *err);

/* --- blobs --------------------------------------------------------------------- */

/** Collective: combines the blobs of all ranks element by element, in place. Every rank's blobs
 *  receive the result. A blob is reduced on the device if its head is on the device and the engine
 *  accepts that memory, else on the host. For each blob the call has the effects of
 *  sb_blob_mutable_cpu or sb_blob_mutable_gpu. A blob that was never written counts as zeros. After
 *  COMM_FAILURE the blobs before the failed blob have their results, except blobs whose scaling
 *  failed. The failed blob is unchanged if the engine has sent none of its bytes. Otherwise, if
 *  only one side was current, the failed blob's bytes are unspecified. If both sides were current,
 *  the head moves to the side that was not reduced. That side still has the old bytes, which are
 *  unreadable if the side is a lost device.
 *  @param blobs [borrowed, nullable when num_blobs is 0] F32 or F64, or F16 or BF16 if the engine
 *      reduces them. The blobs may have any contexts, but no two blobs may have the same memory. If
 *      two blobs borrow overlapping memory of the caller, the call does not detect the overlap, and
 *      reduces the common bytes twice
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param op SB_COMM_SUM to SB_COMM_MAX
 *  Errors: INVALID_ARGUMENT (unknown op, negative num_blobs, unknown part, or a reducer's step is
 *  in progress), UNSUPPORTED (in the same cases as sb_comm_all_reduce), SHARED (two blobs have the
 *  same memory), as sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_all_reduce_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                        int64_t num_blobs, sb_part part,
                                                        sb_comm_op op, sb_error *err);

/** Collective: copies the values of rank `root`'s blobs to the blobs of every rank, for example
 *  initial weights. Blobs must have the same shapes and dtypes at all ranks. The root's blobs are
 *  read on the side of their heads. As in sb_blob_cpu and sb_blob_gpu, a blob that was never
 *  written is filled with zeros. The blob then counts as written, even if the call fails. At other
 *  ranks a blob is written on the device if the device has the newest bytes and the engine accepts
 *  that memory. Otherwise the blob is written on the host. After COMM_FAILURE the blobs are in the
 *  states that sb_comm_all_reduce_blobs describes.
 *  @param blobs [borrowed, nullable when num_blobs is 0] of any dtype and context, no two with the
 *      same memory
 *  @param num_blobs 0 or more
 *  @param part SB_DATA or SB_DIFF
 *  @param root 0 to size - 1
 *  Errors: INVALID_ARGUMENT (unknown rank, negative num_blobs, unknown part, or a reducer's step is
 *  in progress), SHARED (two blobs have the same memory), as sb_blob_mutable_cpu, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_comm_broadcast_blobs(sb_comm *comm, sb_blob *const *blobs,
                                                       int64_t num_blobs, sb_part part,
                                                       int32_t root, sb_error *err);

SB_END_DECLS

#endif
