/* Tests the values that reads store, also from the fields raw_data and raw_diff of NVCaffe. */
#include "blobs.h"
#include "halves.h"
#include "nets.h"

#include <math.h>

enum { DATA = 5, DOUBLE_DATA = 8, DOUBLE_DIFF, RAW_DATA_TYPE, RAW_DIFF_TYPE, RAW_DATA, RAW_DIFF };
enum { DOUBLE = 0, FLOAT, FLOAT16, INT, UINT };
static const size_t widths[] = {8, 4, 2, 4, 4};

static struct wire raw_of(uint32_t type, const void *bytes, int64_t count) {
    struct wire wire = {0};
    wire_shape(&wire, &count, 1);
    wire_number(&wire, RAW_DATA_TYPE, type);
    wire_values(&wire, RAW_DATA, bytes, widths[type], (size_t)count * widths[type]);
    return wire;
}

static sb_blob *read_blob(int32_t dtype, struct wire wire) {
    sb_blob *blob = test_unshaped(NULL, dtype);
    assert_ok(read_wire(blob, &wire, &err));
    return blob;
}

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
        if (is_half_nan(i)) /* a NaN keeps its sign and payload */
            expected = (i >> 15) << 31 | 0x7f800000 | (i & 1023) << 13;
        if (floats[i] != expected || !is_right)
            fail_with("half %04x: %08x and %a, not %08x and %a", i, floats[i], found, expected,
                      value);
    }
}

static const uint16_t halves_1_2[] = {0x3c00, 0x4000};
static const double doubles_1_2[] = {1, 2};

TEST(unknown_types_and_raw_fields_of_a_wrong_wire_type_are_skipped) {
    struct wire wire = raw_of(FLOAT16, halves_1_2, 2);
    wire_number(&wire, RAW_DATA_TYPE, INT);
    wire_number(&wire, RAW_DATA_TYPE, UINT64_C(1) << 32 | FLOAT16); /* the type: the low 32 bits */
    wire_number(&wire, RAW_DATA_TYPE, UINT + 1);
    wire_bytes(&wire, RAW_DATA_TYPE, "", 0);
    wire_number(&wire, RAW_DATA, INT);
    assert_values(read_blob(SB_DTYPE_F32, wire), SB_DATA, 2, 1);
}

static void refused_by_halves(struct wire wire, const char *part) {
    static const uint16_t before[] = {1, 2};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F16, 2);
    memcpy(host_to_write(blob, SB_DATA), before, sizeof before);
    assert_reports(SB_ERR_DTYPE_MISMATCH, read_wire(blob, &wire, &err), part);
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

TEST(a_message_without_values_is_read_into_a_blob_of_halves) {
    struct wire wire = {0};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_F16, 2);
    wire_shape(&wire, (int64_t[]){0}, 1);
    assert_ok(read_wire(blob, &wire, &err));
    assert_int_equal(sb_blob_count(blob), 0);
}

#define OVERFLOWS SB_ERR_DATA_OVERFLOW

static struct wire message_of(const double *values, int64_t count) {
    struct wire wire = {0};
    wire_shape(&wire, &count, 1);
    wire_doubles(&wire, DOUBLE_DATA, values, (size_t)count);
    return wire;
}

static void check_read(struct wire wire, sb_dtype dtype, const void *expected, int64_t count) {
    sb_blob *blob = test_vector(NULL, dtype, 0);
    assert_ok(read_wire(blob, &wire, &err));
    assert_int_equal(sb_blob_count(blob), count);
    assert_memory_equal(host_of(blob, SB_DATA), expected, (size_t)count * sizeof(int32_t));
}

TEST(raw_values_of_every_type_are_read) {
    const uint16_t halves[] = {0x3c00, 0xbc00, 0x7bff};
    const int32_t ints[] = {INT32_MIN, INT32_MAX}, small[] = {INT32_MAX, 5};
    const uint32_t unsigneds[] = {UINT32_MAX, 0};
    check_read(raw_of(FLOAT16, halves, 3), SB_DTYPE_I32, (int32_t[]){1, -1, 65504}, 3);
    check_read(raw_of(INT, ints, 2), SB_DTYPE_I32, ints, 2);
    check_read(raw_of(UINT, unsigneds, 2), SB_DTYPE_U32, unsigneds, 2);
    check_read(raw_of(UINT, small, 2), SB_DTYPE_I32, small, 2);
    check_read(raw_of(FLOAT, (float[]){8}, 1), SB_DTYPE_U32, (uint32_t[]){8}, 1);
    check_read(raw_of(DOUBLE, (double[]){-8}, 1), SB_DTYPE_I32, (int32_t[]){-8}, 1);
}

/* Computes the ends from powers of 2, because 2^63 - 1 is not a double. */
#define CHECK_ENDS(NAME, number, name, type, kind, with)                                           \
    {                                                                                              \
        const int bits = 8 * (int)sizeof(type), has_sign = (type)-1 < (type)1;                     \
        const double above = ldexp(1, bits - has_sign), least = has_sign ? -above : 0;             \
        const double below = least < 0 ? nextafter(least, -INFINITY) : -0.25;                      \
        const double inside[] = {                                                                  \
            least, nextafter(above, 0) < 1e15 ? above - 1 : nextafter(above, 0), 0, -0.0, 7};      \
        const double outside[] = {                                                                 \
            above, above - 0.5, fmin(least - 1, below), below, -INFINITY, INFINITY, NAN, 1e300,    \
            0.5,   5e-324,      nextafter(1, 2)};                                                  \
        struct wire good = message_of(inside, 5);                                                  \
        const type *found;                                                                         \
        sb_blob *blob = test_vector(NULL, SB_DTYPE_##NAME, 0);                                     \
        for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {                            \
            struct wire bad = message_of(&outside[i], 1);                                          \
            assert_status(OVERFLOWS, read_wire(blob, &bad, &err));                                 \
            assert_int_equal(sb_blob_capacity(blob, SB_DATA), 0);                                  \
        }                                                                                          \
        assert_ok(read_wire(blob, &good, &err));                                                   \
        assert_ok(sb_blob_cpu_##name(blob, SB_DATA, &found, &err));                                \
        for (int i = 0; i < 5; i++)                                                                \
            assert_true((double)found[i] == inside[i]);                                            \
    }

TEST(each_integer_type_accepts_its_range_and_nothing_else) {
    (void)state;
    SB_DTYPE_INTEGER_LIST(CHECK_ENDS, )
}

TEST(a_fraction_is_reported_with_enough_digits) {
    static const double close[] = {1.0000000000000002};
    static const float weights[] = {7, 1.0000001F};
    struct wire wide = message_of(close, 1), narrow = {0};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_I32, 0);
    wire_shape(&narrow, (int64_t[]){2}, 1);
    wire_floats(&narrow, DATA, weights, 2);
    assert_reports(OVERFLOWS, read_wire(blob, &wide, &err),
                   "element 0 is 1.0000000000000002, which i32 does not");
    assert_reports(OVERFLOWS, read_wire(blob, &narrow, &err),
                   "element 1 is 1.000000119, which i32 does not");
}

TEST(the_element_and_its_offset_are_reported) {
    enum { COUNT = 2000, BAD = 1501 };
    static double values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i;
    values[BAD] = 3e9;
    struct wire wire = {0};
    char text[120];
    wire_shape(&wire, (int64_t[]){COUNT}, 1);
    wire_doubles(&wire, DOUBLE_DATA, values, 700);
    wire_doubles(&wire, DOUBLE_DATA, values + 700, COUNT - 700);
    const int64_t offset = (int64_t)wire.size - (COUNT - BAD) * (int64_t)sizeof *values;
    sb_blob *blob = test_vector(NULL, SB_DTYPE_I32, 3);
    assert_status(OVERFLOWS, read_wire(blob, &wire, &err));
    assert_int_equal(err.offset, offset);
    (void)snprintf(text, sizeof text,
                   "double_data: element %d is 3000000000, which i32 does not hold at offset %lld",
                   BAD, (long long)offset);
    assert_string_equal(err.message, text);
}
