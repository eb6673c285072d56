/* What a failure tells: the very words, with the numbers and names in their places. */
#include "blobs.h"
#include "wire_builder.h"

#include <string.h>

#define assert_told(status, text, expr)                                                            \
    do {                                                                                           \
        assert_status(status, expr);                                                               \
        assert_string_equal(err.message, text);                                                    \
    } while (0)

TEST(indices_are_told_with_their_axis) {
    int64_t offset;
    float element;
    sb_error err;
    sb_blob *blob = blob_of(NULL, SB_DTYPE_F32, 2, (int64_t[]){2, 3});
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "axis 1: index 7 is not below 3",
                sb_blob_offset(blob, (int64_t[]){1, 7}, 2, &offset, &err));
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "3 indices for a blob with 2 axes",
                sb_blob_offset(blob, (int64_t[]){1, 1, 1}, 3, &offset, &err));
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "axis 2: index 5 is beyond 1",
                sb_blob_offset_legacy(blob, 1, 2, 5, 0, &offset, &err));
    assert_told(SB_ERR_INDEX_OUT_OF_RANGE, "axis 2: index 1 is not below 1",
                sb_blob_data_at_legacy(blob, 1, 2, 1, 0, &element, &err));
    sb_blob_destroy(blob);
}

TEST(two_blobs_are_told_in_their_order) {
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

/* --- of bytes: the field, what is wrong with it, where --------------------------------------- */

struct told {
    struct wire wire;
    sb_limits limits;
    sb_status status;
    const char *text;
    int64_t offset;
};

static void check_told(struct told *told, sb_status (*read)(const struct told *, sb_error *)) {
    sb_error err;
    assert_told(told->status, told->text, read(told, &err));
    assert_int_equal(err.offset, told->offset);
    wire_free(&told->wire);
}

static sb_status read_f64(const struct told *told, sb_error *err) {
    sb_blob *blob = blob_of_count(NULL, SB_DTYPE_F64, 1);
    sb_status st = sb_blob_from_proto(blob, told->wire.bytes, told->wire.size, SB_PROTO_RESHAPE,
                                      &told->limits, err);
    sb_blob_destroy(blob);
    return st;
}

static sb_status open_any(const struct told *told, sb_error *err) {
    sb_model *model;
    return sb_model_open_bytes(NULL, SB_FORMAT_AUTO, told->wire.bytes, told->wire.size,
                               &told->limits, NULL, NULL, &model, err);
}

TEST(shapes_are_told_by_their_fields) {
    struct wire shape = {0};
    struct told told = {.limits = SB_LIMITS_INIT, .status = SB_ERR_BAD_SHAPE};
    wire_numbers(&shape, 1, (int64_t[]){2, -1}, 2);
    wire_message(&told.wire, 7, &shape);
    told.text = "shape.dim: axis 1 is negative or beyond 63 bits at offset 5";
    told.offset = 5;
    check_told(&told, read_f64);
    told = (struct told){.limits = SB_LIMITS_INIT, .status = SB_ERR_BAD_SHAPE};
    wire_number(&told.wire, 1, 1);
    wire_number(&told.wire, 2, (uint64_t)-3);
    told.text = "channels: -3 is negative at offset 2";
    told.offset = 2;
    check_told(&told, read_f64);
    told = (struct told){.limits = SB_LIMITS_INIT, .status = SB_ERR_DATA_LIMIT};
    told.limits.max_axes = 3;
    wire_number(&told.wire, 2, 1);
    wire_number(&told.wire, 1, 1);
    told.text = "4 axes are more than the limit of 3 at offset 2";
    told.offset = 2;
    check_told(&told, read_f64);
    told = (struct told){.limits = SB_LIMITS_INIT, .status = SB_ERR_DATA_OVERFLOW};
    wire_free(&shape);
    wire_numbers(&shape, 1, (int64_t[]){(int64_t)1 << 60}, 1);
    wire_message(&told.wire, 7, &shape);
    told.text = "the shape's bytes do not fit; the message begins at offset 0";
    check_told(&told, read_f64);
    wire_free(&shape);
}

TEST(models_are_told_by_their_fields) {
    struct wire layer = {0}, blob = {0};
    struct told told = {.limits = SB_LIMITS_INIT, .status = SB_ERR_MALFORMED};
    wire_number(&told.wire, 99, 1);
    told.text = "the fields are of no Caffe model, solver state or blob";
    check_told(&told, open_any);
    told = (struct told){.limits = SB_LIMITS_INIT, .status = SB_ERR_DATA_LIMIT};
    told.limits.max_blobs = 1;
    wire_blob(&blob, (int64_t[]){1}, 1, 1);
    wire_message(&layer, 7, &blob);
    wire_message(&layer, 7, &blob);
    wire_message(&told.wire, 100, &layer);
    told.text = "layer[0].blobs: more blobs than the limit of 1 begin at offset 16";
    told.offset = 16;
    check_told(&told, open_any);
    wire_free(&layer);
    wire_free(&blob);
}
