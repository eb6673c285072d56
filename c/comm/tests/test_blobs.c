/* Tests collectives on blobs: on which side bytes are reduced, the heads afterwards, and the state
   after a failure; and which tables of engines are refused. The engine is that of mirror.h. */
#include "blobs.h"
#include "mirror.h"

#include <syncblob/sim_comm.h>

#define COUNT 6

static const int32_t heads[] = {SB_HEAD_UNINITIALIZED, SB_HEAD_AT_CPU, SB_HEAD_AT_GPU,
                                SB_HEAD_SYNCED};

static bool is_on_device(int32_t head) {
    return head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
}

static bool was_on_device(const struct mirrored *m) {
    return m->mirror.sent[0].buffer.context != NULL;
}

TEST_ON(mirrored, a_blob_is_reduced_on_the_side_that_the_engine_accepts) {
    for (size_t i = 0; i < 4; i++) {
        for (int32_t takes = -1; takes <= 3; takes++) { /* -1: the slot is missing */
            sb_comm_engine engine = mirror_engine;
            if (takes < 0)
                engine.struct_size = offsetof(sb_comm_engine, takes);
            mirrored_reopen(f, &engine, takes);
            mirrored_add(f, SB_DTYPE_F32, COUNT, 1, heads[i]);
            assert_ok(sb_comm_all_reduce_blobs(f->comm, f->blobs, 1, SB_DATA, SB_COMM_SUM, &err));
            const bool on_device = takes > 0 && is_on_device(heads[i]);
            assert_int_equal(was_on_device(f), on_device);
            assert_int_equal(sb_mem_head(data_of(f->blobs[0])),
                             on_device ? SB_HEAD_AT_GPU : SB_HEAD_AT_CPU);
            assert_true(mirrored_holds(f, 0, heads[i] ? 2 : 0, heads[i] ? 2 : 0));
        }
    }
}

TEST_ON(mirrored, a_broadcast_keeps_the_root_s_heads_but_for_a_first_use) {
    for (size_t i = 0; i < 4; i++) {
        for (int32_t takes = 0; takes < 2; takes++) {
            mirrored_reopen(f, &mirror_engine, takes);
            mirrored_add(f, SB_DTYPE_F32, COUNT, 1, heads[i]);
            assert_ok(sb_comm_broadcast_blobs(f->comm, f->blobs, 1, SB_DATA, 0, &err));
            assert_int_equal(was_on_device(f), takes && is_on_device(heads[i]));
            const int32_t through_host = heads[i] == SB_HEAD_AT_GPU ? SB_HEAD_SYNCED : heads[i];
            assert_int_equal(sb_mem_head(data_of(f->blobs[0])), !heads[i] ? SB_HEAD_AT_CPU
                                                                : takes   ? heads[i]
                                                                          : through_host);
        }
    }
}

/* --- failures -------------------------------------------------------------------------------- */

/* The engine fails at the n-th of three blobs. The head of that blob moves only if both sides were
   current and the engine may have sent a part of the blob. */
static void check_failure(struct mirrored *f, size_t at, int32_t takes, int64_t nth,
                          sb_status failure) {
    mirrored_reopen(f, &mirror_engine, takes);
    f->mirror.fail_begin = nth;
    f->mirror.failure = failure;
    for (int i = 0; i < 3; i++)
        mirrored_add(f, SB_DTYPE_F32, COUNT, 10 * i, heads[at]);
    const bool unsent = failure == SB_ERR_OUT_OF_MEMORY || failure == SB_ERR_DEVICE_LOST;
    const bool again = unsent && nth == 1;
    assert_error(again ? failure : SB_ERR_COMM_FAILURE,
                 sb_comm_all_reduce_blobs(f->comm, f->blobs, 3, SB_DATA, SB_COMM_SUM, &err),
                 mirror_cause);
    assert_int_equal(err.device_code, 7);
    const int32_t other_side = takes ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
    for (int i = 0; i < 3; i++) {
        const int32_t head = sb_mem_head(data_of(f->blobs[i]));
        if (i < nth - 1)
            assert_true(head != SB_HEAD_SYNCED && (!heads[at] || mirrored_holds(f, i, 20 * i, 2)));
        else if (heads[at] == SB_HEAD_SYNCED && i == nth - 1 && !unsent)
            assert_true(head == other_side && mirrored_holds(f, i, 10 * i, 1));
        else
            assert_int_equal(head, heads[at]);
        if (i >= nth - unsent && heads[at])
            assert_true(mirrored_holds(f, i, 10 * i, 1));
    }
    assert_int_equal(sb_comm_barrier(f->comm, NULL), again ? SB_OK : SB_ERR_COMM_FAILURE);
    f->is_broken = !again;
}

TEST_ON(mirrored, a_failure_leaves_later_blobs_unchanged) {
    static const sb_status failures[] = {SB_ERR_COMM_FAILURE, SB_ERR_OUT_OF_MEMORY,
                                         SB_ERR_DEVICE_LOST, SB_ERR_IO};
    for (size_t at = 0; at < 4; at++)
        for (int32_t takes = 0; takes < 2; takes++)
            for (int64_t nth = 1; nth <= 3; nth++)
                for (size_t i = 0; i < 4; i++)
                    check_failure(f, at, takes, nth, failures[i]);
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
    assert_int_equal(f->mirror.begins, 3); /* one call for each blob that was broadcast */
}

/* --- tables ---------------------------------------------------------------------------------- */

static sb_status no_barrier(void *comm, sb_error *err) {
    return SB_OK;
}

/* Tries every struct_size from the end of the required slots to the end of the table. */
TEST(a_table_that_ends_within_a_slot_is_refused) {
    sb_comm_engine table = mirror_engine_at_once;
    table.barrier = no_barrier;
    for (size_t size = offsetof(sb_comm_engine, barrier); size <= sizeof table; size++) {
        struct mirror mirror = {.begins = 0};
        sb_comm *comm = NULL;
        table.struct_size = size;
        if (size % sizeof(void *)) {
            assert_status(SB_ERR_ABI_MISMATCH, sb_comm_create(NULL, &table, &mirror, &comm, &err));
            assert_null(comm);
            continue;
        }
        assert_ok(sb_comm_create(NULL, &table, &mirror, &comm, &err));
        assert_ok(sb_comm_barrier(comm, &err));
        assert_int_equal(mirror.begins, size == offsetof(sb_comm_engine, barrier));
        sb_comm_destroy(comm);
    }
}

static sb_status no_way_in(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                           sb_error *err) {
    return sb_error_fill(err, *(sb_status *)user, 7, "no way in");
}

/* Asserts that mirror_engine_at_once is refused if a member of the table has another value. */
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
    REFUSES(struct_size, 16, SB_ERR_ABI_MISMATCH, "");
    REFUSES(flags, SB_COMM_ENGINE_HALF | 2, SB_ERR_UNSUPPORTED, "");
    REFUSES(abandon, mirror_engine.abandon, INVALID, ""); /* without other slots of requests */
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

static const int32_t *lie; /* the rank and size that the engine reports */

static sb_status open_with_a_lie(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                                 sb_error *err) {
    *out = user;
    *out_rank = lie[0];
    *out_size = lie[1];
    return SB_OK;
}

TEST_ON(rig, an_engine_with_an_invalid_rank_is_closed) {
    static const int32_t lies[][2] = {{-1, 2}, {2, 2}, {0, 0}, {0, -1}, {1, 1}, {3, -3}};
    sb_comm_engine engine = mirror_engine;
    engine.open = open_with_a_lie;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct mirror mirror = {.closed = 0};
        sb_comm *comm = NULL;
        lie = lies[i];
        char text[80];
        rig_reopen_on(f, "cpu", 0);
        (void)snprintf(text, sizeof text, "mirror reports rank %d of %d", lies[i][0], lies[i][1]);
        assert_error(SB_ERR_COMM_FAILURE, sb_comm_create(f->context, &engine, &mirror, &comm, &err),
                     text);
        assert_null(comm);
        assert_int_equal(mirror.closed, 1);
        assert_int_equal(mirror.closed_failed, 1);
    }
}
