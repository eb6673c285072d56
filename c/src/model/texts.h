/* Texts that come one after the other and go in the reverse order, each of them never moved: in few
   blocks, since a search waits for each page and line that it has to look at. */
#ifndef SB_MODEL_TEXTS_H
#define SB_MODEL_TEXTS_H

#include "context/context.h"

struct sb__text_block {
    struct sb__text_block *before;
    size_t room, used; /* bytes behind this */
};

struct sb__texts {
    struct sb__text_block *last; /* NULL: no texts at all */
    size_t room;                 /* of all blocks */
};

/* `bytes` > 0 of any content. OUT_OF_MEMORY, CAP_REACHED. */
sb_status sb__texts_take(struct sb__texts *texts, sb_context *context, size_t bytes, char **out,
                         sb_error *err);
/* Releases the bytes that were taken last, `bytes` as they were asked for. */
void sb__texts_release(struct sb__texts *texts, sb_context *context, size_t bytes);
void sb__texts_free(struct sb__texts *texts, sb_context *context);

#endif
