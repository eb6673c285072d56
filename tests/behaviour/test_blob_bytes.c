/* Tests access to a blob's bytes, the creation of memories, and refused memory. The fuzz target
   reshape compares capacity, sharing and loans with a reference model. */
#include "blobs.h"
#include "mem_calls.h"

#include <sys/mman.h>

static const int64_t *dims(int64_t count) {
    static int64_t d[1];
    d[0] = count;
    return d;
}

static uint32_t reshape(sb_blob *blob, int64_t count) {
    uint32_t reallocated = 99;
    assert_ok(sb_blob_reshape(blob, dims(count), 1, &reallocated, &err));
    return reallocated;
}

/* Sets data to 1, 2, 3, ... and diff to -1, -2, -3, ... */
static void fill_both(sb_blob *blob) {
    float *data, *diff;
    assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_mutable_cpu_f32(blob, SB_DIFF, &diff, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++) {
        data[i] = (float)(i + 1);
        diff[i] = -data[i];
    }
}

static void expect_data(const sb_blob *blob, int64_t count) {
    const float *data;
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &data, &err));
    for (int64_t i = 0; i < count; i++)
        assert_true(data[i] == (float)(i + 1));
}

/* --- accessors --------------------------------------------------------------- */

TEST(a_const_blob_has_const_memories) {
    const sb_mem *data, *diff;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 6);
    assert_ok(sb_blob_mem(blob, SB_DATA, &data, &err));
    assert_ok(sb_blob_mem(blob, SB_DIFF, &diff, &err));
    assert_ptr_equal(data, data_of(blob));
    assert_ptr_equal(diff, diff_of(blob));
    assert_int_equal(sb_mem_head(data), SB_HEAD_UNINITIALIZED);
}

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
        void *out = NULL, *again;
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

TEST_ON(rig, elements_are_read_in_every_dtype) {
    static const sb_dtype dtypes[] = {SB_DTYPE_LIST(DTYPE_ITEM, )};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        size_t size = sb_dtype_size(dtypes[d]);
        sb_blob *blob = test_blob(f->context, dtypes[d], 2, (int64_t[]){3, 4});
        unsigned char image[2][12 * 8], element[8];
        for (size_t i = 0; i < sizeof image[0]; i++) {
            image[0][i] = (unsigned char)(i + 1);
            image[1][i] = (unsigned char)(200 - i);
        }
        mem_place(data_of(blob), SB_HEAD_AT_GPU, image[0], 12 * size);
        mem_place(diff_of(blob), SB_HEAD_AT_CPU, image[1], 12 * size);
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 4; j++) {
                const int64_t at[] = {i, j};
                size_t offset = (size_t)(i * 4 + j) * size;
                assert_ok(sb_blob_at(blob, SB_DATA, at, 2, element, &err));
                assert_memory_equal(element, image[0] + offset, size);
                assert_ok(sb_blob_data_at_legacy(blob, i, j, 0, 0, element, &err));
                assert_memory_equal(element, image[0] + offset, size);
                assert_ok(sb_blob_at(blob, SB_DIFF, at, 2, element, &err));
                assert_memory_equal(element, image[1] + offset, size);
                assert_ok(sb_blob_diff_at_legacy(blob, i, j, 0, 0, element, &err));
                assert_memory_equal(element, image[1] + offset, size);
            }
        assert_ok(sb_blob_at(blob, SB_DATA, dims(2), 1, element, &err)); /* 1 index, 2 axes */
        assert_memory_equal(element, image[0] + 8 * size, size);
        assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_SYNCED);
    }
}

TEST(typed_wrappers_check_and_cast) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 3), *ints;
    float *x = NULL, value = 0;
    const float *rx = NULL;
    double *wrong = NULL, wrong_value = -1;
    const double *rwrong = NULL;
    int32_t *i32 = NULL;
    uint32_t *u32 = NULL;
    const int64_t at = 2;
    assert_ok(sb_blob_mutable_cpu_t(blob, SB_DATA, &x, &err));
    x[2] = 42;
    assert_ok(sb_blob_cpu_t(blob, SB_DATA, &rx, &err));
    assert_ptr_equal(rx, x);
    assert_ok(sb_blob_at_t(blob, SB_DATA, &at, 1, &value, &err));
    assert_true(value == 42);
    assert_ok(sb_blob_mutable_cpu_t(blob, SB_DIFF, &x, &err));
    x[2] = 43;
    assert_ok(sb_blob_cpu_t(blob, SB_DIFF, &rx, &err));
    assert_ok(sb_blob_at_t(blob, SB_DIFF, &at, 1, &value, &err));
    assert_true(value == 43);
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_mutable_cpu_t(blob, SB_DATA, &wrong, &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_cpu_t(blob, SB_DATA, &rwrong, &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_at_t(blob, SB_DATA, &at, 1, &wrong_value, &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_mutable_cpu_i32(blob, SB_DATA, &i32, &err));
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_overwrite_cpu_u32(blob, SB_DIFF, &u32, &err));
    assert_status(INVALID, sb_blob_cpu_f32(blob, SB_DATA, NULL, &err));
    assert_status(INVALID, sb_blob_cpu_f32(NULL, SB_DATA, &rx, &err));
    assert_status(SB_ERR_NO_DEVICE, sb_blob_gpu_t(blob, SB_DATA, &rx, &err));
    assert_null(wrong);
    assert_null(rwrong);
    assert_null(i32);
    assert_null(u32);
    assert_true(wrong_value == -1);
    test_end(blob);
    ints = test_vector(NULL, SB_DTYPE_U32, 3);
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_blob_mutable_cpu_t(ints, SB_DATA, &i32, &err));
    assert_ok(sb_blob_mutable_cpu_t(ints, SB_DATA, &u32, &err));
    assert_ok(sb_blob_overwrite_cpu_u32(ints, SB_DIFF, &u32, &err));
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
        assert_ok(sb_blob_at_##name(blob, SB_DIFF, &at, 1, &value, &err));                         \
        assert_true(value == (type)101);                                                           \
        assert_ok(sb_blob_overwrite_cpu_##name(blob, SB_DATA, &to, &err));                         \
        for (size_t d = 0; d < DTYPES; d++)                                                        \
            if (dtypes[d] != SB_DTYPE_##NAME) {                                                    \
                sb_blob *other = test_vector(NULL, dtypes[d], 3);                                  \
                assert_status(MISMATCH, sb_blob_mutable_cpu_##name(other, SB_DATA, &to, &err));    \
                assert_status(MISMATCH, sb_blob_cpu_##name(other, SB_DATA, &from, &err));          \
                assert_status(MISMATCH, sb_blob_at_##name(other, SB_DATA, &at, 1, &value, &err));  \
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

/* --- creation ------------------------------------------------------------------- */

TEST_ON(rig, memories_are_allocated_lazily) {
    const void *in;
    struct tally before = rig_tally(f);
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 1000);
    reshape(blob, 5000);
    reshape(blob, 100);
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 0);
    assert_int_equal(sb_blob_capacity(blob, SB_DIFF), 0);
    (void)data_of(blob);
    (void)diff_of(blob);
    assert_int_equal(sb_blob_capacity(blob, SB_DATA), 100); /* no buffer yet */
    struct tally t = rig_since(f, &before);
    assert_int_equal(t.host_allocs + t.device_allocs, 0);
    assert_ok(sb_blob_cpu(blob, SB_DATA, &in, &err));
    t = rig_since(f, &before);
    assert_int_equal(t.host_allocs, 1); /* the data's buffer; diff has no buffer yet */
    assert_ptr_equal(sb_blob_context(blob), f->context);
}

/* --- lending ------------------------------------------------------------------------------ */

TEST_ON(rigs, the_caller_keeps_refused_memory) {
    sb_blob *blob = test_vector(f->a.context, SB_DTYPE_F32, 6);
    sb_blob *sharer = test_vector(f->a.context, SB_DTYPE_F32, 6);
    sb_blob *host_blob = test_vector(NULL, SB_DTYPE_F32, 6);
    fill_both(blob);
    assert_ok(sb_blob_share(sharer, SB_DATA, blob, &err));
    struct lent host = lend_host(64, 0), device = lend_device(f->a.context, 64, 0);
    struct lent foreign = lend_device(f->b.context, 64, 0);
    sb_mem *data = data_of(blob);
    const struct {
        bool gpu;
        struct lent *lent;
        size_t offset, bytes;
        sb_status status;
    } cases[] = {
        {false, &host, 0, 23, INVALID},
        {false, &host, 0, 0, INVALID},
        {false, &host, 1, 24, INVALID},
        {false, &host, 2, 24, INVALID},
        {true, &device, 0, 23, INVALID},
        {true, &device, 2, 24, INVALID},
        {true, &host, 0, 24, SB_ERR_WRONG_DEVICE},
        {true, &foreign, 0, 24, SB_ERR_WRONG_DEVICE},
        {true, &device, (size_t)1 << 30, 24, SB_ERR_WRONG_DEVICE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *ptr = (char *)cases[i].lent->ptr + cases[i].offset;
        assert_status(cases[i].status, (cases[i].gpu ? sb_blob_set_gpu : sb_blob_set_cpu)(
                                           blob, SB_DATA, ptr, cases[i].bytes, 0, lent_deleter,
                                           cases[i].lent, &err));
        assert_ptr_equal(data_of(blob), data); /* the blobs still share the memory */
        assert_ptr_equal(data_of(sharer), data);
        expect_data(blob, 6);
    }
    assert_status(SB_ERR_NO_DEVICE,
                  sb_blob_set_gpu(host_blob, SB_DATA, host.ptr, 24, 0, lent_deleter, &host, &err));
    test_end(host_blob);
    test_end(blob);
    test_end(sharer);
    assert_int_equal(host.deleted + device.deleted + foreign.deleted, 0);
}
