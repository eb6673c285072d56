/* What every engine must do. Each function is the task of a rank (ranks.h); `arg` is a workplace.
   The tests of each engine run the tasks: test_collectives.c and test_reducer.c (simulated ranks),
   nccl/test_ranks.c, tests/mpi/test_mpi.c. */
#ifndef SB_TESTS_TASKS_H
#define SB_TESTS_TASKS_H

#include "net.h"

struct workplace {
    const char *device;          /* each rank creates a context there; NULL: use `contexts` */
    sb_context *const *contexts; /* a context for each rank */
    bool on_device;              /* the engine reduces bytes of the contexts' devices in place */
    int steps;                   /* steps for each bucket size, in reduce_in_random_orders */
    uint64_t seed;
    uint64_t limit_ms; /* the communicator's time limit, in pause_longer_than_the_limit */
};

void reduce_values(sb_comm *comm, void *arg);
/* Reduces the rows of halves.h; does nothing if there is only one rank. */
void reduce_halves(sb_comm *comm, void *arg);
void broadcast_bytes(sb_comm *comm, void *arg);
void reduce_blobs(sb_comm *comm, void *arg);
void broadcast_blobs(sb_comm *comm, void *arg);
/* Makes steps of a reducer; each rank calls sb_reducer_ready in another order. */
void reduce_in_random_orders(sb_comm *comm, void *arg);
/* Rank 0 pauses between two calls of a step; the other ranks then begin the step. */
void pause_longer_than_the_limit(sb_comm *comm, void *arg);
/* Destroys a reducer in its step. */
void end_in_a_step(sb_comm *comm, void *arg);

#endif
