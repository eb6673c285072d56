/**
 * The simulated communicator: ranks are threads of one process, for tests of distributed code on
 * one machine. Sums are computed in double, in the order of ranks, and rounded once: they are the
 * same in every run. It accepts memory of the host and of "sim:N". Operations may complete late and
 * in any order, and a rank may fail or stop responding. No rank waits longer than the time limit.
 *
 * Ranks that make different calls get COMM_FAILURE, with both calls in the message: kind, op,
 * dtype, count, root. Differences that an engine cannot see are not detected: SB_COMM_MEAN and
 * SB_COMM_SUM, data and diff, other blobs of equal counts. A reducer compares the first two at its
 * creation.
 *
 * One thread at a time uses a rank's communicator, as for every engine.
 */
#ifndef SYNCBLOB_SIM_COMM_H
#define SYNCBLOB_SIM_COMM_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** The most ranks. */
#define SB_SIM_COMM_MAX 4096

/** Options of the simulated communicator. */
typedef struct sb_sim_comm_options {
    size_t struct_size;          /**< sizeof(sb_sim_comm_options) of the caller */
    uint64_t seed;               /**< seed of the delays */
    uint32_t delay_microseconds; /**< upper bound of the random delay after which a rank sees that
                                      an operation is complete; 0: none */
    uint32_t limit_milliseconds; /**< a rank that waits longer than this for the others gets
                                      COMM_FAILURE; 0: 10 seconds */
} sb_sim_comm_options;

/** No delays, 10 seconds, as an initialiser. */
#define SB_SIM_COMM_OPTIONS_INIT                                                                   \
    { sizeof(sb_sim_comm_options), 0, 0, 0 }

/** Creates the communicators of all ranks. They may be destroyed in any order; operations that wait
 *  for a destroyed rank get COMM_FAILURE at once.
 *  @param context [borrowed, nullable] retained; for reducers' buckets
 *  @param size 1 to SB_SIM_COMM_MAX
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param out [owned] `size` of them, by rank; sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (size), ABI_MISMATCH (a struct_size of no known version), UNSUPPORTED
 *  (unknown tail that is not zero), OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_create(sb_context *context, int32_t size,
                                                  const sb_sim_comm_options *options, sb_comm **out,
                                                  sb_error *err);

/** The kind of a planted failure, SB_SIM_COMM_*. */
typedef int32_t sb_sim_comm_failure;

/** The kind of a planted failure. */
enum {
    SB_SIM_COMM_FAIL_NOW = 0, /**< the rank gets COMM_FAILURE, and the other ranks wait for it */
    SB_SIM_COMM_STOP = 1      /**< the rank stops responding: all ranks wait until the limit */
};

/** Plants a failure in the `nth` next operation of this rank (1 is the next), once; nth 0 removes
 *  it. Operations are those of the engine: at least one for each blob or bucket.
 *  @param mode SB_SIM_COMM_*
 *  Errors: INVALID_ARGUMENT (nth below 0, unknown mode), UNSUPPORTED (another engine's
 *  communicator). */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_fail(sb_comm *comm, int64_t nth,
                                                sb_sim_comm_failure mode, sb_error *err);

SB_END_DECLS

#endif
