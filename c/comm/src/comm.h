/* The struct of sb_comm, and checked calls of an engine's slots. */
#ifndef SB_COMM_COMM_H
#define SB_COMM_COMM_H

#include <stdbool.h>
#include <syncblob/comm_engine.h>

struct sb_comm {
    sb_context *context;   /* NULL: the built-in one */
    int64_t process;       /* that created it */
    sb_comm_engine engine; /* a copy, its missing tail zero */
    void *end;             /* the result of `open` */
    int32_t rank, size;
    bool failed;   /* permanently */
    bool has_step; /* a reducer's step is in progress */
};

/* Checks that a collective may be called: FORKED, COMM_FAILURE, INVALID_ARGUMENT. `comm` may be
   NULL. The second function is for a reducer in its step. */
sb_status sb__comm_check(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_usable(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_op(sb_comm_op op, sb_error *err);
/* F32 and F64 are supported; F16 and BF16 if the engine supports them. */
sb_status sb__comm_check_dtype(const sb_comm *comm, sb_dtype dtype, sb_error *err);
sb_status sb__comm_check_root(const sb_comm *comm, int32_t root, sb_error *err);

/* The slots; with buffer->count 0 they return at once. A mean is only summed. */
sb_status sb__comm_all_reduce(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err);
sb_status sb__comm_broadcast(sb_comm *comm, int32_t root, const sb_comm_buffer *buffer,
                             sb_error *err);
/* The slot's result; 0 without the slot or without a device. */
int32_t sb__comm_takes(sb_comm *comm, sb_context *context);

/* Begins a request. `*out` is NULL before, and stays NULL if the operation completed at once. */
sb_status sb__comm_start(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                         sb_error *err);
/* For a request that has not completed. */
sb_status sb__comm_test(sb_comm *comm, void *request, bool *out_done, sb_error *err);
sb_status sb__comm_wait(sb_comm *comm, void *request, sb_error *err);
/* Whether the engine no longer accesses the elements; also for completed requests. */
bool sb__comm_abandon(sb_comm *comm, void *request);

/* Marks the communicator as failed, since this rank cannot complete an operation of the others.
   `err` (may be NULL) has the cause. Returns COMM_FAILURE. */
sb_status sb__comm_give_up(sb_comm *comm, sb_error *err);

/* The factor of a mean's sum; 1 for other ops. */
double sb__comm_factor(const sb_comm *comm, sb_comm_op op);
/* Multiplies host values by the factor. */
void sb__comm_scale(sb_dtype dtype, int64_t count, double factor, void *values);
static inline bool sb__comm_is_half(sb_dtype dtype) {
    return dtype == SB_DTYPE_F16 || dtype == SB_DTYPE_BF16;
}

#endif
