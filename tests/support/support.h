/* What the C tests share: cmocka with the headers it wants, assertions that know
   sb_error, and the way to real files. */
#ifndef SB_TESTS_SUPPORT_H
#define SB_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting_allocator.h"

#include <stdlib.h>
#include <syncblob/syncblob.h>

/* Everything was given back, with the right arguments. */
void counting_allocator_assert_clean(struct counting_allocator *counting);

/* `expr` is a call that is given `&err`, a local sb_error. Beside the status
   these check the promise of sb_error: untouched on success, wholly written
   on failure. For a call that is given NULL compare the status yourself. */
#define assert_status(expected, expr)                                                              \
    do {                                                                                           \
        support_poison_error(&err);                                                                \
        sb_status status_ = (expr);                                                                \
        support_check_status((expected), status_, &err, #expr, __FILE__, __LINE__);                \
        if (status_ != (expected)) /* tells the compiler that the check does not return */         \
            abort();                                                                               \
    } while (0)
#define assert_ok(expr) assert_status(SB_OK, expr)

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

/* Whether SYNCBLOB_TEST_QUICK is set: under valgrind, where an instruction
   costs thirty, what only repeats over gigabytes is left out. */
bool test_is_quick(void);
/* Leaves the running test out then. */
#define skip_when_quick()                                                                          \
    do {                                                                                           \
        if (test_is_quick())                                                                       \
            skip();                                                                                \
    } while (0)

/* Whether SYNCBLOB_TEST_FULL is set: by those who have minutes. */
bool test_is_full(void);

/* Numbers that are the same everywhere: splitmix64. */
uint64_t test_random(uint64_t *state);

#endif
