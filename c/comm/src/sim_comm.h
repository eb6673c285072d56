#ifndef SB_COMM_SIM_COMM_H
#define SB_COMM_SIM_COMM_H

#include "comm.h"
#include <pthread.h>
#include <syncblob/sim_comm.h>

enum sb__sim_kind { SB__SIM_REDUCE, SB__SIM_BROADCAST, SB__SIM_BARRIER };

/* A rank's part of an operation. Elements are accessed only under the group's lock. */
struct sb__sim_part {
    struct sb__sim_operation *operation;
    bool here;    /* the rank's call has arrived: no planted failure has stopped the rank */
    uint64_t due; /* when the operation completes for the rank, in nanoseconds */
    sb_comm_buffer buffer;
};

/* An operation of all ranks: the n-th call of each rank. */
struct sb__sim_operation {
    struct sb__sim_operation *next; /* the operation that follows this operation */
    enum sb__sim_kind kind;
    sb_comm_op op;
    int32_t root;
    int32_t first; /* the rank that called first and defined the operation */
    int32_t arrived, left;
    struct sb__sim_part parts[]; /* one per rank */
};

struct sb__sim_group;

struct sb__sim_rank {
    struct sb__sim_group *group;
    int32_t rank;
    bool gone;
    uint64_t number;                    /* number of the rank's next operation */
    struct sb__sim_operation *upcoming; /* the rank's next operation; NULL until a rank begins it */
    uint64_t random;
    int64_t fail_nth; /* 0: no failure is planted */
    sb_sim_comm_failure mode;
};

struct sb__sim_group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t size, alive;
    uint64_t delay, limit;                  /* nanoseconds */
    bool broken;                            /* an operation has failed: no operation accesses
                                               elements any more */
    char cause[160];                        /* the message of the failure */
    struct sb__sim_operation *first, *last; /* a list; `first` is the oldest operation that some
                                               rank has not left */
    struct sb__sim_rank ranks[];
};

/* Executes an operation that all ranks have called. */
void sb__sim_combine(struct sb__sim_operation *operation, int32_t size);

#endif
