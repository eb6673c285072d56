/* Creates communicators and reducers that the test owns, and runs simulated ranks on threads. */
#ifndef SB_TESTS_RANKS_H
#define SB_TESTS_RANKS_H

#include "support.h"

#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>
#include <syncblob/sim_comm.h>

sb_comm *test_comm(sb_context *context, const sb_comm_engine *engine, void *user);
/* Creates a simulated communicator of one rank. */
sb_comm *test_only_rank(sb_context *context);
sb_reducer *test_reducer(sb_comm *comm, sb_blob *const *blobs, int64_t count,
                         sb_reducer_options options);
sb_reducer_options reducer_options(sb_part part, sb_comm_op op, size_t bucket_bytes);

#define RANKS_MAX 16

#define RANK_OPTIONS(...)                                                                          \
    ((sb_sim_comm_options){.struct_size = sizeof(sb_sim_comm_options), __VA_ARGS__})

/* Runs task(comm, arg) on a thread for every rank, and destroys the communicators. `options` may be
   NULL. */
void ranks_run(int32_t size, const sb_sim_comm_options *options,
               void (*task)(sb_comm *comm, void *arg), void *arg);

/* As ranks_run, but with the communicators `comms`, which the caller has created. */
void ranks_run_on(int32_t size, sb_comm *const *comms, void (*task)(sb_comm *comm, void *arg),
                  void *arg);

/* cmocka's assertions work only on the main thread; a rank's thread uses these macros. */
#define expect(claim)  ranks_expect((claim), #claim, __FILE__, __LINE__)
#define expect_ok(...) ranks_expect_status(SB_OK, (__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define expect_status(expected, ...)                                                               \
    ranks_expect_status((expected), (__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
void ranks_expect(bool claim, const char *text, const char *file, int line);
void ranks_expect_status(sb_status expected, sb_status found, const char *text, const char *file,
                         int line);

#endif
