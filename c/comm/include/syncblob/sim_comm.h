/**
 * The simulated communicator: ranks are threads of one process, for tests of distributed code on
 * one machine. Sums are computed in double, in the order of ranks, and rounded once: sums are the
 * same in every run. The engine accepts memory of the host and of "sim:N". Options make operations
 * complete late and in any order, and sb_sim_comm_fail makes a rank fail or stop responding. No
 * call waits for other ranks longer than the time limit, which starts again for each operation.
 *
 * If ranks make calls that differ in kind, op, dtype, count or root, the calls return COMM_FAILURE.
 * The message describes two calls that differ. No engine detects three mistakes: ranks pass
 * different parts, pass different blobs of equal counts, or mix SB_COMM_MEAN with SB_COMM_SUM. Only
 * sb_reducer_create compares op and part.
 *
 * As with every engine, only one thread at a time may use a rank's communicator.
 */
#ifndef SYNCBLOB_SIM_COMM_H
#define SYNCBLOB_SIM_COMM_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** The maximum number of ranks. */
#define SB_SIM_COMM_MAX 4096

/** Options of the simulated communicator. */
typedef struct sb_sim_comm_options {
    size_t struct_size;          /**< sizeof(sb_sim_comm_options) of the caller */
    uint64_t seed;               /**< seed of the delays */
    uint32_t delay_microseconds; /**< each rank delays each operation at random, by at most this
                                      time; 0: no delays. Delays do not count towards the time
                                      limit */
    uint32_t limit_milliseconds; /**< a call that waits longer than this for other ranks returns
                                      COMM_FAILURE; 0: 10 seconds */
} sb_sim_comm_options;

/** The defaults as an initialiser: no delays, and a limit of 10 seconds. */
#define SB_SIM_COMM_OPTIONS_INIT                                                                   \
    { sizeof(sb_sim_comm_options), 0, 0, 0 }

/** Creates the handles of all ranks. The handles may be destroyed in any order. A call that waits
 *  for a destroyed rank returns COMM_FAILURE at once.
 *  @param context [borrowed, nullable] the communicators retain the context, in which reducers
 *      allocate buckets
 *  @param size 1 to SB_SIM_COMM_MAX
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param out [owned] `size` handles, by rank. Destroy each with sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (size), ABI_MISMATCH (a struct_size of no known version), UNSUPPORTED
 *  (unknown tail that is not zero), OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_create(sb_context *context, int32_t size,
                                                  const sb_sim_comm_options *options, sb_comm **out,
                                                  sb_error *err);

/** The kind of a planted failure, SB_SIM_COMM_*. */
typedef int32_t sb_sim_comm_failure;

/** The kind of a planted failure. */
enum {
    SB_SIM_COMM_FAIL_NOW = 0, /**< the rank's call returns COMM_FAILURE, and the other ranks wait
                                   for this rank */
    SB_SIM_COMM_STOP = 1      /**< the rank stops responding: all ranks wait until the limit */
};

/** Plants a failure, which occurs once: at the `nth` operation of this rank from now on (1: the
 *  next operation). If nth is 0, the call removes the failure. An operation is a call of the
 *  engine. Each blob or bucket needs at least one operation.
 *  @param mode SB_SIM_COMM_*
 *  Errors: INVALID_ARGUMENT (nth below 0, unknown mode), UNSUPPORTED (another engine's
 *  communicator), FORKED. */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_fail(sb_comm *comm, int64_t nth,
                                                sb_sim_comm_failure mode, sb_error *err);

SB_END_DECLS

#endif
