/* Declarations for harnesses. In ESBMC, a function without a body returns any value of its type. */
#ifndef SB_TESTS_PROOF_H
#define SB_TESTS_PROOF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void __ESBMC_assume(_Bool);
void __ESBMC_assert(_Bool, const char *);

#define assume(condition) __ESBMC_assume(condition)
#define claim(condition)  __ESBMC_assert(condition, #condition)

/* ESBMC 7.7 has no body for these builtins, and misses overflows of __builtin_smull_overflow. */
#define OVERFLOWS(a, operator, b, out)                                                             \
    ({                                                                                             \
        const __typeof__(_Generic(*(out), size_t                                                   \
                                  : (unsigned __int128)0, default                                  \
                                  : (__int128)0)) wide_ = (a),                                     \
                                                  exact_ = wide_ operator(b);                      \
        *(out) = (__typeof__(*(out)))exact_;                                                       \
        exact_ != *(out);                                                                          \
    })
#define __builtin_add_overflow(a, b, out) OVERFLOWS(a, +, b, out)
#define __builtin_mul_overflow(a, b, out) OVERFLOWS(a, *, b, out)

bool any_bool(void);
int any_int(void);
uint8_t any_u8(void);
uint32_t any_u32(void);
int32_t any_i32(void);
uint64_t any_u64(void);
int64_t any_i64(void);
size_t any_size(void);

/* Calls of NAME in an included source become calls of NAME_contract. A definition of NAME stays,
   because its first parameter begins with `struct` or `const`. */
#define FIRST_struct               ,
#define FIRST_const                ,
#define THIRD(a, b, c, ...)        c
#define PICK(...)                  THIRD(__VA_ARGS__)
#define CONTRACT(name, first, ...) PICK(FIRST_##first, name, name##_contract, ~)(first, __VA_ARGS__)

/* The last failure that sb__fail received: functions must return no other failure. */
static sb_status last_failure;

sb_status sb__fail(sb_error *err, sb_status status, const char *format, ...) {
    return last_failure = status;
}

sb_status sb__fail_at(sb_error *err, sb_status status, int64_t offset, const char *format, ...) {
    return last_failure = status;
}

sb_status sb__fail_null(sb_error *err, const char *what) {
    return last_failure = SB_ERR_INVALID_ARGUMENT;
}

#endif
