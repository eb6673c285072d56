/* Every call on every state of a memory, with the n-th allocation or the n-th
   operation of the device failing, for all n: nothing observable changes, the
   same call succeeds afterwards, nothing leaks. */
#include "faults.h"
#include "scene.h"

#include <stdio.h>

#define BYTES ((size_t)192)

/* A start, and whether a transfer to the other side is queued on top of it. */
struct given {
    struct start start;
    bool pending;
    int32_t schedule;
};

struct trial {
    struct given given;
    enum call call;
    enum fault fault;
    int64_t nth;
    struct scene scene;
    sb_stream stream; /* a stream of the caller's */
};

static void blame(const struct trial *t, const char *what) {
    fail_with("%s%s, host %s, device %s, schedule %d: %s with %s %d failing: %s",
              head_name(t->given.start.head), t->given.pending ? " and pending" : "",
              storage_name(t->given.start.cpu), storage_name(t->given.start.gpu), t->given.schedule,
              call_kinds[t->call].name, fault_name(t->fault), (int)t->nth, what);
}

static void queue_copy(struct trial *t) {
    if (t->given.start.head == SB_HEAD_AT_CPU)
        assert_ok(sb_mem_async_gpu_push(t->scene.mem, t->stream, &err));
    else
        assert_ok(sb_mem_async_cpu_pull(t->scene.mem, t->stream, &err));
}

static void trial_open(struct trial *t) {
    scene_open(&t->scene, &t->given.start, BYTES);
    t->stream = rig_stream(&t->scene.rig);
    scene_lend_extra(&t->scene, t->call);
    rig_schedule(&t->scene.rig, t->given.schedule, 9);
    if (t->given.pending)
        queue_copy(t);
}

static void end_loan(struct trial *t, struct lent *lent, bool may_be_unused) {
    if (!lent->ptr)
        return;
    demand(t, lent->deleted == 1 || (may_be_unused && lent->deleted == 0));
    lent_free(lent);
}

static void trial_close(struct trial *t, bool lost) {
    sb_mem_release(t->scene.mem);
    sb_status forgotten = sb_context_forget_stream(t->scene.rig.context, t->stream, NULL);
    demand(t, forgotten == SB_OK || lost || t->fault == FAULT_LATER);
    ignore(sb_sim_stream_destroy(t->scene.rig.context, t->stream, NULL));
    end_loan(t, &t->scene.cpu, false);
    end_loan(t, &t->scene.gpu, false);
    end_loan(t, &t->scene.extra, lost);
    rig_close(&t->scene.rig);
}

/* --- what the memory holds ------------------------------------------------------- */

/* Whether one more read of a side is right: it fails, or gives bytes of `fill` (-1: any). */
static bool reads_right(struct trial *t, int32_t side, int fill) {
    const void *ptr = NULL;
    sb_status status = side == SB_SIDE_CPU ? sb_mem_cpu(t->scene.mem, &ptr, NULL)
                                           : sb_mem_gpu(t->scene.mem, &ptr, NULL);
    if (status != SB_OK || fill < 0)
        return true;
    return side == SB_SIDE_CPU ? bytes_are(ptr, BYTES, fill)
                               : device_bytes_are(t->scene.rig.context, ptr, BYTES, fill);
}

/* Bytes of every side that the head promises are `fill`; reading does not move the head. */
static void check_current(struct trial *t, int32_t head, int fill, bool same_storage) {
    if (head == SB_HEAD_UNINITIALIZED || fill < 0)
        return;
    for (int32_t side = 0; side < 2; side++) {
        if (!table_is_current(head, side))
            continue;
        const void *ptr = NULL;
        sb_status status = side == SB_SIDE_CPU ? sb_mem_cpu(t->scene.mem, &ptr, &err)
                                               : sb_mem_gpu(t->scene.mem, &ptr, &err);
        if (status != SB_OK)
            blame(t, err.message);
        demand(t, reads_right(t, side, fill));
        void *known = side == SB_SIDE_CPU ? t->scene.cpu_ptr : t->scene.gpu_ptr;
        if (known && same_storage && table_is_current(t->given.start.head, side))
            demand(t, ptr == known);
    }
    demand(t, sb_mem_head(t->scene.mem) == head);
}

/* --- expectations ------------------------------------------------------------------ */

/* What a successful call leaves: found by making it once with nothing failing. */
struct outcome {
    sb_status status;
    int32_t head;
    int fill;
};

static int fill_after(const struct given *given, enum call call) {
    bool untouched = given->start.head == SB_HEAD_UNINITIALIZED;
    if (call == SET_CPU || call == SET_GPU)
        return LENT;
    if (call_kinds[call].purpose == OVERWRITE)
        return -1;
    return call == CLEAR || untouched ? 0 : CURRENT;
}

static struct outcome reference(const struct given *given, enum call call) {
    struct trial t = {.given = *given, .call = call};
    void *out;
    trial_open(&t);
    struct outcome o = {SB_OK, 0, fill_after(given, call)};
    o.status = scene_call(&t.scene, call, t.stream, &out, NULL);
    o.head = sb_mem_head(t.scene.mem);
    if (o.status == SB_OK)
        check_current(&t, o.head, o.fill, false);
    trial_close(&t, o.status != SB_OK);
    return o;
}

/* Clearing overwrites current bytes on the device, unless it moves to other storage. */
static bool writes_in_place(const struct trial *t) {
    int32_t head = t->given.pending ? SB_HEAD_SYNCED : t->given.start.head;
    return t->call == CLEAR && head != SB_HEAD_AT_CPU && head != SB_HEAD_UNINITIALIZED &&
           !is_read_only(t->given.start.gpu);
}

/* The head that a failed call leaves. A pending copy that failed is taken back. */
static bool head_explains(const struct trial *t, int32_t head) {
    int32_t before = t->given.start.head;
    if (!t->given.pending)
        return head == before;
    return head == SB_HEAD_SYNCED || head == before;
}

static void check_spoiled(struct trial *t) {
    int32_t before = t->given.pending ? SB_HEAD_SYNCED : t->given.start.head;
    int32_t head = sb_mem_head(t->scene.mem);
    const void *ptr;
    demand(t, sb_context_device_status(t->scene.rig.context) == SB_ERR_DEVICE_LOST);
    if (before == SB_HEAD_AT_GPU) {
        demand(t, head == SB_HEAD_LOST);
        demand(t, sb_mem_cpu(t->scene.mem, &ptr, NULL) == SB_ERR_UNINITIALIZED);
    } else {
        demand(t, head == SB_HEAD_AT_CPU);
        demand(t, reads_right(t, SB_SIDE_CPU, CURRENT));
    }
}

/* The device is gone: current host bytes are intact, the rest fails or releases. */
static void check_lost(struct trial *t) {
    int32_t head = sb_mem_head(t->scene.mem);
    const void *ptr;
    demand(t, sb_context_device_status(t->scene.rig.context) == SB_ERR_DEVICE_LOST);
    demand(t, head_explains(t, head));
    if (table_is_current(head, SB_SIDE_CPU) && !t->given.pending)
        demand(t, reads_right(t, SB_SIDE_CPU, CURRENT));
    demand(t, sb_mem_gpu(t->scene.mem, &ptr, NULL) == SB_ERR_DEVICE_LOST);
}

static void check_failed(struct trial *t, sb_status status, const sb_error *err, const void *out,
                         const struct outcome *o) {
    bool in_place = writes_in_place(t);
    support_check_status(status, status, err, call_kinds[t->call].name, __FILE__, __LINE__);
    if (!fault_explains(t->fault, status, in_place))
        blame(t, sb_status_name(status));
    demand(t, out == NULL);
    demand(t, t->scene.extra.deleted == 0);
    if (status == SB_ERR_DEVICE_LOST) {
        bool began = !head_explains(t, sb_mem_head(t->scene.mem));
        if (in_place && (t->fault != FAULT_STICKY || began))
            check_spoiled(t);
        else
            check_lost(t);
        return;
    }
    demand(t, sb_context_device_status(t->scene.rig.context) == SB_OK);
    int32_t head = sb_mem_head(t->scene.mem);
    demand(t, head_explains(t, head));
    check_current(t, head, CURRENT, true);
    /* the same call succeeds now */
    void *again = NULL;
    if (t->given.pending && head == t->given.start.head && o->status == SB_OK)
        queue_copy(t); /* what it was given is gone */
    demand(t, scene_call(&t->scene, t->call, t->stream, &again, NULL) == o->status);
    demand(t, sb_mem_head(t->scene.mem) == o->head);
    if (o->status == SB_OK)
        check_current(t, o->head, o->fill, false);
}

/* The call did not see the fault: whoever waits does, and no read gives wrong bytes. */
static void check_told(struct trial *t, const struct outcome *o) {
    sb_status told = sb_mem_synchronize(t->scene.mem, NULL);
    int fill = o->fill;
    demand(t, told == SB_OK || fault_explains(t->fault, told, true));
    for (int round = 0; round < 3; round++) {
        int32_t head = sb_mem_head(t->scene.mem);
        for (int32_t side = 0; side < 2; side++)
            if (table_is_current(head, side) || head == SB_HEAD_SYNCED)
                demand(t, reads_right(t, side, fill));
    }
}

static bool run_trial(struct trial *t, const struct outcome *o) {
    void *out = NULL;
    trial_open(t);
    struct armed armed = fault_arm(&t->scene.rig, t->fault, t->nth);
    support_poison_error(&err);
    sb_status status = scene_call(&t->scene, t->call, t->stream, &out, &err);
    bool fired = fault_disarm(&armed);
    if (!fired) {
        demand(t, status == o->status);
        demand(t, sb_mem_head(t->scene.mem) == o->head);
    } else if (status == o->status && status == SB_OK) {
        check_told(t, o);
    } else if (status != o->status) {
        check_failed(t, status, &err, out, o);
    }
    bool lost = sb_context_device_status(t->scene.rig.context) != SB_OK;
    trial_close(t, lost || status != SB_OK);
    return fired;
}

static void try_every_n(const struct given *given, enum call call, enum fault fault) {
    struct outcome o = reference(given, call);
    bool fired = true;
    for (int64_t n = 1; fired; n++) {
        struct trial t = {.given = *given, .call = call, .fault = fault, .nth = n};
        fired = run_trial(&t, &o);
        if (n > 200)
            blame(&t, "the loop does not end");
    }
}

static void try_all_calls(const struct given *given, enum fault fault) {
    for (enum call call = 0; call < CALLS; call++)
        try_every_n(given, call, fault);
}

static void try_all_starts(enum fault fault) {
    for (size_t i = 0; i < SCENE_STARTS; i++)
        for (int32_t kind = SB_SIM_EAGER; kind <= SB_SIM_LAZY; kind++) {
            struct given given = {scene_starts[i], false, kind};
            try_all_calls(&given, fault);
        }
}

TEST(failing_allocations) {
    try_all_starts(FAULT_ALLOC);
}

TEST(operations_that_fail_at_once) {
    try_all_starts(FAULT_NOW);
}

TEST(operations_that_fail_later) {
    try_all_starts(FAULT_LATER);
}

TEST(a_device_that_dies) {
    try_all_starts(FAULT_STICKY);
}

/* The fault comes while a copy queued before the call is pending. */
TEST(faults_while_a_copy_is_pending) {
    static const struct start sources[] = {
        {SB_HEAD_AT_CPU, SB_STORAGE_OWNED, SB_STORAGE_NONE},
        {SB_HEAD_AT_CPU, SB_STORAGE_BORROWED, SB_STORAGE_BORROWED},
        {SB_HEAD_AT_GPU, SB_STORAGE_NONE, SB_STORAGE_OWNED},
        {SB_HEAD_AT_GPU, SB_STORAGE_BORROWED, SB_STORAGE_BORROWED},
    };
    for (size_t i = 0; i < 4; i++)
        for (enum fault fault = 0; fault < FAULTS; fault++) {
            struct given given = {sources[i], true, SB_SIM_LAZY};
            try_all_calls(&given, fault);
        }
}

/* --- giving storage up ---------------------------------------------------------------- */

struct reader {
    sb_context *context;
    const void *ptr;
    bool ran, right;
    bool deleted, deleted_early;
};

static void read_kernel(void *user) {
    struct reader *reader = user;
    const void *bytes = sb_sim_address(reader->context, reader->ptr, BYTES);
    reader->ran = true;
    reader->right = bytes && bytes_are(bytes, BYTES, CURRENT);
}

static void reader_deleter(void *user, void *ptr) {
    struct reader *reader = user;
    (void)ptr;
    reader->deleted_early = !reader->ran;
    reader->deleted = true;
}

/* A kernel is queued on a stream of the caller's (or, behind a plain pointer, on the default one)
   when the memory goes; one operation on the way fails. */
static bool give_up(int64_t nth, bool release, bool plain) {
    struct scene scene;
    struct start start = {SB_HEAD_AT_CPU, SB_STORAGE_OWNED, SB_STORAGE_NONE};
    scene_open(&scene, &start, BYTES);
    sb_stream stream = rig_stream(&scene.rig);
    struct reader reader = {.context = scene.rig.context};
    struct lent device = lend_device(scene.rig.context, BYTES, CURRENT);
    rig_schedule(&scene.rig, SB_SIM_LAZY, 0);
    assert_ok(sb_mem_set_gpu(scene.mem, device.ptr, BYTES, 0, reader_deleter, &reader, &err));
    (void)read_cpu(scene.mem);
    assert_ok(plain ? sb_mem_gpu(scene.mem, &reader.ptr, &err)
                    : sb_mem_gpu_on(scene.mem, stream, &reader.ptr, &err));
    assert_ok(sb_sim_launch(scene.rig.context, plain ? NULL : stream, read_kernel, &reader, &err));

    struct armed armed = fault_arm(&scene.rig, FAULT_NOW, nth);
    sb_status status = SB_OK;
    if (release)
        sb_mem_release(scene.mem);
    else
        status = sb_mem_evict_gpu(scene.mem, NULL);
    bool fired = fault_disarm(&armed);

    assert_int_equal(reader.deleted, status == SB_OK);
    assert_false(reader.deleted_early);
    if (!release)
        sb_mem_release(scene.mem);
    assert_true(reader.deleted && !reader.deleted_early && reader.right);
    rig_end_stream(&scene.rig, stream);
    rig_close(&scene.rig);
    return fired;
}

TEST(storage_in_use_is_not_given_up_when_a_wait_fails) {
    for (int variant = 0; variant < 4; variant++)
        for (int64_t n = 1; give_up(n, variant & 1, variant & 2); n++)
            assert_true(n < 100);
}

/* --- a write in steps ----------------------------------------------------------------- */

/* Begun and destroyed, or done. */
static bool fail_write(const struct start *start, sb_side side, uint32_t flags, enum fault fault,
                       int64_t nth) {
    struct trial t = {.given = {*start, false, SB_SIM_EAGER}, .fault = fault, .nth = nth};
    sb_write *write = NULL;
    void *ptr = NULL;
    trial_open(&t);
    struct armed armed = fault_arm(&t.scene.rig, fault, nth);
    support_poison_error(&err);
    const sb_status st = sb_write_begin(t.scene.mem, side, flags, &ptr, &write, &err);
    const bool fired = fault_disarm(&armed);
    assert_true(st == SB_OK || (fired && err.code == st && fault_explains(fault, st, false)));
    assert_true((st == SB_OK) == (write != NULL) && (st == SB_OK) == (ptr != NULL));
    assert_int_equal(sb_mem_head(t.scene.mem), start->head);
    sb_write_destroy(write);
    if (sb_context_device_status(t.scene.rig.context) == SB_OK && st != SB_OK) {
        if (start->head != SB_HEAD_UNINITIALIZED)
            assert_true(bytes_are(read_cpu(t.scene.mem), BYTES, CURRENT));
        assert_ok(sb_write_begin(t.scene.mem, side, flags, &ptr, &write, &err));
        assert_ok(sb_write_end(write, SB_WRITE_DONE, &err));
        sb_write_destroy(write);
    }
    trial_close(&t, sb_context_device_status(t.scene.rig.context) != SB_OK);
    return fired;
}

TEST(writes_in_steps_that_cannot_begin) {
    for (size_t i = 0; i < SCENE_STARTS; i++)
        for (int how = 0; how < 8; how++)
            for (enum fault fault = FAULT_ALLOC; fault < FAULTS; fault++)
                for (int64_t n = 1; fault != FAULT_LATER; n++)
                    if (!fail_write(&scene_starts[i], how & 1,
                                    (uint32_t)(how >> 1) * SB_WRITE_OVERWRITE, fault, n))
                        break;
}

/* --- making a memory ------------------------------------------------------------------ */

TEST_ON(rig, creation_under_failing_allocations) {
    for (int64_t n = 1;; n++) {
        sb_mem *mem = NULL;
        struct armed armed = fault_arm(f, FAULT_ALLOC, n);
        support_poison_error(&err);
        sb_status status = sb_mem_create(f->context, BYTES, &mem, &err);
        bool fired = fault_disarm(&armed);
        assert_int_equal(status, fired ? SB_ERR_OUT_OF_MEMORY : SB_OK);
        support_check_status(status, status, &err, "sb_mem_create", __FILE__, __LINE__);
        assert_int_equal(mem == NULL, fired);
        sb_mem_release(mem);
        if (!fired)
            break;
    }
}
