/* sb_comm from inside: every call of an engine's slot goes through here. */
#ifndef SB_COMM_COMM_H
#define SB_COMM_COMM_H

#include <stdbool.h>
#include <syncblob/comm_engine.h>

struct sb_comm {
    sb_context *context;   /* NULL: the built-in one */
    int64_t process;       /* that made it */
    sb_comm_engine engine; /* a copy, its missing tail zero */
    void *end;             /* what `open` gave */
    int32_t rank, size;
    bool failed;   /* for good */
    bool has_step; /* of a reducer, which has it alone until the step ends */
};

/* Whether a collective may be called: FORKED, COMM_FAILURE, INVALID_ARGUMENT. `comm` may be NULL.
   The second is for a reducer in its step. */
sb_status sb__comm_check(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_usable(const sb_comm *comm, sb_error *err);
sb_status sb__comm_check_op(sb_comm_op op, sb_error *err);
/* F32 and F64 are reduced; F16 and BF16 where the engine does. */
sb_status sb__comm_check_dtype(const sb_comm *comm, sb_dtype dtype, sb_error *err);
sb_status sb__comm_check_root(const sb_comm *comm, int32_t root, sb_error *err);

/* The slots; buffer->count may be 0, which is done at once. A mean is summed alone. */
sb_status sb__comm_all_reduce(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err);
sb_status sb__comm_broadcast(sb_comm *comm, int32_t root, const sb_comm_buffer *buffer,
                             sb_error *err);
/* What the slot says, 0 where there is none, or no device. */
int32_t sb__comm_takes(sb_comm *comm, sb_context *context);

/* `out`, NULL before, gets a request. It stays NULL where all is done: the engine has none, or
   there was nothing to do. */
sb_status sb__comm_start(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                         sb_error *err);
/* Of what is not done yet. */
sb_status sb__comm_test(sb_comm *comm, void *request, bool *out_done, sb_error *err);
sb_status sb__comm_wait(sb_comm *comm, void *request, sb_error *err);
/* Whether the engine touches the elements no more; of one that is done, too. */
bool sb__comm_abandon(sb_comm *comm, void *request);

/* This rank cannot go on in what the others have begun: the communicator is of no use. `err`, which
   may be NULL, holds the story. Returns COMM_FAILURE. */
sb_status sb__comm_give_up(sb_comm *comm, sb_error *err);

/* What a mean's sum is multiplied by, 1 for other ops. */
double sb__comm_factor(const sb_comm *comm, sb_comm_op op);
/* Host memory of a dtype that is reduced times that. */
void sb__comm_scale(sb_dtype dtype, int64_t count, double factor, void *values);
static inline bool sb__comm_is_half(sb_dtype dtype) {
    return dtype == SB_DTYPE_F16 || dtype == SB_DTYPE_BF16;
}

#endif
