/* Every function of a blob, with the n-th allocation or the n-th operation of
   the device failing, for all n: shapes, handles, heads, bytes and outputs stay,
   the same call succeeds afterwards, nothing leaks. */
#include "blobs.h"
#include "faults.h"
#include "mem_calls.h"

#include "context/context.h"

#include <stdio.h>
#include <string.h>

#define COUNT 12
#define LARGE 30 /* outgrows COUNT */
#define BYTES (COUNT * sizeof(float))

enum op {
    RESHAPE,
    RESHAPE_LEGACY,
    RESHAPE_LIKE,
    SHRINK,
    GPU_SHAPE,
    DATA,
    DIFF,
    MUTABLE_DATA,
    MUTABLE_DIFF,
    DATA_AT,
    DIFF_AT,
    DATA_AT_LEGACY,
    DIFF_AT_LEGACY,
    SHARE_DATA,
    SHARE_DIFF,
    SET_DATA,
    SET_DIFF,
    DROP_DIFF,
    CLEAR_DATA,
    CLEAR_DIFF,
    ASUM_DATA,
    ASUM_DIFF,
    SUMSQ_DATA,
    SUMSQ_DIFF,
    SCALE_DATA,
    SCALE_DIFF,
    SCALE_DATA_ON,
    SCALE_DIFF_ON,
    UPDATE_ON,
    SET_CPU_DATA,
    SET_GPU_DATA,
    COPY_DATA,
    COPY_DIFF,
    COPY_RESHAPE,
    COPY_FROM_ELSEWHERE,
    COPY_TO_ELSEWHERE,
    UPDATE,
    FILL,
    POINTERS, /* POINTER_CALLS of data, then of diff */
    OPS = POINTERS + 2 * POINTER_CALLS
};

static const char *const op_names[POINTERS] = {"reshape",
                                               "reshape_legacy",
                                               "reshape_like",
                                               "shrink_to_fit",
                                               "gpu_shape",
                                               "data",
                                               "diff",
                                               "mutable_data",
                                               "mutable_diff",
                                               "data_at",
                                               "diff_at",
                                               "data_at_legacy",
                                               "diff_at_legacy",
                                               "share_data",
                                               "share_diff",
                                               "set_data",
                                               "set_diff",
                                               "drop_diff",
                                               "clear_data",
                                               "clear_diff",
                                               "asum_data",
                                               "asum_diff",
                                               "sumsq_data",
                                               "sumsq_diff",
                                               "scale_data",
                                               "scale_diff",
                                               "scale_data_on",
                                               "scale_diff_on",
                                               "update_on",
                                               "set_cpu_data",
                                               "set_gpu_data",
                                               "copy_from (data)",
                                               "copy_from (diff)",
                                               "copy_from (reshape)",
                                               "copy_from another context",
                                               "copy_from to another context",
                                               "update",
                                               "fill"};

static const struct call_kind *pointer_call(enum op op) {
    return op < POINTERS ? NULL : &call_kinds[(op - POINTERS) % POINTER_CALLS];
}

static bool is_of_diff(enum op op) {
    return op >= POINTERS + POINTER_CALLS;
}

static const char *op_name(enum op op) {
    static char name[40];
    if (op < POINTERS)
        return op_names[op];
    (void)snprintf(name, sizeof name, "%s of %s", pointer_call(op)->name,
                   is_of_diff(op) ? "diff" : "data");
    return name;
}

/* --- a small world --------------------------------------------------------------- */

enum { TARGET, SOURCE, SHARER, ELSEWHERE, BLOBS };

struct given {
    int32_t data_head, diff_head; /* of the target; the source has both the other way round */
    bool touched;                 /* false: no memory was ever asked for */
    bool shared;                  /* the sharer shares both memories of the target */
    int32_t schedule;
    uint32_t flags; /* of the contexts, SB_CONTEXT_* */
};

struct world {
    struct rig rig, other;
    sb_blob *blobs[BLOBS];
    struct lent host, device;
    sb_stream stream;
    unsigned char out[64]; /* whatever the call gives */
};

static sb_blob *make_blob(sb_context *context, int64_t count, int32_t data_head, int32_t diff_head,
                          double start) {
    float values[LARGE];
    sb_blob *blob = blob_of_count(context, SB_DTYPE_F32, count);
    size_t bytes = (size_t)count * sizeof(float);
    fill_values(SB_DTYPE_F32, count, start, 1, values);
    mem_place(data_of(blob), data_head, values, bytes);
    fill_values(SB_DTYPE_F32, count, -start, 2, values);
    mem_place(diff_of(blob), diff_head, values, bytes);
    return blob;
}

static bool wants_large_source(enum op op) {
    return op == RESHAPE_LIKE || op == COPY_RESHAPE;
}

static void world_open(struct world *w, const struct given *given, enum op op) {
    memset(w, 0, sizeof *w);
    rig_open_on(&w->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE | given->flags);
    rig_open_on(&w->other, "sim:0", SB_CONTEXT_NO_HOST_CACHE | given->flags);
    sb_context *context = w->rig.context;
    if (given->touched)
        w->blobs[TARGET] = make_blob(context, COUNT, given->data_head, given->diff_head, 1);
    else
        w->blobs[TARGET] = blob_of_count(context, SB_DTYPE_F32, COUNT);
    w->blobs[SOURCE] = make_blob(context, wants_large_source(op) ? LARGE : COUNT, given->diff_head,
                                 given->data_head, 100);
    w->blobs[ELSEWHERE] =
        make_blob(w->other.context, COUNT, given->diff_head, given->data_head, 500);
    w->blobs[SHARER] = blob_of_count(context, SB_DTYPE_F32, COUNT);
    if (given->shared) {
        assert_ok(sb_blob_share(w->blobs[SHARER], SB_DATA, w->blobs[TARGET], &err));
        assert_ok(sb_blob_share(w->blobs[SHARER], SB_DIFF, w->blobs[TARGET], &err));
    }
    if (op == SHRINK)
        assert_ok(sb_blob_reshape(w->blobs[TARGET], (int64_t[]){5}, 1, NULL, &err));
    w->host = lend_host(BYTES, 0x40);
    w->device = lend_device(context, BYTES, 0x41);
    assert_ok(sb_sim_stream_create(context, &w->stream, &err));
    assert_ok(sb_sim_set_schedule(context, given->schedule, 5, &err));
    assert_ok(sb_sim_set_schedule(w->other.context, given->schedule, 6, &err));
    memset(w->out, 0xEE, sizeof w->out);
}

static void end_loan(struct lent *lent) {
    if (lent->context)
        ignore(sb_sim_free(lent->context, lent->ptr, NULL));
    else
        lent_free(lent);
}

static void world_close(struct world *w) {
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(w->blobs[i]);
    ignore(sb_context_forget_stream(w->rig.context, w->stream, NULL));
    ignore(sb_sim_stream_destroy(w->rig.context, w->stream, NULL));
    end_loan(&w->host);
    end_loan(&w->device);
    rig_close(&w->rig);
    rig_close(&w->other);
}

/* Arithmetic in place is queued: here its failure is a failure of the call. */
static sb_status wait_for(const struct world *w, sb_status st, sb_error *err) {
    sb_context *context = w->rig.context;
    bool is_queued =
        sb__counter_read(&context->arithmetic_over) < sb__counter_read(&context->arithmetic_queued);
    return st == SB_OK && is_queued ? sb__own_wait(context, err) : st;
}

static sb_status act_on_elements(struct world *w, enum op op, sb_error *err) {
    sb_blob *t = w->blobs[TARGET];
    double *sum = (double *)(void *)w->out;
    switch (op) {
    case DATA_AT:
        return sb_blob_at(t, SB_DATA, (int64_t[]){3}, 1, w->out, err);
    case DIFF_AT:
        return sb_blob_at(t, SB_DIFF, (int64_t[]){3}, 1, w->out, err);
    case DATA_AT_LEGACY:
        return sb_blob_data_at_legacy(t, 3, 0, 0, 0, w->out, err);
    case DIFF_AT_LEGACY:
        return sb_blob_diff_at_legacy(t, 3, 0, 0, 0, w->out, err);
    case CLEAR_DATA:
        return sb_blob_clear(t, SB_DATA, err);
    case CLEAR_DIFF:
        return sb_blob_clear(t, SB_DIFF, err);
    case ASUM_DATA:
        return sb_blob_asum(t, SB_DATA, sum, err);
    case ASUM_DIFF:
        return sb_blob_asum(t, SB_DIFF, sum, err);
    case SUMSQ_DATA:
        return sb_blob_sumsq(t, SB_DATA, sum, err);
    case SUMSQ_DIFF:
        return sb_blob_sumsq(t, SB_DIFF, sum, err);
    case SCALE_DATA:
        return wait_for(w, sb_blob_scale(t, SB_DATA, 3, err), err);
    case SCALE_DIFF:
        return wait_for(w, sb_blob_scale(t, SB_DIFF, 3, err), err);
    case SCALE_DATA_ON:
        return sb_blob_scale_on(t, SB_DATA, 3, NULL, err);
    case SCALE_DIFF_ON:
        return sb_blob_scale_on(t, SB_DIFF, 3, NULL, err);
    case UPDATE_ON:
        return sb_blob_update_on(t, NULL, err);
    default:
        return wait_for(w, sb_blob_update(t, err), err);
    }
}

static sb_status act(struct world *w, enum op op, sb_error *err) {
    sb_blob *t = w->blobs[TARGET], *s = w->blobs[SOURCE], *e = w->blobs[ELSEWHERE];
    uint32_t *reallocated = (uint32_t *)(void *)w->out;
    void **out = (void **)(void *)w->out;
    if (op >= POINTERS)
        return blob_call(t, is_of_diff(op), (enum call)((op - POINTERS) % POINTER_CALLS), w->stream,
                         out, err);
    switch (op) {
    case DATA:
        return sb_blob_mem(t, SB_DATA, (const sb_mem **)out, err);
    case DIFF:
        return sb_blob_mem(t, SB_DIFF, (const sb_mem **)out, err);
    case MUTABLE_DATA:
        return sb_blob_mutable_mem(t, SB_DATA, (sb_mem **)out, err);
    case MUTABLE_DIFF:
        return sb_blob_mutable_mem(t, SB_DIFF, (sb_mem **)out, err);
    case RESHAPE:
        return sb_blob_reshape(t, (int64_t[]){5, 6}, 2, reallocated, err);
    case RESHAPE_LEGACY:
        return sb_blob_reshape_legacy(t, 1, 5, 2, 3, reallocated, err);
    case RESHAPE_LIKE:
        return sb_blob_reshape_like(t, s, reallocated, err);
    case SHRINK:
        return sb_blob_shrink_to_fit(t, reallocated, err);
    case GPU_SHAPE:
        return sb_blob_gpu_shape(t, (const int64_t **)(void *)w->out, err);
    case SHARE_DATA:
        return sb_blob_share(t, SB_DATA, s, err);
    case SHARE_DIFF:
        return sb_blob_share(t, SB_DIFF, s, err);
    case SET_DATA:
        return sb_blob_set_mem(t, SB_DATA, data_of(s), err);
    case SET_DIFF:
        return sb_blob_set_mem(t, SB_DIFF, data_of(s), err);
    case DROP_DIFF:
        sb_blob_drop(t, SB_DIFF);
        return SB_OK;
    case SET_CPU_DATA:
        return sb_blob_set_cpu(t, SB_DATA, w->host.ptr, BYTES, 0, lent_deleter, &w->host, err);
    case SET_GPU_DATA:
        return sb_blob_set_gpu(t, SB_DATA, w->device.ptr, BYTES, 0, lent_deleter, &w->device, err);
    case COPY_DATA:
        return sb_blob_copy_from(t, SB_DATA, s, 0, err);
    case COPY_DIFF:
        return sb_blob_copy_from(t, SB_DIFF, s, 0, err);
    case COPY_RESHAPE:
        return sb_blob_copy_from(t, SB_DATA, s, SB_COPY_RESHAPE, err);
    case COPY_FROM_ELSEWHERE:
        return sb_blob_copy_from(t, SB_DATA, e, 0, err);
    case COPY_TO_ELSEWHERE:
        return sb_blob_copy_from(e, SB_DATA, t, 0, err);
    case FILL: {
        const sb_filler filler = {.struct_size = sizeof filler, .value = 3, .sparse = -1};
        return sb_blob_fill(t, &filler, 1, err);
    }
    default:
        return act_on_elements(w, op, err);
    }
}

/* --- what can be seen ---------------------------------------------------------------- */

struct seen_mem {
    int32_t head;
    size_t size;
    float values[LARGE];
};

struct seen {
    struct {
        int32_t num_axes;
        int64_t count, dims[4];
        struct seen_mem data, diff;
    } blobs[BLOBS];
};

/* Outputs in `unspecified` are of memories whose bytes nobody promises. */
static void see_mem(struct seen_mem *out, const sb_mem *mem, bool bytes) {
    out->head = sb_mem_head(mem);
    out->size = sb_mem_size(mem);
    if (bytes && out->head != SB_HEAD_LOST)
        mem_look(mem, out->values, out->size);
}

static void see_shapes(struct seen *seen, const struct world *w) {
    memset(seen, 0, sizeof *seen);
    for (int i = 0; i < BLOBS; i++) {
        seen->blobs[i].num_axes = sb_blob_num_axes(w->blobs[i]);
        seen->blobs[i].count = sb_blob_count(w->blobs[i]);
        memcpy(seen->blobs[i].dims, sb_blob_shape(w->blobs[i]),
               (size_t)sb_blob_num_axes(w->blobs[i]) * sizeof(int64_t));
    }
}

static bool has_unspecified_bytes(enum op op) {
    return op >= POINTERS && pointer_call(op)->purpose == OVERWRITE;
}

static void see(struct seen *seen, const struct world *w, bool target_bytes) {
    see_shapes(seen, w);
    for (int i = 0; i < BLOBS; i++) {
        bool bytes = target_bytes || i == SOURCE || i == ELSEWHERE;
        see_mem(&seen->blobs[i].data, data_of(w->blobs[i]), bytes);
        see_mem(&seen->blobs[i].diff, diff_of(w->blobs[i]), bytes);
    }
}

/* --- a trial ------------------------------------------------------------------------------ */

struct trial {
    struct given given;
    enum op op;
    enum fault fault;
    int64_t nth;
    bool in_other; /* the fault is in the other context */
};

/* In place, and waited for by others. */
static bool is_queued(enum op op) {
    return (op >= SCALE_DATA && op <= UPDATE_ON) || op == UPDATE;
}

static void blame(const struct trial *t, const char *what) {
    fail_with("data %s, diff %s%s%s, schedule %d: %s with %s %d failing%s: %s",
              head_name(t->given.data_head), head_name(t->given.diff_head),
              t->given.touched ? "" : ", untouched", t->given.shared ? ", shared" : "",
              t->given.schedule, op_name(t->op), fault_name(t->fault), (int)t->nth,
              t->in_other ? " elsewhere" : "", what);
}

static bool on_device(int32_t head) {
    return head == SB_HEAD_AT_GPU || head == SB_HEAD_SYNCED;
}

/* The memory whose current bytes on the device the call overwrites; NULL if none. */
static sb_mem *spoilt_by(const struct trial *t, const struct world *w) {
    bool data = on_device(t->given.data_head), diff = on_device(t->given.diff_head);
    switch (t->op) {
    case CLEAR_DATA:
    case SCALE_DATA:
    case SCALE_DATA_ON:
    case UPDATE_ON:
    case UPDATE:
        return data ? data_of(w->blobs[TARGET]) : NULL;
    case COPY_DATA: /* the source's data has the diff's head */
        return data && (diff || t->given.diff_head == SB_HEAD_UNINITIALIZED)
                   ? data_of(w->blobs[TARGET])
                   : NULL;
    case COPY_FROM_ELSEWHERE: /* clears, if at all */
        return data && t->given.diff_head == SB_HEAD_UNINITIALIZED ? data_of(w->blobs[TARGET])
                                                                   : NULL;
    case COPY_TO_ELSEWHERE:
        return diff && t->given.data_head == SB_HEAD_UNINITIALIZED ? data_of(w->blobs[ELSEWHERE])
                                                                   : NULL;
    case COPY_DIFF:
        return diff && (data || t->given.data_head == SB_HEAD_UNINITIALIZED)
                   ? diff_of(w->blobs[TARGET])
                   : NULL;
    case CLEAR_DIFF:
    case SCALE_DIFF:
    case SCALE_DIFF_ON:
        return diff ? diff_of(w->blobs[TARGET]) : NULL;
    default:
        return NULL;
    }
}

static bool same_seen(const struct trial *t, const struct seen *a, const struct seen *b) {
    for (int i = 0; i < BLOBS; i++) {
        if (memcmp(&a->blobs[i], &b->blobs[i], sizeof a->blobs[i]) == 0)
            continue;
        print_message("blob %d differs: axes %d %d, count %d %d, heads %s %s, %s %s\n", i,
                      a->blobs[i].num_axes, b->blobs[i].num_axes, (int)a->blobs[i].count,
                      (int)b->blobs[i].count, head_name(a->blobs[i].data.head),
                      head_name(b->blobs[i].data.head), head_name(a->blobs[i].diff.head),
                      head_name(b->blobs[i].diff.head));
        return false;
    }
    (void)t;
    return true;
}

/* After a failed call, on a device that lives. */
static void check_unchanged(const struct trial *t, const struct world *w,
                            const struct seen *before) {
    struct seen now;
    see(&now, w, true);
    demand(t, same_seen(t, before, &now));
}

static bool host_is_current(int32_t head) {
    return head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED;
}

static void check_lost_mem(const struct trial *t, const sb_mem *mem, const struct seen_mem *before,
                           bool may_be_spoilt) {
    int32_t head = sb_mem_head(mem);
    int32_t spoilt = host_is_current(before->head) ? SB_HEAD_AT_CPU : SB_HEAD_LOST;
    bool went_down = may_be_spoilt && is_queued(t->op) && head == SB_HEAD_AT_GPU;
    bool made_current = /* an operand, for work that then failed */
        (before->head == SB_HEAD_AT_CPU && head == SB_HEAD_SYNCED) ||
        (before->head == SB_HEAD_UNINITIALIZED && head == SB_HEAD_AT_GPU);
    demand(t, head == before->head || went_down ||
                  (may_be_spoilt ? head == spoilt
                                 : (t->op == UPDATE || t->op == UPDATE_ON) && made_current));
    demand(t, sb_mem_size(mem) == before->size);
    if (host_is_current(head)) {
        const void *ptr = NULL;
        demand(t, sb_mem_cpu(mem, &ptr, NULL) == SB_OK);
        demand(t, memcmp(ptr, before->values, before->size) == 0);
    }
}

/* After a failed call that took the device with it. */
static void check_lost(const struct trial *t, const struct world *w, const struct seen *before,
                       const sb_mem *spoilt) {
    struct seen now, expected = *before;
    see_shapes(&now, w);
    for (int i = 0; i < BLOBS; i++) {
        memset(&expected.blobs[i].data, 0, sizeof expected.blobs[i].data);
        memset(&expected.blobs[i].diff, 0, sizeof expected.blobs[i].diff);
    }
    demand(t, same_seen(t, &expected, &now));
    for (int i = 0; i < BLOBS; i++) {
        const sb_mem *data = data_of(w->blobs[i]), *diff = diff_of(w->blobs[i]);
        check_lost_mem(t, data, &before->blobs[i].data, data == spoilt);
        check_lost_mem(t, diff, &before->blobs[i].diff, diff == spoilt);
    }
    if (spoilt && t->fault != FAULT_STICKY) { /* it began, or it would be a mere failure */
        int32_t head = sb_mem_head(spoilt);
        demand(t, head == SB_HEAD_LOST || head == SB_HEAD_AT_CPU ||
                      (is_queued(t->op) && head == SB_HEAD_AT_GPU));
    }
}

static void check_failed(const struct trial *t, struct world *w, sb_status status,
                         const sb_error *err, const struct seen *before, const struct seen *after) {
    sb_mem *spoilt = t->given.touched ? spoilt_by(t, w) : NULL;
    support_check_status(status, status, err, op_name(t->op), __FILE__, __LINE__);
    if (!fault_explains(t->fault, status, spoilt != NULL))
        blame(t, sb_status_name(status));
    demand(t, bytes_are(w->out, sizeof w->out, 0xEE));
    demand(t, w->host.deleted + w->device.deleted == 0);
    if (status == SB_ERR_DEVICE_LOST) {
        if (t->given.touched)
            check_lost(t, w, before, spoilt);
        return;
    }
    if (t->given.touched)
        check_unchanged(t, w, before);
    struct seen now;
    demand(t, act(w, t->op, NULL) == SB_OK); /* the same call succeeds now */
    see(&now, w, !has_unspecified_bytes(t->op));
    demand(t, same_seen(t, after, &now));
}

static bool is_lost(struct world *w) {
    return sb_context_device_status(w->rig.context) != SB_OK ||
           sb_context_device_status(w->other.context) != SB_OK;
}

static bool run_trial(const struct trial *t, const struct seen *after) {
    struct world w;
    struct seen before, now;
    sb_mem *handles[2] = {NULL, NULL};
    world_open(&w, &t->given, t->op);
    if (t->given.touched) {
        see(&before, &w, true);
        handles[0] = data_of(w.blobs[TARGET]);
        handles[1] = diff_of(w.blobs[TARGET]);
    }
    struct armed armed = fault_arm(t->in_other ? &w.other : &w.rig, t->fault, t->nth);
    support_poison_error(&err);
    sb_status status = act(&w, t->op, &err);
    bool fired = fault_disarm(&armed);
    if (!fired && status != SB_OK)
        blame(t, err.message);
    if (status == SB_OK && !is_lost(&w)) {
        see(&now, &w, !has_unspecified_bytes(t->op));
        demand(t, same_seen(t, after, &now));
    } else if (status != SB_OK) {
        if (t->given.touched) {
            demand(t, data_of(w.blobs[TARGET]) == handles[0]);
            demand(t, diff_of(w.blobs[TARGET]) == handles[1]);
        }
        check_failed(t, &w, status, &err, &before, after);
    }
    world_close(&w);
    return fired;
}

/* False when the call is an error anyway. */
static bool reference(const struct given *given, enum op op, struct seen *after) {
    struct world w;
    world_open(&w, given, op);
    bool good = act(&w, op, NULL) == SB_OK;
    if (good)
        see(after, &w, !has_unspecified_bytes(op));
    world_close(&w);
    return good;
}

static void try_every_n(const struct given *given, enum op op, enum fault fault) {
    struct seen after;
    bool on_stream = op >= SCALE_DATA_ON && op <= UPDATE_ON;
    if ((on_stream || (op >= POINTERS && pointer_call(op)->queued)) && fault == FAULT_LATER)
        return; /* told by whoever waits, not by the call: test_mem_faults.c */
    if (!reference(given, op, &after)) {
        assert_true(op == UPDATE || op == UPDATE_ON); /* of data that was never written */
        return;
    }
    bool crosses = op == COPY_FROM_ELSEWHERE || op == COPY_TO_ELSEWHERE;
    for (int in_other = 0; in_other <= crosses; in_other++) {
        bool fired = true;
        for (int64_t n = 1; fired; n++) {
            struct trial t = {*given, op, fault, n, in_other};
            fired = run_trial(&t, &after);
            if (n > 200)
                blame(&t, "the loop does not end");
        }
    }
}

static void try_all(enum fault fault, int32_t schedule, uint32_t flags) {
    for (enum op op = 0; op < OPS; op++) {
        struct given untouched = {
            SB_HEAD_UNINITIALIZED, SB_HEAD_UNINITIALIZED, false, false, schedule, flags};
        try_every_n(&untouched, op, fault);
        for (int32_t data = 0; data <= SB_HEAD_SYNCED; data++)
            for (int32_t diff = 0; diff <= SB_HEAD_SYNCED; diff++)
                for (int shared = 0; shared < 2; shared++) {
                    struct given given = {data, diff, true, shared, schedule, flags};
                    if (!test_is_quick() || shared == (data + diff + (int32_t)op) % 4)
                        try_every_n(&given, op, fault);
                }
    }
}

TEST(failing_allocations) {
    try_all(FAULT_ALLOC, SB_SIM_EAGER, 0);
    try_all(FAULT_ALLOC, SB_SIM_EAGER, SB_CONTEXT_NO_PINNED);
}

TEST(operations_that_fail_at_once) {
    try_all(FAULT_NOW, SB_SIM_EAGER, 0);
    try_all(FAULT_NOW, SB_SIM_LAZY, 0);
}

TEST(operations_that_fail_later) {
    try_all(FAULT_LATER, SB_SIM_EAGER, 0);
    try_all(FAULT_LATER, SB_SIM_LAZY, 0);
}

TEST(a_device_that_dies) {
    try_all(FAULT_STICKY, SB_SIM_EAGER, 0);
    try_all(FAULT_STICKY, SB_SIM_LAZY, 0);
}

/* --- a copy that was queued before, and fails in its turn ------------------------------------- */

/* The target's data and diff are on their way to the device, the source's data too; the n-th of
   the three copies fails. Whoever meets it says so and has changed nothing. */
static bool run_behind_failing_pushes(enum op op, int64_t nth) {
    struct given given = {SB_HEAD_AT_CPU, SB_HEAD_AT_CPU, true, false, SB_SIM_LAZY, 0};
    struct world w;
    struct seen after;
    sb_stream stream;
    sb_error err;
    assert_true(reference(&given, op, &after));
    world_open(&w, &given, op);
    sb_context *context = w.rig.context;
    assert_ok(sb_sim_stream_create(context, &stream, &err));
    device_fail(context, SB_SIM_UPLOAD, nth, SB_SIM_FAIL_LATER);
    assert_ok(sb_mem_async_gpu_push(data_of(w.blobs[TARGET]), stream, &err));
    assert_ok(sb_mem_async_gpu_push(diff_of(w.blobs[TARGET]), stream, &err));
    assert_ok(sb_mem_async_gpu_push(data_of(w.blobs[SOURCE]), stream, &err));
    support_poison_error(&err);
    sb_status status = act(&w, op, &err);
    support_check_status(status, status, &err, op_name(op), __FILE__, __LINE__);
    if (status != SB_OK) {
        assert_int_equal(status, SB_ERR_DEVICE_FAILURE);
        assert_true(bytes_are(w.out, sizeof w.out, 0xEE));
        assert_ok(act(&w, op, &err)); /* it was told once */
    }
    assert_ok(sb_context_device_status(context));
    for (int i = 0; i < BLOBS; i++) /* tell the others who had none to tell */
        for (int tries = 0; tries < 2; tries++) {
            ignore(sb_mem_synchronize(data_of(w.blobs[i]), NULL));
            ignore(sb_mem_synchronize(diff_of(w.blobs[i]), NULL));
        }
    struct seen now;
    see(&now, &w, !has_unspecified_bytes(op));
    for (int i = 0; i < BLOBS; i++) {
        assert_memory_equal(now.blobs[i].data.values, after.blobs[i].data.values, BYTES);
        assert_memory_equal(now.blobs[i].diff.values, after.blobs[i].diff.values, BYTES);
    }
    ignore(sb_context_forget_stream(context, stream, NULL));
    assert_ok(sb_sim_stream_destroy(context, stream, &err));
    world_close(&w);
    return status != SB_OK;
}

TEST(a_failed_push_is_told_by_the_call_that_meets_it) {
    int told = 0;
    for (enum op op = 0; op < OPS; op++)
        for (int64_t nth = 1; nth <= 3; nth++)
            told += run_behind_failing_pushes(op, nth);
    print_message("  %d of %d calls met it\n", told, 3 * OPS);
    assert_true(told > 20);
}

/* --- lent memory that goes back -------------------------------------------------------------- */

TEST_ON(rig, a_failed_push_is_told_before_lent_memory_goes_back) {
    void *user = NULL;
    struct lent lent = lend_host(BYTES, 0x40);
    sb_blob *blob = blob_of_count(f->context, SB_DTYPE_F32, COUNT);
    sb_stream stream = rig_stream(f);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, BYTES, 0, lent_deleter, &lent, &err));
    device_fail(f->context, SB_SIM_UPLOAD, 1, SB_SIM_FAIL_LATER);
    assert_ok(sb_mem_async_gpu_push(data_of(blob), stream, &err));
    assert_status(SB_ERR_DEVICE_FAILURE,
                  sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_null(user);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_CPU);
    assert_ok(sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_ptr_equal(user, &lent);
    sb_blob_destroy(blob);
    assert_int_equal(lent.deleted, 0);
    lent_free(&lent);
    rig_end_stream(f, stream);
}

/* Nobody can tell whether the device has read them: they are not the lender's before it says so. */
TEST_ON(rig, what_a_lost_device_may_still_read_does_not_go_back) {
    void *user = NULL;
    struct lent lent = lend_host(BYTES, 0x40);
    sb_blob *blob = blob_of_count(f->context, SB_DTYPE_F32, COUNT);
    sb_stream stream = rig_stream(f);
    rig_schedule(f, SB_SIM_LAZY, 1);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, BYTES, 0, lent_deleter, &lent, &err));
    assert_ok(sb_mem_async_gpu_push(data_of(blob), stream, &err));
    device_fail(f->context, SB_SIM_EVENT_WAIT, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST,
                  sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_null(user);
    assert_int_equal(lent.deleted, 0);
    sb_blob_destroy(blob);
    ignore(sb_context_forget_stream(f->context, stream, NULL));
    ignore(sb_sim_stream_destroy(f->context, stream, NULL));
    sb_context_trim(f->context);
    assert_int_equal(lent.deleted, 1);
    lent_free(&lent);
}

/* --- making a blob ------------------------------------------------------------------------- */

static sb_status make(int way, sb_context *context, sb_blob **out, sb_error *err) {
    switch (way) {
    case 0:
        return sb_blob_create(context, SB_DTYPE_F32, out, err);
    case 1:
        return sb_blob_create_shaped(context, SB_DTYPE_F64, (int64_t[]){2, 3}, 2, out, err);
    default:
        return sb_blob_create_legacy(context, SB_DTYPE_I32, 2, 3, 4, 5, out, err);
    }
}

TEST_ON(rig, creation_under_failing_allocations) {
    for (int way = 0; way < 3; way++)
        for (int64_t n = 1;; n++) {
            sb_blob *blob = NULL;
            struct armed armed = fault_arm(f, FAULT_ALLOC, n);
            support_poison_error(&err);
            sb_status status = make(way, f->context, &blob, &err);
            bool fired = fault_disarm(&armed);
            support_check_status(fired ? SB_ERR_OUT_OF_MEMORY : SB_OK, status, &err, "creation",
                                 __FILE__, __LINE__);
            assert_int_equal(blob == NULL, fired);
            sb_blob_destroy(blob);
            if (!fired)
                break;
        }
}
