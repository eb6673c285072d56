/* Tests the export of blobs as DLPack tensors, and the import of tensors as a blob's memory. The
   fuzz target dlpack checks which tensors are refused, that refused tensors are unchanged, that
   tensors are not copied, and that each deleter runs once. test_dlpack_shared.c imports what a blob
   exported. */
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

TEST_ON(rig, a_tensor_describes_its_blob) {
    rig_reopen_on(f, NULL, 0);
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 3, (int64_t[]){2, 1, 5});
    sb_dl_managed_versioned *t = exported(blob, SB_DATA, SB_SIDE_CPU);
    const void *data = host_of(blob, SB_DATA);
    assert_int_equal(t->version.major, 1);
    assert_ptr_equal(t->dl_tensor.data, data);
    assert_int_equal(t->dl_tensor.byte_offset, 0);
    assert_int_equal(t->dl_tensor.ndim, 3);
    assert_memory_equal(t->dl_tensor.shape, ((int64_t[]){2, 1, 5}), 24);
    assert_memory_equal(t->dl_tensor.strides, ((int64_t[]){5, 5, 1}), 24);
    end(t);
}

/* For each head and side, and for reading and for writing, an export changes the head, copies bytes
   and returns a pointer as the corresponding accessor does. */
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
    assert_int_equal(sb_mem_head(diff_of(blob)), SB_HEAD_AT_CPU); /* a legacy tensor is writable */
    sb_blob_destroy(blob);
    sb_context_release(rig.context);
    memset(host->dl_tensor.data, 7, 16);
    end(host);
    memset(legacy->dl_tensor.data, 7, 16);
    legacy->deleter(legacy);
    end(device);
    counting_allocator_assert_clean(&rig.counting);
}

/* --- a memory replaces storage that a tensor uses ----------------------------------------- */

/* A write replaces the read-only storage, whose deleter runs only when the tensor ends. */
TEST_ON(rig, a_lenders_deleter_waits_for_the_tensor) {
    struct lent lent = lend_host(16, 0x21), on_device = lend_device(f->context, 16, 0x22);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 4);
    assert_ok(
        sb_blob_set_cpu(blob, SB_DATA, lent.ptr, 16, SB_READ_ONLY, lent_deleter, &lent, &err));
    sb_dl_managed_versioned *t = exported(blob, SB_DATA, SB_SIDE_CPU);
    assert_ptr_equal(t->dl_tensor.data, lent.ptr);
    void *out = host_to_write(blob, SB_DATA);
    assert_ptr_not_equal(out, lent.ptr);
    memset(out, 0, 16);
    assert_true(bytes_are(t->dl_tensor.data, 16, 0x21));
    assert_int_equal(lent.deleted, 0);
    assert_int_equal(rig_stats(f).borrowed_bytes, 16);
    struct tally before = rig_tally(f);
    end(t);
    struct tally since = rig_since(f, &before);
    assert_no_work(&since); /* no stream used the tensor */
    assert_int_equal(lent.deleted, 1);
    assert_ok(sb_blob_set_gpu(blob, SB_DATA, on_device.ptr, 16, 0, lent_deleter, &on_device, &err));
    t = exported_mutable(blob, SB_DATA, SB_SIDE_GPU);
    test_end(blob);
    assert_int_equal(on_device.deleted, 0);
    end(t);
    assert_int_equal(on_device.deleted, 1);
}

/* --- other devices --------------------------------------------------------------------------- */

TEST(a_backends_table_defines_its_device_types) {
    sb_blob *again;
    sb_backend backend = sb__sim_backend;
    backend.name = "mine";
    backend.dlpack_device = 10;
    backend.dlpack_pinned = 11;
    sb_context *context = test_context(CONTEXT_OPTIONS(.device = "mine:5", .backend = &backend));
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, 4);
    for (int32_t side = 0; side < 2; side++) {
        sb_dl_managed_versioned *t = exported(blob, SB_DATA, side);
        assert_int_equal(t->dl_tensor.device.device_type, side == SB_SIDE_GPU ? 10 : 11);
        assert_int_equal(t->dl_tensor.device.device_id, side == SB_SIDE_GPU ? 5 : 0);
        assert_ok(sb_blob_create_from_dlpack(context, t, &again, &err));
        assert_int_equal(sb_mem_storage(data_of(again), side), SB_STORAGE_BORROWED_READ_ONLY);
        sb_blob_destroy(again);
    }
    test_end(blob);
    test_end(context);
}

TEST(a_device_without_a_number_is_not_exported) {
    sb_dl_managed_versioned *t = NULL;
    sb_backend backend = sb__sim_backend;
    backend.name = "mine";
    backend.struct_size = offsetof(sb_backend, dlpack_device); /* an older table */
    sb_context *context = test_context(CONTEXT_OPTIONS(.device = "mine:5", .backend = &backend));
    sb_blob *blob = test_vector(context, SB_DTYPE_F32, 4);
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_to_dlpack(blob, SB_DATA, SB_SIDE_GPU, &t, &err));
    assert_null(t);
    t = exported(blob, SB_DATA, SB_SIDE_CPU);
    assert_int_equal(t->dl_tensor.device.device_type, SB_DL_DEVICE_CPU);
    end(t);
    test_end(blob);
    test_end(context);
}

/* --- refused exports ------------------------------------------------------------------------ */

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

/* --- imports ------------------------------------------------------------------------------- */

TEST_ON(rigs, device_memory_is_imported_by_its_own_context) {
    struct tensor t;
    sb_blob *blob = NULL;
    tensor_make_on(&t, f->a.context, SB_DL_DEVICE_EXTENSION, 0x3F);
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_blob_create_from_dlpack(f->b.context, &t.versioned, &blob, &err));
    t.versioned.dl_tensor.device.device_id = 1;
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_blob_create_from_dlpack(f->a.context, &t.versioned, &blob, &err));
    t.versioned.dl_tensor.device.device_id = 0;
    assert_int_equal(t.deleted, 0);
    assert_ok(sb_blob_create_from_dlpack(f->a.context, &t.versioned, &blob, &err));
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_AT_GPU);
    const void *in = host_of(blob, SB_DATA);
    assert_true(bytes_are(in, 24, 0x3F));
    sb_blob_destroy(blob);
    assert_int_equal(t.deleted, 1);
}

static sb_status import(sb_blob *blob, struct tensor *tensor, sb_error *err) {
    return sb_blob_from_dlpack(blob, SB_DATA, &tensor->versioned, 0, err);
}

/* The exact messages, and values that the fuzz target dlpack does not draw. */
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
    dl->byte_offset = PTRDIFF_MAX - 19; /* with the tensor's 24 bytes, more than PTRDIFF_MAX */
    assert_status(SB_ERR_SIZE_OVERFLOW, import(blob, &t, &err));
    dl->byte_offset = 0;
    /* Booleans are refused, because a program could write other values than 0 and 1 as u8. */
    dl->dtype = (sb_dl_data_type){6, 8, 1};
    assert_status(SB_ERR_UNSUPPORTED, import(blob, &t, &err));
    dl->dtype = (sb_dl_data_type){SB_DL_CODE_FLOAT, 32, 1};
    dl->device.device_type = 13; /* CUDA's managed memory */
    assert_status(SB_ERR_WRONG_DEVICE, import(blob, &t, &err));
    test_end(blob);
    assert_int_equal(t.deleted, 0);
}

TEST(a_device_that_the_context_lacks_is_refused) {
    struct tensor t;
    tensor_make(&t);
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    t.versioned.dl_tensor.device.device_type = SB_DL_DEVICE_CUDA;
    assert_status(SB_ERR_NO_DEVICE, sb_blob_from_dlpack(blob, SB_DATA, &t.versioned, 0, &err));
    t.versioned.dl_tensor.device.device_type = SB_DL_DEVICE_CUDA_HOST;
    assert_ok(sb_blob_from_dlpack(blob, SB_DATA, &t.versioned, 0, &err)); /* pinned host memory */
    test_end(blob);
    assert_int_equal(t.deleted, 1);
}
