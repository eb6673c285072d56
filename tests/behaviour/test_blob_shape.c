/* Tests the shapes and offsets of a blob. The fuzz target reshape compares counts, axes, legacy
   dimensions and texts with a reference model. */
#include "blobs.h"

#include <stdio.h>
#include <string.h>

#define RANGE  SB_ERR_INDEX_OUT_OF_RANGE
#define I64(n) INT64_C(n)

static void expect_shape(const sb_blob *blob, int32_t num_axes, const int64_t *shape, int64_t count,
                         const char *text) {
    char found[800];
    assert_int_equal(sb_blob_num_axes(blob), num_axes);
    for (int32_t i = 0; i < num_axes; i++)
        assert_int_equal(sb_blob_shape(blob)[i], shape[i]);
    assert_int_equal(sb_blob_count(blob), count);
    assert_ok(sb_blob_shape_string(blob, found, sizeof found, NULL, &err));
    assert_string_equal(found, text);
}

static const struct {
    int32_t num_axes;
    int64_t shape[SB_MAX_AXES];
    int64_t count;
    const char *text;
} shapes[] = {
    {0, {0}, 1, "(1)"},
    {1, {7}, 7, "7 (7)"},
    {1, {0}, 0, "0 (0)"},
    {4, {2, 3, 4, 5}, 120, "2 3 4 5 (120)"},
    {2, {0, 5}, 0, "0 5 (0)"},
    {2, {5, 0}, 0, "5 0 (0)"},
    {3, {0, 65536, 65536}, 0, "0 65536 65536 (0)"},
    {2, {65536, 65536}, I64(4294967296), "65536 65536 (4294967296)"},
    {3, {I64(1) << 40, I64(1) << 40, 0}, 0, "1099511627776 1099511627776 0 (0)"},
    {1, {I64(3000000000)}, I64(3000000000), "3000000000 (3000000000)"},
    {32,
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2},
     2,
     "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 (2)"},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

TEST(shapes_give_counts_and_texts) {
    for (size_t i = 0; i < SHAPES; i++) {
        if (shapes[i].count > PTRDIFF_MAX / 4 || shapes[i].shape[0] > PTRDIFF_MAX)
            continue; /* too large for addresses of 32 bits */
        sb_blob *created = test_blob(NULL, SB_DTYPE_F32, shapes[i].num_axes, shapes[i].shape);
        uint32_t reallocated = 99;
        sb_blob *reshaped = test_unshaped(NULL, SB_DTYPE_F32);
        assert_ok(
            sb_blob_reshape(reshaped, shapes[i].shape, shapes[i].num_axes, &reallocated, &err));
        assert_int_equal(reallocated & ~3u, 0);
        expect_shape(created, shapes[i].num_axes, shapes[i].shape, shapes[i].count, shapes[i].text);
        expect_shape(reshaped, shapes[i].num_axes, shapes[i].shape, shapes[i].count,
                     shapes[i].text);
        assert_int_equal(sb_blob_is_shaped(created), 1);
        assert_int_equal(sb_blob_shape_equals(created, reshaped), 1);
    }
}

TEST(a_blob_that_was_never_shaped_is_not_a_scalar) {
    sb_blob *scalar = test_blob(NULL, SB_DTYPE_F32, 0, NULL);
    sb_blob *empty = test_unshaped(NULL, SB_DTYPE_F32);
    assert_int_equal(sb_blob_is_shaped(empty), 0);
    assert_non_null(sb_blob_shape(empty));
    assert_null(sb_blob_context(empty));
    expect_shape(empty, 0, NULL, 0, "(0)");
    assert_int_equal(sb_blob_is_shaped(scalar), 1);
    expect_shape(scalar, 0, NULL, 1, "(1)");
    assert_int_equal(sb_blob_shape_equals(empty, scalar), 0);
    assert_int_equal(sb_blob_shape_equals(scalar, empty), 0);
    assert_int_equal(sb_blob_shape_equals(empty, empty), 1);
    assert_ok(sb_blob_reshape(empty, NULL, 0, NULL, &err)); /* 0 axes: a scalar */
    assert_int_equal(sb_blob_shape_equals(empty, scalar), 1);
}

TEST(bad_shapes_are_refused_and_change_nothing) {
    static const int64_t kept[] = {2, 3};
    int64_t ones[40];
    for (int i = 0; i < 40; i++)
        ones[i] = 1;
    const struct {
        int32_t dtype, num_axes;
        const int64_t *shape;
        sb_status status;
    } cases[] = {
        {SB_DTYPE_F32, 1, (int64_t[]){-1}, INVALID},
        {SB_DTYPE_F32, 3, (int64_t[]){1, INT64_MIN, 0}, INVALID},
        {SB_DTYPE_F32, 2, (int64_t[]){0, -5}, INVALID},
        {SB_DTYPE_F32, -1, ones, INVALID},
        {SB_DTYPE_F32, INT32_MIN, ones, INVALID},
        {SB_DTYPE_F32, 2, NULL, INVALID},
        {SB_DTYPE_F32, 33, ones, SB_ERR_OVER_LIMIT},
        {SB_DTYPE_F32, 40, ones, SB_ERR_OVER_LIMIT},
        {SB_DTYPE_F32, 2, (int64_t[]){I64(1) << 32, I64(1) << 32}, SB_ERR_SIZE_OVERFLOW},
        {SB_DTYPE_F32, 3, (int64_t[]){3, INT64_MAX, 3}, SB_ERR_SIZE_OVERFLOW},
        {SB_DTYPE_F32, 1, (int64_t[]){INT64_MAX}, SB_ERR_SIZE_OVERFLOW},
        {SB_DTYPE_F32, 1, (int64_t[]){I64(1) << 61}, SB_ERR_SIZE_OVERFLOW}, /* bytes: 2^63 */
        {SB_DTYPE_F64, 1, (int64_t[]){I64(1) << 60}, SB_ERR_SIZE_OVERFLOW},
        {SB_DTYPE_F16, 1, (int64_t[]){I64(1) << 62}, SB_ERR_SIZE_OVERFLOW},
        {SB_DTYPE_F32, 2, (int64_t[]){70000, I64(70000) << 40}, SB_ERR_SIZE_OVERFLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_blob *blob = test_blob(NULL, cases[i].dtype, 2, kept), *none = NULL;
        uint32_t reallocated = 99;
        assert_status(cases[i].status,
                      sb_blob_reshape(blob, cases[i].shape, cases[i].num_axes, &reallocated, &err));
        assert_int_equal(reallocated, 99);
        expect_shape(blob, 2, kept, 6, "2 3 (6)");
        assert_status(cases[i].status, sb_blob_create_shaped(NULL, cases[i].dtype, cases[i].shape,
                                                             cases[i].num_axes, &none, &err));
        assert_null(none);
    }
}

TEST(the_largest_shapes_that_fit_are_accepted) {
    static const struct {
        int32_t dtype;
        int64_t dim;
    } cases[] = {{SB_DTYPE_F32, PTRDIFF_MAX / 4},
                 {SB_DTYPE_F64, PTRDIFF_MAX / 8},
                 {SB_DTYPE_BF16, PTRDIFF_MAX / 2}};
    for (size_t i = 0; i < 3; i++) {
        sb_blob *blob = test_blob(NULL, cases[i].dtype, 1, &cases[i].dim);
        assert_int_equal(sb_blob_count(blob), cases[i].dim);
    }
}

TEST(dtypes_are_checked) {
    static const sb_dtype good[] = {SB_DTYPE_LIST(DTYPE_ITEM, )};
    static const sb_dtype bad[] = {0, -1, 1000, INT32_MAX, INT32_MIN};
    const size_t count = sizeof good / sizeof *good;
    sb_blob *blob = NULL;
    for (size_t i = 0; i < count; i++) {
        blob = test_unshaped(NULL, good[i]);
        assert_int_equal(sb_blob_dtype(blob), good[i]);
        assert_ok(sb_blob_check_dtype(blob, good[i], &err));
        assert_status(SB_ERR_DTYPE_MISMATCH,
                      sb_blob_check_dtype(blob, good[(i + 1) % count], &err));
        test_end(blob);
    }
    blob = NULL;
    for (size_t i = 0; i < 5; i++)
        assert_status(INVALID, sb_blob_create(NULL, bad[i], &blob, &err));
    assert_null(blob);
    sb_blob_destroy(NULL);
}

TEST(legacy_dimensions_have_names) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){2, 3, 4, 5});
    int64_t num, channels, height, width;
    assert_ok(sb_blob_num(blob, &num, &err));
    assert_ok(sb_blob_channels(blob, &channels, &err));
    assert_ok(sb_blob_height(blob, &height, &err));
    assert_ok(sb_blob_width(blob, &width, &err));
    assert_true(num == 2 && channels == 3 && height == 4 && width == 5);
}

TEST(legacy_accessors_accept_at_most_four_axes) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 5, (int64_t[]){1, 2, 3, 4, 5});
    int64_t out = 99;
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_blob_legacy_shape(blob, 0, &out, &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_blob_num(blob, &out, &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_blob_width(blob, &out, &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_blob_offset_legacy(blob, 0, 0, 0, 0, &out, &err));
    assert_status(SB_ERR_SHAPE_MISMATCH, sb_blob_data_at_legacy(blob, 0, 0, 0, 0, &out, &err));
    assert_int_equal(out, 99);
}

TEST(offsets_past_two_to_the_31_are_exact) {
    skip_on_32_bits("the blob exceeds the address space");
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){70000, 70000});
    int64_t out;
    assert_ok(sb_blob_offset(blob, (int64_t[]){69999, 69999}, 2, &out, &err));
    assert_int_equal(out, I64(4899999999));
    assert_ok(sb_blob_offset_legacy(blob, 69999, 1, 0, 0, &out, &err));
    assert_int_equal(out, I64(69999) * 70000 + 1);
}

/* Caffe's layers use offset(0, 1) as the distance between channels, even with one channel. */
TEST(a_legacy_offset_may_be_one_past_each_axis) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){2, 1, 3, 4});
    int64_t out;
    float value;
    assert_ok(sb_blob_offset_legacy(blob, 0, 1, 0, 0, &out, &err));
    assert_int_equal(out, 12);
    assert_ok(sb_blob_offset_legacy(blob, 2, 0, 0, 0, &out, &err));
    assert_int_equal(out, 24);
    assert_ok(sb_blob_offset_legacy(blob, 2, 1, 3, 4, &out, &err));
    assert_int_equal(out, 24 + 12 + 12 + 4);
    assert_status(RANGE, sb_blob_data_at_legacy(blob, 0, 1, 0, 0, &value, &err));
}

TEST(a_legacy_offset_beyond_63_bits_is_an_error) {
    skip_on_32_bits("dimensions have 31 bits");
    sb_blob *hollow = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){0, INT64_MAX, INT64_MAX, 1});
    int64_t out;
    assert_ok(sb_blob_offset_legacy(hollow, 0, 1, 0, 0, &out, &err));
    assert_int_equal(out, INT64_MAX);
    out = 99;
    assert_status(SB_ERR_SIZE_OVERFLOW, sb_blob_offset_legacy(hollow, 0, 1, 0, 1, &out, &err));
    assert_status(SB_ERR_SIZE_OVERFLOW, sb_blob_offset_legacy(hollow, 0, 2, 0, 0, &out, &err));
    assert_int_equal(out, 99);
}

/* The test behaviour.small_shapes tries all indices of small shapes. */
TEST(indices_out_of_range_are_errors) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){2, 3, 4, 5});
    sb_blob *flat = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){3, 2});
    sb_blob *zero = test_blob(NULL, SB_DTYPE_F32, 2, (int64_t[]){3, 0});
    int64_t out = 99;
    float value = -3;
    assert_status(RANGE, sb_blob_offset(blob, (int64_t[]){0, 0, 0, 0, 0}, 5, &out, &err));
    assert_error(RANGE, sb_blob_data_at_legacy(flat, 0, 0, 7, 0, &value, &err),
                 "3 indices for a blob with 2 axes");
    assert_status(RANGE, sb_blob_offset_legacy(flat, 0, 0, 2, 0, &out, &err));
    assert_status(RANGE, sb_blob_offset_legacy(flat, 0, 0, 0, 2, &out, &err));
    assert_status(RANGE, sb_blob_offset(zero, (int64_t[]){1, 0}, 2, &out, &err));
    assert_status(RANGE, sb_blob_at(zero, SB_DATA, (int64_t[]){1, 0}, 2, &value, &err));
    assert_status(RANGE, sb_blob_at(zero, SB_DATA, (int64_t[]){1}, 1, &value, &err));
    assert_status(INVALID, sb_blob_offset(blob, NULL, 2, &out, &err));
    assert_int_not_equal(sb_blob_offset(blob, (int64_t[]){0}, -1, &out, NULL), SB_OK);
    assert_int_equal(out, 99);
    assert_true(value == -3);
    assert_int_equal(sb_mem_head(data_of(blob)), SB_HEAD_UNINITIALIZED);
}

TEST(an_element_of_a_never_shaped_blob_is_an_error) {
    float value = -3;
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    assert_status(RANGE, sb_blob_at(blob, SB_DATA, NULL, 0, &value, &err));
    assert_status(RANGE, sb_blob_data_at_legacy(blob, 0, 0, 0, 0, &value, &err));
    assert_true(value == -3);
}

TEST(shapes_are_compared_axis_by_axis) {
    static const struct {
        int32_t na, nb;
        int64_t a[4], b[4];
        int equal;
    } cases[] = {
        {2, 2, {3, 2}, {3, 2}, 1},    {2, 2, {3, 2}, {2, 3}, 0}, {2, 3, {3, 2}, {3, 2, 1}, 0},
        {3, 2, {1, 3, 2}, {3, 2}, 0}, {0, 0, {0}, {0}, 1},       {1, 0, {1}, {0}, 0},
        {1, 1, {0}, {0}, 1},          {2, 2, {0, 3}, {0, 4}, 0},
    };
    int64_t dims[5] = {2, 3, 4, 5, 6};
    for (int32_t axes = 1; axes <= 5; axes++) /* shapes that differ in one axis are not equal */
        for (int32_t axis = 0; axis < axes; axis++) {
            sb_blob *a = test_blob(NULL, SB_DTYPE_F32, axes, dims);
            dims[axis]++;
            sb_blob *b = test_blob(NULL, SB_DTYPE_F32, axes, dims);
            assert_int_equal(sb_blob_shape_equals(a, b), 0);
            assert_int_equal(sb_blob_shape_equals_dims(a, dims, axes), 0);
            dims[axis]--;
            assert_int_equal(sb_blob_shape_equals_dims(a, dims, axes), 1);
        }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_blob *a = test_blob(NULL, SB_DTYPE_F32, cases[i].na, cases[i].a);
        sb_blob *b = test_blob(NULL, SB_DTYPE_F64, cases[i].nb, cases[i].b);
        assert_int_equal(sb_blob_shape_equals(a, b), cases[i].equal);
        assert_int_equal(sb_blob_shape_equals_dims(a, cases[i].b, cases[i].nb), cases[i].equal);
    }
}

TEST(a_shape_is_compared_with_dimensions_alone) {
    sb_blob *scalar = test_blob(NULL, SB_DTYPE_F32, 0, NULL);
    sb_blob *never = test_unshaped(NULL, SB_DTYPE_F32);
    assert_int_equal(sb_blob_shape_equals_dims(scalar, NULL, 0), 1);
    assert_int_equal(sb_blob_shape_equals_dims(never, NULL, 0), 0);
    assert_int_equal(sb_blob_shape_equals_dims(never, NULL, -1), 0);
    assert_int_equal(sb_blob_shape_equals_dims(scalar, NULL, 1), 0);
    assert_int_equal(sb_blob_shape_equals_dims(scalar, NULL, INT32_MAX), 0);
    assert_int_equal(sb_blob_shape_equals_dims(NULL, NULL, 0), 0);
}

TEST(the_longest_shape_text_is_whole) {
    int64_t shape[SB_MAX_AXES];
    char text[1024], expected[1024];
    size_t length = 0, used = 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        shape[i] = i ? PTRDIFF_MAX : 0;
    for (int i = 0; i < SB_MAX_AXES; i++)
        used +=
            (size_t)snprintf(expected + used, sizeof expected - used, "%lld ", (long long)shape[i]);
    (void)snprintf(expected + used, sizeof expected - used, "(0)");
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, SB_MAX_AXES, shape);
    assert_ok(sb_blob_shape_string(blob, text, sizeof text, &length, &err));
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    assert_names_null("buffer", sb_blob_shape_string(blob, NULL, 5, &length, &err));
}

TEST(reshape_like_copies_the_whole_shape) {
    sb_blob *model = test_blob(NULL, SB_DTYPE_F64, 3, (int64_t[]){2, 0, 9});
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 1, (int64_t[]){4});
    assert_ok(sb_blob_reshape_like(blob, model, NULL, &err));
    assert_int_equal(sb_blob_shape_equals(blob, model), 1);
    assert_int_equal(sb_blob_dtype(blob), SB_DTYPE_F32);
    assert_ok(sb_blob_reshape_like(blob, blob, NULL, &err));
    expect_shape(blob, 3, (int64_t[]){2, 0, 9}, 0, "2 0 9 (0)");
}

/* As in Caffe, an unshaped blob has 0 dimensions, like a scalar. A blob that is reshaped like an
   unshaped blob therefore becomes a scalar, which is shaped. */
TEST(reshape_like_one_without_a_shape_makes_a_scalar) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 1, (int64_t[]){0});
    uint32_t reallocated = 77;
    sb_blob *never = test_unshaped(NULL, SB_DTYPE_F64);
    assert_int_equal(sb_mem_size(data_of(blob)), 0);
    assert_ok(sb_blob_reshape_like(blob, never, &reallocated, &err));
    expect_shape(blob, 0, NULL, 1, "(1)");
    assert_int_equal(sb_blob_is_shaped(blob), 1);
    assert_int_equal(reallocated, SB_REALLOCATED_DATA);
    assert_int_equal(sb_blob_is_shaped(never), 0);
    assert_ok(sb_blob_reshape_like(never, never, NULL, &err));
    expect_shape(never, 0, NULL, 1, "(1)");
    assert_int_equal(sb_blob_shape_equals(blob, never), 1);
}

TEST(a_count_that_fits_a_small_type_may_not_fit_a_large_one) {
    sb_blob *small = test_vector(NULL, SB_DTYPE_F16, PTRDIFF_MAX / 8 + 1);
    sb_blob *large = test_vector(NULL, SB_DTYPE_F64, 3);
    uint32_t reallocated = 77;
    assert_status(SB_ERR_SIZE_OVERFLOW, sb_blob_reshape_like(large, small, &reallocated, &err));
    assert_int_equal(reallocated, 77);
    assert_int_equal(sb_blob_count(large), 3);
}

TEST(a_blob_may_be_reshaped_to_its_own_shape) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 3, (int64_t[]){2, 3, 4});
    assert_ok(sb_blob_reshape(blob, sb_blob_shape(blob), 3, NULL, &err));
    expect_shape(blob, 3, (int64_t[]){2, 3, 4}, 24, "2 3 4 (24)");
    assert_ok(sb_blob_reshape(blob, sb_blob_shape(blob) + 1, 2, NULL, &err));
    expect_shape(blob, 2, (int64_t[]){3, 4}, 12, "3 4 (12)");
}

TEST_ON(rig, the_device_sees_the_shape) {
    skip_on_32_bits("dimensions have 31 bits");
    const int64_t *shape = NULL;
    int64_t seen[4];
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 4, (int64_t[]){2, 3, I64(1) << 33, 0});
    for (int round = 0; round < 2; round++) {
        assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
        assert_ok(sb_sim_peek(f->context, seen, shape, sizeof seen, &err));
        assert_memory_equal(seen, sb_blob_shape(blob), sizeof seen);
    }
    struct tally before = rig_tally(f);
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally since = rig_since(f, &before);
    assert_no_work(&since);
    assert_ok(sb_blob_reshape_legacy(blob, 9, 8, 7, 6, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    assert_ok(sb_sim_peek(f->context, seen, shape, sizeof seen, &err));
    assert_memory_equal(seen, ((int64_t[]){9, 8, 7, 6}), sizeof seen);
    assert_ok(sb_blob_reshape(blob, (int64_t[]){5}, 1, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    assert_ok(sb_sim_peek(f->context, seen, shape, sizeof(int64_t), &err));
    assert_int_equal(seen[0], 5);
    assert_ok(sb_blob_reshape(blob, NULL, 0, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    test_end(blob);
    blob = test_vector(NULL, SB_DTYPE_F32, 3);
    assert_status(SB_ERR_NO_DEVICE, sb_blob_gpu_shape(blob, &shape, &err));
}
