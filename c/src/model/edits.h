/* A model's edits, sorted by layer, then index. All operations take at most logarithmic time. */
#ifndef SB_MODEL_EDITS_H
#define SB_MODEL_EDITS_H

#include "context/context.h"

#include <syncblob/blob.h>

/* A blob that the program has set, added or announced. A set or added blob is encoded. */
struct sb__edit {
    int32_t layer, index;
    uint32_t before, behind; /* subtrees: positions in `items` plus 1 (0: no subtree) */
    unsigned char *bytes;    /* the encoded blob of `size` bytes; NULL if announced */
    sb_blob *announced;      /* a blob with dtype and shape only; NULL if encoded */
    size_t size;
};

/* A struct of zeros is an empty set. */
struct sb__edits {
    struct sb__edit *items;
    uint32_t count, room;
    uint32_t root, last; /* positions in `items` plus 1 (0: no edit) */
    bool unordered;      /* `items` may be out of order */
};

/* Makes room for one more edit. On failure nothing has changed. */
sb_status sb__edits_reserve(struct sb__edits *edits, sb_context *context, sb_error *err);
/* Frees the array. The caller has freed the edits' contents. */
void sb__edits_free(struct sb__edits *edits, sb_context *context);

/* Returns the first edit at or after (layer, index), or NULL. The pointer is valid until an edit is
   added or removed. */
struct sb__edit *sb__edits_from(const struct sb__edits *edits, int64_t layer, int64_t index);
/* Returns the edit after `edit`, or NULL. Takes constant time if edits were added in order. */
struct sb__edit *sb__edits_next(const struct sb__edits *edits, const struct sb__edit *edit);
/* Returns the edit of the blob at (layer, index), or NULL. */
struct sb__edit *sb__edits_find(const struct sb__edits *edits, int64_t layer, int64_t index);
/* These two functions return the last edit of the set, or the last edit of `layer`. Both functions
   return NULL if there is no such edit. */
struct sb__edit *sb__edits_last(const struct sb__edits *edits);
struct sb__edit *sb__edits_last_of(const struct sb__edits *edits, int64_t layer);

/* Adds an edit of a blob that has no edit yet. The caller has reserved room. */
void sb__edits_add(struct sb__edits *edits, const struct sb__edit *edit);
/* Removes and returns the last edit of a set that is not empty. */
struct sb__edit sb__edits_pop(struct sb__edits *edits);

#endif
