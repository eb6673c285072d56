/* Tests reads of BlobProto messages into a blob: encodings that the test behaviour.proto_oracle
   does not make, shapes, conversions, and errors. */
#include "blobs.h"

#include "wire_builder.h"

#include <float.h>
#include <math.h>

enum { NUM = 1, CHANNELS, HEIGHT, WIDTH, DATA, DIFF, SHAPE, DOUBLE_DATA, DOUBLE_DIFF };

/* --- encodings of the same six values ------------------------------------------------ */

static const float six[] = {1, 2, 3, 4, 5, 6};
static const double six_wide[] = {1, 2, 3, 4, 5, 6};
static const int64_t two_by_three[] = {2, 3};

static void packed(struct wire *w) {
    wire_shape(w, two_by_three, 2);
    wire_floats(w, DATA, six, 6);
}

static void doubles_beat_floats(struct wire *w) {
    static const float wrong[] = {9, 9, 9, 9};
    wire_shape(w, two_by_three, 2);
    wire_floats(w, DATA, wrong, 4); /* the number of values is wrong, too */
    wire_doubles(w, DOUBLE_DATA, six_wide, 6);
}

static void dims_overlong(struct wire *w) {
    struct wire shape = {0};
    wire_tag(&shape, 1, 0);
    wire_overlong(&shape, 2, 10);
    wire_tag(&shape, 1, 2);
    wire_varint(&shape, 4);
    wire_overlong(&shape, 3, 4);
    wire_message(w, SHAPE, &shape);
    wire_floats(w, DATA, six, 6);
}

static void unknown_fields_between(struct wire *w) {
    wire_number(w, 10, 7);
    wire_shape(w, two_by_three, 2);
    wire_text(w, 11, "something");
    wire_raw(w, "\x63\x08\x01\x64", 4); /* group 12 */
    wire_floats(w, DATA, six, 6);
    wire_float(w, 13, 1);
    wire_double(w, 14, 1);
}

static void wrong_wire_types_are_unknown(struct wire *w) {
    wire_float(w, DATA, 1);        /* the first value */
    wire_number(w, DATA, 4);       /* data as a number */
    wire_double(w, DATA, 1);       /* data as 8 bytes */
    wire_float(w, DOUBLE_DATA, 1); /* double_data as 4 bytes */
    wire_number(w, SHAPE, 9);      /* shape as a number */
    wire_raw(w, "\x3b\x3c", 2);    /* shape as a group */
    wire_bytes(w, NUM, "\x05", 1); /* num as bytes */
    wire_float(w, CHANNELS, 2);    /* channels as 4 bytes */
    wire_shape(w, two_by_three, 2);
    wire_floats(w, DATA, six + 1, 5);
}

static const struct {
    const char *claim;
    void (*build)(struct wire *);
} encodings[] = {
    {"packed", packed},
    {"double_data replaces data", doubles_beat_floats},
    {"dimensions with overlong varints", dims_overlong},
    {"unknown fields", unknown_fields_between},
    {"known fields of a wrong wire type", wrong_wire_types_are_unknown},
};

TEST(test_every_encoding_reads_the_same) {
    for (size_t i = 0; i < 2 * (sizeof encodings / sizeof *encodings); i++) {
        struct wire wire = {0};
        sb_blob *blob = test_unshaped(NULL, i % 2 ? SB_DTYPE_F64 : SB_DTYPE_F32);
        print_message("  %s\n", encodings[i / 2].claim);
        encodings[i / 2].build(&wire);
        assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
        assert_shape_is(blob, "2 3 (6)");
        assert_values(blob, SB_DATA, 6, 1);
    }
}

/* --- shapes ------------------------------------------------------------------------------ */

TEST(test_shapes_that_messages_have) {
    static const struct {
        const char *claim, *bytes;
        size_t size;
        const char *shape;
    } rows[] = {
        {"one value without other fields is a scalar", "\x2a\x04\0\0\x80\x3f", 6, "(1)"},
        {"an empty shape: a scalar", "\x3a\x00\x2a\x04\0\0\x80\x3f", 8, "(1)"},
        {"a zero dimension", "\x3a\x04\x0a\x02\x03\x00", 6, "3 0 (0)"},
        {"legacy dimensions replace the shape",
         "\x3a\x04\x0a\x02\x07\x07\x08\1\x10\1\x18\1\x20\1\x2a\x04\0\0\x80\x3f", 20, "1 1 1 1 (1)"},
        {"a legacy field that is missing is 0", "\x08\x05", 2, "5 0 0 0 (0)"},
        {"a legacy field of 0 counts as present", "\x10\x00", 2, "0 0 0 0 (0)"},
        {"the last legacy field wins", "\x08\x09\x08\x01\x10\1\x18\1\x20\1\x2a\x04\0\0\x80\x3f", 16,
         "1 1 1 1 (1)"},
        {"a shape that legacy fields replace may be invalid",
         "\x3a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x00", 16, "0 0 0 0 (0)"},
        {"a dimension of 0, and others whose product overflows",
         "\x3a\x12\x0a\x10\x00\x80\x80\x80\x80\x04\x80\x80\x80\x80\x04\x80\x80\x80\x80\x04", 20,
         "0 1073741824 1073741824 1073741824 (0)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
        print_message("  %s\n", rows[i].claim);
        assert_ok(
            sb_blob_from_proto(blob, rows[i].bytes, rows[i].size, SB_PROTO_RESHAPE, NULL, &err));
        assert_shape_is(blob, rows[i].shape);
    }
}

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
            wire_number(&wire, NUM + k, (uint64_t)rows[i].legacy[k]);
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

TEST(test_current_shapes_compare_axis_by_axis) {
    static const int64_t dims[] = {2, 3};
    sb_blob *fresh = test_unshaped(NULL, SB_DTYPE_F32);
    int32_t equal;
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, dims);
    sb_blob *scalar = test_blob(NULL, SB_DTYPE_F32, 0, NULL);
    assert_ok(sb_blob_shape_equals_proto(blob, "\x3a\x04\x0a\x02\x02\x03", 6, &equal, &err));
    assert_int_equal(equal, 1);
    assert_ok(sb_blob_shape_equals_proto(blob, "\x3a\x04\x0a\x02\x03\x02", 6, &equal, &err));
    assert_int_equal(equal, 0);
    assert_ok(sb_blob_shape_equals_proto(blob, "\x3a\x05\x0a\x03\x01\x02\x03", 7, &equal, &err));
    assert_int_equal(equal, 0);
    assert_ok(sb_blob_shape_equals_proto(scalar, "", 0, &equal, &err));
    assert_int_equal(equal, 1);
    assert_ok(sb_blob_shape_equals_proto(fresh, "", 0, &equal, &err));
    assert_int_equal(equal, 0);
    equal = 5;
    assert_status(SB_ERR_MALFORMED, sb_blob_shape_equals_proto(blob, "\x3a", 1, &equal, &err));
    assert_int_equal(equal, 5);
}

TEST(test_reshape_accepts_a_blob_shape) {
    skip_on_32_bits("the shapes exceed the address space");
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_U32);
    uint32_t reallocated = 99;
    void *p;
    assert_ok(sb_blob_reshape_proto(blob, "\x0a\x02\x02\x03", 4, &reallocated, &err));
    assert_shape_is(blob, "2 3 (6)");
    assert_int_equal(reallocated, 0);
    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &p, &err));
    assert_ok(sb_blob_reshape_proto(blob, "\x0a\x02\x08\x03", 4, &reallocated, &err));
    assert_int_equal(reallocated, SB_REALLOCATED_DATA);
    assert_ok(sb_blob_reshape_proto(blob, "", 0, NULL, &err));
    assert_shape_is(blob, "(1)");
    assert_status(SB_ERR_BAD_SHAPE,
                  sb_blob_reshape_proto(blob,
                                        "\x08\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13,
                                        NULL, &err));
    assert_int_equal(err.offset, 3);
    assert_status(SB_ERR_DATA_OVERFLOW,
                  sb_blob_reshape_proto(blob, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x02",
                                        12, NULL, &err));
    /* The count fits in 63 bits, but the number of bytes of 4-byte elements does not. */
    assert_status(
        SB_ERR_DATA_OVERFLOW,
        sb_blob_reshape_proto(blob, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, NULL, &err));
    /* The number of bytes fits for floats, but not for doubles. */
    sb_blob *wide = test_unshaped(NULL, SB_DTYPE_F64);
    assert_status(
        SB_ERR_DATA_OVERFLOW,
        sb_blob_reshape_proto(wide, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x10", 10, NULL, &err));
    assert_int_equal(err.offset, 0);
    assert_non_null(strstr(err.message, "dim: the shape's byte count overflows"));
    assert_status(SB_ERR_DATA_OVERFLOW,
                  sb_blob_from_proto(wide, "\x3a\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x10", 12,
                                     SB_PROTO_RESHAPE, NULL, &err));
    test_end(wide);
    assert_status(SB_ERR_MALFORMED, sb_blob_reshape_proto(blob, "\x0a\x02\x02", 3, NULL, &err));
    assert_status(SB_ERR_MALFORMED, sb_blob_reshape_proto(blob, "\x0a\x01\x82\x03", 4, NULL, &err));
    assert_shape_is(blob, "(1)");
}

TEST(test_without_reshape_the_blob_keeps_its_shape) {
    static const int64_t six_dims[] = {6}, legacy[] = {1, 1, 1, 6};
    struct wire wire = {0};
    sb_blob *fresh = test_unshaped(NULL, SB_DTYPE_F32);
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 1, six_dims);
    for (uint32_t k = 0; k < 4; k++)
        wire_number(&wire, NUM + k, (uint64_t)legacy[k]);
    wire_floats(&wire, DATA, six, 6);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, 0, NULL, &err));
    assert_shape_is(blob, "6 (6)");
    assert_values(blob, SB_DATA, 6, 1);
    assert_status(SB_ERR_SHAPE_MISMATCH,
                  sb_blob_from_proto(fresh, wire.bytes, wire.size, 0, NULL, &err));
    wire_free(&wire);
    packed(&wire);
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

/* --- diff and conversions ------------------------------------------------------------------- */

TEST(test_a_message_without_diff_leaves_diff_alone) {
    struct wire wire = {0};
    void *diff;
    packed(&wire);
    sb_blob *blob = test_blob(NULL, SB_DTYPE_F32, 2, two_by_three);
    assert_ok(sb_blob_mutable_cpu(blob, SB_DIFF, &diff, &err));
    memcpy(diff, six, sizeof six);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_values(blob, SB_DIFF, 6, 1);
}

TEST(test_conversions_round_and_overflow_to_infinity) {
    static const double values[] = {0.1,        1e300,           -1e300, 1e-320,
                                    16777217.0, (double)FLT_MAX, 3.5e38};
    static const float expected[] = {0.1F, INFINITY, -INFINITY, 0, 16777216, FLT_MAX, INFINITY};
    struct wire wire = {0};
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    wire_shape(&wire, (int64_t[]){7}, 1);
    wire_doubles(&wire, DOUBLE_DATA, values, 7);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_memory_equal(host_of(blob, SB_DATA), expected, sizeof expected);
}

TEST(test_conversion_is_right_past_one_chunk) {
    enum { COUNT = 20000 };
    struct wire wire = {0};
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    wire_blob(&wire, (int64_t[]){COUNT}, 1, 10);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_values(blob, SB_DATA, COUNT, 10);
}

TEST(test_the_bits_of_floats_are_kept) {
    static const char bytes[] =
        "\x2a\x0c\x01\x00\xa0\x7f\x00\x00\x00\x80\x01\x00\x00\x00\x3a\x03\x0a\x01\x03";
    const uint32_t expected[] = {0x7fa00001, 0x80000000, 1}; /* a signalling NaN, -0, a denormal */
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    assert_ok(sb_blob_from_proto(blob, bytes, sizeof bytes - 1, SB_PROTO_RESHAPE, NULL, &err));
    assert_memory_equal(host_of(blob, SB_DATA), expected, sizeof expected);
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
    {"a negative second dimension", B("\x3a\x0d\x0a\x0b\x02" NINE_FF "\x01"), SB_ERR_BAD_SHAPE, 5,
     "axis 1"},
    {"a negative legacy dimension", B("\x08\x01\x10" NINE_FF "\x01"), SB_ERR_BAD_SHAPE, 2,
     "channels: -1 is negative at offset 2"},
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
        packed(&wire);
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

TEST(test_32_axes_are_accepted) {
    int64_t dims[32];
    struct wire wire = {0};
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F32);
    for (int i = 0; i < 32; i++)
        dims[i] = 1;
    wire_blob(&wire, dims, 32, 4);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_int_equal(sb_blob_num_axes(blob), 32);
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
