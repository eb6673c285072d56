/* Tests that a communicator belongs to the process that created it. */
#include "blobs.h"
#include "child.h"
#include "ranks.h"

#include "../src/sim_comm.h"

/* The child does not free the parent's engine; this pointer hides the leak from leak checkers. */
static struct sb__sim_group *volatile parents;

static void use_in_child(void *arg) {
    sb_comm *comm = arg;
    double value = 1;
    const sb_status found[] = {
        sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err),
        sb_comm_broadcast(comm, 0, &value, sizeof value, &err),
        sb_comm_barrier(comm, &err),
        sb_comm_all_reduce_blobs(comm, NULL, 0, SB_DATA, SB_COMM_SUM, &err),
        sb_comm_broadcast_blobs(comm, NULL, 0, SB_DATA, 0, &err),
        sb_sim_comm_fail(comm, 1, SB_SIM_COMM_STOP, &err),
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        child_wants(found[i] == SB_ERR_FORKED);
    sb_comm_destroy(comm);
}

TEST(a_forked_child_cannot_use_a_communicator) {
    sb_comm *comm = test_only_rank(NULL);
    parents = ((struct sb__sim_rank *)comm->end)->group;
    in_child(use_in_child, comm);
    assert_ok(sb_comm_barrier(comm, &err));
}

struct step {
    sb_comm *comm;
    sb_blob *blobs[2];
    sb_reducer *reducer;
};

static void continue_in_child(void *arg) {
    const struct step *step = arg;
    child_wants(sb_reducer_ready(step->reducer, step->blobs[0], &err) == SB_ERR_FORKED);
    child_wants(sb_reducer_wait(step->reducer, &err) == SB_ERR_FORKED);
    sb_reducer_destroy(step->reducer);
    sb_comm_destroy(step->comm);
}

TEST(a_forked_child_cannot_continue_a_step) {
    /* The delay keeps the parent's bucket in flight. */
    const sb_sim_comm_options options = RANK_OPTIONS(.delay_microseconds = 300000);
    struct step step = {
        .blobs = {test_vector(NULL, SB_DTYPE_F32, 100), test_vector(NULL, SB_DTYPE_F32, 100)}};
    assert_ok(sb_sim_comm_create(NULL, 1, &options, &step.comm, &err));
    parents = ((struct sb__sim_rank *)step.comm->end)->group;
    step.reducer =
        test_reducer(step.comm, step.blobs, 2, reducer_options(SB_DIFF, SB_COMM_MEAN, 0));
    assert_ok(sb_reducer_ready(step.reducer, step.blobs[1], &err));
    in_child(continue_in_child, &step);
    assert_ok(sb_reducer_ready(step.reducer, step.blobs[0], &err));
    assert_ok(sb_reducer_wait(step.reducer, &err));
    test_end(step.reducer);
    sb_comm_destroy(step.comm);
}
