/* Storage that somebody outside its memory uses, too, for as long as he likes:
   the memory may give it up meanwhile, and the last holder frees it. */
#ifndef SB_MEMORY_LEASE_H
#define SB_MEMORY_LEASE_H

#include "memory/storage.h"

#include <syncblob/mem.h>

struct sb__lease {
    _Atomic int64_t holders; /* the memory's side is one of them */
    sb_context *context;     /* retained */
    size_t bytes;
    int32_t side;
    struct sb__storage storage; /* without a lease of its own */
};

/* What sb__lease_take needs: OUT_OF_MEMORY, CAP_REACHED. */
sb_status sb__lease_prepare(const sb_mem *mem, struct sb__lease **out, sb_error *err);
/* Makes the caller one more holder of the storage that `side` has. `lease`, from
   sb__lease_prepare, is used or given back; returns the one that is held. */
struct sb__lease *sb__lease_take(sb_mem *mem, int32_t side, struct sb__lease *lease);
/* Gives back what was prepared and not taken. */
void sb__lease_discard(struct sb__lease *lease);
/* One holder less, on any thread; runs a deleter, so no lock may be held. */
void sb__lease_release(struct sb__lease *lease);

#endif
