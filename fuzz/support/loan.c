#include "loan.h"

#include "counting_allocator.h"

#include <stdlib.h>
#include <string.h>

#define AFTER_THE_END 0xD7

/* tests/support/support.c defines these functions for unit tests, and frees objects when a test
   ends. */
void test_own_loan(void *thing, void (*end)(void *thing)) {
    (void)thing;
    (void)end;
}

bool test_disown(const void *thing) {
    return thing != NULL;
}

static void write_bytes(const struct loan *loan, const void *bytes) {
    if (!loan->device)
        memcpy(loan->ptr, bytes, loan->bytes);
    else
        ignore(sb_sim_poke(loan->device, loan->ptr, bytes, loan->bytes, NULL));
}

struct loan *lender_make(struct lender *lender, sb_context *device, const void *bytes, size_t size,
                         bool read_only) {
    if (lender->count == LOANS_MAX)
        return NULL;
    void *ptr = NULL;
    if (!device)
        ptr = test_aligned_alloc(64, size ? size : 1);
    else
        ignore(sb_sim_malloc(device, size, &ptr, NULL));
    if (!ptr)
        return NULL;
    unsigned char *before = malloc(size + 1);
    fuzz_check(before, "out of memory");
    struct loan *loan = &lender->loans[lender->count++];
    *loan = (struct loan){lender, device, ptr, size, read_only, false, false, false, before};
    if (size)
        memcpy(before, bytes, size);
    write_bytes(loan, before);
    return loan;
}

static bool holds(const struct loan *loan, const unsigned char *expected) {
    if (loan->lender->blind)
        return true;
    if (!loan->device)
        return memcmp(loan->ptr, expected, loan->bytes) == 0;
    unsigned char *seen = malloc(loan->bytes + 1);
    bool same = seen && sb_sim_peek(loan->device, seen, loan->ptr, loan->bytes, NULL) == SB_OK &&
                memcmp(seen, expected, loan->bytes) == 0;
    free(seen);
    return same;
}

void loan_deleter(void *user, void *ptr) {
    struct loan *loan = user;
    const char *where = loan->device ? "device" : "host";
    fuzz_check(ptr == loan->ptr, "a deleter received %p, but the loan is %p", ptr, loan->ptr);
    fuzz_check(loan->given, "the deleter of %s memory ran, but no call took the memory", where);
    fuzz_check(!loan->ended, "the deleter of %s memory ran twice", where);
    fuzz_check(!loan->read_only || holds(loan, loan->before), "read-only %s bytes changed", where);
    loan->ended = true;
    memset(loan->before, AFTER_THE_END, loan->bytes);
    write_bytes(loan, loan->before);
}

void lender_check(const struct lender *lender, bool may_be_late) {
    for (int i = 0; i < lender->count; i++) {
        const struct loan *loan = &lender->loans[i];
        const bool is_late = may_be_late && loan->due && !loan->ended;
        fuzz_check(loan->ended == loan->due || is_late,
                   "loan %d of %zu bytes has%s ended, and should%s", i, loan->bytes,
                   loan->ended ? "" : " not", loan->due ? "" : " not");
    }
}

void lender_close(struct lender *lender) {
    for (int i = 0; i < lender->count; i++) {
        struct loan *loan = &lender->loans[i];
        fuzz_check(loan->ended == loan->given, "loan %d was accepted %d times, and ended %d times",
                   i, loan->given, loan->ended);
        fuzz_check(holds(loan, loan->before), "loan %d was written while it was not lent", i);
        free(loan->before);
        if (loan->device)
            ignore(sb_sim_free(loan->device, loan->ptr, NULL));
        else
            test_aligned_free(loan->ptr);
    }
    lender->count = 0;
}
