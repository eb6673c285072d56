/* A heap sort: it takes no memory, and no input makes it slow. Inline, so that it costs what one
   written for its items would. */
#ifndef SB_BASE_SORT_H
#define SB_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SB__MAX_SORTED 16 /* bytes of an item */

/* Whether item `a` belongs before item `b`. */
typedef bool sb__is_before(const void *user, const void *a, const void *b);

/* Item `at` of a heap of `count` sinks below those that belong behind it. */
__attribute__((always_inline)) static inline void sb__sift(char *heap, int64_t at, int64_t count,
                                                           size_t size, sb__is_before *is_before,
                                                           const void *user) {
    _Alignas(max_align_t) char item[SB__MAX_SORTED];
    memcpy(item, heap + (size_t)at * size, size);
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        const char *next = heap + (size_t)child * size;
        if (child + 1 < count && is_before(user, next, next + size)) {
            child++;
            next += size;
        }
        if (!is_before(user, item, next))
            break;
        memcpy(heap + (size_t)at * size, next, size);
    }
    memcpy(heap + (size_t)at * size, item, size);
}

__attribute__((always_inline)) static inline bool sb__is_sorted(const char *items, int64_t count,
                                                                size_t size,
                                                                sb__is_before *is_before,
                                                                const void *user) {
    for (int64_t i = 1; i < count; i++)
        if (is_before(user, items + (size_t)i * size, items + (size_t)(i - 1) * size))
            return false;
    return true;
}

/* Sorts `count` items of `size` bytes, SB__MAX_SORTED at most. Items in order already, such as
   layers without names, take one look each. */
__attribute__((always_inline)) static inline void
sb__sort(void *items, int64_t count, size_t size, sb__is_before *is_before, const void *user) {
    _Alignas(max_align_t) char greatest[SB__MAX_SORTED];
    char *heap = items;
    if (sb__is_sorted(heap, count, size, is_before, user))
        return;
    for (int64_t i = count / 2; i-- > 0;)
        sb__sift(heap, i, count, size, is_before, user);
    for (int64_t last = count; last-- > 1;) {
        char *end = heap + (size_t)last * size;
        memcpy(greatest, heap, size);
        memcpy(heap, end, size);
        memcpy(end, greatest, size);
        sb__sift(heap, 0, last, size, is_before, user);
    }
}

#endif
