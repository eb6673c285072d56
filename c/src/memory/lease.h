/* A lease counts the holders of storage. A holder is a side of a memory, or an exported tensor. A
   memory may retire the storage while other holders use it; the last holder frees the storage. Each
   further export of the storage, also by a memory that has imported it, adds a holder to the same
   lease. */
#ifndef SB_MEMORY_LEASE_H
#define SB_MEMORY_LEASE_H

#include "memory/storage.h"

#include <syncblob/mem.h>

struct sb__lease {
    _Atomic int64_t holders;
    _Atomic uint64_t users; /* streams on which former holders used the storage */
    sb_context *context;    /* retained */
    size_t bytes;
    int32_t side;
    struct sb__storage storage; /* its member `lease` is NULL */
};

/* Allocates a lease for sb__lease_take. Fails with OUT_OF_MEMORY or CAP_REACHED. */
sb_status sb__lease_prepare(const sb_mem *mem, struct sb__lease **out, sb_error *err);
/* Makes the caller a holder of the storage of `side`. The side's bytes must be current. Attaches
   `lease` to the storage, or discards `lease` if the storage already has one. Returns the storage's
   lease. Needs no lock, because const calls on other threads do not replace storage whose bytes are
   current. */
struct sb__lease *sb__lease_take(sb_mem *mem, int32_t side, struct sb__lease *lease);
/* Returns whether other holders also use the storage. The caller holds the memory's lock. */
bool sb__lease_is_shared(const struct sb__storage *storage);
void sb__lease_discard(struct sb__lease *lease);
/* Removes a holder that used the storage on the streams `users`. Any thread may call this function,
   but must hold no lock, because the function may run a deleter. */
void sb__lease_release(struct sb__lease *lease, uint64_t users);

#endif
