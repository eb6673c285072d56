/* Tests communicators over MPI; MPI's profiling interface makes calls fail. */
#include "tasks.h"

#include <pthread.h>
#include <syncblob/mpi.h>

static bool failed;
static int my_rank, num_ranks;
_Thread_local sb_error err;

void ranks_expect(bool claim, const char *text, const char *file, int line) {
    failed |= !claim;
    if (!claim)
        (void)fprintf(stderr, "%s:%d: rank %d: %s does not hold (%s)\n", file, line, my_rank, text,
                      err.message);
}

void ranks_expect_status(sb_status expected, sb_status found, const char *text, const char *file,
                         int line) {
    ranks_expect(expected == found, text, file, line);
}

uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

enum call { DUP, ALLREDUCE, BCAST, BARRIER, IALLREDUCE, TESTSOME, WAITSOME, CALLS, FREE, OTHER };

static int fail_nth[OTHER + 1], freed, flying; /* `flying` counts the requests in progress */

static bool is_due(enum call call) {
    return fail_nth[call] && --fail_nth[call] == 0;
}

/* Counts calls from threads that must not call MPI. */
static int forbidden;

static void check_thread(void) {
    int level, is_main;
    (void)PMPI_Query_thread(&level);
    (void)PMPI_Is_thread_main(&is_main);
    forbidden += level < MPI_THREAD_SERIALIZED && !is_main;
}

#define CALL(name, call, parameters, arguments)                                                    \
    int MPI_##name parameters {                                                                    \
        check_thread();                                                                            \
        freed += (call) == FREE;                                                                   \
        flying += (call) == IALLREDUCE;                                                            \
        return is_due(call) ? MPI_ERR_INTERN : PMPI_##name arguments;                              \
    }

CALL(Comm_dup, DUP, (MPI_Comm comm, MPI_Comm *out), (comm, out))
CALL(Comm_free, FREE, (MPI_Comm * comm), (comm))
CALL(Op_free, OTHER, (MPI_Op * op), (op))
CALL(Comm_test_inter, OTHER, (MPI_Comm comm, int *out), (comm, out))
CALL(Allreduce, ALLREDUCE,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (in, out, count, type, op, comm))
CALL(Bcast, BCAST, (void *bytes, int count, MPI_Datatype type, int root, MPI_Comm comm),
     (bytes, count, type, root, comm))
CALL(Barrier, BARRIER, (MPI_Comm comm), (comm))
CALL(Iallreduce, IALLREDUCE,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
      MPI_Request *request),
     (in, out, count, type, op, comm, request))

#define SOME(name, call)                                                                           \
    int MPI_##name(int count, MPI_Request requests[], int *num, int indices[],                     \
                   MPI_Status statuses[]) {                                                        \
        check_thread();                                                                            \
        if (is_due(call))                                                                          \
            return MPI_ERR_INTERN;                                                                 \
        const int code = PMPI_##name(count, requests, num, indices, statuses);                     \
        flying -= *num == MPI_UNDEFINED ? 0 : *num;                                                \
        return code;                                                                               \
    }

SOME(Testsome, TESTSOME)
SOME(Waitsome, WAITSOME)

static void every_engine_does_this(sb_comm *comm) {
    static const char *const devices[] = {"cpu", "sim:0"};
    static void (*const tasks[])(sb_comm * comm, void *arg) = {
        reduce_values, reduce_halves,   broadcast_bytes,
        reduce_blobs,  broadcast_blobs, reduce_in_random_orders};
    for (int d = 0; d < 2; d++) {
        struct workplace place = {.device = devices[d], .steps = 1 + 8 / num_ranks};
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
            tasks[i](comm, &place);
        expect(flying == 0);
    }
}

/* The same call fails on every rank: otherwise the other ranks would wait forever. */

static sb_status call(sb_comm *comm, enum call which, struct net *net) {
    double value = 1;
    switch (which) {
    case ALLREDUCE:
        return sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err);
    case BCAST:
        return sb_comm_broadcast_blobs(comm, net->blobs, NET_BLOBS, SB_DIFF, 0, &err);
    case BARRIER:
        return sb_comm_barrier(comm, &err);
    default:
        return net_step(net, &err);
    }
}

static void fail_a_call(enum call which, int nth) {
    sb_comm *comm;
    struct net net;
    net_open(&net, NULL);
    net_fill_all(&net, my_rank, SB_HEAD_AT_CPU);
    expect_ok(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err));
    expect_ok(net_register(&net, comm, 7000, &err));
    (void)PMPI_Barrier(MPI_COMM_WORLD);
    fail_nth[which] = nth;
    const sb_status st = call(comm, which, &net);
    const bool struck = fail_nth[which] == 0; /* false if the request completed before the wait */
    fail_nth[which] = 0;
    net_close(&net);
    expect_status(struck ? SB_ERR_COMM_FAILURE : SB_OK, st);
    expect(!struck || (err.device_code == MPI_ERR_INTERN && strstr(err.message, "MPI_")));
    expect_status(struck ? SB_ERR_COMM_FAILURE : SB_OK, sb_comm_barrier(comm, &err));
    const int before = freed;
    sb_comm_destroy(comm);
    expect(freed == before + !struck);
    (void)PMPI_Barrier(MPI_COMM_WORLD);
}

/* The later failures of MPI_Iallreduce occur between the pieces of a bucket. */
static void a_failure_of_mpi_is_reported_and_permanent(void) {
    for (enum call which = ALLREDUCE; which < CALLS; which++)
        for (int nth = 1; nth <= (which == IALLREDUCE ? 6 : 1); nth++)
            fail_a_call(which, nth);
}

static void an_invalid_communicator_is_refused(void) {
    sb_comm *comm = NULL;
    expect_status(SB_ERR_INVALID_ARGUMENT, sb_mpi_comm_create(NULL, MPI_COMM_WORLD, NULL, &err));
    expect_status(SB_ERR_INVALID_ARGUMENT, sb_mpi_comm_create(NULL, MPI_COMM_NULL, &comm, &err));
    fail_nth[DUP] = 1;
    expect_status(SB_ERR_COMM_FAILURE, sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err));
    expect(!comm);
}

static void run_elsewhere(void *(*run)(void *), void *user) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, run, user) == 0);
    expect(pthread_join(thread, NULL) == 0);
}

/* MPI may provide a higher thread level than the program has requested. */
static bool only_main_may_call(void) {
    int level;
    (void)MPI_Query_thread(&level);
    return level < MPI_THREAD_SERIALIZED;
}

static void *call_elsewhere(void *user) {
    const sb_status expected = only_main_may_call() ? SB_ERR_UNSUPPORTED : SB_OK;
    sb_comm *made = NULL;
    expect_status(expected, sb_comm_barrier(user, &err));
    expect_status(expected, sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &made, &err));
    sb_comm_destroy(made);
    return NULL;
}

static void another_thread_needs_a_higher_level(sb_comm *comm) {
    run_elsewhere(call_elsewhere, comm);
    expect_ok(sb_comm_barrier(comm, &err));
    expect(forbidden == 0);
}

static void *destroy_elsewhere(void *user) {
    sb_comm_destroy(user);
    return NULL;
}

/* Only a thread that may call MPI frees destroyed communicators. */
static void any_thread_may_destroy(void) {
    sb_comm *comms[3];
    const int before = freed, kept = only_main_may_call();
    for (int i = 0; i < 3; i++)
        expect_ok(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comms[i], &err));
    run_elsewhere(destroy_elsewhere, comms[0]);
    run_elsewhere(destroy_elsewhere, comms[1]);
    expect(freed == before + (kept ? 0 : 2));
    expect_ok(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comms[0], &err));
    expect(freed == before + 2);
    run_elsewhere(destroy_elsewhere, comms[0]);
    sb_comm_destroy(comms[2]);
    expect(freed == before + 4 && forbidden == 0);
}

int main(int argc, char **argv) {
    sb_comm *comm = NULL;
    MPI_Errhandler handler;
    int level;
    const int wanted =
        argc > 1 && !strcmp(argv[1], "--serialized") ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;
    expect_status(SB_ERR_INVALID_ARGUMENT, sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err));
    (void)MPI_Init_thread(&argc, &argv, wanted, &level);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    expect_ok(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err));
    expect(sb_comm_rank(comm) == my_rank && sb_comm_size(comm) == num_ranks);
    every_engine_does_this(comm);
    another_thread_needs_a_higher_level(comm);
    any_thread_may_destroy();
    sb_comm *kept = comm;
    a_failure_of_mpi_is_reported_and_permanent();
    an_invalid_communicator_is_refused();
    (void)MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    expect(handler == MPI_ERRORS_ARE_FATAL); /* the caller's handler is unchanged */
    (void)MPI_Finalize();
    const bool refused =
        sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err) == SB_ERR_INVALID_ARGUMENT &&
        sb_comm_barrier(kept, &err) == SB_ERR_UNSUPPORTED;
    sb_comm_destroy(kept);
    return failed || !refused;
}
