/* Tests collectives of simulated ranks on host memory. */
#include "halves.h"
#include "port/threads.h"
#include "tasks.h"

#include <sched.h>
#include <stdatomic.h>

static const int32_t sizes[] = {1, 2, 3, 4, 7};
#define SIZES (sizeof sizes / sizeof *sizes)

TEST(every_op_combines_the_values_of_all_ranks) {
    const sb_sim_comm_options late = RANK_OPTIONS(.seed = 5, .delay_microseconds = 300);
    for (size_t i = 0; i < SIZES; i++) {
        ranks_run(sizes[i], NULL, reduce_values, NULL);
        ranks_run(sizes[i], &late, reduce_values, NULL);
    }
}

/* The limit of 1 ms does not include the delays. */
TEST(operations_complete_as_late_as_requested) {
    const sb_sim_comm_options late =
        RANK_OPTIONS(.delay_microseconds = 10000, .limit_milliseconds = 1);
    sb_comm *comm;
    assert_ok(sb_sim_comm_create(NULL, 1, &late, &comm, &err));
    const uint64_t start = sb__now();
    for (int i = 0; i < 16; i++)
        assert_ok(sb_comm_barrier(comm, &err));
    assert_true(sb__now() - start > 20000000);
    sb_comm_destroy(comm);
}

/* A reduction of a single rank changes no value, and a NaN remains a NaN. */
TEST(halves_are_rounded_to_the_nearest) {
    static uint16_t values[1 << 16];
    for (int32_t size = 2; size <= 3; size++)
        ranks_run(size, NULL, reduce_halves, NULL);
    for (sb_dtype dtype = SB_DTYPE_F16; dtype <= SB_DTYPE_BF16; dtype++) {
        const uint32_t infinite = dtype == SB_DTYPE_F16 ? 0x7c00 : 0x7f80;
        for (uint32_t i = 0; i < 1 << 16; i++)
            values[i] = (uint16_t)i;
        sb_comm *comm = test_only_rank(NULL);
        assert_ok(sb_comm_all_reduce(comm, SB_COMM_MEAN, dtype, 1 << 16, values, &err));
        for (uint32_t i = 0; i < 1 << 16; i++)
            if ((i & 0x7fff) <= infinite ? values[i] != i : (values[i] & 0x7fffu) <= infinite)
                fail_msg("0x%x became 0x%x", i, values[i]);
    }
}

TEST(every_rank_gets_the_bytes_of_the_root) {
    for (size_t i = 0; i < SIZES; i++)
        ranks_run(sizes[i], NULL, broadcast_bytes, NULL);
}

static void count_and_wait(sb_comm *comm, void *arg) {
    _Atomic int *arrived = arg;
    for (int round = 1; round <= 20; round++) {
        atomic_fetch_add_explicit(arrived, 1, memory_order_relaxed);
        expect_ok(sb_comm_barrier(comm, &err));
        expect(atomic_load_explicit(arrived, memory_order_relaxed) >= round * sb_comm_size(comm));
    }
}

TEST(no_rank_leaves_a_barrier_before_all_ranks_arrive) {
    for (size_t i = 0; i < SIZES; i++) {
        _Atomic int arrived = 0;
        ranks_run(sizes[i], NULL, count_and_wait, &arrived);
    }
}

TEST(ranks_share_weights_and_sum_wherever_the_bytes_are) {
    static const char *const devices[] = {"cpu", "sim:0"};
    for (int32_t size = 1; size <= 4; size *= 2)
        for (int i = 0; i < 2; i++) {
            struct workplace place = {.device = devices[i], .on_device = true};
            ranks_run(size, NULL, reduce_blobs, &place);
            ranks_run(size, NULL, broadcast_blobs, &place);
        }
}

TEST(invalid_arguments_are_refused_and_send_nothing) {
    double value = 3;
    sb_comm *comm = test_only_rank(NULL);
    assert_status(INVALID, sb_comm_all_reduce(comm, -1, SB_DTYPE_F64, 1, &value, &err));
    assert_status(INVALID,
                  sb_comm_all_reduce(comm, SB_COMM_MAX + 1, SB_DTYPE_F64, 1, &value, &err));
    assert_status(INVALID, sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, -1, &value, &err));
    assert_status(INVALID,
                  sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, INT64_MAX, &value, &err));
    for (sb_dtype dtype = SB_DTYPE_I32; dtype <= SB_DTYPE_I64; dtype++)
        if (!is_half(dtype))
            assert_status(SB_ERR_UNSUPPORTED,
                          sb_comm_all_reduce(comm, SB_COMM_SUM, dtype, 1, &value, &err));
    assert_status(INVALID, sb_comm_broadcast(comm, 1, &value, 8, &err));
    assert_status(INVALID, sb_comm_broadcast(comm, -1, &value, 8, &err));
    assert_status(INVALID, sb_comm_broadcast(comm, 0, &value, (size_t)PTRDIFF_MAX + 1, &err));
    assert_true(value == 3);
    assert_ok(sb_comm_all_reduce(comm, SB_COMM_MEAN, SB_DTYPE_F64, 1, &value, &err));
    assert_true(value == 3);
}

TEST(options_of_another_version_are_refused) {
    sb_comm *comms[2];
    struct {
        sb_sim_comm_options ours;
        uint64_t unknown;
    } newer = {.ours = SB_SIM_COMM_OPTIONS_INIT};
    assert_status(INVALID, sb_sim_comm_create(NULL, 0, NULL, comms, &err));
    assert_status(INVALID, sb_sim_comm_create(NULL, SB_SIM_COMM_MAX + 1, NULL, comms, &err));
    newer.ours.struct_size = sizeof newer;
    newer.unknown = 1;
    assert_status(SB_ERR_UNSUPPORTED, sb_sim_comm_create(NULL, 2, &newer.ours, comms, &err));
    newer.ours.struct_size = 8;
    assert_status(SB_ERR_ABI_MISMATCH, sb_sim_comm_create(NULL, 2, &newer.ours, comms, &err));
    newer.ours.struct_size = sizeof newer;
    newer.unknown = 0;
    assert_ok(sb_sim_comm_create(NULL, 2, &newer.ours, comms, &err));
    assert_status(INVALID, sb_sim_comm_fail(comms[0], -1, SB_SIM_COMM_STOP, &err));
    assert_status(INVALID, sb_sim_comm_fail(comms[0], 1, 2, &err));
    sb_comm_destroy(comms[1]);
    sb_comm_destroy(comms[0]);
}

TEST(the_maximum_number_of_ranks_is_accepted) {
    static sb_comm *comms[SB_SIM_COMM_MAX];
    assert_ok(sb_sim_comm_create(NULL, SB_SIM_COMM_MAX, NULL, comms, &err));
    for (int32_t i = 0; i < SB_SIM_COMM_MAX; i++) {
        assert_int_equal(sb_comm_rank(comms[i]), i);
        assert_int_equal(sb_comm_size(comms[i]), SB_SIM_COMM_MAX);
        sb_comm_destroy(comms[i]);
    }
}

TEST(a_planted_failure_may_be_removed) {
    sb_comm *comm = test_only_rank(NULL);
    assert_ok(sb_sim_comm_fail(comm, 1, SB_SIM_COMM_STOP, &err));
    assert_ok(sb_sim_comm_fail(comm, 0, SB_SIM_COMM_FAIL_NOW, &err));
    assert_ok(sb_comm_barrier(comm, &err));
}

static const char *const calls[] = {
    "all-reduces 3 f64, op 0", "all-reduces 4 f64, op 0",  "all-reduces 3 f32, op 0",
    "all-reduces 3 f64, op 3", "broadcasts 24 u8, root 0", "broadcasts 24 u8, root 1",
    "is in a barrier",
};
#define CALLS ((int)(sizeof calls / sizeof *calls))

static sb_status make_call(sb_comm *comm, int call, sb_error *err) {
    double values[4] = {0};
    switch (call) {
    case 0:
    case 1:
        return sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 3 + call, values, err);
    case 2:
        return sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F32, 3, values, err);
    case 3:
        return sb_comm_all_reduce(comm, SB_COMM_MAX, SB_DTYPE_F64, 3, values, err);
    case 4:
    case 5:
        return sb_comm_broadcast(comm, call - 4, values, 24, err);
    default:
        return sb_comm_barrier(comm, err);
    }
}

static void differ(sb_comm *comm, void *arg) {
    const int *pair = arg;
    sb_error err = {.code = 0};
    char texts[2][120];
    for (int first = 0; first < 2; first++) /* the rank that called last finds the difference */
        (void)snprintf(texts[first], sizeof *texts, "rank %d %s where rank %d %s", !first,
                       calls[pair[!first]], first, calls[pair[first]]);
    expect_ok(sb_comm_barrier(comm, &err));
    expect_status(SB_ERR_COMM_FAILURE, make_call(comm, pair[sb_comm_rank(comm)], &err));
    expect(!strcmp(err.message, texts[0]) || !strcmp(err.message, texts[1]));
    expect_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(comm, &err));
    expect(!strcmp(err.message, "the communicator is unusable after an earlier failure"));
}

TEST(a_difference_of_calls_is_reported_with_both_calls) {
    for (int one = 0; one < CALLS; one++)
        for (int other = 0; other < CALLS; other++)
            if (one != other)
                ranks_run(2, NULL, differ, (int[]){one, other});
}

struct failing {
    int64_t nth;
    sb_sim_comm_failure mode;
};

static void fail_at(sb_comm *comm, void *arg) {
    const struct failing *failing = arg;
    double value = 1;
    sb_status st = SB_OK;
    int64_t done = 0;
    if (sb_comm_rank(comm) == 1)
        expect_ok(sb_sim_comm_fail(comm, failing->nth, failing->mode, &err));
    for (int i = 0; i < 3 && st == SB_OK; i++) {
        st = i == 0   ? sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err)
             : i == 1 ? sb_comm_broadcast(comm, 1, &value, sizeof value, &err)
                      : sb_comm_barrier(comm, &err);
        done += st == SB_OK;
    }
    expect(done == failing->nth - 1);
    expect_status(SB_ERR_COMM_FAILURE, st);
    char failed[60];
    (void)snprintf(failed, sizeof failed, "operation %d of rank 1 failed as planted",
                   (int)failing->nth);
    expect(err.code == SB_ERR_COMM_FAILURE && err.offset == -1);
    expect(!strcmp(err.message, failing->mode == SB_SIM_COMM_STOP
                                    ? "rank 1 did not answer within 300 ms"
                                : sb_comm_rank(comm) == 1 ? failed
                                                          : "rank 1 has ended"));
}

TEST(a_rank_that_fails_or_stops_fails_all_ranks) {
    const sb_sim_comm_options soon = RANK_OPTIONS(.limit_milliseconds = 300);
    for (int64_t nth = 1; nth <= 3; nth++) {
        struct failing failing = {nth, SB_SIM_COMM_FAIL_NOW};
        ranks_run(3, NULL, fail_at, &failing); /* rank 1 ends, so no rank waits for rank 1 */
        failing.mode = SB_SIM_COMM_STOP;
        ranks_run(3, &soon, fail_at, &failing);
    }
}

static void come_late(sb_comm *comm, void *arg) {
    _Atomic int *done = arg;
    sb_error err = {.code = 0};
    const int32_t rank = sb_comm_rank(comm);
    if (rank == 2)
        return;
    while (rank == 1 && !atomic_load(done))
        sched_yield();
    expect_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(comm, &err));
    expect(!strcmp(err.message, "rank 2 has ended"));
    atomic_store(done, 1);
}

TEST(an_ended_rank_is_reported_before_a_late_rank) {
    _Atomic int done = 0;
    ranks_run(3, NULL, come_late, &done);
}
