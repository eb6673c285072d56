/* One side of a memory: where its bytes are, whose they are, and which work may
   be using them. Storage ends in sb__storage_end alone, which never frees or
   hands back what may be in use. */
#ifndef SB_MEMORY_STORAGE_H
#define SB_MEMORY_STORAGE_H

#include "context/context.h"

struct sb__lease;
struct sb__kept;

struct sb__storage {
    void *ptr;    /* NULL: SB_STORAGE_NONE */
    int32_t kind; /* SB_STORAGE_* */
    /* Streams with work that may use it. Of the device's storage: all that it was used on; of the
       host's: those with a copy that may still be in flight. */
    uint64_t users;
    bool is_exposed; /* of the device's: the caller may use it on a default stream */
    sb_deleter deleter;
    void *user;
    struct sb__kept *kept;             /* its place in quarantine; NULL where no device is */
    _Atomic(struct sb__lease *) lease; /* others use it, too, and the last ends it; NULL: none do */
    bool is_joined;                    /* the lease is of another memory's storage */
};

/* Storage of our own on a side; for bytes 0 a sentinel, no allocation. `contents` are the
   host's. */
sb_status sb__storage_alloc(struct sb__storage *out, sb_context *context, int32_t side,
                            size_t bytes, enum sb__contents contents, sb_stream stream,
                            sb_error *err);
/* What storage on the host takes at most, of `bytes` <= PTRDIFF_MAX: with its place in quarantine.
 */
size_t sb__storage_size(const sb_context *context, size_t bytes);
/* Storage that the caller lends; OUT_OF_MEMORY, CAP_REACHED. */
sb_status sb__storage_lend(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, sb_deleter deleter, void *user, sb_error *err);
/* Storage of another memory, which `lease` keeps: one of its holders is the storage from now on.
   OUT_OF_MEMORY, CAP_REACHED. */
sb_status sb__storage_join(struct sb__storage *out, sb_context *context, size_t bytes, void *ptr,
                           uint32_t flags, struct sb__lease *lease, sb_error *err);
/* Takes back what sb__storage_lend or sb__storage_join made; the pointer, or the place among the
   holders, stays the caller's. */
void sb__storage_unlend(struct sb__storage *lent, sb_context *context, size_t bytes);

/* Whether a forked child has the bytes of such host storage. */
bool sb__storage_is_in_child(const struct sb__storage *storage, const sb_context *context);

/* Frees or hands back once all work that may use it is over, or leaves that to the other holders or
   to quarantine. Waits and runs deleters, so no lock may be held. Leaves SB_STORAGE_NONE. */
void sb__storage_end(struct sb__storage *storage, sb_context *context, int32_t side, size_t bytes);

#endif
