/* Tests communicators over a fake NCCL, each rank on its own thread. */
#include "child.h"
#include "fail_calloc.h"
#include "fixture.h"
#include "plain.h"
#include "tasks.h"

#include "../../src/comm.h"

#include <nccl.h>
#include <stdio.h>
#include <string.h>
#include <syncblob/nccl.h>

#define MOST        4
#define SHORT_LIMIT 500 /* milliseconds; the time limit if a rank is missing */
#define FAULT_LIMIT 30  /* the time limit if a rank may be missing */
#define LONG_LIMIT  60000

struct team {
    struct workplace place; /* the argument of the tasks in tasks.h; must be first */
    int32_t size;
    sb_context *contexts[MOST];
    sb_comm *comms[MOST];
    uint8_t id[SB_NCCL_ID_BYTES];
    bool is_lost; /* the test has lost a device, or makes all calls of a function fail */
};

static void team_open(struct team *team) {
    *team = (struct team){.size = 0};
}

static void open_contexts(struct team *team, int32_t size) {
    *team = (struct team){
        {.contexts = team->contexts, .on_device = true, .steps = 2, .limit_ms = SHORT_LIMIT},
        .size = size};
    fake_set(FAKE_DEVICES, MOST);
    for (int32_t i = 0; i < size; i++) {
        char device[16];
        (void)snprintf(device, sizeof device, "cuda:%d", i);
        assert_ok(cuda_context(device, &team->contexts[i], &err));
    }
}

static void open_team(struct team *team, int32_t size, uint32_t limit) {
    open_contexts(team, size);
    assert_ok(sb_nccl_comm_create_all(team->contexts, size, limit, team->comms, &err));
}

/* The caller must first destroy the communicators. */
static void team_close(struct team *team) {
    for (int32_t i = 0; i < team->size; i++)
        sb_context_release(team->contexts[i]);
    team->size = 0;
    assert_int_equal(fake_nccl_live(), 0);
    if (team->is_lost)
        fake_heal();
    assert_untouched();
}

static void run_team(struct team *team, void (*task)(sb_comm *comm, void *arg)) {
    ranks_run_on(team->size, team->comms, task, team);
    team_close(team);
}

static void run_ranks(int32_t size, uint32_t limit, void (*task)(sb_comm *comm, void *arg)) {
    struct team team;
    open_team(&team, size, limit);
    run_team(&team, task);
}

static void end_comms_and_close(struct team *team) {
    for (int32_t i = 0; i < team->size; i++)
        sb_comm_destroy(team->comms[i]);
    team_close(team);
}

/* This test must run first: the libraries allocate memory when they are loaded. */
TEST_ON(team, a_failed_allocation_leaves_no_rank) {
    int64_t failures = 0;
    double value = 1;
    open_contexts(f, 3);
    const int64_t finalized = fake_calls("ncclCommFinalize");
    for (int64_t nth = 1;; nth += failures != 2) { /* repeats nth 2 with loaded libraries */
        fail_calloc(nth);
        const sb_status st = sb_nccl_comm_create_all(f->contexts, 3, LONG_LIMIT, f->comms, &err);
        if (!calloc_has_failed()) {
            assert_ok(st);
            break;
        }
        failures++;
        assert_int_equal(st, SB_ERR_OUT_OF_MEMORY);
        for (int r = 0; r < 3; r++)
            assert_null(f->comms[r]);
        assert_int_equal(fake_nccl_live(), 0);
        assert_int_equal(fake_calls("ncclCommFinalize"), finalized);
    }
    assert_true(failures >= 10); /* 2 libraries, 2 lists, 3 NCCL handles, 3 communicators */
    fail_calloc(1);
    assert_status(SB_ERR_OUT_OF_MEMORY,
                  sb_comm_all_reduce(f->comms[0], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err));
    run_team(f, reduce_values);
}

TEST(sums_are_those_of_all_ranks) {
    static void (*const tasks[])(sb_comm * comm, void *arg) = {reduce_values, broadcast_bytes,
                                                               reduce_blobs, broadcast_blobs};
    for (int32_t size = 1; size <= MOST; size++)
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
            run_ranks(size, LONG_LIMIT, tasks[i]);
}

/* NCCL stores directly into a peer's memory, which must therefore be accessible. */
TEST(peers_get_access_to_pools) {
    for (int how = 0; how < 3; how++) { /* without pools, without peers, with both */
        struct team team;
        const int64_t given = fake_calls("cuMemPoolSetAccess");
        fake_set(FAKE_POOLS, how > 0);
        fake_set(FAKE_PEERS, how != 1);
        open_team(&team, 3, LONG_LIMIT);
        run_team(&team, reduce_blobs);
        assert_int_equal(fake_calls("cuMemPoolSetAccess") > given, how == 2);
    }
}

TEST(a_reducer_takes_any_order) {
    for (int32_t size = 1; size <= MOST; size++)
        run_ranks(size, LONG_LIMIT, reduce_in_random_orders);
}

struct kernel {
    CUdeviceptr ptr;
    int32_t rank;
};

static void write_values(void *user) {
    const struct kernel *kernel = user;
    float *values = fake_address(kernel->ptr, (size_t)net_counts[1] * sizeof *values);
    for (int64_t i = 0; values && i < net_counts[1]; i++)
        values[i] = (float)value_of_rank(net_dtypes[1], kernel->rank, 1, i);
}

static void reduce_after_kernels(sb_comm *comm, void *arg) {
    const struct team *team = arg;
    const int32_t rank = sb_comm_rank(comm);
    CUcontext primary = NULL, old = NULL;
    sb_stream stream = NULL;
    expect(cuDevicePrimaryCtxRetain(&primary, rank) == CUDA_SUCCESS);
    expect_ok(sb_context_stream(team->contexts[rank], &stream, &err));
    for (int on_default = 0; on_default < 2; on_default++) {
        struct net net;
        void *values = NULL;
        net_open(&net, team->contexts[rank]);
        expect_ok(sb_blob_overwrite_gpu(net.blobs[1], SB_DIFF, &values, &err));
        struct kernel kernel = {(CUdeviceptr)(uintptr_t)values, rank};
        expect(cuCtxPushCurrent(primary) == CUDA_SUCCESS);
        CUgraph graph = NULL;
        expect(cuStreamBeginCapture((CUstream)stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
               CUDA_SUCCESS);
        expect_status(SB_ERR_UNSUPPORTED,
                      sb_comm_all_reduce_blobs(comm, &net.blobs[1], 1, SB_DIFF, SB_COMM_SUM, &err));
        expect(cuStreamEndCapture((CUstream)stream, &graph) == CUDA_SUCCESS &&
               cuGraphDestroy(graph) == CUDA_SUCCESS);
        expect(fake_launch(on_default ? NULL : (CUstream)stream, write_values, &kernel) ==
               CUDA_SUCCESS);
        expect(cuCtxPopCurrent(&old) == CUDA_SUCCESS);
        expect_ok(sb_comm_all_reduce_blobs(comm, &net.blobs[1], 1, SB_DIFF, SB_COMM_SUM, &err));
        expect(net_holds(&net, 1, SB_COMM_SUM, 0, team->size));
        net_close(&net);
    }
    expect(cuDevicePrimaryCtxRelease(rank) == CUDA_SUCCESS);
}

TEST(a_reduction_runs_after_queued_work) {
    run_ranks(3, LONG_LIMIT, reduce_after_kernels);
}

static void reduce_elsewhere(sb_comm *comm, void *arg) {
    const char *const devices[] = {"cuda:1", "sim:0"};
    for (int i = 0; i < 2; i++) {
        sb_context *context = NULL;
        struct net net;
        expect_ok(cuda_context(devices[i], &context, &err));
        net_open(&net, context);
        expect_ok(net_fill(&net, 0, 1, SB_HEAD_AT_GPU, &err));
        expect_ok(sb_comm_all_reduce_blobs(comm, &net.blobs[1], 1, SB_DIFF, SB_COMM_SUM, &err));
        expect(net_holds(&net, 1, SB_COMM_SUM, 0, 1));
        net_close(&net);
        sb_context_release(context);
    }
}

TEST(blobs_of_other_devices_go_through_the_host) {
    run_ranks(1, LONG_LIMIT, reduce_elsewhere);
}

static void make_by_id(sb_comm *other, void *arg) {
    struct team *team = arg;
    const int32_t rank = sb_comm_rank(other);
    const bool all_come = sb_comm_size(other) == team->size;
    expect_status(all_come ? SB_OK : SB_ERR_COMM_FAILURE,
                  sb_nccl_comm_create(team->contexts[rank], team->id, rank, team->size,
                                      all_come ? LONG_LIMIT : SHORT_LIMIT, &team->comms[rank],
                                      &err));
    expect(all_come || (strstr(err.message, "not all of 3 ranks connected within 500 ms") &&
                        err.device_code == 0));
}

TEST_ON(team, ranks_connect_by_an_id_unless_one_does_not_come) {
    open_contexts(f, 3);
    for (int32_t come = 2; come <= 3; come++) {
        assert_ok(sb_nccl_id_create(f->id, &err));
        ranks_run(come, NULL, make_by_id, f);
    }
    run_team(f, reduce_values);
}

struct obstacle {
    enum { NOTHING, NO_CONTEXT, CUT_ID = 2, CUT = 3, NO_RANK, IN_NCCL } what;
    const char *function; /* the function of NCCL whose first call fails, or NULL */
    const char *text;     /* a part of the error messages at the other ranks */
    struct team *team;
};

static void make_over_obstacle(sb_comm *other, void *arg) {
    const struct obstacle *obstacle = arg;
    const int32_t rank = sb_comm_rank(other);
    const bool has_context = obstacle->what != NO_CONTEXT || rank != 1;
    sb_comm *comm = NULL;
    sb_error err, poison;
    if (obstacle->what == NO_RANK && rank == 1)
        return;
    if (rank == 1 && (obstacle->what == CUT_ID || obstacle->what == CUT)) /* operation 2 or 3 */
        expect_ok(sb_sim_comm_fail(other, obstacle->what, SB_SIM_COMM_FAIL_NOW, &err));
    support_poison_error(&err);
    poison = err;
    const sb_status st =
        sb_nccl_comm_create_over(has_context ? obstacle->team->contexts[rank] : NULL, other,
                                 SHORT_LIMIT, &comm, rank == 2 ? NULL : &err);
    if (obstacle->what == NOTHING) {
        expect_ok(st);
        expect(comm != NULL);
        expect(memcmp(&err, &poison, sizeof err) == 0);
        if (comm)
            reduce_blobs(comm, obstacle->team);
        sb_comm_destroy(comm);
        return;
    }
    expect(st == (has_context ? SB_ERR_COMM_FAILURE : SB_ERR_INVALID_ARGUMENT) && !comm);
    expect(rank == 2 || (err.code == st &&
                         strstr(err.message, has_context ? obstacle->text : "context is NULL")));
    if (obstacle->what == IN_NCCL)
        expect_ok(sb_comm_barrier(other, &err));
}

TEST(ranks_connect_through_another_communicator_or_all_fail) {
    static const struct obstacle rows[] = {{NOTHING, NULL, "", NULL},
                                           {NO_CONTEXT, NULL, "another rank cannot use NCCL", NULL},
                                           {NO_RANK, NULL, "has ended", NULL},
                                           {CUT_ID, NULL, "", NULL},
                                           {CUT, NULL, "", NULL},
                                           {IN_NCCL, "ncclCommInitRankConfig", "", NULL},
                                           {IN_NCCL, "ncclGroupEnd", "", NULL},
                                           {IN_NCCL, "ncclCommGetAsyncError", "", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct obstacle obstacle = rows[i];
        struct team team;
        const int64_t ids = fake_calls("ncclGetUniqueId");
        obstacle.team = &team;
        open_contexts(&team, 3);
        fake_fail(obstacle.function, obstacle.function != NULL, FAKE_NOW, ncclSystemError);
        ranks_run(3, NULL, make_over_obstacle, &obstacle);
        assert_true(!obstacle.function == !fake_fired());
        if (i == 0)
            assert_int_equal(fake_calls("ncclGetUniqueId"), ids + 1);
        team_close(&team);
    }
}

/* The device "cuda:0" belongs to a caller's backend named "cuda". */
TEST_ON(team, contexts_of_other_devices_are_refused) {
    static const char *const devices[] = {"cpu", "sim:0", "cuda:0"};
    struct plain plain = {0};
    sb_backend table = plain_backend(&plain);
    open_contexts(f, 1);
    assert_ok(sb_nccl_id_create(f->id, &err));
    table.name = "cuda";
    for (int i = 0; i < 3; i++) {
        char words[80];
        sb_context *other;
        sb_comm *comm, *two[2];
        assert_ok(i < 2 ? cuda_context(devices[i], &other, &err)
                        : create_with_backend(&table, devices[i], &other, &err));
        sb_context *const last[] = {f->contexts[0], other}, *const first[] = {last[1], last[0]};
        (void)snprintf(words, sizeof words, "the library's CUDA backend, not on \"%s\"",
                       devices[i]);
        assert_reports(SB_ERR_NO_DEVICE, sb_nccl_comm_create(other, f->id, 0, 1, 0, &comm, &err),
                       words);
        assert_int_equal(sb_nccl_comm_create_all(last, 2, 0, two, &err), SB_ERR_NO_DEVICE);
        assert_int_equal(sb_nccl_comm_create_all(first, 2, 0, two, &err), SB_ERR_NO_DEVICE);
        sb_context_release(other);
    }
}

TEST_ON(team, invalid_ranks_are_refused) {
    static const struct {
        int32_t rank, size;
    } rows[] = {{1, 1}, {2, 1}, {-1, 2}, {0, 0}, {-2, -1}};
    sb_comm *comm, *two[2];
    open_contexts(f, 1);
    assert_ok(sb_nccl_id_create(f->id, &err));
    sb_context *const same[] = {f->contexts[0], f->contexts[0]};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(
            sb_nccl_comm_create(f->contexts[0], f->id, rows[i].rank, rows[i].size, 0, &comm, &err),
            SB_ERR_INVALID_ARGUMENT);
    assert_int_equal(sb_nccl_comm_create_all(same, 0, 0, two, &err), SB_ERR_INVALID_ARGUMENT);
    assert_reports(SB_ERR_COMM_FAILURE, sb_nccl_comm_create_all(same, 2, SHORT_LIMIT, two, &err),
                   "ncclCommInitRankConfig: invalid usage");
    assert_int_equal(err.device_code, ncclInvalidUsage);
    assert_ok(sb_nccl_comm_create(f->contexts[0], f->id, 0, 1, 0, &comm, &err));
    sb_comm_destroy(comm);
}

TEST_ON(team, a_lost_device_is_not_called) {
    const int64_t three = 3;
    sb_blob *blob;
    sb_comm *comm = NULL;
    void *p;
    open_contexts(f, 1);
    assert_ok(sb_nccl_id_create(f->id, &err));
    assert_ok(sb_blob_create_shaped(f->contexts[0], SB_DTYPE_F32, &three, 1, &blob, &err));
    fake_fail("cuStreamSynchronize", 1, FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_mutable_gpu(blob, SB_DATA, &p, &err));
    const int64_t calls = fake_calls(NULL);
    assert_status(SB_ERR_DEVICE_LOST,
                  sb_nccl_comm_create(f->contexts[0], f->id, 0, 1, 0, &comm, &err));
    assert_status(SB_ERR_DEVICE_LOST, sb_nccl_comm_create_all(f->contexts, 1, 0, f->comms, &err));
    assert_int_equal(fake_calls(NULL), calls);
    assert_null(comm);
    sb_blob_destroy(blob);
    f->is_lost = true;
}

TEST_ON(team, a_loss_that_creation_finds_is_a_failure) {
    open_contexts(f, 1);
    fake_fail("cuStreamCreate", 1, FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_FAILURE,
                  sb_nccl_comm_create_all(f->contexts, 1, 0, f->comms, &err));
    assert_ok(sb_context_device_status(f->contexts[0]));
    f->is_lost = true;
}

/* NCCL needs the device even for host memory. */
TEST_ON(team, calls_after_a_loss_change_no_blob) {
    double value = 5;
    struct net net;
    open_team(f, 2, FAULT_LIMIT);
    net_open(&net, f->contexts[0]);
    sb_blob *const blobs[] = {net.blobs[1], net.blobs[4]};
    assert_ok(net_fill(&net, 0, 1, SB_HEAD_SYNCED, &err));
    assert_ok(net_fill(&net, 0, 4, SB_HEAD_AT_CPU, &err));
    fake_fail("cuMemcpyHtoDAsync_v2", 1, FAKE_STICKY, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(SB_ERR_DEVICE_LOST, net_fill(&net, 0, 3, SB_HEAD_AT_GPU, &err));
    assert_status(SB_ERR_DEVICE_LOST,
                  sb_comm_all_reduce_blobs(f->comms[0], blobs, 2, SB_DIFF, SB_COMM_SUM, &err));
    for (int rank = 0; rank < 2; rank++) /* rank 0 comes first: rank 1 would wait for rank 0 */
        assert_status(
            rank == 0 ? SB_ERR_DEVICE_LOST : SB_ERR_COMM_FAILURE,
            sb_comm_all_reduce(f->comms[rank], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err));
    assert_true(net_holds(&net, 1, SB_COMM_SUM, 0, 1) && net_holds(&net, 4, SB_COMM_SUM, 0, 1));
    net_close(&net);
    f->is_lost = true;
    end_comms_and_close(f);
}

static void use_in_child(void *arg) {
    struct team *f = arg;
    uint8_t id[SB_NCCL_ID_BYTES] = {0};
    sb_comm *comm;
    child_wants(sb_nccl_id_create(id, &err) == SB_ERR_FORKED);
    child_wants(sb_nccl_comm_create(f->contexts[0], id, 0, 1, 0, &comm, &err) == SB_ERR_FORKED);
    child_wants(sb_nccl_comm_create_all(f->contexts, 1, 0, &comm, &err) == SB_ERR_FORKED);
    child_wants(sb_comm_barrier(f->comms[0], &err) == SB_ERR_FORKED);
}

TEST_ON(team, a_forked_child_cannot_use_nccl) {
    open_team(f, 1, LONG_LIMIT);
    in_child(use_in_child, f);
    run_team(f, reduce_values);
}

static sb_status step(struct net *net, sb_comm *comm, sb_error *err) {
    sb_status st = SB_OK;
    for (int b = 0; b < NET_BLOBS && st == SB_OK; b++)
        st = net_fill(net, sb_comm_rank(comm), b, b == 4 ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU, err);
    if (st == SB_OK)
        st = net_register(net, comm, 0, err);
    return st == SB_OK ? net_step(net, err) : st;
}

TEST_ON(team, an_asynchronous_error_is_reported) {
    double value = 1;
    open_team(f, 1, LONG_LIMIT);
    fake_nccl_fail(0, 1, ncclRemoteError);
    assert_reports(SB_ERR_COMM_FAILURE,
                   sb_comm_all_reduce(f->comms[0], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err),
                   "remote process exited");
    assert_int_equal(err.device_code, ncclRemoteError);
    end_comms_and_close(f);
}

TEST(the_limit_counts_only_waits) {
    run_ranks(2, SHORT_LIMIT, pause_longer_than_the_limit);
}

TEST(a_reducer_may_be_destroyed_in_its_step) {
    run_ranks(2, SHORT_LIMIT, end_in_a_step);
}

TEST_ON(team, a_transient_failure_leaks_no_memory) {
    double value = 1;
    open_team(f, 2, FAULT_LIMIT);
    fake_fail("cuEventRecord", 3, FAKE_NOW, CUDA_ERROR_UNKNOWN);
    assert_reports(SB_ERR_COMM_FAILURE,
                   sb_comm_all_reduce(f->comms[0], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err),
                   "rank 0 of 2 waited 30 ms for ncclAllReduce of 1 elements: another rank is "
                   "late, has ended, or makes another call");
    assert_int_equal(err.device_code, 0);
    fake_fail(NULL, 0, FAKE_NOW, 0);
    end_comms_and_close(f);
}

TEST_ON(team, requests_are_abandoned_in_any_order) {
    static const int order[] = {1, 2, 0};
    const sb_comm_engine *slot;
    double values[3] = {0};
    void *requests[3];
    open_team(f, 2, LONG_LIMIT);
    void *end = f->comms[0]->end;
    slot = &f->comms[0]->engine;
    const int64_t posted = fake_calls("ncclAllReduce");
    for (int i = 0; i < 3; i++) {
        const sb_comm_buffer buffer = {.ptr = &values[i], .count = 1, .dtype = SB_DTYPE_F64};
        assert_ok(slot->start(end, SB_COMM_SUM, &buffer, &requests[i], &err));
        assert_true(fake_calls("ncclAllReduce") > posted);
    }
    for (int i = 0; i < 3; i++)
        assert_true(slot->abandon(end, requests[order[i]]));
    const sb_comm_buffer buffer = {.ptr = values, .count = 1, .dtype = SB_DTYPE_F64};
    assert_error(SB_ERR_COMM_FAILURE, slot->start(end, SB_COMM_SUM, &buffer, &requests[0], &err),
                 "a request was abandoned");
    assert_int_equal(err.device_code, 0);
    end_comms_and_close(f);
}

/* A wait reports the failure of a copy only once. */
TEST_ON(team, a_copy_that_fails_in_the_queue_is_reported) {
    static const char *const copies[] = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"};
    for (int i = 0; i < 2; i++) {
        double value = 1;
        open_team(f, 1, LONG_LIMIT);
        fake_fail(copies[i], 1, FAKE_TRANSIENT, CUDA_ERROR_UNKNOWN);
        assert_reports(SB_ERR_COMM_FAILURE,
                       sb_comm_all_reduce(f->comms[0], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err),
                       "cuda:0: cuStreamSynchronize: ");
        end_comms_and_close(f);
    }
}

struct solo {
    struct team team;
    struct net net; /* the diff of blob 1 is on the device */
};

static sb_status reduce_value(struct solo *solo, sb_error *err) {
    double value = 3;
    return sb_comm_all_reduce(solo->team.comms[0], SB_COMM_SUM, SB_DTYPE_F64, 1, &value, err);
}

static sb_status send_bytes(struct solo *solo, sb_error *err) {
    char bytes[16] = "";
    return sb_comm_broadcast(solo->team.comms[0], 0, bytes, sizeof bytes, err);
}

static sb_status reduce_blob(struct solo *solo, sb_error *err) {
    return sb_comm_all_reduce_blobs(solo->team.comms[0], &solo->net.blobs[1], 1, SB_DIFF,
                                    SB_COMM_SUM, err);
}

/* SENT: data may have been sent before the call fails. UNSENT, WISHED: the CUDA backend fails
   before data is sent; for WISHED, the caller ignores UNSUPPORTED. COPIED: a copy of the engine
   fails before data is sent. */
enum when { WISHED, UNSENT, COPIED, SENT };

struct failing {
    sb_status (*run)(struct solo *solo, sb_error *err);
    const char *function, *text;
    int64_t first, last;
    enum when when;
};

static const struct failing failing[] = {
    {reduce_value, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 1, 1, UNSENT},
    {reduce_value, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 6, 6, COPIED},
    {reduce_value, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 7, 10, SENT},
    {reduce_value, "cuMemAllocFromPoolAsync", "cuda:0: cuMemAllocFromPoolAsync: ", 1, 1, UNSENT},
    {reduce_value, "cuMemcpyHtoDAsync_v2", "cuda:0: cuMemcpyHtoDAsync: ", 1, 1, COPIED},
    {reduce_value, "cuMemcpyDtoHAsync_v2", "cuda:0: cuMemcpyDtoHAsync: ", 1, 1, SENT},
    {reduce_value, "cuEventCreate", "cuda:0: cuEventCreate: ", 2, 2, SENT},
    {reduce_value, "cuEventRecord", "cuda:0: cuEventRecord: ", 2, 2, SENT},
    {reduce_value, "cuEventQuery", "cuda:0: cuEventQuery: ", 1, 1, SENT},
    {reduce_value, "ncclAllReduce", "ncclAllReduce: ", 1, 1, SENT},
    {reduce_value, "ncclCommGetAsyncError", "NCCL: ", 1, 4, SENT},
    {send_bytes, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 7, 9, SENT},
    {send_bytes, "ncclBroadcast", "ncclBroadcast: ", 1, 1, SENT},
    {reduce_blob, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 2, 2, WISHED},
    {reduce_blob, "cuStreamIsCapturing", "cuda:0: cuStreamIsCapturing: ", 2, 2, WISHED},
    {reduce_blob, "cuEventCreate", "cuda:0: cuEventCreate: ", 1, 1, WISHED},
    {reduce_blob, "cuEventRecord", "cuda:0: cuEventRecord: ", 2, 2, WISHED},
    {reduce_blob, "cuStreamWaitEvent", "cuda:0: cuStreamWaitEvent: ", 2, 2, SENT},
    {reduce_blob, "cuCtxPushCurrent_v2", "cuda:0: cuCtxPushCurrent: ", 3, 5, SENT},
    {reduce_blob, "ncclAllReduce", "ncclAllReduce: ", 1, 1, SENT},
};

static void fail_call(const struct failing *row, int64_t nth, unsigned int code, sb_status unsent) {
    const bool is_retried = strcmp(row->function, "cuMemAllocFromPoolAsync") == 0;
    const enum fake_mode mode = is_retried ? FAKE_ALWAYS : FAKE_NOW;
    const bool is_loss = code == CUDA_ERROR_ILLEGAL_ADDRESS;
    const sb_status wanted = row->when == SENT ? SB_ERR_COMM_FAILURE : unsent;
    struct solo solo;
    sb_error err, again;
    open_team(&solo.team, 1, LONG_LIMIT);
    net_open(&solo.net, solo.team.contexts[0]);
    assert_ok(net_fill(&solo.net, 0, 1, SB_HEAD_AT_GPU, &err));
    fake_fail(row->function, nth, is_loss ? FAKE_STICKY : mode, code);
    support_poison_error(&err);
    const sb_status st = row->run(&solo, &err);
    assert_non_null(fake_fired());
    fake_fail(NULL, 0, FAKE_NOW, 0);
    if (st != wanted || (st != SB_OK && (err.code != st || err.device_code != (int32_t)code ||
                                         !strstr(err.message, row->text))))
        fail_with("%s %d with %u: %d, %d: %s", row->function, (int)nth, code, st, err.device_code,
                  err.message);
    assert_int_equal(row->run(&solo, &again), st == SB_ERR_COMM_FAILURE || is_loss ? st : SB_OK);
    net_close(&solo.net);
    solo.team.is_lost = is_loss;
    end_comms_and_close(&solo.team);
}

TEST(a_collective_reports_each_failed_call) {
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++)
        for (int64_t nth = failing[i].first; nth <= failing[i].last; nth++) {
            if (strncmp(failing[i].function, "nccl", 4) == 0) {
                fail_call(&failing[i], nth, ncclInternalError, SB_ERR_COMM_FAILURE);
                continue;
            }
            fail_call(&failing[i], nth, CUDA_ERROR_UNKNOWN, SB_ERR_COMM_FAILURE);
            if (failing[i].when == UNSENT)
                fail_call(&failing[i], nth, CUDA_ERROR_ILLEGAL_ADDRESS, SB_ERR_DEVICE_LOST);
            else if (failing[i].run == reduce_blob) /* copies of host bytes leak */
                fail_call(&failing[i], nth, CUDA_ERROR_ILLEGAL_ADDRESS, SB_ERR_COMM_FAILURE);
            fail_call(&failing[i], nth, CUDA_ERROR_OUT_OF_MEMORY, SB_ERR_OUT_OF_MEMORY);
            const sb_status refused = failing[i].when == WISHED ? SB_OK : SB_ERR_UNSUPPORTED;
            fail_call(&failing[i], nth, CUDA_ERROR_NOT_SUPPORTED, refused);
            fail_call(&failing[i], nth, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, refused);
            fail_call(&failing[i], nth, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, refused);
        }
}

TEST(a_failure_to_create_an_id_is_reported) {
    uint8_t id[SB_NCCL_ID_BYTES];
    fake_fail("ncclGetUniqueId", 1, FAKE_NOW, ncclSystemError);
    assert_int_equal(sb_nccl_id_create(id, &err), SB_ERR_COMM_FAILURE);
    assert_int_equal(err.device_code, ncclSystemError);
    assert_non_null(strstr(err.message, "ncclGetUniqueId: "));
    assert_non_null(strstr(err.message, ": a rank has gone"));
}

/* The creation also succeeds if ncclGroupEnd returns ncclInProgress. */
TEST_ON(team, destroying_a_rank_waits_for_the_others) {
    open_contexts(f, 2);
    fake_fail("ncclGroupEnd", 1, FAKE_NOW, ncclInProgress);
    assert_ok(sb_nccl_comm_create_all(f->contexts, 2, LONG_LIMIT, f->comms, &err));
    const int64_t finalized = fake_calls("ncclCommFinalize");
    const int64_t destroyed = fake_calls("ncclCommDestroy");
    const int64_t aborted = fake_calls("ncclCommAbort");
    run_team(f, reduce_values);
    assert_int_equal(fake_calls("ncclCommFinalize") - finalized, 2);
    assert_int_equal(fake_calls("ncclCommDestroy") - destroyed, 2);
    assert_int_equal(fake_calls("ncclCommAbort"), aborted);
}

static void take_any_status(sb_comm *comm, void *arg) {
    const struct team *team = arg;
    struct net net;
    if (team->is_lost)
        IGNORE_LEAKS(true); /* memory that the device may still use is never freed */
    net_open(&net, team->contexts[sb_comm_rank(comm)]);
    const sb_status st = step(&net, comm, &err);
    expect(st != SB_OK || net_all_hold(&net, SB_COMM_MEAN, 0, team->size) || fake_fired());
    expect(st == SB_OK || st == SB_ERR_COMM_FAILURE || st == SB_ERR_OUT_OF_MEMORY ||
           st == SB_ERR_DEVICE_FAILURE);
    expect(st == SB_OK || err.message[0]);
    net_close(&net);
}

static void check_creation(const char *function, int32_t code, sb_status st) {
    const bool is_nccl = strncmp(function, "nccl", 4) == 0;
    const char *name = strcmp(function, "ncclCommGetAsyncError") == 0 ? "ncclCommInitRankConfig"
                       : strcmp(function, "cuCtxPushCurrent_v2") == 0 ? "cuda:"
                                                                      : function;
    if (strstr(err.message, "not all of 2 ranks connected")) /* the machine is slow */
        return;
    if (st != (is_nccl ? SB_ERR_COMM_FAILURE : SB_ERR_OUT_OF_MEMORY) || err.code != st ||
        err.device_code != code || err.offset != -1 || !strstr(err.message, name) ||
        err.message[strlen(err.message) - 1] == ' ')
        fail_with("%s: %d, %d: %s", function, st, err.device_code, err.message);
}

/* Makes the nth call of `function` fail, and with FAKE_ALWAYS all later calls. Returns whether
   there was an nth call. */
static bool fails_in_turn(const char *function, int64_t nth, enum fake_mode mode) {
    const unsigned int code = 2; /* CUDA_ERROR_OUT_OF_MEMORY, ncclSystemError */
    struct team team;
    const int64_t live = fake_nccl_live(), finalized = fake_calls("ncclCommFinalize");
    open_contexts(&team, 2);
    team.is_lost = mode == FAKE_ALWAYS;
    for (int32_t i = 0; i < 2 && team.is_lost; i++) /* keeps the contexts until the end */
        assert_int_equal(cuDevicePrimaryCtxRetain(&(CUcontext){NULL}, i), CUDA_SUCCESS);
    fake_fail(function, nth, mode, code);
    const sb_status st = sb_nccl_comm_create_all(team.contexts, 2, FAULT_LIMIT, team.comms, &err);
    if (st == SB_OK)
        ranks_run_on(2, team.comms, take_any_status, &team);
    else
        check_creation(function, (int32_t)code, st);
    assert_true(st == SB_OK || fake_calls("ncclCommFinalize") == finalized);
    const bool fired = fake_fired() != NULL;
    fake_fail(NULL, 0, FAKE_NOW, 0);
    while (fake_depth())
        assert_int_equal(cuCtxPopCurrent(&(CUcontext){NULL}), CUDA_SUCCESS);
    /* NCCL leaks a communicator whose ncclCommDestroy fails. */
    const bool is_lost = fired && strcmp(function, "ncclCommDestroy") == 0;
    for (int32_t i = 0; i < team.size; i++)
        sb_context_release(team.contexts[i]);
    assert_true(team.is_lost || fake_nccl_live() == live + is_lost);
    if (!team.is_lost)
        assert_untouched();
    assert_int_equal(fake_violations(), 0);
    return fired;
}

TEST(every_call_fails_in_turn) {
    static const char *const functions[] = {
        "cuDevicePrimaryCtxGetState", "cuMemPoolSetAccess", "cuEventRecord",
        "cuMemAllocFromPoolAsync",    "cuStreamWaitEvent",  "cuEventCreate",
        "ncclCommInitRankConfig",     "cuDeviceGetCount",   "ncclAllReduce",
        "cuPointerGetAttributes",     "ncclCommFinalize",   "ncclBroadcast",
        "ncclCommGetAsyncError",      "ncclCommDestroy",    "ncclCommAbort",
        "cuDeviceCanAccessPeer",      "ncclGetUniqueId",    "cuEventQuery",
        "cuMemcpyHtoDAsync_v2",       "cuStreamCreate",     "ncclGroupEnd",
        "cuStreamSynchronize",        "ncclGroupStart",     "cuDeviceGet",
        "cuMemPoolGetAccess",
    };
    static const char *const entering[] = {"cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
                                           "cuThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int64_t nth = 1; nth <= 3 && fails_in_turn(functions[i], nth, FAKE_NOW); nth++)
            ;
    for (int i = 0; i < 6; i++)
        for (int64_t nth = 1; fails_in_turn(entering[i % 3], nth, i < 3 ? FAKE_NOW : FAKE_ALWAYS);
             nth += 1 + nth / 4)
            ;
}
