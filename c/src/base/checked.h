/* Checked arithmetic for products and sums of sizes. Each function stores the result in `*out` and
   returns true if the result does not overflow. */
#ifndef SB_BASE_CHECKED_H
#define SB_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sb__add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sb__mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool sb__add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sb__mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* Computes the size of `count` >= 0 elements in bytes. Returns false if the size exceeds
   PTRDIFF_MAX. Does not convert `count` to size_t, because a 32-bit host would truncate large
   counts. */
static inline bool sb__bytes_of(int64_t count, size_t element_size, size_t *out) {
    return !__builtin_mul_overflow((uint64_t)count, element_size, out) && *out <= PTRDIFF_MAX;
}

#endif
