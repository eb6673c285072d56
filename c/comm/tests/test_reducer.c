/* Tests the reducer on simulated ranks. */
#include "blobs.h"
#include "port/threads.h"
#include "tasks.h"

#include <sched.h>
#include <stdatomic.h>

TEST(every_order_of_ready_and_every_bucket_gives_the_same_sums) {
    static const int32_t sizes[] = {1, 2, 3, 4, 7};
    for (size_t i = 0; i < 5; i++) {
        struct workplace place = {.device = "cpu", .steps = 35, .seed = i * 1000};
        const sb_sim_comm_options options = RANK_OPTIONS(.seed = i, .delay_microseconds = 40);
        ranks_run(sizes[i], i % 2 ? &options : NULL, reduce_in_random_orders, &place);
    }
}

TEST(bytes_on_devices_are_reduced_wherever_they_are) {
    struct workplace place = {.device = "sim:0", .steps = test_is_quick() ? 3 : 20, .seed = 77};
    for (int32_t size = 1; size <= 3; size++)
        ranks_run(size, NULL, reduce_in_random_orders, &place);
}

struct odd {
    int what;
    sb_status status;
    const char *texts[2];
};

static void register_odd(sb_comm *comm, void *arg) {
    const struct odd *odd = arg;
    const bool is_odd = sb_comm_rank(comm) == 1;
    const int64_t other_shape[] = {8, 8};
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    struct net net;
    sb_error err = {.code = 0};
    net_open(&net, NULL);
    sb_blob *blobs[NET_BLOBS];
    memcpy(blobs, net.blobs, sizeof blobs);
    if (is_odd && odd->what == 0)
        expect_ok(sb_blob_reshape(blobs[4], other_shape, 2, NULL, &err));
    if (is_odd && odd->what == 1) {
        blobs[6] = net.blobs[3];
        blobs[3] = net.blobs[6];
    }
    if (is_odd && odd->what == 3)
        options.op = SB_COMM_MAX;
    if (is_odd && odd->what == 4)
        blobs[2] = NULL;
    if (is_odd && odd->what == 5)
        options.bucket_bytes = 5;
    if (is_odd && odd->what == 6)
        options.part = SB_DATA;
    const int64_t grown = 13;
    if (is_odd && odd->what == 7)
        expect_ok(sb_blob_reshape(blobs[NET_BLOBS - 1], &grown, 1, NULL, &err));
    if (is_odd && odd->what == 8)
        expect_ok(sb_blob_reshape(blobs[0], &grown, 1, NULL, &err));
    sb_blob *shapeless = NULL;
    expect_ok(sb_blob_create(NULL, SB_DTYPE_F32, &shapeless, &err));
    if (is_odd && odd->what == 9)
        blobs[0] = shapeless;
    else if (odd->what == 9)
        expect_ok(sb_blob_reshape(blobs[0], NULL, 0, NULL, &err));
    int64_t longest[SB_MAX_AXES];
    for (int i = 0; i < SB_MAX_AXES; i++)
        longest[i] = i < SB_MAX_AXES / 2 ? 10 : 1;
    longest[0] += is_odd;
    if (odd->what == 10)
        expect_ok(sb_blob_reshape(blobs[0], longest, SB_MAX_AXES, NULL, &err));
    const int64_t count = is_odd && odd->what == 2 ? NET_BLOBS - 1 : NET_BLOBS;
    sb_reducer *reducer = NULL;
    expect_status(odd->status, sb_reducer_create(comm, blobs, count, &options, &reducer, &err));
    expect(!reducer && err.code == odd->status);
    expect(strstr(err.message, odd->texts[1]) != NULL);
    expect(strstr(err.message, odd->texts[0]) != NULL || (is_odd && odd->what == 4));
    const bool stays = odd->what == 0 || odd->what >= 7;
    expect_status(stays ? odd->status : SB_OK, net_register(&net, comm, 100, &err));
    sb_blob_destroy(shapeless);
    net_close(&net);
}

TEST(a_difference_is_reported_at_every_rank_with_both_values) {
    static const struct odd odds[] = {
        {0, SB_ERR_SHAPE_MISMATCH, {"blob 4 is f64 (64) at rank 0", "f64 (8 8) at rank 1"}},
        {1, SB_ERR_DTYPE_MISMATCH, {"blob 3 is f64 (1) at rank 0", "f32 (1) at rank 1"}},
        {2, SB_ERR_SHAPE_MISMATCH, {"rank 0 registers 12 blobs", "rank 1 registers 11"}},
        {3, INVALID, {"rank 0 reduces diff by op 1", "rank 1 reduces diff by op 3"}},
        {4, INVALID, {"rank 1: ", "blob 2 is NULL"}},
        {5, INVALID, {"buckets of 26214400", "buckets of 5"}},
        {6, INVALID, {"rank 0 reduces diff by op 1", "rank 1 reduces data by op 1"}},
        {7, SB_ERR_SHAPE_MISMATCH, {"blob 11 is bf16 (90) at rank 0", "bf16 (13) at rank 1"}},
        {8, SB_ERR_SHAPE_MISMATCH, {"blob 0 is f32 (3) at rank 0", "f32 (13) at rank 1"}},
        {9, SB_ERR_SHAPE_MISMATCH, {"blob 0 is f32 () at rank 0", "f32 without a shape at rank 1"}},
        /* The message has no room for both shapes. 32-bit hosts skip this row. */
        {10,
         SB_ERR_SHAPE_MISMATCH,
         {"f32 (10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 1 1 1 1 1 1 1 1 1 1 1 1) at rank 0",
          "f32 (11 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 1 1 1 1 1 1 1 1 1 1 1 1) at rank "
          "1"}},
    };
    for (size_t i = 0; i < sizeof odds / sizeof *odds - (sizeof(void *) == 4); i++)
        ranks_run(3, NULL, register_odd, (void *)&odds[i]);
}

TEST(invalid_registrations_are_refused) {
    sb_comm *comm = test_only_rank(NULL);
    sb_reducer *reducer = NULL;
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    sb_blob *a = test_vector(NULL, SB_DTYPE_F32, 3), *b = test_vector(NULL, SB_DTYPE_I32, 3);
    sb_blob *const twice[] = {a, a}, *const typed[] = {a, b};
    assert_status(SB_ERR_SHARED, sb_reducer_create(comm, twice, 2, NULL, &reducer, &err));
    assert_int_equal(sb_reducer_create(comm, twice, 2, NULL, &reducer, NULL), SB_ERR_SHARED);
    assert_status(SB_ERR_UNSUPPORTED, sb_reducer_create(comm, typed, 2, NULL, &reducer, &err));
    assert_status(INVALID, sb_reducer_create(comm, typed, -1, NULL, &reducer, &err));
    assert_status(SB_ERR_OUT_OF_MEMORY,
                  sb_reducer_create(comm, typed, INT64_MAX, NULL, &reducer, &err));
    options.op = 4;
    assert_status(INVALID, sb_reducer_create(comm, &a, 1, &options, &reducer, &err));
    options.op = SB_COMM_SUM;
    options.part = SB_DIFF + 1;
    assert_status(INVALID, sb_reducer_create(comm, NULL, 0, &options, &reducer, &err));
    options.struct_size = 8;
    assert_status(SB_ERR_ABI_MISMATCH, sb_reducer_create(comm, &a, 1, &options, &reducer, &err));
    assert_null(reducer);
}

TEST(a_step_refuses_a_second_ready_and_other_calls) {
    const sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    const int64_t longer = 5, as_before = 3;
    double value = 1;
    sb_comm *comm = test_only_rank(NULL);
    sb_blob *all[5]; /* probably sorted by address */
    for (int i = 0; i < 5; i++)
        all[i] = test_vector(NULL, SB_DTYPE_F32, 3);
    sb_blob *blobs[] = {all[1], all[3]}, *unregistered = all[4];
    sb_reducer *reducer = test_reducer(comm, blobs, 2, options);
    sb_reducer *other = test_reducer(comm, &unregistered, 1, options);
    for (int i = 0; i < 5; i += 2)
        assert_error(INVALID, sb_reducer_ready(reducer, all[i], &err),
                     "the blob was not registered");
    assert_status(INVALID, sb_reducer_wait(reducer, &err));
    assert_ok(sb_comm_barrier(comm, &err));
    for (int step = 0; step < 2; step++) {
        assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
        assert_status(INVALID, sb_reducer_ready(reducer, blobs[0], &err));
        assert_error(INVALID, sb_reducer_wait(reducer, &err), "blob 1 was not ready");
        assert_status(INVALID, sb_reducer_ready(other, unregistered, &err));
        assert_status(INVALID, sb_reducer_wait(other, &err));
        assert_status(INVALID, sb_comm_barrier(comm, &err));
        assert_status(INVALID,
                      sb_comm_all_reduce(comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &value, &err));
        assert_ok(sb_reducer_ready(reducer, blobs[1], &err));
        assert_ok(sb_reducer_wait(reducer, &err));
    }
    assert_ok(sb_reducer_ready(reducer, blobs[1], &err));
    assert_ok(sb_blob_reshape(blobs[1], &longer, 1, NULL, &err));
    assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_reducer_wait(reducer, &err));
    assert_ok(sb_blob_reshape(blobs[1], &as_before, 1, NULL, &err));
    assert_ok(sb_reducer_wait(reducer, &err));
    assert_ok(sb_blob_reshape(blobs[1], &longer, 1, NULL, &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_reducer_ready(reducer, blobs[1], &err));
}

/* An allocator that returns a freed block again for the next request of that size. */
struct again {
    void *block;
    size_t bytes;
    bool fails;
};

static void *again_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct again *again = user;
    void *block = again->block;
    if (again->fails)
        return NULL;
    if (block && again->bytes == bytes)
        again->block = NULL;
    else
        block = test_aligned_alloc(alignment, bytes);
    if (block && flags & SB_ALLOC_ZEROED)
        memset(block, 0, bytes);
    return block;
}

static void again_free(void *user, void *block, size_t bytes, size_t alignment, uint32_t flags) {
    struct again *again = user;
    test_aligned_free(again->block);
    again->block = block;
    again->bytes = bytes;
}

TEST(a_new_blob_at_the_same_address_takes_part) {
    struct again again = {NULL, 0, false};
    sb_context *context = test_context(
        CONTEXT_OPTIONS(.allocator = {.alloc = again_alloc, .free = again_free, .user = &again},
                        .flags = SB_CONTEXT_NO_HOST_CACHE));
    sb_blob *blobs[] = {test_vector(context, SB_DTYPE_F32, 3),
                        blob_of_count(context, SB_DTYPE_F32, 3)};
    sb_reducer *reducer =
        test_reducer(test_only_rank(NULL), blobs, 2, (sb_reducer_options)SB_REDUCER_OPTIONS_INIT);
    (void)host_to_write(blobs[0], SB_DIFF);
    const void *was = blobs[1];
    sb_blob_destroy(blobs[1]);
    blobs[1] = blob_of_count(context, SB_DTYPE_F64, 3);
    assert_ptr_equal(blobs[1], was);
    assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_reducer_ready(reducer, blobs[1], &err));
    sb_blob_destroy(blobs[1]);
    blobs[1] = test_vector(context, SB_DTYPE_F32, 3);
    assert_ptr_equal(blobs[1], was);
    again.fails = true; /* the reducer must allocate the diff */
    assert_ok(sb_reducer_ready(reducer, blobs[1], &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_reducer_wait(reducer, &err));
    again.fails = false;
    assert_ok(sb_reducer_wait(reducer, &err));
    test_end(blobs[0]); /* the reducer outlives its blobs */
    test_end_after(0);
    test_aligned_free(again.block);
}

TEST_ON(rig, a_reducer_has_memory_for_at_most_two_buckets) {
    sb_blob *blobs[40];
    rig_reopen_on(f, "cpu", SB_CONTEXT_NO_HOST_CACHE);
    sb_comm *comm = test_only_rank(f->context);
    for (int i = 0; i < 40; i++) {
        blobs[i] = test_vector(f->context, SB_DTYPE_F32, 2500);
        (void)host_to_write(blobs[i], SB_DIFF);
    }
    const int64_t buffers = f->counting.live_buffers;
    sb_reducer *reducer =
        test_reducer(comm, blobs, 40, reducer_options(SB_DIFF, SB_COMM_MEAN, 45000));
    const size_t before = f->counting.live_bytes;
    assert_int_equal(f->counting.live_buffers, buffers + 2);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 40; i++)
            assert_ok(sb_reducer_ready(reducer, blobs[i], &err));
        assert_ok(sb_reducer_wait(reducer, &err));
    }
    assert_int_equal(f->counting.live_bytes, before);
    assert_int_equal(f->counting.live_buffers, buffers + 2);
    test_end(reducer);
    assert_int_equal(f->counting.live_buffers, buffers);
}

struct meeting {
    _Atomic int begun, broken, notified;
};

static void wait_until(_Atomic int *number, int least) {
    while (atomic_load(number) < least)
        sched_yield();
}

/* Rank 1 calls a barrier while rank 0 polls the current bucket and rank 2 waits for the bucket. */
static void miss_one(sb_comm *comm, void *arg) {
    struct meeting *meeting = arg;
    const int32_t rank = sb_comm_rank(comm);
    struct net net;
    sb_error err = {.code = 0};
    net_open(&net, NULL);
    expect_ok(net_register(&net, comm, 0, &err));
    for (int i = NET_BLOBS; rank != 1 && i-- > (rank ? 0 : NET_BLOBS - 1);)
        expect_ok(sb_reducer_ready(net.reducer, net.blobs[i], &err));
    if (rank == 1) {
        wait_until(&meeting->begun, 2);
        /* Gives rank 2 time to begin its wait. */
        for (const uint64_t soon = sb__now() + 20000000; sb__now() < soon;)
            sched_yield();
        expect_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(comm, &err));
        atomic_store(&meeting->broken, 1);
    } else {
        atomic_fetch_add(&meeting->begun, 1);
        if (rank == 0)
            wait_until(&meeting->broken, 1);
        expect_status(SB_ERR_COMM_FAILURE, rank
                                               ? sb_reducer_wait(net.reducer, &err)
                                               : sb_reducer_ready(net.reducer, net.blobs[0], &err));
        atomic_fetch_add(&meeting->notified, 1);
    }
    expect(strstr(err.message, "rank 1 is in a barrier where rank ") != NULL);
    wait_until(&meeting->notified, 2); /* a rank that ends now would notify the others */
    net_close(&net);
}

TEST(a_difference_is_reported_at_once) {
    struct meeting meeting = {0};
    ranks_run(3, &RANK_OPTIONS(.limit_milliseconds = 60000), miss_one, &meeting);
}

static void abandon_first(sb_comm *comm, void *arg) {
    struct meeting *meeting = arg;
    struct net net;
    sb_error err = {.code = 0};
    net_open(&net, NULL);
    expect_ok(net_register(&net, comm, 0, &err));
    if (sb_comm_rank(comm) == 1) {
        expect_ok(sb_sim_comm_fail(comm, 2, SB_SIM_COMM_FAIL_NOW, &err));
        expect_status(SB_ERR_COMM_FAILURE, net_step(&net, &err));
        net_close(&net);
        atomic_store(&meeting->broken, 1);
        wait_until(&meeting->notified, 2); /* a rank that ends now would notify the others */
        return;
    }
    wait_until(&meeting->broken, 1);
    expect_status(SB_ERR_COMM_FAILURE, net_step(&net, &err));
    expect(!strcmp(err.message, "rank 1 abandoned a request"));
    atomic_fetch_add(&meeting->notified, 1);
    net_close(&net);
}

TEST(an_abandoned_request_fails_the_other_ranks) {
    struct meeting meeting = {0};
    ranks_run(3, &RANK_OPTIONS(.limit_milliseconds = 500), abandon_first, &meeting);
}

TEST(the_limit_counts_only_waits) {
    struct workplace place = {.device = "cpu", .limit_ms = 500};
    ranks_run(2, &RANK_OPTIONS(.limit_milliseconds = 500), pause_longer_than_the_limit, &place);
}

TEST(a_reducer_may_be_destroyed_in_its_step) {
    struct workplace place = {.device = "cpu"};
    ranks_run(3, NULL, end_in_a_step, &place);
}
