/**
 * Communicators over MPI, in a separate library, libsyncblob-mpi. The library is built for one
 * implementation of MPI 3 or newer. Compile programs with that implementation's compiler or flags.
 *
 * The library neither initialises nor finalises MPI. Destroy every communicator before
 * MPI_Finalize; calls after MPI_Finalize return UNSUPPORTED.
 *
 * Threads: with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE any thread may use a communicator, but
 * only one thread at a time. With a lower level, calls on threads other than the main thread return
 * UNSUPPORTED. With MPI_THREAD_SERIALIZED the program must ensure that no other thread calls MPI at
 * the same time. Any thread may destroy a communicator. If that thread may not call MPI, MPI's
 * communicator is freed when the main thread next creates or destroys a communicator, or by
 * MPI_Finalize.
 *
 * Failures: an error of MPI results in COMM_FAILURE with MPI's text and error code (device_code).
 * MPI has no time limit: if a rank has ended, a call waits for that rank until MPI detects the end;
 * MPI then aborts the whole program by default. After a failure the library frees neither the
 * memory of incomplete requests, which MPI may still use, nor MPI's communicator, since
 * MPI_Comm_free may wait.
 *
 * Devices: the library passes only host memory to MPI; bytes of a device are copied through the
 * host. Open MPI does not accept device memory in nonblocking calls, and MPICH cannot share memory
 * of a CUDA pool with the other ranks of a node.
 */
#ifndef SYNCBLOB_MPI_H
#define SYNCBLOB_MPI_H

#include <syncblob/comm.h>

#include <mpi.h>

SB_BEGIN_DECLS

/** Collective: creates a communicator over a duplicate of `mpi_comm`, so that the library's
 *  messages and the program's messages on `mpi_comm` do not mix. Errors of MPI_Comm_dup go to the
 *  error handler of `mpi_comm`.
 *  @param context [borrowed, nullable] the communicator retains the context, in which reducers
 *      allocate buckets
 *  @param mpi_comm an intracommunicator, which the caller still owns
 *  @param out [owned] sb_comm_destroy, before MPI_Finalize
 *  Errors: INVALID_ARGUMENT (MPI is not initialised, or finalised; `mpi_comm` is MPI_COMM_NULL or
 *  an intercommunicator), UNSUPPORTED (not on the main thread, and MPI's thread level is too low),
 *  OUT_OF_MEMORY, CAP_REACHED, COMM_FAILURE. */
SB_API SB_MUST_CHECK sb_status sb_mpi_comm_create(sb_context *context, MPI_Comm mpi_comm,
                                                  sb_comm **out, sb_error *err);

SB_END_DECLS

#endif
