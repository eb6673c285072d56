/* Declarations that all C tests share, with the headers that cmocka needs. */
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

#include <syncblob/syncblob.h>

/* IS_ASAN, IS_TSAN: 1 if the program is built with AddressSanitizer or ThreadSanitizer, else 0. */
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

/* IGNORE_LEAKS(true): leaks of memory that is allocated from now on are not reported. */
#if IS_ASAN
#include <sanitizer/lsan_interface.h>
#define IGNORE_LEAKS(ignored) ((ignored) ? __lsan_disable() : __lsan_enable())
#else
#define IGNORE_LEAKS(ignored) ((void)(ignored))
#endif

#define TEST_ADD_(name, function)                                                                  \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        test_add(#name, function, __LINE__);                                                       \
    }
/* Defines a test. Tests run in the order of their lines. */
#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    TEST_ADD_(name, name)                                                                          \
    static void name(void **state)

/* Defines a test with a fixture, `struct kind *f`. kind_close(f) asserts that nothing leaked. */
#define TEST_ON(kind, name)                                                                        \
    static void name(struct kind *f);                                                              \
    static void close_of_##name(void *fixture) {                                                   \
        kind##_close(fixture);                                                                     \
    }                                                                                              \
    static void on_##name(void **state) {                                                          \
        static struct kind fixture; /* static: freed even after a failure */                       \
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
/* Runs all tests of the program. Most programs use main.c. */
int run_all_tests(void);

/* Asserts that every block was freed, and that all calls had valid arguments. */
void counting_allocator_assert_clean(struct counting_allocator *counting);

/* The error that assert_status checks. A callback in a checked call needs another sb_error. */
extern _Thread_local sb_error err;

#define INVALID SB_ERR_INVALID_ARGUMENT

/* A context's options: the given members, and defaults for the other members. */
#define CONTEXT_OPTIONS(...)                                                                       \
    ((sb_context_options){.struct_size = sizeof(sb_context_options), __VA_ARGS__})

/* `expr` must be a call with the argument `&err`. The call must write all of `err`, but only if it
   fails. */
#define assert_status(expected, expr)                                                              \
    do {                                                                                           \
        support_poison_error(&err);                                                                \
        sb_status status_ = (expr);                                                                \
        support_check_status((expected), status_, &err, #expr, __FILE__, __LINE__);                \
        if (status_ != (expected)) /* unreachable: the check above has failed the test */          \
            abort();                                                                               \
    } while (0)
#define assert_ok(expr) assert_status(SB_OK, expr)
/* Asserts the status and the whole message of a call that fails. */
#define assert_error(expected, expr, text)                                                         \
    do {                                                                                           \
        assert_status(expected, expr);                                                             \
        assert_string_equal(err.message, text);                                                    \
    } while (0)
/* Asserts the status of a call that fails, and that the error message contains `part`. */
#define assert_reports(expected, expr, part)                                                       \
    do {                                                                                           \
        assert_status(expected, expr);                                                             \
        assert_non_null(strstr(err.message, (part)));                                              \
    } while (0)
#define assert_names_null(name, expr) assert_error(SB_ERR_INVALID_ARGUMENT, expr, name " is NULL")

void support_poison_error(sb_error *err);
void support_check_status(sb_status expected, sb_status found, const sb_error *err,
                          const char *expression, const char *file, int line);

#define fail_with(...) support_fail(__FILE__, __LINE__, __VA_ARGS__)
void support_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/* Returns the path of a file in the folder SYNCBLOB_TEST_DATA, or NULL if the file is absent. */
const char *test_data_path(const char *name, char *buffer, size_t capacity);

/* By default a test runs a sample of its cases. SYNCBLOB_TEST_WHOLE=1 runs all cases.
   SYNCBLOB_TEST_FULL=1 adds cases that take minutes or 9 GiB of memory. */
bool test_is_quick(void);
bool test_is_full(void);

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

/* Returns the next number of splitmix64, which is the same on every machine. */
uint64_t test_random(uint64_t *state);

#endif
