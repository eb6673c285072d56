/**
 * Communicators over NCCL, for devices "cuda:N" of one machine or many. The first call of any
 * function in this header opens NCCL (libnccl.so.2, version 2.14 or later). Creating a communicator
 * requires a context on "cuda:N", and therefore the CUDA backend of libsyncblob.
 *
 * A rank is a device. Each rank needs a separate thread or process, since a collective call waits
 * for the other ranks.
 *
 * Memory: NCCL reduces memory of the rank's device. For other memory, a call copies the bytes to
 * the device and back, and waits for the context's stream. For reducers, use bucket_bytes 0:
 * otherwise small blobs are gathered on the host. The reduction of a blob begins after the work
 * that is queued on the default streams and on the stream of the blob's context.
 *
 * Ranks of one process: NCCL writes directly into buffers of the other ranks. The library therefore
 * makes the memory pool of each buffer accessible to the other devices (cuMemPoolSetAccess). On
 * Turing GPUs, use a process per rank. A driver of 2026 was reported to lose copies by
 * cuMemcpyPeerAsync into pools that other devices can access. Memory from cuMemMap must be
 * accessible to all devices of the process.
 *
 * Time limit: a call that waits for another rank longer than the limit returns COMM_FAILURE. The
 * time is measured within the call, separately for each operation (a blob, a bucket). The time
 * includes the completion of earlier work on this rank's device. After the limit, or if another
 * rank has failed, all operations in progress are aborted. The abort has no time limit, because
 * ncclCommAbort joins a thread of NCCL. The function sb_comm_destroy waits until NCCL has finalized
 * the communicator, since NCCL may need the other ranks. The wait ends after 5 seconds, or after
 * the time limit if the limit is shorter. Then the function calls ncclCommDestroy, which waits only
 * for work on this rank's streams.
 *
 * A lost device: NCCL needs the rank's device even for host memory. Once the device is lost, calls
 * return DEVICE_LOST and change no blob. A call in progress returns COMM_FAILURE. Other ranks wait
 * up to the limit. While only this engine knows of the loss, sb_context_device_status does not
 * report it, and creating a communicator returns DEVICE_FAILURE.
 *
 * Failures: the message and device_code of a COMM_FAILURE come from NCCL or the driver. After an
 * abort, the library frees memory when the device reports that NCCL no longer uses the memory. If
 * the device is lost, or does not report the end of NCCL's work within 5 seconds, some memory is
 * never freed. This memory is the copies of host bytes and the memory of a reducer's step, which
 * sb_stats still counts.
 */
#ifndef SYNCBLOB_NCCL_H
#define SYNCBLOB_NCCL_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** The size in bytes of the id with which ranks create a communicator (ncclUniqueId). */
#define SB_NCCL_ID_BYTES 128

/** Creates an id. One rank calls this function and sends the id to all ranks by other means.
 *  @param out [borrowed] SB_NCCL_ID_BYTES bytes
 *  Errors: UNSUPPORTED (NCCL cannot be opened, or is too old), OUT_OF_MEMORY, COMM_FAILURE, FORKED
 *  (NCCL was opened before the fork). */
SB_API SB_MUST_CHECK sb_status sb_nccl_id_create(uint8_t *out, sb_error *err);

/** Collective: creates a rank's handle of a communicator.
 *  @param context [borrowed] a context on "cuda:N", a device that no other rank uses.
 *      The handle retains the context
 *  @param id [borrowed] SB_NCCL_ID_BYTES bytes, the same at all ranks. An id can be used once
 *  @param rank 0 to size - 1
 *  @param size number of ranks
 *  @param limit_milliseconds the time limit of this and later calls; 0: ten minutes
 *  @param out [owned] sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (no such rank), NO_DEVICE (a context on another device), UNSUPPORTED
 *  (NCCL or the driver cannot be opened, is too old, or does not support a call), OUT_OF_MEMORY,
 *  COMM_FAILURE, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create(sb_context *context, const uint8_t *id,
                                                   int32_t rank, int32_t size,
                                                   uint32_t limit_milliseconds, sb_comm **out,
                                                   sb_error *err);

/** Collective: creates a rank's handle, as sb_nccl_comm_create does, for the ranks of another
 *  communicator, for example MPI's, and distributes the id through that communicator. If a rank
 *  cannot take part, the call fails at all ranks, as long as `other` works. Each rank waits, up to
 *  the time limit of `other`, until all ranks have tried to create their handles.
 *  @param context [borrowed] a context on "cuda:N", a device that no other rank uses.
 *      The handle retains the context
 *  @param other [borrowed] used only during the call
 *  @param limit_milliseconds the time limit of this and later calls; 0: ten minutes
 *  @param out [owned] sb_comm_destroy
 *  Errors: as sb_nccl_comm_create, as sb_comm_all_reduce. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create_over(sb_context *context, sb_comm *other,
                                                        uint32_t limit_milliseconds, sb_comm **out,
                                                        sb_error *err);

/** Creates the handles of all ranks, which are devices of this process. One thread calls this
 *  function once. Afterwards each rank needs a separate thread, also for sb_comm_destroy.
 *  @param contexts [borrowed] `size` contexts, by rank, each on a different "cuda:N" (else NCCL
 *      reports COMM_FAILURE). Each handle retains its context
 *  @param size 1 or more
 *  @param limit_milliseconds the time limit of this and later calls; 0: ten minutes
 *  @param out [owned] `size` handles, by rank. Destroy each with sb_comm_destroy
 *  Errors: as sb_nccl_comm_create. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create_all(sb_context *const *contexts, int32_t size,
                                                       uint32_t limit_milliseconds, sb_comm **out,
                                                       sb_error *err);

SB_END_DECLS

#endif
