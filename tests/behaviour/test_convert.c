/* Tests that each kind of vector code converts floats and doubles as scalar code does. */
#include "support.h"

#include "host/convert.h"

#include <math.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST = 70, OFFSETS = 9 };

static const double specials[] = {
    0.0, -0.0, INFINITY, -INFINITY, 1e300, -1e300, 5e-324, 1e-40, -1.4e-45, 0.1, 16777217.0, 3.4e38,
};

/* Returns a random value, possibly beyond a float's range or precision. */
static double value(uint64_t *seed) {
    const uint64_t which = test_random(seed) % (2 * COUNT_OF(specials));
    if (which < COUNT_OF(specials))
        return specials[which];
    return ldexp((double)(int64_t)test_random(seed), (int)(test_random(seed) % 300) - 150);
}

/* A conversion: `from` and `to` are the sizes of a value before and after the conversion. */
struct way {
    sb__convert *run;
    size_t from, to;
};

/* Writes `v` as a double, or as the float that the compiler's conversion returns. */
static void put(double v, size_t size, void *out) {
    const float narrow = (float)v;
    memcpy(out, size == sizeof v ? (const void *)&v : &narrow, size);
}

/* Checks a conversion of unaligned buffers, and that no byte outside the target is written. */
static void check(const struct way *way, uint64_t *seed, size_t count, size_t at) {
    unsigned char from[MOST * sizeof(double) + OFFSETS], to[(MOST + 1) * sizeof(double) + OFFSETS],
        wanted[sizeof to];
    memset(to, 0xa5, sizeof to);
    memset(wanted, 0xa5, sizeof wanted);
    for (size_t i = 0; i < count; i++) {
        double v = value(seed);
        if (way->from == sizeof(float))
            v = (float)v;
        put(v, way->from, from + at + i * way->from);
        put(v, way->to, wanted + OFFSETS - at + i * way->to);
    }
    way->run(from + at, to + OFFSETS - at, count);
    assert_memory_equal(to, wanted, sizeof to);
}

TEST(every_kind_of_vectors_converts_every_value) {
    uint64_t seed = 3;
    int kinds = 0;
    for (const struct sb__converts *kind; (kind = sb__converts_kind(kinds)); kinds++) {
        const struct way narrow = {kind->narrow, sizeof(double), sizeof(float)},
                         widen = {kind->widen, sizeof(float), sizeof(double)};
        for (size_t count = 0; count <= MOST; count++)
            for (size_t at = 0; at < OFFSETS; at++) {
                check(&narrow, &seed, count, at);
                check(&widen, &seed, count, at);
            }
    }
    assert_true(kinds > 0);
}
