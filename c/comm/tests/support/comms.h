/* Communicators and reducers that the test owns. */
#ifndef SB_TESTS_COMMS_H
#define SB_TESTS_COMMS_H

#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>

sb_comm *test_comm(sb_context *context, const sb_comm_engine *engine, void *user);
/* Creates a simulated communicator of one rank. */
sb_comm *test_only_rank(sb_context *context);
sb_reducer *test_reducer(sb_comm *comm, sb_blob *const *blobs, int64_t count,
                         sb_reducer_options options);
/* Returns the options of a reducer of `part`. */
sb_reducer_options reducer_options(sb_part part, sb_comm_op op, size_t bucket_bytes);

#endif
