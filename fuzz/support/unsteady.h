/* A source over the input that can fail, or find other bytes, from its n-th read on;
   a sink that can fail at its n-th write. */
#ifndef SB_FUZZ_UNSTEADY_H
#define SB_FUZZ_UNSTEADY_H

#include "fuzz.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_FAILS,   /* the n-th read, and no other */
    TROUBLE_CHANGES, /* from the n-th read on a byte of each read is another */
    TROUBLES
};

struct unsteady {
    const uint8_t *bytes;
    size_t size;
    enum trouble trouble;
    int left;       /* until the n-th read */
    uint32_t where; /* of the byte that is another, and which */
    int closed;
};

sb_source unsteady_source(struct unsteady *unsteady);
/* Whether the n-th read came. */
bool unsteady_struck(const struct unsteady *unsteady);
/* OK, or a status that the trouble explains beside those of bytes alone. */
void unsteady_check(const struct unsteady *unsteady, sb_status status, const sb_error *err);

/* What was written must be `bytes`, as far as it goes. */
struct drain {
    const uint8_t *bytes; /* NULL: whatever */
    size_t size, written;
    int left; /* until the write that fails; 0: none */
};

sb_sink drain_sink(struct drain *drain);

#endif
