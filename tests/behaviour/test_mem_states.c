/* Tests the complete state table of SyncedMemory: every head, every pair of storages and every
   call, on a device whose transfers are counted. */
#include "coherent.h"
#include "pointers.h"
#include "scene.h"

#define BYTES ((size_t)256)

#define U SB_HEAD_UNINITIALIZED
#define C SB_HEAD_AT_CPU
#define G SB_HEAD_AT_GPU
#define S SB_HEAD_SYNCED

/* --- one call -------------------------------------------------------------- */

/* Makes the call; if it has a parameter for a stream, passes the library's stream. */
static sb_status make_call(struct scene *scene, enum call call, void **out, sb_error *err) {
    sb_stream own = NULL;
    if (sb_context_has_device(scene->rig.context))
        ignore(sb_context_stream(scene->rig.context, &own, NULL));
    return scene_call(scene, call, own, out, err);
}

/* The outcome that the table specifies for a call on a memory in a start state. */
struct outcome {
    struct plan plan;
    struct memory_state after;
    bool same[2]; /* for each side, whether its storage remains */
    int fill;     /* the value of every byte of the current sides; -1: unspecified */
};

static struct outcome outcome_of(const struct start *start, enum call call, bool is_coherent) {
    struct outcome o = {.after = {.head = start->head,
                                  .side = {{start->cpu, 0}, {start->gpu, 0}},
                                  .is_coherent = is_coherent},
                        .same = {true, true},
                        .fill = CURRENT};
    o.plan = table_plan(&o.after, call);
    const struct plan *plan = &o.plan;
    if (plan->status != SB_OK)
        return o;
    bool pinned = plan->side == SB_SIDE_CPU && start->cpu == SB_STORAGE_PINNED;
    struct side fresh = {plan->adopts ? SB_STORAGE_BORROWED
                         : pinned     ? SB_STORAGE_PINNED
                                      : SB_STORAGE_OWNED,
                         NULL};
    (void)table_commit(&o.after, plan, fresh);
    o.same[plan->side] = !plan->allocates && !plan->adopts && !plan->drops;
    if (plan->adopts)
        o.fill = LENT;
    else if (plan->zeroes)
        o.fill = 0;
    else if (call_kinds[call].purpose == OVERWRITE)
        o.fill = -1;
    return o;
}

static const char *description(const struct start *start, enum call call) {
    static char text[160];
    (void)snprintf(text, sizeof text, "%s with host %s and device %s, %s", head_name(start->head),
                   storage_name(start->cpu), storage_name(start->gpu), call_kinds[call].name);
    return text;
}

#define expect(what, found, expected)                                                              \
    do {                                                                                           \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                  \
        if (found_ != expected_)                                                                   \
            fail_with("%s: %s is %lld, expected %lld", description(start, call), what, found_,     \
                      expected_);                                                                  \
    } while (0)

static void check_work(struct scene *scene, const struct start *start, enum call call,
                       const struct plan *plan, const struct tally *before) {
    struct tally t = rig_since(&scene->rig, before);
    bool host = plan->side == SB_SIDE_CPU, device = !host;
    expect("host buffers", t.host_allocs, plan->allocates && !plan->on_device);
    expect("device buffers", t.device_allocs, plan->allocates && plan->on_device);
    expect("uploads in the statistics", t.uploads, plan->copies && device);
    expect("uploads of the device", t.calls[SB_SIM_UPLOAD], plan->copies && device);
    expect("downloads in the statistics", t.downloads, plan->copies && host);
    expect("downloads of the device", t.calls[SB_SIM_DOWNLOAD], plan->copies && host);
    expect("device copies in the statistics", t.device_copies, plan->moves && device);
    expect("device copies counted by the device", t.calls[SB_SIM_COPY], plan->moves && device);
    expect("host copies", t.host_copies, plan->moves && host);
    expect("device zero fills", t.calls[SB_SIM_ZERO], plan->zeroes && device);
}

static void check_result(struct scene *scene, const struct start *start, enum call call,
                         const struct outcome *o, void *out) {
    void *before[2] = {scene->cpu_ptr, scene->gpu_ptr};
    int32_t side = o->plan.side;
    expect("head", sb_mem_head(scene->mem), o->after.head);
    if (scene->bytes) {
        expect("host storage", sb_mem_storage(scene->mem, SB_SIDE_CPU),
               o->after.side[SB_SIDE_CPU].kind);
        expect("device storage", sb_mem_storage(scene->mem, SB_SIDE_GPU),
               o->after.side[SB_SIDE_GPU].kind);
    }
    if (o->plan.status != SB_OK || !call_kinds[call].gives_pointer)
        return;
    expect("a NULL pointer", out == NULL, false);
    expect("alignment", (uintptr_t)out % 64, 0);
    if (scene->bytes && before[side])
        expect("the same storage", out == before[side], o->same[side]);
}

/* Checks the bytes of the current sides, and that reading them again copies nothing. */
static void check_bytes(struct scene *scene, const struct start *start, enum call call,
                        const struct outcome *o) {
    struct tally before;
    if (o->fill < 0 || o->after.head == SB_HEAD_UNINITIALIZED || !scene->bytes)
        return;
    if (o->after.head != SB_HEAD_AT_GPU) {
        if (o->plan.status == SB_OK && sb_mem_head(scene->mem) == SB_HEAD_SYNCED)
            (void)read_cpu(scene->mem); /* waits for a queued copy */
        before = rig_tally(&scene->rig);
        const void *ptr = read_cpu(scene->mem);
        expect("right host bytes", bytes_are(ptr, scene->bytes, o->fill), true);
        expect("copies of a second read", rig_since(&scene->rig, &before).downloads, 0);
        if (scene->cpu_ptr && o->same[SB_SIDE_CPU] && start->head != SB_HEAD_AT_GPU)
            expect("the same host pointer", ptr == scene->cpu_ptr, true);
    }
    if (o->after.head != SB_HEAD_AT_CPU) {
        before = rig_tally(&scene->rig);
        const void *ptr = read_gpu(scene->mem);
        expect("right device bytes",
               device_bytes_are(scene->rig.context, ptr, scene->bytes, o->fill), true);
        expect("copies of a second read", rig_since(&scene->rig, &before).uploads, 0);
        if (scene->gpu_ptr && o->same[SB_SIDE_GPU])
            expect("the same device pointer", ptr == scene->gpu_ptr, true);
    }
    expect("head after reading", sb_mem_head(scene->mem), o->after.head);
}

static void check_lent(struct scene *scene, const struct start *start, enum call call,
                       const struct outcome *o) {
    bool current_cpu = table_is_current(start->head, SB_SIDE_CPU);
    bool current_gpu = table_is_current(start->head, SB_SIDE_GPU);
    if (table_is_borrowed(start->cpu))
        expect("runs of the host deleter", scene->cpu.deleted, !o->same[SB_SIDE_CPU]);
    if (table_is_borrowed(start->gpu))
        expect("runs of the device deleter", scene->gpu.deleted, !o->same[SB_SIDE_GPU]);
    if (is_read_only(start->cpu))
        expect("untouched read-only host bytes",
               lent_holds(&scene->cpu, current_cpu ? CURRENT : STALE), true);
    if (is_read_only(start->gpu))
        expect("untouched read-only device bytes",
               lent_holds(&scene->gpu, current_gpu ? CURRENT : STALE), true);
}

/* Makes the call and compares its work and its result with the table. */
static void check_call(struct scene *scene, const struct start *start, enum call call,
                       const struct outcome *o) {
    void *out = NULL;
    struct tally before = rig_tally(&scene->rig);
    support_poison_error(&err);
    sb_status status = make_call(scene, call, &out, &err);
    support_check_status(o->plan.status, status, &err, description(start, call), __FILE__,
                         __LINE__);
    if (o->plan.status != SB_OK)
        assert_null(out);
    if (scene->bytes) {
        check_work(scene, start, call, &o->plan, &before);
        check_lent(scene, start, call, o);
    } else {
        const struct tally since = rig_since(&scene->rig, &before);
        assert_no_work(&since);
    }
    check_result(scene, start, call, o, out);
    check_bytes(scene, start, call, o);
}

/* Tests a table cell. `backend` has host-coherent memory; NULL means the built-in backend. */
static void run_cell(const sb_backend *backend, const struct start *start, enum call call,
                     size_t bytes) {
    struct scene scene;
    scene_open_on(&scene, start, bytes, backend);
    scene_lend_extra(&scene, call);
    const struct outcome o = outcome_of(start, call, backend != NULL);
    check_call(&scene, start, call, &o);
    scene_close(&scene);
}

static const int32_t cpu_kinds[] = {SB_STORAGE_NONE, SB_STORAGE_OWNED, SB_STORAGE_PINNED,
                                    SB_STORAGE_BORROWED, SB_STORAGE_BORROWED_READ_ONLY};
static const int32_t gpu_kinds[] = {SB_STORAGE_NONE, SB_STORAGE_OWNED, SB_STORAGE_BORROWED,
                                    SB_STORAGE_BORROWED_READ_ONLY};

TEST(every_head_storage_and_call) {
    int cells = 0;
    skip_if_coherent();
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (size_t c = 0; c < sizeof cpu_kinds / sizeof cpu_kinds[0]; c++)
            for (size_t g = 0; g < sizeof gpu_kinds / sizeof gpu_kinds[0]; g++) {
                struct start start = {head, cpu_kinds[c], gpu_kinds[g]};
                for (enum call call = 0; is_reachable(&start) && call < CALLS; call++, cells++)
                    run_cell(NULL, &start, call, BYTES);
            }
    assert_int_equal(cells, (1 + 4 * 4 + 5 * 3 + 4 * 3 - 1) * CALLS);
}

/* Both sides share one storage, unless a side has storage that the caller lent. */
TEST(every_state_and_call_of_host_coherent_memory) {
    for (size_t s = 0; s < SCENE_COHERENT_STARTS; s++)
        for (enum call call = 0; call < CALLS; call++)
            run_cell(coherent_table(), &scene_coherent_starts[s], call, BYTES);
    for (enum call call = 0; call < CALLS; call++)
        run_cell(coherent_table(), &scene_coherent_starts[0], call, 0);
}

/* --- size 0 ------------------------------------------------------------------ */

TEST(size_zero_moves_the_head_without_any_work) {
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (enum call call = 0; call < CALLS; call++) {
            struct start start = {head, head == U || head == G ? SB_STORAGE_NONE : SB_STORAGE_OWNED,
                                  head == U || head == C ? SB_STORAGE_NONE : SB_STORAGE_OWNED};
            run_cell(NULL, &start, call, 0);
        }
}

TEST(size_zero_moves_out_of_read_only_loans) {
    struct scene scene;
    struct start start = {U, SB_STORAGE_NONE, SB_STORAGE_NONE};
    char byte = 'x';
    void *out;
    scene_open(&scene, &start, 0);
    assert_ok(sb_mem_set_cpu(scene.mem, &byte, 0, SB_READ_ONLY, NULL, NULL, &err));
    assert_ok(sb_mem_mutable_cpu(scene.mem, &out, &err));
    assert_ptr_not_equal(out, &byte);
    assert_int_equal(sb_mem_storage(scene.mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
    scene_close(&scene);
}

/* --- LOST ---------------------------------------------------------------------- */

#define LOST_COUNT ((int64_t)(BYTES / sizeof(float)))

/* Returns a blob whose data is lost: the device was lost while it wrote the data in place, and the
   host's bytes were not current. */
static sb_blob *lose(struct scene *scene, int32_t cpu, int32_t gpu) {
    sb_blob *blob;
    *scene = (struct scene){.bytes = BYTES};
    rig_open_on(&scene->rig, "sim:0", SB_CONTEXT_NO_PINNED);
    assert_ok(sb_blob_create_shaped(scene->rig.context, SB_DTYPE_F32, &(int64_t){LOST_COUNT}, 1,
                                    &blob, &err));
    assert_ok(sb_blob_mutable_mem(blob, SB_DATA, &scene->mem, &err));
    sb_mem_retain(scene->mem);
    scene_give(scene, SB_SIDE_CPU, cpu, STALE);
    scene_give(scene, SB_SIDE_GPU, gpu, CURRENT);
    assert_int_equal(sb_mem_head(scene->mem), SB_HEAD_AT_GPU);
    device_fail(scene->rig.context, SB_SIM_SCALE, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_int_equal(sb_mem_head(scene->mem), SB_HEAD_LOST);
    assert_int_equal(sb_context_device_status(scene->rig.context), SB_ERR_DEVICE_LOST);
    return blob;
}

static void lost_call(int32_t cpu, int32_t gpu, enum call call) {
    struct scene scene;
    struct start start = {SB_HEAD_LOST, cpu, gpu};
    sb_blob *blob = lose(&scene, cpu, gpu);
    void *out = NULL;
    bool works = call == SET_CPU || call == OVERWRITE_CPU;
    if (call == SET_CPU)
        scene.extra = lend_host(BYTES, LENT);
    if (call == SET_GPU) /* a call on a lost device fails for every pointer */
        scene.extra = (struct lent){.ptr = &scene, .bytes = BYTES};
    support_poison_error(&err);
    sb_status status = make_call(&scene, call, &out, &err);
    bool device_side = call_kinds[call].side == SB_SIDE_GPU || call == ASYNC_PULL || call == CLEAR;
    sb_status expected = works ? SB_OK
                         : call == SET_GPU || call_kinds[call].purpose == OVERWRITE ||
                                 (device_side && status == SB_ERR_DEVICE_LOST)
                             ? SB_ERR_DEVICE_LOST
                             : SB_ERR_UNINITIALIZED;
    support_check_status(expected, status, &err, description(&start, call), __FILE__, __LINE__);
    assert_int_equal(sb_mem_head(scene.mem), works ? SB_HEAD_AT_CPU : SB_HEAD_LOST);
    if (works) {
        memset(mem_pointer(scene.mem, MUTABLE_CPU), CURRENT, BYTES);
        assert_true(bytes_are(read_cpu(scene.mem), BYTES, CURRENT));
    }
    sb_blob_destroy(blob);
    sb_mem_release(scene.mem);
    assert_int_equal(scene.cpu.deleted, table_is_borrowed(cpu));
    assert_int_equal(scene.gpu.deleted, table_is_borrowed(gpu));
    rig_close(&scene.rig);
}

TEST(lost_memory_accepts_only_set_overwrite_and_release) {
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

static void host_only_call(int32_t head, int32_t kind, enum call call) {
    struct scene scene = {.bytes = BYTES};
    struct start start = {head, kind, SB_STORAGE_NONE};
    rig_open_on(&scene.rig, "cpu", SB_CONTEXT_NO_HOST_CACHE);
    assert_ok(sb_mem_create(scene.rig.context, BYTES, &scene.mem, &err));
    scene_arrange(&scene, &start);
    if (call == SET_CPU || call == SET_GPU)
        scene.extra = lend_host(BYTES, LENT);
    struct outcome o = outcome_of(&start, call, false);
    if (call_is_about_device(call))
        o = (struct outcome){{.status = SB_ERR_NO_DEVICE},
                             {.head = head, .side = {{kind, 0}, {SB_STORAGE_NONE, 0}}},
                             {true, true},
                             CURRENT};
    check_call(&scene, &start, call, &o);
    if (call == SET_GPU)
        lent_free(&scene.extra); /* the call has failed */
    scene_close(&scene);
}

TEST(host_only_contexts_follow_the_host_half_of_the_table) {
    static const int32_t kinds[] = {SB_STORAGE_OWNED, SB_STORAGE_BORROWED,
                                    SB_STORAGE_BORROWED_READ_ONLY};
    for (enum call call = 0; call < CALLS; call++) {
        host_only_call(U, SB_STORAGE_NONE, call);
        for (size_t k = 0; k < 3; k++)
            host_only_call(C, kinds[k], call);
    }
}

/* --- Caffe's textbook sequence ------------------------------------------------------- */

TEST(the_textbook_sequence_makes_four_copies) {
    static const enum call steps[] = {GPU_DATA, CPU_DATA,    MUTABLE_GPU, MUTABLE_GPU, CPU_DATA,
                                      GPU_DATA, MUTABLE_CPU, MUTABLE_GPU, MUTABLE_CPU};
    static const int up[] = {1, 0, 0, 0, 0, 0, 0, 1, 0}, down[] = {0, 0, 0, 0, 1, 0, 0, 0, 1};
    static const int32_t heads[] = {S, S, G, G, S, S, C, G, C};
    struct scene scene;
    struct start start = {C, SB_STORAGE_OWNED, SB_STORAGE_NONE};
    void *out;
    skip_if_coherent();
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
