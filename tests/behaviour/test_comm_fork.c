/* A communicator belongs to the process that made it. */
#include "support.h"

#include "comm/sim_comm.h"

#include <sys/wait.h>
#include <unistd.h>

/* In the child the parent's engine is not freed: in sight, so that it is no leak. */
static struct sb__sim_group *parents;

static void a_child_of_a_fork_has_no_communicator(void **state) {
    (void)state;
    sb_comm *comm;
    sb_error err;
    double value = 1;
    assert_ok(sb_sim_comm_create(NULL, 1, NULL, &comm, &err));
    parents = ((struct sb__sim_rank *)comm->end)->group;
    const pid_t child = fork();
    if (child == 0) {
        const sb_status st = sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err);
        sb_comm_destroy(comm);
        _exit(st == SB_ERR_FORKED ? 0 : 1);
    }
    int how = 1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_ok(sb_comm_barrier(comm, &err));
    sb_comm_destroy(comm);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_of_a_fork_has_no_communicator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
