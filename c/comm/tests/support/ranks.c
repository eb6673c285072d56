#include "ranks.h"

#include <pthread.h>
#include <stdatomic.h>

struct member {
    sb_comm *comm;
    void (*task)(sb_comm *comm, void *arg);
    void *arg;
};

static _Atomic int failures;

void ranks_expect(bool claim, const char *text, const char *file, int line) {
    if (claim)
        return;
    atomic_fetch_add(&failures, 1);
    (void)fprintf(stderr, "%s:%d: %s does not hold\n", file, line, text);
}

void ranks_expect_status(sb_status expected, sb_status found, const char *text, const char *file,
                         int line) {
    if (expected == found)
        return;
    atomic_fetch_add(&failures, 1);
    (void)fprintf(stderr, "%s:%d: %s gave %s\n", file, line, text, sb_status_name(found));
}

static void *run(void *user) {
    struct member *member = user;
    member->task(member->comm, member->arg);
    sb_comm_destroy(member->comm);
    return NULL;
}

void ranks_run_on(int32_t size, sb_comm *const *comms, void (*task)(sb_comm *comm, void *arg),
                  void *arg) {
    struct member members[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    assert_true(size <= RANKS_MAX);
    atomic_store(&failures, 0);
    for (int32_t i = 0; i < size; i++) {
        members[i] = (struct member){comms[i], task, arg};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &members[i]), 0);
    }
    for (int32_t i = 0; i < size; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&failures), 0);
}

void ranks_run(int32_t size, const sb_sim_comm_options *options,
               void (*task)(sb_comm *comm, void *arg), void *arg) {
    sb_error err;
    sb_comm *comms[RANKS_MAX];
    struct counting_allocator counting = COUNTING_ALLOCATOR_INIT;
    sb_context_options context_options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    context_options.allocator = counting_allocator_table(&counting);
    assert_true(size <= RANKS_MAX);
    assert_ok(sb_context_create(&context_options, &context, &err));
    assert_ok(sb_sim_comm_create(context, size, options, comms, &err));
    ranks_run_on(size, comms, task, arg);
    sb_context_release(context);
    counting_allocator_assert_clean(&counting);
}

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
