/* What the harnesses share: a check that ends the run, input read as choices,
   and contexts under limits. */
#ifndef SB_FUZZ_H
#define SB_FUZZ_H

#include "counting_allocator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/syncblob.h>

/* libFuzzer's entry point, one in each harness. Ends in abort when a promise is
   broken, returns 0 otherwise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops the fuzzer with a story: a finding. */
#define fuzz_check(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* With SYNCBLOB_FUZZ_TRACE in the environment a harness prints its steps, for a person who reads a
   finding. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The input as a row of choices; past its end every choice is 0. */
struct tape {
    const uint8_t *next;
    size_t left;
};

uint8_t tape_byte(struct tape *tape);
uint32_t tape_u32(struct tape *tape);
/* 0 to limit - 1; takes one byte for limits up to 256. */
uint32_t tape_below(struct tape *tape, uint32_t limit);

/* A status that bytes alone may cause: OK, the data's fault, out of memory or
   cap reached. The error is complete, or untouched on success. */
void fuzz_check_bytes_status(sb_status status, const sb_error *err);
/* err as a caller leaves it before a call: filled with what no message holds. */
sb_error fuzz_fresh_error(void);
/* The promise of sb_error for any status. */
void fuzz_check_error(sb_status status, const sb_error *err);

#endif
