/**
 * Communicators over NCCL, for devices "cuda:N" of one machine or many. NCCL (libnccl.so.2, 2.14
 * or later) is opened when a function of this header is called first. Where libsyncblob has no CUDA
 * backend there are no contexts on "cuda:N", so that no communicator is made.
 *
 * A rank is a device. Each rank is used by a thread of its own, or by a process of its own: a
 * collective call waits for the other ranks, so that no thread could make it for two.
 *
 * Memory: NCCL reduces memory of the rank's own device. A call on other memory takes the bytes
 * through the device, which costs two copies and waits for the context's stream. So give a reducer
 * bucket_bytes of 0: it gathers small blobs on the host. A blob is reduced after the work that is
 * queued on its context's stream and on the default streams.
 *
 * Time limit: a call that waits for another rank longer than the limit returns COMM_FAILURE. All
 * that is under way is aborted then, also where another rank has failed. sb_comm_destroy waits for
 * the others' sb_comm_destroy, since they may still read what this rank has sent: for 5 seconds at
 * most, and no longer than the limit.
 *
 * Failures: COMM_FAILURE has NCCL's text, and its number as device_code, or the driver's. After an
 * abort NCCL uses memory no more once the device says so; if it does not say so within 5 seconds,
 * that memory is kept for ever.
 */
#ifndef SYNCBLOB_NCCL_H
#define SYNCBLOB_NCCL_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** Bytes that name a communicator which is still to be made (ncclUniqueId). */
#define SB_NCCL_ID_BYTES 128

/** Makes an id. One rank calls it and hands the bytes to all, by any means.
 *  @param out [borrowed] SB_NCCL_ID_BYTES bytes
 *  Errors: UNSUPPORTED (NCCL cannot be opened, or is too old),
 *  OUT_OF_MEMORY, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_nccl_id_create(uint8_t *out, sb_error *err);

/** Collective: makes a rank's communicator.
 *  @param context [borrowed] a context on "cuda:N", which no other rank has; retained
 *  @param id [borrowed] SB_NCCL_ID_BYTES bytes, the same at all ranks; each id serves once
 *  @param rank 0 to size - 1
 *  @param size how many ranks there are
 *  @param limit_milliseconds that others are waited for, here and in later calls; 0: ten minutes
 *  @param out [owned] sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (no such rank), NO_DEVICE (a context on another device), UNSUPPORTED
 *  (NCCL cannot be opened, or is too old; the driver), OUT_OF_MEMORY,
 *  COMM_FAILURE, DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create(sb_context *context, const uint8_t *id,
                                                   int32_t rank, int32_t size,
                                                   uint32_t limit_milliseconds, sb_comm **out,
                                                   sb_error *err);

/** Collective: the same with the ranks of another communicator, MPI's for example, which hands the
 *  id round. If a rank cannot take part, all are told.
 *  @param context [borrowed] a context on "cuda:N", which no other rank has; retained
 *  @param other [borrowed] is not used afterwards
 *  @param limit_milliseconds that others are waited for, here and in later calls; 0: ten minutes
 *  @param out [owned] sb_comm_destroy
 *  Errors: as sb_nccl_comm_create, as sb_comm_all_reduce. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create_over(sb_context *context, sb_comm *other,
                                                        uint32_t limit_milliseconds, sb_comm **out,
                                                        sb_error *err);

/** Makes the communicators of all ranks, which are devices of this process. It is called once, by
 *  one thread; afterwards each rank needs a thread of its own, for sb_comm_destroy, too.
 *  @param contexts [borrowed] `size` of them, by rank, each on another "cuda:N"; retained
 *  @param size 1 or more
 *  @param limit_milliseconds that others are waited for, here and in later calls; 0: ten minutes
 *  @param out [owned] `size` of them, by rank; sb_comm_destroy
 *  Errors: as sb_nccl_comm_create. */
SB_API SB_MUST_CHECK sb_status sb_nccl_comm_create_all(sb_context *const *contexts, int32_t size,
                                                       uint32_t limit_milliseconds, sb_comm **out,
                                                       sb_error *err);

SB_END_DECLS

#endif
