/* The mutator of messages as afl-fuzz loads it: a library that is not instrumented. AFL++
   changes bytes by its own means beside it. */
#include "message.h"

#include <string.h>

/* What fuzz/afl.py lets inputs grow to. */
#define MOST_BYTES 4096

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed);

void *afl_custom_init(void *afl, unsigned seed);
size_t afl_custom_fuzz(void *mutator, uint8_t *input, size_t size, uint8_t **out, uint8_t *other,
                       size_t other_size, size_t max_size);
void afl_custom_deinit(void *mutator);

/* A process of afl-fuzz has one, and LLVMFuzzerMutate is not told of it. */
static struct {
    struct dice dice;
    uint8_t bytes[MOST_BYTES];
} the;

void *afl_custom_init(void *afl, unsigned seed) {
    (void)afl;
    the.dice.state = seed;
    return &the;
}

void afl_custom_deinit(void *mutator) {
    (void)mutator;
}

/* Stands in for libFuzzer's: a byte is changed, put in or taken out. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    size_t choice = dice_below(&the.dice, 3);
    if (choice == 0 && size > 1) {
        size_t at = dice_below(&the.dice, size);
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    }
    if (choice == 1 && size < max_size) {
        size_t at = dice_below(&the.dice, size + 1);
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)dice_bits(&the.dice);
        return size + 1;
    }
    if (size > 0)
        data[dice_below(&the.dice, size)] ^= (uint8_t)(1 + dice_below(&the.dice, 255));
    return size;
}

/* One time in four it takes fields of the other input, where there is one. */
size_t afl_custom_fuzz(void *mutator, uint8_t *input, size_t size, uint8_t **out, uint8_t *other,
                       size_t other_size, size_t max_size) {
    (void)mutator;
    unsigned seed = (unsigned)dice_bits(&the.dice);
    max_size = max_size < MOST_BYTES ? max_size : MOST_BYTES;
    *out = the.bytes;
    if (other && dice_below(&the.dice, 4) == 0) {
        size_t crossed =
            LLVMFuzzerCustomCrossOver(input, size, other, other_size, the.bytes, max_size, seed);
        if (crossed > 0)
            return crossed;
    }
    size = size < max_size ? size : max_size;
    memcpy(the.bytes, input, size);
    return LLVMFuzzerCustomMutator(the.bytes, size, max_size, seed);
}
