/* Tests exports of blobs as DLPack tensors, and imports of tensors as a blob's memory. */
#include "blobs.h"
#include "pointers.h"

#include "sim/table.h"

static void end(sb_dl_managed_versioned *tensor) {
    tensor->deleter(tensor);
}

static sb_dl_managed_versioned *exported(const sb_blob *blob, sb_part part, int32_t side) {
    sb_dl_managed_versioned *tensor = NULL;
    assert_ok(sb_blob_to_dlpack(blob, part, side, &tensor, &err));
    return tensor;
}

static sb_dl_managed_versioned *exported_mutable(sb_blob *blob, sb_part part, int32_t side) {
    sb_dl_managed_versioned *tensor = NULL;
    assert_ok(sb_blob_to_mutable_dlpack(blob, part, side, &tensor, &err));
    return tensor;
}

TEST_ON(rig, an_export_is_an_access_to_its_side) {
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    static const enum call reading[] = {CPU_DATA, GPU_DATA}, writing[] = {MUTABLE_CPU, MUTABLE_GPU};
    for (int32_t head = SB_HEAD_UNINITIALIZED; head <= SB_HEAD_SYNCED; head++)
        for (int32_t side = 0; side < 2; side++)
            for (int how = 0; how < 4; how++) {
                const bool writes = how & 1;
                const sb_part part = how & 2 ? SB_DIFF : SB_DATA;
                rig_reopen_on(f, "sim:3", 0);
                sb_blob *twin = test_vector(f->context, SB_DTYPE_F32, 6);
                sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 6);
                sb_mem *mem = mem_of(blob, part), *same = data_of(twin);
                mem_place(mem, head, values, sizeof values);
                mem_place(same, head, values, sizeof values);
                struct tally before = rig_tally(f);
                (void)mem_pointer(same, writes ? writing[side] : reading[side]);
                struct tally access = rig_since(f, &before);
                before = rig_tally(f);
                sb_dl_managed_versioned *t =
                    writes ? exported_mutable(blob, part, side) : exported(blob, part, side);
                struct tally export = rig_since(f, &before);
                assert_memory_equal(&export, &access, sizeof access);
                assert_int_equal(sb_mem_head(mem), sb_mem_head(same));
                assert_int_equal(t->flags, writes ? 0 : SB_DL_READ_ONLY);
                assert_int_equal(t->dl_tensor.device.device_type,
                                 side == SB_SIDE_GPU ? SB_DL_DEVICE_EXTENSION : SB_DL_DEVICE_CPU);
                assert_int_equal(t->dl_tensor.device.device_id, side == SB_SIDE_GPU ? 3 : 0);
                assert_ptr_equal(t->dl_tensor.data, mem_pointer(mem, reading[side]));
                end(t);
            }
}

TEST(a_tensor_outlives_blob_and_context) {
    struct rig rig;
    rig_open(&rig);
    sb_blob *blob = blob_of_count(rig.context, SB_DTYPE_F32, 4);
    sb_dl_managed_versioned *host = exported_mutable(blob, SB_DATA, SB_SIDE_CPU);
    sb_dl_managed_versioned *device = exported(blob, SB_DATA, SB_SIDE_GPU);
    sb_dl_managed *legacy;
    (void)blob_pointer(blob, SB_DIFF, GPU_DATA);
    (void)blob_pointer(blob, SB_DIFF, CPU_DATA);
    assert_int_equal(sb_mem_head(diff_of(blob)), SB_HEAD_SYNCED);
    assert_ok(sb_blob_to_legacy_dlpack(blob, SB_DIFF, SB_SIDE_CPU, &legacy, &err));
    assert_int_equal(sb_mem_head(diff_of(blob)), SB_HEAD_AT_CPU);
    sb_blob_destroy(blob);
    sb_context_release(rig.context);
    memset(host->dl_tensor.data, 7, 16);
    end(host);
    memset(legacy->dl_tensor.data, 7, 16);
    legacy->deleter(legacy);
    end(device);
    counting_allocator_assert_clean(&rig.counting);
}

TEST(a_backends_table_defines_its_device_types) {
    for (int is_older = 0; is_older < 2; is_older++) {
        sb_blob *again;
        sb_backend backend = sb__sim_backend;
        backend.name = "mine";
        backend.dlpack_device = 10;
        backend.dlpack_pinned = 11;
        if (is_older)
            backend.struct_size = offsetof(sb_backend, dlpack_device);
        sb_context *context =
            test_context(CONTEXT_OPTIONS(.device = "mine:5", .backend = &backend));
        sb_blob *blob = test_vector(context, SB_DTYPE_F32, 4);
        for (int32_t side = 0; side < 2; side++) {
            sb_dl_managed_versioned *t = NULL;
            const sb_status st = sb_blob_to_dlpack(blob, SB_DATA, side, &t, &err);
            assert_int_equal(st, is_older && side ? SB_ERR_UNSUPPORTED : SB_OK);
            if (st != SB_OK) {
                assert_null(t);
                continue;
            }
            assert_int_equal(t->dl_tensor.device.device_type, is_older ? SB_DL_DEVICE_CPU
                                                              : side == SB_SIDE_GPU ? 10
                                                                                    : 11);
            assert_int_equal(t->dl_tensor.device.device_id, side == SB_SIDE_GPU ? 5 : 0);
            assert_ok(sb_blob_create_from_dlpack(context, t, &again, &err));
            assert_int_equal(sb_mem_storage(data_of(again), side), SB_STORAGE_BORROWED_READ_ONLY);
            sb_blob_destroy(again);
        }
        test_end(blob);
        test_end(context);
    }
}

TEST_ON(rig, exports_that_are_refused) {
    sb_dl_managed_versioned *t = NULL;
    sb_dl_managed *legacy = NULL;
    rig_reopen_on(f, NULL, 0);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
    sb_blob *never = test_unshaped(f->context, SB_DTYPE_F32);
    assert_status(INVALID, sb_blob_to_dlpack(blob, SB_DATA, 2, &t, &err));
    assert_status(INVALID, sb_blob_to_dlpack(blob, SB_DATA, -1, &t, &err));
    assert_status(INVALID, sb_blob_to_dlpack(never, SB_DATA, 0, &t, &err));
    assert_status(SB_ERR_NO_DEVICE, sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_GPU, &t, &err));
    assert_status(SB_ERR_NO_DEVICE,
                  sb_blob_to_legacy_dlpack(blob, SB_DATA, SB_SIDE_GPU, &legacy, &err));
    assert_null(t);
    assert_null(legacy);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_UNINITIALIZED);
}

static sb_status import(sb_blob *blob, struct tensor *tensor, sb_error *err) {
    return sb_blob_from_dlpack(blob, SB_DATA, &tensor->versioned, 0, err);
}

TEST_ON(rig, refused_tensors_are_reported) {
    struct tensor t;
    sb_dl_tensor *dl = &t.versioned.dl_tensor;
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    tensor_make(&t);
    t.versioned.flags = SB_DL_READ_ONLY | 8;
    assert_error(SB_ERR_UNSUPPORTED, import(blob, &t, &err), "the tensor has unknown flags 0x8");
    t.versioned.flags = 0;
    dl->data = NULL;
    assert_error(INVALID, import(blob, &t, &err), "the tensor's data is NULL");
    dl->data = (void *)(UINTPTR_MAX - 7);
    assert_status(SB_ERR_SIZE_OVERFLOW, import(blob, &t, &err));
    dl->data = t.lent.ptr;
    dl->byte_offset = 2;
    assert_error(INVALID, import(blob, &t, &err), "the tensor's data is not aligned for f32");
    dl->byte_offset = PTRDIFF_MAX - 19; /* the tensor's 24 bytes would end beyond PTRDIFF_MAX */
    assert_status(SB_ERR_SIZE_OVERFLOW, import(blob, &t, &err));
    dl->byte_offset = 0;
    /* DLPack's code 6 is a boolean. */
    dl->dtype = (sb_dl_data_type){6, 8, 1};
    assert_status(SB_ERR_UNSUPPORTED, import(blob, &t, &err));
    dl->dtype = (sb_dl_data_type){SB_DL_CODE_FLOAT, 32, 1};
    dl->device.device_type = 13; /* CUDA's managed memory */
    assert_status(SB_ERR_WRONG_DEVICE, import(blob, &t, &err));
    dl->device.device_type = 1; /* the host */
    t.versioned.deleter = NULL;
    t.legacy.deleter = NULL;
    assert_ok(import(blob, &t, &err));
    assert_ok(sb_blob_from_legacy_dlpack(blob, SB_DIFF, &t.legacy, 0, &err));
    test_end(blob);
    assert_int_equal(t.deleted, 0);
}

enum form { AS_READ, AS_WRITE, AS_LEGACY, FORMS };

static void pass(sb_blob *from, sb_part out, sb_blob *to, sb_part in, uint32_t flags,
                 enum form form, int32_t side) {
    sb_dl_managed_versioned *t;
    sb_dl_managed *legacy;
    if (form == AS_LEGACY) {
        assert_ok(sb_blob_to_legacy_dlpack(from, out, side, &legacy, &err));
        assert_ok(sb_blob_from_legacy_dlpack(to, in, legacy, flags, &err));
        return;
    }
    assert_ok(form == AS_READ ? sb_blob_to_dlpack(from, out, side, &t, &err)
                              : sb_blob_to_mutable_dlpack(from, out, side, &t, &err));
    assert_ok(sb_blob_from_dlpack(to, in, t, flags, &err));
}

static sb_blob *ramp(sb_context *context) {
    static const float values[4] = {1, 2, 3, 4};
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, 4);
    mem_place(data_of(blob), SB_HEAD_AT_CPU, values, sizeof values);
    return blob;
}

/* If each import wrapped its tensor, the release of 200,000 nested tensors would overflow the
   stack. */
TEST_ON(rigs, round_trips_do_not_nest) {
    enum { WARM = 100, SLACK = 16 };
    const int64_t trips = test_is_quick() ? 20000 : 200000;
    uint64_t random = 1;
    int64_t blocks = 0;
    rigs_reopen_on(f, "sim:0", "sim:0", SB_CONTEXT_NO_HOST_CACHE);
    sb_blob *blobs[] = {ramp(f->a.context), ramp(f->b.context)};
    struct lent lent = lend_host(16, 0);
    sb_blob *none = test_vector(f->a.context, SB_DTYPE_F32, 0);
    pass(none, SB_DATA, none, SB_DIFF, 0, AS_READ, SB_SIDE_CPU);
    for (int i = 0; i < 2; i++)
        memcpy(host_to_write(blobs[i], SB_DIFF), host_of(blobs[i], SB_DATA), 16);
    memcpy(lent.ptr, host_of(blobs[0], SB_DATA), 16);
    assert_ok(sb_blob_set_cpu(blobs[0], SB_DATA, lent.ptr, 16, 0, lent_deleter, &lent, &err));
    for (int64_t i = 0; i < trips; i++) {
        const uint64_t r = test_random(&random);
        const sb_side side = r >> 4 & 1; /* device memory can be imported only in its context */
        sb_blob *from = blobs[r & 1], *to = side == SB_SIDE_GPU ? from : blobs[r >> 2 & 1];
        pass(from, r >> 1 & 1, to, r >> 3 & 1, 0, (enum form)((r >> 8) % FORMS), side);
        const int64_t now = f->a.counting.live_blocks + f->b.counting.live_blocks;
        blocks = i < WARM ? now : blocks;
        assert_true(now <= blocks + SLACK);
    }
    for (int i = 0; i < 4; i++)
        assert_true(mem_holds(mem_of(blobs[i / 2], i % 2), (float[]){1, 2, 3, 4}, 16));
    test_end(blobs[0]);
    test_end(blobs[1]);
    assert_int_equal(lent.deleted, 1);
}

static sb_blob *empty(sb_context *context) {
    return test_vector(context, SB_DTYPE_F32, 4);
}

TEST_ON(rig, a_memory_whose_writes_others_may_see_is_not_unique) {
    sb_blob *a = ramp(f->context), *b = empty(f->context);
    pass(a, SB_DATA, b, SB_DATA, 0, AS_READ, SB_SIDE_CPU);
    assert_false(sb_mem_is_unique(data_of(a)));
    assert_true(sb_mem_is_unique(data_of(b)));
    (void)host_to_write(b, SB_DATA);
    assert_true(sb_mem_is_unique(data_of(a)));
    pass(a, SB_DATA, b, SB_DATA, 0, AS_WRITE, SB_SIDE_CPU);
    assert_false(sb_mem_is_unique(data_of(a)));
    assert_false(sb_mem_is_unique(data_of(b)));
    assert_ok(sb_blob_reshape(b, (int64_t[]){9}, 1, NULL, &err));
    assert_true(sb_mem_is_unique(data_of(a)));
    pass(a, SB_DATA, b, SB_DIFF, SB_DLPACK_RESHAPE, AS_WRITE, SB_SIDE_GPU);
    assert_false(sb_mem_is_unique(data_of(a)));
    assert_false(sb_mem_is_unique(diff_of(b)));
    test_end(a);
    assert_true(sb_mem_is_unique(diff_of(b)));
}

TEST(another_context_keeps_the_context_that_made_the_storage) {
    for (enum form form = AS_READ; form < FORMS; form++) {
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
        assert_true(((const float *)host_of(b, SB_DATA))[3] == 4);
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
