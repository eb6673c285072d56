/* Tests a reducer on an engine without requests, and on an engine whose requests never end and
   cannot be cancelled. Memory that such a request may still write must not be freed. */
#include "blobs.h"
#include "comms.h"
#include "mirror.h"

#include "context/context.h"

#include "../src/reducer.h"

#define COUNT 6
#define BLOBS 3

/* The memory of the last request, which never ends: the engine may still write to it. */
static void *stuck_with;
static int abandoned;

static sb_status stuck_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                             sb_error *err) {
    stuck_with = buffer->ptr;
    *out = &stuck_with;
    return SB_OK;
}

static sb_status stuck_test(void *comm, void *request, int32_t *out_done, sb_error *err) {
    *out_done = 0;
    return SB_OK;
}

static sb_status stuck_wait(void *comm, void *request, sb_error *err) {
    return sb_error_fill(err, SB_ERR_COMM_FAILURE, 0, "the other ranks are gone");
}

static int32_t stuck_abandon(void *comm, void *request) {
    abandoned++;
    return 0;
}

static sb_comm_engine stuck_engine(void) {
    sb_comm_engine engine = mirror_engine;
    engine.start = stuck_start;
    engine.test = stuck_test;
    engine.wait = stuck_wait;
    engine.abandon = stuck_abandon;
    return engine;
}

/* A large blob is sent in place, which is faster than gathering, and does not wait until the bucket
   of the small blobs is full. */
TEST(large_blobs_are_reduced_in_place_before_the_small_blobs) {
    enum { LARGE = (2 * 128 << 10) / sizeof(float) }; /* for two ranks */
    static const int64_t counts[] = {3, LARGE, 5, LARGE - 1, LARGE + 1, 7};
    static const int64_t expected[] = {LARGE + 1, LARGE, 7 + LARGE - 1 + 5 + 3};
    static struct mirror mirror; /* static: the communicator may outlive this function */
    sb_blob *blobs[6];
    float *diff;
    sb_comm *comm = test_comm(NULL, &mirror_engine_at_once, &mirror);
    for (int i = 0; i < 6; i++) {
        blobs[i] = test_vector(NULL, SB_DTYPE_F32, counts[i]);
        assert_ok(sb_blob_mutable_cpu_f32(blobs[i], SB_DIFF, &diff, &err));
        fill_values(SB_DTYPE_F32, counts[i], 50, 0, diff);
    }
    sb_reducer *reducer =
        test_reducer(comm, blobs, 6, reducer_options(SB_DIFF, SB_COMM_SUM, 25 << 20));
    mirror_forget(&mirror);
    for (int i = 5; i >= 0; i--) {
        assert_ok(sb_reducer_ready(reducer, blobs[i], &err));
        assert_int_equal(mirror.num_sent, i == 5 ? 0 : i > 1 ? 1 : i == 1 ? 2 : 3);
    }
    assert_ok(sb_reducer_wait(reducer, &err));
    for (int i = 0; i < 3; i++)
        assert_int_equal(mirror.sent[i].buffer.count, expected[i]);
    for (int i = 0; i < 6; i++) {
        assert_ok(sb_blob_mutable_cpu_f32(blobs[i], SB_DIFF, &diff, &err));
        assert_true(diff[0] == 100 && diff[counts[i] - 1] == 100);
    }
}

/* Begins a step. Unless `destroys`, also waits for the end of the step, which fails. */
static void stop_in_step(struct mirrored *m, bool destroys) {
    for (int i = 0; i < BLOBS; i++)
        assert_ok(sb_reducer_ready(m->reducer, m->blobs[i], &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_comm_barrier(m->comm, &err));
    if (destroys)
        return;
    assert_error(SB_ERR_COMM_FAILURE, sb_reducer_wait(m->reducer, &err),
                 "the other ranks are gone");
    for (int i = 0; i < BLOBS; i++)
        assert_true(mirrored_holds(m, i, i, 1)); /* this engine wrote nothing */
    assert_status(SB_ERR_COMM_FAILURE, sb_reducer_wait(m->reducer, &err));
}

TEST_ON(mirrored, memory_that_the_engine_may_still_write_is_not_freed) {
    const sb_comm_engine engine = stuck_engine();
    sb_mem *kept[BLOBS];
    for (int how = 0; how < 4; how++) {
        const bool gathers = how & 1;
        abandoned = 0;
        mirrored_reopen(f, &engine, false);
        for (int i = 0; i < BLOBS; i++) {
            mirrored_add(f, SB_DTYPE_F32, COUNT, i, SB_HEAD_AT_CPU);
            kept[i] = data_of(f->blobs[i]);
        }
        mirrored_register(f, SB_COMM_SUM, gathers ? SIZE_MAX : 0);
        sb_mem *const rooms[] = {f->reducer->rooms[0].mem, f->reducer->rooms[1].mem};
        void *const first = f->reducer->rooms[0].ptr;
        stop_in_step(f, how & 2);
        test_end_after(f->rig.owned_before);
        assert_int_equal(abandoned, gathers ? 1 : BLOBS);
        assert_int_equal(f->rig.counting.live_buffers, gathers ? 1 : BLOBS);
        for (int i = 0; i < BLOBS && !gathers; i++) {
            assert_true(sb_mem_is_unique(kept[i]));
            sb_mem_release(kept[i]); /* so that the test leaks nothing */
        }
        if (gathers)
            sb_mem_release(rooms[stuck_with != first]);
        f->is_broken = true;
    }
}

/* To write a read-only blob, the step allocates new storage. The step fails before that storage
   belongs to the blob. */
TEST_ON(rig, memory_of_the_caller_is_not_freed_either) {
    const sb_comm_engine engine = stuck_engine();
    static struct mirror mirror; /* static: the communicator may outlive this function */
    const void *bytes;
    rig_reopen_on(f, "cpu", SB_CONTEXT_NO_HOST_CACHE);
    struct lent lent = lend_host(COUNT * sizeof(float), 0x3F);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, lent.bytes, SB_READ_ONLY, lent_deleter,
                              &lent, &err));
    sb_comm *comm = test_comm(f->context, &engine, &mirror);
    sb_reducer *reducer = test_reducer(comm, &blob, 1, reducer_options(SB_DATA, SB_COMM_SUM, 0));
    abandoned = 0;
    assert_ok(sb_reducer_ready(reducer, blob, &err));
    assert_status(SB_ERR_COMM_FAILURE, sb_reducer_wait(reducer, &err));
    assert_int_equal(abandoned, 1);
    assert_ptr_not_equal(stuck_with, lent.ptr);
    sb_mem *kept = data_of(blob);
    assert_ok(sb_mem_cpu(kept, &bytes, &err));
    assert_ptr_equal(bytes, lent.ptr);
    test_end(reducer);
    test_end(blob);
    test_end(comm);
    assert_int_equal(lent.deleted, 0); /* the caller's memory is not freed either */
    assert_true(sb_mem_is_unique(kept));
    sb_mem_release(kept); /* so that the test leaks nothing */
    assert_int_equal(lent.deleted, 1);
    assert_int_equal(f->counting.live_buffers, 1);
    sb__host_free(f->context, stuck_with, COUNT * sizeof(float), false);
}

/* --- requests that overwrite their elements ------------------------------------------------ */

static int64_t scribble_at; /* the request with this number of elements fails */
static sb_comm_buffer sent[BLOBS];
static int num_sent;

static sb_status late_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                            sb_error *err) {
    sent[num_sent] = *buffer;
    *out = &sent[num_sent++];
    return SB_OK;
}

static sb_status late_wait(void *comm, void *request, sb_error *err) {
    const sb_comm_buffer *buffer = request;
    fill_values(SB_DTYPE_F32, buffer->count, -777, 0, buffer->ptr);
    return buffer->count == scribble_at ? sb_error_fill(err, SB_ERR_COMM_FAILURE, 0, "cut") : SB_OK;
}

static int32_t late_abandon(void *comm, void *request) {
    return 1;
}

/* Blobs of 100, 3 and 101 floats with buckets of 64 bytes: the small blob has a separate bucket. */
TEST_ON(rig, a_small_blob_is_gathered_even_if_it_is_alone) {
    static const int64_t counts[BLOBS] = {100, 3, 101};
    sb_comm_engine engine = stuck_engine();
    static struct mirror mirror; /* static: the communicator may outlive this function */
    engine.start = late_start;
    engine.wait = late_wait;
    engine.abandon = late_abandon;
    for (int fails = 0; fails < 2; fails++) {
        sb_blob *blobs[BLOBS];
        float values[101];
        rig_reopen_on(f, "cpu", SB_CONTEXT_NO_HOST_CACHE);
        sb_comm *comm = test_comm(f->context, &engine, &mirror);
        fill_values(SB_DTYPE_F32, 101, 8, 1, values);
        for (int i = 0; i < BLOBS; i++) {
            blobs[i] = test_vector(f->context, SB_DTYPE_F32, counts[i]);
            mem_place(diff_of(blobs[i]), SB_HEAD_AT_CPU, values, (size_t)counts[i] * 4);
        }
        num_sent = 0;
        scribble_at = fails ? 3 : 0;
        sb_reducer *reducer =
            test_reducer(comm, blobs, BLOBS, reducer_options(SB_DIFF, SB_COMM_SUM, 64));
        for (int i = BLOBS; i--;)
            assert_ok(sb_reducer_ready(reducer, blobs[i], &err));
        assert_status(fails ? SB_ERR_COMM_FAILURE : SB_OK, sb_reducer_wait(reducer, &err));
        fill_values(SB_DTYPE_F32, 101, fails ? 8 : -777, fails, values);
        assert_true(mem_holds(diff_of(blobs[1]), values, 3 * sizeof *values));
    }
}
