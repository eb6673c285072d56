/* Tests the import of DLPack tensors as a blob's memory: devices, shared memories, refused tensors.
   The fuzz target dlpack checks that tensors are not copied, and that each deleter runs once. */
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

/* A change of one field of a tensor. */
struct edit {
    size_t at, size;
    uint64_t value;
};

#define EDIT(member, number)                                                                       \
    { offsetof(struct tensor, member), sizeof((struct tensor *)0)->member, (uint64_t)(number) }
#define VERSIONED(member, number) EDIT(versioned.member, number)
#define SET(member, number)       EDIT(versioned.dl_tensor.member, number)

static void apply(struct tensor *t, const struct edit *edit) {
    const bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    for (size_t i = 0; i < edit->size; i++)
        ((unsigned char *)t)[edit->at + (is_big ? edit->size - 1 - i : i)] =
            (unsigned char)(edit->value >> 8 * i);
}

static const struct refusal {
    struct edit edits[2];
    sb_status status;
    bool versioned;      /* only versioned tensors have the field */
    const char *message; /* the expected message; NULL: any message */
} refusals[] = {
    {{VERSIONED(version.major, 2)}, SB_ERR_ABI_MISMATCH, true, NULL},
    {{VERSIONED(version.major, 0)}, SB_ERR_ABI_MISMATCH, true, NULL},
    {{VERSIONED(flags, SB_DL_READ_ONLY | 8)},
     UNSUPPORTED,
     true,
     "the tensor has unknown flags 0x8"},
    {{VERSIONED(flags, (uint64_t)1 << 63)}, UNSUPPORTED, true, NULL},
    {{SET(dtype.lanes, 2)}, UNSUPPORTED, false, NULL},
    {{SET(dtype.lanes, 0)}, UNSUPPORTED, false, NULL},
    {{SET(dtype.code, SB_DL_CODE_INT), SET(dtype.bits, 128)}, UNSUPPORTED, false, NULL},
    {{SET(dtype.code, 5)}, UNSUPPORTED, false, NULL}, /* complex numbers */
    {{SET(dtype.code, SB_DL_CODE_BFLOAT)}, UNSUPPORTED, false, NULL},
    /* Booleans are refused, because a program could write other values than 0 and 1 as u8. */
    {{SET(dtype.code, 6), SET(dtype.bits, 8)}, UNSUPPORTED, false, NULL},
    {{SET(dtype.bits, 0)}, UNSUPPORTED, false, NULL},
    {{SET(dtype.bits, 64)}, SB_ERR_DTYPE_MISMATCH, false, NULL},
    {{SET(ndim, -1)}, INVALID, false, NULL},
    {{SET(ndim, SB_MAX_AXES + 1)}, SB_ERR_OVER_LIMIT, false, NULL},
    {{SET(ndim, INT32_MAX)}, SB_ERR_OVER_LIMIT, false, NULL},
    {{SET(shape, 0)}, INVALID, false, NULL},
    {{EDIT(shape[1], -3)}, INVALID, false, NULL},
    {{EDIT(shape[0], 1), EDIT(shape[1], 6)}, SB_ERR_SHAPE_MISMATCH, false, NULL},
    {{EDIT(shape[0], (int64_t)1 << 32), EDIT(shape[1], (int64_t)1 << 32)},
     SB_ERR_SIZE_OVERFLOW,
     false,
     NULL},
    {{EDIT(shape[0], (int64_t)1 << 60)}, SB_ERR_SIZE_OVERFLOW, false, NULL},
    {{SET(data, 0)}, INVALID, false, "the tensor's data is NULL"},
    {{SET(data, 0x7001)}, INVALID, false, NULL}, /* a misaligned address */
    {{SET(data, UINTPTR_MAX - 7)}, SB_ERR_SIZE_OVERFLOW, false, NULL},
    {{SET(byte_offset, UINT64_MAX - 7)}, SB_ERR_SIZE_OVERFLOW, false, NULL},
    {{SET(byte_offset, (uint64_t)1 << 63)}, SB_ERR_SIZE_OVERFLOW, false, NULL},
    /* The offset and the tensor's 24 bytes together exceed PTRDIFF_MAX. */
    {{SET(byte_offset, PTRDIFF_MAX - 19)}, SB_ERR_SIZE_OVERFLOW, false, NULL},
    {{SET(byte_offset, 2)}, INVALID, false, "the tensor's data is not aligned for f32"},
    {{SET(device.device_type, 7)}, SB_ERR_WRONG_DEVICE, false, NULL},
    {{SET(device.device_type, 0)}, SB_ERR_WRONG_DEVICE, false, NULL},
    {{SET(device.device_type, 13)}, SB_ERR_WRONG_DEVICE, false, NULL}, /* CUDA's managed memory */
    {{SET(device.device_type, SB_DL_DEVICE_EXTENSION)}, SB_ERR_WRONG_DEVICE, false, NULL},
};

static void refuse(struct rig *rig, const struct refusal *refusal, bool legacy) {
    struct tensor t, before;
    const void *data, *now;
    sb_blob *blob = test_blob(rig->context, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    assert_ok(sb_blob_cpu(blob, SB_DATA, &data, &err));
    tensor_make(&t);
    for (int i = 0; i < 2; i++)
        apply(&t, &refusal->edits[i]);
    tensor_match(&t);
    before = t;
    assert_status(refusal->status,
                  legacy ? sb_blob_from_legacy_dlpack(blob, SB_DATA, &t.legacy, 0, &err)
                         : sb_blob_from_dlpack(blob, SB_DATA, &t.versioned, 0, &err));
    if (refusal->message)
        assert_string_equal(err.message, refusal->message);
    assert_memory_equal(&t, &before, offsetof(struct tensor, lent)); /* tensors are unchanged */
    assert_ok(sb_blob_cpu(blob, SB_DATA, &now, &err));
    assert_ptr_equal(data, now);
    assert_int_equal(sb_blob_count(blob), 6);
    test_end(blob);
    assert_int_equal(t.deleted, 0);
}

TEST_ON(rig, tensors_that_a_blob_cannot_use_are_refused_and_unchanged) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        refuse(f, &refusals[i], false);
        if (!refusals[i].versioned)
            refuse(f, &refusals[i], true);
    }
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
