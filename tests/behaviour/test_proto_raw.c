/* NVCaffe's raw_data and raw_diff: values of five types as bytes of one field. */
#include "blobs.h"
#include "nets.h"

#include "memory/mem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DATA = 5, DIFF, SHAPE, DOUBLE_DATA, DOUBLE_DIFF };
enum { RAW_DATA_TYPE = 10, RAW_DIFF_TYPE, RAW_DATA, RAW_DIFF };
enum { DOUBLE = 0, FLOAT, FLOAT16, INT, UINT };
static const size_t widths[] = {8, 4, 2, 4, 4};

static void put_shape(struct wire *wire, int64_t count) {
    struct wire shape = {0};
    wire_numbers(&shape, 1, &count, 1);
    wire_message(wire, SHAPE, &shape);
}

static void put_raw(struct wire *wire, uint64_t type, const void *bytes, size_t size) {
    wire_number(wire, RAW_DATA_TYPE, type);
    wire_values(wire, RAW_DATA, bytes, widths[(uint32_t)type], size);
}

static void put_raw_diff(struct wire *wire, uint64_t type, const void *bytes, size_t size) {
    wire_number(wire, RAW_DIFF_TYPE, type);
    wire_values(wire, RAW_DIFF, bytes, widths[(uint32_t)type], size);
}

/* A blob of `dtype` that has taken the message, which ends here. */
static sb_blob *read_blob(int32_t dtype, struct wire *wire) {
    sb_blob *blob = test_unshaped(NULL, dtype);
    assert_ok(sb_blob_from_proto(blob, wire->bytes, wire->size, SB_PROTO_RESHAPE, NULL, &err));
    wire_free(wire);
    return blob;
}

static const void *data(const sb_blob *blob) {
    const void *p;
    assert_ok(sb_blob_cpu(blob, SB_DATA, &p, &err));
    return p;
}

static const void *diff(const sb_blob *blob) {
    const void *p;
    assert_ok(sb_blob_cpu(blob, SB_DIFF, &p, &err));
    return p;
}

/* --- values -------------------------------------------------------------------------------- */

/* A half as IEEE 754 defines it, NaN apart. */
static double half_value(unsigned half) {
    const int exponent = (int)(half >> 10 & 31), fraction = (int)(half & 1023);
    const double sign = half >> 15 ? -1.0 : 1.0;
    if (exponent == 31)
        return sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, -24);
    return sign * ldexp(1024 + fraction, exponent - 25);
}

static bool is_half_nan(unsigned half) {
    return (half & 0x7fff) > 0x7c00;
}

static sb_blob *all_halves(int32_t dtype) {
    static uint16_t halves[1 << 16];
    struct wire wire = {0};
    for (unsigned i = 0; i < 1 << 16; i++)
        halves[i] = (uint16_t)i;
    put_shape(&wire, 1 << 16);
    put_raw(&wire, FLOAT16, halves, sizeof halves);
    return read_blob(dtype, &wire);
}

TEST(every_half_is_exact_as_a_float) {
    sb_blob *blob = all_halves(SB_DTYPE_F32);
    const uint32_t *found = data(blob);
    for (unsigned i = 0; i < 1 << 16; i++) {
        const float value = (float)half_value(i);
        uint32_t expected;
        memcpy(&expected, &value, sizeof expected);
        if (is_half_nan(i)) /* sign and payload stay */
            expected = (i >> 15) << 31 | 0x7f800000 | (i & 1023) << 13;
        if (found[i] != expected)
            fail_with("half %04x: %08x, not %08x", i, found[i], expected);
    }
}

TEST(every_half_is_exact_as_a_double) {
    sb_blob *blob = all_halves(SB_DTYPE_F64);
    const double *found = data(blob);
    for (unsigned i = 0; i < 1 << 16; i++) {
        const double expected = half_value(i);
        const bool is_right = is_half_nan(i)
                                  ? isnan(found[i]) && (signbit(found[i]) != 0) == (i >> 15 != 0)
                                  : memcmp(&found[i], &expected, sizeof expected) == 0;
        if (!is_right)
            fail_with("half %04x: %a, not %a", i, found[i], expected);
    }
}

TEST(halves_stay_as_they_are_in_a_blob_of_halves) {
    static const uint16_t some[] = {0x7c01, 0x8001, 0xfbff};
    struct wire wire = {0};
    sb_blob *blob = all_halves(SB_DTYPE_F16);
    for (unsigned i = 0; i < 1 << 16; i++)
        if (((const uint16_t *)data(blob))[i] != i)
            fail_with("half %04x: %04x", i, ((const uint16_t *)data(blob))[i]);
    test_end(blob);
    put_shape(&wire, 3);
    put_raw(&wire, FLOAT16, some, sizeof some);
    put_raw_diff(&wire, FLOAT16, some, sizeof some);
    blob = read_blob(SB_DTYPE_F16, &wire);
    assert_memory_equal(diff(blob), some, sizeof some);
}

TEST(integers_round_to_the_nearest_float) {
    static const int32_t ints[] = {INT32_MIN, -16777217, -1, 0, 16777219, INT32_MAX};
    static const uint32_t unsigneds[] = {0, 16777217, 0x80000000, 0x80000081, UINT32_MAX};
    static const float int_floats[] = {-0x1p31F, -0x1p24F, -1, 0, 16777220.0F, 0x1p31F};
    static const float unsigned_floats[] = {0, 0x1p24F, 0x1p31F, 0x80000100p0F, 0x1p32F};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
        struct wire wire = {0};
        put_shape(&wire, 6);
        put_raw(&wire, INT, ints, sizeof ints);
        sb_blob *blob = read_blob(dtype, &wire);
        for (int i = 0; i < 6; i++)
            assert_true(value_at(dtype, data(blob), i) ==
                        (dtype == SB_DTYPE_F32 ? (double)int_floats[i] : (double)ints[i]));
        test_end(blob);
        put_shape(&wire, 5);
        put_raw(&wire, UINT, unsigneds, sizeof unsigneds);
        blob = read_blob(dtype, &wire);
        for (int i = 0; i < 5; i++)
            assert_true(
                value_at(dtype, data(blob), i) ==
                (dtype == SB_DTYPE_F32 ? (double)unsigned_floats[i] : (double)unsigneds[i]));
    }
}

TEST(doubles_and_floats_are_those_of_the_other_fields) {
    static const double doubles[] = {0.1, 1e300, -1e300, 1e-320, 16777217.0, (double)FLT_MAX};
    static const uint32_t floats[] = {0x7fa00001, 0x80000000, 1, 0xff800000, 0x3f800000, 2};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F64; dtype++) {
        const size_t size = 6 * sb_dtype_size(dtype);
        struct wire raw = {0}, packed = {0};
        put_shape(&raw, 6);
        put_raw(&raw, DOUBLE, doubles, sizeof doubles);
        put_raw_diff(&raw, FLOAT, floats, sizeof floats);
        put_shape(&packed, 6);
        wire_values(&packed, DOUBLE_DATA, doubles, sizeof *doubles, sizeof doubles);
        wire_values(&packed, DIFF, floats, sizeof *floats, sizeof floats);
        sb_blob *one = read_blob(dtype, &raw), *other = read_blob(dtype, &packed);
        assert_memory_equal(data(one), data(other), size);
        assert_memory_equal(diff(one), diff(other), size);
        test_end(one);
    }
}

TEST(conversion_is_right_past_one_chunk) {
    enum { COUNT = 20001 };
    static int32_t ints[COUNT];
    struct wire wire = {0};
    for (int i = 0; i < COUNT; i++)
        ints[i] = 3 * i - COUNT;
    put_shape(&wire, COUNT);
    put_raw(&wire, INT, ints, sizeof ints);
    sb_blob *blob = read_blob(SB_DTYPE_F64, &wire);
    for (int i = 0; i < COUNT; i++)
        assert_true(((const double *)data(blob))[i] == (double)ints[i]);
}

/* --- what counts --------------------------------------------------------------------------- */

static const uint16_t halves_1_2[] = {0x3c00, 0x4000}, halves_7_8[] = {0x4700, 0x4800};
static const float floats_1_2[] = {1, 2}, floats_7_8[] = {7, 8};
static const double doubles_1_2[] = {1, 2}, doubles_7_8[] = {7, 8};

static void plain(struct wire *w) {
    put_raw(w, FLOAT16, halves_1_2, sizeof halves_1_2);
}

static void type_behind_the_bytes(struct wire *w) {
    wire_values(w, RAW_DATA, halves_1_2, sizeof *halves_1_2, sizeof halves_1_2);
    wire_number(w, RAW_DATA_TYPE, FLOAT16);
}

static void the_last_bytes_and_the_last_type(struct wire *w) {
    put_raw(w, FLOAT, floats_7_8, sizeof floats_7_8);
    put_raw(w, DOUBLE, doubles_1_2, sizeof doubles_1_2);
}

static void types_that_are_unknown(struct wire *w) {
    plain(w);
    wire_number(w, RAW_DATA_TYPE, 5);
    wire_number(w, RAW_DATA_TYPE, UINT64_MAX);
}

static void a_type_beyond_32_bits(struct wire *w) { /* which protobuf cuts off */
    put_raw(w, (UINT64_C(1) << 32) | FLOAT16, halves_1_2, sizeof halves_1_2);
}

static void wrong_wire_types(struct wire *w) {
    plain(w);
    wire_bytes(w, RAW_DATA_TYPE, floats_7_8, sizeof floats_7_8);
    wire_float(w, RAW_DATA_TYPE, 1);
    wire_float(w, RAW_DATA, 7);
    wire_double(w, RAW_DATA, 7);
    wire_number(w, RAW_DATA, 7);
}

static void floats_win(struct wire *w) {
    put_raw(w, FLOAT16, halves_7_8, sizeof halves_7_8);
    wire_floats(w, DATA, floats_1_2, 2);
}

static void doubles_win(struct wire *w) {
    wire_doubles(w, DOUBLE_DATA, doubles_1_2, 2);
    put_raw(w, FLOAT16, halves_7_8, sizeof halves_7_8);
}

static void what_loses_is_not_looked_at(struct wire *w) {
    wire_floats(w, DATA, floats_1_2, 2);
    wire_bytes(w, RAW_DATA, "12345", 5);
}

static void empty_floats_and_doubles_lose(struct wire *w) {
    wire_floats(w, DATA, NULL, 0);
    plain(w);
    wire_doubles(w, DOUBLE_DATA, NULL, 0);
}

static void the_type_of_diff_is_another(struct wire *w) {
    plain(w);
    wire_number(w, RAW_DIFF_TYPE, DOUBLE);
}

TEST(which_of_several_counts) {
    static const struct {
        const char *name;
        void (*put)(struct wire *w);
    } rows[] = {
        {"raw_data alone", plain},
        {"the type behind the bytes", type_behind_the_bytes},
        {"the last bytes and the last type", the_last_bytes_and_the_last_type},
        {"types that are unknown are skipped", types_that_are_unknown},
        {"a type beyond 32 bits", a_type_beyond_32_bits},
        {"wrong wire types are skipped", wrong_wire_types},
        {"floats win", floats_win},
        {"doubles win", doubles_win},
        {"what loses is not looked at", what_loses_is_not_looked_at},
        {"empty floats and doubles lose", empty_floats_and_doubles_lose},
        {"the type of diff is another", the_type_of_diff_is_another},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct wire wire = {0};
        if (i % 2)
            put_shape(&wire, 2);
        rows[i / 2].put(&wire);
        if (!(i % 2))
            put_shape(&wire, 2);
        sb_blob *blob = read_blob(SB_DTYPE_F32, &wire);
        if (memcmp(data(blob), floats_1_2, sizeof floats_1_2) != 0)
            fail_with("%s: %g, %g", rows[i / 2].name, value_at(SB_DTYPE_F32, data(blob), 0),
                      value_at(SB_DTYPE_F32, data(blob), 1));
    }
}

TEST(diff_is_of_its_own_type) {
    struct wire wire = {0};
    put_shape(&wire, 2);
    put_raw(&wire, FLOAT16, halves_1_2, sizeof halves_1_2);
    put_raw_diff(&wire, DOUBLE, doubles_7_8, sizeof doubles_7_8);
    sb_blob *blob = read_blob(SB_DTYPE_F32, &wire);
    assert_memory_equal(data(blob), floats_1_2, sizeof floats_1_2);
    assert_memory_equal(diff(blob), floats_7_8, sizeof floats_7_8);
}

TEST(nothing_is_needed_for_no_elements) {
    struct wire wire = {0};
    for (int32_t dtype = SB_DTYPE_F32; dtype <= SB_DTYPE_F16; dtype++) {
        put_shape(&wire, 0);
        wire_bytes(&wire, RAW_DATA, NULL, 0);
        sb_blob *blob = read_blob(dtype, &wire);
        assert_int_equal(sb_blob_count(blob), 0);
    }
}

/* --- refusals ------------------------------------------------------------------------------ */

static void refused_by_halves(struct wire *wire, const char *says) {
    static const uint16_t before[] = {1, 2};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F16, 2);
    void *values;
    assert_ok(sb_blob_mutable_cpu(blob, SB_DATA, &values, &err));
    memcpy(values, before, sizeof before);
    assert_status(SB_ERR_DTYPE_MISMATCH,
                  sb_blob_from_proto(blob, wire->bytes, wire->size, SB_PROTO_RESHAPE, NULL, &err));
    assert_non_null(strstr(err.message, says));
    assert_memory_equal(data(blob), before, sizeof before);
    sb_model *model = test_model_of(wire, SB_FORMAT_BLOB);
    assert_status(SB_ERR_DTYPE_MISMATCH, sb_model_load_blob(model, SB_NO_LAYER, 0, blob, &err));
    assert_memory_equal(data(blob), before, sizeof before);
    test_end(model);
    wire_free(wire);
}

TEST(a_blob_of_halves_takes_nothing_else) {
    static const char zeros[16];
    for (uint64_t type = DOUBLE; type <= UINT; type++) {
        static const char *const names[] = {"f64", "f32", "", "i32", "u32"};
        struct wire wire = {0};
        char says[80];
        if (type == FLOAT16)
            continue;
        (void)snprintf(says, sizeof says, "raw_data: values of %s for a blob of f16 at offset ",
                       names[type]);
        put_shape(&wire, 2);
        put_raw(&wire, type, zeros, 2 * widths[type]);
        refused_by_halves(&wire, says);
        put_shape(&wire, 2);
        put_raw(&wire, FLOAT16, halves_1_2, sizeof halves_1_2);
        wire_doubles(&wire, DOUBLE_DIFF, doubles_1_2, 2);
        refused_by_halves(&wire, "double_diff: values of f64 for a blob of f16 at offset ");
    }
}

TEST(refusals_say_where) {
    static const struct {
        const char *bytes;
        size_t size;
        sb_status status;
        int64_t offset;
        const char *says;
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
         "raw_data: 3 bytes are no whole number of 2-byte values at offset 4"},
        {B("\x62\x0c"
           "dddddddddddd\x50\x00"),
         SB_ERR_MALFORMED, 2, "raw_data: 12 bytes are no whole number of 8-byte values"},
        {B("\x2a\x04\0\0\0\0\x58\x03\x6a\x05iiiii"), SB_ERR_MALFORMED, 10,
         "raw_diff: 5 bytes are no whole number of 4-byte values at offset 10"},
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
        if (err.offset != rows[i].offset || !strstr(err.message, rows[i].says))
            fail_with("row %zu: \"%s\", offset %lld", i, err.message, (long long)err.offset);
        assert_int_equal(sb_blob_count(blob), 3);
    }
}

/* Not even its type is asked for. */
TEST(one_value_is_enough_for_raw_data_to_be_left_alone) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 3);
    const float *values;
    assert_ok(sb_blob_from_proto(blob, "\x2a\x04\0\0\xa0\x40\x62\x02hh", 10, SB_PROTO_RESHAPE, NULL,
                                 &err));
    assert_ok(sb_blob_cpu_f32(blob, SB_DATA, &values, &err));
    assert_true(sb_blob_count(blob) == 1 && values[0] == 5);
}

/* A byte of a half becomes four of a double: they are what counts against the limit. */
TEST(the_limit_is_of_what_is_allocated) {
    enum { COUNT = 1000 };
    static const uint16_t halves[COUNT];
    struct wire wire = {0};
    sb_limits limits = SB_LIMITS_INIT;
    put_shape(&wire, COUNT);
    put_raw(&wire, FLOAT16, halves, sizeof halves);
    sb_blob *blob = test_unshaped(NULL, SB_DTYPE_F64);
    limits.max_memory = sizeof(sb_mem) + COUNT * sizeof(double) - 1;
    assert_status(SB_ERR_DATA_LIMIT,
                  sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, &limits, &err));
    limits.max_memory++;
    assert_ok(sb_blob_from_proto(blob, wire.bytes, wire.size, SB_PROTO_RESHAPE, &limits, &err));
}

/* --- models -------------------------------------------------------------------------------- */

static void put_layer(struct wire *net, const struct wire *blob) {
    struct wire layer = {0};
    wire_text(&layer, 1, "conv");
    wire_message(&layer, 7, blob);
    wire_message(net, 100, &layer);
}

/* One layer for each type: the number of NVCaffe's is that of the layer. */
static struct wire net_of_every_type(void) {
    static const char zeros[16];
    struct wire net = {0};
    for (uint64_t type = DOUBLE; type <= UINT; type++) {
        struct wire blob = {0};
        put_shape(&blob, 2);
        put_raw(&blob, type, zeros, 2 * widths[type]);
        put_layer(&net, &blob);
    }
    return net;
}

TEST(a_listing_says_what_is_stored) {
    static const int32_t dtypes[] = {SB_DTYPE_F64, SB_DTYPE_F32, SB_DTYPE_F16, SB_DTYPE_I32,
                                     SB_DTYPE_U32};
    struct wire net = net_of_every_type();
    sb_model *model = test_model_of(&net, SB_FORMAT_AUTO);
    for (int64_t i = 0; i < 5; i++) {
        sb_blob_info info = SB_BLOB_INFO_INIT;
        sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 0);
        assert_ok(sb_model_blob_info(model, i, 0, &info, &err));
        assert_int_equal(info.dtype, dtypes[i]);
        assert_int_equal(info.data_count, 2);
        assert_int_equal(info.diff_count, 0);
        assert_int_equal(info.diff_dtype, dtypes[i]);
        assert_ok(sb_model_load_blob(model, i, 0, blob, &err));
        assert_int_equal(sb_blob_count(blob), 2);
    }
}

TEST(a_diff_alone_is_what_is_listed) {
    struct wire wire = {0};
    sb_blob_info info = SB_BLOB_INFO_INIT;
    put_shape(&wire, 2);
    put_raw_diff(&wire, FLOAT16, halves_1_2, sizeof halves_1_2);
    sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
    assert_ok(sb_model_blob_info(model, SB_NO_LAYER, 0, &info, &err));
    assert_int_equal(info.dtype, SB_DTYPE_F16);
    assert_int_equal(info.data_count, 0);
    assert_int_equal(info.diff_count, 2);
    assert_int_equal(info.diff_dtype, SB_DTYPE_F16);
}

TEST(data_and_diff_are_listed_apart) {
    struct wire wire = {0};
    sb_blob_info info = SB_BLOB_INFO_INIT;
    put_shape(&wire, 2);
    wire_floats(&wire, DATA, floats_1_2, 2);
    put_raw_diff(&wire, INT, "iiiiiiii", 8);
    sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
    assert_ok(sb_model_blob_info(model, SB_NO_LAYER, 0, &info, &err));
    assert_int_equal(info.dtype, SB_DTYPE_F32);
    assert_int_equal(info.diff_dtype, SB_DTYPE_I32);
}

TEST(opening_finds_what_is_malformed) {
    struct wire blob = {0}, net = {0};
    sb_model *model;
    put_shape(&blob, 1);
    put_raw(&blob, FLOAT16, "hhh", 3);
    put_layer(&net, &blob);
    assert_status(SB_ERR_MALFORMED, sb_model_open_bytes(NULL, SB_FORMAT_AUTO, net.bytes, net.size,
                                                        NULL, NULL, NULL, &model, &err));
    assert_non_null(strstr(err.message, "layer[0].blobs[0].raw_data: 3 bytes"));
}

/* A scalar has no shape, so that these two fields are all there is to tell the format by. */
TEST(a_file_of_raw_data_is_a_blob) {
    struct wire wire = {0};
    put_raw(&wire, FLOAT16, halves_1_2, sizeof *halves_1_2);
    sb_model *model = test_model_of(&wire, SB_FORMAT_AUTO);
    assert_int_equal(sb_model_format(model), SB_FORMAT_BLOB);
}

/* Caffe would not find the values of what it does not know. */
TEST(raw_data_is_never_written) {
    static const char expected[] = "\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x3a\x03\x0a\x01\x02";
    struct wire wire = {0};
    char bytes[64];
    size_t size;
    put_shape(&wire, 2);
    plain(&wire);
    sb_blob *blob = read_blob(SB_DTYPE_F32, &wire);
    assert_ok(sb_blob_to_proto(blob, 0, bytes, sizeof bytes, &size, &err));
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(bytes, expected, size);
}

/* One blob is replaced, by Caffe's own fields; the raw ones beside it stay byte for byte. */
TEST(what_is_not_replaced_stays_raw) {
    struct wire net = net_of_every_type();
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F32, 2);
    unsigned char saved[256];
    size_t size;
    sb_blob_info info = SB_BLOB_INFO_INIT;
    sb_model *model = test_model_of(&net, SB_FORMAT_AUTO);
    assert_ok(sb_model_blob_info(model, FLOAT16, 0, &info, &err));
    assert_ok(sb_model_set_blob(model, UINT, 0, blob, 0, &err));
    assert_ok(sb_model_save(model, saved, sizeof saved, &size, &err));
    test_end(model);
    const size_t kept = (size_t)info.offset + info.size;
    assert_memory_equal(saved, net.bytes, kept);
    assert_ok(
        sb_model_open_bytes(NULL, SB_FORMAT_AUTO, saved, size, NULL, NULL, NULL, &model, &err));
    assert_ok(sb_model_blob_info(model, INT, 0, &info, &err));
    assert_int_equal(info.dtype, SB_DTYPE_I32);
    assert_ok(sb_model_blob_info(model, UINT, 0, &info, &err));
    assert_int_equal(info.dtype, SB_DTYPE_F32);
    sb_model_destroy(model);
}
