/* Memory that a caller lends, watched: its deleter runs once and when it is
   due, read-only bytes stay as they are, and nobody writes after the end. */
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
    bool given; /* a set call has taken it */
    bool due;   /* by the reference it has ended */
    bool ended;
    unsigned char *before;
};

#define LOANS_MAX 64

struct lender {
    struct loan loans[LOANS_MAX];
    int count;
    bool blind; /* bytes are not looked at any more */
};

/* Memory of `size` bytes that holds `bytes`, on `device` or the host; NULL when there is none. */
struct loan *lender_make(struct lender *lender, sb_context *device, const void *bytes, size_t size,
                         bool read_only);
void loan_deleter(void *user, void *ptr); /* user: the loan */
/* Every loan has ended if and only if it is due. */
void lender_check(const struct lender *lender);
/* Looks at all bytes for the last time and frees them; all that was given is to have ended. */
void lender_close(struct lender *lender);

#endif
