/* Tests typed accessors of blobs, sb_blob_reclaim_cpu and a shrink that fails. */
#include "blobs.h"
#include "pointers.h"

#include <syncblob/dlpack.h>

#define COUNT 6
#define BYTES (COUNT * sizeof(float))

TEST_ON(rig, lent_bytes_must_suit_the_elements) {
    for (int on_device = 0; on_device < 2; on_device++) {
        rig_reopen_on(f, "sim:0", 0);
        struct lent lent =
            on_device ? lend_device(f->context, 2 * BYTES, 0x3F) : lend_host(2 * BYTES, 0x3F);
        sb_blob *floats = test_vector(f->context, SB_DTYPE_F32, COUNT);
        sb_blob *halves = test_vector(f->context, SB_DTYPE_F16, COUNT);
        char *askew = (char *)lent.ptr + 2;
        sb_mem *mem = test_mem(f->context, BYTES);
        assert_ok(on_device ? sb_mem_set_gpu(mem, askew, BYTES, 0, NULL, NULL, &err)
                            : sb_mem_set_cpu(mem, askew, BYTES, 0, NULL, NULL, &err));
        assert_int_equal(rig_stats(f).borrowed_bytes, BYTES);
        for (sb_part part = SB_DATA; part <= SB_DIFF; part++)
            assert_status(INVALID, sb_blob_set_mem(floats, part, mem, &err));
        assert_ok(sb_blob_set_mem(halves, SB_DATA, mem, &err));
    }
}

struct loan {
    struct lent lent;
    sb_blob *blob, *other;
    sb_mem *owner;
    sb_dl_managed_versioned *tensor;
};

#define STEP(name, ...)                                                                            \
    static void name(struct loan *l) {                                                             \
        __VA_ARGS__;                                                                               \
    }
#define IMPORT(name, exports, to, flags, ...)                                                      \
    STEP(name, assert_ok(exports(l->blob, SB_DATA, SB_SIDE_CPU, &l->tensor, &err)); __VA_ARGS__;   \
         assert_ok(sb_blob_from_dlpack(to, SB_DATA, l->tensor, flags, &err)); l->tensor = NULL)
STEP(nothing_more, (void)l)
STEP(a_share, assert_ok(sb_blob_share(l->other, SB_DATA, l->blob, &err)))
STEP(an_owner, l->owner = sb_mem_retain(data_of(l->blob)))
STEP(a_tensor, assert_ok(sb_blob_to_dlpack(l->blob, SB_DATA, SB_SIDE_CPU, &l->tensor, &err)))
STEP(a_tensor_that_ends, a_tensor(l); l->tensor->deleter(l->tensor); l->tensor = NULL)
IMPORT(a_blob_of_a_tensor, sb_blob_to_dlpack, l->other, 0, (void)l)
IMPORT(a_round_trip, sb_blob_to_mutable_dlpack, l->blob, 0, (void)l)
IMPORT(a_blob_on_a_part, sb_blob_to_mutable_dlpack, l->blob, SB_DLPACK_RESHAPE,
       l->tensor->dl_tensor.byte_offset = 4;
       l->tensor->dl_tensor.shape[0] = 3)
STEP(a_device_that_has_them_too, (void)blob_pointer(l->blob, SB_DATA, GPU_DATA))
STEP(a_newer_device, (void)blob_pointer(l->blob, SB_DATA, MUTABLE_GPU))
STEP(a_push_under_way, assert_ok(sb_mem_async_gpu_push(data_of(l->blob), NULL, &err)))
STEP(a_copy_whose_waits_fail,
     device_fail_run(sb_blob_context(l->blob), SB_SIM_STREAM_SYNCHRONIZE, 1, 3);
     assert_status(SB_ERR_DEVICE_FAILURE, sb_mem_gpu(data_of(l->blob), &(const void *){0}, &err)))
STEP(a_smaller_shape, assert_ok(sb_blob_reshape(l->blob, (int64_t[]){2}, 1, NULL, &err)))
STEP(a_larger_shape, assert_ok(sb_blob_reshape(l->blob, (int64_t[]){40}, 1, NULL, &err));
     assert_int_equal(l->lent.deleted, 1))

TEST_ON(rig, lent_memory_is_reclaimed_from_its_only_user) {
    static const struct {
        void (*then)(struct loan *);
        bool reclaimed;
    } cases[] = {
        {nothing_more, true},       {a_share, false},
        {an_owner, false},          {a_tensor, false},
        {a_tensor_that_ends, true}, {a_blob_of_a_tensor, false},
        {a_round_trip, true},       {a_blob_on_a_part, false},
        {a_newer_device, false},    {a_device_that_has_them_too, true},
        {a_push_under_way, true},   {a_smaller_shape, true},
        {a_larger_shape, false},    {a_copy_whose_waits_fail, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t flags = 0; flags <= SB_READ_ONLY; flags += SB_READ_ONLY) {
            struct loan l = {.owner = NULL};
            void *user = &l;
            l.lent = lend_host(16, 0x31);
            l.blob = test_vector(f->context, SB_DTYPE_F32, 4);
            l.other = test_vector(f->context, SB_DTYPE_F32, 4);
            assert_ok(sb_blob_set_cpu(l.blob, SB_DATA, l.lent.ptr, 16, flags, lent_deleter, &l.lent,
                                      &err));
            cases[i].then(&l);
            bool left_it = l.lent.deleted;
            sb_status wanted = cases[i].reclaimed && !left_it ? (sb_status)SB_OK : INVALID;
            assert_status(wanted, sb_blob_reclaim_cpu(l.blob, SB_DATA, lent_deleter, &user, &err));
            assert_ptr_equal(user, wanted == SB_OK ? (void *)&l.lent : (void *)&l);
            l.lent.taken = true;
            sb_mem_release(l.owner);
            if (l.tensor)
                l.tensor->deleter(l.tensor);
            test_end(l.other);
            if (wanted == SB_OK)
                assert_int_equal(sb_mem_head(data_of(l.blob)), SB_HEAD_UNINITIALIZED);
            test_end(l.blob);
            assert_int_equal(l.lent.deleted, wanted != SB_OK);
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
                assert_true(from == to && value == (type)101);                                     \
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

TEST_ON(rig, a_shrink_whose_copy_to_the_host_failed_changes_nothing) {
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 16);
    sb_stream stream = rig_stream(f);
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    assert_ok(sb_blob_reshape(blob, (int64_t[]){8}, 1, NULL, &err));
    device_fail(f->context, SB_SIM_DOWNLOAD, 1, SB_SIM_FAIL_LATER);
    assert_ok(sb_mem_prefetch_cpu(data_of(blob), stream, &err));
    assert_status(SB_ERR_DEVICE_FAILURE, sb_blob_shrink_to_fit(blob, NULL, &err));
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 16);
    rig_end_stream(f, stream);
    assert_ok(sb_blob_shrink_to_fit(blob, NULL, &err));
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 8);
    assert_ok(sb_blob_reshape(blob, (int64_t[]){4}, 1, NULL, &err));
    device_fail(f->context, SB_SIM_SCALE, 1, SB_SIM_FAIL_NOW);
    assert_status(SB_ERR_DEVICE_LOST, sb_blob_scale(blob, SB_DATA, 2, &err));
    assert_status(SB_ERR_UNINITIALIZED, sb_blob_shrink_to_fit(blob, NULL, &err));
}
