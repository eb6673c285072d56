/* Tests the functions of c/src/base. */
#include "base/checked.h"
#include "base/counter.h"
#include "base/draw.h"
#include "base/error.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/options.h"
#include "blobs.h"
#include "halves.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>

TEST(elements_have_at_most_ptrdiff_max_bytes) {
    size_t out = 0;
    assert_true(sb__bytes_of(PTRDIFF_MAX, 1, &out));
    assert_int_equal(out, PTRDIFF_MAX);
    assert_true(sb__bytes_of(PTRDIFF_MAX / 8, 8, &out));
    assert_false(sb__bytes_of(PTRDIFF_MAX / 8 + 1, 8, &out));
    assert_false(sb__bytes_of(INT64_MAX, 4, &out));
}

TEST(a_counter_grows_up_to_its_limit) {
    sb__counter counter = 3;
    uint64_t now = 0;
    assert_int_equal(sb__counter_add_within(&counter, 7, 10, &now), 1);
    assert_int_equal(now, 10);
    assert_int_equal(sb__counter_add_within(&counter, 1, 10, &now), 0);
    assert_int_equal(sb__counter_add_within(&counter, 11, 10, &now), 0);
    assert_int_equal(sb__counter_add_within(&counter, UINT64_MAX, UINT64_MAX, &now), 0);
    assert_int_equal(sb__counter_read(&counter), 10);
    counter = 0;
    assert_int_equal(sb__counter_add_within(&counter, 10, 10, &now), 1);
    sb__counter_raise(&counter, 9);
    assert_int_equal(sb__counter_read(&counter), 10);
    sb__counter_raise(&counter, 11);
    assert_int_equal(sb__counter_read(&counter), 11);
}

TEST(a_struct_of_a_wrong_size_is_reported) {
    assert_error(SB_ERR_ABI_MISMATCH, sb__check_struct(15, 16, "it", &err),
                 "it has 16 bytes or more, struct_size is 15");
    assert_error(SB_ERR_ABI_MISMATCH, sb__check_struct(4095, 16, "it", &err),
                 "it ends within a member, struct_size is 4095");
}

TEST(a_struct_is_filled_up_to_the_callers_size) {
    static const size_t ours[2] = {0, 5};
    size_t theirs[3] = {9, 9, 9};
    sb__give_struct(theirs, sizeof(size_t) - 1, ours, sizeof ours);
    assert_int_equal(theirs[0], 9);
    sb__give_struct(theirs, sizeof(size_t), ours, sizeof ours);
    assert_int_equal(theirs[0], sizeof(size_t));
    assert_int_equal(theirs[1], 9);
    sb__give_struct(theirs, sizeof theirs, ours, sizeof ours);
    assert_int_equal(theirs[0], sizeof theirs);
    assert_int_equal(theirs[1], 5);
    assert_int_equal(theirs[2], 0);
}

TEST(the_message_of_a_system_failure_ends_with_its_reason) {
    char expected[240];
    (void)snprintf(expected, sizeof expected, "cannot open it: %s", strerror(ENOENT));
    assert_error(SB_ERR_IO, sb__fail_io(&err, ENOENT, "cannot open %s", "it"), expected);
    assert_int_equal(err.device_code, ENOENT);
    assert_int_equal(err.offset, -1);
    assert_int_equal(sb__fail_io(NULL, ENOENT, "nobody hears"), SB_ERR_IO);
}

TEST(the_error_of_a_callback_is_passed_on) {
    sb_error err, reported = {.code = -77, .device_code = 5, .offset = 6};
    assert_error(SB_ERR_IO, sb__fail_reported(&err, SB_ERR_IO, 12, &reported, "the source"),
                 "the source failed and gave no reason");
    assert_int_equal(err.offset, 12);
    memset(reported.message, 'x', sizeof reported.message);
    assert_status(SB_ERR_IO, sb__fail_reported(&err, SB_ERR_IO, 12, &reported, "the source"));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(err.device_code, 5);
    assert_int_equal(err.offset, 12);
    reported.message[1] = '\0';
    assert_error(SB_ERR_IO, sb__fail_reported(&err, SB_ERR_IO, 12, &reported, "the source"), "x");
    (void)strcpy(reported.message, "");
    reported.message[1] = 'y';
    assert_error(SB_ERR_IO, sb__fail_reported(&err, SB_ERR_IO, 12, &reported, "the source"),
                 "the source failed and gave no reason");
}

/* The authors of splitmix64 publish these numbers for seed 0. */
TEST(a_seed_gives_the_numbers_of_splitmix64) {
    static const uint64_t expected[] = {0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F};
    uint64_t seed = 0;
    for (size_t i = 0; i < 3; i++)
        assert_true(sb__draw(&seed) == expected[i]);
}

/* CPython 3.11 with PYTHONHASHSEED=42 gives these hashes. */
TEST(a_hash_is_that_of_siphash_1_3) {
    static const uint64_t key[2] = {UINT64_C(0xdc504fd368cd90af), UINT64_C(0xb920bb9ffe99e9c1)};
    static const struct {
        size_t size;
        uint64_t hash;
    } rows[] = {{1, UINT64_C(0x89404b342d44cd29)},  {7, UINT64_C(0xd29a1e3ffbbe671d)},
                {8, UINT64_C(0x2365a44fe7fd5cea)},  {9, UINT64_C(0x48fcff80264f966e)},
                {16, UINT64_C(0x38142d004bfe363b)}, {24, UINT64_C(0xf8f611400364f2bb)}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        unsigned char bytes[24];
        for (size_t i = 0; i < rows[row].size; i++)
            bytes[i] = (unsigned char)(37 * i + rows[row].size);
        if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
            assert_int_equal(sb__hash(key, bytes, rows[row].size), rows[row].hash);
    }
}

struct half_kind {
    sb_dtype dtype;
    uint16_t quiet; /* the bit that makes a NaN quiet */
    float (*widen)(uint16_t half);
    uint16_t (*narrow)(float value);
};

static void check_half(const struct half_kind *kind, uint16_t half) {
    const double value = value_of_half(kind->dtype, half);
    const float wide = kind->widen(half);
    if (isnan(value)) {
        assert_true(isnan(wide));
        assert_int_equal(kind->narrow(wide), half | kind->quiet);
    } else {
        assert_true((double)wide == value && !signbit(wide) == !signbit(value));
        assert_int_equal(kind->narrow(wide), half);
    }
}

static void check_between(const struct half_kind *kind, uint16_t half) {
    const uint16_t next = (uint16_t)(half + 1), even = half & 1 ? next : half;
    const double low = value_of_half(kind->dtype, half), high = value_of_half(kind->dtype, next);
    const float middle = (float)((low + high) / 2);
    if (isinf(high))
        return;
    assert_int_equal(kind->narrow(nextafterf(middle, 0)), half);
    assert_int_equal(kind->narrow(middle), even);
    assert_int_equal(kind->narrow(nextafterf(middle, INFINITY)), next);
    assert_int_equal(kind->narrow(-middle), even | 0x8000);
}

TEST(halves_are_rounded_to_the_nearest) {
    static const struct half_kind kinds[] = {
        {SB_DTYPE_F16, 0x0200, sb__float_of_f16, sb__f16_of_float},
        {SB_DTYPE_BF16, 0x0040, sb__float_of_bf16, sb__bf16_of_float}};
    for (int k = 0; k < 2; k++) {
        for (uint32_t half = 0; half < 0x10000; half++)
            check_half(&kinds[k], (uint16_t)half);
        for (uint16_t half = 0; half < 0x7fff; half++)
            if (!isnan(kinds[k].widen((uint16_t)(half + 1))) && !isinf(kinds[k].widen(half)))
                check_between(&kinds[k], half);
        assert_int_equal(kinds[k].narrow(-INFINITY), kinds[k].narrow(INFINITY) | 0x8000);
    }
    /* The largest F16 is 65504; values from 65520 are rounded to infinity. */
    assert_int_equal(sb__f16_of_float(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(sb__f16_of_float(65520), 0x7c00);
    assert_int_equal(sb__f16_of_float(65536), 0x7c00);
    assert_int_equal(sb__f16_of_float(3e38F), 0x7c00);
    assert_int_equal(sb__bf16_of_float(sb__float_of_bits(0x7f7f7fff)), 0x7f7f);
    assert_int_equal(sb__bf16_of_float(sb__float_of_bits(0x7f7f8000)), 0x7f80);
}

#define CHECK_STATUS(name, number, text)                                                           \
    assert_int_equal(SB_##name, number);                                                           \
    assert_string_equal(sb_status_name(number), "SB_" #name);                                      \
    assert_string_equal(sb_status_text(number), text);                                             \
    assert_true(sizeof(text) > 5);

TEST(names_and_texts_are_found_by_number){SB_STATUS_LIST(CHECK_STATUS)}

TEST(other_numbers_are_unknown) {
    static const sb_status others[] = {1,    2,    -13,  -99,       -105,     -199,
                                       -210, -900, -902, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_string_equal(sb_status_name(others[i]), "SB_ERR_UNKNOWN");
        assert_true(sb_status_text(others[i])[0] != '\0');
    }
}

#define CHECK_DTYPE(NAME, number, name, type, kind, with)                                          \
    assert_int_equal(sb_dtype_size(number), sizeof(type));                                         \
    assert_string_equal(sb_dtype_name(number), #name);

TEST(types_have_sizes_and_names) {
    static const sb_dtype others[] = {0, 1000, -1, INT32_MAX};
    SB_DTYPE_LIST(CHECK_DTYPE, )
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(sb_dtype_size(others[i]), 0);
        assert_string_equal(sb_dtype_name(others[i]), "unknown");
    }
}

TEST(the_version_is_a_number_and_a_text) {
    char text[32];
    uint32_t v = sb_version();
    assert_int_equal(v, SB_VERSION_NUMBER);
    (void)snprintf(text, sizeof text, "%u.%u.%u", v / 1000000, v / 1000 % 1000, v % 1000);
    assert_string_equal(sb_version_string(), text);
    bool openblas = dlsym(RTLD_DEFAULT, "cblas_sasum") != NULL;
    assert_int_equal(sb_features() & SB_FEATURE_OPENBLAS, openblas ? SB_FEATURE_OPENBLAS : 0);
    assert_true(sb_features() & SB_FEATURE_SIM);
#ifdef SYNCBLOB_CUDA
    assert_true(sb_features() & SB_FEATURE_CUDA);
#else
    assert_false(sb_features() & SB_FEATURE_CUDA);
#endif
}

TEST(a_message_may_be_the_errors_own) {
    sb_error err = {.code = SB_ERR_IO, .device_code = 5, .message = "read failed"};
    assert_int_equal(sb_error_fill(&err, SB_ERR_CANCELLED, 6, err.message), SB_ERR_CANCELLED);
    assert_int_equal(err.code, SB_ERR_CANCELLED);
    assert_int_equal(err.device_code, 6);
    assert_string_equal(err.message, "read failed");
    ignore(sb_error_fill(&err, SB_ERR_DEVICE_FAILURE, 7, err.message + 5));
    assert_string_equal(err.message, "failed");
    (void)sb__fail(&err, SB_ERR_IO, "%s again: %s", err.message, err.message);
    assert_string_equal(err.message, "failed again: failed");
    assert_int_equal(err.device_code, 0);
    assert_int_equal(err.offset, -1);
}

TEST(long_messages_are_cut_and_terminated) {
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_status(SB_ERR_IO, sb__fail_io(&err, 2, "%s", text));
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(err.device_code, 2);
    assert_status(SB_ERR_MALFORMED, sb__fail_at(&err, SB_ERR_MALFORMED, 4711, "%s", "here"));
    assert_int_equal(err.device_code, 0);
    assert_int_equal(err.offset, 4711);
    assert_true(bytes_are(err.message + 4, sizeof err.message - 4, 0));
}

/* sb__escape needs 8 free bytes: 4 for an escape, 3 for "..." and 1 for the NUL. */
TEST(strange_bytes_are_escaped_and_text_is_cut_at_its_room) {
    static const struct {
        const char *bytes;
        size_t size, room;
        const char *escaped;
    } cases[] = {
        {"conv1", 5, 64, "conv1"},
        {"a\nb", 3, 64, "a\\x0ab"},
        {"\x1b[31m", 5, 64, "\\x1b[31m"},
        {"a\0b", 3, 64, "a\\x00b"},
        {"\xff\x80", 2, 64, "\\xff\\x80"},
        {"add \"\\\"", 7, 64, "add \\x22\\x5c\\x22"},
        {"12345678", 8, 15, "12345678"},
        {"123456789", 9, 15, "12345678..."},
        {"1234567\1", 8, 15, "1234567\\x01"},
        {"", 0, 8, ""},
        {"1", 1, 8, "1"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(sb__escape(cases[i].bytes, cases[i].size, out, cases[i].room),
                            cases[i].escaped);
}
