/* Tests how rank 0 of two compares registrations before a reducer's first step. The engine acts as
   rank 1, which has registered other blobs and may send anything. */
#include "blobs.h"
#include "fail_calloc.h"

#include <math.h>
#include <syncblob/comm_engine.h>
#include <syncblob/reducer.h>

#define COUNT 3

/* --- an engine that is both ranks ----------------------------------------------------------- */

struct other {
    bool agrees;
    int differs_at; /* index of the number that differs; 0 counts as 1 */
    int64_t calls, fail_nth;
    sb_status failure;
    double finds;  /* the rank that reports the difference */
    sb_error sent; /* the error that this rank sends */
    int closed_failed;
};

static sb_status other_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                            sb_error *err) {
    *out = user;
    *out_rank = 0;
    *out_size = 2;
    return SB_OK;
}

static void other_close(void *comm, int32_t failed) {
    ((struct other *)comm)->closed_failed += failed;
}

static sb_status other_call(struct other *other, sb_error *err) {
    return ++other->calls == other->fail_nth
               ? sb_error_fill(err, other->failure, 5, "no request is left")
               : SB_OK;
}

static sb_status other_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    struct other *other = comm;
    double *values = buffer->ptr;
    const sb_status st = other_call(other, err);
    if (st == SB_OK && op == SB_COMM_MAX && !other->agrees)
        values[other->differs_at ? other->differs_at : 1] += 1; /* another checksum */
    if (st == SB_OK && op == SB_COMM_MIN)
        values[0] = other->finds;
    return st;
}

static sb_status other_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    struct other *other = comm;
    const sb_status st = other_call(other, err);
    if (st == SB_OK && root == 1)
        memcpy(buffer->ptr, &other->sent, sizeof other->sent);
    return st;
}

static const sb_comm_engine other_engine = {
    .struct_size = offsetof(sb_comm_engine, barrier),
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .name = "other",
    .open = other_open,
    .close = other_close,
    .all_reduce = other_all_reduce,
    .broadcast = other_broadcast,
};

/* --- a reducer of one blob ------------------------------------------------------------------- */

struct world {
    struct rig rig;
    struct other other;
    sb_comm *comm;
    sb_blob *blob;
    sb_reducer *reducer;
};

static void world_open(struct world *w) {
    memset(w, 0, sizeof *w);
    rig_open_on(&w->rig, "cpu", 0);
    w->other.finds = 1;
    w->other.sent.code = SB_ERR_SHAPE_MISMATCH;
    w->other.sent.offset = 77;
    memcpy(w->other.sent.message, "one is longer", 14);
    assert_ok(sb_comm_create(w->rig.context, &other_engine, &w->other, &w->comm, &err));
    w->blob = blob_of_count(w->rig.context, SB_DTYPE_F32, COUNT);
}

static void world_close(struct world *w, bool failed) {
    sb_reducer_destroy(w->reducer);
    sb_blob_destroy(w->blob);
    sb_comm_destroy(w->comm);
    assert_int_equal(w->other.closed_failed, failed);
    rig_close(&w->rig);
}

static sb_status create(struct world *w, sb_error *err) {
    return sb_reducer_create(w->comm, &w->blob, 1, NULL, &w->reducer, err);
}

TEST(the_error_of_the_rank_that_finds_a_difference_is_returned) {
    struct world w;
    world_open(&w);
    assert_status(SB_ERR_SHAPE_MISMATCH, create(&w, &err));
    assert_string_equal(err.message, "one is longer");
    assert_int_equal(err.offset, -1);
    assert_int_equal(w.other.calls, 5); /* checksums, 2 records, the reporting rank, its error */
    w.other.sent.message[0] = '\0';
    assert_status(SB_ERR_SHAPE_MISMATCH, create(&w, &err));
    assert_string_equal(err.message, "registration failed and gave no reason");
    w.other.agrees = true;
    w.other.calls = 0;
    assert_ok(create(&w, &err));
    assert_int_equal(w.other.calls, 1);
    world_close(&w, false);
}

/* Each half of the checksum is sent twice: as it is and negated. The engine changes one number. */
TEST(each_part_of_the_checksum_is_compared) {
    for (int part = 0; part <= 4; part++) {
        struct world w;
        world_open(&w);
        w.other.differs_at = part;
        assert_status(SB_ERR_SHAPE_MISMATCH, create(&w, &err));
        world_close(&w, false);
    }
}

/* If the first operation fails, nothing was sent, and the call may be retried. After the failure of
   a later operation it must not be retried, because other ranks have continued. */
TEST(only_the_first_operation_may_be_retried) {
    static const sb_status failures[] = {SB_ERR_OUT_OF_MEMORY, SB_ERR_UNSUPPORTED,
                                         SB_ERR_DEVICE_LOST, SB_ERR_IO};
    for (size_t f = 0; f < 4; f++) {
        for (int64_t nth = 1; nth <= 5; nth++) {
            struct world w;
            world_open(&w);
            w.other.fail_nth = nth;
            w.other.failure = failures[f];
            const bool again = nth == 1 && failures[f] != SB_ERR_IO;
            assert_status(again ? failures[f] : SB_ERR_COMM_FAILURE, create(&w, &err));
            assert_string_equal(err.message, "no request is left");
            assert_int_equal(err.device_code, 5);
            assert_null(w.reducer);
            w.other.agrees = true;
            assert_status(again ? SB_OK : SB_ERR_COMM_FAILURE, create(&w, &err));
            assert_int_equal(w.other.calls, again ? nth + 1 : nth);
            world_close(&w, !again);
        }
    }
}

TEST(invalid_data_of_another_rank_is_a_failure) {
    static const double finders[] = {2, 3, -1, 1e300, -1e300, (double)NAN};
    static const sb_status codes[] = {SB_OK, 1, INT32_MAX};
    for (size_t i = 0; i < 6 + 3; i++) {
        struct world w;
        world_open(&w);
        if (i < 6)
            w.other.finds = finders[i];
        else
            w.other.sent.code = codes[i - 6];
        assert_status(SB_ERR_COMM_FAILURE, create(&w, &err));
        assert_string_equal(err.message, i < 6 ? "no rank finds the difference" : "one is longer");
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(w.comm, &err));
        world_close(&w, true);
    }
}

TEST(a_message_without_a_nul_is_truncated) {
    struct world w;
    world_open(&w);
    memset(w.other.sent.message, 'x', sizeof w.other.sent.message);
    assert_status(SB_ERR_SHAPE_MISMATCH, create(&w, &err));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    world_close(&w, false);
}

/* --- this rank's own failure ----------------------------------------------------------------- */

TEST(a_failure_is_reported_by_its_rank) {
    struct world w;
    world_open(&w);
    w.other.finds = 0; /* this rank */
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_reducer_create(w.comm, NULL, 1, NULL, &w.reducer, &err));
    assert_string_equal(err.message, "blobs is NULL");
    assert_int_equal(w.other.calls, 3); /* the failure flag, the failed rank, its error */
    w.other.agrees = true;
    assert_ok(create(&w, &err));
    world_close(&w, false);
}

/* --- memory that runs out ------------------------------------------------------------------ */

/* Fails each call of calloc in turn or, if `of_allocator`, each call of the context's allocator. */
static int64_t fail_each(bool of_allocator) {
    struct world w;
    int64_t failures = 0;
    world_open(&w);
    w.other.agrees = true;
    w.other.finds = 0; /* this rank */
    for (int64_t nth = 1;; nth++) {
        const int64_t live = w.rig.counting.live_blocks;
        w.rig.counting.failures = 0;
        w.rig.counting.fail_nth = of_allocator ? nth : 0;
        fail_calloc(of_allocator ? 0 : nth);
        const sb_status st = create(&w, &err);
        w.rig.counting.fail_nth = 0;
        if (!calloc_has_failed() && !w.rig.counting.failures)
            break;
        assert_int_equal(st, SB_ERR_OUT_OF_MEMORY);
        assert_int_equal(err.code, SB_ERR_OUT_OF_MEMORY);
        assert_null(w.reducer);
        assert_true(w.rig.counting.live_blocks <= live + 1); /* a diff may have been allocated */
        failures++;
    }
    assert_non_null(w.reducer);
    world_close(&w, false);
    return failures;
}

TEST(a_failed_allocation_is_reported_by_its_rank) {
    assert_true(fail_each(true) >= 4);  /* the blob's memory, two buffers and their handles */
    assert_true(fail_each(false) >= 4); /* the reducer, its arrays */
}
