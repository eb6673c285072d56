/* Tests the import of DLPack tensors as a blob's memory: devices, shared memories, refused tensors.
   The fuzz target dlpack checks which tensors are refused, that refused tensors are unchanged, that
   tensors are not copied, and that each deleter runs once. */
#include "blobs.h"
#include "tensors.h"

#define UNSUPPORTED SB_ERR_UNSUPPORTED

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

/* --- refused tensors ------------------------------------------------------------------------- */

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
    assert_error(UNSUPPORTED, import(blob, &t, &err), "the tensor has unknown flags 0x8");
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
    assert_status(UNSUPPORTED, import(blob, &t, &err));
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
