/* Tests callers that break the rules of a reducer, and two failures at once. Every call must return
   a status, and the reducer must not access freed memory. */
#include "blobs.h"
#include "ranks.h"

#define COUNT 100

/* --- blobs that change after their registration --------------------------------------------- */

/* An allocator that reuses a freed block for the next request of the same size. */
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

/* Creates a context without a cache. */
static sb_context *context_of(sb_allocator allocator) {
    const sb_context_options options =
        CONTEXT_OPTIONS(.allocator = allocator, .flags = SB_CONTEXT_NO_HOST_CACHE);
    sb_context *context = NULL;
    expect_ok(sb_context_create(&options, &context, &err));
    return context;
}

/* Creates a reducer of two blobs. */
static sb_reducer *reducer_of(sb_blob *blobs[2]) {
    return test_reducer(test_only_rank(NULL), blobs, 2,
                        reducer_options(SB_DIFF, SB_COMM_MEAN, 25 << 20));
}

TEST(a_new_blob_at_the_same_address_takes_part) {
    struct again again = {NULL, 0, false};
    sb_context *context =
        context_of((sb_allocator){.alloc = again_alloc, .free = again_free, .user = &again});
    assert_non_null(context);
    sb_blob *blobs[] = {test_vector(context, SB_DTYPE_F32, COUNT),
                        blob_of_count(context, SB_DTYPE_F32, COUNT)};
    sb_reducer *reducer = reducer_of(blobs);
    (void)host_to_write(blobs[0], SB_DIFF);
    const void *was = blobs[1];
    sb_blob_destroy(blobs[1]);
    blobs[1] = blob_of_count(context, SB_DTYPE_F64, COUNT);
    assert_ptr_equal(blobs[1], was);
    assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_reducer_ready(reducer, blobs[1], &err));
    sb_blob_destroy(blobs[1]);
    blobs[1] = test_vector(context, SB_DTYPE_F32, COUNT);
    assert_ptr_equal(blobs[1], was);
    again.fails = true; /* the blob has no diff yet */
    assert_ok(sb_reducer_ready(reducer, blobs[1], &err));
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_reducer_wait(reducer, &err));
    again.fails = false;
    assert_ok(sb_reducer_wait(reducer, &err));
    test_end(blobs[0]); /* the reducer outlives its blobs */
    test_end_after(0);
    sb_context_release(context);
    test_aligned_free(again.block);
}

TEST(a_reshape_of_a_ready_blob_is_reported) {
    const int64_t longer = 100000, as_before = COUNT;
    sb_blob *blobs[] = {test_vector(NULL, SB_DTYPE_F32, COUNT),
                        test_vector(NULL, SB_DTYPE_F32, COUNT)};
    sb_reducer *reducer = reducer_of(blobs);
    assert_ok(sb_reducer_ready(reducer, blobs[0], &err));
    assert_ok(sb_blob_reshape(blobs[0], &longer, 1, NULL, &err));
    assert_ok(sb_reducer_ready(reducer, blobs[1], &err)); /* the bucket cannot start */
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_reducer_wait(reducer, &err));
    assert_ok(sb_blob_reshape(blobs[0], &as_before, 1, NULL, &err));
    assert_ok(sb_reducer_wait(reducer, &err));
}

/* Reshapes a blob while its bucket is in flight. The reducer must not access the blob's old memory
   after that memory is freed. */
static void reshape_in_flight(sb_comm *comm, void *arg) {
    const size_t *bucket_bytes = arg;
    const int64_t longer = 100000;
    const int32_t rank = sb_comm_rank(comm);
    const sb_reducer_options options = reducer_options(SB_DIFF, SB_COMM_MEAN, *bucket_bytes);
    sb_reducer *reducer = NULL;
    float *diff = NULL;
    sb_blob *blobs[] = {blob_of_count(NULL, SB_DTYPE_F32, COUNT),
                        blob_of_count(NULL, SB_DTYPE_F32, COUNT)};
    expect_ok(sb_reducer_create(comm, blobs, 2, &options, &reducer, &err));
    expect_ok(sb_blob_mutable_cpu_f32(blobs[1], SB_DIFF, &diff, &err));
    for (int i = 0; diff && i < COUNT; i++)
        diff[i] = (float)(rank + i);
    for (int i = 0; i < 2; i++)
        expect_ok(sb_reducer_ready(reducer, blobs[i], &err));
    if (rank == 0) /* the other ranks' sums must be correct */
        expect_ok(sb_blob_reshape(blobs[1], &longer, 1, NULL, &err));
    expect_ok(sb_reducer_wait(reducer, &err));
    expect_ok(sb_blob_mutable_cpu_f32(blobs[1], SB_DIFF, &diff, &err));
    for (int i = 0; diff && i < COUNT; i++)
        expect(diff[i] == (rank == 0 ? 0 : (float)i + 0.5f));
    sb_reducer_destroy(reducer);
    sb_blob_destroy(blobs[0]);
    sb_blob_destroy(blobs[1]);
}

TEST(memory_in_flight_outlives_a_reshape) {
    /* The delay makes the reshape precede the end of the reduction. */
    const sb_sim_comm_options options = RANK_OPTIONS(.delay_microseconds = 20000);
    size_t bucket_bytes[] = {0, 1 << 20};
    for (int i = 0; i < 2; i++)
        ranks_run(2, &options, reshape_in_flight, &bucket_bytes[i]);
}

/* --- two failures at once -------------------------------------------------------------------- */

struct failures {
    int64_t nth; /* the operation of rank 1 that fails */
    sb_sim_comm_failure mode;
    bool recovers; /* rank 0 gets memory before the time limit */
};

/* Rank 0 is out of memory for its diffs while rank 1 fails. */
static void fail_twice(sb_comm *comm, void *arg) {
    const struct failures *failures = arg;
    const int32_t rank = sb_comm_rank(comm);
    struct counting_allocator counting = COUNTING_ALLOCATOR_INIT;
    sb_context *context = context_of(counting_allocator_table(&counting));
    sb_reducer *reducer = NULL;
    sb_blob *blobs[2];
    for (int i = 0; i < 2; i++)
        blobs[i] = blob_of_count(context, SB_DTYPE_F32, COUNT);
    expect_ok(sb_reducer_create(comm, blobs, 2, NULL, &reducer, &err));
    if (rank == 0)
        counting.byte_cap = counting.live_bytes;
    if (rank == 1)
        expect_ok(sb_sim_comm_fail(comm, failures->nth, failures->mode, &err));
    for (int i = 0; i < 2; i++) {
        const sb_status st = sb_reducer_ready(reducer, blobs[i], &err);
        expect(st == SB_OK || st == SB_ERR_COMM_FAILURE);
    }
    sb_status st = sb_reducer_wait(reducer, &err);
    if (rank == 0) {
        expect_status(SB_ERR_OUT_OF_MEMORY, st);
        expect(sb_mem_head(diff_of(blobs[0])) == SB_HEAD_UNINITIALIZED);
        if (failures->recovers) {
            counting.byte_cap = 0;
            st = sb_reducer_wait(reducer, &err);
        }
    }
    expect(st == SB_ERR_COMM_FAILURE || (rank == 0 && !failures->recovers));
    sb_reducer_destroy(reducer);
    expect_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(comm, &err));
    for (int i = 0; i < 2; i++)
        sb_blob_destroy(blobs[i]);
    sb_context_release(context);
    expect(counting.live_blocks == 0 && counting.violations == 0);
}

TEST(two_failures_at_once_are_reported_at_both_ranks) {
    const sb_sim_comm_options options = RANK_OPTIONS(.limit_milliseconds = 200);
    for (int i = 0; i < 4; i++) {
        const struct failures failures = {1, i / 2 ? SB_SIM_COMM_STOP : SB_SIM_COMM_FAIL_NOW,
                                          i % 2};
        ranks_run(3, &options, fail_twice, (void *)&failures);
    }
}
