/* base/checked.h: computes exact results, and refuses results that do not fit.
   --unwind 1: there is no loop
   planted: "return !__builtin_add_overflow(a, b, out);\n}\n\nstatic inline bool sb__mul_size"
        -> "return __builtin_add_overflow(a, b, out);\n}\n\nstatic inline bool sb__mul_size"
   planted: "size_t b, size_t *out) {\n    return !__builtin_mul_overflow(a, b, out);"
        -> "size_t b, size_t *out) {\n    *out = a * b;\n    return true;" */
#include "proof.h"

#include "base/checked.h"

typedef unsigned __int128 wide;

void checked(void) {
    const size_t a = any_size(), b = any_size();
    const int64_t i = any_i64(), j = any_i64();
    size_t out;
    int64_t sum;
    claim(sb__add_size(a, b, &out) == ((wide)a + b <= SIZE_MAX));
    claim((wide)a + b > SIZE_MAX || out == a + b);
    claim(sb__add_i64(i, j, &sum) ==
          ((__int128)i + j >= INT64_MIN && (__int128)i + j <= INT64_MAX));
    claim(!sb__add_i64(i, j, &sum) || sum == (__int128)i + j);
    claim(sb__mul_size(a, b, &out) == ((wide)a * b <= SIZE_MAX));
    claim((wide)a * b > SIZE_MAX || out == (wide)a * b);
}
