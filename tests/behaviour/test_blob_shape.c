/* Tests the shapes and offsets of a blob. The fuzz target reshape compares counts, axes, legacy
   dimensions, texts, offsets and refused shapes with a reference model. */
#include "blobs.h"

#include <stdio.h>
#include <string.h>

#define I64(n) INT64_C(n)

TEST(legacy_dimensions_have_names) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 4, (int64_t[]){2, 3, 4, 5});
    int64_t num, channels, height, width;
    assert_ok(sb_blob_num(blob, &num, &err));
    assert_ok(sb_blob_channels(blob, &channels, &err));
    assert_ok(sb_blob_height(blob, &height, &err));
    assert_ok(sb_blob_width(blob, &width, &err));
    assert_true(num == 2 && channels == 3 && height == 4 && width == 5);
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

TEST(a_shape_is_compared_with_dimensions_alone) {
    sb_blob *scalar = test_blob(NULL, SB_DTYPE_F32, 0, NULL);
    sb_blob *never = test_unshaped(NULL, SB_DTYPE_F32);
    assert_int_equal(sb_blob_shape_equals_dims(scalar, NULL, 0), 1);
    assert_int_equal(sb_blob_shape_equals_dims(never, NULL, 0), 0);
    assert_int_equal(sb_blob_shape_equals_dims(never, NULL, -1), 0);
    assert_int_equal(sb_blob_shape_equals_dims(scalar, NULL, INT32_MAX), 0);
    assert_int_equal(sb_blob_shape_equals_dims(NULL, NULL, 0), 0);
}

TEST(a_count_that_fits_a_small_type_may_not_fit_a_large_one) {
    sb_blob *small = test_vector(NULL, SB_DTYPE_F16, PTRDIFF_MAX / 8 + 1);
    sb_blob *large = test_vector(NULL, SB_DTYPE_F64, PTRDIFF_MAX / 8);
    uint32_t reallocated = 77;
    assert_status(SB_ERR_SIZE_OVERFLOW, sb_blob_reshape_like(large, small, &reallocated, &err));
    assert_int_equal(reallocated, 77);
    assert_int_equal(sb_blob_count(large), PTRDIFF_MAX / 8);
}

TEST(a_blob_may_be_reshaped_to_its_own_shape) {
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 3, (int64_t[]){2, 3, 4});
    assert_ok(sb_blob_reshape(blob, sb_blob_shape(blob), 3, NULL, &err));
    assert_shape_is(blob, "2 3 4 (24)");
    assert_ok(sb_blob_reshape(blob, sb_blob_shape(blob) + 1, 2, NULL, &err));
    assert_shape_is(blob, "3 4 (12)");
}

TEST_ON(rig, the_device_sees_the_shape) {
    skip_on_32_bits("dimensions have 31 bits");
    const int64_t *shape = NULL;
    int64_t seen[4];
    sb_blob *blob = test_blob(f->context, SB_DTYPE_F32, 4, (int64_t[]){2, 3, I64(1) << 33, 0});
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally before = rig_tally(f);
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
    struct tally since = rig_since(f, &before);
    assert_no_work(&since);
    for (int round = 0; round < 2; round++) {
        assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
        assert_ok(sb_sim_peek(f->context, seen, shape, sizeof seen, &err));
        assert_memory_equal(seen, sb_blob_shape(blob), sizeof seen);
        assert_ok(sb_blob_reshape_legacy(blob, 9, 8, 7, 6, NULL, &err));
    }
    assert_ok(sb_blob_reshape(blob, NULL, 0, NULL, &err));
    assert_ok(sb_blob_gpu_shape(blob, &shape, &err));
}
