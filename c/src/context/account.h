/* Counts the bytes in use and their peak, for sb_stats, and enforces a cap. */
#ifndef SB_CONTEXT_ACCOUNT_H
#define SB_CONTEXT_ACCOUNT_H

#include "base/counter.h"

#include <syncblob/status.h>

#include <stdbool.h>
#include <stddef.h>

struct sb__account {
    sb__counter live, peak;
    size_t cap; /* 0 if there is no cap */
};

/* Fills `err` and returns CAP_REACHED, for a request of `bytes` more bytes of `what`. */
sb_status sb__account_fail(const struct sb__account *account, size_t bytes, const char *what,
                           sb_error *err);

/* Adds `bytes` to an account. Returns false if the sum would exceed the cap. */
static inline bool sb__account_add(struct sb__account *account, size_t bytes) {
    uint64_t live, limit = account->cap ? account->cap : UINT64_MAX;
    return sb__counter_add_within(&account->live, bytes, limit, &live);
}

static inline sb_status sb__account_take(struct sb__account *account, size_t bytes,
                                         const char *what, sb_error *err) {
    return sb__account_add(account, bytes) ? (sb_status)SB_OK
                                           : sb__account_fail(account, bytes, what, err);
}

/* Updates the peak. Called when the added bytes have been allocated. */
static inline void sb__account_had(struct sb__account *account) {
    sb__counter_raise(&account->peak, sb__counter_read(&account->live));
}

static inline void sb__account_give(struct sb__account *account, size_t bytes) {
    sb__counter_subtract(&account->live, bytes);
}

#endif
