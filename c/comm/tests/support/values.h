/* Values of the ranks' blobs, and random orders of blobs. */
#ifndef SB_TESTS_VALUES_H
#define SB_TESTS_VALUES_H

#include "support.h"

/* Returns the value of element i of the blob with the number `blob` at a rank. Half-precision
   values are small integers, so that their sums are exact too. */
double value_of_rank(sb_dtype dtype, int32_t rank, int blob, int64_t i);
/* Write and read element i of an array of F32, F64, F16 or BF16. */
void put_value(sb_dtype dtype, void *values, int64_t i, double value);
double get_value(sb_dtype dtype, const void *values, int64_t i);
/* Fills `order` with the numbers below `count` in a random order. */
void shuffle(int *order, int count, uint64_t *seed);

#endif
