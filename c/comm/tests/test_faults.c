/* Tests calls of communicators and reducers while the n-th allocation, device operation or engine
   call fails. */
#include "blobs.h"
#include "fail_calloc.h"
#include "mirror.h"
#include "ranks.h"

#include <syncblob/sim_comm.h>

#define BLOBS 4
#define MOST  40
#define RANKS 3 /* ranks that CREATE_RANKS creates */

/* HANDLE: calloc fails. UNSENT, SENT: the engine fails before or after it has sent bytes. */
enum { HANDLE = FAULTS, UNSENT, SENT, TEST_FAILS, WAIT_FAILS, KINDS };

static const int64_t counts[BLOBS] = {3, MOST, 7, 20};

enum call {
    ALL_REDUCE,
    SEND,
    RECEIVE,
    STEP,
    CREATE,
    CREATE_RANKS,
    CREATE_REDUCER,
    REDUCE_VALUE,
    SEND_VALUE,
    BARRIER,
    CALLS
};

/* LENT_*: the caller lends read-only storage, which the first write replaces. LENT_OLD: the host
   storage is lent, but only the device has the newest bytes. */
enum state { NEVER, AT_CPU, AT_GPU, SYNCED, LENT_CPU, LENT_GPU, LENT_OLD, STATES };

struct setting {
    enum call call;
    enum state state;
    bool takes_device, at_once;
    sb_comm_op op;
    size_t bucket_bytes;
};

struct world {
    const struct setting *setting;
    struct rig rig;
    struct mirror mirror, made_mirror;
    struct lent lent[BLOBS];
    sb_comm *comm, *made[RANKS];
    sb_blob *blobs[BLOBS];
    sb_reducer *reducer;
    bool ready[BLOBS];
    bool is_broken; /* the communicator is unusable */
    double value;
};

static void values_of(int blob, float values[MOST]) {
    fill_values(SB_DTYPE_F32, counts[blob], blob * 10 + 1, 1, values);
}

static void lend(struct world *w, int i, const float *values, bool to_device) {
    const size_t bytes = (size_t)counts[i] * sizeof *values;
    struct lent *lent = &w->lent[i];
    *lent = to_device ? lend_device(w->rig.context, bytes, 0) : lend_host(bytes, 0);
    bytes_put(lent->context, lent->ptr, values, bytes);
    assert_ok((to_device ? sb_blob_set_gpu : sb_blob_set_cpu)(
        w->blobs[i], SB_DATA, lent->ptr, bytes, SB_READ_ONLY, NULL, NULL, &err));
    if (w->setting->state == LENT_OLD)
        assert_ok(sb_blob_mutable_gpu(w->blobs[i], SB_DATA, &(void *){NULL}, &err));
}

static void world_open(struct world *w, const struct setting *setting) {
    memset(w, 0, sizeof *w);
    w->setting = setting;
    w->value = 5;
    w->mirror.takes_device = setting->takes_device;
    w->mirror.fill = 0x3F;
    rig_open_on(&w->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    w->comm = test_comm(w->rig.context, setting->at_once ? &mirror_engine_at_once : &mirror_engine,
                        &w->mirror);
    for (int i = 0; i < BLOBS; i++) {
        float values[MOST];
        values_of(i, values);
        w->blobs[i] = test_vector(w->rig.context, SB_DTYPE_F32, counts[i]);
        if (setting->state >= LENT_CPU)
            lend(w, i, values, setting->state == LENT_GPU);
        else if (setting->state != NEVER) /* in the state NEVER a blob has no memory */
            mem_place(data_of(w->blobs[i]), (int32_t)setting->state, values,
                      (size_t)counts[i] * sizeof *values);
    }
    const sb_reducer_options options = reducer_options(SB_DATA, setting->op, setting->bucket_bytes);
    if (setting->call == STEP)
        assert_ok(sb_reducer_create(w->comm, w->blobs, BLOBS, &options, &w->reducer, &err));
    mirror_forget(&w->mirror);
}

static void world_close(struct world *w) {
    sb_reducer_destroy(w->reducer);
    for (int i = 0; i < RANKS; i++)
        sb_comm_destroy(w->made[i]);
    test_end(w->comm);
    assert_int_equal(w->mirror.closed, 1);
    assert_true(w->mirror.closed_failed || !w->is_broken);
    assert_int_equal(w->mirror.flying, 0);
    for (int i = 0; i < BLOBS; i++) {
        test_end(w->blobs[i]);
        if (!w->lent[i].ptr)
            continue;
        float values[MOST], found[MOST];
        const size_t bytes = (size_t)counts[i] * sizeof *values;
        values_of(i, values);
        bytes_get(w->lent[i].context, w->lent[i].ptr, found, bytes);
        assert_memory_equal(found, values, bytes);
    }
    rig_close(&w->rig);
}

/* Runs a step. A second call continues with the call that failed. */
static sb_status step(struct world *w, sb_error *err) {
    for (int i = BLOBS; i--;) {
        sb_status st = w->ready[i] ? SB_OK : sb_reducer_ready(w->reducer, w->blobs[i], err);
        if (st != SB_OK)
            return st;
        w->ready[i] = true;
    }
    return sb_reducer_wait(w->reducer, err);
}

static sb_status next_step(struct world *w) {
    void *out;
    for (int i = 0; i < BLOBS; i++) {
        assert_ok(sb_blob_overwrite_cpu(w->blobs[i], SB_DATA, &out, &err));
        memset(out, 0, (size_t)counts[i] * sizeof(float));
        w->ready[i] = false;
    }
    return step(w, &err);
}

static sb_status make_call(struct world *w, sb_error *err) {
    switch (w->setting->call) {
    case ALL_REDUCE:
        return sb_comm_all_reduce_blobs(w->comm, w->blobs, BLOBS, SB_DATA, w->setting->op, err);
    case STEP:
        return step(w, err);
    case CREATE:
        return sb_comm_create(w->rig.context, &mirror_engine, &w->made_mirror, w->made, err);
    case CREATE_RANKS:
        return sb_sim_comm_create(w->rig.context, RANKS, NULL, w->made, err);
    case CREATE_REDUCER:
        return sb_reducer_create(w->comm, w->blobs, BLOBS, NULL, &w->reducer, err);
    case REDUCE_VALUE:
        return sb_comm_all_reduce(w->comm, SB_COMM_SUM, SB_DTYPE_F64, 1, &w->value, err);
    case SEND_VALUE:
        return sb_comm_broadcast(w->comm, 0, &w->value, sizeof w->value, err);
    case BARRIER:
        return sb_comm_barrier(w->comm, err);
    default:
        return sb_comm_broadcast_blobs(w->comm, w->blobs, BLOBS, SB_DATA,
                                       w->setting->call == RECEIVE, err);
    }
}

static bool is_on_blobs(const struct setting *setting) {
    return setting->call <= STEP;
}

static bool is_changed_by(const struct setting *setting) {
    const bool reduces = setting->call == ALL_REDUCE || setting->call == STEP;
    return setting->call == RECEIVE || (reduces && setting->op == SB_COMM_SUM);
}

static bool holds(struct world *w, int blob, bool after) {
    float values[MOST] = {0};
    const size_t bytes = (size_t)counts[blob] * sizeof *values;
    const bool changed = after && is_changed_by(w->setting);
    if (changed && w->setting->call == RECEIVE)
        memset(values, w->mirror.fill, bytes);
    else if (w->setting->state != NEVER)
        values_of(blob, values);
    for (int64_t i = 0; i < counts[blob] && changed && w->setting->call != RECEIVE; i++)
        values[i] *= 2;
    return mem_holds(data_of(w->blobs[blob]), values, bytes);
}

static bool is_out_of_reach(struct world *w, int blob) {
    const int32_t head = sb_mem_head(data_of(w->blobs[blob]));
    return head == SB_HEAD_LOST ||
           (head == SB_HEAD_AT_GPU && sb_context_device_status(w->rig.context) != SB_OK);
}

static int64_t num_wrong(struct world *w, bool before, bool after) {
    const double later = w->setting->call == REDUCE_VALUE ? 10 : 5;
    int64_t wrong = !(before && w->value == 5) && !(after && w->value == later);
    for (int i = 0; i < BLOBS; i++)
        wrong += !is_out_of_reach(w, i) && !(before && holds(w, i, false)) &&
                 !(after && holds(w, i, true));
    return wrong;
}

static void check_use(struct world *w, sb_blob *blob) {
    const int64_t longer = 500;
    void *out;
    assert_ok(sb_blob_reshape(blob, &longer, 1, NULL, &err));
    assert_ok(sb_blob_overwrite_cpu(blob, SB_DATA, &out, &err));
    memset(out, 0x5A, 500 * sizeof(float));
    if (sb_context_device_status(w->rig.context) == SB_OK)
        assert_ok(sb_blob_mutable_gpu(blob, SB_DATA, &out, &err));
    const void *in = host_of(blob, SB_DATA);
    assert_true(bytes_are(in, 500 * sizeof(float), 0x5A));
}

static void fail_setting(const struct setting *s, int kind, int64_t nth, const char *what) {
    static const char *const names[] = {"handle", "begin, unsent", "begin, sent", "test", "wait"};
    fail_with("call %d, state %d, device %d, at once %d, op %d, buckets %zu; %s %lld: %s", s->call,
              s->state, s->takes_device, s->at_once, s->op, s->bucket_bytes,
              kind < FAULTS ? fault_name((enum fault)kind) : names[kind - FAULTS], (long long)nth,
              what);
}

static void arm_engine(struct mirror *mirror, int kind, int64_t nth, int32_t seed) {
    static const sb_status unsent[] = {SB_ERR_OUT_OF_MEMORY, SB_ERR_UNSUPPORTED,
                                       SB_ERR_DEVICE_LOST};
    static const sb_status sent[] = {SB_ERR_COMM_FAILURE, SB_ERR_IO};
    int64_t *const fail_nth[KINDS] = {[UNSENT] = &mirror->fail_begin,
                                      [SENT] = &mirror->fail_begin,
                                      [TEST_FAILS] = &mirror->fail_test,
                                      [WAIT_FAILS] = &mirror->fail_end};
    mirror->failure = kind == UNSENT ? unsent[seed % 3] : sent[seed % 2];
    *fail_nth[kind] = nth;
}

static bool engine_has_failed(const struct mirror *mirror) {
    return (mirror->fail_begin && mirror->begins >= mirror->fail_begin) ||
           (mirror->fail_test && mirror->tests >= mirror->fail_test) ||
           (mirror->fail_end && mirror->ends >= mirror->fail_end);
}

/* Returns whether each blob still has a copy of the bytes that the engine overwrote. */
static bool has_copy(const struct setting *s) {
    const bool has_two[STATES] = {
        [NEVER] = true,    [AT_GPU] = !s->takes_device, [SYNCED] = true,
        [LENT_CPU] = true, [LENT_GPU] = true,           [LENT_OLD] = !s->takes_device};
    if (!is_on_blobs(s))
        return s->call != REDUCE_VALUE;
    return s->bucket_bytes == SIZE_MAX || has_two[s->state];
}

/* Checks the state after the engine failed. Returns whether the call may be retried. */
static bool check_engine(struct world *w, int kind, int64_t nth, sb_status st,
                         const sb_error *err) {
    const struct setting *s = w->setting;
    const bool again = kind == UNSENT && (nth == 1 || s->call == STEP);
    if (st != (again ? w->mirror.failure : SB_ERR_COMM_FAILURE))
        fail_setting(s, kind, nth, sb_status_name(st));
    if (err && (err->code != st || err->device_code != 7 || err->offset != -1 ||
                strcmp(err->message, mirror_cause) != 0))
        fail_setting(s, kind, nth, err->message);
    if (num_wrong(w, true, true) > (has_copy(s) ? 0 : w->mirror.spoiled))
        fail_setting(s, kind, nth, "wrong bytes");
    for (int64_t i = nth - 1;
         kind == UNSENT && s->call <= RECEIVE && s->state == SYNCED && i < BLOBS; i++)
        assert_int_equal(sb_mem_head(data_of(w->blobs[i])), SB_HEAD_SYNCED);
    w->is_broken = !again;
    if (again)
        return true;
    assert_int_equal(w->mirror.flying, 0);
    assert_int_equal(sb_comm_barrier(w->comm, NULL), SB_ERR_COMM_FAILURE);
    if (w->reducer)
        assert_int_equal(sb_reducer_ready(w->reducer, w->blobs[0], NULL), SB_ERR_COMM_FAILURE);
    assert_true(!w->reducer || sb_reducer_wait(w->reducer, NULL) == SB_ERR_COMM_FAILURE);
    return false;
}

/* Checks the state after the device or an allocation failed. Returns whether to retry the call. */
static bool check_device(struct world *w, int kind, int64_t nth, sb_status st, bool fired) {
    const struct setting *s = w->setting;
    const enum fault fault = kind < FAULTS ? (enum fault)kind : FAULT_ALLOC;
    if (st != SB_OK &&
        (!fired || err.code != st || !fault_explains(fault, st, s->op == SB_COMM_MEAN)))
        fail_setting(s, kind, nth, sb_status_name(st));
    const bool reports = kind == HANDLE ? !is_on_blobs(s) : s->call != STEP;
    if (st == SB_OK && fired && fault == FAULT_ALLOC && reports)
        fail_setting(s, kind, nth, "no failure was reported");
    const bool in_part = st != SB_OK && s->call == STEP; /* earlier buckets are done */
    if (num_wrong(w, st != SB_OK, st == SB_OK || in_part))
        fail_setting(s, kind, nth, "wrong bytes");
    int64_t lost = 0;
    for (int i = 0; i < BLOBS; i++)
        lost += sb_mem_head(data_of(w->blobs[i])) == SB_HEAD_LOST;
    if (lost && st == SB_OK)
        fail_setting(s, kind, nth, "no loss was reported");
    const int64_t sent = w->mirror.num_sent, all = s->bucket_bytes == SIZE_MAX ? 1
                                                   : s->bucket_bytes           ? 3
                                                                               : BLOBS;
    const bool is_over = is_on_blobs(s) && sb_comm_barrier(w->comm, NULL) == SB_OK;
    if (is_over && sent && sent != all)
        fail_setting(s, kind, nth, "the other ranks wait for the other blobs");
    if (is_over && s->call == STEP && st != SB_OK)
        assert_ok(next_step(w));
    assert_int_equal(w->mirror.flying > 0 && st == SB_OK, 0);
    return st != SB_OK && sb_context_device_status(w->rig.context) == SB_OK;
}

static bool fail_at(const struct setting *setting, int kind, int64_t nth) {
    const bool is_engine = kind > HANDLE;
    sb_error *const to = is_engine && nth % 2 == 0 ? NULL : &err;
    struct world w;
    world_open(&w, setting);
    const struct armed armed =
        fault_arm(&w.rig, kind < FAULTS ? (enum fault)kind : FAULT_ALLOC, kind < FAULTS ? nth : 0);
    fail_calloc(kind == HANDLE ? nth : 0);
    if (is_engine)
        arm_engine(&w.mirror, kind, nth, (int32_t)(nth + setting->state + setting->call));
    support_poison_error(&err);
    const sb_status st = make_call(&w, to);
    const bool calloc_failed = calloc_has_failed();
    const bool fired =
        is_engine ? engine_has_failed(&w.mirror) : fault_disarm(&armed) || calloc_failed;
    ignore(sb_context_synchronize(w.rig.context, NULL)); /* a mean is scaled by queued work */
    const bool may_retry = kind == UNSENT && setting->call == STEP; /* a step sends again */
    const bool is_failure = is_engine && fired && (st != SB_OK || !may_retry);
    if (is_failure ? check_engine(&w, kind, nth, st, to) : check_device(&w, kind, nth, st, fired)) {
        assert_ok(make_call(&w, &err));
        if (num_wrong(&w, false, true))
            fail_setting(setting, kind, nth, "wrong bytes after the retry");
    }
    sb_reducer_destroy(w.reducer);
    w.reducer = NULL;
    for (int i = 0; i < BLOBS; i++)
        check_use(&w, w.blobs[i]);
    world_close(&w);
    return fired;
}

static int64_t fail_each(const struct setting *setting) {
    int64_t steps = 0;
    for (int kind = FAULT_ALLOC; kind < KINDS; kind++)
        for (int64_t nth = 1; fail_at(setting, kind, nth); nth++)
            steps++;
    return steps;
}

TEST(calls_on_lists_survive_every_failure) {
    int64_t steps = 0;
    for (enum call call = ALL_REDUCE; call < STEP; call++)
        for (enum state at = NEVER; at < STATES; at++)
            for (int takes = 0; takes < 2; takes++)
                for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MEAN; op++) {
                    const struct setting setting = {
                        .call = call, .state = at, .takes_device = takes, .op = op};
                    if (op == SB_COMM_SUM || call == ALL_REDUCE)
                        steps += fail_each(&setting);
                }
    assert_true(steps > 300);
}

TEST(creation_and_reduction_of_values_survive_every_failure) {
    int64_t steps = 0;
    for (enum call call = CREATE; call < CALLS; call++) {
        const struct setting setting = {.call = call, .state = AT_CPU};
        steps += fail_each(&setting);
    }
    assert_true(steps > 15);
}

TEST(an_operation_of_a_simulated_rank_survives_a_failed_allocation) {
    sb_comm *comm = test_only_rank(NULL);
    fail_calloc(1);
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_comm_barrier(comm, &err));
    assert_ok(sb_comm_barrier(comm, &err));
}

TEST(steps_of_a_reducer_survive_every_failure) {
    static const size_t sizes[] = {0, 48, SIZE_MAX};
    int64_t steps = 0;
    for (enum state at = NEVER; at < STATES; at++)
        for (int how = 0; how < 4; how++)
            for (sb_comm_op op = SB_COMM_SUM; op <= SB_COMM_MEAN; op++)
                for (size_t b = 0; b < 3; b++) {
                    const struct setting setting = {.call = STEP,
                                                    .state = at,
                                                    .takes_device = how & 1,
                                                    .at_once = how & 2,
                                                    .op = op,
                                                    .bucket_bytes = sizes[b]};
                    if (!test_is_quick() || how != 2)
                        steps += fail_each(&setting);
                }
    assert_true(steps > 300);
}
