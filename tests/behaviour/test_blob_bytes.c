/* Tests the accessors of each element type. The fuzz target reshape compares the bytes, capacity,
   sharing and loans of blobs with a reference model. */
#include "blobs.h"

#define CHECK_TYPE(NAME, number, name, type, kind, with)                                           \
    {                                                                                              \
        sb_blob *blob = test_vector(NULL, SB_DTYPE_##NAME, 3);                                     \
        type *to = NULL, value = 0;                                                                \
        const type *from = NULL;                                                                   \
        assert_int_equal(sb_dtype_size(SB_DTYPE_##NAME), sizeof *to);                              \
        assert_ok(sb_blob_mutable_cpu_##name(blob, SB_DIFF, &to, &err));                           \
        memset(to, 0xfe, 3 * sizeof *to);                                                          \
        to[2] = (type)101;                                                                         \
        assert_ok(sb_blob_cpu_##name(blob, SB_DIFF, &from, &err));                                 \
        assert_ptr_equal(from, to);                                                                \
        assert_status(INVALID, sb_blob_cpu_##name(blob, SB_DIFF, NULL, &err));                     \
        assert_status(INVALID, sb_blob_mutable_cpu_##name(blob, SB_DIFF, NULL, &err));             \
        assert_ok(sb_blob_at_##name(blob, SB_DIFF, &at, 1, &value, &err));                         \
        assert_true(value == (type)101);                                                           \
        assert_ok(sb_blob_overwrite_cpu_##name(blob, SB_DATA, &to, &err));                         \
        from = to;                                                                                 \
        for (size_t d = 0; d < DTYPES; d++)                                                        \
            if (dtypes[d] != SB_DTYPE_##NAME) {                                                    \
                sb_blob *other = test_vector(NULL, dtypes[d], 3);                                  \
                assert_status(MISMATCH, sb_blob_mutable_cpu_##name(other, SB_DATA, &to, &err));    \
                assert_status(MISMATCH, sb_blob_cpu_##name(other, SB_DATA, &from, &err));          \
                assert_status(MISMATCH, sb_blob_at_##name(other, SB_DATA, &at, 1, &value, &err));  \
                assert_true(from == to && value == (type)101); /* unchanged */                     \
                test_end(other);                                                                   \
            }                                                                                      \
        test_end(blob);                                                                            \
    }

TEST(every_type_has_its_wrappers) {
    enum { MISMATCH = SB_ERR_DTYPE_MISMATCH };
    static const sb_dtype dtypes[] = {SB_DTYPE_LIST(DTYPE_ITEM, )};
    const size_t DTYPES = sizeof dtypes / sizeof *dtypes;
    const int64_t at = 2;
    SB_DTYPE_FLOAT_LIST(CHECK_TYPE, )
    SB_DTYPE_INTEGER_LIST(CHECK_TYPE, )
}

TEST(generic_wrappers_select_the_type) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 3), *ints = test_vector(NULL, SB_DTYPE_U32, 3);
    float *x = NULL, value = 0;
    const float *in = NULL;
    int32_t *wrong = NULL;
    uint32_t *right = NULL;
    const int64_t at = 2;
    assert_ok(sb_blob_mutable_cpu_t(blob, SB_DATA, &x, &err));
    x[2] = 42;
    assert_ok(sb_blob_cpu_t(blob, SB_DATA, &in, &err));
    assert_ptr_equal(in, x);
    assert_ok(sb_blob_at_t(blob, SB_DATA, &at, 1, &value, &err));
    assert_true(value == 42);
    assert_status(SB_ERR_NO_DEVICE, sb_blob_gpu_t(blob, SB_DATA, &in, &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_mutable_cpu_t(ints, SB_DATA, &wrong, &err));
    assert_null(wrong);
    assert_ok(sb_blob_mutable_cpu_t(ints, SB_DATA, &right, &err));
}
