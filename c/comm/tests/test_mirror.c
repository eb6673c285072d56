/* Tests communicators and reducers over the engine of mirror.h. */
#include "blobs.h"
#include "mirror.h"

#include "../src/reducer.h"

#include <math.h>
#include <syncblob/sim_comm.h>

#define MOST MIRROR_BLOBS
enum { LARGE = (2 * 128 << 10) / sizeof(float) }; /* 128 KiB for each of two ranks */

/* The sizes of the blobs, from the last to the first, and of the messages, in floats. A negative
   size means that a blob is sent in place. */
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
    /* A large blob is sent at once and in place. */
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
    assert_true(engine->start || w->mirror.num_sent == num_sent);
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
            assert_int_equal(f->mirror.second, done ? 0 : step * (MOST - 1));
            for (int i = 0; i < MOST; i++)
                assert_true(mirrored_holds(f, i, 100 * i * (1 << step), 1 << step));
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
            assert_true(mirrored_holds(f, i, 100 * i, 1));
        f->is_broken = true;
    }
}

TEST_ON(mirrored, memory_in_flight_outlives_a_reshape) {
    const int64_t longer = 60;
    for (int gathers = 0; gathers < 2; gathers++) {
        mirrored_reopen(f, &mirror_engine, false);
        mirrored_add(f, SB_DTYPE_F32, 6, 1, SB_HEAD_AT_CPU);
        mirrored_register(f, SB_COMM_SUM, gathers ? SIZE_MAX : 0);
        assert_ok(sb_reducer_ready(f->reducer, f->blobs[0], &err));
        assert_int_equal(f->mirror.flying, 1);
        assert_ok(sb_blob_reshape(f->blobs[0], &longer, 1, NULL, &err));
        assert_ok(sb_reducer_wait(f->reducer, &err));
        assert_true(mirrored_holds(f, 0, 0, 0));
    }
}

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
            assert_true(mirrored_holds(f, i, i, 1));
        test_end_after(f->rig.owned_before);
        assert_int_equal(f->mirror.abandoned, gathers ? 1 : BLOBS);
        assert_int_equal(f->rig.counting.live_buffers, gathers ? 1 : BLOBS);
        for (int i = 0; i < BLOBS && !gathers; i++) {
            assert_true(sb_mem_is_unique(kept[i]));
            sb_mem_release(kept[i]); /* the test frees the memory that the library must not free */
        }
        if (gathers)
            sb_mem_release(rooms[f->mirror.sent[0].buffer.ptr != first]);
    }
}

static void assert_no_bytes(sb_mem *mem) {
    const void *bytes;
    const sb_status st = sb_mem_cpu(mem, &bytes, NULL);
    assert_true(sb_mem_head(mem) == SB_HEAD_LOST ? st == SB_ERR_UNINITIALIZED
                                                 : st == SB_ERR_DEVICE_LOST);
}

/* Scaling the first blob fails. The other blobs find a lost device. */
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
        assert_int_equal(f->mirror.sent[0].buffer.dtype, SB_DTYPE_U8);
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
    assert_true(values[0] == 2 && values[1] == 4);
}

#define COUNT 6

TEST_ON(mirrored, a_blob_is_sent_on_the_side_that_the_engine_accepts) {
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (int i = 0; i < 10; i++) {
            const int32_t takes = i / 2 - 1; /* -1: the engine lacks the slot `takes` */
            const bool reduces = i % 2, has_bytes = head != SB_HEAD_UNINITIALIZED;
            const bool on_device = takes > 0 && head >= SB_HEAD_AT_GPU;
            sb_comm_engine engine = mirror_engine;
            if (takes < 0)
                engine.struct_size = offsetof(sb_comm_engine, takes);
            mirrored_reopen(f, &engine, takes);
            mirrored_add(f, SB_DTYPE_F32, COUNT, 1, head);
            assert_ok(
                reduces ? sb_comm_all_reduce_blobs(f->comm, f->blobs, 1, SB_DATA, SB_COMM_SUM, &err)
                        : sb_comm_broadcast_blobs(f->comm, f->blobs, 1, SB_DATA, 0, &err));
            assert_int_equal(f->mirror.sent[0].buffer.context != NULL, on_device);
            const int32_t written = on_device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU;
            const int32_t read = head == SB_HEAD_AT_GPU && !on_device ? SB_HEAD_SYNCED : head;
            assert_int_equal(sb_mem_head(data_of(f->blobs[0])),
                             reduces || !has_bytes ? written : read);
            assert_true(mirrored_holds(f, 0, has_bytes * (1 + reduces), has_bytes * (1 + reduces)));
        }
}

TEST_ON(mirrored, a_list_with_an_invalid_blob_is_refused_as_a_whole) {
    for (int i = 0; i < 2; i++)
        mirrored_add(f, SB_DTYPE_F32, COUNT, i + 1, SB_HEAD_AT_CPU);
    sb_comm *comm = f->comm;
    sb_context *context = f->rig.context;
    sb_blob *a = f->blobs[0], *b = f->blobs[1];
    sb_blob *sharer = test_vector(context, SB_DTYPE_F32, COUNT);
    sb_blob *integers = test_vector(context, SB_DTYPE_I32, COUNT);
    assert_ok(sb_blob_share(sharer, SB_DATA, a, &err));
    sb_blob *halves = test_vector(context, SB_DTYPE_BF16, COUNT);
    sb_blob *const shared[] = {a, b, sharer}, *const typed[] = {a, integers}, *const gap[] = {a, 0};
    assert_status(SB_ERR_SHARED,
                  sb_comm_all_reduce_blobs(comm, shared, 3, SB_DATA, SB_COMM_SUM, &err));
    for (int second = 1; second < 4; second++)
        for (int first = 0; first < second; first++) {
            sb_blob *twice[] = {a, b, integers, halves};
            twice[second] = twice[first];
            assert_status(SB_ERR_SHARED, sb_comm_broadcast_blobs(comm, twice, 4, SB_DATA, 0, &err));
        }
    assert_error(SB_ERR_UNSUPPORTED,
                 sb_comm_all_reduce_blobs(comm, typed, 2, SB_DATA, SB_COMM_SUM, &err),
                 "i32 values cannot be reduced");
    assert_error(SB_ERR_UNSUPPORTED,
                 sb_comm_all_reduce_blobs(comm, &halves, 1, SB_DATA, SB_COMM_SUM, &err),
                 "mirror does not reduce bf16");
    assert_ok(sb_comm_broadcast_blobs(comm, typed, 2, SB_DATA, 0, &err));
    assert_ok(sb_comm_broadcast_blobs(comm, &a, 1, SB_DIFF, 0, &err));
    assert_status(INVALID, sb_comm_broadcast_blobs(comm, NULL, 0, SB_DIFF + 1, 0, &err));
    assert_int_equal(err.device_code, 0);
    assert_error(INVALID, sb_comm_all_reduce_blobs(comm, gap, 2, SB_DATA, SB_COMM_SUM, &err),
                 "blob 1 is NULL");
    assert_status(INVALID, sb_comm_all_reduce_blobs(comm, typed, -1, SB_DATA, SB_COMM_SUM, &err));
    assert_status(INVALID, sb_comm_all_reduce_blobs(comm, &a, 1, SB_DATA, 9, &err));
    assert_status(INVALID, sb_comm_broadcast_blobs(comm, &a, 1, SB_DATA, 2, &err));
    assert_ok(sb_comm_all_reduce_blobs(comm, NULL, 0, SB_DATA, SB_COMM_SUM, &err));
    assert_true(mirrored_holds(f, 0, 1, 1) && mirrored_holds(f, 1, 2, 1));
    assert_int_equal(f->mirror.begins, 3);
}

static sb_status no_way_in(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                           sb_error *err) {
    return sb_error_fill(err, *(sb_status *)user, 7, "no way in");
}

#define REFUSES(member, value, status, part)                                                       \
    do {                                                                                           \
        sb_comm_engine table = mirror_engine_at_once;                                              \
        table.member = (value);                                                                    \
        assert_reports(status, sb_comm_create(NULL, &table, &mirror, &comm, &err), part);          \
        assert_null(comm);                                                                         \
    } while (0)

TEST(tables_of_engines_are_checked) {
    static const sb_status opens[][2] = {{SB_ERR_NO_DEVICE, SB_ERR_COMM_FAILURE},
                                         {SB_ERR_DEVICE_LOST, SB_ERR_DEVICE_LOST},
                                         {SB_ERR_UNSUPPORTED, SB_ERR_UNSUPPORTED}};
    static const char *const names[] = {"", "a b", "engine\n", "\xc3\xa4", "mpi-2"};
    struct mirror mirror = {.closed = 0};
    sb_comm *comm = NULL;
    REFUSES(name, NULL, INVALID, "must have a name");
    REFUSES(open, NULL, INVALID, "must have the slots open and close");
    REFUSES(close, NULL, INVALID, "must have the slots open and close");
    REFUSES(all_reduce, NULL, INVALID, "must have all_reduce and broadcast");
    REFUSES(broadcast, NULL, INVALID, "must have all_reduce and broadcast");
    REFUSES(abi_version, SB_COMM_ENGINE_ABI_VERSION + 1, SB_ERR_ABI_MISMATCH, "");
    REFUSES(struct_size, 16, SB_ERR_ABI_MISMATCH, "has ");
    REFUSES(struct_size, sizeof(sb_comm_engine) - 1, SB_ERR_ABI_MISMATCH, "within a member");
    REFUSES(flags, SB_COMM_ENGINE_HALF | 2, SB_ERR_UNSUPPORTED, "");
    REFUSES(abandon, mirror_engine.abandon, INVALID, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        REFUSES(name, names[i], INVALID, "");
    sb_comm_engine table = mirror_engine;
    table.open = no_way_in;
    for (int i = 0; i < 3; i++) {
        sb_status failure = opens[i][0];
        assert_error(opens[i][1], sb_comm_create(NULL, &table, &failure, &comm, &err), "no way in");
    }
    assert_int_equal(mirror.closed, 0);
    table = mirror_engine;
    table.name = "Mpi2";
    table.struct_size = offsetof(sb_comm_engine, barrier); /* an older table, without later slots */
    assert_ok(sb_comm_create(NULL, &table, &mirror, &comm, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_sim_comm_fail(comm, 1, SB_SIM_COMM_STOP, &err));
    assert_status(INVALID, sb_sim_comm_fail(comm, -1, SB_SIM_COMM_STOP, &err));
    sb_comm_destroy(comm);
}

static int32_t lie;

static sb_status open_with_a_lie(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                                 sb_error *err) {
    *out = user;
    *out_rank = lie;
    *out_size = 2;
    return SB_OK;
}

TEST_ON(rig, an_engine_with_an_invalid_rank_is_closed) {
    sb_comm_engine engine = mirror_engine;
    engine.open = open_with_a_lie;
    for (lie = -1; lie <= 2; lie += 3) {
        struct mirror mirror = {.closed = 0};
        sb_comm *comm = NULL;
        assert_error(SB_ERR_COMM_FAILURE, sb_comm_create(f->context, &engine, &mirror, &comm, &err),
                     lie < 0 ? "mirror reports rank -1 of 2" : "mirror reports rank 2 of 2");
        assert_null(comm);
        assert_int_equal(mirror.closed, 1);
        assert_int_equal(mirror.closed_failed, 1);
    }
}

/* --- registration: the engine acts as rank 1, which has registered other blobs --- */

static struct other {
    bool agrees;
    int differs_at; /* the index of the reduced number that differs; 0 means 1 */
    double finds;   /* the rank that finds the difference */
    sb_error sent;  /* the error that rank 1 broadcasts */
} other;

static sb_status other_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    double *values = buffer->ptr;
    const sb_status st = mirror_engine.all_reduce(comm, op, buffer, err);
    if (st == SB_OK && op == SB_COMM_MAX && !other.agrees)
        values[other.differs_at ? other.differs_at : 1] += 1;
    if (st == SB_OK && op == SB_COMM_MIN)
        values[0] = other.finds;
    return st;
}

static sb_status other_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    const sb_status st = mirror_engine.broadcast(comm, root, buffer, err);
    if (st == SB_OK && root == 1)
        memcpy(buffer->ptr, &other.sent, sizeof other.sent);
    return st;
}

static void reopen(struct mirrored *f) {
    sb_comm_engine engine = mirror_engine_at_once;
    engine.struct_size = offsetof(sb_comm_engine, barrier);
    engine.all_reduce = other_all_reduce;
    engine.broadcast = other_broadcast;
    other = (struct other){
        .finds = 1,
        .sent = {.code = SB_ERR_SHAPE_MISMATCH, .offset = 77, .message = "one is longer"}};
    mirrored_reopen(f, &engine, false);
    mirrored_add(f, SB_DTYPE_F32, 3, 0, SB_HEAD_UNINITIALIZED);
}

static sb_status create(struct mirrored *f, sb_error *err) {
    sb_reducer *reducer = NULL;
    const sb_status st = sb_reducer_create(f->comm, f->blobs, 1, NULL, &reducer, err);
    assert_true((st == SB_OK) == (reducer != NULL));
    sb_reducer_destroy(reducer);
    return st;
}

TEST_ON(mirrored, the_error_of_the_rank_that_finds_a_difference_is_returned) {
    reopen(f);
    assert_error(SB_ERR_SHAPE_MISMATCH, create(f, &err), "one is longer");
    assert_int_equal(err.offset, -1);
    assert_int_equal(f->mirror.begins, 5); /* checksums, two records, a rank, the rank's error */
    memset(other.sent.message, 'x', sizeof other.sent.message);
    assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    other.sent.message[0] = '\0';
    assert_error(SB_ERR_SHAPE_MISMATCH, create(f, &err), "registration failed and gave no reason");
    other.agrees = true;
    f->mirror.begins = 0;
    assert_ok(create(f, &err));
    assert_int_equal(f->mirror.begins, 1);
}

/* Each half of the checksum is sent twice: unchanged and negated. */
TEST_ON(mirrored, each_part_of_the_checksum_is_compared) {
    for (int part = 0; part <= 4; part++) {
        reopen(f);
        other.differs_at = part;
        assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    }
}

TEST_ON(mirrored, only_the_first_operation_may_be_retried) {
    static const sb_status failures[] = {SB_ERR_OUT_OF_MEMORY, SB_ERR_UNSUPPORTED,
                                         SB_ERR_DEVICE_LOST, SB_ERR_IO};
    for (size_t k = 0; k < 4; k++) {
        for (int64_t nth = 1; nth <= 5; nth++) {
            reopen(f);
            f->mirror.fail_begin = nth;
            f->mirror.failure = failures[k];
            const bool again = nth == 1 && failures[k] != SB_ERR_IO;
            assert_error(again ? failures[k] : SB_ERR_COMM_FAILURE, create(f, &err), mirror_cause);
            assert_int_equal(err.device_code, 7);
            other.agrees = true;
            assert_status(again ? SB_OK : SB_ERR_COMM_FAILURE, create(f, &err));
            assert_int_equal(f->mirror.begins, again ? nth + 1 : nth);
            f->is_broken = !again;
        }
    }
}

TEST_ON(mirrored, invalid_data_of_another_rank_is_a_failure) {
    static const double finders[] = {2, 3, -1, 1e300, -1e300, (double)NAN};
    static const sb_status codes[] = {SB_OK, 1, INT32_MAX};
    for (size_t i = 0; i < 6 + 3; i++) {
        reopen(f);
        if (i < 6)
            other.finds = finders[i];
        else
            other.sent.code = codes[i - 6];
        assert_error(SB_ERR_COMM_FAILURE, create(f, &err),
                     i < 6 ? "the registrations differ, but no rank found a difference"
                           : "one is longer");
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(f->comm, &err));
        f->is_broken = true;
    }
}
