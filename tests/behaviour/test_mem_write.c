/* Tests sb_write from every state of a memory and with every outcome. */
#include "blobs.h"
#include "pointers.h"
#include "scene.h"

#include "context/context.h"

#define BYTES   ((size_t)192)
#define WRITTEN 0x44

enum { UNTOUCHED = -1 };

struct given {
    const struct start *start;
    sb_side side;
    uint32_t flags;
    sb_write_outcome outcome; /* UNTOUCHED: the write is destroyed without sb_write_end */
};

static int32_t head_of(sb_side side) {
    return side == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU;
}

static bool holds(struct scene *s, sb_side side, const void *ptr, int fill) {
    return side == SB_SIDE_CPU ? bytes_are(ptr, BYTES, fill)
                               : device_bytes_are(s->rig.context, ptr, BYTES, fill);
}

static void write_bytes(struct scene *s, sb_side side, void *ptr) {
    if (side == SB_SIDE_CPU)
        memset(ptr, WRITTEN, BYTES);
    else
        device_fill(s->rig.context, ptr, BYTES, WRITTEN);
}

static int32_t storage_of(const struct start *start, sb_side side) {
    return side == SB_SIDE_CPU ? start->cpu : start->gpu;
}

static bool is_one(const struct given *g) {
    return g->start->is_coherent && g->start->cpu == SB_STORAGE_OWNED &&
           g->start->gpu == SB_STORAGE_OWNED;
}

static int32_t head_after(const struct given *g) {
    const bool in_place = !is_read_only(storage_of(g->start, g->side));
    if (g->outcome == SB_WRITE_DONE)
        return head_of(g->side);
    if (g->outcome == SB_WRITE_SPOILED && g->start->head == SB_HEAD_SYNCED && in_place &&
        !is_one(g))
        return head_of(!g->side);
    return g->start->head;
}

static void check_bytes(struct scene *s, const struct given *g) {
    const int32_t head = sb_mem_head(s->mem);
    const bool is_spoiled = g->outcome == SB_WRITE_SPOILED &&
                            (head == head_of(g->side) || is_one(g)) &&
                            !is_read_only(storage_of(g->start, g->side));
    const int fill = g->outcome == SB_WRITE_DONE     ? WRITTEN
                     : head == SB_HEAD_UNINITIALIZED ? 0
                                                     : CURRENT;
    if (!is_spoiled)
        assert_true(bytes_are(mem_pointer(s->mem, CPU_DATA), BYTES, fill) &&
                    device_bytes_are(s->rig.context, mem_pointer(s->mem, GPU_DATA), BYTES, fill));
}

static void check(const struct given *g) {
    struct scene s;
    sb_write *write = NULL;
    void *ptr = NULL;
    scene_open(&s, g->start, BYTES);
    assert_ok(sb_write_begin(s.mem, g->side, g->flags, &ptr, &write, &err));
    if (g->flags & SB_WRITE_QUEUED)
        assert_ok(sb_context_synchronize(s.rig.context, &err));
    assert_int_equal(sb_mem_head(s.mem), g->start->head);
    if (!(g->flags & SB_WRITE_OVERWRITE))
        assert_true(holds(&s, g->side, ptr, g->start->head == SB_HEAD_UNINITIALIZED ? 0 : CURRENT));
    if (g->outcome != UNTOUCHED) {
        write_bytes(&s, g->side, ptr);
        assert_ok(sb_write_end(write, g->outcome, &err));
        assert_status(SB_ERR_INVALID_ARGUMENT, sb_write_end(write, SB_WRITE_DONE, &err));
    }
    assert_int_equal(sb_mem_head(s.mem), head_after(g));
    assert_int_equal(s.cpu.deleted + s.gpu.deleted, 0);
    sb_write_destroy(write);
    const bool replaces =
        g->outcome == SB_WRITE_DONE && is_read_only(storage_of(g->start, g->side));
    assert_int_equal(s.cpu.deleted + s.gpu.deleted, replaces);
    check_bytes(&s, g);
    scene_close(&s);
}

TEST(a_write_changes_nothing_before_its_end) {
    for (size_t i = 0; i < SCENE_STARTS; i++)
        for (sb_side side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++)
            for (uint32_t flags = 0; flags <= (SB_WRITE_OVERWRITE | SB_WRITE_QUEUED);
                 flags += SB_WRITE_OVERWRITE)
                for (sb_write_outcome end = UNTOUCHED; end < SB_WRITE_ABANDONED; end++) {
                    const struct given g = {&scene_starts[i], side, flags, end};
                    const bool discards = (flags & SB_WRITE_OVERWRITE) && end != SB_WRITE_DONE;
                    if (!discards || !table_is_current(g.start->head, side))
                        check(&g);
                }
}

TEST_ON(rig, storage_that_may_still_be_written_is_not_freed) {
    for (int read_only = 0; read_only < 2; read_only++) {
        sb_write *write;
        void *ptr;
        rig_reopen_on(f, "cpu", SB_CONTEXT_NO_HOST_CACHE);
        struct lent lent = lend_host(BYTES, CURRENT);
        sb_mem *mem = test_mem(f->context, BYTES);
        if (read_only)
            assert_ok(sb_mem_set_cpu(mem, lent.ptr, BYTES, SB_READ_ONLY, NULL, NULL, &err));
        assert_ok(sb_write_begin(mem, SB_SIDE_CPU, 0, &ptr, &write, &err));
        assert_ok(sb_write_end(write, SB_WRITE_ABANDONED, &err));
        sb_write_destroy(write);
        test_end(mem);
        memset(ptr, WRITTEN, BYTES);
        assert_true(lent_holds(&lent, CURRENT));
        assert_int_equal(f->counting.live_buffers, 1);
        assert_true(sb_mem_is_unique(mem));
        if (read_only)
            sb__host_free(f->context, ptr, BYTES, false);
        sb_mem_release(mem);
    }
}

TEST_ON(rig, bytes_that_may_still_be_written_are_not_current) {
    for (sb_side side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++) {
        sb_write *write;
        void *ptr;
        sb_mem *mem = mem_filled(f->context, BYTES, CURRENT);
        (void)mem_pointer(mem, GPU_DATA);
        assert_ok(sb_write_begin(mem, side, 0, &ptr, &write, &err));
        assert_ok(sb_write_end(write, SB_WRITE_ABANDONED, &err));
        assert_int_equal(sb_mem_head(mem), head_of(!side));
        sb_write_destroy(write);
        sb_mem_release(mem);
        sb_mem_release(mem); /* releases the reference of the write */
    }
}

TEST_ON(rig, sides_flags_and_outcomes_are_checked) {
    sb_write *write = NULL;
    void *ptr = NULL;
    rig_reopen_on(f, "cpu", 0);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_write_begin(mem, 2, 0, &ptr, &write, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_write_begin(mem, 0, 1, &ptr, &write, &err));
    assert_status(SB_ERR_NO_DEVICE, sb_write_begin(mem, SB_SIDE_GPU, 0, &ptr, &write, &err));
    assert_true(!ptr && !write);
    assert_int_equal(sb_mem_storage(mem, 2), SB_STORAGE_NONE);
    assert_ok(sb_write_begin(mem, SB_SIDE_CPU, SB_WRITE_OVERWRITE, &ptr, &write, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_write_end(write, 3, &err));
    assert_status(SB_ERR_INVALID_ARGUMENT, sb_write_end(write, -1, &err));
    assert_error(INVALID, sb_mem_evict_cpu(mem, &err),
                 "a write to the memory is open; end it first");
    sb_write_destroy(write);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
}
