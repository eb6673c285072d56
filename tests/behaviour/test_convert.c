/* Floats into doubles and back: every kind of vectors does what a processor does to one value. */
#include "support.h"

#include "host/convert.h"

#include <math.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST = 70, OFFSETS = 9 };

static const double specials[] = {
    0.0, -0.0, INFINITY, -INFINITY, 1e300, -1e300, 5e-324, 1e-40, -1.4e-45, 0.1, 16777217.0, 3.4e38,
};

/* Any value, some of them beyond a float's range or too fine for it. */
static double value(uint64_t *seed) {
    const size_t which = test_random(seed) % (2 * COUNT_OF(specials));
    if (which < COUNT_OF(specials))
        return specials[which];
    return ldexp((double)(int64_t)test_random(seed), (int)(test_random(seed) % 300) - 150);
}

static void check_narrow(const struct sb__converts *kind, uint64_t *seed, size_t count, size_t at) {
    unsigned char from[MOST * sizeof(double) + OFFSETS] = {0},
                                               to[(MOST + 1) * sizeof(float) + OFFSETS];
    float found, wanted;
    memset(to, 0xa5, sizeof to);
    for (size_t i = 0; i < count; i++) {
        const double v = value(seed);
        memcpy(from + at + i * sizeof v, &v, sizeof v);
    }
    kind->narrow(from + at, to + OFFSETS - at, count);
    for (size_t i = 0; i < count; i++) {
        double v;
        memcpy(&v, from + at + i * sizeof v, sizeof v);
        wanted = (float)v;
        assert_memory_equal(to + OFFSETS - at + i * sizeof wanted, &wanted, sizeof wanted);
    }
    memset(&wanted, 0xa5, sizeof wanted);
    memcpy(&found, to + OFFSETS - at + count * sizeof found, sizeof found);
    assert_memory_equal(&found, &wanted, sizeof found);
}

static void check_widen(const struct sb__converts *kind, uint64_t *seed, size_t count, size_t at) {
    unsigned char from[MOST * sizeof(float) + OFFSETS] = {0},
                                              to[(MOST + 1) * sizeof(double) + OFFSETS];
    double found, wanted;
    memset(to, 0xa5, sizeof to);
    for (size_t i = 0; i < count; i++) {
        const float v = (float)value(seed);
        memcpy(from + at + i * sizeof v, &v, sizeof v);
    }
    kind->widen(from + at, to + OFFSETS - at, count);
    for (size_t i = 0; i < count; i++) {
        float v;
        memcpy(&v, from + at + i * sizeof v, sizeof v);
        wanted = (double)v;
        assert_memory_equal(to + OFFSETS - at + i * sizeof wanted, &wanted, sizeof wanted);
    }
    memset(&wanted, 0xa5, sizeof wanted);
    memcpy(&found, to + OFFSETS - at + count * sizeof found, sizeof found);
    assert_memory_equal(&found, &wanted, sizeof found);
}

TEST(every_kind_of_vectors_converts_every_value) {
    uint64_t seed = 3;
    int kinds = 0;
    for (const struct sb__converts *kind; (kind = sb__converts_kind(kinds)); kinds++)
        for (size_t count = 0; count <= MOST; count++)
            for (size_t at = 0; at < OFFSETS; at++) { /* not aligned, and nothing beyond */
                check_narrow(kind, &seed, count, at);
                check_widen(kind, &seed, count, at);
            }
    assert_true(kinds > 0);
}
