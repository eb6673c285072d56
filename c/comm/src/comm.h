/* Defines sb_comm, and declares functions that call an engine's slots and check the results. */
#ifndef SB_COMM_COMM_H
#define SB_COMM_COMM_H

#include <stdbool.h>
#include <syncblob/comm_engine.h>

struct sb_comm {
    sb_context *context;   /* NULL: the built-in context */
    int64_t process;       /* the process that created the handle */
    sb_comm_engine engine; /* a copy; missing members are zero */
    void *end;             /* the handle that the slot `open` returned */
    int32_t rank, size;
    bool failed;   /* every later collective fails */
    bool has_step; /* a reducer's step is in progress */
};

/* These functions check that a collective may be called. Errors: FORKED, COMM_FAILURE,
   INVALID_ARGUMENT. `comm` may be NULL. The function sb__comm_check_usable accepts a communicator
   with a reducer's step in progress, and sb__comm_check_process also accepts a communicator that
   has failed. */
sb_status sb__comm_check(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_usable(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_process(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_op(sb_comm_op op, sb_error *err);
/* Returns SB_OK for F32 and F64 and, if the engine reduces 16-bit floats, for F16 and BF16. */
sb_status sb__comm_check_dtype(const sb_comm *comm, sb_dtype dtype, sb_error *err);
sb_status sb__comm_check_root(const sb_comm *comm, int32_t root, sb_error *err);

/* These functions call the engine's slots of the same names, unless buffer->count is 0. For
   SB_COMM_MEAN the engine computes only the sum. */
sb_status sb__comm_all_reduce(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err);
sb_status sb__comm_broadcast(sb_comm *comm, int32_t root, const sb_comm_buffer *buffer,
                             sb_error *err);
/* Returns the result of the slot `takes`, or 0 if the slot is missing. The context must have a
   device. */
int32_t sb__comm_takes(sb_comm *comm, sb_context *context);

/* Begins a request. `*out`, which the caller sets to NULL, stays NULL if the operation has
   completed. */
sb_status sb__comm_start(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                         sb_error *err);
/* These functions test, or wait for, a request that has not completed. */
sb_status sb__comm_test(sb_comm *comm, void *request, bool *out_done, sb_error *err);
sb_status sb__comm_wait(sb_comm *comm, void *request, sb_error *err);
/* Abandons a request (may be NULL). Returns whether the engine no longer uses the elements. */
bool sb__comm_abandon(sb_comm *comm, void *request);

/* Marks the communicator as failed: this rank cannot complete an operation that other ranks have
   begun. `err` (may be NULL) describes the cause. The function changes only `err->code`. Returns
   COMM_FAILURE. */
sb_status sb__comm_disable(sb_comm *comm, sb_error *err);

/* Returns the factor by which the engine's result must be multiplied: 1 / size for SB_COMM_MEAN,
   else 1. */
double sb__comm_factor(const sb_comm *comm, sb_comm_op op);
void sb__comm_scale(sb_dtype dtype, int64_t count, double factor, void *values);
static inline bool sb__comm_is_half(sb_dtype dtype) {
    return dtype == SB_DTYPE_F16 || dtype == SB_DTYPE_BF16;
}

#endif
