/* The state table of SyncedMemory, whole: every head, every pair of storages,
   every call, on a device whose transfers are counted. The table is written by
   hand from the design. */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)256)

/* --- the table ------------------------------------------------------------- */

enum work {
    NOTHING,
    ZERO, /* a zero-filled allocation on the call's side */
    COPY, /* one transfer to the call's side */
    ADOPT,
    ALLOC,   /* storage of unspecified contents on the call's side */
    RELEASE, /* the call's side is given up */
    WIPE     /* clear: an overwrite, then zeros */
};

struct cell {
    enum work work;
    int32_t next; /* a head, or the status of an error */
};

#define U     SB_HEAD_UNINITIALIZED
#define C     SB_HEAD_AT_CPU
#define G     SB_HEAD_AT_GPU
#define S     SB_HEAD_SYNCED
#define NEVER SB_ERR_UNINITIALIZED
#define WRONG SB_ERR_INVALID_ARGUMENT

static const struct cell table[4][CALLS] = {
    [U] = {[CPU_DATA] = {ZERO, C},
           [MUTABLE_CPU] = {ZERO, C},
           [GPU_DATA] = {ZERO, G},
           [MUTABLE_GPU] = {ZERO, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {ALLOC, C},
           [OVERWRITE_GPU] = {ALLOC, G},
           [ASYNC_PUSH] = {NOTHING, NEVER},
           [ASYNC_PULL] = {NOTHING, NEVER},
           [EVICT_CPU] = {NOTHING, U},
           [EVICT_GPU] = {NOTHING, U},
           [PREFETCH_CPU] = {ZERO, C},
           [PREFETCH_GPU] = {ZERO, G},
           [GPU_DATA_ON] = {ZERO, G},
           [MUTABLE_GPU_ON] = {ZERO, G},
           [OVERWRITE_GPU_ON] = {ALLOC, G},
           [CLEAR] = {NOTHING, U},
           [SYNCHRONIZE] = {NOTHING, U}},
    [C] = {[CPU_DATA] = {NOTHING, C},
           [MUTABLE_CPU] = {NOTHING, C},
           [GPU_DATA] = {COPY, S},
           [MUTABLE_GPU] = {COPY, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {NOTHING, C},
           [OVERWRITE_GPU] = {ALLOC, G},
           [ASYNC_PUSH] = {COPY, S},
           [ASYNC_PULL] = {NOTHING, WRONG},
           [EVICT_CPU] = {NOTHING, WRONG},
           [EVICT_GPU] = {RELEASE, C},
           [PREFETCH_CPU] = {NOTHING, C},
           [PREFETCH_GPU] = {COPY, S},
           [GPU_DATA_ON] = {COPY, S},
           [MUTABLE_GPU_ON] = {COPY, G},
           [OVERWRITE_GPU_ON] = {ALLOC, G},
           [CLEAR] = {WIPE, C},
           [SYNCHRONIZE] = {NOTHING, C}},
    [G] = {[CPU_DATA] = {COPY, S},
           [MUTABLE_CPU] = {COPY, C},
           [GPU_DATA] = {NOTHING, G},
           [MUTABLE_GPU] = {NOTHING, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {ALLOC, C},
           [OVERWRITE_GPU] = {NOTHING, G},
           [ASYNC_PUSH] = {NOTHING, WRONG},
           [ASYNC_PULL] = {COPY, S},
           [EVICT_CPU] = {RELEASE, G},
           [EVICT_GPU] = {NOTHING, WRONG},
           [PREFETCH_CPU] = {COPY, S},
           [PREFETCH_GPU] = {NOTHING, G},
           [GPU_DATA_ON] = {NOTHING, G},
           [MUTABLE_GPU_ON] = {NOTHING, G},
           [OVERWRITE_GPU_ON] = {NOTHING, G},
           [CLEAR] = {WIPE, G},
           [SYNCHRONIZE] = {NOTHING, G}},
    [S] = {[CPU_DATA] = {NOTHING, S},
           [MUTABLE_CPU] = {NOTHING, C},
           [GPU_DATA] = {NOTHING, S},
           [MUTABLE_GPU] = {NOTHING, G},
           [SET_CPU] = {ADOPT, C},
           [SET_GPU] = {ADOPT, G},
           [OVERWRITE_CPU] = {NOTHING, C},
           [OVERWRITE_GPU] = {NOTHING, G},
           [ASYNC_PUSH] = {NOTHING, S},
           [ASYNC_PULL] = {NOTHING, S},
           [EVICT_CPU] = {RELEASE, G},
           [EVICT_GPU] = {RELEASE, C},
           [PREFETCH_CPU] = {NOTHING, S},
           [PREFETCH_GPU] = {NOTHING, S},
           [GPU_DATA_ON] = {NOTHING, S},
           [MUTABLE_GPU_ON] = {NOTHING, G},
           [OVERWRITE_GPU_ON] = {NOTHING, G},
           [CLEAR] = {WIPE, G},
           [SYNCHRONIZE] = {NOTHING, S}},
};

/* --- one call -------------------------------------------------------------- */

/* The calls that take a stream get the library's own. */
static sb_status make_call(struct scene *scene, enum call call, void **out, sb_error *err) {
    sb_stream own = NULL;
    if (sb_context_has_device(scene->rig.context))
        (void)sb_context_stream(scene->rig.context, &own, NULL);
    return scene_call(scene, call, own, out, err);
}

/* What the table and the rules for borrowed memory make of a start and a call. */
struct outcome {
    sb_status status;
    int32_t head;
    int32_t kind[2];   /* storage of each side afterwards */
    bool same[2];      /* each side's storage is the one it was */
    int64_t allocs[2]; /* buffers asked for, on each side */
    int64_t uploads, downloads, host_copies, device_copies;
    int fill; /* what every current side holds afterwards; -1: unspecified */
};

static void expect_own_storage(struct outcome *o, int32_t side, bool pinned) {
    o->kind[side] = side == SB_SIDE_CPU && pinned ? SB_STORAGE_PINNED : SB_STORAGE_OWNED;
    o->same[side] = false;
    o->allocs[side] = 1;
}

static void expect_copy(struct outcome *o, int32_t to) {
    if (to == SB_SIDE_GPU)
        o->uploads = 1;
    else
        o->downloads = 1;
}

static void expect_copy_within(struct outcome *o, int32_t side) {
    if (side == SB_SIDE_GPU)
        o->device_copies = 1;
    else
        o->host_copies = 1;
}

static struct outcome outcome_of(const struct start *start, enum call call) {
    struct cell cell = table[start->head][call];
    int32_t side = side_of(call, start->head);
    struct outcome o = {SB_OK, cell.next, {start->cpu, start->gpu}, {true, true}, {0, 0}, 0, 0, 0,
                        0,     CURRENT};
    bool pinned = start->cpu == SB_STORAGE_PINNED;
    bool missing = o.kind[side] == SB_STORAGE_NONE, read_only = is_read_only(o.kind[side]);

    if (cell.next < 0) {
        o.status = cell.next;
        o.head = start->head;
        return o;
    }
    switch (cell.work) {
    case ADOPT:
        o.kind[side] = SB_STORAGE_BORROWED;
        o.same[side] = false;
        o.fill = LENT;
        return o;
    case RELEASE:
        o.kind[side] = SB_STORAGE_NONE;
        o.same[side] = false;
        return o;
    case ZERO:
        expect_own_storage(&o, side, pinned);
        o.fill = 0;
        return o;
    case COPY:
        expect_copy(&o, side);
        if (missing || read_only)
            expect_own_storage(&o, side, pinned);
        return o;
    case NOTHING: /* but a pointer for writing is never one into read-only storage */
        if (gives_mutable(call) && read_only) {
            expect_own_storage(&o, side, pinned);
            expect_copy_within(&o, side);
        }
        if (gives_overwrite(call) && read_only)
            expect_own_storage(&o, side, pinned);
        if (gives_overwrite(call))
            o.fill = -1;
        if (start->head == SB_HEAD_UNINITIALIZED)
            o.fill = 0;
        return o;
    case ALLOC:
    case WIPE:
        if (missing || read_only)
            expect_own_storage(&o, side, pinned);
        o.fill = cell.work == WIPE ? 0 : -1;
        return o;
    }
    return o;
}

static const char *story(const struct start *start, enum call call) {
    static char text[160];
    (void)snprintf(text, sizeof text, "%s with host %s and device %s, %s", head_name(start->head),
                   storage_name(start->cpu), storage_name(start->gpu), call_names[call]);
    return text;
}

#define expect(what, found, expected)                                                              \
    do {                                                                                           \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                  \
        if (found_ != expected_)                                                                   \
            fail_with("%s: %s is %lld, expected %lld", story(start, call), what, found_,           \
                      expected_);                                                                  \
    } while (0)

static void check_work(struct scene *scene, const struct start *start, enum call call,
                       const struct outcome *o, const struct tally *before) {
    struct tally t = rig_since(&scene->rig, before);
    bool zeroed = o->status == SB_OK && side_of(call, start->head) == SB_SIDE_GPU &&
                  (table[start->head][call].work == ZERO || table[start->head][call].work == WIPE);
    expect("host buffers", t.host_allocs, o->allocs[SB_SIDE_CPU]);
    expect("device buffers", t.device_allocs, o->allocs[SB_SIDE_GPU]);
    expect("uploads in the statistics", t.uploads, o->uploads);
    expect("uploads of the device", t.calls[SB_SIM_UPLOAD], o->uploads);
    expect("downloads in the statistics", t.downloads, o->downloads);
    expect("downloads of the device", t.calls[SB_SIM_DOWNLOAD], o->downloads);
    expect("device copies in the statistics", t.device_copies, o->device_copies);
    expect("device copies of the device", t.calls[SB_SIM_COPY], o->device_copies);
    expect("host copies", t.host_copies, o->host_copies);
    expect("device zero fills", t.calls[SB_SIM_ZERO], zeroed);
}

static void check_result(struct scene *scene, const struct start *start, enum call call,
                         const struct outcome *o, void *out) {
    void *before[2] = {scene->cpu_ptr, scene->gpu_ptr};
    int32_t side = side_of(call, start->head);
    expect("head", sb_mem_head(scene->mem), o->head);
    if (scene->bytes) {
        expect("host storage", sb_mem_storage(scene->mem, SB_SIDE_CPU), o->kind[SB_SIDE_CPU]);
        expect("device storage", sb_mem_storage(scene->mem, SB_SIDE_GPU), o->kind[SB_SIDE_GPU]);
    }
    if (o->status != SB_OK || !gives_pointer(call))
        return;
    expect("a NULL pointer", out == NULL, false);
    expect("alignment", (uintptr_t)out % 64, 0);
    if (scene->bytes && before[side])
        expect("the same storage", out == before[side], o->same[side]);
}

/* Reads both sides where that needs no work, and says so if it does. */
static void check_bytes(struct scene *scene, const struct start *start, enum call call,
                        const struct outcome *o) {
    struct tally before;
    if (o->fill < 0 || o->head == SB_HEAD_UNINITIALIZED || !scene->bytes)
        return;
    if (o->head != SB_HEAD_AT_GPU) {
        if (o->status == SB_OK && sb_mem_head(scene->mem) == SB_HEAD_SYNCED)
            (void)read_cpu(scene->mem); /* lets a queued copy end */
        before = rig_tally(&scene->rig);
        const void *ptr = read_cpu(scene->mem);
        expect("right host bytes", bytes_are(ptr, scene->bytes, o->fill), true);
        expect("copies of a second read", rig_since(&scene->rig, &before).downloads, 0);
        if (scene->cpu_ptr && o->same[SB_SIDE_CPU] && start->head != SB_HEAD_AT_GPU)
            expect("the same host pointer", ptr == scene->cpu_ptr, true);
    }
    if (o->head != SB_HEAD_AT_CPU) {
        before = rig_tally(&scene->rig);
        const void *ptr = read_gpu(scene->mem);
        expect("right device bytes",
               device_bytes_are(scene->rig.context, ptr, scene->bytes, o->fill), true);
        expect("copies of a second read", rig_since(&scene->rig, &before).uploads, 0);
        if (scene->gpu_ptr && o->same[SB_SIDE_GPU])
            expect("the same device pointer", ptr == scene->gpu_ptr, true);
    }
    expect("head after reading", sb_mem_head(scene->mem), o->head);
}

static void check_lent(struct scene *scene, const struct start *start, enum call call,
                       const struct outcome *o) {
    bool current_cpu = start->head == SB_HEAD_AT_CPU || start->head == SB_HEAD_SYNCED;
    bool current_gpu = start->head == SB_HEAD_AT_GPU || start->head == SB_HEAD_SYNCED;
    if (borrows(start->cpu))
        expect("runs of the host deleter", scene->cpu.deleted, !o->same[SB_SIDE_CPU]);
    if (borrows(start->gpu))
        expect("runs of the device deleter", scene->gpu.deleted, !o->same[SB_SIDE_GPU]);
    if (is_read_only(start->cpu))
        expect("untouched read-only host bytes",
               lent_holds(&scene->cpu, current_cpu ? CURRENT : STALE), true);
    if (is_read_only(start->gpu))
        expect("untouched read-only device bytes",
               lent_holds(&scene->gpu, current_gpu ? CURRENT : STALE), true);
}

static void run_cell(const struct start *start, enum call call, size_t bytes) {
    struct scene scene;
    void *out = NULL;
    sb_error err;
    scene_open(&scene, start, bytes);
    scene_lend_extra(&scene, call);
    struct outcome o = outcome_of(start, call);
    if (bytes == 0)
        memset(o.allocs, 0, sizeof o.allocs),
            o.uploads = o.downloads = o.host_copies = o.device_copies = 0;
    struct tally before = rig_tally(&scene.rig);

    support_poison_error(&err);
    sb_status status = make_call(&scene, call, &out, &err);

    support_check_status(o.status, status, &err, story(start, call), __FILE__, __LINE__);
    if (o.status != SB_OK)
        assert_null(out);
    if (bytes)
        check_work(&scene, start, call, &o, &before);
    check_result(&scene, start, call, &o, out);
    if (bytes)
        check_lent(&scene, start, call, &o);
    check_bytes(&scene, start, call, &o);
    scene_close(&scene);
}

static const int32_t cpu_kinds[] = {SB_STORAGE_NONE, SB_STORAGE_OWNED, SB_STORAGE_PINNED,
                                    SB_STORAGE_BORROWED, SB_STORAGE_BORROWED_READ_ONLY};
static const int32_t gpu_kinds[] = {SB_STORAGE_NONE, SB_STORAGE_OWNED, SB_STORAGE_BORROWED,
                                    SB_STORAGE_BORROWED_READ_ONLY};

static void every_head_storage_and_call(void **state) {
    (void)state;
    int cells = 0;
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (size_t c = 0; c < sizeof cpu_kinds / sizeof cpu_kinds[0]; c++)
            for (size_t g = 0; g < sizeof gpu_kinds / sizeof gpu_kinds[0]; g++) {
                struct start start = {head, cpu_kinds[c], gpu_kinds[g]};
                for (enum call call = 0; is_reachable(&start) && call < CALLS; call++, cells++)
                    run_cell(&start, call, BYTES);
            }
    assert_int_equal(cells, (1 + 4 * 4 + 5 * 3 + 4 * 3 - 1) * CALLS);
}

/* --- size 0 ------------------------------------------------------------------ */

static void size_zero_moves_the_head_without_any_work(void **state) {
    (void)state;
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (enum call call = 0; call < CALLS; call++) {
            struct start start = {head, head == U || head == G ? SB_STORAGE_NONE : SB_STORAGE_OWNED,
                                  head == U || head == C ? SB_STORAGE_NONE : SB_STORAGE_OWNED};
            run_cell(&start, call, 0);
        }
}

static void size_zero_moves_out_of_read_only_loans(void **state) {
    (void)state;
    struct scene scene;
    struct start start = {U, SB_STORAGE_NONE, SB_STORAGE_NONE};
    sb_error err;
    char byte = 'x';
    void *out;
    scene_open(&scene, &start, 0);
    assert_ok(sb_mem_set_cpu(scene.mem, &byte, 0, SB_READ_ONLY, NULL, NULL, &err));
    assert_ok(sb_mem_mutable_cpu_data(scene.mem, &out, &err));
    assert_ptr_not_equal(out, &byte);
    assert_int_equal(sb_mem_storage(scene.mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
    scene_close(&scene);
}

static void size_zero_calls_neither_allocator_nor_device(void **state) {
    (void)state;
    for (enum call call = 0; call < CALLS; call++) {
        if (call == SET_CPU || call == SET_GPU)
            continue;
        struct scene scene;
        struct start start = {U, SB_STORAGE_NONE, SB_STORAGE_NONE};
        void *out;
        scene_open(&scene, &start, 0);
        struct tally before = rig_tally(&scene.rig);
        (void)make_call(&scene, call, &out, NULL);
        (void)make_call(&scene, CPU_DATA, &out, NULL);
        (void)make_call(&scene, MUTABLE_GPU, &out, NULL);
        (void)make_call(&scene, MUTABLE_CPU, &out, NULL);
        struct tally t = rig_since(&scene.rig, &before);
        assert_no_work(&t);
        scene_close(&scene);
    }
}

/* --- LOST ---------------------------------------------------------------------- */

#define LOST_COUNT ((int64_t)(BYTES / sizeof(float)))

/* The data of a blob whose device died while it wrote in place, no host bytes being current. */
static sb_blob *lose(struct scene *scene, int32_t cpu, int32_t gpu) {
    sb_error err;
    sb_blob *blob;
    *scene = (struct scene){.bytes = BYTES};
    rig_open(&scene->rig, "sim:0", SB_CONTEXT_NO_PINNED);
    assert_ok(sb_blob_create_shaped(scene->rig.context, SB_DTYPE_F32, &(int64_t){LOST_COUNT}, 1,
                                    &blob, &err));
    assert_ok(sb_blob_mutable_data(blob, &scene->mem, &err));
    sb_mem_retain(scene->mem);
    scene_give(scene, SB_SIDE_CPU, cpu, STALE);
    scene_give(scene, SB_SIDE_GPU, gpu, CURRENT);
    assert_int_equal(sb_mem_head(scene->mem), SB_HEAD_AT_GPU);
    device_fail(scene->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale_data(blob, 2, &err));
    assert_int_equal(sb_mem_head(scene->mem), SB_HEAD_LOST);
    assert_int_equal(sb_context_device_status(scene->rig.context), SB_ERR_DEVICE_LOST);
    return blob;
}

static void lost_call(int32_t cpu, int32_t gpu, enum call call) {
    struct scene scene;
    struct start start = {SB_HEAD_LOST, cpu, gpu};
    sb_blob *blob = lose(&scene, cpu, gpu);
    void *out = NULL;
    sb_error err;
    bool works = call == SET_CPU || call == OVERWRITE_CPU;
    if (call == SET_CPU)
        scene.extra = lend_host(BYTES, LENT);
    if (call == SET_GPU) /* any pointer: the device cannot take it */
        scene.extra = (struct lent){.ptr = &scene, .bytes = BYTES};
    support_poison_error(&err);
    sb_status status = make_call(&scene, call, &out, &err);
    bool device_side = side_of(call, SB_HEAD_AT_GPU) == SB_SIDE_GPU || call == ASYNC_PULL;
    sb_status expected =
        works ? SB_OK
        : call == SET_GPU || gives_overwrite(call) || (device_side && status == SB_ERR_DEVICE_LOST)
            ? SB_ERR_DEVICE_LOST
            : SB_ERR_UNINITIALIZED;
    support_check_status(expected, status, &err, story(&start, call), __FILE__, __LINE__);
    assert_int_equal(sb_mem_head(scene.mem), works ? SB_HEAD_AT_CPU : SB_HEAD_LOST);
    if (works) {
        void *ptr;
        assert_ok(sb_mem_mutable_cpu_data(scene.mem, &ptr, &err));
        memset(ptr, CURRENT, BYTES);
        assert_true(bytes_are(read_cpu(scene.mem), BYTES, CURRENT));
    }
    if (call == SET_GPU)
        scene.extra.ptr = NULL;
    sb_blob_destroy(blob);
    sb_mem_release(scene.mem);
    assert_int_equal(scene.cpu.deleted, borrows(cpu));
    assert_int_equal(scene.gpu.deleted, borrows(gpu));
    struct lent *all[] = {&scene.cpu, &scene.extra, &scene.gpu};
    for (int i = 0; i < 3; i++)
        if (all[i]->ptr && !all[i]->context)
            lent_free(all[i]);
        else if (all[i]->ptr)
            (void)sb_sim_free(scene.rig.context, all[i]->ptr, NULL);
    rig_close(&scene.rig);
}

static void lost_memory_only_takes_set_overwrite_and_release(void **state) {
    (void)state;
    static const int32_t host[] = {SB_STORAGE_NONE, SB_STORAGE_OWNED, SB_STORAGE_BORROWED,
                                   SB_STORAGE_BORROWED_READ_ONLY};
    static const int32_t device[] = {SB_STORAGE_OWNED, SB_STORAGE_BORROWED};
    for (size_t c = 0; c < 4; c++)
        for (size_t g = 0; g < 2; g++)
            for (enum call call = 0; call < CALLS; call++)
                if (call != SYNCHRONIZE)
                    lost_call(host[c], device[g], call);
}

/* --- host only ------------------------------------------------------------------- */

static bool needs_device(enum call call) {
    switch (call) {
    case GPU_DATA:
    case MUTABLE_GPU:
    case SET_GPU:
    case OVERWRITE_GPU:
    case ASYNC_PUSH:
    case ASYNC_PULL:
    case PREFETCH_GPU:
    case GPU_DATA_ON:
    case MUTABLE_GPU_ON:
    case OVERWRITE_GPU_ON:
        return true;
    default:
        return false;
    }
}

static void host_only_call(int32_t head, int32_t kind, enum call call) {
    struct scene scene = {.bytes = BYTES};
    struct start start = {head, kind, SB_STORAGE_NONE};
    void *out = NULL;
    sb_error err;
    rig_open(&scene.rig, "cpu", SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(sb_mem_create(scene.rig.context, BYTES, &scene.mem, &err));
    scene_arrange(&scene, &start);
    if (call == SET_CPU)
        scene.extra = lend_host(BYTES, LENT);
    struct lent host_bytes = lend_host(BYTES, LENT);
    if (call == SET_GPU)
        scene.extra.ptr = host_bytes.ptr;
    struct outcome o = outcome_of(&start, call);
    if (needs_device(call))
        o = (struct outcome){
            SB_ERR_NO_DEVICE, head, {kind, SB_STORAGE_NONE}, {true, true}, {0, 0}, 0, 0, 0, 0,
            CURRENT};
    struct tally before = rig_tally(&scene.rig);
    support_poison_error(&err);
    sb_status status = make_call(&scene, call, &out, &err);
    support_check_status(o.status, status, &err, story(&start, call), __FILE__, __LINE__);
    assert_int_equal(rig_since(&scene.rig, &before).host_allocs, o.allocs[SB_SIDE_CPU]);
    check_result(&scene, &start, call, &o, out);
    check_lent(&scene, &start, call, &o);
    check_bytes(&scene, &start, call, &o);
    if (call == SET_GPU)
        scene.extra.ptr = NULL;
    lent_free(&host_bytes);
    scene_close(&scene);
}

static void host_only_contexts_do_the_host_half(void **state) {
    (void)state;
    static const int32_t kinds[] = {SB_STORAGE_OWNED, SB_STORAGE_BORROWED,
                                    SB_STORAGE_BORROWED_READ_ONLY};
    for (enum call call = 0; call < CALLS; call++) {
        host_only_call(U, SB_STORAGE_NONE, call);
        for (size_t k = 0; k < 3; k++)
            host_only_call(C, kinds[k], call);
    }
}

/* --- Caffe's textbook sequence ------------------------------------------------------- */

static void the_textbook_sequence_takes_four_copies(void **state) {
    (void)state;
    static const enum call steps[] = {GPU_DATA, CPU_DATA,    MUTABLE_GPU, MUTABLE_GPU, CPU_DATA,
                                      GPU_DATA, MUTABLE_CPU, MUTABLE_GPU, MUTABLE_CPU};
    static const int up[] = {1, 0, 0, 0, 0, 0, 0, 1, 0}, down[] = {0, 0, 0, 0, 1, 0, 0, 0, 1};
    static const int32_t heads[] = {S, S, G, G, S, S, C, G, C};
    struct scene scene;
    struct start start = {C, SB_STORAGE_OWNED, SB_STORAGE_NONE};
    sb_error err;
    void *out;
    scene_open(&scene, &start, BYTES);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct tally before = rig_tally(&scene.rig);
        assert_ok(make_call(&scene, steps[i], &out, &err));
        struct tally t = rig_since(&scene.rig, &before);
        assert_int_equal(t.uploads, up[i]);
        assert_int_equal(t.downloads, down[i]);
        assert_int_equal(t.calls[SB_SIM_UPLOAD], up[i]);
        assert_int_equal(t.calls[SB_SIM_DOWNLOAD], down[i]);
        assert_int_equal(sb_mem_head(scene.mem), heads[i]);
    }
    assert_int_equal(rig_stats(&scene.rig).upload_bytes, 2 * BYTES);
    assert_int_equal(rig_stats(&scene.rig).download_bytes, 2 * BYTES);
    assert_true(bytes_are(read_cpu(scene.mem), BYTES, CURRENT));
    scene_close(&scene);
}

static void overwriting_back_and_forth_copies_nothing(void **state) {
    (void)state;
    struct scene scene;
    struct start start = {U, SB_STORAGE_NONE, SB_STORAGE_NONE};
    sb_error err;
    void *out;
    scene_open(&scene, &start, BYTES);
    struct tally before = rig_tally(&scene.rig);
    for (int i = 0; i < 5; i++) {
        assert_ok(sb_mem_overwrite_cpu(scene.mem, &out, &err));
        assert_ok(sb_mem_overwrite_gpu(scene.mem, &out, &err));
    }
    struct tally t = rig_since(&scene.rig, &before);
    assert_int_equal(t.uploads + t.downloads + t.host_copies + t.device_copies, 0);
    assert_int_equal(t.host_allocs, 1);
    assert_int_equal(t.device_allocs, 1);
    scene_close(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_head_storage_and_call),
        cmocka_unit_test(size_zero_moves_the_head_without_any_work),
        cmocka_unit_test(size_zero_moves_out_of_read_only_loans),
        cmocka_unit_test(size_zero_calls_neither_allocator_nor_device),
        cmocka_unit_test(lost_memory_only_takes_set_overwrite_and_release),
        cmocka_unit_test(host_only_contexts_do_the_host_half),
        cmocka_unit_test(the_textbook_sequence_takes_four_copies),
        cmocka_unit_test(overwriting_back_and_forth_copies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
