/* Tests reads of messages into blobs of integers. If a value has a fraction or does not fit in the
   type, the read fails and the blob is unchanged. */
#include "blobs.h"
#include "wire_builder.h"

#include <math.h>

enum { DATA = 5, DOUBLE_DATA = 8, RAW_DATA_TYPE = 10, RAW_DATA = 12 };
enum { DOUBLE = 0, FLOAT, FLOAT16, INT, UINT };

#define OVERFLOWS SB_ERR_DATA_OVERFLOW

static struct wire message_of(const double *values, int64_t count) {
    struct wire wire = {0};
    wire_shape(&wire, &count, 1);
    wire_doubles(&wire, DOUBLE_DATA, values, (size_t)count);
    return wire;
}

static sb_status take(sb_blob *blob, const struct wire *wire, sb_error *err) {
    return sb_blob_from_proto(blob, wire->bytes, wire->size, SB_PROTO_RESHAPE, NULL, err);
}

/* --- values that fit in the type ------------------------------------------------------------- */

/* Reads the message into a blob of I32 or U32 and compares its values. */
static void check_read(struct wire wire, sb_dtype dtype, const void *expected, int64_t count) {
    sb_blob *blob = test_vector(NULL, dtype, 0);
    assert_ok(take(blob, &wire, &err));
    assert_int_equal(sb_blob_count(blob), count);
    assert_memory_equal(host_of(blob, SB_DATA), expected, (size_t)count * sizeof(int32_t));
}

TEST(whole_floats_are_read) {
    static const float narrow[] = {-7, 2147483520.0F, -2147483648.0F};
    struct wire floats = {0}, single = {0};
    wire_shape(&floats, (int64_t[]){3}, 1);
    wire_floats(&floats, DATA, narrow, 3);
    check_read(floats, SB_DTYPE_I32, (int32_t[]){-7, 2147483520, INT32_MIN}, 3);
    wire_shape(&single, (int64_t[]){2}, 1);
    wire_float(&single, DATA, 2); /* not packed */
    wire_float(&single, DATA, -3);
    check_read(single, SB_DTYPE_I32, (int32_t[]){2, -3}, 2);
}

static struct wire raw_of(uint64_t type, const void *bytes, size_t width, int64_t count) {
    struct wire wire = {0};
    wire_shape(&wire, &count, 1);
    wire_number(&wire, RAW_DATA_TYPE, type);
    wire_values(&wire, RAW_DATA, bytes, width, (size_t)count * width);
    return wire;
}

TEST(raw_values_of_every_type_are_read) {
    const uint16_t halves[] = {0x3c00, 0xbc00, 0x7bff};
    const int32_t ints[] = {INT32_MIN, INT32_MAX}, small[] = {INT32_MAX, 5};
    const uint32_t unsigneds[] = {UINT32_MAX, 0};
    check_read(raw_of(FLOAT16, halves, 2, 3), SB_DTYPE_I32, (int32_t[]){1, -1, 65504}, 3);
    check_read(raw_of(INT, ints, 4, 2), SB_DTYPE_I32, ints, 2);
    check_read(raw_of(UINT, unsigneds, 4, 2), SB_DTYPE_U32, unsigneds, 2);
    check_read(raw_of(UINT, small, 4, 2), SB_DTYPE_I32, small, 2);
    check_read(raw_of(FLOAT, (float[]){8}, 4, 1), SB_DTYPE_U32, (uint32_t[]){8}, 1);
    check_read(raw_of(DOUBLE, (double[]){-8}, 8, 1), SB_DTYPE_I32, (int32_t[]){-8}, 1);
}

/* Computes the ends of a type's range as powers of 2, because 2^63 - 1 is not a double. */
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
            assert_status(OVERFLOWS, take(blob, &bad, &err));                                      \
            assert_int_equal(sb_blob_capacity(blob, SB_DATA), 0);                                  \
        }                                                                                          \
        assert_ok(take(blob, &good, &err));                                                        \
        assert_ok(sb_blob_cpu_##name(blob, SB_DATA, &found, &err));                                \
        for (int i = 0; i < 5; i++)                                                                \
            assert_true((double)found[i] == inside[i]);                                            \
    }

TEST(each_integer_type_accepts_its_range_and_nothing_else) {
    (void)state;
    SB_DTYPE_INTEGER_LIST(CHECK_ENDS, )
}

/* --- values that do not fit in the type ------------------------------------------------------ */

TEST(an_integer_of_the_other_kind_is_refused) {
    struct wire large = raw_of(UINT, (uint32_t[]){(uint32_t)INT32_MAX + 1}, 4, 1);
    struct wire negative = raw_of(INT, (int32_t[]){-1}, 4, 1);
    struct wire infinite = raw_of(FLOAT16, (uint16_t[]){0x7c00}, 2, 1);
    sb_blob *ints = test_vector(NULL, SB_DTYPE_I32, 0);
    sb_blob *unsigneds = test_vector(NULL, SB_DTYPE_U32, 0);
    assert_status(OVERFLOWS, take(ints, &large, &err));
    assert_status(OVERFLOWS, take(unsigneds, &negative, &err));
    assert_status(OVERFLOWS, take(unsigneds, &infinite, &err));
}

/* The error message has enough digits to distinguish the value from the next float or double. */
TEST(a_fraction_is_reported_with_enough_digits) {
    static const double close[] = {1.0000000000000002};
    static const float weights[] = {7, 1.0000001F};
    struct wire wide = message_of(close, 1), narrow = {0};
    sb_blob *blob = test_vector(NULL, SB_DTYPE_I32, 0);
    wire_shape(&narrow, (int64_t[]){2}, 1);
    wire_floats(&narrow, DATA, weights, 2);
    assert_status(OVERFLOWS, take(blob, &wide, &err));
    assert_non_null(strstr(err.message, "element 0 is 1.0000000000000002, which i32 does not"));
    assert_status(OVERFLOWS, take(blob, &narrow, &err));
    assert_non_null(strstr(err.message, "element 1 is 1.000000119, which i32 does not"));
}

/* The element that does not fit is in the second field of values, past the field's first chunk. */
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
    assert_status(OVERFLOWS, take(blob, &wire, &err));
    assert_int_equal(err.offset, offset);
    (void)snprintf(text, sizeof text,
                   "double_data: element %d is 3000000000, which i32 does not hold at offset %lld",
                   BAD, (long long)offset);
    assert_string_equal(err.message, text);
}

/* --- other targets --------------------------------------------------------------------------- */

TEST(bfloats_cannot_be_read) {
    sb_blob *blob = test_vector(NULL, SB_DTYPE_BF16, 0);
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_from_proto(blob, NULL, 0, 0, NULL, &err));
    assert_status(SB_ERR_UNSUPPORTED, sb_blob_load_file(blob, "/none", 0, NULL, &err));
}
