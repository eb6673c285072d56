#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s:%d: broken promise: %s\n  ", file, line, condition);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

void trace(const char *format, ...) {
    va_list args;
    if (!getenv("SYNCBLOB_FUZZ_TRACE"))
        return;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

uint8_t tape_byte(struct tape *tape) {
    if (tape->left == 0)
        return 0;
    tape->left--;
    return *tape->next++;
}

uint32_t tape_u32(struct tape *tape) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | tape_byte(tape);
    return value;
}

uint32_t tape_below(struct tape *tape, uint32_t limit) {
    return (limit <= 256 ? tape_byte(tape) : tape_u32(tape)) % limit;
}

int64_t count_elements(const int64_t *dims, size_t axes, size_t element_size) {
    const int64_t most = PTRDIFF_MAX / (int64_t)element_size;
    int64_t count = 1;
    bool is_empty = false;
    for (size_t i = 0; i < axes; i++) {
        if ((ptrdiff_t)dims[i] != dims[i])
            return -1;
        is_empty |= dims[i] == 0;
    }
    for (size_t i = 0; i < axes && !is_empty; i++) {
        if (dims[i] > most / count)
            return -1;
        count *= dims[i];
    }
    return is_empty ? 0 : count;
}

#define POISON 0xEE

sb_error call_error;

void fuzz_poison_error(void) {
    memset(&call_error, POISON, sizeof call_error);
}

/* Uses memcmp, because a fuzzer would trace every iteration of a loop. */
static bool all_poison(const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    return p[0] == POISON && memcmp(p, p + 1, size - 1) == 0;
}

sb_status fuzz_checked_status(sb_status status) {
    if (status == SB_OK) {
        fuzz_check(all_poison(&call_error, sizeof call_error), "a successful call wrote the error");
        return status;
    }
    check_equal(call_error.code, status);
    fuzz_check(!all_poison(&call_error.device_code, sizeof call_error.device_code),
               "no device_code");
    fuzz_check(!all_poison(&call_error.offset, sizeof call_error.offset), "no offset");
    fuzz_check(memchr(call_error.message, POISON, sizeof call_error.message) == NULL,
               "part of the message was not written");
    size_t length = strnlen(call_error.message, sizeof call_error.message);
    fuzz_check(length > 0 && length < sizeof call_error.message, "%zu characters", length);
    for (size_t i = 0; i < length; i++)
        fuzz_check(call_error.message[i] >= ' ' && call_error.message[i] <= '~',
                   "byte %d in the message", call_error.message[i]);
    return status;
}

void fuzz_check_status(const char *file, int line, const char *call, sb_status expected,
                       sb_status found) {
    if (found != expected)
        fuzz_fail(file, line, call, "%s, not %s: %.239s", sb_status_name(found),
                  sb_status_name(expected), found == SB_OK ? "" : call_error.message);
}

void check_bytes_status(sb_status status) {
    bool expected = status == SB_OK || (status <= -100 && status >= -199) ||
                    status == SB_ERR_OUT_OF_MEMORY || status == SB_ERR_CAP_REACHED;
    fuzz_check(expected, "bytes caused %s: %.239s", sb_status_name(status), call_error.message);
}
