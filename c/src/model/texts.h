/* A stack of texts that never move, in a few large blocks, so that searches touch few pages. */
#ifndef SB_MODEL_TEXTS_H
#define SB_MODEL_TEXTS_H

#include "context/context.h"

struct sb__text_block {
    struct sb__text_block *before;
    size_t room, used; /* bytes after this struct */
};

struct sb__texts {
    struct sb__text_block *last; /* NULL without texts */
    size_t room;                 /* the sum of `room` of all blocks */
};

/* Allocates `bytes` > 0 without initialising them. Fails with OUT_OF_MEMORY or CAP_REACHED. */
sb_status sb__texts_take(struct sb__texts *texts, sb_context *context, size_t bytes, char **out,
                         sb_error *err);
/* Frees the last allocation, whose size is `bytes`. */
void sb__texts_release(struct sb__texts *texts, sb_context *context, size_t bytes);
void sb__texts_free(struct sb__texts *texts, sb_context *context);

#endif
