/* What a change takes out of its objects. It is collected while the change is made and released
   when the change is complete: deleters run then, and they may call the library on any object. So
   sb__retired_end is the last that a call does with what it was called on. */
#ifndef SB_MEMORY_RETIRED_H
#define SB_MEMORY_RETIRED_H

#include "memory/storage.h"

#include <syncblob/mem.h>

struct sb__retired {
    struct sb__retiree *storages;
    sb_mem *mems;
};

/* The place of one storage in such a list, made while a call may still fail: OUT_OF_MEMORY,
   CAP_REACHED. */
sb_status sb__retiree_make(sb_context *context, struct sb__retiree **out, sb_error *err);
void sb__retiree_free(sb_context *context, struct sb__retiree *place);

/* Takes what a side of `mem` had. */
void sb__retire_storage(struct sb__retired *retired, struct sb__retiree *place, const sb_mem *mem,
                        int32_t side, const struct sb__storage *storage);
/* One owner of `mem` (may be NULL) less; the last one leaves it to the list. */
void sb__retire_mem(struct sb__retired *retired, sb_mem *mem);

/* Ends all of it. No lock may be held, since deleters run. Inline, since most lists are empty. */
void sb__retired_release(struct sb__retired *retired);
static inline void sb__retired_end(struct sb__retired *retired) {
    if (retired->storages || retired->mems)
        sb__retired_release(retired);
}

#endif
