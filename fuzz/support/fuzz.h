#ifndef SB_FUZZ_H
#define SB_FUZZ_H

#include "counting_allocator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/syncblob.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));
#define check_equal(found, expected)                                                               \
    fuzz_check((int64_t)(found) == (int64_t)(expected), "%lld, not %lld", (long long)(found),      \
               (long long)(expected))

/* Prints a step of the harness if the environment variable SYNCBLOB_FUZZ_TRACE is set. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The input as a sequence of choices. After the last byte of the input every choice is 0. */
struct tape {
    const uint8_t *next;
    size_t left;
};

uint8_t tape_byte(struct tape *tape);
uint32_t tape_u32(struct tape *tape);
/* Returns a number from 0 to limit - 1. Consumes one byte for limits up to 256. */
uint32_t tape_below(struct tape *tape, uint32_t limit);

extern sb_error call_error;

/* Returns the status of `call`, and checks the fields of call_error. */
#define status_of(call) (fuzz_poison_error(), fuzz_checked_status(call))
#define check_status(expected, call)                                                               \
    fuzz_check_status(__FILE__, __LINE__, #call, (expected), status_of(call))
#define check_ok(call) check_status(SB_OK, call)
void fuzz_poison_error(void);
sb_status fuzz_checked_status(sb_status status);
void fuzz_check_status(const char *file, int line, const char *call, sb_status expected,
                       sb_status found);

/* Returns -1 if a dimension, or the size of all elements in bytes, does not fit in a ptrdiff_t. */
int64_t count_elements(const int64_t *dims, size_t axes, size_t element_size);

/* Checks that a call that reads input bytes may return `status`. */
void check_bytes_status(sb_status status);

#endif
