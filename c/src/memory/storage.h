/* One side of a memory: where its bytes are and whose they are. */
#ifndef SB_MEMORY_STORAGE_H
#define SB_MEMORY_STORAGE_H

#include "context/context.h"

struct sb__lease;

struct sb__storage {
    void *ptr;    /* NULL: SB_STORAGE_NONE */
    int32_t kind; /* SB_STORAGE_* */
    sb_deleter deleter;
    void *user;
    struct sb__lease *lease; /* others use it, too, and the last frees it; NULL: none do */
};

/* Storage of our own on a side; for bytes 0 a sentinel, no allocation. `zeroed` is for the host. */
sb_status sb__storage_alloc(struct sb__storage *out, sb_context *context, int32_t side,
                            size_t bytes, bool zeroed, sb_stream stream, sb_error *err);
/* Frees or hands back, or leaves that to the other holders; runs the deleter, so no lock may be
 * held. Leaves SB_STORAGE_NONE. */
void sb__storage_drop(struct sb__storage *storage, sb_context *context, int32_t side, size_t bytes);

#endif
