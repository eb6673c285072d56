/* Arrays of values on the host and the device, with guard elements before and after the values. */
#ifndef SB_CONFORMANCE_ARRAY_H
#define SB_CONFORMANCE_ARRAY_H

#include "kit.h"

/* `count` values between two guards, on the host and on the device. */
struct sb__array {
    struct sb__kit *kit;
    sb_dtype dtype;
    int64_t count;
    size_t element, bytes; /* `bytes` includes the guards */
    char *host, *on_device;
};

/* Creates and uploads an array, whose values and guards are random numbers in [-1, 1). */
struct sb__array sb__array_make(struct sb__kit *kit, sb_dtype dtype, int64_t count, uint64_t seed);
/* Downloads the device's bytes into a new array, which exists only on the host. */
struct sb__array sb__array_read(const struct sb__array *array);
void sb__array_free(struct sb__array *array);

/* Returns the address of the first value on the device, or NULL if the claim has ended. */
void *sb__array_first(const struct sb__array *array);
size_t sb__array_value_bytes(const struct sb__array *array);
char *sb__array_values(const struct sb__array *array); /* on the host */
double sb__array_at(const struct sb__array *array, int64_t i);
void sb__array_set(struct sb__array *array, int64_t i, double value);
void sb__array_upload(const struct sb__array *array);

/* The function sb__array_check_guards fails the claim if `slot` has changed a guard. The function
   sb__array_check_unchanged fails the claim if `slot` has changed any byte. */
void sb__array_check_guards(const struct sb__array *array, const char *slot);
void sb__array_check_unchanged(const struct sb__array *array, const char *slot);

/* Calls `holds` for each dtype from SB_DTYPE_F32 to `last` and each size of a fixed list. The first
   size above max_count is replaced by max_count, and larger sizes are omitted. */
void sb__on_every_size(struct sb__kit *kit, sb_dtype last,
                       void (*holds)(struct sb__kit *kit, sb_dtype dtype, int64_t count));

#endif
