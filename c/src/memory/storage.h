/* The storage of one side of a memory: its address, its owner, and the work that may use it. Only
   sb__storage_end releases storage; it never releases storage that may be in use. */
#ifndef SB_MEMORY_STORAGE_H
#define SB_MEMORY_STORAGE_H

#include "context/context.h"

struct sb__lease;
struct sb__kept;

struct sb__storage {
    void *ptr;    /* NULL if the kind is SB_STORAGE_NONE */
    int32_t kind; /* SB_STORAGE_* */
    /* Streams with work that may use the storage. For device storage, all streams that have used
       the storage; for host storage, streams with a copy that may still be running. */
    uint64_t users;
    bool is_exposed; /* device storage: a caller has received a pointer without passing a stream,
                        or has lent the storage, and may use it on a default stream */
    sb_deleter deleter;
    void *user;
    struct sb__kept *kept;             /* the entry for quarantine; NULL in a host-only context */
    _Atomic(struct sb__lease *) lease; /* NULL, or the lease whose last holder frees the storage */
    bool is_joined;                    /* the lease belongs to another memory's storage */
    bool is_alias;                     /* host side: `ptr` points to the device side's storage */
};

/* Allocates storage on a side; storage of 0 bytes needs no memory. `contents` is used only for host
   storage. */
sb_status sb__storage_alloc(struct sb__storage *out, sb_context *context, int32_t side,
                            size_t bytes, enum sb__contents contents, sb_stream stream,
                            sb_error *err);
/* Allocates device storage on a host-coherent device; the host writes the initial `contents`.
   Returns false if the allocation fails. */
bool sb__storage_alloc_coherent(struct sb__storage *out, sb_context *context, size_t bytes,
                                enum sb__contents contents);
/* Returns an upper bound of the bytes that host storage of `bytes` (at most PTRDIFF_MAX) takes,
   with its entry for quarantine. */
size_t sb__storage_size(const sb_context *context, size_t bytes);
/* Wraps memory that the caller lends. Fails with OUT_OF_MEMORY or CAP_REACHED. */
sb_status sb__storage_lend(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, sb_deleter deleter, void *user, sb_error *err);
/* Wraps the storage of `lease`; on success `out` replaces the caller as a holder of the lease.
   Fails with OUT_OF_MEMORY or CAP_REACHED. */
sb_status sb__storage_join(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, struct sb__lease *lease, sb_error *err);
/* Undoes sb__storage_lend or sb__storage_join; the caller still owns the pointer, or is still a
   holder of the lease. */
void sb__storage_unlend(struct sb__storage *lent, sb_context *context, size_t bytes);

/* Returns whether a forked child can access the host storage. */
bool sb__storage_is_in_child(const struct sb__storage *storage, const sb_context *context);

/* Frees the storage or runs its deleter when all work that may use the storage has ended. If the
   lease has other holders, the last holder frees the storage. If work continues, the storage enters
   quarantine. May wait and run deleters, so the caller must hold no lock. Sets `*storage` to
   SB_STORAGE_NONE. */
void sb__storage_end(struct sb__storage *storage, sb_context *context, int32_t side, size_t bytes);

#endif
