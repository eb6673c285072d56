/* Memory that the harness lends to the library, with checks of the bytes and of the deleters'
   calls. */
#ifndef SB_FUZZ_LOAN_H
#define SB_FUZZ_LOAN_H

#include "fuzz.h"

#include <syncblob/sim.h>

struct loan {
    struct lender *lender;
    sb_context *device; /* NULL if the memory is on the host */
    void *ptr;
    size_t bytes;
    bool read_only;
    bool given; /* a call such as sb_mem_set_cpu has accepted the loan */
    bool due;   /* the reference model expects that the deleter has run */
    bool ended;
    unsigned char *before;
};

#define LOANS_MAX 256

struct lender {
    struct loan loans[LOANS_MAX];
    int count;
    bool blind; /* bytes are no longer checked */
};

/* `device` is NULL for host memory. Returns NULL if out of memory, or if LOANS_MAX loans exist. */
struct loan *lender_make(struct lender *lender, sb_context *device, const void *bytes, size_t size,
                         bool read_only);
void loan_deleter(void *user, void *ptr); /* user: the loan */
/* Checks that exactly the loans that are due have ended. After a failed wait, loans that are due
   may still be in quarantine (`may_be_late`). */
void lender_check(const struct lender *lender, bool may_be_late);
/* Checks that exactly the accepted loans have ended, checks the bytes of all loans, and frees the
   loans. */
void lender_close(struct lender *lender);

#endif
