/* Tests that storage that may still be in use is not freed, reused or returned to its lender. The
   lazy schedule runs work as late as possible, which exposes accesses to reused storage. */
#include "blobs.h"
#include "pointers.h"
#include "scene.h"
#include "sim_tables.h"

#include "context/context.h"
#include "sim/table.h"

#define BYTES ((size_t)192)

struct owner {
    struct lent lent;
    sb_context *context;
};

static void end_owner(void *user, void *ptr) {
    struct owner *owner = user;
    lent_deleter(&owner->lent, ptr);
    sb_context_release(owner->context);
}

/* Closing a context polls the quarantine. */
static void end_another_context(void) {
    struct rig other;
    rig_open_on(&other, NULL, 0);
    sb_context_release(other.context);
    counting_allocator_assert_clean(&other.counting);
}

TEST(a_loan_that_owns_its_context_is_returned) {
    struct rig rig;
    rig_open(&rig);
    struct owner owner = {lend_host(BYTES, LENT), sb_context_retain(rig.context)};
    owner.lent.taken = true;
    sb_mem *mem = test_mem(rig.context, BYTES);
    assert_ok(sb_mem_set_cpu(mem, owner.lent.ptr, BYTES, 0, end_owner, &owner, &err));
    (void)mem_pointer(mem, MUTABLE_GPU);
    mem_fail_wait(mem);
    test_end(mem);
    sb_context_release(rig.context);
    for (int i = 0; i < 32; i++) { /* uses up all armed faults */
        end_another_context();
        assert_int_equal(owner.lent.deleted, 0);
    }
    assert_ok(
        rig.context->backend.stream_synchronize(rig.context->device, rig.context->stream, &err));
    end_another_context();
    assert_int_equal(owner.lent.deleted, 1);
    assert_true(lent_holds(&owner.lent, TAKEN));
    counting_allocator_assert_clean(&rig.counting);
}

#define STREAMS  5
#define CAPTURED 2 /* the stream that is captured */

struct crowd {
    struct rig rig;
    sb_stream streams[STREAMS];
    struct lent lent;
    struct look look;
    void *between; /* an event on the captured stream before `look`, or NULL */
};

static void crowd_open(struct crowd *crowd) {
    sb_backend table = captured_table();
    rig_open_options(&crowd->rig, CONTEXT_OPTIONS(.device = "sim:0", .backend = &table));
    for (int i = 0; i < STREAMS; i++)
        crowd->streams[i] = rig_stream(&crowd->rig);
    crowd->lent = lend_device(crowd->rig.context, BYTES, LENT);
    crowd->between = NULL;
    captured_stream = NULL;
}

static void crowd_close(struct crowd *crowd) {
    if (crowd->between)
        sb__sim_backend.event_destroy(crowd->rig.context->device, crowd->between);
    rig_close(&crowd->rig);
}

static sb_mem *member(struct crowd *crowd, unsigned users) {
    sb_mem *mem = test_mem(crowd->rig.context, BYTES);
    assert_ok(sb_mem_set_gpu(mem, crowd->lent.ptr, BYTES, 0, lent_deleter, &crowd->lent, &err));
    for (int i = 0; i < STREAMS; i++)
        if (users >> i & 1)
            (void)mem_pointer_on(mem, GPU_DATA_ON, crowd->streams[i]);
    return mem;
}

static void retire(struct crowd *crowd, sb_mem *mem) {
    captured_stream = crowd->streams[CAPTURED];
    test_end(mem);
    captured_stream = NULL;
}

static void retire_and_wait(struct crowd *crowd, sb_mem *mem) {
    retire(crowd, mem);
    captured_stream = crowd->streams[CAPTURED];
    sb_context_trim(crowd->rig.context);
    captured_stream = NULL;
}

static void quarantine_two(struct crowd *crowd, unsigned users) {
    rig_schedule(&crowd->rig, SB_SIM_LAZY, 0);
    for (int i = 0; i < 2; i++) {
        sb_mem *mem = member(crowd, users);
        if (i == 0)
            rig_look(&crowd->look, &crowd->rig, crowd->streams[CAPTURED], crowd->lent.ptr, BYTES);
        retire_and_wait(crowd, mem);
    }
    assert_int_equal(crowd->lent.deleted, 0);
}

static void run_stream(struct crowd *crowd, int i) {
    sb_context *context = crowd->rig.context;
    assert_ok(sb__sim_backend.stream_synchronize(context->device, crowd->streams[i], &err));
}

TEST_ON(crowd, the_end_of_a_context_waits_for_no_other_device) {
    quarantine_two(f, 1u << CAPTURED | 1u << (CAPTURED + 1));
    const int64_t before = captured_waits;
    for (int i = 0; i < 3; i++)
        end_another_context();
    assert_false(f->look.ran);
    assert_int_equal(f->lent.deleted, 0);
    run_stream(f, CAPTURED);
    end_another_context(); /* queries the next stream */
    assert_int_equal(f->lent.deleted, 0);
    run_stream(f, CAPTURED + 1);
    end_another_context();
    assert_int_equal(f->lent.deleted, 2);
    assert_int_equal(captured_waits, before);
}

/* The captured stream gets an event for the first memory, then `between`, then `look`. */
static void quarantine_one_after_the_other(struct crowd *crowd) {
    rig_schedule(&crowd->rig, SB_SIM_LAZY, 0);
    void *device = crowd->rig.context->device;
    const sb_stream stream = crowd->streams[CAPTURED];
    const sb_stream others[] = {NULL, crowd->rig.context->stream};
    sb_mem *first = member(crowd, 1u << CAPTURED), *second = member(crowd, 1u << CAPTURED);
    retire_and_wait(crowd, first);
    retire(crowd, second);
    end_another_context();
    assert_ok(sb__sim_backend.event_record(device, stream, &crowd->between, &err));
    rig_look(&crowd->look, &crowd->rig, stream, crowd->lent.ptr, BYTES);
    for (int i = 0; i < 2; i++) {
        assert_ok(sb__sim_backend.stream_synchronize(device, others[i], &err));
        end_another_context();
    }
    assert_int_equal(crowd->lent.deleted, 0);
}

/* Only an event that was recorded after storage was retired can release the storage. */
TEST_ON(crowd, an_event_covers_only_storage_quarantined_before_it) {
    quarantine_one_after_the_other(f);
    assert_ok(sb__sim_backend.event_wait(f->rig.context->device, f->between, &err));
    for (int i = 0; i < 2; i++) {
        end_another_context();
        assert_int_equal(f->lent.deleted, 1);
    }
    assert_false(f->look.ran);
    sb_context_trim(NULL); /* waits */
    assert_true(f->look.ran && f->look.reached);
    assert_int_equal(f->lent.deleted, 2);
}

static sb_status query_status;

static sb_status query(void *device, void *event, int32_t *out_done, sb_error *err) {
    sb_status st = sb__sim_backend.event_query(device, event, out_done, err);
    return query_status == SB_OK ? st : sb_error_fill(err, query_status, 0, "planted by the test");
}

/* Without a successful query, storage stays in quarantine until a wait succeeds. */
TEST_ON(crowd, storage_is_not_returned_without_a_successful_query) {
    static const struct {
        sb_status (*slot)(void *, void *, int32_t *, sb_error *);
        sb_status status;
        bool captured, given_back;
    } rows[] = {
        {query, SB_OK, false, true},
        {NULL, SB_OK, false, false},
        {query, SB_ERR_DEVICE_FAILURE, false, false},
        {query, SB_ERR_DEVICE_LOST, false, true}, /* a lost device has ended its work */
        {query, SB_OK, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crowd_close(f);
        crowd_open(f);
        f->rig.context->backend.event_query = rows[i].slot;
        query_status = SB_OK;
        quarantine_two(f, 1u << CAPTURED);
        run_stream(f, CAPTURED);
        rig_schedule(&f->rig, SB_SIM_EAGER, 0);
        query_status = rows[i].status;
        captured_stream = rows[i].captured ? f->streams[CAPTURED] : NULL;
        end_another_context();
        assert_int_equal(f->lent.deleted, rows[i].given_back ? 2 : 0);
        captured_stream = NULL;
        sb_context_trim(NULL);
        assert_int_equal(f->lent.deleted, 2);
        atomic_store(&f->rig.context->device_lost, SB_OK);
    }
}
