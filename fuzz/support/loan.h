/* Loans: memory that the harness lends to the library. Checks that each deleter runs once, when it
   is due, and that nothing changes read-only bytes, or bytes whose deleter has run. */
#ifndef SB_FUZZ_LOAN_H
#define SB_FUZZ_LOAN_H

#include "fuzz.h"

#include <syncblob/sim.h>

struct loan {
    struct lender *lender;
    sb_context *device; /* NULL: host memory */
    void *ptr;
    size_t bytes;
    bool read_only;
    bool given; /* a call such as sb_mem_set_cpu has accepted the loan */
    bool due;   /* according to the reference model, the deleter must have run */
    bool ended; /* the deleter has run */
    unsigned char *before;
};

#define LOANS_MAX 256

struct lender {
    struct loan loans[LOANS_MAX];
    int count;
    bool blind; /* bytes are not checked from now on */
};

/* Makes a loan on `device` (NULL: on the host) with the contents `bytes`. Returns NULL if out of
   memory, or if LOANS_MAX loans exist. */
struct loan *lender_make(struct lender *lender, sb_context *device, const void *bytes, size_t size,
                         bool read_only);
void loan_deleter(void *user, void *ptr); /* user: the loan */
/* Checks that exactly the loans that are due have ended. If `may_be_late`, loans that are due may
   still be in quarantine, after a failed wait. */
void lender_check(const struct lender *lender, bool may_be_late);
/* Checks that exactly the accepted loans have ended, checks all bytes, and frees the loans. */
void lender_close(struct lender *lender);

#endif
