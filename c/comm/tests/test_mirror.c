/* Tests the arguments that a communicator passes to its engine, and how it uses the results. */
#include "blobs.h"
#include "mirror.h"
#include "ranks.h"

#include "../src/reducer.h"

#define MOST MIRROR_BLOBS
enum { LARGE = (2 * 128 << 10) / sizeof(float) }; /* for two ranks */

/* --- buckets --------------------------------------------------------------------------------- */

/* The sizes, in floats, of the blobs from the last to the first, and of the messages that are sent.
   A negative size marks a blob that is sent in place. */
struct sizes {
    size_t bucket_bytes;
    int64_t blobs[MOST];
    int64_t sent[MOST];
};

static const struct sizes rows[] = {
    {16, {4}, {-4}},               /* fills the bucket */
    {16, {3}, {3}},                /* does not fill the bucket */
    {16, {5}, {-5}},               /* exceeds the bucket */
    {16, {3, 1}, {4}},             /* two blobs fill the bucket */
    {16, {3, 2}, {3, 2}},          /* two blobs do not fit together */
    {16, {1, 1, 1, 1, 1}, {4, 1}}, /* the fifth blob begins a new bucket */
    {16, {2, 1, 2, 2}, {3, 4}},    /* a blob that does not fit begins a new bucket */
    {16, {5, 5, 4}, {-5, -5, -4}}, /* each blob fills or exceeds the bucket */
    {0, {1, 2, 3}, {-1, -2, -3}},  /* each blob is sent in place */
    {3, {1, 1}, {-1, -1}},         /* a bucket smaller than an element */
    {SIZE_MAX, {1, 7, 60}, {68}},  /* all blobs are gathered */
    {SIZE_MAX, {1}, {1}},
    /* A large blob is sent in place, which is faster than gathering, and at once. */
    {25 << 20, {7, LARGE + 1, LARGE - 1, 5, LARGE, 3}, {-LARGE - 1, -LARGE, LARGE + 14}},
};

static bool is_in_place(struct mirrored *w, const void *ptr) {
    for (int64_t i = 0; i < w->num_blobs; i++) {
        const void *bytes = host_of(w->blobs[i], SB_DATA);
        if (bytes == ptr)
            return true;
    }
    return false;
}

static void check_buckets(struct mirrored *w, const struct sizes *row, const sb_comm_engine *engine,
                          size_t element) {
    int64_t num_sent = 0, num = 0;
    mirrored_reopen(w, engine, false);
    while (num < MOST && row->blobs[num])
        num++;
    for (int64_t i = num; i--;)
        mirrored_add(w, element == 4 ? SB_DTYPE_F32 : SB_DTYPE_F64, row->blobs[i], (double)i,
                     SB_HEAD_AT_CPU);
    mirrored_register(w, SB_COMM_SUM,
                      row->bucket_bytes == SIZE_MAX ? SIZE_MAX : row->bucket_bytes * element / 4);
    while (num_sent < MOST && row->sent[num_sent])
        num_sent++;
    for (int64_t i = num; i--;)
        assert_ok(sb_reducer_ready(w->reducer, w->blobs[i], &err));
    assert_true(engine->start || w->mirror.num_sent == num_sent); /* without requests: at once */
    assert_ok(sb_reducer_wait(w->reducer, &err));
    assert_int_equal(w->mirror.num_sent, num_sent);
    for (int64_t i = 0; i < num_sent; i++) {
        const sb_comm_buffer *buffer = &w->mirror.sent[i].buffer;
        assert_int_equal(is_in_place(w, buffer->ptr) ? -buffer->count : buffer->count,
                         row->sent[i]);
    }
    for (int64_t i = 0; i < num; i++)
        assert_true(mirrored_holds(w, i, 2.0 * (double)(num - 1 - i), 2));
}

TEST_ON(mirrored, a_bucket_is_filled_to_its_limit_and_no_further) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_buckets(f, &rows[i], &mirror_engine, 4);
        check_buckets(f, &rows[i], &mirror_engine_at_once, 4);
        if (rows[i].blobs[1] < LARGE)
            check_buckets(f, &rows[i], &mirror_engine, 8);
    }
}

/* --- buffers of buckets ---------------------------------------------------------------------- */

/* Reopens the fixture with six blobs, each in a separate bucket; two buckets can be in flight. */
static void world_of_rooms(struct mirrored *w, const sb_comm_engine *engine) {
    mirrored_reopen(w, engine, false);
    for (int i = 0; i < MOST; i++)
        mirrored_add(w, SB_DTYPE_F32, 3, 100 * i, SB_HEAD_AT_CPU);
    mirrored_register(w, SB_COMM_SUM, 16);
}

TEST_ON(mirrored, at_most_two_buckets_are_in_flight) {
    for (int done = 0; done < 2; done++) {
        world_of_rooms(f, &mirror_engine);
        f->mirror.tests_are_done = done;
        for (int step = 1; step <= 4; step++) {
            for (int i = MOST; i--;) {
                assert_ok(sb_reducer_ready(f->reducer, f->blobs[i], &err));
                assert_true(f->mirror.flying <= 2);
            }
            assert_int_equal(f->mirror.num_sent, (step - 1) * MOST + (done ? MOST : 2));
            assert_ok(sb_reducer_wait(f->reducer, &err));
            assert_int_equal(f->mirror.num_sent, step * MOST);
            assert_int_equal(f->mirror.most_flying, done ? 1 : 2);
            assert_int_equal(f->mirror.second,
                             done ? 0 : step * (MOST - 1)); /* all starts but each step's first */
            for (int i = 0; i < MOST; i++)
                assert_true(mirrored_holds(f, i, 100 * i * (1 << step), 1 << step));
        }
    }
}

/* --- failures of the engine ------------------------------------------------------------------ */

enum slot { BEGIN, TEST, WAIT };

/* The n-th call of a slot fails, so the step returns COMM_FAILURE. Afterwards blobs of completed
   buckets are reduced, and all other blobs are unchanged. */
static void fail_step(struct mirrored *w, const sb_comm_engine *engine, enum slot slot, int64_t nth,
                      bool has_err) {
    world_of_rooms(w, engine);
    w->mirror.failure = SB_ERR_IO;
    w->mirror.fails_late = true;
    *(slot == BEGIN  ? &w->mirror.fail_begin
      : slot == TEST ? &w->mirror.fail_test
                     : &w->mirror.fail_end) = nth;
    if (has_err) {
        assert_error(SB_ERR_COMM_FAILURE, mirrored_step(w, &err), mirror_cause);
        assert_int_equal(err.device_code, 7);
        assert_int_equal(err.offset, -1);
    } else {
        assert_int_equal(mirrored_step(w, NULL), SB_ERR_COMM_FAILURE);
    }
    assert_int_equal(w->mirror.flying, 0);
    int64_t reduced = 0;
    for (int i = 0; i < MOST; i++) {
        assert_true(mirrored_holds(w, i, 200 * i, 2) || mirrored_holds(w, i, 100 * i, 1));
        reduced += mirrored_holds(w, i, 200 * i, 2);
    }
    assert_int_equal(reduced, w->mirror.num_sent - w->mirror.abandoned);
    assert_error(SB_ERR_COMM_FAILURE, sb_reducer_ready(w->reducer, w->blobs[0], &err),
                 "the communicator is unusable after an earlier failure");
    assert_status(SB_ERR_COMM_FAILURE, sb_reducer_wait(w->reducer, &err));
    for (int i = 0; i < MOST; i++) { /* the caller may use the blobs again */
        const int64_t longer = 60;
        assert_ok(sb_blob_reshape(w->blobs[i], &longer, 1, NULL, &err));
        mirrored_put(w, i, i, SB_HEAD_AT_GPU);
        assert_true(mirrored_holds(w, i, i, 1));
    }
    w->is_broken = true;
}

TEST_ON(mirrored, a_step_ends_if_the_engine_fails) {
    for (int has_err = 0; has_err < 2; has_err++) {
        for (int64_t nth = 1; nth <= MOST; nth++) {
            fail_step(f, &mirror_engine, BEGIN, nth, has_err);
            fail_step(f, &mirror_engine, WAIT, nth, has_err);
            fail_step(f, &mirror_engine_at_once, BEGIN, nth, has_err);
        }
        for (int64_t nth = 1; nth <= 2; nth++)
            fail_step(f, &mirror_engine, TEST, nth, has_err);
    }
}

/* If a reduction in place fails and both sides were current, the other side stays current. */
TEST_ON(mirrored, a_failed_reduction_in_place_keeps_the_other_side) {
    for (int takes = 0; takes < 2; takes++) {
        for (enum slot slot = BEGIN; slot <= WAIT; slot += 2) {
            mirrored_reopen(f, &mirror_engine, takes);
            mirrored_add(f, SB_DTYPE_F32, 3, 1, SB_HEAD_SYNCED);
            mirrored_register(f, SB_COMM_SUM, 0);
            f->mirror.failure = SB_ERR_COMM_FAILURE;
            *(slot == BEGIN ? &f->mirror.fail_begin : &f->mirror.fail_end) = 1;
            assert_int_equal(mirrored_step(f, &err), SB_ERR_COMM_FAILURE);
            assert_int_equal(sb_mem_head(data_of(f->blobs[0])),
                             takes ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU);
            assert_true(mirrored_holds(f, 0, 1, 1));
            f->is_broken = true;
        }
    }
}

TEST_ON(mirrored, destroying_a_reducer_waits_for_buckets_in_flight) {
    for (int fails = 0; fails < 2; fails++) {
        world_of_rooms(f, &mirror_engine);
        for (int i = MOST; i-- > 2;)
            assert_ok(sb_reducer_ready(f->reducer, f->blobs[i], &err));
        f->mirror.failure = SB_ERR_COMM_FAILURE;
        f->mirror.fail_end = fails;
        test_end(f->reducer);
        assert_int_equal(f->mirror.ends, fails ? 1 : 2);
        assert_int_equal(f->mirror.abandoned, fails ? 2 : 0);
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(f->comm, &err));
        for (int i = 0; i < MOST; i++)
            assert_true(mirrored_holds(f, i, 100 * i, 1)); /* gathered blobs are unchanged */
        f->is_broken = true;
    }
}

/* Waits for the end of the step, or destroys the reducer in the step. */
TEST_ON(mirrored, memory_that_the_engine_may_still_write_is_not_freed) {
    enum { BLOBS = 3 };
    sb_mem *kept[BLOBS];
    for (int how = 0; how < 4; how++) {
        const bool gathers = how & 1;
        mirrored_reopen(f, &mirror_engine, false);
        for (int i = 0; i < BLOBS; i++) {
            mirrored_add(f, SB_DTYPE_F32, 6, i, SB_HEAD_AT_CPU);
            kept[i] = data_of(f->blobs[i]);
        }
        mirrored_register(f, SB_COMM_SUM, gathers ? SIZE_MAX : 0);
        sb_mem *const rooms[] = {f->reducer->rooms[0].mem, f->reducer->rooms[1].mem};
        void *const first = f->reducer->rooms[0].ptr;
        f->mirror.failure = SB_ERR_COMM_FAILURE;
        f->mirror.fail_end = 1;
        f->mirror.keeps = f->is_broken = true;
        for (int i = 0; i < BLOBS; i++)
            assert_ok(sb_reducer_ready(f->reducer, f->blobs[i], &err));
        assert_status(SB_ERR_INVALID_ARGUMENT, sb_comm_barrier(f->comm, &err));
        if (how & 2)
            assert_error(SB_ERR_COMM_FAILURE, sb_reducer_wait(f->reducer, &err), mirror_cause);
        for (int i = 0; i < BLOBS && how & 2; i++)
            assert_true(mirrored_holds(f, i, i, 1)); /* this engine wrote nothing */
        test_end_after(f->rig.owned_before);
        assert_int_equal(f->mirror.abandoned, gathers ? 1 : BLOBS);
        assert_int_equal(f->rig.counting.live_buffers, gathers ? 1 : BLOBS);
        for (int i = 0; i < BLOBS && !gathers; i++) {
            assert_true(sb_mem_is_unique(kept[i]));
            sb_mem_release(kept[i]); /* so that the test leaks nothing */
        }
        if (gathers)
            sb_mem_release(rooms[f->mirror.sent[0].buffer.ptr != first]);
    }
}

/* --- a device that fails while it scales a mean ---------------------------------------------- */

/* The device fails while it scales blob `scale` of three, and the engine fails at blob `engine`; 0
   means no failure. In a step the host's bytes are current, so the device is not needed. */
static void fail_scaling(struct mirrored *w, bool in_step, int64_t scale, int64_t engine) {
    mirrored_reopen(w, &mirror_engine_at_once, true);
    for (int i = 0; i < 3; i++)
        mirrored_add(w, SB_DTYPE_F32, 3, 100 * i, in_step ? SB_HEAD_SYNCED : SB_HEAD_AT_GPU);
    if (in_step)
        mirrored_register(w, SB_COMM_MEAN, 0);
    w->mirror.failure = SB_ERR_COMM_FAILURE;
    w->mirror.fail_begin = engine;
    device_fail(w->rig.context, SB_SIM_SCALE, scale, SB_SIM_FAIL_NOW);
    support_poison_error(&err);
    const sb_status st =
        in_step ? mirrored_step(w, &err)
                : sb_comm_all_reduce_blobs(w->comm, w->blobs, 3, SB_DATA, SB_COMM_MEAN, &err);
    const bool lost_first = scale && (!engine || scale < engine);
    const sb_status expected = engine ? SB_ERR_COMM_FAILURE : scale ? SB_ERR_DEVICE_LOST : SB_OK;
    assert_int_equal(st, expected);
    if (st != SB_OK) {
        assert_int_equal(err.code, expected);
        assert_int_equal(strcmp(err.message, mirror_cause) == 0, expected == SB_ERR_COMM_FAILURE);
    }
    assert_int_equal(w->mirror.num_sent, engine ? engine - 1 : 3); /* other blobs are still sent */
    assert_int_equal(sb_comm_barrier(w->comm, NULL), engine ? SB_ERR_COMM_FAILURE : SB_OK);
    int num_lost = 0;                        /* blobs that the device was scaling */
    for (int i = 0; i < 3 && in_step; i++) { /* a mean equals the old values */
        const int32_t head = sb_mem_head(data_of(w->blobs[i]));
        num_lost += head == SB_HEAD_LOST;
        assert_true(head == SB_HEAD_LOST || head == SB_HEAD_AT_GPU ||
                    mirrored_holds(w, i, 100 * i, 1));
    }
    assert_int_equal(num_lost, in_step && lost_first);
    for (int i = 3; in_step && scale && !engine && i--;) { /* the next step has no failure */
        void *out;
        assert_ok(sb_blob_overwrite_cpu(w->blobs[i], SB_DATA, &out, &err));
        fill_values(SB_DTYPE_F32, 3, 5, 1, out);
        assert_ok(sb_reducer_ready(w->reducer, w->blobs[i], &err));
        if (i == 0)
            assert_ok(sb_reducer_wait(w->reducer, &err));
    }
    w->is_broken = engine;
}

TEST_ON(mirrored, other_ranks_do_not_wait_if_a_device_fails) {
    for (int in_step = 0; in_step < 2; in_step++)
        for (int64_t scale = 0; scale <= 3; scale++)
            for (int64_t engine = 0; engine <= 3; engine++)
                fail_scaling(f, in_step, scale, engine);
}

/* Checks that neither the sum nor the old bytes can be read. */
static void assert_no_bytes(sb_mem *mem) {
    const void *bytes;
    const sb_status st = sb_mem_cpu(mem, &bytes, NULL);
    assert_true(sb_mem_head(mem) == SB_HEAD_LOST ? st == SB_ERR_UNINITIALIZED
                                                 : st == SB_ERR_DEVICE_LOST);
}

/* All blobs are in flight when the device fails: scaling the first blob fails, and the later blobs
   find a lost device. */
TEST_ON(mirrored, the_first_failure_of_a_step_is_reported) {
    char first[sizeof((sb_error *)0)->message] = "";
    for (int num = 1; num <= 3; num += 2) {
        mirrored_reopen(f, &mirror_engine, true);
        for (int i = 0; i < num; i++)
            mirrored_add(f, SB_DTYPE_F32, 3, 100 * i, SB_HEAD_AT_GPU);
        mirrored_register(f, SB_COMM_MEAN, 0);
        device_fail(f->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_NOW);
        for (int i = num; i--;)
            assert_ok(sb_reducer_ready(f->reducer, f->blobs[i], &err));
        assert_int_equal(f->mirror.flying, num);
        assert_status(SB_ERR_DEVICE_LOST, sb_reducer_wait(f->reducer, &err));
        for (int i = 0; i < num; i++)
            assert_no_bytes(data_of(f->blobs[i]));
        if (num == 1)
            memcpy(first, err.message, sizeof first);
        assert_string_equal(err.message, first);
    }
}

/* Makes a step after the device is lost, with or without current bytes on the host. */
static void step_without_device(struct mirrored *w, sb_comm_op op, bool is_synced) {
    mirrored_reopen(w, &mirror_engine, true);
    mirrored_add(w, SB_DTYPE_F32, 3, 1, is_synced ? SB_HEAD_SYNCED : SB_HEAD_AT_GPU);
    mirrored_register(w, op, 0);
    device_fail(w->rig.context, SB_SIM_ANY, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST, sb_context_synchronize(w->rig.context, &err));
    assert_ok(sb_reducer_ready(w->reducer, w->blobs[0], &err));
    for (int again = 0; again < 2 && !is_synced; again++) {
        assert_status(SB_ERR_DEVICE_LOST, sb_reducer_wait(w->reducer, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT, sb_comm_barrier(w->comm, &err));
    }
    if (is_synced) {
        assert_ok(sb_reducer_wait(w->reducer, &err));
        assert_int_equal(sb_mem_head(data_of(w->blobs[0])), SB_HEAD_AT_CPU);
        assert_true(mirrored_holds(w, 0, op == SB_COMM_SUM ? 2 : 1, op == SB_COMM_SUM ? 2 : 1));
        assert_ok(sb_comm_broadcast_blobs(w->comm, w->blobs, 1, SB_DATA, 0, &err));
        assert_ok(sb_comm_all_reduce_blobs(w->comm, w->blobs, 1, SB_DATA, op, &err));
    }
    test_end(w->reducer);
    assert_int_equal(sb_comm_barrier(w->comm, NULL), is_synced ? SB_OK : SB_ERR_COMM_FAILURE);
    w->is_broken = !is_synced;
}

TEST_ON(mirrored, a_lost_device_fails_a_step_only_if_it_is_needed) {
    for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MEAN; op++)
        for (int is_synced = 0; is_synced < 2; is_synced++)
            step_without_device(f, op, is_synced);
}

TEST_ON(mirrored, a_device_without_arithmetic_leaves_means_to_the_host) {
    for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MEAN; op++) {
        mirrored_reopen(f, &mirror_engine, true);
        mirrored_add(f, SB_DTYPE_F32, 3, 1, SB_HEAD_AT_GPU);
        device_fail(f->rig.context, SB_SIM_PREPARE_ARITHMETIC, 1, SB_SIM_FAIL_NOW);
        const int64_t before = rig_tally(&f->rig).calls[SB_SIM_PREPARE_ARITHMETIC];
        assert_ok(sb_comm_all_reduce_blobs(f->comm, f->blobs, 1, SB_DATA, op, &err));
        const bool is_mean = op == SB_COMM_MEAN;
        assert_int_equal(rig_tally(&f->rig).calls[SB_SIM_PREPARE_ARITHMETIC] - before, is_mean);
        assert_int_equal(f->mirror.sent[0].buffer.context == NULL, is_mean);
        assert_true(mirrored_holds(f, 0, is_mean ? 1 : 2, is_mean ? 1 : 2));
    }
}

/* --- bytes that are sent --------------------------------------------------------------------- */

/* Bytes beyond a blob's count do not change. A blob without such bytes is not downloaded. */
TEST_ON(mirrored, a_broadcast_replaces_only_the_bytes_of_the_count) {
    const int64_t six = 6, four = 4;
    for (int whole = 0; whole < 2; whole++) {
        mirrored_reopen(f, &mirror_engine, false);
        f->mirror.fill = 0;
        mirrored_add(f, SB_DTYPE_F32, 6, 1, SB_HEAD_AT_GPU);
        if (!whole)
            assert_ok(sb_blob_reshape(f->blobs[0], &four, 1, NULL, &err));
        const struct tally before = rig_tally(&f->rig);
        assert_ok(sb_comm_broadcast_blobs(f->comm, f->blobs, 1, SB_DATA, 1, &err));
        assert_int_equal(rig_since(&f->rig, &before).downloads, !whole);
        assert_int_equal(f->mirror.num_sent, 1);
        assert_int_equal(f->mirror.sent[0].buffer.dtype, SB_DTYPE_U8); /* sent as bytes */
        assert_int_equal(f->mirror.sent[0].buffer.count, (whole ? 6 : 4) * sizeof(float));
        assert_ok(sb_blob_reshape(f->blobs[0], &six, 1, NULL, &err));
        const float after[] = {0, 0, 0, 0, whole ? 0.f : 5.f, whole ? 0.f : 6.f};
        assert_true(mem_holds(data_of(f->blobs[0]), after, sizeof after));
    }
}

struct kernel {
    sb_context *context;
    void *ptr;
};

static void write_sevens(void *user) {
    const struct kernel *kernel = user;
    float *values = sb_sim_address(kernel->context, kernel->ptr, 3 * sizeof *values);
    for (int i = 0; i < 3 && values; i++)
        values[i] = 7;
}

/* Queued work must end before a blob is sent, because this engine does not use streams. */
TEST_ON(mirrored, queued_work_ends_before_a_blob_is_sent) {
    for (int how = 0; how < 3; how++) {
        const bool own = how > 0, fails = how > 1;
        struct kernel kernel;
        mirrored_reopen(f, &mirror_engine, true);
        mirrored_add(f, SB_DTYPE_F32, 3, 7, SB_HEAD_AT_GPU);
        rig_schedule(&f->rig, SB_SIM_LAZY, 0);
        kernel.context = f->rig.context;
        assert_ok(sb_blob_mutable_gpu(f->blobs[0], SB_DATA, &kernel.ptr, &err));
        if (fails)
            device_fail(f->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_LATER);
        if (own)
            assert_ok(sb_blob_scale(f->blobs[0], SB_DATA, 3, &err));
        else
            assert_ok(sb_sim_launch(f->rig.context, NULL, write_sevens, &kernel, &err));
        assert_status(fails ? SB_ERR_DEVICE_LOST : SB_OK,
                      sb_comm_all_reduce_blobs(f->comm, f->blobs, 1, SB_DATA, SB_COMM_SUM, &err));
        assert_int_equal(f->mirror.num_sent, !fails);
        if (!fails) {
            assert_non_null(f->mirror.sent[0].buffer.context);
            assert_true(mirrored_holds(f, 0, own ? 42 : 14, own ? 6 : 0));
        }
    }
}

/* --- host memory of the caller --------------------------------------------------------------- */

TEST_ON(mirrored, values_and_bytes_reach_the_engine_unchanged) {
    char byte = 3;
    float values[] = {1, 2};
    mirrored_reopen(f, &mirror_engine_at_once, false);
    assert_ok(sb_comm_barrier(f->comm, &err)); /* implemented by a reduction */
    assert_int_equal(f->mirror.sent[0].buffer.count, 1);
    assert_int_equal(f->mirror.sent[0].buffer.dtype, SB_DTYPE_F64);
    assert_int_equal(f->mirror.sent[0].op, SB_COMM_SUM);
    assert_ok(sb_comm_broadcast(f->comm, 0, &byte, PTRDIFF_MAX, &err));
    assert_int_equal(f->mirror.sent[1].buffer.count, PTRDIFF_MAX);
    assert_ok(sb_comm_all_reduce(f->comm, SB_COMM_SUM, SB_DTYPE_F32, 2, values, &err));
    assert_true(values[0] == 2 && values[1] == 4);
    assert_ok(sb_comm_all_reduce(f->comm, SB_COMM_MEAN, SB_DTYPE_F32, 2, values, &err));
    assert_true(values[0] == 2 && values[1] == 4);
    assert_int_equal(f->mirror.sent[3].op, SB_COMM_SUM);
    assert_ok(sb_comm_all_reduce(f->comm, SB_COMM_MAX, SB_DTYPE_F32, 2, values, &err));
    assert_int_equal(f->mirror.sent[4].op, SB_COMM_MAX);
    assert_int_equal(f->mirror.num_sent, 5);
    f->mirror.failure = SB_ERR_OUT_OF_MEMORY;
    f->mirror.fail_begin = 6;
    assert_status(SB_ERR_OUT_OF_MEMORY,
                  sb_comm_all_reduce(f->comm, SB_COMM_MEAN, SB_DTYPE_F32, 2, values, &err));
    assert_int_equal(err.offset, -1);
    assert_true(values[0] == 2 && values[1] == 4); /* not scaled */
}
