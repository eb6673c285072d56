#include "scene.h"

#include "pointers.h"
#include "sim_tables.h"

const struct start scene_starts[SCENE_STARTS] = {
    {SB_HEAD_UNINITIALIZED, SB_STORAGE_NONE, SB_STORAGE_NONE, false},
    {SB_HEAD_AT_CPU, SB_STORAGE_OWNED, SB_STORAGE_NONE, false},
    {SB_HEAD_AT_CPU, SB_STORAGE_PINNED, SB_STORAGE_OWNED, false},
    {SB_HEAD_AT_CPU, SB_STORAGE_BORROWED, SB_STORAGE_BORROWED, false},
    {SB_HEAD_AT_CPU, SB_STORAGE_BORROWED_READ_ONLY, SB_STORAGE_BORROWED_READ_ONLY, false},
    {SB_HEAD_AT_GPU, SB_STORAGE_NONE, SB_STORAGE_OWNED, false},
    {SB_HEAD_AT_GPU, SB_STORAGE_OWNED, SB_STORAGE_OWNED, false},
    {SB_HEAD_AT_GPU, SB_STORAGE_PINNED, SB_STORAGE_OWNED, false},
    {SB_HEAD_AT_GPU, SB_STORAGE_BORROWED, SB_STORAGE_BORROWED, false},
    {SB_HEAD_AT_GPU, SB_STORAGE_BORROWED_READ_ONLY, SB_STORAGE_BORROWED_READ_ONLY, false},
    {SB_HEAD_SYNCED, SB_STORAGE_OWNED, SB_STORAGE_OWNED, false},
    {SB_HEAD_SYNCED, SB_STORAGE_BORROWED, SB_STORAGE_BORROWED, false},
    {SB_HEAD_SYNCED, SB_STORAGE_BORROWED_READ_ONLY, SB_STORAGE_OWNED, false},
    {SB_HEAD_SYNCED, SB_STORAGE_OWNED, SB_STORAGE_BORROWED_READ_ONLY, false},
    {SB_HEAD_UNINITIALIZED, SB_STORAGE_NONE, SB_STORAGE_NONE, true},
    {SB_HEAD_AT_CPU, SB_STORAGE_OWNED, SB_STORAGE_OWNED, true},
    {SB_HEAD_AT_GPU, SB_STORAGE_OWNED, SB_STORAGE_OWNED, true},
    {SB_HEAD_SYNCED, SB_STORAGE_OWNED, SB_STORAGE_OWNED, true},
    {SB_HEAD_AT_CPU, SB_STORAGE_BORROWED, SB_STORAGE_NONE, true},
    {SB_HEAD_AT_CPU, SB_STORAGE_BORROWED_READ_ONLY, SB_STORAGE_OWNED, true},
    {SB_HEAD_SYNCED, SB_STORAGE_BORROWED, SB_STORAGE_OWNED, true},
    {SB_HEAD_AT_GPU, SB_STORAGE_NONE, SB_STORAGE_BORROWED, true},
    {SB_HEAD_AT_GPU, SB_STORAGE_NONE, SB_STORAGE_BORROWED_READ_ONLY, true},
    {SB_HEAD_AT_CPU, SB_STORAGE_OWNED, SB_STORAGE_BORROWED, true},
};

bool is_read_only(int32_t kind) {
    return kind == SB_STORAGE_BORROWED_READ_ONLY;
}

static void give(struct scene *scene, int32_t side, int32_t kind, int fill) {
    const bool on_host = side == SB_SIDE_CPU;
    sb_context *context = scene->rig.context;
    struct lent *lent = on_host ? &scene->cpu : &scene->gpu;
    if (kind == SB_STORAGE_NONE)
        return;
    if (table_is_borrowed(kind)) {
        *lent = on_host ? lend_host(scene->bytes, fill) : lend_device(context, scene->bytes, fill);
        assert_ok((on_host ? sb_mem_set_cpu : sb_mem_set_gpu)(scene->mem, lent->ptr, scene->bytes,
                                                              is_read_only(kind) ? SB_READ_ONLY : 0,
                                                              lent_deleter, lent, &err));
    } else if (on_host) {
        memset(mem_pointer(scene->mem, OVERWRITE_CPU), fill, scene->bytes);
    } else {
        device_fill(context, mem_pointer(scene->mem, OVERWRITE_GPU), scene->bytes, fill);
    }
}

static void place_head(struct scene *scene, const struct start *start) {
    const bool is_synced = start->head == SB_HEAD_SYNCED;
    if (start->head == SB_HEAD_UNINITIALIZED)
        return;
    if (start->head == SB_HEAD_AT_CPU || (is_synced && is_read_only(start->cpu))) {
        give(scene, SB_SIDE_GPU, start->gpu, STALE);
        give(scene, SB_SIDE_CPU, start->cpu, CURRENT);
        if (is_synced)
            (void)mem_pointer(scene->mem, GPU_DATA);
    } else {
        give(scene, SB_SIDE_CPU, start->cpu, STALE);
        give(scene, SB_SIDE_GPU, start->gpu, CURRENT);
        if (is_synced)
            (void)mem_pointer(scene->mem, CPU_DATA);
    }
}

void scene_open(struct scene *scene, const struct start *start, size_t bytes) {
    const sb_backend *backend = start->is_coherent ? coherent_table() : NULL;
    const bool pinned = start->cpu == SB_STORAGE_PINNED;
    const uint32_t flags =
        SB_CONTEXT_NO_HOST_CACHE | (pinned ? 0u : (uint32_t)SB_CONTEXT_NO_PINNED);
    *scene = (struct scene){.bytes = bytes};
    rig_open_options(&scene->rig,
                     CONTEXT_OPTIONS(.device = "sim:0", .backend = backend, .flags = flags));
    assert_ok(sb_mem_create(scene->rig.context, bytes, &scene->mem, &err));
    place_head(scene, start);
    assert_int_equal(sb_mem_head(scene->mem), start->head);
    if (bytes) {
        assert_int_equal(sb_mem_storage(scene->mem, SB_SIDE_CPU), start->cpu);
        assert_int_equal(sb_mem_storage(scene->mem, SB_SIDE_GPU), start->gpu);
    }
}

void scene_close(struct scene *scene) {
    struct lent *all[] = {&scene->cpu, &scene->gpu, &scene->extra};
    sb_mem_release(scene->mem);
    for (int i = 0; i < 3; i++)
        if (all[i]->ptr) {
            assert_int_equal(all[i]->deleted, 1);
            lent_free(all[i]);
        }
    rig_close(&scene->rig);
}
