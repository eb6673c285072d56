/* Tests faults of the simulated device: which threads receive a failure, and what the failure
   changes. */
#include "sim_fixture.h"

#include <pthread.h>

#define BYTES ((size_t)64)

static const int32_t schedules[] = {SB_SIM_EAGER, SB_SIM_LAZY, SB_SIM_RANDOM};

struct bench {
    struct sim sim;
    sb_stream own;
    char *x, *y; /* 16 floats each: x holds 3s, y holds 5s */
    char source[BYTES], target[BYTES];
    void *event; /* recorded on another stream, without work before the event */
    void *out;   /* the result if the last call was ALLOC, ALLOC_PINNED or EVENT_RECORD */
};

static void fill_floats(char *bytes, float value) {
    for (size_t i = 0; i < BYTES; i += sizeof value)
        memcpy(bytes + i, &value, sizeof value);
}

static void bench_open_on(struct bench *b, int32_t schedule) {
    char values[BYTES];
    sim_open(&b->sim);
    set_schedule(&b->sim, schedule, 11);
    b->own = b->sim.own;
    b->x = new_memory(&b->sim, BYTES, b->own);
    b->y = new_memory(&b->sim, BYTES, b->own);
    synchronize(&b->sim, b->own);
    fill_floats(values, 3);
    poke(&b->sim, b->x, values, BYTES);
    fill_floats(values, 5);
    poke(&b->sim, b->y, values, BYTES);
    fill_floats(b->source, 7);
    fill_floats(b->target, 9);
    b->event = record(&b->sim, new_stream(&b->sim));
}

static void bench_open(struct bench *b) {
    bench_open_on(b, SB_SIM_EAGER);
}

static void bench_close(struct bench *b) {
    event_destroy(&b->sim, b->event);
    sim_close(&b->sim);
}

static void bench_reopen(struct bench *b, int32_t schedule) {
    bench_close(b);
    bench_open_on(b, schedule);
}

static sb_status call(struct bench *b, int32_t op, sb_error *err) {
    const sb_backend *t = b->sim.table;
    void *d = b->sim.device;
    sb_stream own = b->own;
    b->out = NULL;
    switch (op) {
    case SB_SIM_ALLOC:
        return t->alloc(d, BYTES, own, &b->out, err);
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
    default:
        return operate(&b->sim, op, op == SB_SIM_DOWNLOAD ? b->target : b->y,
                       op == SB_SIM_UPLOAD ? b->source : b->x, own, err);
    }
}

static void undo(struct bench *b, int32_t op) {
    if (op == SB_SIM_ALLOC)
        b->sim.table->free(b->sim.device, b->out, BYTES, b->own);
    if (op == SB_SIM_ALLOC_PINNED)
        b->sim.table->free_pinned(b->sim.device, b->out, BYTES);
    if (op == SB_SIM_EVENT_RECORD)
        b->sim.table->event_destroy(b->sim.device, b->out);
}

static bool holds(const char *bytes, float value) {
    char expected[BYTES];
    fill_floats(expected, value);
    return memcmp(bytes, expected, BYTES) == 0;
}

static bool device_holds(struct bench *b, const char *ptr, float value) {
    char seen[BYTES];
    peek(&b->sim, seen, ptr, BYTES);
    return holds(seen, value);
}

static bool is_allocation(int32_t op) {
    return op == SB_SIM_ALLOC || op == SB_SIM_ALLOC_PINNED;
}

/* Returns whether the operation queues work, which can fail after the call has returned. */
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

static bool writes_device(int32_t op) {
    return op == SB_SIM_ZERO || op == SB_SIM_UPLOAD || op == SB_SIM_COPY || op == SB_SIM_AXPY ||
           op == SB_SIM_SCALE;
}

static void upload_that_fails(struct bench *b, char *to, sb_stream stream) {
    fail_call(&b->sim, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    upload(&b->sim, to, b->source, BYTES, stream);
}

static sb_status call_and_wait(struct bench *b, int32_t op, bool waits) {
    sb_status st = call(b, op, &err);
    if (!waits || st != SB_OK)
        return st;
    support_poison_error(&err);
    if (op != SB_SIM_EVENT_RECORD)
        return try_synchronize(&b->sim, b->own);
    st = try_event_wait(&b->sim, b->out);
    undo(b, op);
    return st;
}

TEST_ON(bench, a_call_that_fails_now_or_later_has_done_nothing) {
    for (int i = 0; i < 6 * SB_SIM_OP_COUNT; i++) {
        const int32_t op = i / 6, mode = i % 2 ? SB_SIM_FAIL_LATER : SB_SIM_FAIL_NOW;
        const bool is_later = mode == SB_SIM_FAIL_LATER && queues(op);
        bench_reopen(f, schedules[i % 6 / 2]);
        fail_call(&f->sim, op, 1, mode);
        assert_status(is_allocation(op) ? SB_ERR_OUT_OF_MEMORY : SB_ERR_DEVICE_FAILURE,
                      call_and_wait(f, op, is_later && !waits_for_its_result(op)));
        assert_int_not_equal(err.device_code, 0);
        assert_true(is_later || !f->out);
        synchronize(&f->sim, f->own); /* succeeds, because the failure has been reported */
        assert_true(device_holds(f, f->x, 3));
        /* If queued work fails, its target contains rubbish. */
        assert_int_equal(device_holds(f, f->y, 5), !(is_later && writes_device(op)));
        assert_false(device_holds(f, f->y, 0) || device_holds(f, f->y, 7) ||
                     device_holds(f, f->y, 3) || device_holds(f, f->y, 11) ||
                     device_holds(f, f->y, 10));
        assert_int_equal(holds(f->target, 9), !(is_later && op == SB_SIM_DOWNLOAD));
        assert_false(holds(f->target, 3));
        assert_ok(call(f, op, &err));
        undo(f, op);
        synchronize(&f->sim, f->own);
    }
}

/* OTHER: the step runs on a new thread. FAILS: the wait returns a failure. */
enum step { END, UPLOAD, WAIT, RECORD, WAIT_FOR_FIRST, WAIT_FOR_LAST, FAILS = 8, OTHER = 16 };

static const unsigned int scripts[][10] = {
    /* Another thread's wait does not consume the failure. */
    {UPLOAD, OTHER | WAIT | FAILS, OTHER | WAIT, OTHER | RECORD, OTHER | WAIT_FOR_LAST,
     WAIT | FAILS, WAIT, OTHER | WAIT},
    {UPLOAD, OTHER | WAIT | FAILS, RECORD, WAIT_FOR_LAST | FAILS, OTHER | WAIT, OTHER | RECORD,
     OTHER | WAIT_FOR_LAST},
    /* Another thread's event does not consume the failure. */
    {UPLOAD, OTHER | RECORD, WAIT_FOR_FIRST | FAILS, WAIT | FAILS, WAIT},
    {UPLOAD, OTHER | RECORD, RECORD, WAIT_FOR_FIRST | FAILS, WAIT_FOR_LAST | FAILS, WAIT},
    /* The thread that queued the failed work has ended. */
    {OTHER | UPLOAD, WAIT | FAILS, RECORD, WAIT_FOR_LAST, WAIT},
    {OTHER | UPLOAD, RECORD, WAIT_FOR_FIRST | FAILS, WAIT_FOR_FIRST | FAILS, RECORD, WAIT_FOR_LAST,
     WAIT},
    /* Every wait for the event reports the failure. */
    {UPLOAD, RECORD, OTHER | WAIT | FAILS, OTHER | WAIT_FOR_FIRST | FAILS, WAIT_FOR_FIRST | FAILS},
};

struct player {
    struct bench *b;
    unsigned int step;
    void *events[3];
    int num_events;
    sb_status st;
};

static void *play(void *user) {
    struct player *p = user;
    p->st = SB_OK;
    switch (p->step & 7) {
    case UPLOAD:
        upload_that_fails(p->b, p->b->y, p->b->own);
        break;
    case WAIT:
        p->st = try_synchronize(&p->b->sim, p->b->own);
        break;
    case RECORD:
        p->events[p->num_events++] = record(&p->b->sim, p->b->own);
        break;
    case WAIT_FOR_FIRST:
        p->st = try_event_wait(&p->b->sim, p->events[0]);
        break;
    default:
        p->st = try_event_wait(&p->b->sim, p->events[p->num_events - 1]);
    }
    return NULL;
}

TEST_ON(bench, each_thread_receives_a_failure_once) {
    for (size_t i = 0; i < COUNT_OF(schedules) * COUNT_OF(scripts); i++) {
        const unsigned int *steps = scripts[i / COUNT_OF(schedules)];
        bench_reopen(f, schedules[i % COUNT_OF(schedules)]);
        struct player player = {.b = f};
        for (int k = 0; steps[k] != END; k++) {
            pthread_t thread;
            player.step = steps[k];
            if (steps[k] & OTHER) {
                assert_int_equal(pthread_create(&thread, NULL, play, &player), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
            } else {
                (void)play(&player);
            }
            if (player.st != (steps[k] & FAILS ? SB_ERR_DEVICE_FAILURE : SB_OK))
                fail_with("step %d of script %d: %s", k, (int)(i / COUNT_OF(schedules)),
                          sb_status_name(player.st));
        }
        while (player.num_events)
            event_destroy(&f->sim, player.events[--player.num_events]);
    }
}

static void assert_calls(struct bench *b, const int64_t calls[SB_SIM_OP_COUNT]) {
    int64_t found[SB_SIM_OP_COUNT];
    assert_ok(sb_sim_calls(b->sim.context, found, SB_SIM_OP_COUNT, &err));
    assert_memory_equal(found, calls, sizeof found);
}

static void empty_kernel(void *user) {
}

TEST_ON(bench, a_lost_device_stays_lost_and_counts_calls) {
    for (int i = 0; i < 3 * SB_SIM_OP_COUNT; i++) {
        const int32_t op = i / 3;
        int64_t calls[SB_SIM_OP_COUNT];
        sb_stream stream;
        void *ptr;
        bench_reopen(f, schedules[i % 3]);
        assert_ok(sb_sim_calls(f->sim.context, calls, SB_SIM_OP_COUNT, &err));
        fail_call(&f->sim, op, 1, SB_SIM_FAIL_STICKY);
        assert_status(SB_ERR_DEVICE_LOST, call(f, op, &err));
        assert_int_equal(device_holds(f, f->y, 5), !writes_device(op));
        fail_call(&f->sim, SB_SIM_ANY, 1, SB_SIM_FAIL_NOW); /* has no effect on a lost device */
        for (int32_t later = 0; later < SB_SIM_OP_COUNT; later++) {
            assert_status(SB_ERR_DEVICE_LOST, call(f, later, &err));
            assert_int_not_equal(err.device_code, 0);
            assert_null(f->out);
            calls[later] += later == op ? 2 : 1;
        }
        assert_calls(f, calls);
        assert_status(SB_ERR_DEVICE_LOST, sb_sim_malloc(f->sim.context, 8, &ptr, &err));
        assert_status(SB_ERR_DEVICE_LOST, sb_sim_stream_create(f->sim.context, &stream, &err));
        assert_status(SB_ERR_DEVICE_LOST,
                      sb_sim_launch(f->sim.context, NULL, empty_kernel, NULL, &err));
        assert_true(device_holds(f, f->x, 3)); /* sb_sim_peek still reads a lost device */
        free_memory(&f->sim, f->x, BYTES, f->own);
        assert_status(SB_ERR_DEVICE_FAILURE, sb_sim_peek(f->sim.context, f->target, f->x, 1, &err));
    }
}
