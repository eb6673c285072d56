/* Makes allocations and device operations of every call on a memory fail. The lazy schedule runs
   work as late as possible, which exposes accesses to storage that was reused too early. */
#include "pointers.h"
#include "scene.h"

#define BYTES ((size_t)192)
#define USERS 0x77 /* the byte that the caller writes through a returned pointer */

struct trial {
    const struct start *start;
    bool pending; /* a copy to the other side is queued before the call */
    bool reuses;  /* the caller overwrites the host side after the call */
    int32_t schedule;
    enum call call;
    enum fault fault;
    int64_t nth;
    int times;
    struct plan plan;
    sb_status status;
    struct scene scene;
    sb_stream stream;
    void *given; /* host memory that the caller filled with USERS, or NULL */
};

static void blame(const struct trial *t, const char *what) {
    fail_with("head %d%s, host %d, device %d: %s (%s) with %s %d to %d failing: %s", t->start->head,
              t->pending ? " and pending" : "", t->start->cpu, t->start->gpu,
              call_kinds[t->call].name, sb_status_name(t->status), fault_name(t->fault),
              (int)t->nth, (int)t->nth + t->times - 1, what);
}

static int32_t head_before(const struct trial *t) {
    return t->pending ? SB_HEAD_SYNCED : t->start->head;
}

static struct plan plan_of(const struct trial *t) {
    const sb_mem *mem = t->scene.mem;
    const struct memory_state state = {.bytes = BYTES,
                                       .head = head_before(t),
                                       .side = {{sb_mem_storage(mem, SB_SIDE_CPU), NULL},
                                                {sb_mem_storage(mem, SB_SIDE_GPU), NULL}},
                                       .is_coherent = t->start->is_coherent};
    return table_plan(&state, t->call);
}

static void queue_copy(struct trial *t) {
    assert_ok((t->start->head == SB_HEAD_AT_CPU ? sb_mem_async_gpu_push : sb_mem_async_cpu_pull)(
        t->scene.mem, t->stream, &err));
}

static void trial_open(struct trial *t) {
    scene_open(&t->scene, t->start, BYTES);
    if (t->call == SET_CPU)
        t->scene.extra = lend_host(BYTES, LENT);
    if (t->call == SET_GPU)
        t->scene.extra = lend_device(t->scene.rig.context, BYTES, LENT);
    t->scene.cpu.taken = t->scene.gpu.taken = t->scene.extra.taken = true;
    t->stream = rig_stream(&t->scene.rig);
    t->given = NULL;
    rig_schedule(&t->scene.rig, t->schedule, 9);
    if (t->pending)
        queue_copy(t);
    t->plan = plan_of(t);
}

static sb_status make_call(struct trial *t, void **out) {
    struct lent *extra = &t->scene.extra;
    const struct call_arguments arguments = {t->stream, extra->ptr, BYTES, 0, lent_deleter, extra};
    return mem_call(t->scene.mem, t->call, &arguments, out, &err);
}

static bool is_lost(const struct trial *t) {
    return sb_context_device_status(t->scene.rig.context) != SB_OK;
}

static bool writes_in_place(const struct trial *t) {
    return t->call == CLEAR && t->plan.side == SB_SIDE_GPU && t->plan.zeroes && !t->plan.allocates;
}

static int fill_of(const struct trial *t) {
    const enum purpose purpose = call_kinds[t->call].purpose;
    if (t->status != SB_OK)
        return t->start->head == SB_HEAD_UNINITIALIZED ? 0 : CURRENT;
    if (purpose == SET || purpose == OVERWRITE)
        return purpose == SET ? LENT : -1;
    return t->call == CLEAR || t->start->head == SB_HEAD_UNINITIALIZED ? 0 : CURRENT;
}

static void check_bytes(struct trial *t) {
    const int32_t head = sb_mem_head(t->scene.mem);
    const int fill = fill_of(t);
    const void *in = NULL;
    if (fill < 0 || head == SB_HEAD_UNINITIALIZED)
        return;
    if (table_is_current(head, SB_SIDE_CPU) && sb_mem_cpu(t->scene.mem, &in, NULL) == SB_OK)
        demand(t, bytes_are(in, BYTES, fill));
    if (table_is_current(head, SB_SIDE_GPU) && sb_mem_gpu(t->scene.mem, &in, NULL) == SB_OK)
        demand(t, device_bytes_are(t->scene.rig.context, in, BYTES, fill));
}

/* If queued work fails, the memory gets back the head that it had first in the trial. */
static void check_head(const struct trial *t) {
    const int32_t head = sb_mem_head(t->scene.mem), before = head_before(t);
    const bool spoils = writes_in_place(t) && t->status == SB_ERR_DEVICE_LOST;
    const bool is_one_storage = t->start->is_coherent && t->start->cpu == SB_STORAGE_OWNED &&
                                t->start->gpu == SB_STORAGE_OWNED;
    const bool keeps_host = before == SB_HEAD_SYNCED && !is_one_storage;
    const int32_t spoilt = keeps_host ? SB_HEAD_AT_CPU : SB_HEAD_LOST;
    demand(t, head == before || head == t->start->head || (spoils && head == spoilt));
}

static void check_call(struct trial *t, bool fired, const void *out) {
    support_check_status(t->status, t->status, &err, call_kinds[t->call].name, __FILE__, __LINE__);
    demand(t, t->status == t->plan.status ||
                  (fired && fault_explains(t->fault, t->status, writes_in_place(t))));
    demand(t, t->status == SB_OK || (out == NULL && t->scene.extra.deleted == 0));
    demand(t, is_lost(t) == (t->status == SB_ERR_DEVICE_LOST) || t->fault == FAULT_STICKY ||
                  t->fault == FAULT_LATER);
    if (!fired)
        demand(t, sb_mem_head(t->scene.mem) == t->plan.head || t->status != SB_OK);
    if (t->status != SB_OK)
        check_head(t);
}

static void call_again(struct trial *t) {
    void *out = NULL;
    if (t->status == t->plan.status || is_lost(t))
        return;
    if (t->pending && sb_mem_head(t->scene.mem) == t->start->head && t->plan.status == SB_OK)
        queue_copy(t); /* the first copy has failed */
    t->status = make_call(t, &out);
    demand(t, t->status == t->plan.status);
    demand(t, sb_mem_head(t->scene.mem) == t->plan.head || t->status != SB_OK);
}

static void drain(const struct trial *t) {
    sb_status st = SB_ERR_DEVICE_FAILURE;
    for (int i = 0; i < 3 && st == SB_ERR_DEVICE_FAILURE; i++) /* each failure is reported once */
        st = sb_context_synchronize(t->scene.rig.context, NULL);
    demand(t, st == SB_OK || (st == SB_ERR_DEVICE_LOST && is_lost(t)));
}

/* Lent bytes must not be written after their deleter ran. */
static void trial_close(struct trial *t) {
    struct scene *s = &t->scene;
    struct lent *all[] = {&s->cpu, &s->gpu, &s->extra};
    if (t->status != SB_OK && s->extra.ptr)
        lent_deleter(&s->extra, s->extra.ptr); /* a failed call has not run the deleter */
    if (!t->reuses)
        sb_mem_release(s->mem);
    drain(t);
    demand(t, !t->given || bytes_are(t->given, BYTES, USERS));
    if (t->reuses)
        sb_mem_release(s->mem);
    drain(t);
    for (int i = 0; i < 3; i++)
        demand(t, !all[i]->ptr || (all[i]->deleted == 1 && lent_holds(all[i], TAKEN)));
    rig_close(&s->rig);
}

static bool run_trial(struct trial *t) {
    void *out = NULL;
    trial_open(t);
    const struct tally before = rig_tally(&t->scene.rig);
    const struct armed armed = fault_arm(&t->scene.rig, t->fault, t->nth);
    for (int i = 1; i < t->times; i++) /* only the simulated device can fail several times */
        ignore(
            sb_sim_fail_also(t->scene.rig.context, SB_SIM_ANY, t->nth + i, SB_SIM_FAIL_NOW, NULL));
    support_poison_error(&err);
    t->status = make_call(t, &out);
    bool fired = fault_fired(&armed);
    check_call(t, fired, out);
    if (t->pending && call_kinds[t->call].purpose == READ &&
        table_is_current(t->start->head, call_kinds[t->call].side)) {
        /* Reading the source of a queued copy needs no wait. */
        const struct tally since = rig_since(&t->scene.rig, &before);
        demand(t, since.calls[SB_SIM_EVENT_WAIT] + since.calls[SB_SIM_STREAM_SYNCHRONIZE] == 0);
    }
    if (t->reuses && sb_mem_overwrite_cpu(t->scene.mem, &t->given, NULL) == SB_OK)
        memset(t->given, USERS, BYTES);
    fired |= fault_disarm(&armed);
    if (!t->reuses) {
        call_again(t);
        check_bytes(t);
    }
    trial_close(t);
    return fired;
}

static void try_calls(struct trial t) {
    const bool is_one_sided = t.start->head == SB_HEAD_AT_CPU || t.start->head == SB_HEAD_AT_GPU;
    if (t.pending && !is_one_sided)
        return;
    for (t.call = 0; t.call < CALLS; t.call++)
        for (t.nth = 1; run_trial(&t); t.nth++)
            assert_true(t.nth < 200);
}

TEST(no_failure_changes_the_memory_or_returns_a_loan_in_use) {
    static const struct {
        enum fault fault;
        int times;
    } rows[] = {{FAULT_ALLOC, 1}, {FAULT_LATER, 1}, {FAULT_STICKY, 1},
                {FAULT_NOW, 1},   {FAULT_NOW, 2},   {FAULT_NOW, 3},
                {FAULT_NOW, 4},   {FAULT_NOW, 6},   {FAULT_NOW, 12}};
    for (size_t s = 0; s < SCENE_STARTS; s++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int mode = 0; mode < 5; mode++)
                try_calls((struct trial){.start = &scene_starts[s],
                                         .schedule = mode < 4 ? SB_SIM_LAZY : SB_SIM_EAGER,
                                         .fault = rows[r].fault,
                                         .times = rows[r].times,
                                         .pending = mode & 1,
                                         .reuses = mode & 2});
}
