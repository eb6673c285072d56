/* Tasks of a rank (ranks.h) that must pass with every engine. `arg` is a workplace. */
#ifndef SB_TESTS_TASKS_H
#define SB_TESTS_TASKS_H

#include "ranks.h"

/* --- a net: blobs of several dtypes and sizes, whose diffs depend on the rank --- */

#define NET_BLOBS 12

extern const int64_t net_counts[NET_BLOBS];
extern const sb_dtype net_dtypes[NET_BLOBS];

struct net {
    sb_context *context; /* borrowed; NULL: the host */
    sb_blob *blobs[NET_BLOBS];
    sb_reducer *reducer;
};

void net_open(struct net *net, sb_context *context);
void net_close(struct net *net);

/* `head` must not be UNINITIALIZED. */
sb_status net_fill(struct net *net, int32_t rank, int blob, int32_t head, sb_error *err);
void net_fill_all(struct net *net, int32_t rank, int32_t head);
/* Returns whether a blob's diff is the result of `op` over the ranks `first` to `last` - 1. */
bool net_holds(struct net *net, int blob, sb_comm_op op, int32_t first, int32_t last);
bool net_all_hold(struct net *net, sb_comm_op op, int32_t first, int32_t last);

/* Creates a reducer that computes means. */
sb_status net_register(struct net *net, sb_comm *comm, size_t bucket_bytes, sb_error *err);
/* Marks the blobs as ready, from the last to the first, and waits. Stops at a failure. */
sb_status net_step(struct net *net, sb_error *err);

/* Returns element i of a rank's blob. Sums over a few ranks are exact in every dtype. */
double value_of_rank(sb_dtype dtype, int32_t rank, int blob, int64_t i);

struct workplace {
    const char *device;          /* the device of each rank's context; NULL if `contexts` is used */
    sb_context *const *contexts; /* a context for each rank */
    bool on_device;              /* the engine reduces device memory in place */
    int steps;                   /* steps for each bucket size in reduce_in_random_orders */
    uint64_t seed;
    uint64_t limit_ms; /* the communicator's time limit, in pause_longer_than_the_limit */
};

void reduce_values(sb_comm *comm, void *arg);
void reduce_halves(sb_comm *comm, void *arg);
void broadcast_bytes(sb_comm *comm, void *arg);
void reduce_blobs(sb_comm *comm, void *arg);
void broadcast_blobs(sb_comm *comm, void *arg);
/* Runs steps of a reducer. Each rank calls sb_reducer_ready in a random order. */
void reduce_in_random_orders(sb_comm *comm, void *arg);
/* Rank 0 pauses between two calls of a step. The other ranks then begin the step. */
void pause_longer_than_the_limit(sb_comm *comm, void *arg);
void end_in_a_step(sb_comm *comm, void *arg);

#endif
