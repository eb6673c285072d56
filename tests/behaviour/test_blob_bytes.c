/* Tests access to a blob's bytes, the creation of memories, and refused memory. The fuzz target
   reshape compares capacity, sharing and loans with a reference model. */
#include "blobs.h"
#include "mem_calls.h"
#include "pointers.h"

/* --- accessors --------------------------------------------------------------- */

TEST_ON(rig, accessors_use_the_right_memory) {
    static const struct {
        enum call call;
        int32_t head; /* after the call */
    } steps[] = {
        {CPU_DATA, SB_HEAD_AT_CPU},         {GPU_DATA, SB_HEAD_SYNCED},
        {GPU_DATA_ON, SB_HEAD_SYNCED},      {MUTABLE_GPU, SB_HEAD_AT_GPU},
        {MUTABLE_GPU_ON, SB_HEAD_AT_GPU},   {MUTABLE_CPU, SB_HEAD_AT_CPU},
        {OVERWRITE_GPU, SB_HEAD_AT_GPU},    {OVERWRITE_CPU, SB_HEAD_AT_CPU},
        {OVERWRITE_GPU_ON, SB_HEAD_AT_GPU}, {OVERWRITE_CPU, SB_HEAD_AT_CPU},
    };
    const struct call_arguments nothing = {.stream = NULL};
    for (sb_part part = SB_DATA; part <= SB_DIFF; part++) {
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 8);
        sb_mem *mem = mem_of(blob, part), *other = mem_of(blob, SB_DIFF - part);
        const sb_mem *same;
        void *out = NULL, *again;
        assert_ok(sb_blob_mem(blob, part, &same, &err));
        assert_ptr_equal(same, mem);
        assert_ptr_not_equal(mem, other);
        assert_int_equal(sb_mem_size(mem), 32);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            assert_ok(blob_call(blob, part, steps[i].call, NULL, &out, &err));
            assert_int_equal(sb_mem_head(mem), steps[i].head);
            assert_ok(mem_call(mem, steps[i].call, &nothing, &again, &err));
            assert_ptr_equal(out, again);
        }
        memset(out, 0x3f, 32);
        assert_ok(sb_blob_clear(blob, part, &err));
        assert_true(bytes_are(out, 32, 0));
        assert_int_equal(sb_mem_head(other), SB_HEAD_UNINITIALIZED);
    }
}

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

/* --- creation ------------------------------------------------------------------- */

TEST_ON(rig, memories_are_allocated_lazily) {
    struct tally before = rig_tally(f);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 1000);
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 0);
    (void)data_of(blob);
    (void)diff_of(blob);
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 1000); /* no buffer yet */
    struct tally t = rig_since(f, &before);
    assert_int_equal(t.host_allocs + t.device_allocs, 0);
    (void)blob_pointer(blob, SB_DATA, CPU_DATA);
    t = rig_since(f, &before);
    assert_int_equal(t.host_allocs, 1); /* the data's buffer; diff has no buffer yet */
}

/* --- lending ------------------------------------------------------------------------------ */

TEST_ON(rigs, memory_of_another_device_is_refused) {
    sb_blob *blob = test_vector(f->a.context, SB_DTYPE_F32, 6);
    struct lent host = lend_host(64, 0), device = lend_device(f->a.context, 64, 0);
    struct lent foreign = lend_device(f->b.context, 64, 0);
    sb_mem *data = data_of(blob);
    void *const pointers[] = {host.ptr, foreign.ptr, (char *)device.ptr + ((size_t)1 << 30)};
    for (int i = 0; i < 3; i++) {
        assert_status(SB_ERR_WRONG_DEVICE, sb_blob_set_gpu(blob, SB_DATA, pointers[i], 24, 0,
                                                           lent_deleter, &host, &err));
        assert_ptr_equal(data_of(blob), data);
    }
    test_end(blob);
    assert_int_equal(host.deleted, 0);
}
