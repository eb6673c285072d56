/**
 * The simulated communicator: ranks that are threads of one process, for testing code that
 * runs on many machines where there is one. Sums are made in double, in the order of ranks,
 * and rounded once, so that they are the same in every run. It takes memory of the host and
 * of "sim:N". Answers may come late and in another order than they were asked for, and a
 * rank may fail or stop answering. No rank waits longer than the time limit.
 *
 * Ranks that call different things get COMM_FAILURE, with both in the message: the kind of call,
 * op, dtype, count, root. What no engine sees is not found: SB_COMM_MEAN against SB_COMM_SUM, data
 * against diff, other blobs of as many elements. A reducer compares the first two when it is made.
 *
 * Each rank's communicator is used by one thread at a time, as any other.
 */
#ifndef SYNCBLOB_SIM_COMM_H
#define SYNCBLOB_SIM_COMM_H

#include <syncblob/comm.h>

SB_BEGIN_DECLS

/** Ranks at most. */
#define SB_SIM_COMM_MAX 4096

/** How the ranks are. */
typedef struct sb_sim_comm_options {
    size_t struct_size;          /**< sizeof(sb_sim_comm_options) of the caller */
    uint64_t seed;               /**< of the delays */
    uint32_t delay_microseconds; /**< each rank learns that an operation is done up to so much
                                      later, drawn anew each time; 0: at once */
    uint32_t limit_milliseconds; /**< a rank that waits longer than this for the others gets
                                      COMM_FAILURE; 0: 10 seconds */
} sb_sim_comm_options;

/** No delays, 10 seconds, as an initialiser. */
#define SB_SIM_COMM_OPTIONS_INIT                                                                   \
    { sizeof(sb_sim_comm_options), 0, 0, 0 }

/** Makes the communicators of all ranks. They may be destroyed in any order; what waits for a
 *  rank that has ended gets COMM_FAILURE at once.
 *  @param context [borrowed, nullable] retained; for reducers' buckets
 *  @param size 1 to SB_SIM_COMM_MAX
 *  @param options [borrowed, nullable] NULL: the defaults
 *  @param out [owned] `size` of them, by rank; sb_comm_destroy
 *  Errors: INVALID_ARGUMENT (size), ABI_MISMATCH (a struct_size of no known version), UNSUPPORTED
 *  (unknown tail that is not zero), OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_create(sb_context *context, int32_t size,
                                                  const sb_sim_comm_options *options, sb_comm **out,
                                                  sb_error *err);

/** How a chosen operation goes wrong, SB_SIM_COMM_*. */
typedef int32_t sb_sim_comm_failure;

/** How a chosen operation goes wrong. */
enum {
    SB_SIM_COMM_FAIL_NOW = 0, /**< the rank gets COMM_FAILURE, and the others wait for it */
    SB_SIM_COMM_STOP = 1      /**< the rank answers no more: it and the others wait until the
                                   limit */
};

/** Makes the `nth` operation of this rank from now on (1 is the next) go wrong, once; nth 0
 *  takes it back. Operations are the engine's: one a blob or a bucket, at least.
 *  @param mode SB_SIM_COMM_*
 *  Errors: INVALID_ARGUMENT (nth below 0, no mode), UNSUPPORTED (another engine's
 *  communicator). */
SB_API SB_MUST_CHECK sb_status sb_sim_comm_fail(sb_comm *comm, int64_t nth,
                                                sb_sim_comm_failure mode, sb_error *err);

SB_END_DECLS

#endif
