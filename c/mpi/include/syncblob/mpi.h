/**
 * Communicators over MPI: a library of its own, libsyncblob-mpi, which is built for one MPI
 * (any of MPI 3 or newer). Compile with that MPI's compiler or flags.
 *
 * It neither initialises nor finalises MPI. Destroy every communicator before MPI_Finalize; after
 * it a call is UNSUPPORTED.
 *
 * Threads: with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE any thread may use a communicator,
 * one at a time; with a lower level the main thread alone, and a call of another is UNSUPPORTED.
 * With MPI_THREAD_SERIALIZED you see to it that no other thread is in MPI meanwhile. Any thread may
 * destroy a communicator: if that thread may not call MPI, MPI's part is freed by the next call
 * that makes or destroys a communicator on the main thread, or by MPI_Finalize.
 *
 * Failures: MPI's errors come back as COMM_FAILURE, with MPI's text and, as device_code, its
 * number. MPI promises less than the simulated communicator does. It has no time limit: a call
 * waits for a rank that is gone until MPI notices, and by default MPI ends the whole program then.
 * After a failure MPI may still use memory of requests that were not done; that memory is kept. So
 * is MPI's communicator, since freeing it may wait.
 *
 * Devices: pointers to memory of "cuda:N" are given to MPICH, and to what descends from it, where
 * it says at run time that it takes them. Open MPI takes none in what runs beside other work. All
 * other bytes of devices go through the host.
 */
#ifndef SYNCBLOB_MPI_H
#define SYNCBLOB_MPI_H

#include <syncblob/comm.h>

#include <mpi.h>

SB_BEGIN_DECLS

/** Collective: makes a communicator over a duplicate of MPI's, so that its messages meet no
 *  others. Errors of making the duplicate go to the error handler of `mpi_comm`.
 *  @param context [borrowed, nullable] retained; for handles and a reducer's buckets
 *  @param mpi_comm an intracommunicator, which stays the caller's
 *  @param out [owned] sb_comm_destroy, before MPI_Finalize
 *  Errors: INVALID_ARGUMENT (MPI is not initialised, or finalised; no communicator, or an
 *  intercommunicator), UNSUPPORTED (not on the main thread, and MPI's thread level is too low),
 *  OUT_OF_MEMORY, CAP_REACHED, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_mpi_comm_create(sb_context *context, MPI_Comm mpi_comm,
                                                  sb_comm **out, sb_error *err);

SB_END_DECLS

#endif
