/* Memory that a caller lends. Checks that the deleter runs once and when the loan is due, that
   read-only bytes do not change, and that nothing writes to the memory after the loan's end. */
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
    bool given; /* a set call has accepted the loan */
    bool due;   /* the model of the memory has ended the loan */
    bool ended;
    unsigned char *before;
};

#define LOANS_MAX 64

struct lender {
    struct loan loans[LOANS_MAX];
    int count;
    bool blind; /* bytes are not checked from now on */
};

/* Makes a loan of `size` bytes that holds `bytes`, on `device` or the host (NULL). Returns NULL if
   memory is exhausted or LOANS_MAX loans exist. */
struct loan *lender_make(struct lender *lender, sb_context *device, const void *bytes, size_t size,
                         bool read_only);
void loan_deleter(void *user, void *ptr); /* user: the loan */
/* Checks that only loans that are due have ended, and all of them unless `may_be_late`: after a
   failed wait, storage may stay in quarantine. */
void lender_check(const struct lender *lender, bool may_be_late);
/* Checks that exactly the accepted loans have ended, checks all bytes, and frees the loans. */
void lender_close(struct lender *lender);

#endif
