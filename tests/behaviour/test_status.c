/* Tests status codes and the error struct: numbers, names, texts, layout, writes to the struct. */
#include "base/error.h"
#include "blobs.h"

#include <dlfcn.h>
#include <syncblob/backend.h>

/* This table is not generated from the header, because these numbers must never change. */
static const struct {
    const char *name;
    sb_status symbol;
    sb_status number;
} pinned[] = {
    {"SB_OK", SB_OK, 0},
    {"SB_ERR_INVALID_ARGUMENT", SB_ERR_INVALID_ARGUMENT, -1},
    {"SB_ERR_INDEX_OUT_OF_RANGE", SB_ERR_INDEX_OUT_OF_RANGE, -2},
    {"SB_ERR_DTYPE_MISMATCH", SB_ERR_DTYPE_MISMATCH, -3},
    {"SB_ERR_SHAPE_MISMATCH", SB_ERR_SHAPE_MISMATCH, -4},
    {"SB_ERR_UNINITIALIZED", SB_ERR_UNINITIALIZED, -5},
    {"SB_ERR_UNSUPPORTED", SB_ERR_UNSUPPORTED, -6},
    {"SB_ERR_WRONG_DEVICE", SB_ERR_WRONG_DEVICE, -7},
    {"SB_ERR_SHARED", SB_ERR_SHARED, -8},
    {"SB_ERR_SIZE_OVERFLOW", SB_ERR_SIZE_OVERFLOW, -9},
    {"SB_ERR_OVER_LIMIT", SB_ERR_OVER_LIMIT, -10},
    {"SB_ERR_BUFFER_TOO_SMALL", SB_ERR_BUFFER_TOO_SMALL, -11},
    {"SB_ERR_NOT_FOUND", SB_ERR_NOT_FOUND, -12},
    {"SB_ERR_MALFORMED", SB_ERR_MALFORMED, -100},
    {"SB_ERR_LENGTH_MISMATCH", SB_ERR_LENGTH_MISMATCH, -101},
    {"SB_ERR_BAD_SHAPE", SB_ERR_BAD_SHAPE, -102},
    {"SB_ERR_DATA_OVERFLOW", SB_ERR_DATA_OVERFLOW, -103},
    {"SB_ERR_DATA_LIMIT", SB_ERR_DATA_LIMIT, -104},
    {"SB_ERR_OUT_OF_MEMORY", SB_ERR_OUT_OF_MEMORY, -200},
    {"SB_ERR_CAP_REACHED", SB_ERR_CAP_REACHED, -201},
    {"SB_ERR_NO_DEVICE", SB_ERR_NO_DEVICE, -202},
    {"SB_ERR_DEVICE_FAILURE", SB_ERR_DEVICE_FAILURE, -203},
    {"SB_ERR_DEVICE_LOST", SB_ERR_DEVICE_LOST, -204},
    {"SB_ERR_FORKED", SB_ERR_FORKED, -205},
    {"SB_ERR_IO", SB_ERR_IO, -206},
    {"SB_ERR_ABI_MISMATCH", SB_ERR_ABI_MISMATCH, -207},
    {"SB_ERR_CANCELLED", SB_ERR_CANCELLED, -208},
    {"SB_ERR_COMM_FAILURE", SB_ERR_COMM_FAILURE, -209},
    {"SB_ERR_INTERNAL", SB_ERR_INTERNAL, -901},
};
#define PINNED (sizeof pinned / sizeof pinned[0])

TEST(the_list_has_no_other_status) {
    size_t listed = 0;
#define COUNT_ONE(name, number, text) listed++;
    SB_STATUS_LIST(COUNT_ONE)
#undef COUNT_ONE
    assert_int_equal(listed, PINNED);
}

TEST(names_and_texts_are_found_by_pinned_number) {
    for (size_t i = 0; i < PINNED; i++) {
        if (pinned[i].symbol != pinned[i].number)
            fail_with("%s is %d, not %d", pinned[i].name, pinned[i].symbol, pinned[i].number);
        assert_string_equal(sb_status_name(pinned[i].number), pinned[i].name);
        const char *text = sb_status_text(pinned[i].number);
        assert_true(text[0] != '\0');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(text, sb_status_text(pinned[j].number));
    }
}

TEST(other_numbers_are_unknown) {
    static const sb_status others[] = {1,    2,    -13,  -99,       -105,     -199,
                                       -210, -900, -902, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_string_equal(sb_status_name(others[i]), "SB_ERR_UNKNOWN");
        assert_true(sb_status_text(others[i])[0] != '\0');
    }
}

TEST(the_error_struct_is_frozen) {
    assert_int_equal(sizeof(sb_error), 256);
    assert_int_equal(offsetof(sb_error, code), 0);
    assert_int_equal(offsetof(sb_error, device_code), 4);
    assert_int_equal(offsetof(sb_error, offset), 8);
    assert_int_equal(offsetof(sb_error, message), 16);
    assert_int_equal(sizeof(((sb_error *)0)->message), 240);
}

TEST(dtypes_are_pinned) {
    static const struct {
        int32_t symbol, number;
        size_t size;
        const char *name;
    } dtypes[] = {
        {SB_DTYPE_F32, 1, 4, "f32"},
        {SB_DTYPE_F64, 2, 8, "f64"},
        {SB_DTYPE_I32, 3, 4, "i32"},
        {SB_DTYPE_U32, 4, 4, "u32"},
        {SB_DTYPE_F16, 5, 2, "f16"},
        {SB_DTYPE_BF16, 6, 2, "bf16"},
        {SB_DTYPE_I8, 7, 1, "i8"},
        {SB_DTYPE_U8, 8, 1, "u8"},
        {SB_DTYPE_I64, 9, 8, "i64"},
        {0, 0, 0, "unknown"},
        {1000, 1000, 0, "unknown"},
        {-1, -1, 0, "unknown"},
        {INT32_MAX, INT32_MAX, 0, "unknown"},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        assert_int_equal(dtypes[i].symbol, dtypes[i].number);
        assert_int_equal(sb_dtype_size(dtypes[i].number), dtypes[i].size);
        assert_string_equal(sb_dtype_name(dtypes[i].number), dtypes[i].name);
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

/* --- writing ---------------------------------------------------------------- */

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
    /* The bytes after the text must be 0, not old bytes of the stack. */
    assert_true(bytes_are(err.message + 4, sizeof err.message - 4, 0));
}

/* sb__escape reserves the last 8 bytes of its buffer for another escape, "..." and the NUL. */
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

TEST(escaping_writes_only_to_its_buffer) {
    char bytes[64], out[80];
    for (int fill = 'a'; fill <= 0x80; fill += 0x80 - 'a') {
        memset(bytes, fill, sizeof bytes);
        for (size_t capacity = 8; capacity <= 64; capacity++)
            for (size_t size = 0; size <= sizeof bytes; size++) {
                memset(out, 'Z', sizeof out);
                sb__escape(bytes, size, out, capacity);
                assert_true(strlen(out) < capacity);
                assert_int_equal(out[capacity], 'Z');
            }
    }
}
