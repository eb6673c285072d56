/* The storage and the memories that a call removes from objects. The call releases them after its
   last change, because a deleter may call the library on the same objects. After sb__retired_end,
   the call must not access the objects. */
#ifndef SB_MEMORY_RETIRED_H
#define SB_MEMORY_RETIRED_H

#include "memory/storage.h"

#include <syncblob/mem.h>

struct sb__retired {
    struct sb__retiree *storages;
    sb_mem *mems;
};

/* Allocates an entry for a list of retired storage in advance. Fails with OUT_OF_MEMORY or
   CAP_REACHED. */
sb_status sb__retiree_make(sb_context *context, struct sb__retiree **out, sb_error *err);
void sb__retiree_free(sb_context *context, struct sb__retiree *place);

/* Adds the old storage of a side of `mem` to the list. */
void sb__retire_storage(struct sb__retired *retired, struct sb__retiree *place, const sb_mem *mem,
                        int32_t side, const struct sb__storage *storage);
/* Removes an owner of `mem` (may be NULL). Adds the memory to the list if that was the last
   owner. */
void sb__retire_mem(struct sb__retired *retired, sb_mem *mem);

/* Both functions release all entries and run deleters, so the caller must hold no lock.
   sb__retired_end is inline, because most lists are empty. */
void sb__retired_release(struct sb__retired *retired);
static inline void sb__retired_end(struct sb__retired *retired) {
    if (retired->storages || retired->mems)
        sb__retired_release(retired);
}

#endif
