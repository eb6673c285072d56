/* What a failure tells: the very words, with the numbers and names in their places. */
#include "blobs.h"

#include <string.h>

#define assert_told(status, text, expr)                                                            \
    do {                                                                                           \
        assert_status(status, expr);                                                               \
        assert_string_equal(err.message, text);                                                    \
    } while (0)

static void indices_are_told_with_their_axis(void **state) {
    (void)state;
    int64_t offset;
    sb_error err;
    sb_blob *blob = blob_of(NULL, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "axis 1: index 7 is not below 3",
                sb_blob_offset(blob, (int64_t[]){1, 7}, 2, &offset, &err));
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "3 indices for a blob with 2 axes",
                sb_blob_offset(blob, (int64_t[]){1, 1, 1}, 3, &offset, &err));
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "axis 2: index 5 is not below 1",
                sb_blob_offset_legacy(blob, 1, 2, 5, 0, &offset, &err));
    sb_blob_destroy(blob);
}

static void two_blobs_are_told_in_their_order(void **state) {
    (void)state;
    sb_error err;
    sb_blob *three = blob_of_count(NULL, SB_DTYPE_F32, 3);
    sb_blob *four = blob_of_count(NULL, SB_DTYPE_F32, 4);
    sb_blob *wide = blob_of_count(NULL, SB_DTYPE_F64, 3);
    assert_told(SB_ERR_SHAPE_MISMATCH, "shapes 3 (3) and 4 (4) differ",
                sb_blob_copy_from(three, four, 0, &err));
    assert_told(SB_ERR_DTYPE_MISMATCH, "a blob of f32 cannot take one of f64",
                sb_blob_copy_from(three, wide, 0, &err));
    assert_told(SB_ERR_SHAPE_MISMATCH, "counts 3 and 4 differ",
                sb_blob_share_data(three, four, &err));
    assert_told(SB_ERR_DTYPE_MISMATCH, "a blob of f32 cannot share with one of f64",
                sb_blob_share_diff(three, wide, &err));
    sb_blob_destroy(three);
    sb_blob_destroy(four);
    sb_blob_destroy(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_are_told_with_their_axis),
        cmocka_unit_test(two_blobs_are_told_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
