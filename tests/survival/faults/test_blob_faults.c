/* Calls every function of blobs, tensors and contexts while the n-th allocation or the n-th device
   operation fails, for every n. A failed call must not change shapes, handles, heads, bytes or
   outputs, nor destroy the tensor that it imports. The same call must then succeed without a
   leak. */
#include "blobs.h"
#include "faults.h"
#include "mem_calls.h"

#include "context/context.h"

#define COUNT 6
#define LARGE 30 /* more than COUNT */
#define BYTES (COUNT * sizeof(float))

/* --- the objects of a trial ------------------------------------------------------ */

enum { TARGET, SOURCE, SHARER, ELSEWHERE, BLOBS };

struct given {
    int32_t heads[2]; /* of the target's data and diff; the source's heads are swapped */
    bool touched;     /* false: the target was never written or read */
    bool shared;      /* the sharer shares both memories of the target */
    int32_t schedule;
    uint32_t flags; /* of the contexts, SB_CONTEXT_* */
};

/* One call: a row of the table below, a part of the blob, and a variant of the call. */
struct op {
    const struct row *row;
    sb_part part;
    int variant;
};

struct world {
    struct rig rig, other;
    sb_blob *blobs[BLOBS];
    struct lent host, device;
    sb_stream stream;
    struct tensor tensor;            /* simulates another program's tensor, on the side `variant` */
    sb_dl_managed_versioned *passed; /* exported from the source's data, on the side `variant` */
    sb_part part;
    int variant;
    union { /* filled with 0xEE until a call stores its output */
        unsigned char bytes[64];
        void *ptr;
        const int64_t *shape;
        const sb_mem *mem;
        sb_mem *mutable_mem;
        sb_blob *blob;
        sb_context *context;
        sb_dl_managed_versioned *tensor;
        sb_dl_managed *legacy;
        sb_stream stream;
        double sum;
        uint32_t reallocated;
    } out;
};

/* --- the calls ----------------------------------------------------------------------- */

enum {
    ON_STREAM = 1,     /* only a later wait reports a failure of the queued work */
    WITH_DIFF = 2,     /* the diff is an operand; the call fails if data has no values */
    LARGE_SOURCE = 4,  /* the source has more elements than the target's memory can hold */
    SHRUNK = 8,        /* the target's memory is larger than its elements need */
    CROSSES = 16,      /* also uses a second context */
    TAKES_TENSOR = 32, /* imports a tensor of another program */
    WRITES = 64,       /* writes current device bytes in place: a failure may lose the device */
    BOTH = 128,        /* the call runs for data and for diff */
    POINTERS = 256,    /* the call runs in each variant of the POINTER_CALLS */
    SIDES = 512,       /* the call runs in the variants SB_SIDE_CPU and SB_SIDE_GPU */
    /* what a successful call makes */
    MAKES_TENSOR = 1024,
    MAKES_LEGACY = 2048,
    MAKES_BLOB = 4096,
    MAKES_CONTEXT = 8192,
};

static struct row {
    const char *name;
    sb_status (*run)(struct world *w, sb_error *err);
    uint32_t flags;
} rows[64];
static int num_rows;

/* Defines a function that makes a call, and adds the function to the rows. */
#define CALL(name, flags, expression)                                                              \
    static sb_status name(struct world *w, sb_error *err) {                                        \
        sb_blob *const blob = w->blobs[TARGET], *const source = w->blobs[SOURCE];                  \
        (void)blob, (void)source;                                                                  \
        return expression;                                                                         \
    }                                                                                              \
    ROW(name, flags)
#define ROW(name, flags)                                                                           \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        rows[num_rows++] = (struct row){#name, name, flags};                                       \
    }

/* Waits for queued in-place arithmetic, so that the call fails if that work fails. */
static sb_status wait_for(const struct world *w, sb_status st, sb_error *err) {
    sb_context *context = w->rig.context;
    bool is_queued =
        sb__counter_read(&context->arithmetic_over) < sb__counter_read(&context->arithmetic_queued);
    return st == SB_OK && is_queued ? sb__own_wait(context, err) : st;
}

CALL(pointer, BOTH | POINTERS,
     blob_call(blob, w->part, (enum call)w->variant, w->stream, &w->out.ptr, err))
CALL(mem, BOTH, sb_blob_mem(blob, w->part, &w->out.mem, err))
CALL(mutable_mem, BOTH, sb_blob_mutable_mem(blob, w->part, &w->out.mutable_mem, err))
CALL(reshape, 0, sb_blob_reshape(blob, (int64_t[]){5, 6}, 2, &w->out.reallocated, err))
CALL(reshape_legacy, 0, sb_blob_reshape_legacy(blob, 1, 5, 2, 3, &w->out.reallocated, err))
CALL(reshape_like, LARGE_SOURCE, sb_blob_reshape_like(blob, source, &w->out.reallocated, err))
CALL(shrink, SHRUNK, sb_blob_shrink_to_fit(blob, &w->out.reallocated, err))
CALL(gpu_shape, 0, sb_blob_gpu_shape(blob, &w->out.shape, err))
CALL(at, BOTH, sb_blob_at(blob, w->part, (int64_t[]){3}, 1, w->out.bytes, err))
CALL(data_at_legacy, 0, sb_blob_data_at_legacy(blob, 3, 0, 0, 0, w->out.bytes, err))
CALL(diff_at_legacy, 0, sb_blob_diff_at_legacy(blob, 3, 0, 0, 0, w->out.bytes, err))
CALL(share, BOTH, sb_blob_share(blob, w->part, source, err))
CALL(set_mem, BOTH, sb_blob_set_mem(blob, w->part, data_of(source), err))
CALL(clear, BOTH | WRITES, sb_blob_clear(blob, w->part, err))
CALL(asum, BOTH, sb_blob_asum(blob, w->part, &w->out.sum, err))
CALL(sumsq, BOTH, sb_blob_sumsq(blob, w->part, &w->out.sum, err))
CALL(scale, BOTH | WRITES, wait_for(w, sb_blob_scale(blob, w->part, 3, err), err))
CALL(scale_on, BOTH | ON_STREAM | WRITES, sb_blob_scale_on(blob, w->part, 3, NULL, err))
CALL(update, WITH_DIFF | WRITES, wait_for(w, sb_blob_update(blob, err), err))
CALL(update_on, ON_STREAM | WITH_DIFF | WRITES, sb_blob_update_on(blob, NULL, err))
CALL(set_cpu, 0, sb_blob_set_cpu(blob, SB_DATA, w->host.ptr, BYTES, 0, lent_deleter, &w->host, err))
CALL(set_gpu, 0,
     sb_blob_set_gpu(blob, SB_DATA, w->device.ptr, BYTES, 0, lent_deleter, &w->device, err))
CALL(copy, BOTH | WRITES, sb_blob_copy_from(blob, w->part, source, 0, err))
CALL(copy_reshape, LARGE_SOURCE, sb_blob_copy_from(blob, SB_DATA, source, SB_COPY_RESHAPE, err))
CALL(copy_from_elsewhere, CROSSES | WRITES,
     sb_blob_copy_from(blob, SB_DATA, w->blobs[ELSEWHERE], 0, err))
CALL(copy_to_elsewhere, CROSSES | WRITES,
     sb_blob_copy_from(w->blobs[ELSEWHERE], SB_DATA, blob, 0, err))
CALL(to_dlpack, BOTH | SIDES | MAKES_TENSOR,
     sb_blob_to_dlpack(blob, w->part, w->variant, &w->out.tensor, err))
CALL(to_mutable_dlpack, BOTH | SIDES | MAKES_TENSOR,
     sb_blob_to_mutable_dlpack(blob, w->part, w->variant, &w->out.tensor, err))
CALL(to_legacy_dlpack, BOTH | SIDES | MAKES_LEGACY,
     sb_blob_to_legacy_dlpack(blob, w->part, w->variant, &w->out.legacy, err))
CALL(from_dlpack, SIDES | TAKES_TENSOR,
     sb_blob_from_dlpack(blob, SB_DIFF, &w->tensor.versioned, 0, err))
CALL(from_legacy_dlpack, SIDES | TAKES_TENSOR,
     sb_blob_from_legacy_dlpack(blob, SB_DIFF, &w->tensor.legacy, 0, err))
CALL(create_from_dlpack, SIDES | TAKES_TENSOR | MAKES_BLOB,
     sb_blob_create_from_dlpack(w->rig.context, &w->tensor.versioned, &w->out.blob, err))
CALL(create_from_legacy_dlpack, SIDES | TAKES_TENSOR | MAKES_BLOB,
     sb_blob_create_from_legacy_dlpack(w->rig.context, &w->tensor.legacy, &w->out.blob, err))
CALL(create, MAKES_BLOB, sb_blob_create(w->rig.context, SB_DTYPE_F32, &w->out.blob, err))
CALL(create_shaped, MAKES_BLOB,
     sb_blob_create_shaped(w->rig.context, SB_DTYPE_F64, (int64_t[]){2, 3}, 2, &w->out.blob, err))
CALL(create_legacy, MAKES_BLOB,
     sb_blob_create_legacy(w->rig.context, SB_DTYPE_I32, 2, 3, 4, 5, &w->out.blob, err))
CALL(create_context, MAKES_CONTEXT,
     sb_context_create(&CONTEXT_OPTIONS(.device = "sim:0",
                                        .allocator = counting_allocator_table(&w->rig.counting)),
                       &w->out.context, err))
CALL(synchronize, 0, sb_context_synchronize(w->rig.context, err))
CALL(forget_stream, 0, sb_context_forget_stream(w->rig.context, w->stream, err))
CALL(stream, 0, sb_context_stream(w->rig.context, &w->out.stream, err))
CALL(prepare, 0, sb_context_prepare_arithmetic(w->rig.context, err))
CALL(stats, 0, sb_context_stats(w->rig.context, &(sb_stats)SB_STATS_INIT, err))
CALL(drop_diff, 0, (sb_blob_drop(blob, SB_DIFF), SB_OK))
CALL(fill, 0,
     sb_blob_fill(blob, &(sb_filler){.struct_size = sizeof(sb_filler), .value = 3, .sparse = -1}, 1,
                  err))

static sb_status pass_on(struct world *w, sb_error *err) {
    sb_status st = sb_blob_from_dlpack(w->blobs[TARGET], SB_DIFF, w->passed, 0, err);
    if (st == SB_OK)
        w->passed = NULL;
    return st;
}
ROW(pass_on, SIDES)

static bool is(const struct op *op, uint32_t flag) {
    return op->row->flags & flag;
}

static const struct call_kind *pointer_call(const struct op *op) {
    return op->row->run == pointer ? &call_kinds[op->variant] : NULL;
}

static bool has_unspecified_bytes(const struct op *op) {
    const struct call_kind *kind = pointer_call(op);
    return kind && kind->purpose == OVERWRITE;
}

/* --- opening and closing ------------------------------------------------------------- */

static sb_blob *make_blob(sb_context *context, int64_t count, int32_t data_head, int32_t diff_head,
                          double start) {
    float values[LARGE];
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, count);
    size_t bytes = (size_t)count * sizeof(float);
    fill_values(SB_DTYPE_F32, count, start, 1, values);
    mem_place(data_of(blob), data_head, values, bytes);
    fill_values(SB_DTYPE_F32, count, -start, 2, values);
    mem_place(diff_of(blob), diff_head, values, bytes);
    return blob;
}

static void make_tensors(struct world *w) {
    if (w->variant == SB_SIDE_GPU)
        tensor_make_on(&w->tensor, w->rig.context, SB_DL_DEVICE_EXTENSION, 0x17);
    else
        tensor_make(&w->tensor);
    sb_dl_tensor *tensor = &w->tensor.versioned.dl_tensor;
    tensor->ndim = 1;
    tensor->shape[0] = COUNT;
    tensor->strides[0] = 1;
    tensor_match(&w->tensor);
    assert_ok(sb_blob_to_dlpack(w->blobs[SOURCE], SB_DATA, w->variant, &w->passed, &err));
}

static void world_open(struct world *w, const struct given *given, const struct op *op) {
    memset(w, 0, sizeof *w);
    w->part = op->part;
    w->variant = op->variant;
    rig_open_on(&w->rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE | given->flags);
    rig_open_on(&w->other, "sim:0", SB_CONTEXT_NO_HOST_CACHE | given->flags);
    sb_context *context = w->rig.context;
    const int32_t data = given->heads[SB_DATA], diff = given->heads[SB_DIFF];
    w->blobs[TARGET] = given->touched ? make_blob(context, COUNT, data, diff, 1)
                                      : test_vector(context, SB_DTYPE_F32, COUNT);
    w->blobs[SOURCE] = make_blob(context, is(op, LARGE_SOURCE) ? LARGE : COUNT, diff, data, 100);
    w->blobs[ELSEWHERE] = make_blob(w->other.context, COUNT, diff, data, 500);
    w->blobs[SHARER] = test_vector(context, SB_DTYPE_F32, COUNT);
    if (given->shared) {
        assert_ok(sb_blob_share(w->blobs[SHARER], SB_DATA, w->blobs[TARGET], &err));
        assert_ok(sb_blob_share(w->blobs[SHARER], SB_DIFF, w->blobs[TARGET], &err));
    }
    if (is(op, SHRUNK))
        assert_ok(sb_blob_reshape(w->blobs[TARGET], (int64_t[]){5}, 1, NULL, &err));
    w->host = lend_host(BYTES, 0x40);
    w->device = lend_device(context, BYTES, 0x41);
    if (is(op, TAKES_TENSOR) || op->row->run == pass_on)
        make_tensors(w);
    w->stream = rig_stream(&w->rig);
    rig_schedule(&w->rig, given->schedule, 5);
    rig_schedule(&w->other, given->schedule, 6);
    memset(&w->out, 0xEE, sizeof w->out);
}

/* Destroys the objects of the trial and, if `done`, the output of the successful call. */
static void world_close(struct world *w, const struct op *op, bool done) {
    if (done && is(op, MAKES_TENSOR))
        w->out.tensor->deleter(w->out.tensor);
    if (done && is(op, MAKES_LEGACY))
        w->out.legacy->deleter(w->out.legacy);
    if (done && is(op, MAKES_CONTEXT))
        sb_context_release(w->out.context);
    if (done && is(op, MAKES_BLOB))
        sb_blob_destroy(w->out.blob);
    if (w->passed)
        w->passed->deleter(w->passed);
    test_end_after(w->rig.owned_before);
    if (is(op, TAKES_TENSOR) && sb_context_device_status(w->rig.context) == SB_OK)
        assert_int_equal(w->tensor.deleted, done);
    rig_close(&w->other);
    rig_close(&w->rig);
}

/* --- the observable state ------------------------------------------------------------ */

struct seen_mem {
    int32_t head, is_unique;
    size_t size;
    float values[LARGE];
};

struct seen {
    struct {
        int32_t num_axes;
        int64_t count, dims[4];
        struct seen_mem memory[2]; /* of data and diff */
    } blobs[BLOBS];
};

static void see_mem(struct seen_mem *out, const sb_mem *mem, bool bytes) {
    out->head = sb_mem_head(mem);
    out->is_unique = sb_mem_is_unique(mem);
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

/* Records the observable state. `target_bytes` is false if the target's bytes are unspecified. */
static void see(struct seen *seen, const struct world *w, bool target_bytes) {
    see_shapes(seen, w);
    for (int i = 0; i < BLOBS; i++)
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
            see_mem(&seen->blobs[i].memory[part], mem_of(w->blobs[i], part),
                    target_bytes || i == SOURCE || i == ELSEWHERE);
}

/* --- a trial ------------------------------------------------------------------------------ */

struct trial {
    struct given given;
    struct op op;
    enum fault fault;
    int64_t nth;
    bool in_other; /* the fault is in the other context */
};

static void blame(const struct trial *t, const char *what) {
    const struct call_kind *kind = pointer_call(&t->op);
    fail_with(
        "data %s, diff %s%s%s, schedule %d: %s of part %d, variant %d, with %s %d failing%s: %s",
        head_name(t->given.heads[SB_DATA]), head_name(t->given.heads[SB_DIFF]),
        t->given.touched ? "" : ", untouched", t->given.shared ? ", shared" : "", t->given.schedule,
        kind ? kind->name : t->op.row->name, t->op.part, t->op.variant, fault_name(t->fault),
        (int)t->nth, t->in_other ? " elsewhere" : "", what);
}

static bool same_seen(const struct seen *a, const struct seen *b) {
    for (int i = 0; i < BLOBS; i++) {
        const struct seen_mem *x = a->blobs[i].memory, *y = b->blobs[i].memory;
        if (memcmp(&a->blobs[i], &b->blobs[i], sizeof a->blobs[i]) == 0)
            continue;
        print_message("blob %d differs: axes %d %d, count %d %d, heads %s %s, %s %s\n", i,
                      a->blobs[i].num_axes, b->blobs[i].num_axes, (int)a->blobs[i].count,
                      (int)b->blobs[i].count, head_name(x[0].head), head_name(y[0].head),
                      head_name(x[1].head), head_name(y[1].head));
        return false;
    }
    return true;
}

/* Checks a failed call that lost the device: shapes and owners are unchanged, and a host side that
   is current according to the head has the old bytes. */
static void check_lost(const struct trial *t, const struct world *w, const struct seen *before) {
    struct seen now, expected = *before;
    see_shapes(&now, w);
    for (int i = 0; i < BLOBS; i++)
        memset(expected.blobs[i].memory, 0, sizeof expected.blobs[i].memory);
    demand(t, same_seen(&expected, &now));
    for (int i = 0; i < 2 * BLOBS; i++) {
        const struct seen_mem *was = &before->blobs[i / 2].memory[i % 2];
        const sb_mem *mem = mem_of(w->blobs[i / 2], i % 2);
        const int32_t head = sb_mem_head(mem);
        const void *in = NULL;
        demand(t, sb_mem_size(mem) == was->size && sb_mem_is_unique(mem) == was->is_unique);
        demand(t, head == was->head || is(&t->op, WRITES));
        if (head == SB_HEAD_AT_CPU || head == SB_HEAD_SYNCED) {
            demand(t, was->head == SB_HEAD_AT_CPU || was->head == SB_HEAD_SYNCED);
            demand(t, sb_mem_cpu(mem, &in, NULL) == SB_OK);
            demand(t, memcmp(in, was->values, was->size) == 0);
        }
    }
}

/* Checks a failed call and repeats it. Returns false if the device is lost. */
static bool check_failed(const struct trial *t, struct world *w, sb_status status,
                         const sb_error *err, const struct seen *before, const struct seen *after) {
    struct seen now;
    support_check_status(status, status, err, t->op.row->name, __FILE__, __LINE__);
    if (!fault_explains(t->fault, status, is(&t->op, WRITES)))
        blame(t, sb_status_name(status));
    demand(t, bytes_are(w->out.bytes, sizeof w->out, 0xEE));
    demand(t, w->host.deleted + w->device.deleted + w->tensor.deleted == 0);
    if (status == SB_ERR_DEVICE_LOST) {
        if (t->given.touched)
            check_lost(t, w, before);
        return false;
    }
    if (t->given.touched) {
        see(&now, w, true);
        demand(t, same_seen(before, &now));
    }
    demand(t, t->op.row->run(w, NULL) == SB_OK);
    see(&now, w, !has_unspecified_bytes(&t->op));
    demand(t, same_seen(after, &now));
    return true;
}

static bool is_lost(struct world *w) {
    return sb_context_device_status(w->rig.context) != SB_OK ||
           sb_context_device_status(w->other.context) != SB_OK;
}

static bool run_trial(const struct trial *t, const struct seen *after) {
    struct world w;
    struct seen before, now;
    sb_mem *handles[2] = {NULL, NULL};
    world_open(&w, &t->given, &t->op);
    if (t->given.touched) {
        see(&before, &w, true);
        handles[0] = data_of(w.blobs[TARGET]);
        handles[1] = diff_of(w.blobs[TARGET]);
    }
    struct armed armed = fault_arm(t->in_other ? &w.other : &w.rig, t->fault, t->nth);
    support_poison_error(&err);
    sb_status status = t->op.row->run(&w, &err);
    bool fired = fault_disarm(&armed), done = status == SB_OK;
    if (!fired && status != SB_OK)
        blame(t, err.message);
    if (status == SB_OK && !is_lost(&w)) {
        see(&now, &w, !has_unspecified_bytes(&t->op));
        demand(t, same_seen(after, &now));
    } else if (status != SB_OK) {
        if (t->given.touched) {
            demand(t, data_of(w.blobs[TARGET]) == handles[0]);
            demand(t, diff_of(w.blobs[TARGET]) == handles[1]);
        }
        done = check_failed(t, &w, status, &err, &before, after);
    }
    world_close(&w, &t->op, done);
    return fired;
}

/* Runs the call without a fault. Returns whether the call succeeds. */
static bool reference(const struct given *given, const struct op *op, struct seen *after) {
    struct world w;
    world_open(&w, given, op);
    bool good = op->row->run(&w, NULL) == SB_OK;
    if (good)
        see(after, &w, !has_unspecified_bytes(op));
    world_close(&w, op, good);
    return good;
}

static void try_every_n(const struct given *given, const struct op *op, enum fault fault) {
    struct seen after;
    const struct call_kind *kind = pointer_call(op);
    if (fault == FAULT_LATER && (is(op, ON_STREAM) || (kind && kind->queued)))
        return;
    if (!reference(given, op, &after)) {
        assert_true(is(op, WITH_DIFF));
        return;
    }
    for (int in_other = 0; in_other <= is(op, CROSSES); in_other++) {
        struct trial t = {*given, *op, fault, 1, in_other};
        for (; run_trial(&t, &after); t.nth++)
            demand(&t, t.nth < 200);
    }
}

static void try_op(const struct op *op, enum fault fault, struct given given) {
    try_every_n(&given, op, fault);
    given.touched = true;
    for (int32_t data = 0; data <= SB_HEAD_SYNCED; data++)
        for (int32_t diff = 0; diff <= SB_HEAD_SYNCED; diff++)
            for (int shared = 0; shared < 2; shared++) {
                given.heads[SB_DATA] = data;
                given.heads[SB_DIFF] = diff;
                given.shared = shared;
                if (!test_is_quick() || shared == (data + diff + (int)(op->row - rows)) % 4)
                    try_every_n(&given, op, fault);
            }
}

static void try_all(enum fault fault, struct given given) {
    for (const struct row *row = rows; row < rows + num_rows; row++) {
        const int variants = row->flags & POINTERS ? POINTER_CALLS : row->flags & SIDES ? 2 : 1;
        for (sb_part part = SB_DATA; part <= (row->flags & BOTH ? SB_DIFF : SB_DATA); part++)
            for (int variant = 0; variant < variants; variant++)
                try_op(&(struct op){row, part, variant}, fault, given);
    }
}

TEST(each_step_of_each_call_may_fail) {
    for (enum fault fault = FAULT_ALLOC; fault < FAULTS; fault++) {
        const uint32_t flags = fault == FAULT_ALLOC ? SB_CONTEXT_NO_PINNED : 0;
        try_all(fault, (struct given){.schedule = SB_SIM_EAGER});
        try_all(fault, (struct given){.schedule = SB_SIM_LAZY, .flags = flags});
    }
}

/* --- lent memory that is reclaimed ----------------------------------------------------------- */

/* The deleter of lent bytes must not run while the lost device may still read the bytes. */
TEST_ON(rig, bytes_that_a_lost_device_may_still_read_are_not_returned) {
    void *user = NULL;
    struct lent lent = lend_host(BYTES, 0x40);
    sb_stream stream = rig_stream(f);
    rig_schedule(f, SB_SIM_LAZY, 1);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, COUNT);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, BYTES, 0, lent_deleter, &lent, &err));
    assert_ok(sb_mem_async_gpu_push(data_of(blob), stream, &err)); /* a copy of the lent bytes */
    device_fail(f->context, SB_SIM_EVENT_WAIT, 1, SB_SIM_FAIL_STICKY);
    assert_status(SB_ERR_DEVICE_LOST,
                  sb_blob_reclaim_cpu(blob, SB_DATA, lent_deleter, &user, &err));
    assert_null(user);
    assert_int_equal(lent.deleted, 0);
    test_end(blob);
    ignore(sb_context_forget_stream(f->context, stream, NULL));
    sb_context_trim(f->context);
    assert_int_equal(lent.deleted, 1);
}
