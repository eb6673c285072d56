/* A communicator belongs to the process that created it. */
#include "blobs.h"
#include "comms.h"
#include "ranks.h"

#include "../src/sim_comm.h"

#include <sys/wait.h>
#include <unistd.h>

/* Keeps a pointer to the parent's engine: the child does not free the engine, and a leak checker
   would report an engine without a pointer. */
static struct sb__sim_group *volatile parents;

TEST(a_forked_child_cannot_use_a_communicator) {
    sb_comm *comm;
    double value = 1;
    assert_ok(sb_sim_comm_create(NULL, 1, NULL, &comm, &err));
    parents = ((struct sb__sim_rank *)comm->end)->group;
    const pid_t child = fork();
    if (child == 0) {
        const sb_status found[] = {
            sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err),
            sb_comm_broadcast(comm, 0, &value, sizeof value, &err),
            sb_comm_barrier(comm, &err),
            sb_comm_all_reduce_blobs(comm, NULL, 0, SB_DATA, SB_COMM_SUM, &err),
            sb_comm_broadcast_blobs(comm, NULL, 0, SB_DATA, 0, &err),
            sb_sim_comm_fail(comm, 1, SB_SIM_COMM_STOP, &err),
        };
        int answered = 0;
        for (size_t i = 0; i < sizeof found / sizeof *found; i++)
            answered += found[i] != SB_ERR_FORKED;
        sb_comm_destroy(comm);
        _exit(answered);
    }
    int how = 1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_ok(sb_comm_barrier(comm, &err));
    sb_comm_destroy(comm);
}

/* A step in progress belongs to the parent, so sb_reducer_destroy in the child does not wait. */
TEST(a_forked_child_cannot_continue_a_step) {
    /* The parent's bucket stays in flight. */
    const sb_sim_comm_options options = RANK_OPTIONS(.delay_microseconds = 300000);
    sb_comm *comm;
    sb_blob *blobs[] = {test_vector(NULL, SB_DTYPE_F32, 100), test_vector(NULL, SB_DTYPE_F32, 100)};
    assert_ok(sb_sim_comm_create(NULL, 1, &options, &comm, &err));
    parents = ((struct sb__sim_rank *)comm->end)->group;
    sb_reducer *reducer = test_reducer(comm, blobs, 2, reducer_options(SB_DIFF, SB_COMM_MEAN, 0));
    assert_ok(sb_reducer_ready(reducer, blobs[1], &err));
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = sb_reducer_ready(reducer, blobs[0], &err) == SB_ERR_FORKED &&
                             sb_reducer_wait(reducer, &err) == SB_ERR_FORKED;
        sb_reducer_destroy(reducer);
        sb_comm_destroy(comm);
        _exit(refused ? 0 : 1);
    }
    int how = 1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
    assert_ok(sb_reducer_wait(reducer, &err));
    test_end(reducer);
    sb_comm_destroy(comm);
}
