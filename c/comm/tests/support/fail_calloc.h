/* Makes calloc fail; the program must be linked with --wrap=calloc. */
#ifndef SB_TESTS_FAIL_CALLOC_H
#define SB_TESTS_FAIL_CALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static int64_t calls_until_failure; /* 0: no call fails */
static bool calloc_failed_once;

/* Makes the nth call from now on fail; 0: no call fails. */
static void fail_calloc(int64_t nth) {
    calls_until_failure = nth;
    calloc_failed_once = false;
}

/* Returns whether a call has failed. Later calls do not fail. */
static bool calloc_has_failed(void) {
    calls_until_failure = 0;
    return calloc_failed_once;
}

/* The linker's option --wrap defines these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    if (calls_until_failure && --calls_until_failure == 0) {
        calloc_failed_once = true;
        return NULL;
    }
    return __real_calloc(count, size);
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

#endif
