#include "comms.h"

#include "support.h"

#include <syncblob/sim_comm.h>

static void end_comm(void *comm) {
    sb_comm_destroy(comm);
}

static void end_reducer(void *reducer) {
    sb_reducer_destroy(reducer);
}

sb_comm *test_comm(sb_context *context, const sb_comm_engine *engine, void *user) {
    sb_comm *comm;
    assert_ok(sb_comm_create(context, engine, user, &comm, &err));
    test_own(comm, end_comm);
    return comm;
}

sb_comm *test_only_rank(sb_context *context) {
    sb_comm *comm;
    assert_ok(sb_sim_comm_create(context, 1, NULL, &comm, &err));
    test_own(comm, end_comm);
    return comm;
}

sb_reducer *test_reducer(sb_comm *comm, sb_blob *const *blobs, int64_t count,
                         sb_reducer_options options) {
    sb_reducer *reducer;
    assert_ok(sb_reducer_create(comm, blobs, count, &options, &reducer, &err));
    test_own(reducer, end_reducer);
    return reducer;
}

sb_reducer_options reducer_options(sb_part part, sb_comm_op op, size_t bucket_bytes) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    options.part = part;
    options.op = op;
    options.bucket_bytes = bucket_bytes;
    return options;
}
