/* Tests communicators over MPI, at any number of ranks: their results, the arguments that they
   refuse, and the statuses for failures of MPI. MPI's profiling interface wraps MPI's calls, so
   that a test can make them fail. Prints at its end "N passed, M failed", summed over all ranks. */
#include "../support/halves.h"

#include <syncblob/mpi.h>
#include <syncblob/reducer.h>
#include <syncblob/syncblob.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- claims ----------------------------------------------------------------------------- */

static long passed, failed;
static sb_error err;
static int my_rank, num_ranks;

static void judge(bool holds, const char *text, int line) {
    passed += holds;
    failed += !holds;
    if (!holds)
        (void)fprintf(stderr, "test_mpi.c:%d: rank %d: %s does not hold (%s)\n", line, my_rank,
                      text, err.message);
}

#define expect(claim)              judge((claim), #claim, __LINE__)
#define expect_status(status, ...) judge((__VA_ARGS__) == (status), #__VA_ARGS__, __LINE__)
#define expect_ok(...)             expect_status(SB_OK, __VA_ARGS__)

/* --- calls of MPI that a test can make fail ----------------------------------------------- */

enum call { DUP, ALLREDUCE, BCAST, BARRIER, IALLREDUCE, TESTSOME, WAITSOME, CALLS };

static int fail_nth[CALLS], freed, flying; /* flying: the number of requests in progress */

static bool is_due(enum call call) {
    return fail_nth[call] && --fail_nth[call] == 0;
}

/* Counts calls from threads that may not call MPI. Only one thread calls MPI at a time. */
static int forbidden;

static void check_thread(void) {
    int level, is_main;
    (void)PMPI_Query_thread(&level);
    (void)PMPI_Is_thread_main(&is_main);
    forbidden += level < MPI_THREAD_SERIALIZED && !is_main;
}

#define OR_FAIL(call, ...)                                                                         \
    check_thread();                                                                                \
    return is_due(call) ? MPI_ERR_INTERN : __VA_ARGS__

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out) {
    OR_FAIL(DUP, PMPI_Comm_dup(comm, out));
}

int MPI_Comm_free(MPI_Comm *comm) {
    check_thread();
    freed++;
    return PMPI_Comm_free(comm);
}

int MPI_Op_free(MPI_Op *op) {
    check_thread();
    return PMPI_Op_free(op);
}

int MPI_Comm_test_inter(MPI_Comm comm, int *out) {
    check_thread();
    return PMPI_Comm_test_inter(comm, out);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    OR_FAIL(ALLREDUCE, PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Bcast(void *bytes, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    OR_FAIL(BCAST, PMPI_Bcast(bytes, count, type, root, comm));
}

int MPI_Barrier(MPI_Comm comm) {
    OR_FAIL(BARRIER, PMPI_Barrier(comm));
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request) {
    flying++;
    OR_FAIL(IALLREDUCE, PMPI_Iallreduce(in, out, count, type, op, comm, request));
}

static int seen(int code, const int *num) {
    flying -= *num == MPI_UNDEFINED ? 0 : *num;
    return code;
}

int MPI_Testsome(int count, MPI_Request requests[], int *num, int indices[],
                 MPI_Status statuses[]) {
    OR_FAIL(TESTSOME, seen(PMPI_Testsome(count, requests, num, indices, statuses), num));
}

int MPI_Waitsome(int count, MPI_Request requests[], int *num, int indices[],
                 MPI_Status statuses[]) {
    OR_FAIL(WAITSOME, seen(PMPI_Waitsome(count, requests, num, indices, statuses), num));
}

/* --- values ---------------------------------------------------------------------------------- */

static uint64_t random_of(uint64_t z) {
    z = (z + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double value_of(int rank, int64_t i) {
    return (float)((double)(random_of((uint64_t)rank * 1000003u + (uint64_t)i) >> 44) / 1024 - 500);
}

static double combined(sb_comm_op op, int64_t i) {
    double all = value_of(0, i);
    for (int rank = 1; rank < num_ranks; rank++) {
        const double value = value_of(rank, i);
        all = op == SB_COMM_MIN   ? fmin(all, value)
              : op == SB_COMM_MAX ? fmax(all, value)
                                  : all + value;
    }
    return op == SB_COMM_MEAN ? all / num_ranks : all;
}

static bool is_near(double found, double expected) {
    return fabs(found - expected) <= num_ranks * 6e-8 * 500 * num_ranks;
}

/* --- collectives ----------------------------------------------------------------------------- */

#define MOST 2500

static void every_op_combines_the_values_of_all_ranks(sb_comm *comm) {
    static const int64_t counts[] = {0, 1, 5, MOST};
    for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MAX; op++) {
        for (int c = 0; c < 4; c++) {
            float f32[MOST];
            double f64[MOST];
            bool near = true;
            for (int64_t i = 0; i < counts[c]; i++)
                f32[i] = (float)(f64[i] = value_of(my_rank, i));
            expect_ok(sb_comm_all_reduce(comm, op, SB_DTYPE_F32, counts[c], f32, &err));
            expect_ok(sb_comm_all_reduce(comm, op, SB_DTYPE_F64, counts[c], f64, &err));
            for (int64_t i = 0; i < counts[c]; i++)
                near = near && is_near((double)f32[i], combined(op, i)) &&
                       is_near(f64[i], combined(op, i));
            expect(near);
        }
    }
}

/* Ranks 2 and above do not change the result; they make MPI choose other algorithms. */
static void halves_are_rounded_to_the_nearest(sb_comm *comm) {
    for (int i = 0; i < HALF_ROWS && num_ranks > 1; i++) {
        const struct half_row *row = &half_rows[i];
        uint16_t values[MOST];
        bool holds = true;
        if (row->op == SB_COMM_MEAN && num_ranks != 2)
            continue;
        for (int64_t j = 0; j < MOST; j++)
            values[j] = my_rank == 0             ? row->one
                        : my_rank == 1           ? row->other
                        : row->op == SB_COMM_SUM ? 0
                                                 : row->one;
        expect_ok(sb_comm_all_reduce(comm, row->op, row->dtype, MOST, values, &err));
        for (int64_t j = 0; j < MOST; j++)
            holds = holds && half_row_holds(row, values[j]);
        expect(holds);
    }
}

static void every_rank_gets_the_bytes_of_the_root(sb_comm *comm) {
    char bytes[MOST], expected[MOST];
    for (int root = 0; root < num_ranks; root++) {
        memset(bytes, my_rank + 1, sizeof bytes);
        memset(expected, root + 1, sizeof expected);
        expect_ok(sb_comm_broadcast(comm, root, bytes, sizeof bytes, &err));
        expect(!memcmp(bytes, expected, sizeof bytes));
        expect_ok(sb_comm_barrier(comm, &err));
    }
    expect_status(SB_ERR_INVALID_ARGUMENT, sb_comm_broadcast(comm, num_ranks, bytes, 1, &err));
}

/* --- blobs ----------------------------------------------------------------------------------- */

#define BLOBS 7

static const int64_t counts[BLOBS] = {3, 1700, 0, 1, 64, 5, 333};

static sb_context *context;
static sb_blob *blobs[BLOBS];

static void blobs_open(const char *device) {
    const sb_context_options options = {.struct_size = sizeof options, .device = device};
    expect_ok(sb_context_create(&options, &context, &err));
    for (int i = 0; i < BLOBS; i++)
        expect_ok(sb_blob_create_shaped(context, SB_DTYPE_F32, &counts[i], 1, &blobs[i], &err));
}

static void blobs_close(void) {
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(blobs[i]);
    sb_context_release(context);
}

static void blobs_fill(void) {
    for (int b = 0; b < BLOBS; b++) {
        void *diff;
        const void *on_device;
        expect_ok(sb_blob_mutable_cpu(blobs[b], SB_DIFF, &diff, &err));
        for (int64_t i = 0; i < counts[b]; i++)
            ((float *)diff)[i] = (float)value_of(my_rank, b * 10000 + i);
        if (sb_context_has_device(context) && b % 2)
            expect_ok(sb_blob_gpu(blobs[b], SB_DIFF, &on_device, &err));
    }
}

static bool blobs_hold_means(void) {
    for (int b = 0; b < BLOBS; b++) {
        const void *diff;
        expect_ok(sb_blob_cpu(blobs[b], SB_DIFF, &diff, &err));
        for (int64_t i = 0; i < counts[b]; i++)
            if (!is_near((double)((const float *)diff)[i], combined(SB_COMM_MEAN, b * 10000 + i)))
                return false;
    }
    return true;
}

static void blobs_are_reduced_and_sent(sb_comm *comm) {
    static const char *const devices[] = {"cpu", "sim:0"};
    for (int d = 0; d < 2; d++) {
        blobs_open(devices[d]);
        blobs_fill();
        expect_ok(sb_comm_all_reduce_blobs(comm, blobs, BLOBS, SB_DIFF, SB_COMM_MEAN, &err));
        expect(blobs_hold_means());
        if (my_rank == num_ranks - 1)
            blobs_fill();
        expect_ok(sb_comm_broadcast_blobs(comm, blobs, BLOBS, SB_DIFF, num_ranks - 1, &err));
        const void *diff;
        expect_ok(sb_blob_cpu(blobs[1], SB_DIFF, &diff, &err));
        expect(((const float *)diff)[7] == (float)value_of(num_ranks - 1, 10007));
        blobs_close();
    }
}

static void every_order_of_ready_gives_the_same_sums(sb_comm *comm) {
    static const size_t buckets[] = {0, 300, 7000, SIZE_MAX};
    uint64_t seed = (uint64_t)my_rank;
    for (int b = 0; b < 4; b++) {
        sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
        sb_reducer *reducer = NULL;
        blobs_open(b % 2 ? "sim:0" : "cpu");
        options.bucket_bytes = buckets[b];
        expect_ok(sb_reducer_create(comm, blobs, BLOBS, &options, &reducer, &err));
        for (int step = 0; step < 1 + 12 / num_ranks; step++) {
            blobs_fill();
            const uint64_t from = (seed = random_of(seed)) % BLOBS, by = 1 + seed / BLOBS % 6;
            for (uint64_t i = 0; i < BLOBS; i++) /* 7 is prime, so each blob occurs once */
                expect_ok(sb_reducer_ready(reducer, blobs[(from + i * by) % BLOBS], &err));
            expect_ok(sb_reducer_wait(reducer, &err));
            expect(blobs_hold_means());
            expect(flying == 0);
        }
        sb_reducer_destroy(reducer);
        blobs_close();
    }
}

static void every_rank_reports_a_difference(sb_comm *comm) {
    const int64_t other[] = {2, 3};
    sb_reducer *reducer = NULL;
    blobs_open("cpu");
    if (my_rank == num_ranks - 1)
        expect_ok(sb_blob_reshape(blobs[5], other, 2, NULL, &err));
    expect_status(num_ranks == 1 ? SB_OK : SB_ERR_SHAPE_MISMATCH,
                  sb_reducer_create(comm, blobs, BLOBS, NULL, &reducer, &err));
    expect(num_ranks == 1 || strstr(err.message, "blob 5 is f32 (5) at rank 0, f32 (2 3) at rank"));
    sb_reducer_destroy(reducer);
    blobs_close();
}

/* --- failures: the same call fails on every rank, so that no rank waits for ever ------------- */

static sb_status call(sb_comm *comm, enum call which) {
    double value = 1;
    switch (which) {
    case ALLREDUCE:
        return sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err);
    case BCAST:
        return sb_comm_broadcast_blobs(comm, blobs, BLOBS, SB_DIFF, 0, &err);
    default:
        return sb_comm_barrier(comm, &err);
    }
}

static sb_status step(sb_comm *comm, enum call which, int nth) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    sb_reducer *reducer;
    sb_status st;
    options.bucket_bytes = 7000;
    expect_ok(sb_reducer_create(comm, blobs, BLOBS, &options, &reducer, &err));
    (void)PMPI_Barrier(MPI_COMM_WORLD);
    fail_nth[which] = nth;
    st = SB_OK;
    for (int i = BLOBS; i-- && st == SB_OK;)
        st = sb_reducer_ready(reducer, blobs[i], &err);
    if (st == SB_OK)
        st = sb_reducer_wait(reducer, &err);
    sb_reducer_destroy(reducer);
    return st;
}

static void fail_a_call(enum call which, int nth) {
    sb_comm *comm;
    blobs_open("cpu");
    blobs_fill();
    expect_ok(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err));
    fail_nth[which] = which < IALLREDUCE;
    const sb_status st = which < IALLREDUCE ? call(comm, which) : step(comm, which, nth);
    const bool struck = fail_nth[which] == 0; /* false if the request completed before the wait */
    fail_nth[which] = 0;
    expect_status(struck ? SB_ERR_COMM_FAILURE : SB_OK, st);
    expect(!struck || (err.device_code == MPI_ERR_INTERN && strstr(err.message, "MPI_")));
    expect_status(struck ? SB_ERR_COMM_FAILURE : SB_OK, sb_comm_barrier(comm, &err));
    const int before = freed;
    sb_comm_destroy(comm);
    expect(freed == before + !struck);
    blobs_close();
    (void)PMPI_Barrier(MPI_COMM_WORLD);
}

/* The later failures of MPI_Iallreduce occur between the pieces of a bucket. */
static void a_failure_of_mpi_is_reported_and_permanent(void) {
    for (enum call which = ALLREDUCE; which < CALLS; which++)
        for (int nth = 1; nth <= (which == IALLREDUCE ? 4 : 1); nth++)
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

/* Communicators that other threads have destroyed are freed later by a thread that may call MPI. */
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
    every_op_combines_the_values_of_all_ranks(comm);
    halves_are_rounded_to_the_nearest(comm);
    every_rank_gets_the_bytes_of_the_root(comm);
    blobs_are_reduced_and_sent(comm);
    every_order_of_ready_gives_the_same_sums(comm);
    every_rank_reports_a_difference(comm);
    another_thread_needs_a_higher_level(comm);
    any_thread_may_destroy();
    sb_comm *kept = comm;
    a_failure_of_mpi_is_reported_and_permanent();
    an_invalid_communicator_is_refused();
    (void)MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    expect(handler == MPI_ERRORS_ARE_FATAL); /* the caller's handler is unchanged */
    long ours[2] = {passed, failed}, all[2];
    (void)PMPI_Reduce(ours, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (my_rank == 0)
        (void)printf("%ld passed, %ld failed\n", all[0], all[1]);
    (void)MPI_Finalize();
    const bool refused =
        sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err) == SB_ERR_INVALID_ARGUMENT &&
        sb_comm_barrier(kept, &err) == SB_ERR_UNSUPPORTED;
    sb_comm_destroy(kept);
    return failed || !refused;
}
