/* Tests faults of the simulated device: each operation is made to fail at once, when it runs later,
   or by losing the device. The tests check which threads receive the failure, and its effects. */
#include "sim_fixture.h"

#include <pthread.h>

#define BYTES ((size_t)64)

static const int32_t schedules[] = {SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM};

/* A device set up so that every operation can succeed. */
struct bench {
    struct fixture f;
    char *x, *y; /* 16 floats each: x holds 3s, y holds 5s */
    char source[BYTES], target[BYTES];
    void *event; /* recorded on another stream, which has no other work */
    void *out;   /* the result if the last call was ALLOC, ALLOC_PINNED or EVENT_RECORD */
};

static void fill_floats(char *bytes, float value) {
    for (size_t i = 0; i < BYTES; i += sizeof value)
        memcpy(bytes + i, &value, sizeof value);
}

static struct bench bench_open(int32_t schedule) {
    struct bench b = {.f = fixture_open(schedule, 11)};
    char values[BYTES];
    b.x = new_memory(&b.f, BYTES, b.f.own);
    b.y = new_memory(&b.f, BYTES, b.f.own);
    synchronize(&b.f, b.f.own);
    fill_floats(values, 3);
    poke(&b.f, b.x, values, BYTES);
    fill_floats(values, 5);
    poke(&b.f, b.y, values, BYTES);
    fill_floats(b.source, 7);
    fill_floats(b.target, 9);
    b.event = record(&b.f, new_stream(&b.f));
    return b;
}

static void bench_close(struct bench *b) {
    b->f.table->event_destroy(b->f.device, b->event);
    fixture_close(&b->f);
}

static sb_status call(struct bench *b, int32_t op, sb_error *err) {
    const sb_backend *t = b->f.table;
    void *d = b->f.device;
    sb_stream own = b->f.own;
    double sum;
    b->out = NULL;
    switch (op) {
    case SB_SIM_ALLOC:
        return t->alloc(d, BYTES, own, &b->out, err);
    case SB_SIM_ZERO:
        return t->zero(d, b->y, BYTES, own, err);
    case SB_SIM_UPLOAD:
        return t->upload(d, b->y, b->source, BYTES, own, err);
    case SB_SIM_DOWNLOAD:
        return t->download(d, b->target, b->x, BYTES, own, err);
    case SB_SIM_COPY:
        return t->copy(d, b->y, b->x, BYTES, own, err);
    case SB_SIM_ALLOC_PINNED:
        return t->alloc_pinned(d, BYTES, &b->out, err);
    case SB_SIM_CHECK_POINTER:
        return t->check_pointer(d, b->x, BYTES, err);
    case SB_SIM_CHECK_STREAM:
        return t->check_stream(d, own, err);
    case SB_SIM_STREAM_SYNCHRONIZE:
        return t->stream_synchronize(d, own, err);
    case SB_SIM_EVENT_RECORD:
        return t->event_record(d, own, &b->out, err);
    case SB_SIM_STREAM_WAIT:
        return t->stream_wait(d, own, b->event, err);
    case SB_SIM_EVENT_WAIT:
        return t->event_wait(d, b->event, err);
    case SB_SIM_PREPARE_ARITHMETIC:
        return t->prepare_arithmetic(d, err);
    case SB_SIM_AXPY:
        return t->axpy(d, SB_DTYPE_F32, 16, 2, b->x, b->y, own, err);
    case SB_SIM_SCALE:
        return t->scale(d, SB_DTYPE_F32, 16, 2, b->y, own, err);
    case SB_SIM_ASUM:
        return t->asum(d, SB_DTYPE_F32, 16, b->x, &sum, own, err);
    default:
        return t->sumsq(d, SB_DTYPE_F32, 16, b->x, &sum, own, err);
    }
}

/* Frees the result of a successful call. */
static void undo(struct bench *b, int32_t op) {
    if (op == SB_SIM_ALLOC)
        b->f.table->free(b->f.device, b->out, BYTES, b->f.own);
    if (op == SB_SIM_ALLOC_PINNED)
        b->f.table->free_pinned(b->f.device, b->out, BYTES);
    if (op == SB_SIM_EVENT_RECORD)
        b->f.table->event_destroy(b->f.device, b->out);
}

static bool holds(const char *bytes, float value) {
    char expected[BYTES];
    fill_floats(expected, value);
    return memcmp(bytes, expected, BYTES) == 0;
}

static bool device_holds(struct bench *b, const char *ptr, float value) {
    char seen[BYTES];
    peek(&b->f, seen, ptr, BYTES);
    return holds(seen, value);
}

static bool is_allocation(int32_t op) {
    return op == SB_SIM_ALLOC || op == SB_SIM_ALLOC_PINNED;
}

/* Returns whether the operation only queues its work, which can then fail later. */
static bool queues(int32_t op) {
    static const int32_t queued[] = {
        SB_SIM_ZERO,  SB_SIM_UPLOAD,       SB_SIM_DOWNLOAD,    SB_SIM_COPY, SB_SIM_AXPY,
        SB_SIM_SCALE, SB_SIM_EVENT_RECORD, SB_SIM_STREAM_WAIT, SB_SIM_ASUM, SB_SIM_SUMSQ};
    for (size_t i = 0; i < COUNT_OF(queued); i++)
        if (queued[i] == op)
            return true;
    return false;
}

static bool waits_for_its_result(int32_t op) {
    return op == SB_SIM_ASUM || op == SB_SIM_SUMSQ;
}

/* --- at once -------------------------------------------------------------------- */

TEST(a_call_that_fails_now_has_done_nothing) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int32_t op = 0; op < SB_SIM_OP_COUNT; op++) {
            struct bench b = bench_open(schedules[s]);
            fail_call(&b.f, op, 1, SB_SIM_FAIL_NOW);
            assert_status(is_allocation(op) ? SB_ERR_OUT_OF_MEMORY : SB_ERR_DEVICE_FAILURE,
                          call(&b, op, &err));
            assert_int_not_equal(err.device_code, 0);
            assert_null(b.out);
            assert_true(device_holds(&b, b.x, 3));
            assert_true(device_holds(&b, b.y, 5));
            assert_true(holds(b.target, 9));
            synchronize(&b.f, b.f.own); /* succeeds, because the failed call queued nothing */
            assert_true(device_holds(&b, b.y, 5));
            assert_ok(call(&b, op, &err)); /* the next call succeeds */
            undo(&b, op);
            synchronize(&b.f, b.f.own);
            bench_close(&b);
        }
}

/* --- later ------------------------------------------------------------------------- */

TEST(work_that_fails_later_is_not_done) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int32_t op = 0; op < SB_SIM_OP_COUNT; op++) {
            struct bench b = bench_open(schedules[s]);
            fail_call(&b.f, op, 1, SB_SIM_FAIL_LATER);
            if (!queues(op) || waits_for_its_result(op)) {
                assert_status(is_allocation(op) ? SB_ERR_OUT_OF_MEMORY : SB_ERR_DEVICE_FAILURE,
                              call(&b, op, &err));
            } else if (op == SB_SIM_EVENT_RECORD) {
                assert_ok(call(&b, op, &err));
                assert_status(SB_ERR_DEVICE_FAILURE,
                              b.f.table->event_wait(b.f.device, b.out, &err));
                undo(&b, op);
            } else {
                assert_ok(call(&b, op, &err));
                assert_status(SB_ERR_DEVICE_FAILURE,
                              b.f.table->stream_synchronize(b.f.device, b.f.own, &err));
            }
            assert_int_not_equal(err.device_code, 0);
            synchronize(&b.f, b.f.own); /* succeeds, because the failure was reported */
            bool writes = op == SB_SIM_ZERO || op == SB_SIM_UPLOAD || op == SB_SIM_COPY ||
                          op == SB_SIM_AXPY || op == SB_SIM_SCALE;
            assert_true(device_holds(&b, b.x, 3));
            assert_int_equal(device_holds(&b, b.y, 5), !writes);
            assert_false(device_holds(&b, b.y, 0) || device_holds(&b, b.y, 7) ||
                         device_holds(&b, b.y, 3) || device_holds(&b, b.y, 11) ||
                         device_holds(&b, b.y, 10));
            assert_int_equal(holds(b.target, 9), op != SB_SIM_DOWNLOAD);
            assert_false(holds(b.target, 3));
            assert_ok(call(&b, op, &err));
            undo(&b, op);
            synchronize(&b.f, b.f.own);
            bench_close(&b);
        }
}

/* Otherwise memory could be freed while work for which the stream should have waited uses it. */
TEST(a_wait_that_fails_later_still_delays_later_work) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++) {
        struct bench b = bench_open(schedules[s]);
        const sb_backend *t = b.f.table;
        sb_stream other = new_stream(&b.f);
        upload(&b.f, b.y, b.source, BYTES, b.f.own);
        void *event = record(&b.f, b.f.own);
        fail_call(&b.f, SB_SIM_STREAM_WAIT, 1, SB_SIM_FAIL_LATER);
        stream_wait(&b.f, other, event);
        download(&b.f, b.target, b.y, BYTES, other);
        assert_status(SB_ERR_DEVICE_FAILURE, t->stream_synchronize(b.f.device, other, &err));
        assert_true(holds(b.target, 7));
        t->event_destroy(b.f.device, event);
        bench_close(&b);
    }
}

/* A failure is reported by the events recorded after the failed work, up to and including the next
   event of the same thread, but not by earlier or later events or by other streams. */
TEST(events_report_failures_of_work_before_them) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++) {
        struct bench b = bench_open(schedules[s]);
        const sb_backend *t = b.f.table;
        void *d = b.f.device;
        void *before = record(&b.f, b.f.own);
        fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
        upload(&b.f, b.y, b.source, BYTES, b.f.own);
        void *event = record(&b.f, b.f.own);
        sb_stream other = new_stream(&b.f);
        stream_wait(&b.f, other, event);
        download(&b.f, b.target, b.x, BYTES, other);
        void *behind = record(&b.f, other);
        upload(&b.f, b.y, b.source, BYTES, b.f.own);
        void *after = record(&b.f, b.f.own);
        event_wait(&b.f, before);
        event_wait(&b.f, behind); /* the work between the two events succeeded */
        assert_true(holds(b.target, 3));
        for (int i = 0; i < 3; i++)
            assert_status(SB_ERR_DEVICE_FAILURE, t->event_wait(d, event, &err));
        assert_non_null(strstr(err.message, "upload"));
        event_wait(&b.f, after);
        assert_true(device_holds(&b, b.y, 7));
        synchronize(&b.f, b.f.own); /* succeeds, because an event has reported the failure */
        synchronize(&b.f, other);
        t->event_destroy(d, before);
        t->event_destroy(d, event);
        t->event_destroy(d, behind);
        t->event_destroy(d, after);
        bench_close(&b);
    }
}

struct other_thread {
    struct bench *b;
    sb_status synchronized, again, recorded;
};

static void *wait_elsewhere(void *user) {
    struct other_thread *t = user;
    struct fixture *f = &t->b->f;
    void *event = NULL;
    t->synchronized = f->table->stream_synchronize(f->device, f->own, &err);
    t->again = f->table->stream_synchronize(f->device, f->own, &err);
    (void)f->table->event_record(f->device, f->own, &event, &err);
    t->recorded = f->table->event_wait(f->device, event, &err);
    f->table->event_destroy(f->device, event);
    return NULL;
}

static void *in_another_thread(void *(*run)(void *user), void *user) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

static struct other_thread elsewhere(struct bench *b) {
    struct other_thread other = {b, SB_OK, SB_OK, SB_OK};
    (void)in_another_thread(wait_elsewhere, &other);
    return other;
}

/* If another thread waits between a failed copy and its event, the event must still fail. */
TEST(another_thread_s_wait_does_not_consume_the_failure) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int by_event = 0; by_event < 2; by_event++) {
            struct bench b = bench_open(schedules[s]);
            fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
            upload(&b.f, b.y, b.source, BYTES, b.f.own);
            struct other_thread other = elsewhere(&b);
            assert_int_equal(other.synchronized, SB_ERR_DEVICE_FAILURE);
            /* The other thread receives the failure only once. */
            assert_int_equal(other.again, SB_OK);
            assert_int_equal(other.recorded, SB_OK);
            if (by_event) {
                void *event = record(&b.f, b.f.own);
                assert_status(SB_ERR_DEVICE_FAILURE,
                              b.f.table->event_wait(b.f.device, event, &err));
                b.f.table->event_destroy(b.f.device, event);
            } else {
                assert_status(SB_ERR_DEVICE_FAILURE,
                              b.f.table->stream_synchronize(b.f.device, b.f.own, &err));
            }
            other = elsewhere(&b);
            assert_int_equal(other.synchronized, SB_OK);
            assert_int_equal(other.recorded, SB_OK);
            bench_close(&b);
        }
}

static void *record_elsewhere(void *user) {
    struct fixture *f = user;
    return record(f, f->own);
}

/* Another thread records an event after a failed copy. If the thread that queued the copy receives
   the failure from this event first, its own event or wait must still report the failure. */
TEST(another_thread_s_event_does_not_consume_the_failure) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int by_event = 0; by_event < 2; by_event++) {
            struct bench b = bench_open(schedules[s]);
            const sb_backend *t = b.f.table;
            void *event = NULL;
            fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
            upload(&b.f, b.y, b.source, BYTES, b.f.own);
            void *others = in_another_thread(record_elsewhere, &b.f);
            if (by_event)
                event = record(&b.f, b.f.own);
            assert_status(SB_ERR_DEVICE_FAILURE, t->event_wait(b.f.device, others, &err));
            assert_status(SB_ERR_DEVICE_FAILURE,
                          by_event ? t->event_wait(b.f.device, event, &err)
                                   : t->stream_synchronize(b.f.device, b.f.own, &err));
            synchronize(&b.f, b.f.own); /* already reported; no work is left */
            t->event_destroy(b.f.device, others);
            if (by_event)
                t->event_destroy(b.f.device, event);
            bench_close(&b);
        }
}

static void *wait_in_vain(void *user) {
    struct bench *b = user;
    sb_stream other = new_stream(&b->f);
    void *event = record(&b->f, other);
    fail_call(&b->f, SB_SIM_STREAM_WAIT, 1, SB_SIM_FAIL_LATER);
    stream_wait(&b->f, b->f.own, event);
    b->f.table->event_destroy(b->f.device, event);
    return NULL;
}

/* The thread that queued the failed work has ended: another thread receives the failure once. */
TEST(a_failure_of_an_ended_thread_is_reported_once) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int by_event = 0; by_event < 2; by_event++) {
            struct bench b = bench_open(schedules[s]);
            const sb_backend *t = b.f.table;
            (void)in_another_thread(wait_in_vain, &b);
            if (by_event) {
                void *event = record(&b.f, b.f.own);
                for (int i = 0; i < 2; i++)
                    assert_status(SB_ERR_DEVICE_FAILURE, t->event_wait(b.f.device, event, &err));
                t->event_destroy(b.f.device, event);
            } else {
                assert_status(SB_ERR_DEVICE_FAILURE,
                              t->stream_synchronize(b.f.device, b.f.own, &err));
            }
            for (int i = 0; i < 2; i++) {
                void *event = record(&b.f, b.f.own);
                event_wait(&b.f, event);
                t->event_destroy(b.f.device, event);
                synchronize(&b.f, b.f.own);
            }
            bench_close(&b);
        }
}

static sb_status synchronize_status(struct bench *b) {
    return b->f.table->stream_synchronize(b->f.device, b->f.own, &err);
}

static void *synchronize_elsewhere(void *user) {
    (void)synchronize_status(user);
    return NULL;
}

static void *synchronize_around_another(void *user) {
    struct other_thread *t = user;
    t->synchronized = synchronize_status(t->b);
    (void)in_another_thread(synchronize_elsewhere, t->b);
    t->again = synchronize_status(t->b);
    return NULL;
}

/* If two other threads wait in turn, only the first wait returns the failure. */
TEST(a_failure_is_reported_once_to_all_other_threads) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++) {
        struct bench b = bench_open(schedules[s]);
        fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
        upload(&b.f, b.y, b.source, BYTES, b.f.own);
        struct other_thread other = {.b = &b};
        (void)in_another_thread(synchronize_around_another, &other);
        assert_int_equal(other.synchronized, SB_ERR_DEVICE_FAILURE);
        assert_int_equal(other.again, SB_OK);
        /* This thread queued the work, so it also receives the failure. */
        assert_int_equal(synchronize_status(&b), SB_ERR_DEVICE_FAILURE);
        assert_int_equal(synchronize_status(&b), SB_OK);
        bench_close(&b);
    }
}

/* A wait for an event reports failures of the work before the event; a later wait reports later
   failures. */
TEST(an_event_does_not_report_failures_of_later_work) {
    struct bench b = bench_open(SB_SIM_EAGER);
    fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    upload(&b.f, b.y, b.source, BYTES, b.f.own);
    void *event = record(&b.f, b.f.own);
    fail_call(&b.f, SB_SIM_ZERO, 1, SB_SIM_FAIL_LATER);
    assert_ok(call(&b, SB_SIM_ZERO, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, b.f.table->event_wait(b.f.device, event, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, b.f.table->stream_synchronize(b.f.device, b.f.own, &err));
    assert_non_null(strstr(err.message, "zero"));
    b.f.table->event_destroy(b.f.device, event);
    bench_close(&b);
}

/* An event reports a failure also after another thread has received the failure. */
TEST(any_thread_can_wait_for_an_event) {
    struct bench b = bench_open(SB_SIM_LAZY);
    fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    upload(&b.f, b.y, b.source, BYTES, b.f.own);
    void *event = record(&b.f, b.f.own);
    struct other_thread other = elsewhere(&b);
    assert_int_equal(other.synchronized, SB_ERR_DEVICE_FAILURE);
    assert_int_equal(other.recorded, SB_OK);
    other = elsewhere(&b);
    assert_int_equal(other.synchronized, SB_OK);
    assert_status(SB_ERR_DEVICE_FAILURE, b.f.table->event_wait(b.f.device, event, &err));
    b.f.table->event_destroy(b.f.device, event);
    bench_close(&b);
}

TEST(sums_report_failures_of_work_before_them) {
    for (int32_t op = SB_SIM_ASUM; op <= SB_SIM_SUMSQ; op++) {
        struct bench b = bench_open(SB_SIM_LAZY);
        fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
        upload(&b.f, b.x, b.source, BYTES, b.f.own);
        assert_status(SB_ERR_DEVICE_FAILURE, call(&b, op, &err));
        assert_ok(call(&b, op, &err));
        bench_close(&b);
    }
}

TEST(unreported_failures_end_with_their_stream) {
    struct bench b = bench_open(SB_SIM_LAZY);
    sb_stream other = new_stream(&b.f);
    fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    upload(&b.f, b.x, b.source, BYTES, other);
    assert_ok(sb_sim_stream_destroy(b.f.context, other, &err));
    fail_call(&b.f, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    upload(&b.f, b.x, b.source, BYTES, b.f.own);
    bench_close(&b); /* closing frees the failures: nothing leaks */
}

/* --- permanently ---------------------------------------------------------------------- */

static int kernels_run;

static void count_kernel(void *user) {
    kernels_run++;
}

TEST(a_lost_device_stays_lost) {
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (int32_t op = 0; op < SB_SIM_OP_COUNT; op++) {
            struct bench b = bench_open(schedules[s]);
            sb_stream stream;
            void *ptr;
            fail_call(&b.f, op, 1, SB_SIM_FAIL_STICKY);
            assert_status(SB_ERR_DEVICE_LOST, call(&b, op, &err));
            fail_call(&b.f, SB_SIM_ANY, 1, SB_SIM_FAIL_NOW); /* has no effect on a lost device */
            for (int32_t later = 0; later < SB_SIM_OP_COUNT; later++) {
                assert_status(SB_ERR_DEVICE_LOST, call(&b, later, &err));
                assert_int_not_equal(err.device_code, 0);
                assert_null(b.out);
            }
            assert_status(SB_ERR_DEVICE_LOST, sb_sim_malloc(b.f.context, 8, &ptr, &err));
            assert_status(SB_ERR_DEVICE_LOST, sb_sim_stream_create(b.f.context, &stream, &err));
            assert_status(SB_ERR_DEVICE_LOST,
                          sb_sim_launch(b.f.context, NULL, count_kernel, NULL, &err));
            assert_true(device_holds(&b, b.x, 3)); /* sb_sim_peek still reads a lost device */
            b.f.table->free(b.f.device, b.x, BYTES, b.f.own);
            assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_peek(b.f.context, b.target, b.x, 1, &err));
            bench_close(&b);
        }
}

TEST(losing_the_device_spoils_the_target_of_the_call) {
    static const int32_t ops[] = {SB_SIM_ZERO, SB_SIM_UPLOAD, SB_SIM_COPY, SB_SIM_AXPY,
                                  SB_SIM_SCALE};
    for (size_t k = 0; k < COUNT_OF(ops); k++) {
        struct bench b = bench_open(SB_SIM_EAGER);
        fail_call(&b.f, ops[k], 1, SB_SIM_FAIL_STICKY);
        assert_status(SB_ERR_DEVICE_LOST, call(&b, ops[k], &err));
        assert_false(device_holds(&b, b.y, 5));
        bench_close(&b);
    }
}

TEST(queued_work_is_lost_with_the_device) {
    struct bench b = bench_open(SB_SIM_LAZY);
    kernels_run = 0;
    upload(&b.f, b.y, b.source, BYTES, b.f.own);
    assert_ok(sb_sim_launch(b.f.context, b.f.own, count_kernel, NULL, &err));
    void *event = record(&b.f, b.f.own);
    stream_wait(&b.f, new_stream(&b.f), event);
    fail_call(&b.f, SB_SIM_CHECK_STREAM, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST, b.f.table->check_stream(b.f.device, NULL, &err));
    assert_status(SB_ERR_DEVICE_LOST, b.f.table->event_wait(b.f.device, event, &err));
    b.f.table->free(b.f.device, b.x, BYTES, b.f.own);
    assert_false(device_holds(&b, b.y, 7));
    b.f.table->event_destroy(b.f.device, event);
    bench_close(&b);
    assert_int_equal(kernels_run, 0);
}

/* Queued downloads must not write host memory after a call has returned DEVICE_LOST. */
TEST(a_lost_device_does_not_write_host_memory) {
    struct bench b = bench_open(SB_SIM_LAZY);
    char kept[BYTES];
    download(&b.f, b.target, b.x, BYTES, b.f.own);
    download(&b.f, b.target, b.y, BYTES, b.f.own); /* `target` is in use until this copy runs */
    fail_call(&b.f, SB_SIM_CHECK_STREAM, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST, b.f.table->check_stream(b.f.device, NULL, &err));
    fill_floats(b.target, 13);
    memcpy(kept, b.target, BYTES);
    b.f.table->free(b.f.device, b.x, BYTES, b.f.own); /* drops the queued work */
    assert_memory_equal(b.target, kept, BYTES);
    bench_close(&b);
}

/* --- arming and counting ---------------------------------------------------------------- */

TEST(the_nth_call_fails_once) {
    struct bench b = bench_open(SB_SIM_EAGER);
    fail_call(&b.f, SB_SIM_ZERO, 3, SB_SIM_FAIL_NOW);
    for (int i = 1; i <= 6; i++) {
        assert_ok(call(&b, SB_SIM_COPY, &err)); /* calls of other operations do not count */
        assert_status(i == 3 ? SB_ERR_DEVICE_FAILURE : SB_OK, call(&b, SB_SIM_ZERO, &err));
    }
    fail_call(&b.f, SB_SIM_ANY, 4, SB_SIM_FAIL_NOW);
    for (int32_t op = SB_SIM_ZERO; op <= SB_SIM_COPY; op++)
        assert_status(op == SB_SIM_COPY ? SB_ERR_DEVICE_FAILURE : SB_OK, call(&b, op, &err));
    assert_ok(call(&b, SB_SIM_COPY, &err));
    bench_close(&b);
}

TEST(a_planted_fault_replaces_earlier_faults) {
    struct bench b = bench_open(SB_SIM_EAGER);
    fail_call(&b.f, SB_SIM_ZERO, 1, SB_SIM_FAIL_NOW);
    fail_call(&b.f, SB_SIM_COPY, 1, SB_SIM_FAIL_NOW);
    assert_ok(call(&b, SB_SIM_ZERO, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, call(&b, SB_SIM_COPY, &err));
    fail_call(&b.f, SB_SIM_ZERO, 1, SB_SIM_FAIL_STICKY);
    fail_call(&b.f, SB_SIM_ZERO, 0, SB_SIM_FAIL_NOW);
    assert_ok(call(&b, SB_SIM_ZERO, &err));
    bench_close(&b);
}

TEST(every_call_is_counted) {
    for (int32_t op = 0; op < SB_SIM_OP_COUNT; op++) {
        struct bench b = bench_open(SB_SIM_LAZY);
        int64_t before[SB_SIM_OP_COUNT];
        int64_t after[SB_SIM_OP_COUNT];
        assert_ok(sb_sim_calls(b.f.context, before, SB_SIM_OP_COUNT, &err));
        assert_ok(call(&b, op, &err));
        undo(&b, op);
        fail_call(&b.f, op, 1, SB_SIM_FAIL_NOW);
        assert_int_not_equal(call(&b, op, &err), SB_OK);
        fail_call(&b.f, op, 1, SB_SIM_FAIL_STICKY);
        assert_int_not_equal(call(&b, op, &err), SB_OK);
        assert_int_not_equal(call(&b, op, &err), SB_OK);
        assert_ok(sb_sim_calls(b.f.context, after, SB_SIM_OP_COUNT, &err));
        for (int32_t k = 0; k < SB_SIM_OP_COUNT; k++)
            assert_int_equal(after[k] - before[k], k == op ? 4 : 0);
        bench_close(&b);
    }
}

TEST(control_functions_are_not_counted_and_do_not_fail) {
    struct bench b = bench_open(SB_SIM_EAGER);
    int64_t before[SB_SIM_OP_COUNT];
    int64_t after[SB_SIM_OP_COUNT];
    void *ptr = NULL;
    assert_ok(sb_sim_calls(b.f.context, before, SB_SIM_OP_COUNT, &err));
    fail_call(&b.f, SB_SIM_ANY, 1, SB_SIM_FAIL_STICKY);
    assert_ok(sb_sim_malloc(b.f.context, BYTES, &ptr, &err));
    poke(&b.f, ptr, b.source, BYTES);
    peek(&b.f, b.target, ptr, BYTES);
    assert_ok(sb_sim_launch(b.f.context, new_stream(&b.f), count_kernel, NULL, &err));
    assert_ok(sb_sim_free(b.f.context, ptr, &err));
    assert_ok(sb_sim_calls(b.f.context, after, SB_SIM_OP_COUNT, &err));
    assert_memory_equal(before, after, sizeof before);
    bench_close(&b);
}
