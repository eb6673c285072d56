/* Functions that all harnesses use: a check that ends the run, the input as a sequence of choices,
   and checks of errors. */
#ifndef SB_FUZZ_H
#define SB_FUZZ_H

#include "counting_allocator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/syncblob.h>

/* libFuzzer's entry point, defined by each harness. Returns 0, or aborts if a check fails. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* If the condition is false, prints a message and aborts; the fuzzer then reports a finding. */
#define fuzz_check(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* Prints a step of the harness if the environment variable SYNCBLOB_FUZZ_TRACE is set. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The input as a sequence of choices. After the last byte of the input every choice is 0. */
struct tape {
    const uint8_t *next;
    size_t left;
};

uint8_t tape_byte(struct tape *tape);
uint32_t tape_u32(struct tape *tape);
/* Returns a number from 0 to limit - 1; consumes one byte for limits up to 256. */
uint32_t tape_below(struct tape *tape, uint32_t limit);

/* Checks that a call may return the status because of its input bytes: OK, an error in the data,
   out of memory, or cap reached. Also calls fuzz_check_error. */
void fuzz_check_bytes_status(sb_status status, const sb_error *err);
/* Returns an error for the next call, filled with a byte that no message contains. */
sb_error fuzz_fresh_error(void);
/* Checks that a success has not changed the error, and that a failure has set all its fields. */
void fuzz_check_error(sb_status status, const sb_error *err);

#endif
