/**
 * Communicators over MPI: a separate library, libsyncblob-mpi, which is built for one MPI (any of
 * MPI 3 or newer). Compile with that MPI's compiler or flags.
 *
 * The library neither initialises nor finalises MPI. Destroy every communicator before
 * MPI_Finalize; later calls return UNSUPPORTED.
 *
 * Threads: with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE any thread may use a communicator, one
 * at a time; with a lower level only the main thread, and calls of other threads return
 * UNSUPPORTED. With MPI_THREAD_SERIALIZED the program must ensure that no other thread is in MPI
 * meanwhile. Any thread may destroy a communicator: if that thread may not call MPI, the next call
 * that creates or destroys a communicator on the main thread frees MPI's part, or MPI_Finalize.
 *
 * Failures: MPI's errors are COMM_FAILURE, with MPI's text and, in device_code, its number. MPI
 * promises less than the simulated communicator: it has no time limit, and a call waits for a rank
 * that has ended until MPI detects this, when by default MPI aborts the whole program. After a
 * failure MPI may still use memory of incomplete requests; that memory is never freed, nor is MPI's
 * communicator, since freeing it may wait.
 *
 * Devices: the library passes host memory only to MPI; bytes of a device are copied through the
 * host. Open MPI does not accept device memory in nonblocking calls, and MPICH cannot share memory
 * of a pool with the other ranks of a node.
 */
#ifndef SYNCBLOB_MPI_H
#define SYNCBLOB_MPI_H

#include <syncblob/comm.h>

#include <mpi.h>

SB_BEGIN_DECLS

/** Collective: creates a communicator over a duplicate of MPI's, so that its messages are separate.
 *  Errors of the duplication go to the error handler of `mpi_comm`.
 *  @param context [borrowed, nullable] retained; for handles and a reducer's buckets
 *  @param mpi_comm an intracommunicator, which stays the caller's
 *  @param out [owned] sb_comm_destroy, before MPI_Finalize
 *  Errors: INVALID_ARGUMENT (MPI is not initialised, or finalised; MPI_COMM_NULL, or an
 *  intercommunicator), UNSUPPORTED (not on the main thread, and MPI's thread level is too low),
 *  OUT_OF_MEMORY, CAP_REACHED, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_mpi_comm_create(sb_context *context, MPI_Comm mpi_comm,
                                                  sb_comm **out, sb_error *err);

SB_END_DECLS

#endif
