/* Tests how rank 0 of two ranks compares registrations before a reducer's first step. The engine
   acts as rank 1, which has registered other blobs and may send anything. */
#include "blobs.h"
#include "fail_calloc.h"
#include "mirror.h"

#include <math.h>

/* --- the engine, which acts as rank 1 ------------------------------------------------------- */

/* What rank 1 does, apart from the mirror's failures. */
static struct other {
    bool agrees;
    int differs_at; /* index of the reduced number that differs; 0 counts as 1 */
    double finds;   /* the rank that finds the difference */
    sb_error sent;  /* the error that rank 1 broadcasts */
} other;

static sb_status other_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    double *values = buffer->ptr;
    const sb_status st = mirror_engine.all_reduce(comm, op, buffer, err);
    if (st == SB_OK && op == SB_COMM_MAX && !other.agrees)
        values[other.differs_at ? other.differs_at : 1] += 1; /* another checksum */
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

/* --- a reducer of one blob ------------------------------------------------------------------- */

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

/* Creates a reducer and destroys it. */
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
    assert_int_equal(f->mirror.begins,
                     5); /* for the checksums, 2 records, the rank and its error */
    other.sent.message[0] = '\0';
    assert_error(SB_ERR_SHAPE_MISMATCH, create(f, &err), "registration failed and gave no reason");
    other.agrees = true;
    f->mirror.begins = 0;
    assert_ok(create(f, &err));
    assert_int_equal(f->mirror.begins, 1);
}

/* Each half of the checksum is sent twice: unchanged and negated. The engine changes one number. */
TEST_ON(mirrored, each_part_of_the_checksum_is_compared) {
    for (int part = 0; part <= 4; part++) {
        reopen(f);
        other.differs_at = part;
        assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    }
}

/* If the first operation fails, nothing was sent, and the call may be retried. After the failure of
   a later operation the call must not be retried, because other ranks have continued. */
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

TEST_ON(mirrored, a_message_without_a_nul_is_truncated) {
    reopen(f);
    memset(other.sent.message, 'x', sizeof other.sent.message);
    assert_status(SB_ERR_SHAPE_MISMATCH, create(f, &err));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

/* --- failures of rank 0, which runs the tests ------------------------------------------------ */

TEST_ON(mirrored, a_failure_is_reported_by_its_rank) {
    reopen(f);
    other.finds = 0; /* rank 0, which runs this test */
    assert_error(SB_ERR_INVALID_ARGUMENT,
                 sb_reducer_create(f->comm, NULL, 1, NULL, &f->reducer, &err), "blobs is NULL");
    assert_int_equal(f->mirror.begins, 3); /* calls for the flag, the failed rank, its error */
    other.agrees = true;
    assert_ok(create(f, &err));
}

/* --- memory that runs out ------------------------------------------------------------------ */

/* Fails each call of calloc in turn or, if `of_allocator`, each call of the context's allocator. */
static int64_t fail_each(struct mirrored *f, bool of_allocator) {
    struct counting_allocator *counting = &f->rig.counting;
    int64_t failures = 0;
    reopen(f);
    other.agrees = true;
    other.finds = 0; /* rank 0, which runs this test */
    for (int64_t nth = 1;; nth++) {
        const int64_t live = counting->live_blocks;
        counting->failures = 0;
        counting->fail_nth = of_allocator ? nth : 0;
        fail_calloc(of_allocator ? 0 : nth);
        const sb_status st = create(f, &err);
        counting->fail_nth = 0;
        if (!calloc_has_failed() && !counting->failures) {
            assert_ok(st);
            return failures;
        }
        assert_int_equal(st, SB_ERR_OUT_OF_MEMORY);
        assert_int_equal(err.code, SB_ERR_OUT_OF_MEMORY);
        assert_true(counting->live_blocks <= live + 1); /* a diff may have been allocated */
        failures++;
    }
}

TEST_ON(mirrored, a_failed_allocation_is_reported_by_its_rank) {
    assert_true(fail_each(f, true) >= 4);  /* the blob's memory, two buffers and their handles */
    assert_true(fail_each(f, false) >= 4); /* the reducer and its three arrays */
}
