/* What the C tests share: cmocka with the headers it wants, the headers of the C library that
   nearly every test uses, assertions that know sb_error, and the way to real files. */
#ifndef SB_TESTS_SUPPORT_H
#define SB_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "ignore.h"
#include "owned.h"

#include <syncblob/syncblob.h>

/* Whether a sanitizer watches this program, with memory and locks of its own. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define IS_ASAN 1
#else
#define IS_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif
#define IS_SANITIZED (IS_ASAN || IS_TSAN)

#define TEST_ADD_(name, function)                                                                  \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        test_add(#name, function, __LINE__);                                                       \
    }
/* A test of the program: `TEST(what_it_claims) { ... }`. Tests run in the order of their lines. */
#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    TEST_ADD_(name, name)                                                                          \
    static void name(void **state)

/* The same on a fixture, `struct kind *f`, between kind_open(f) and kind_close(f), which asserts
   that nothing leaked. */
#define TEST_ON(kind, name)                                                                        \
    static void name(struct kind *f);                                                              \
    static void close_of_##name(void *fixture) {                                                   \
        kind##_close(fixture);                                                                     \
    }                                                                                              \
    static void on_##name(void **state) {                                                          \
        struct kind fixture;                                                                       \
        kind##_open(&fixture);                                                                     \
        test_open_fixture(&fixture, close_of_##name);                                              \
        name(&fixture);                                                                            \
        test_close_fixture();                                                                      \
    }                                                                                              \
    TEST_ADD_(name, on_##name)                                                                     \
    static void name(struct kind *f)

void test_open_fixture(void *fixture, void (*close)(void *fixture));
void test_close_fixture(void);
/* Closes the fixture of a TEST_ON, if there is one, and skips the test. */
void test_skip(void) __attribute__((noreturn));

void test_add(const char *name, void (*function)(void **state), int line);
/* Runs them all. A program has this as its `main`, but where it has one of its own. */
int run_all_tests(void);

/* Everything was given back, with the right arguments. */
void counting_allocator_assert_clean(struct counting_allocator *counting);

/* The error of the thread's calls. A callback that asserts in an asserted call needs another. */
extern _Thread_local sb_error err;

/* `expr` is a call that is passed `&err`. Beside the status these check the
   promise of sb_error: untouched on success, wholly written on failure. For a
   call that is passed NULL compare the status yourself. */
#define assert_status(expected, expr)                                                              \
    do {                                                                                           \
        support_poison_error(&err);                                                                \
        sb_status status_ = (expr);                                                                \
        support_check_status((expected), status_, &err, #expr, __FILE__, __LINE__);                \
        if (status_ != (expected)) /* for the compiler: the check does not return */               \
            abort();                                                                               \
    } while (0)
#define assert_ok(expr) assert_status(SB_OK, expr)
/* The call lacks an argument, which its message names. */
#define assert_names_null(name, expr)                                                              \
    do {                                                                                           \
        assert_status(SB_ERR_INVALID_ARGUMENT, expr);                                              \
        assert_string_equal(err.message, name " is NULL");                                         \
    } while (0)

void support_poison_error(sb_error *err);
void support_check_status(sb_status expected, sb_status found, const sb_error *err,
                          const char *expression, const char *file, int line);

/* Reports a failure of the running test with a formatted story. */
#define fail_with(...) support_fail(__FILE__, __LINE__, __VA_ARGS__)
void support_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/* The path of a real file in the folder SYNCBLOB_TEST_DATA (default:
   ../shared/data beside the source root); NULL when it is absent, after
   saying so. `buffer` holds the result. */
const char *test_data_path(const char *name, char *buffer, size_t capacity);

/* How much a test does. By itself a sample of its table, in a second or two: so it is under each
   sanitizer. With SYNCBLOB_TEST_WHOLE=1 the table is whole; with SYNCBLOB_TEST_FULL=1 it also does
   what takes minutes. Either is off where it is empty or 0. */
bool test_is_quick(void);
bool test_is_full(void);

/* Skips the running test with a reason: it is not in the sample, it needs sizes of 64 bits, or the
   machine has too little memory. `bytes` are what the test itself takes, `addresses` how many bytes
   it touches, beside which a sanitizer keeps memory of its own. */
#define skip_when_quick()                                                                          \
    do {                                                                                           \
        if (test_is_quick()) {                                                                     \
            print_message("skipped: not in the sample: SYNCBLOB_TEST_WHOLE=1 runs it\n");          \
            test_skip();                                                                           \
        }                                                                                          \
    } while (0)
#define skip_on_32_bits(why)                                                                       \
    do {                                                                                           \
        if (sizeof(size_t) == 4) {                                                                 \
            print_message("skipped: on a host of 32 bits, %s\n", (why));                           \
            test_skip();                                                                           \
        }                                                                                          \
    } while (0)
#define skip_without_memory(bytes, addresses)                                                      \
    do {                                                                                           \
        if (!test_has_memory((bytes), (addresses)))                                                \
            test_skip();                                                                           \
    } while (0)
bool test_has_memory(size_t bytes, size_t addresses);

/* The bytes that the kernel and the outermost control group still give; SIZE_MAX without figures.
   `root` stands before /proc and /sys. */
size_t test_free_memory(const char *root);

/* Numbers that are the same everywhere: splitmix64. */
uint64_t test_random(uint64_t *state);

/* The blob's message; `*out` is to be freed. */
sb_status blob_message(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                       sb_error *err);
/* The blobs of a layer or of SB_NO_LAYER; 0 for a layer that is not there. */
int64_t num_blobs(const sb_model *model, int64_t layer);

#endif
