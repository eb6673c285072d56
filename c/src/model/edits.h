/* A model's edits by layer, then index: put in, found and taken out in any
   order, in a time that grows with the logarithm of their number. */
#ifndef SB_MODEL_EDITS_H
#define SB_MODEL_EDITS_H

#include "context/context.h"

#include <syncblob/blob.h>

/* A blob that was set or added, encoded, or that was announced. */
struct sb__edit {
    int64_t layer, index;
    unsigned char *bytes; /* `size` of them; NULL if announced */
    sb_blob *announced;   /* dtype and shape, no memory; NULL if there are bytes */
    size_t size;
    size_t before, behind; /* the tree's: positions in `items`, plus 1; 0: none */
};

/* Zeros: none. */
struct sb__edits {
    struct sb__edit *items; /* in no order */
    size_t count, room;
    size_t root, last; /* positions plus 1; 0: none */
};

/* Makes room for one more. On failure nothing has changed. */
sb_status sb__edits_reserve(struct sb__edits *edits, sb_context *context, sb_error *err);
/* Gives the room back; what the edits own is the caller's to free before. */
void sb__edits_free(struct sb__edits *edits, sb_context *context);

/* The first edit at or after (layer, index); NULL: none. Valid until one is put in or taken out. */
struct sb__edit *sb__edits_from(const struct sb__edits *edits, int64_t layer, int64_t index);
/* The edit of exactly that blob, or NULL. */
struct sb__edit *sb__edits_find(const struct sb__edits *edits, int64_t layer, int64_t index);
/* The last edit of all, or of the layer; NULL: none. */
struct sb__edit *sb__edits_last(const struct sb__edits *edits);
struct sb__edit *sb__edits_last_of(const struct sb__edits *edits, int64_t layer);

/* Puts in an edit of a blob that has none. There is room. */
void sb__edits_add(struct sb__edits *edits, const struct sb__edit *edit);
/* Takes out the last one. There is one. */
struct sb__edit sb__edits_pop(struct sb__edits *edits);

#endif
