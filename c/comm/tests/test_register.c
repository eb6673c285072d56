/* Tests how rank 0 of two ranks compares registrations before a reducer's first step. The engine
   acts as rank 1, which has registered other blobs and may send anything. */
#include "blobs.h"
#include "comms.h"
#include "fail_calloc.h"
#include "mirror.h"

#include <math.h>

#define COUNT 3

/* --- the engine, which acts as rank 1 ------------------------------------------------------- */

struct other {
    struct mirror mirror; /* must be first: slots of mirror.c open and close the engine */
    bool agrees;
    int differs_at; /* index of the reduced number that differs; 0 counts as 1 */
    int64_t calls, fail_nth;
    sb_status failure;
    double finds;  /* the rank that finds the difference */
    sb_error sent; /* the error that rank 1 broadcasts */
};

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

/* --- a reducer of one blob ------------------------------------------------------------------- */

struct world {
    struct rig rig;
    struct other other;
    sb_comm *comm;
    sb_blob *blob;
    sb_reducer *reducer;
    bool is_broken; /* the communicator is unusable at the end of the test */
};

static void world_open(struct world *w) {
    sb_comm_engine engine = mirror_engine_at_once;
    engine.struct_size = offsetof(sb_comm_engine, barrier);
    engine.all_reduce = other_all_reduce;
    engine.broadcast = other_broadcast;
    memset(w, 0, sizeof *w);
    rig_open_on(&w->rig, "cpu", 0);
    w->other.finds = 1;
    w->other.sent.code = SB_ERR_SHAPE_MISMATCH;
    w->other.sent.offset = 77;
    memcpy(w->other.sent.message, "one is longer", 14);
    w->comm = test_comm(w->rig.context, &engine, &w->other);
    w->blob = test_vector(w->rig.context, SB_DTYPE_F32, COUNT);
}

static void world_close(struct world *w) {
    sb_reducer_destroy(w->reducer);
    test_end_after(w->rig.owned_before);
    assert_int_equal(w->other.mirror.closed_failed, w->is_broken);
    rig_close(&w->rig);
}

static void world_reopen(struct world *w) {
    world_close(w);
    world_open(w);
}

static sb_status create(struct world *w, sb_error *err) {
    return sb_reducer_create(w->comm, &w->blob, 1, NULL, &w->reducer, err);
}

TEST_ON(world, the_error_of_the_rank_that_finds_a_difference_is_returned) {
    assert_error(SB_ERR_SHAPE_MISMATCH, create(f, &err), "one is longer");
    assert_int_equal(err.offset, -1);
    assert_int_equal(f->other.calls, 5); /* for the checksums, 2 records, the rank and its error */
    f->other.sent.message[0] = '\0';
    assert_error(SB_ERR_SHAPE_MISMATCH, create(f, &err), "registration failed and gave no reason");
    f->other.agrees = true;
    f->other.calls = 0;
    assert_ok(create(f, &err));
    assert_int_equal(f->other.calls, 1);
}

/* Each half of the checksum is sent twice: unchanged and negated. The engine changes one number. */
TEST_ON(world, each_part_of_the_checksum_is_compared) {
    for (int part = 0; part <= 4; part++) {
        world_reopen(f);
        f->other.differs_at = part;
        assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    }
}

/* If the first operation fails, nothing was sent, and the call may be retried. After the failure of
   a later operation the call must not be retried, because other ranks have continued. */
TEST_ON(world, only_the_first_operation_may_be_retried) {
    static const sb_status failures[] = {SB_ERR_OUT_OF_MEMORY, SB_ERR_UNSUPPORTED,
                                         SB_ERR_DEVICE_LOST, SB_ERR_IO};
    for (size_t k = 0; k < 4; k++) {
        for (int64_t nth = 1; nth <= 5; nth++) {
            world_reopen(f);
            f->other.fail_nth = nth;
            f->other.failure = failures[k];
            const bool again = nth == 1 && failures[k] != SB_ERR_IO;
            assert_error(again ? failures[k] : SB_ERR_COMM_FAILURE, create(f, &err),
                         "no request is left");
            assert_int_equal(err.device_code, 5);
            assert_null(f->reducer);
            f->other.agrees = true;
            assert_status(again ? SB_OK : SB_ERR_COMM_FAILURE, create(f, &err));
            assert_int_equal(f->other.calls, again ? nth + 1 : nth);
            f->is_broken = !again;
        }
    }
}

TEST_ON(world, invalid_data_of_another_rank_is_a_failure) {
    static const double finders[] = {2, 3, -1, 1e300, -1e300, (double)NAN};
    static const sb_status codes[] = {SB_OK, 1, INT32_MAX};
    for (size_t i = 0; i < 6 + 3; i++) {
        world_reopen(f);
        if (i < 6)
            f->other.finds = finders[i];
        else
            f->other.sent.code = codes[i - 6];
        assert_error(SB_ERR_COMM_FAILURE, create(f, &err),
                     i < 6 ? "the registrations differ, but no rank found a difference"
                           : "one is longer");
        assert_status(SB_ERR_COMM_FAILURE, sb_comm_barrier(f->comm, &err));
        f->is_broken = true;
    }
}

TEST_ON(world, a_message_without_a_nul_is_truncated) {
    memset(f->other.sent.message, 'x', sizeof f->other.sent.message);
    assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

/* --- failures of rank 0, which runs the tests ------------------------------------------------ */

TEST_ON(world, a_failure_is_reported_by_its_rank) {
    f->other.finds = 0; /* rank 0, which runs this test */
    assert_error(SB_ERR_INVALID_ARGUMENT,
                 sb_reducer_create(f->comm, NULL, 1, NULL, &f->reducer, &err), "blobs is NULL");
    assert_int_equal(f->other.calls, 3); /* calls for the flag, the failed rank, its error */
    f->other.agrees = true;
    assert_ok(create(f, &err));
}

/* --- memory that runs out ------------------------------------------------------------------ */

/* Fails each call of calloc in turn or, if `of_allocator`, each call of the context's allocator. */
static int64_t fail_each(struct world *w, bool of_allocator) {
    int64_t failures = 0;
    world_reopen(w);
    w->other.agrees = true;
    w->other.finds = 0; /* rank 0, which runs this test */
    for (int64_t nth = 1;; nth++) {
        const int64_t live = w->rig.counting.live_blocks;
        w->rig.counting.failures = 0;
        w->rig.counting.fail_nth = of_allocator ? nth : 0;
        fail_calloc(of_allocator ? 0 : nth);
        const sb_status st = create(w, &err);
        w->rig.counting.fail_nth = 0;
        if (!calloc_has_failed() && !w->rig.counting.failures)
            break;
        assert_int_equal(st, SB_ERR_OUT_OF_MEMORY);
        assert_int_equal(err.code, SB_ERR_OUT_OF_MEMORY);
        assert_null(w->reducer);
        assert_true(w->rig.counting.live_blocks <= live + 1); /* a diff may have been allocated */
        failures++;
    }
    assert_non_null(w->reducer);
    return failures;
}

TEST_ON(world, a_failed_allocation_is_reported_by_its_rank) {
    assert_true(fail_each(f, true) >= 4);  /* the blob's memory, two buffers and their handles */
    assert_true(fail_each(f, false) >= 4); /* the reducer and its three arrays */
}
