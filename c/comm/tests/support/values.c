#include "values.h"

#include "blobs.h"
#include "halves.h"

double value_of_rank(sb_dtype dtype, int32_t rank, int blob, int64_t i) {
    uint64_t seed = (uint64_t)rank * 7919u + (uint64_t)blob * 104729u + (uint64_t)i;
    if (is_half(dtype))
        return (double)(test_random(&seed) % 17) - 8;
    return (double)(test_random(&seed) >> 44) / 1024.0 - 500.0;
}

void put_value(sb_dtype dtype, void *values, int64_t i, double value) {
    if (dtype == SB_DTYPE_F32)
        ((float *)values)[i] = (float)value;
    else if (is_half(dtype))
        ((uint16_t *)values)[i] = half_of(dtype, value);
    else
        ((double *)values)[i] = value;
}

double get_value(sb_dtype dtype, const void *values, int64_t i) {
    return is_half(dtype) ? value_of_half(dtype, ((const uint16_t *)values)[i])
                          : value_at(dtype, values, i);
}

void shuffle(int *order, int count, uint64_t *seed) {
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(test_random(seed) % (uint64_t)(i + 1)), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}
