/* Tests status codes and the error struct: numbers, names, texts, layout, writes to the struct. */
#include "base/error.h"
#include "blobs.h"

#include <dlfcn.h>
#include <syncblob/backend.h>

/* The test abi.interface compares the numbers of constants, and struct sb_error, with a record. */
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
