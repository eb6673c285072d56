#include "base/hash.h"

#include <string.h>

struct siphash {
    uint64_t a, b, c, d;
};

static inline uint64_t turn(uint64_t word, int bits) {
    return word << bits | word >> (64 - bits);
}

static inline void mix(struct siphash *s) {
    s->a += s->b;
    s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a;
    s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32) + s->d;
    s->c += s->b;
    s->d = turn(s->d, 21) ^ s->a;
    s->b = turn(s->b, 17) ^ s->c;
    s->c = turn(s->c, 32);
}

static inline void take(struct siphash *s, uint64_t word) {
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

uint64_t sb__hash(const uint64_t key[2], const void *bytes, size_t size) {
    struct siphash s = {
        key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = bytes;
    uint64_t word, last = (uint64_t)size << 56;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        take(&s, word);
    }
    for (size_t i = 0; i < size; i++) /* faster than a call of memcpy */
        last |= (uint64_t)at[i] << 8 * i;
    take(&s, last);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
