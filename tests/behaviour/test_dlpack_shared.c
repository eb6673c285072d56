/* Tests the import of a tensor that another blob has exported: both blobs use the same storage, and
   a write through one blob is visible through the other. No tensor wraps another tensor. */
#include "blobs.h"

#include <syncblob/dlpack.h>

#define WARM 8

enum form { READ, WRITE, LEGACY, FORMS };

/* Exports the part `out` of `from` as a tensor, and imports it as the part `in` of `to`. */
static void pass(sb_blob *from, sb_part out, sb_blob *to, sb_part in, uint32_t flags,
                 enum form form, int32_t side) {
    sb_dl_managed_versioned *t;
    sb_dl_managed *legacy;
    if (form == LEGACY) {
        assert_ok(sb_blob_to_legacy_dlpack(from, out, side, &legacy, &err));
        assert_ok(sb_blob_from_legacy_dlpack(to, in, legacy, flags, &err));
        return;
    }
    assert_ok(form == READ ? sb_blob_to_dlpack(from, out, side, &t, &err)
                           : sb_blob_to_mutable_dlpack(from, out, side, &t, &err));
    assert_ok(sb_blob_from_dlpack(to, in, t, flags, &err));
}

static sb_blob *ramp(sb_context *context) {
    static const float values[4] = {1, 2, 3, 4};
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, 4);
    mem_place(data_of(blob), SB_HEAD_AT_CPU, values, sizeof values);
    return blob;
}

/* --- round trips ---------------------------------------------------------------------------- */

/* Where round trips lead, in each form or in all forms in turn. Odd trips lead back. */
static const struct way {
    bool to_and_fro;    /* between blobs of two contexts, otherwise onto the blob itself */
    bool between_parts; /* between data and diff */
    bool on_device, on_either_side; /* otherwise on the host */
    bool in_all_forms;
} ways[] = {
    {false},
    {.on_device = true},
    {.to_and_fro = true},
    {.between_parts = true},
    {.on_either_side = true},
    {.in_all_forms = true},
};

static void go(const struct way *way, sb_blob *a, sb_blob *b, enum form form, int64_t i) {
    const bool odd = i % 2;
    const sb_part out = way->between_parts && odd ? SB_DIFF : SB_DATA;
    const sb_part in = way->between_parts && !odd ? SB_DIFF : SB_DATA;
    const bool on_device = way->on_device || (way->on_either_side && odd);
    pass(way->to_and_fro && odd ? b : a, out, way->to_and_fro && !odd ? b : a, in, 0,
         way->in_all_forms ? (enum form)(i % FORMS) : form, on_device ? SB_SIDE_GPU : SB_SIDE_CPU);
}

static void trip(struct rigs *rigs, const struct way *way, enum form form) {
    static const float values[4] = {1, 2, 3, 4};
    const struct counting_allocator *one = &rigs->a.counting, *two = &rigs->b.counting;
    int64_t blocks = 0;
    size_t bytes = 0;
    /* If each import wrapped its tensor, the release of 80,000 tensors would overflow the stack. */
    const int64_t trips = test_is_quick() ? 8000 : 80000;
    rigs_reopen_on(rigs, "sim:0", "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    sb_blob *a = test_vector(rigs->a.context, SB_DTYPE_F32, 4), *b = ramp(rigs->b.context);
    struct lent lent = lend_host(16, 0);
    memcpy(lent.ptr, values, sizeof values);
    assert_ok(sb_blob_set_cpu(a, SB_DATA, lent.ptr, 16, 0, lent_deleter, &lent, &err));
    for (int64_t i = 0; i < trips; i++) {
        go(way, a, b, form, i);
        if (i == WARM) {
            blocks = one->live_blocks + two->live_blocks;
            bytes = one->live_bytes + two->live_bytes;
        }
    }
    assert_true(one->live_blocks + two->live_blocks <= blocks);
    assert_true(one->live_bytes + two->live_bytes <= bytes);
    if (!way->between_parts)
        assert_true(mem_holds(data_of(a), values, sizeof values));
    test_end(a);
    test_end(b);
    assert_int_equal(lent.deleted, 1);
}

TEST_ON(rigs, round_trips_do_not_nest) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (enum form form = READ; form < FORMS; form++)
            trip(f, &ways[i], form);
}

/* --- one storage ---------------------------------------------------------------------------- */

static sb_blob *empty(sb_context *context) {
    return test_vector(context, SB_DTYPE_F32, 4);
}

static const float *floats_of(sb_blob *blob) {
    return host_of(blob, SB_DATA);
}

TEST_ON(rig, each_blob_sees_the_writes_of_the_other) {
    for (enum form form = WRITE; form < FORMS; form++) {
        float *data;
        rig_reopen_on(f, NULL, 0);
        sb_blob *a = ramp(f->context), *b = empty(f->context), *c = empty(f->context);
        pass(a, SB_DATA, b, SB_DATA, 0, form, SB_SIDE_CPU);
        pass(b, SB_DATA, c, SB_DATA, 0, form, SB_SIDE_CPU);
        assert_int_equal(f->counting.live_buffers, 1);
        assert_ptr_equal(floats_of(a), floats_of(b));
        assert_ptr_equal(floats_of(a), floats_of(c));
        assert_int_equal(sb_mem_storage(data_of(c), SB_SIDE_CPU), SB_STORAGE_BORROWED);
        assert_int_equal(rig_stats(f).borrowed_bytes, 0);
        assert_ok(sb_blob_mutable_cpu_f32(c, SB_DATA, &data, &err));
        data[1] = 20;
        test_end(b);
        assert_true(floats_of(a)[1] == 20);
        assert_ok(sb_blob_mutable_cpu_f32(a, SB_DATA, &data, &err));
        data[2] = 30;
        test_end(a);
        assert_memory_equal(floats_of(c), ((float[]){1, 20, 30, 4}), 16);
    }
}

TEST_ON(rig, a_blob_leaves_read_only_storage_before_it_writes) {
    static const float values[4] = {1, 2, 3, 4};
    for (int32_t side = 0; side < 2; side++) {
        void *data;
        rig_reopen_on(f, "sim:0", 0);
        sb_blob *a = ramp(f->context), *b = empty(f->context), *c = empty(f->context);
        pass(a, SB_DATA, b, SB_DATA, 0, READ, side);
        pass(b, SB_DATA, c, SB_DATA, 0, READ, side);
        assert_int_equal(sb_mem_storage(data_of(c), side), SB_STORAGE_BORROWED_READ_ONLY);
        if (side == SB_SIDE_CPU) {
            assert_ok(sb_blob_mutable_cpu(b, SB_DATA, &data, &err));
            memset(data, 0, 16);
        } else {
            assert_ok(sb_blob_mutable_gpu(b, SB_DATA, &data, &err));
            device_fill(f->context, data, 16, 0);
        }
        assert_true(mem_holds(data_of(a), values, sizeof values));
        assert_true(mem_holds(data_of(c), values, sizeof values));
        pass(c, SB_DATA, b, SB_DATA, 0, WRITE, side); /* c gets new storage, which b shares */
        assert_true(sb_mem_is_unique(data_of(a)));
        assert_false(sb_mem_is_unique(data_of(b)));
        test_end(a);
        assert_true(mem_holds(data_of(b), values, sizeof values));
    }
}

TEST_ON(rig, a_memory_whose_writes_others_may_see_is_not_unique) {
    sb_blob *a = ramp(f->context), *b = empty(f->context);
    pass(a, SB_DATA, b, SB_DATA, 0, READ, SB_SIDE_CPU);
    assert_false(sb_mem_is_unique(data_of(a))); /* b would see a's writes */
    assert_true(sb_mem_is_unique(data_of(b)));  /* b's writes go to new storage */
    (void)host_to_write(b, SB_DATA);
    assert_true(sb_mem_is_unique(data_of(a)));
    pass(a, SB_DATA, b, SB_DATA, 0, WRITE, SB_SIDE_CPU);
    assert_false(sb_mem_is_unique(data_of(a)));
    assert_false(sb_mem_is_unique(data_of(b)));
    assert_ok(sb_blob_reshape(b, (int64_t[]){9}, 1, NULL, &err));
    assert_true(sb_mem_is_unique(data_of(a)));
    pass(a, SB_DATA, b, SB_DIFF, SB_DLPACK_RESHAPE, WRITE, SB_SIDE_GPU);
    assert_false(sb_mem_is_unique(data_of(a)));
    assert_false(sb_mem_is_unique(diff_of(b)));
    test_end(a);
    assert_true(sb_mem_is_unique(diff_of(b)));
}

/* --- a blob replaces or frees shared storage -------------------------------------------------- */

/* The destruction of a blob waits for its queued work, or puts its storage into quarantine, because
   other blobs may use the storage. */
TEST_ON(rig, queued_work_ends_before_its_storage_is_released) {
    void *out;
    rig_schedule(f, SB_SIM_LAZY, 3);
    sb_stream stream = rig_stream(f);
    sb_blob *a = ramp(f->context), *b = empty(f->context);
    pass(a, SB_DATA, b, SB_DATA, 0, WRITE, SB_SIDE_GPU);
    assert_ok(sb_blob_mutable_gpu_on(b, SB_DATA, stream, &out, &err));
    struct look look;
    rig_look(&look, f, stream, out, 16);
    test_end(b);
    assert_true(look.ran && look.reached);
    test_end(a);
    rig_end_stream(f, stream);
}

/* --- parts, types, contexts ----------------------------------------------------------------- */

/* A program may change the offset, shape and type of a tensor before it imports the tensor. */
TEST_ON(rig, a_part_keeps_the_whole_storage) {
    sb_dl_managed_versioned *t, *again;
    sb_blob *part;
    rig_reopen_on(f, NULL, SB_CONTEXT_NO_HOST_CACHE);
    struct lent lent = lend_host(16, 0x11);
    sb_blob *blob = empty(f->context);
    assert_ok(sb_blob_set_cpu(blob, SB_DATA, lent.ptr, 16, 0, lent_deleter, &lent, &err));
    assert_ok(sb_blob_to_mutable_dlpack(blob, SB_DATA, SB_SIDE_CPU, &t, &err));
    t->dl_tensor.byte_offset = 6;
    t->dl_tensor.shape[0] = 5;
    t->dl_tensor.dtype = (sb_dl_data_type){SB_DL_CODE_FLOAT, 16, 1};
    assert_ok(sb_blob_create_from_dlpack(f->context, t, &part, &err));
    test_end(blob);
    assert_int_equal(sb_mem_size(data_of(part)), 10);
    assert_ok(sb_blob_to_dlpack(part, SB_DATA, SB_SIDE_CPU, &again, &err));
    assert_ptr_equal(again->dl_tensor.data, (char *)lent.ptr + 6);
    assert_int_equal(again->dl_tensor.dtype.bits, 16);
    sb_blob_destroy(part);
    assert_true(bytes_are(again->dl_tensor.data, 10, 0x11));
    assert_int_equal(lent.deleted, 0);
    again->deleter(again);
    assert_int_equal(lent.deleted, 1);
}

TEST(another_context_keeps_the_context_that_made_the_storage) {
    for (enum form form = READ; form < FORMS; form++) {
        struct rig rig, other;
        sb_dl_managed_versioned *t;
        rig_open_on(&rig, "sim:0", SB_CONTEXT_NO_HOST_CACHE);
        rig_open_on(&other, NULL, SB_CONTEXT_NO_HOST_CACHE);
        sb_blob *a = ramp(rig.context), *b = empty(other.context);
        pass(a, SB_DATA, b, SB_DATA, 0, form, SB_SIDE_CPU);
        assert_int_equal(rig_stats(&other).borrowed_bytes, 16);
        assert_int_equal(rig_stats(&rig).borrowed_bytes, 0);
        test_end(a);
        sb_context_release(rig.context);
        assert_true(floats_of(b)[3] == 4);
        assert_ok(sb_blob_to_dlpack(b, SB_DATA, SB_SIDE_CPU, &t, &err));
        test_end(b);
        assert_int_equal(rig_stats(&other).borrowed_bytes, 0);
        sb_context_release(other.context);
        assert_true(((const float *)t->dl_tensor.data)[3] == 4);
        t->deleter(t);
        counting_allocator_assert_clean(&rig.counting);
        counting_allocator_assert_clean(&other.counting);
    }
}
