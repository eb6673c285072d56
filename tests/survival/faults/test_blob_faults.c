/* Makes each allocation and device operation of every call on blobs fail in turn. */
#include "blobs.h"
#include "every_call.h"
#include "pointers.h"

#define MOST ((size_t)64)

struct start {
    enum world_storage storage;
    bool has_room;
    int heads; /* 1: data AT_CPU, diff AT_GPU; 2: data AT_GPU, diff AT_CPU; 3: both SYNCED;
                  4: the first blob has no memory */
    int32_t schedule;
    uint32_t flags;
};

struct trial {
    const struct every_call *call;
    struct start start;
    enum fault fault;
    int64_t nth;
    sb_status status;
};

static void blame(const struct trial *t, const char *what) {
    const struct start *s = &t->start;
    fail_with("storage %d, room %d, heads %d, schedule %d: %s with %s %d failing, %s: %s",
              s->storage, s->has_room, s->heads, s->schedule, t->call->name, fault_name(t->fault),
              (int)t->nth, sb_status_name(t->status), what);
}

static bool has(const struct trial *t, const char *const *parts) {
    while (*parts && !strstr(t->call->name, *parts))
        parts++;
    return *parts;
}

static bool writes(const struct trial *t) {
    return has(t, (const char *const[]){"_update", "_scale", "_clear", "copy_from", "comm_",
                                        "reducer_", "_fill", NULL});
}

/* Returns whether a failure may leave the call half done. */
static bool is_partial(const struct trial *t) {
    return has(t, (const char *const[]){"comm_", "reducer_", "load_", "from_proto", "_fill",
                                        "to_proto", "blob_from_dlpack", "save_", "model_add_blob",
                                        NULL});
}

/* Returns whether only a later wait reports a failure of the call's queued work. */
static bool is_queued(const struct trial *t) {
    return has(t, (const char *const[]){"_on", "prefetch", "async", "_update", "_scale", "comm_",
                                        "reducer_", NULL});
}

static bool leaves_bytes_open(const struct trial *t) {
    return has(t, (const char *const[]){"overwrite", "write_", NULL});
}

struct seen {
    struct {
        int32_t num_axes;
        int64_t count, dims[4];
        struct {
            const sb_mem *handle;
            int32_t head, is_unique;
            size_t size;
            char bytes[MOST];
        } memory[2];
    } blobs[2];
};

static void see(struct seen *seen, const struct world *w, bool bytes) {
    sb_blob *const blobs[] = {w->blob, w->other};
    memset(seen, 0, sizeof *seen);
    for (int i = 0; i < 2; i++) {
        seen->blobs[i].num_axes = sb_blob_num_axes(blobs[i]);
        seen->blobs[i].count = sb_blob_count(blobs[i]);
        memcpy(seen->blobs[i].dims, sb_blob_shape(blobs[i]),
               (size_t)sb_blob_num_axes(blobs[i]) * sizeof(int64_t));
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
            const sb_mem *mem = mem_of(blobs[i], part);
            seen->blobs[i].memory[part].handle = mem;
            seen->blobs[i].memory[part].head = sb_mem_head(mem);
            seen->blobs[i].memory[part].is_unique = sb_mem_is_unique(mem);
            seen->blobs[i].memory[part].size = sb_mem_size(mem);
            if ((bytes || i) && sb_mem_head(mem) != SB_HEAD_LOST && sb_mem_size(mem) <= MOST)
                mem_look(mem, seen->blobs[i].memory[part].bytes, sb_mem_size(mem));
        }
    }
}

static bool same_seen(struct seen *a, struct seen *b, bool handles) {
    for (int i = 0; i < 4 && !handles; i++)
        a->blobs[i / 2].memory[i % 2].handle = b->blobs[i / 2].memory[i % 2].handle = NULL;
    return memcmp(a, b, sizeof *a) == 0;
}

static void open_start(struct world *w, const struct start *s) {
    world_open(w, s->storage, s->has_room, 3, SB_CONTEXT_NO_HOST_CACHE | s->flags);
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        if (s->heads == 1 || s->heads == 2)
            (void)blob_pointer(w->blob, part,
                               (s->heads == 1) == (part == SB_DATA) ? MUTABLE_CPU : MUTABLE_GPU);
        if (s->heads == 3) {
            (void)blob_pointer(w->blob, part, CPU_DATA);
            (void)blob_pointer(w->blob, part, GPU_DATA);
        }
        if (s->heads == 4)
            sb_blob_drop(w->blob, part);
    }
    assert_ok(sb_sim_set_schedule(w->context, s->schedule, 5, &err));
    w->status = SB_OK;
}

static void check_lost(const struct trial *t, struct world *w, struct seen *before) {
    sb_blob *const blobs[] = {w->blob, w->other};
    for (int i = 0; i < 4; i++) {
        sb_mem *mem = mem_of(blobs[i / 2], i % 2);
        const int32_t head = sb_mem_head(mem), was = before->blobs[i / 2].memory[i % 2].head;
        const void *in = NULL;
        demand(t, sb_blob_count(blobs[i / 2]) == before->blobs[i / 2].count);
        demand(t, mem == before->blobs[i / 2].memory[i % 2].handle);
        demand(t, head == was || writes(t));
        if (head != SB_HEAD_AT_CPU && head != SB_HEAD_SYNCED)
            continue;
        demand(t, was == SB_HEAD_AT_CPU || was == SB_HEAD_SYNCED);
        demand(t, sb_mem_cpu(mem, &in, NULL) == SB_OK);
        demand(t, memcmp(in, before->blobs[i / 2].memory[i % 2].bytes, sb_mem_size(mem)) == 0);
    }
}

static void check_failed(const struct trial *t, struct world *w, struct seen *before,
                         struct seen *after) {
    struct seen now;
    demand(t, fault_explains(t->fault, t->status, writes(t)));
    demand(t, !w->has_output);
    if (sb_context_device_status(w->context) != SB_OK) {
        if (t->start.heads != 4 && !is_partial(t))
            check_lost(t, w, before);
        return;
    }
    if (t->start.heads != 4 && !is_partial(t)) {
        see(&now, w, true);
        demand(t, same_seen(before, &now, true));
    }
    if (has(t, (const char *const[]){"comm_", "reducer_", NULL})) /* the communicator is unusable */
        return;
    w->status = SB_OK;
    t->call->run(w);
    demand(t, w->status == SB_OK);
    see(&now, w, !leaves_bytes_open(t));
    demand(t, same_seen(after, &now, false));
}

static bool run_trial(struct trial *t, struct seen *after) {
    struct world w;
    struct seen before, now;
    open_start(&w, &t->start);
    if (t->start.heads != 4)
        see(&before, &w, true);
    const struct armed armed = fault_arm(&w.rig, t->fault, t->nth);
    t->call->run(&w);
    const bool fired = fault_disarm(&armed);
    t->status = w.status;
    demand(t, fired || t->status == SB_OK);
    if (t->status != SB_OK) {
        check_failed(t, &w, &before, after);
    } else if (sb_context_device_status(w.context) == SB_OK) {
        see(&now, &w, !leaves_bytes_open(t));
        demand(t, same_seen(after, &now, false));
    }
    world_close(&w);
    return fired;
}

static bool reference(const struct trial *t, struct seen *after) {
    struct world w;
    open_start(&w, &t->start);
    t->call->run(&w);
    const bool good = w.status == SB_OK;
    if (good)
        see(after, &w, !leaves_bytes_open(t));
    world_close(&w);
    return good;
}

static void try_every_n(struct trial t) {
    struct seen after;
    if (t.call->ends || (t.fault == FAULT_LATER && is_queued(&t)) || !reference(&t, &after))
        return;
    for (t.nth = 1; run_trial(&t, &after); t.nth++)
        demand(&t, t.nth < 200);
}

TEST(each_step_of_each_call_may_fail) {
    const int starts = WORLD_STORAGES * 2 * 5 * 2 * FAULTS, step = test_is_quick() ? 23 : 1;
    for (int i = 0; i < every_call_count; i++)
        for (int k = i % step; k < starts; k += step) {
            const int fault = k % FAULTS, late = k / FAULTS % 2, heads = k / FAULTS / 2 % 5;
            try_every_n((struct trial){
                .call = &every_call[i],
                .fault = (enum fault)fault,
                .start = {.storage = (enum world_storage)(k / FAULTS / 20),
                          .has_room = k / FAULTS / 10 % 2,
                          .heads = heads,
                          .schedule = late ? SB_SIM_LAZY : SB_SIM_EAGER,
                          .flags = late && fault == FAULT_ALLOC ? SB_CONTEXT_NO_PINNED : 0}});
        }
}
