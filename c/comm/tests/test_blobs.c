/* Tests collectives on blobs: on which side bytes are reduced, the heads afterwards, and the state
   after a failure. The engine is "sim" or, for one rank, an engine that fails on request. */
#include "blobs.h"
#include "comms.h"

#include <syncblob/sim_comm.h>

#define COUNT 6

/* --- an engine of one rank, which adds 100 to reduced values, and fails on request --------- */

struct single {
    int32_t takes_device;
    int64_t calls, fail_nth;
    sb_status failure;
    bool was_on_device, lies;
    int32_t rank, size; /* the rank and size reported if `lies` */
    int closed, closed_failed;
};

static sb_status single_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                             sb_error *err) {
    struct single *single = user;
    if (single->fail_nth < 0)
        return sb_error_fill(err, single->failure, 7, "no way in");
    *out = user;
    *out_rank = single->lies ? single->rank : 0;
    *out_size = single->lies ? single->size : 1;
    return SB_OK;
}

static void single_close(void *comm, int32_t failed) {
    struct single *single = comm;
    single->closed++;
    single->closed_failed += failed;
}

static sb_status single_call(struct single *single, const sb_comm_buffer *buffer, sb_error *err) {
    single->was_on_device = buffer->context != NULL;
    return ++single->calls == single->fail_nth
               ? sb_error_fill(err, single->failure, 7, "the wire is cut")
               : SB_OK;
}

static sb_status single_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                   sb_error *err) {
    struct single *single = comm;
    float values[COUNT];
    const sb_status st = single_call(single, buffer, err);
    if (st != SB_OK)
        return st;
    const size_t bytes = (size_t)buffer->count * sb_dtype_size(buffer->dtype);
    bytes_get(buffer->context, buffer->ptr, values, bytes);
    for (int i = 0; i < COUNT; i++)
        values[i] += 100;
    bytes_put(buffer->context, buffer->ptr, values, bytes);
    return SB_OK;
}

static sb_status single_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    return single_call(comm, buffer, err);
}

static int32_t single_takes(void *comm, sb_context *context) {
    return ((struct single *)comm)->takes_device;
}

static const sb_comm_engine single_engine = {
    .struct_size = sizeof single_engine,
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .name = "single",
    .open = single_open,
    .close = single_close,
    .all_reduce = single_all_reduce,
    .broadcast = single_broadcast,
    .takes = single_takes,
};

/* --- one blob in each state ------------------------------------------------------------------ */

static const int32_t heads[] = {SB_HEAD_UNINITIALIZED, SB_HEAD_AT_CPU, SB_HEAD_AT_GPU,
                                SB_HEAD_SYNCED};

static sb_blob *blob_at(sb_context *context, int32_t head, double start) {
    float values[COUNT];
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, COUNT);
    fill_values(SB_DTYPE_F32, COUNT, start, 1, values);
    mem_place(data_of(blob), head, values, sizeof values);
    return blob;
}

static bool holds(sb_blob *blob, double start, double step) {
    float values[COUNT];
    fill_values(SB_DTYPE_F32, COUNT, start, step, values);
    return mem_holds(data_of(blob), values, sizeof values);
}

static bool is_on_device(int32_t head) {
    return head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
}

TEST_ON(rig, a_blob_is_reduced_on_the_side_that_the_engine_accepts) {
    for (size_t i = 0; i < 4; i++) {
        for (int32_t takes = -1; takes <= 3; takes++) { /* -1: the slot is missing */
            struct single single = {.takes_device = takes};
            sb_comm_engine engine = single_engine;
            if (takes < 0)
                engine.struct_size = offsetof(sb_comm_engine, takes);
            rig_reopen_on(f, "sim:0", 0);
            sb_comm *comm = test_comm(f->context, &engine, &single);
            sb_blob *blob = blob_at(f->context, heads[i], 1);
            assert_ok(sb_comm_all_reduce_blobs(comm, &blob, 1, SB_DATA, SB_COMM_SUM, &err));
            const bool on_device = takes > 0 && is_on_device(heads[i]);
            assert_int_equal(single.was_on_device, on_device);
            assert_int_equal(sb_mem_head(data_of(blob)),
                             on_device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU);
            assert_true(heads[i] ? holds(blob, 101, 1) : holds(blob, 100, 0));
            test_end(comm);
            assert_int_equal(single.closed, 1);
            assert_int_equal(single.closed_failed, 0);
        }
    }
}

TEST_ON(rig, a_broadcast_keeps_the_root_s_heads_but_for_a_first_use) {
    for (size_t i = 0; i < 4; i++) {
        for (int32_t takes = 0; takes < 2; takes++) {
            struct single single = {.takes_device = takes};
            rig_reopen_on(f, "sim:0", 0);
            sb_comm *comm = test_comm(f->context, &single_engine, &single);
            sb_blob *blob = blob_at(f->context, heads[i], 1);
            assert_ok(sb_comm_broadcast_blobs(comm, &blob, 1, SB_DATA, 0, &err));
            assert_int_equal(single.was_on_device, takes && is_on_device(heads[i]));
            const int32_t through_host = heads[i] == SB_HEAD_AT_GPU ? SB_HEAD_SYNCED : heads[i];
            assert_int_equal(sb_mem_head(data_of(blob)), !heads[i] ? SB_HEAD_AT_CPU
                                                         : takes   ? heads[i]
                                                                   : through_host);
            test_end(comm);
        }
    }
}

/* --- failures -------------------------------------------------------------------------------- */

/* The engine fails at the n-th of three blobs. The head of that blob moves only if both sides were
   current and the engine may have sent a part of the blob. */
static void check_failure(size_t at, int32_t takes, int64_t nth, sb_status failure) {
    struct single single = {.takes_device = takes, .fail_nth = nth, .failure = failure};
    struct rig rig;
    sb_blob *blobs[3];
    rig_open(&rig);
    sb_comm *comm = test_comm(rig.context, &single_engine, &single);
    for (int i = 0; i < 3; i++)
        blobs[i] = blob_at(rig.context, heads[at], 10 * i);
    const bool unsent = failure == SB_ERR_OUT_OF_MEMORY || failure == SB_ERR_DEVICE_LOST;
    const bool again = unsent && nth == 1;
    assert_error(again ? failure : SB_ERR_COMM_FAILURE,
                 sb_comm_all_reduce_blobs(comm, blobs, 3, SB_DATA, SB_COMM_SUM, &err),
                 "the wire is cut");
    assert_int_equal(err.device_code, 7);
    const int32_t other_side = takes ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
    for (int i = 0; i < 3; i++) {
        const int32_t head = sb_mem_head(data_of(blobs[i]));
        if (i < nth - 1)
            assert_true(head != SB_HEAD_SYNCED && (!heads[at] || holds(blobs[i], 100 + 10 * i, 1)));
        else if (heads[at] == SB_HEAD_SYNCED && i == nth - 1 && !unsent)
            assert_true(head == other_side && holds(blobs[i], 10 * i, 1));
        else
            assert_int_equal(head, heads[at]);
        if (i >= nth - unsent && heads[at])
            assert_true(holds(blobs[i], 10 * i, 1));
    }
    assert_int_equal(sb_comm_barrier(comm, NULL), again ? SB_OK : SB_ERR_COMM_FAILURE);
    test_end(comm);
    assert_int_equal(single.closed_failed, !again);
    rig_close(&rig);
}

TEST(a_failure_leaves_later_blobs_unchanged) {
    static const sb_status failures[] = {SB_ERR_COMM_FAILURE, SB_ERR_OUT_OF_MEMORY,
                                         SB_ERR_DEVICE_LOST, SB_ERR_IO};
    for (size_t at = 0; at < 4; at++)
        for (int32_t takes = 0; takes < 2; takes++)
            for (int64_t nth = 1; nth <= 3; nth++)
                for (size_t f = 0; f < 4; f++)
                    check_failure(at, takes, nth, failures[f]);
}

TEST_ON(rig, a_list_with_an_invalid_blob_is_refused_as_a_whole) {
    struct single single = {.calls = 0};
    rig_reopen_on(f, "cpu", 0);
    sb_comm *comm = test_comm(f->context, &single_engine, &single);
    sb_blob *a = blob_at(f->context, SB_HEAD_AT_CPU, 1);
    sb_blob *b = blob_at(f->context, SB_HEAD_AT_CPU, 2);
    sb_blob *sharer = test_vector(f->context, SB_DTYPE_F32, COUNT);
    sb_blob *integers = test_vector(f->context, SB_DTYPE_I32, COUNT);
    assert_ok(sb_blob_share(sharer, SB_DATA, a, &err));
    sb_blob *halves = test_vector(f->context, SB_DTYPE_BF16, COUNT);
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
                 "single does not reduce bf16");
    assert_ok(sb_comm_broadcast_blobs(comm, typed, 2, SB_DATA, 0, &err));
    assert_ok(sb_comm_broadcast_blobs(comm, &a, 1, SB_DIFF, 0, &err));
    assert_status(INVALID, sb_comm_broadcast_blobs(comm, NULL, 0, SB_DIFF + 1, 0, &err));
    assert_int_equal(err.device_code, 0);
    assert_status(INVALID, sb_comm_all_reduce_blobs(comm, gap, 2, SB_DATA, SB_COMM_SUM, &err));
    assert_status(INVALID, sb_comm_all_reduce_blobs(comm, typed, -1, SB_DATA, SB_COMM_SUM, &err));
    assert_status(INVALID, sb_comm_all_reduce_blobs(comm, &a, 1, SB_DATA, 9, &err));
    assert_status(INVALID, sb_comm_broadcast_blobs(comm, &a, 1, SB_DATA, 1, &err));
    assert_ok(sb_comm_all_reduce_blobs(comm, NULL, 0, SB_DATA, SB_COMM_SUM, &err));
    assert_true(holds(a, 1, 1) && holds(b, 2, 1));
    assert_int_equal(single.calls, 3); /* one call for each blob that was broadcast */
    test_end(comm);
}

TEST(overlapping_memory_of_the_caller_is_reduced_twice) {
    struct single single = {.calls = 0};
    sb_blob *blobs[2];
    float values[COUNT] = {0};
    sb_comm *comm = test_comm(NULL, &single_engine, &single);
    for (int i = 0; i < 2; i++) {
        blobs[i] = test_vector(NULL, SB_DTYPE_F32, COUNT);
        assert_ok(sb_blob_set_cpu(blobs[i], SB_DATA, values, sizeof values, 0, NULL, NULL, &err));
    }
    assert_ok(sb_comm_all_reduce_blobs(comm, blobs, 2, SB_DATA, SB_COMM_SUM, &err));
    assert_true(holds(blobs[0], 200, 0) && holds(blobs[1], 200, 0));
    test_end(comm);
}

/* --- tables ---------------------------------------------------------------------------------- */

static sb_status single_barrier(void *comm, sb_error *err) {
    return SB_OK;
}

/* Tries every struct_size from the end of the required slots to the end of the table. */
TEST(a_table_that_ends_within_a_slot_is_refused) {
    struct single single = {.calls = 0};
    sb_comm_engine table = single_engine;
    table.barrier = single_barrier;
    for (size_t size = offsetof(sb_comm_engine, barrier); size <= sizeof table; size++) {
        sb_comm *comm = NULL;
        table.struct_size = size;
        single.calls = 0;
        if (size % sizeof(void *)) {
            assert_status(SB_ERR_ABI_MISMATCH, sb_comm_create(NULL, &table, &single, &comm, &err));
            assert_null(comm);
            continue;
        }
        assert_ok(sb_comm_create(NULL, &table, &single, &comm, &err));
        assert_ok(sb_comm_barrier(comm, &err));
        assert_int_equal(single.calls, size == offsetof(sb_comm_engine, barrier));
        sb_comm_destroy(comm);
    }
}

TEST(tables_of_engines_are_checked) {
    struct single single = {.calls = 0};
    sb_comm_engine table = single_engine;
    sb_comm *comm;
    table.abi_version++;
    assert_status(SB_ERR_ABI_MISMATCH, sb_comm_create(NULL, &table, &single, &comm, &err));
    table = single_engine;
    table.struct_size = 16;
    assert_status(SB_ERR_ABI_MISMATCH, sb_comm_create(NULL, &table, &single, &comm, &err));
    table = single_engine;
    table.flags = SB_COMM_ENGINE_HALF | 2;
    assert_status(SB_ERR_UNSUPPORTED, sb_comm_create(NULL, &table, &single, &comm, &err));
    table = single_engine;
    table.all_reduce = NULL;
    assert_status(INVALID, sb_comm_create(NULL, &table, &single, &comm, &err));
    table = single_engine;
    table.abandon = (int32_t(*)(void *, void *))(void (*)(void))single_close;
    assert_status(INVALID, sb_comm_create(NULL, &table, &single, &comm, &err));
    single.fail_nth = -1;
    single.failure = SB_ERR_NO_DEVICE;
    assert_status(SB_ERR_COMM_FAILURE, sb_comm_create(NULL, &single_engine, &single, &comm, &err));
    single.failure = SB_ERR_DEVICE_LOST;
    assert_status(SB_ERR_DEVICE_LOST, sb_comm_create(NULL, &single_engine, &single, &comm, &err));
    single.failure = SB_ERR_UNSUPPORTED;
    assert_error(SB_ERR_UNSUPPORTED, sb_comm_create(NULL, &single_engine, &single, &comm, &err),
                 "no way in");
    assert_int_equal(single.closed, 0);
    single.fail_nth = 0;
    table = single_engine;
    table.struct_size = offsetof(sb_comm_engine, barrier); /* an older table, without later slots */
    assert_ok(sb_comm_create(NULL, &table, &single, &comm, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_sim_comm_fail(comm, 1, SB_SIM_COMM_STOP, &err));
    assert_status(INVALID, sb_sim_comm_fail(comm, -1, SB_SIM_COMM_STOP, &err));
    sb_comm_destroy(comm);
}

TEST_ON(rig, an_engine_with_an_invalid_rank_is_closed) {
    static const int32_t lies[][2] = {{-1, 2}, {2, 2}, {0, 0}, {0, -1}, {1, 1}, {3, -3}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct single single = {.lies = true, .rank = lies[i][0], .size = lies[i][1]};
        sb_comm *comm = NULL;
        char text[80];
        rig_reopen_on(f, "cpu", 0);
        (void)snprintf(text, sizeof text, "single reports rank %d of %d", lies[i][0], lies[i][1]);
        assert_error(SB_ERR_COMM_FAILURE,
                     sb_comm_create(f->context, &single_engine, &single, &comm, &err), text);
        assert_null(comm);
        assert_int_equal(single.closed, 1);
        assert_int_equal(single.closed_failed, 1);
    }
}

TEST(names_of_engines_are_letters_and_digits) {
    static const char *const names[] = {"", "a b", "engine\n", "\xc3\xa4", "mpi-2"};
    struct single single = {.calls = 0};
    sb_comm_engine table = single_engine;
    sb_comm *comm = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        table.name = names[i];
        assert_status(INVALID, sb_comm_create(NULL, &table, &single, &comm, &err));
        assert_null(comm);
    }
    table.name = "Mpi2";
    assert_ok(sb_comm_create(NULL, &table, &single, &comm, &err));
    sb_comm_destroy(comm);
}
