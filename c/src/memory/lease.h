/* Storage that tensors and other memories use, too, for as long as they like: its memory may give
   it up meanwhile, and the last holder ends it. The storage of a lease never holds another lease,
   so that storage which is passed on and on has one. */
#ifndef SB_MEMORY_LEASE_H
#define SB_MEMORY_LEASE_H

#include "memory/storage.h"

#include <syncblob/mem.h>

struct sb__lease {
    _Atomic int64_t holders; /* each side of a memory with that storage, each tensor */
    _Atomic uint64_t users;  /* streams that holders which are gone used it on */
    sb_context *context;     /* retained */
    size_t bytes;
    int32_t side;
    struct sb__storage storage; /* without a lease of its own */
};

/* What sb__lease_take needs: OUT_OF_MEMORY, CAP_REACHED. */
sb_status sb__lease_prepare(const sb_mem *mem, struct sb__lease **out, sb_error *err);
/* Makes the caller one more holder of the storage that `side` has, whose bytes are current.
   `lease`, from sb__lease_prepare, is used or discarded; returns the one that is held. Takes no
   lock: other const calls leave such storage in its place. */
struct sb__lease *sb__lease_take(sb_mem *mem, int32_t side, struct sb__lease *lease);
/* Whether others use the storage, too. Its memory is locked. */
bool sb__lease_is_shared(const struct sb__storage *storage);
/* Frees what was prepared and not taken. */
void sb__lease_discard(struct sb__lease *lease);
/* One holder less, who used it on the streams `users`, on any thread; runs a deleter, so no lock
   may be held. */
void sb__lease_release(struct sb__lease *lease, uint64_t users);

#endif
