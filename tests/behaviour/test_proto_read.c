/* Tests shapes and errors of reads of BlobProto messages into a blob. The fuzz targets
   `differential` and `reshape` and the test behaviour.proto_oracle compare shapes and values of all
   encodings with those of other readers. */
#include "blobs.h"

#include "wire_builder.h"

static const int64_t two_by_three[] = {2, 3};

/* protobuf-c refuses a known field of a wrong wire type, and groups. */
TEST(test_overlong_dimensions_and_fields_of_a_wrong_wire_type_are_accepted) {
    static const float six[] = {1, 2, 3, 4, 5, 6};
    struct wire wire = {0}, shape = {0};
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    wire_float(&wire, 5, six[0]);    /* the first value */
    wire_number(&wire, 5, 4);        /* data as a number */
    wire_double(&wire, 5, 1);        /* data as 8 bytes */
    wire_float(&wire, 8, 1);         /* double_data as 4 bytes */
    wire_number(&wire, 7, 9);        /* shape as a number */
    wire_raw(&wire, "\x3b\x3c", 2);  /* shape as a group */
    wire_bytes(&wire, 1, "\x05", 1); /* num as bytes */
    wire_float(&wire, 2, 2);         /* channels as 4 bytes */
    wire_float(&shape, 1, 2);        /* a dimension as 4 bytes */
    wire_tag(&shape, 1, 0);
    wire_overlong(&shape, 2, 10);
    wire_tag(&shape, 1, 2);
    wire_varint(&shape, 4);
    wire_overlong(&shape, 3, 4);
    wire_message(&wire, 7, &shape);
    wire_floats(&wire, 5, six + 1, 5);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_shape_is(blob, "2 3 (6)");
    assert_values(blob, SB_DATA, 6, 1);
}

/* --- shapes ------------------------------------------------------------------------------ */

TEST(test_legacy_shapes_compare_from_the_last_axis) {
    static const struct {
        int64_t dims[5];
        int32_t axes;
        int64_t legacy[4];
        int32_t equal;
    } rows[] = {
        {{7}, 1, {1, 1, 1, 7}, 1},
        {{7}, 1, {7, 1, 1, 1}, 0},
        {{3, 7}, 2, {1, 1, 3, 7}, 1},
        {{3, 7}, 2, {3, 7, 1, 1}, 0},
        {{2, 3, 7}, 3, {1, 2, 3, 7}, 1},
        {{2, 3, 7}, 3, {2, 1, 3, 7}, 0},
        {{5, 2, 3, 7}, 4, {5, 2, 3, 7}, 1},
        {{5, 2, 3, 7}, 4, {5, 2, 3, 8}, 0},
        {{1, 5, 2, 3, 7}, 5, {5, 2, 3, 7}, 0},
        {{0}, 0, {1, 1, 1, 1}, 1},
        {{0}, 0, {1, 1, 1, 2}, 0},
        {{1, 1, 0}, 3, {1, 1, 1, 0}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wire wire = {0};
        int32_t equal = -1;
        for (uint32_t k = 0; k < 4; k++)
            wire_number(&wire, 1 + k, (uint64_t)rows[i].legacy[k]);
        sb_blob *blob = test_blob(NULL, SB_DTYPE_I32, rows[i].axes, rows[i].dims);
        assert_ok(sb_blob_shape_equals_proto(blob, wire.bytes, wire.size, &equal, &err));
        if (equal != rows[i].equal)
            fail_with("row %zu: %d", i, equal);
        const int64_t *l = rows[i].legacy;
        assert_int_equal(sb_blob_shape_equals_legacy(blob, l[0], l[1], l[2], l[3]), equal);
    }
}

TEST(test_an_unshaped_blob_equals_no_legacy_dimensions) {
    sb_blob *fresh = test_unshaped(NULL, SB_DTYPE_F32);
    assert_int_equal(sb_blob_shape_equals_legacy(fresh, 1, 1, 1, 1), 0);
    assert_int_equal(sb_blob_shape_equals_legacy(NULL, 1, 1, 1, 1), 0);
}

TEST(test_faults_of_a_blob_shape_are_reported_with_their_offsets) {
    skip_on_32_bits("the shapes exceed the address space");
    static const char negative[] = "\x08\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    assert_status(SB_ERR_BAD_SHAPE,
                  sb_blob_reshape_proto(blob, negative, sizeof negative - 1, NULL, &err));
    assert_int_equal(err.offset, 3);
    /* The number of bytes fits for floats, but not for doubles. */
    assert_status(
        SB_ERR_DATA_OVERFLOW,
        sb_blob_reshape_proto(blob, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x10", 10, NULL, &err));
    assert_int_equal(err.offset, 0);
    assert_non_null(strstr(err.message, "dim: the shape's byte count overflows"));
}

TEST(test_without_reshape_the_blob_keeps_its_shape) {
    static const float six[] = {1, 2, 3, 4, 5, 6};
    struct wire wire = {0};
    sb_blob *fresh = test_unshaped(NULL, SB_DTYPE_F32);
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 6);
    for (uint32_t k = 0; k < 4; k++)
        wire_number(&wire, 1 + k, k < 3 ? 1 : 6);
    wire_floats(&wire, 5, six, 6);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err));
    assert_shape_is(blob, "6 (6)");
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_blob_from_proto(fresh, wire.bytes, wire.size, 0, NULL, &err));
    wire_free(&wire);
    wire_blob(&wire, two_by_three, 2, 1);
    assert_error(SB_ERR_SHAPE_MISMATCH,
                 sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err),
                 "the blob is 6 (6), but the message is 2 3 (6)");
    assert_values(blob, SB_DATA, 6, 1);
    wire_free(&wire);
    /* The error message has only the first dimensions of a long shape, but always its count. */
    const int64_t long_dims[32] = {1,      1,      100000, 0,      100000, 100000, 100000, 100000,
                                   100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000};
    wire_shape(&wire, long_dims, 32);
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err));
    assert_non_null(strstr(err.message, "the message is 1 1 100000 0 100000"));
    assert_string_equal(err.message + strlen(err.message) - 7, "... (0)");
    wire_free(&wire);
    const int64_t ones[20] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    wire_shape(&wire, ones, 20); /* the shape's text is one byte too long */
    assert_error(SB_ERR_SHAPE_MISMATCH,
                 sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err),
                 "the blob is 6 (6), but the message is 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
                 "... (1)");
}

/* --- refusals -------------------------------------------------------------------------------- */

struct refusal {
    const char *claim, *bytes;
    size_t size;
    sb_status status;
    int64_t offset;
    const char *part;
};

#define B(s)    s, sizeof s - 1
#define NINE_FF "\xff\xff\xff\xff\xff\xff\xff\xff\xff"

static const struct refusal refusals[] = {
    {"a payload cut short", B("\x2a\x10\0\0\0\0"), SB_ERR_MALFORMED, 6,
     "data: 12 bytes are missing at offset 6"},
    {"5 bytes of floats", B("\x2a\x05\0\0\0\0\0"), SB_ERR_MALFORMED, 2,
     "data: 5 bytes are not a whole number of 4-byte values at offset 2"},
    {"12 bytes of doubles", B("\x42\x0c\0\0\0\0\0\0\0\0\0\0\0\0"), SB_ERR_MALFORMED, 2,
     "double_data"},
    {"3 bytes of diff", B("\x32\x03\0\0\0"), SB_ERR_MALFORMED, 2, "diff"},
    {"9 bytes of double_diff", B("\x4a\x09\0\0\0\0\0\0\0\0\0"), SB_ERR_MALFORMED, 2, "double_diff"},
    {"an incomplete dimension", B("\x3a\x03\x0a\x01\x82\x2a\x00"), SB_ERR_MALFORMED, 5,
     "shape.dim: 1 byte is missing at offset 5"},
    {"a shape longer than the message", B("\x3a\x7f"), SB_ERR_MALFORMED, 2,
     "shape: 127 bytes are missing"},
    {"tag 0 in a shape", B("\x3a\x02\x00\x00"), SB_ERR_MALFORMED, 2,
     "shape: the field number 0 is invalid"},
    {"no payload for a scalar", B(""), SB_ERR_LENGTH_MISMATCH, 0,
     "data: 0 values for a shape of 1"},
    {"no payload for 6", B("\x3a\x04\x0a\x02\x02\x03"), SB_ERR_LENGTH_MISMATCH, 0,
     "data: 0 values for a shape of 6"},
    {"one value for 2", B("\x3a\x03\x0a\x01\x02\x2a\x04\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 5,
     "data: 1 values for a shape of 2 at offset 5"},
    {"two values for 1", B("\x2a\x08\0\0\0\0\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 0,
     "2 values for a shape of 1"},
    {"one value for 0", B("\x3a\x03\x0a\x01\x00\x2a\x04\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 5,
     "1 values for a shape of 0"},
    {"diff of another length", B("\x2a\x04\0\0\0\0\x32\x08\0\0\0\0\0\0\0\0"),
     SB_ERR_LENGTH_MISMATCH, 6, "diff: 2 values for a shape of 1"},
    {"one diff for 2", B("\x3a\x03\x0a\x01\x02\x2a\x08\0\0\0\0\0\0\0\0\x32\x04\0\0\0\0"),
     SB_ERR_LENGTH_MISMATCH, 15, "diff: 1 values for a shape of 2"},
    {"diff alone", B("\x32\x04\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 0, "data: 0 values"},
    {"too many doubles, which replace the floats",
     B("\x2a\x04\0\0\0\0\x41\0\0\0\0\0\0\0\0\x41\0\0\0\0\0\0\0\0"), SB_ERR_LENGTH_MISMATCH, 6,
     "double_data: 2 values"},
    {"a negative dimension", B("\x3a\x0c\x0a\x0a" NINE_FF "\x01"), SB_ERR_BAD_SHAPE, 4,
     "shape.dim: axis 0 is negative"},
    {"a dimension of 2^63", B("\x3a\x0c\x0a\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
     SB_ERR_BAD_SHAPE, 4, "beyond 63 bits"},
    {"a dimension beyond 64 bits", B("\x3a\x0c\x0a\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
     SB_ERR_MALFORMED, 4, "shape.dim: the number has bits beyond 64; it begins at offset 4"},
    {"a single dimension beyond 64 bits", B("\x3a\x0b\x08\x82\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
     SB_ERR_MALFORMED, 3, "shape.dim: the number has bits beyond 64; it begins at offset 3"},
    {"a legacy dimension beyond 64 bits", B("\x08\x82\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
     SB_ERR_MALFORMED, 1, "num: the number has bits beyond 64; it begins at offset 1"},
    {"a legacy dimension of 32 bits", B("\x18\x80\x80\x80\x80\x08"), SB_ERR_DATA_OVERFLOW, 0,
     "height: 2147483648 is beyond 31 bits"},
    {"a legacy dimension of 40 bits", B("\x20\x80\x80\x80\x80\x80\x20"), SB_ERR_DATA_OVERFLOW, 0,
     "width"},
    {"legacy dimensions whose product does not fit",
     B("\x08\xff\xff\xff\xff\x07\x10\xff\xff\xff\xff\x07\x18\xff\xff\xff\xff\x07\x20\xff\xff\xff"
       "\xff\x07"),
     SB_ERR_DATA_OVERFLOW, 0, "product"},
    {"2^31 by 2^31 by 2", B("\x3a\x0d\x0a\x0b\x80\x80\x80\x80\x08\x80\x80\x80\x80\x08\x02"),
     SB_ERR_DATA_OVERFLOW, 4, "shape: the product"},
    {"33 axes",
     B("\x3a\x23\x0a\x21\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"),
     SB_ERR_BAD_SHAPE, 4, "shape.dim: 33 axes are more than 32"},
};

TEST(test_refusals_change_nothing) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *row = &refusals[i];
        struct wire wire = {0};
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        wire_blob(&wire, two_by_three, 2, 1);
        assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
        const void *before = host_of(blob, SB_DATA);
        sb_status st =
            sb_blob_from_proto(blob, row->bytes, row->size, SB_PROTO_RESHAPE, NULL, &err);
        if (st != row->status || err.offset != row->offset || !strstr(err.message, row->part))
            fail_with("%s: %s \"%s\" (offset %lld)", row->claim, sb_status_name(st), err.message,
                      (long long)err.offset);
        assert_int_equal(
            sb_blob_from_proto(blob, row->bytes, row->size, SB_PROTO_RESHAPE, NULL, NULL),
            row->status);
        assert_shape_is(blob, "2 3 (6)");
        assert_values(blob, SB_DATA, 6, 1);
        assert_ptr_equal(host_of(blob, SB_DATA), before);
        test_end(blob);
    }
}

/* --- limits ---------------------------------------------------------------------------------- */

TEST(test_legacy_dimensions_are_4_axes_for_the_limit) {
    sb_limits limits = SB_LIMITS_INIT;
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    limits.max_axes = 3;
    assert_status(SB_ERR_DATA_LIMIT,
                  sb_blob_from_proto(blob, "\x08\x00", 2, SB_PROTO_RESHAPE, &limits, &err));
    limits.max_axes = 33;
    assert_status(SB_ERR_INVALID_ARGUMENT,
                  sb_blob_from_proto(blob, "\x08\x00", 2, SB_PROTO_RESHAPE, &limits, &err));
}
