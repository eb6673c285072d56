/* Tests NVCaffe's raw_data and raw_diff, fields of bytes with values of one of five types. */
#include "blobs.h"
#include "halves.h"
#include "nets.h"

#include <math.h>

enum { DOUBLE_DIFF = 9, RAW_DATA_TYPE, RAW_DIFF_TYPE, RAW_DATA, RAW_DIFF };
enum { DOUBLE = 0, FLOAT, FLOAT16, INT, UINT };
static const size_t widths[] = {8, 4, 2, 4, 4};

/* Returns a message with a shape of one axis and with raw_data. */
static struct wire raw_of(uint32_t type, const void *bytes, int64_t count) {
    struct wire wire = {0};
    wire_shape(&wire, &count, 1);
    wire_number(&wire, RAW_DATA_TYPE, type);
    wire_values(&wire, RAW_DATA, bytes, widths[type], (size_t)count * widths[type]);
    return wire;
}

/* Reads the message into a new blob of the type `dtype`. */
static sb_blob *read_blob(int32_t dtype, struct wire wire) {
    sb_blob *blob = test_unshaped(NULL, dtype);
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    return blob;
}

/* --- values -------------------------------------------------------------------------------- */

static bool is_half_nan(unsigned half) {
    return (half & 0x7fff) > 0x7c00;
}

static sb_blob *all_halves(int32_t dtype) {
    static uint16_t halves[1 << 16];
    for (unsigned i = 0; i < 1 << 16; i++)
        halves[i] = (uint16_t)i;
    return read_blob(dtype, raw_of(FLOAT16, halves, 1 << 16));
}

TEST(every_half_is_exact_as_a_float_and_as_a_double) {
    const uint32_t *floats = host_of(all_halves(SB_DTYPE_F32), SB_DATA);
    const double *doubles = host_of(all_halves(SB_DTYPE_F64), SB_DATA);
    for (unsigned i = 0; i < 1 << 16; i++) {
        const double value = value_of_half(SB_DTYPE_F16, (uint16_t)i), found = doubles[i];
        const float narrow = (float)value;
        const bool is_right = is_half_nan(i)
                                  ? isnan(found) && (signbit(found) != 0) == (i >> 15 != 0)
                                  : memcmp(&found, &value, sizeof value) == 0;
        uint32_t expected;
        memcpy(&expected, &narrow, sizeof expected);
        if (is_half_nan(i)) /* a float that is NaN keeps sign and payload */
            expected = (i >> 15) << 31 | 0x7f800000 | (i & 1023) << 13;
        if (floats[i] != expected || !is_right)
            fail_with("half %04x: %08x and %a, not %08x and %a", i, floats[i], found, expected,
                      value);
    }
}

TEST(halves_stay_as_they_are_in_a_blob_of_halves) {
    static const uint16_t some[] = {0x7c01, 0x8001, 0xfbff};
    sb_blob *blob = all_halves(SB_DTYPE_F16);
    const uint16_t *found = host_of(blob, SB_DATA);
    for (unsigned i = 0; i < 1 << 16; i++)
        if (found[i] != i)
            fail_with("half %04x: %04x", i, found[i]);
    struct wire wire = raw_of(FLOAT16, some, 3);
    wire_number(&wire, RAW_DIFF_TYPE, FLOAT16);
    wire_values(&wire, RAW_DIFF, some, 2, sizeof some);
    blob = read_blob(SB_DTYPE_F16, wire);
    assert_memory_equal(host_of(blob, SB_DIFF), some, sizeof some);
}

/* --- wire types ---------------------------------------------------------------------------- */

static const uint16_t halves_1_2[] = {0x3c00, 0x4000};
static const double doubles_1_2[] = {1, 2};

TEST(unknown_types_and_raw_fields_of_a_wrong_wire_type_are_skipped) {
    struct wire wire = raw_of(FLOAT16, halves_1_2, 2);
    wire_number(&wire, RAW_DATA_TYPE, INT);
    wire_number(&wire, RAW_DATA_TYPE, UINT64_C(1) << 32 | FLOAT16); /* 32 bits count */
    wire_number(&wire, RAW_DATA_TYPE, UINT + 1);
    wire_bytes(&wire, RAW_DATA_TYPE, "", 0);
    wire_number(&wire, RAW_DATA, INT);
    assert_values(read_blob(SB_DTYPE_F32, wire), SB_DATA, 2, 1);
}

/* --- refusals ------------------------------------------------------------------------------ */

static void refused_by_halves(struct wire wire, const char *part) {
    static const uint16_t before[] = {1, 2};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F16, 2);
    memcpy(host_to_write(blob, SB_DATA), before, sizeof before);
    assert_status(SB_ERR_DTYPE_MISMATCH,
                  sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, NULL, &err));
    assert_non_null(strstr(err.message, part));
    assert_memory_equal(host_of(blob, SB_DATA), before, sizeof before);
    sb_model *model = test_model_of(&wire, SB_FORMAT_BLOB);
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
    assert_memory_equal(host_of(blob, SB_DATA), before, sizeof before);
}

TEST(a_blob_of_halves_accepts_nothing_else) {
    static const char zeros[16];
    for (uint32_t type = DOUBLE; type <= UINT; type++) {
        static const char *const names[] = {"f64", "f32", "", "i32", "u32"};
        char part[80];
        if (type == FLOAT16)
            continue;
        (void)snprintf(part, sizeof part, "raw_data: a blob of f16 cannot hold %s at offset ",
                       names[type]);
        refused_by_halves(raw_of(type, zeros, 2), part);
        struct wire wire = raw_of(FLOAT16, halves_1_2, 2);
        wire_doubles(&wire, DOUBLE_DIFF, doubles_1_2, 2);
        refused_by_halves(wire, "double_diff: a blob of f16 cannot hold f64 at offset ");
    }
}

TEST(refusals_report_the_offset) {
    static const struct {
        const char *bytes;
        size_t size;
        sb_status status;
        int64_t offset;
        const char *part;
    } rows[] = {
#define B(s) s, sizeof s - 1
        {B("\x3a\x03\x0a\x01\x01\x62\x02hh"), SB_ERR_MALFORMED, 5,
         "raw_data: the type of its 2 bytes is missing or unknown at offset 5"},
        {B("\x3a\x03\x0a\x01\x01\x50\x05\x62\x02hh"), SB_ERR_MALFORMED, 7,
         "raw_data: the type of its 2 bytes is missing or unknown at offset 7"},
        {B("\x3a\x03\x0a\x01\x01\x58\x02\x62\x02hh"), SB_ERR_MALFORMED, 7, "raw_data: the type"},
        {B("\x2a\x04\0\0\0\0\x6a\x02hh"), SB_ERR_MALFORMED, 6,
         "raw_diff: the type of its 2 bytes is missing or unknown at offset 6"},
        {B("\x50\x02\x62\x03hhh"), SB_ERR_MALFORMED, 4,
         "raw_data: 3 bytes are not a whole number of 2-byte values at offset 4"},
        {B("\x62\14dddddddddddd\x50\x00"), SB_ERR_MALFORMED, 2,
         "raw_data: 12 bytes are not a whole number of 8-byte values"},
        {B("\x2a\x04\0\0\0\0\x58\x03\x6a\x05iiiii"), SB_ERR_MALFORMED, 10,
         "raw_diff: 5 bytes are not a whole number of 4-byte values at offset 10"},
        {B("\x50\x02\x62\x04hhhh"), SB_ERR_LENGTH_MISMATCH, 2,
         "raw_data: 2 values for a shape of 1 at offset 2"},
        {B("\x50\x02\x62\x04hhhh\x62\x06hhhhhh"), SB_ERR_LENGTH_MISMATCH, 8,
         "raw_data: 3 values for a shape of 1 at offset 8"},
        {B("\x2a\x04\0\0\0\0\x58\x04\x6a\x08uuuuuuuu"), SB_ERR_LENGTH_MISMATCH, 8,
         "raw_diff: 2 values for a shape of 1 at offset 8"},
        {B("\x62\x02hh\x50\x02\x62\x00"), SB_ERR_LENGTH_MISMATCH, 0,
         "data: 0 values for a shape of 1"},
        {B("\x50\x02\x62\x7fhh"), SB_ERR_MALFORMED, 6, "raw_data: 125 bytes are missing"},
        {B("\x62\x02hh\x50\x82\x80\x80\x80\x80\x80\x80\x80\x80\x02"), SB_ERR_MALFORMED, 5,
         "raw_data_type: the number has bits beyond 64; it begins at offset 5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 3);
        assert_status(rows[i].status, sb_blob_from_proto(blob, rows[i].bytes, rows[i].size,
                                                         SB_PROTO_RESHAPE, NULL, &err));
        if (err.offset != rows[i].offset || !strstr(err.message, rows[i].part))
            fail_with("row %zu: \"%s\", offset %lld", i, err.message, (long long)err.offset);
        assert_int_equal(sb_blob_count(blob), 3);
    }
}

/* --- models -------------------------------------------------------------------------------- */

/* Makes a net with a layer for each type, in the order of NVCaffe's numbers of the types. */
static struct wire net_of_every_type(void) {
    static const char zeros[16];
    struct wire net = {0};
    for (uint32_t type = DOUBLE; type <= UINT; type++) {
        const struct wire blob = raw_of(type, zeros, 2);
        struct wire layer = {0};
        wire_text(&layer, 1, "conv");
        wire_message(&layer, 7, &blob);
        wire_message(&net, 100, &layer);
    }
    return net;
}

/* A replaced blob is saved in Caffe's fields; the raw fields of the other blobs are unchanged. */
TEST(blobs_that_are_not_replaced_stay_raw) {
    struct wire net = net_of_every_type();
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 2);
    unsigned char saved[256];
    size_t size;
    sb_model *model = test_model_of(&net, SB_FORMAT_AUTO);
    const sb_blob_info last = blob_info_of(model, FLOAT16, 0);
    assert_ok(sb_model_set_blob(model, UINT, 0, blob, 0, &err));
    assert_ok(sb_model_save(model, saved, sizeof saved, &size, &err));
    test_end(model);
    assert_memory_equal(saved, net.bytes, (size_t)last.offset + last.size);
    assert_ok(
        sb_model_open_bytes(NULL, SB_FORMAT_AUTO, saved, size, NULL, NULL, NULL, &model, &err));
    assert_int_equal(blob_info_of(model, INT, 0).dtype, SB_DTYPE_I32);
    assert_int_equal(blob_info_of(model, UINT, 0).dtype, SB_DTYPE_F32);
    sb_model_destroy(model);
}
