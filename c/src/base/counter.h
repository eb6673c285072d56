/* Counters that any thread may change and read at any time, for example for statistics. All
   operations use relaxed memory order, because locks order the accesses to the memory that a
   counter describes. */
#ifndef SB_BASE_COUNTER_H
#define SB_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t sb__counter;

static inline uint64_t sb__counter_read(const sb__counter *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Returns the new value. */
static inline uint64_t sb__counter_add(sb__counter *counter, uint64_t more) {
    return atomic_fetch_add_explicit(counter, more, memory_order_relaxed) + more;
}

/* Adds `more` and stores the new value in `*out`. Returns false, without a change, if the value
   would exceed `limit`. */
static inline int sb__counter_add_within(sb__counter *counter, uint64_t more, uint64_t limit,
                                         uint64_t *out) {
    uint64_t now = sb__counter_read(counter);
    do {
        if (more > limit || now > limit - more)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(counter, &now, now + more, memory_order_relaxed,
                                                    memory_order_relaxed));
    *out = now + more;
    return 1;
}

static inline void sb__counter_subtract(sb__counter *counter, uint64_t less) {
    atomic_fetch_sub_explicit(counter, less, memory_order_relaxed);
}

static inline void sb__counter_raise(sb__counter *counter, uint64_t floor) {
    uint64_t now = sb__counter_read(counter);
    while (now < floor && !atomic_compare_exchange_weak_explicit(
                              counter, &now, floor, memory_order_relaxed, memory_order_relaxed)) {
    }
}

#endif
