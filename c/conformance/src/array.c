#include "array.h"

#include <string.h>

#define GUARD ((int64_t)19) /* elements before and after the values, which no call may write */

static size_t guard_bytes(const struct sb__array *a) {
    return (size_t)GUARD * a->element;
}

size_t sb__array_value_bytes(const struct sb__array *a) {
    return (size_t)a->count * a->element;
}

void *sb__array_first(const struct sb__array *a) {
    return a->on_device ? a->on_device + guard_bytes(a) : NULL;
}

char *sb__array_values(const struct sb__array *a) {
    return a->host ? a->host + guard_bytes(a) : NULL;
}

double sb__array_at(const struct sb__array *a, int64_t i) {
    const char *at = a->host + (size_t)(GUARD + i) * a->element;
    float f;
    double v;
    if (a->dtype == SB_DTYPE_F64) {
        memcpy(&v, at, sizeof v);
        return v;
    }
    memcpy(&f, at, sizeof f);
    return (double)f;
}

void sb__array_set(struct sb__array *a, int64_t i, double v) {
    const float f = (float)v;
    if (!a->host)
        return;
    char *at = a->host + (size_t)(GUARD + i) * a->element;
    if (a->dtype == SB_DTYPE_F64)
        memcpy(at, &v, sizeof v);
    else
        memcpy(at, &f, sizeof f);
}

void sb__array_upload(const struct sb__array *a) {
    sb__kit_upload(a->kit, a->on_device, a->host, a->bytes);
    sb__kit_wait(a->kit, a->kit->stream);
}

struct sb__array sb__array_make(struct sb__kit *kit, sb_dtype dtype, int64_t count, uint64_t seed) {
    struct sb__array a = {
        .kit = kit, .dtype = dtype, .count = count, .element = sb_dtype_size(dtype)};
    a.bytes = sb__array_value_bytes(&a) + 2 * guard_bytes(&a);
    a.host = sb__kit_memory(kit, a.bytes);
    for (int64_t i = -GUARD; a.host && i < count + GUARD; i++)
        sb__array_set(&a, i, (double)(int64_t)(sb__kit_random(&seed) >> 11) * 0x1p-52 - 1.0);
    a.on_device = sb__kit_alloc(kit, a.bytes);
    sb__array_upload(&a);
    return a;
}

struct sb__array sb__array_read(const struct sb__array *a) {
    struct sb__array read = *a;
    read.host = sb__kit_memory(a->kit, a->bytes);
    read.on_device = NULL;
    if (read.host)
        memset(read.host, 0x77, a->bytes);
    sb__kit_download(a->kit, read.host, a->on_device, a->bytes);
    sb__kit_wait(a->kit, a->kit->stream);
    return read;
}

void sb__array_free(struct sb__array *a) {
    sb__kit_free(a->kit, a->on_device, a->bytes);
    sb__kit_memory_free(a->kit, a->host);
}

static void check(const struct sb__array *a, const char *slot, bool values) {
    struct sb__array now = sb__array_read(a);
    const size_t guard = guard_bytes(a);
    const size_t tail = a->bytes - guard;
    if (sb__kit_goes(a->kit) && (memcmp(now.host, a->host, guard) != 0 ||
                                 memcmp(now.host + tail, a->host + tail, guard) != 0))
        sb__kit_fail(a->kit, "%s of %lld %s wrote outside its range", slot, (long long)a->count,
                     sb_dtype_name(a->dtype));
    if (sb__kit_goes(a->kit) && values && memcmp(now.host, a->host, a->bytes) != 0)
        sb__kit_fail(a->kit, "%s of %lld %s changed bytes that it only reads", slot,
                     (long long)a->count, sb_dtype_name(a->dtype));
    sb__array_free(&now);
}

void sb__array_check_guards(const struct sb__array *a, const char *slot) {
    check(a, slot, false);
}

void sb__array_check_unchanged(const struct sb__array *a, const char *slot) {
    check(a, slot, true);
}

void sb__on_every_size(struct sb__kit *kit, sb_dtype last,
                       void (*holds)(struct sb__kit *kit, sb_dtype dtype, int64_t count)) {
    static const int64_t sizes[] = {1,   2,    7,    255,           256,
                                    257, 1025, 8193, (1 << 18) + 1, (1 << 20) + 1};
    const int64_t max_count = kit->options.max_count;
    for (sb_dtype dtype = SB_DTYPE_F32; dtype <= last; dtype++)
        for (size_t s = 0; s < SB__KIT_COUNT_OF(sizes) && sb__kit_goes(kit); s++)
            if (s == 0 || sizes[s - 1] < max_count)
                holds(kit, dtype, sizes[s] < max_count ? sizes[s] : max_count);
}
