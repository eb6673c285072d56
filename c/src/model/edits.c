/* A treap: a search tree by (layer, index), and a heap by priority. The priority is a hash of
   (layer, index), so that the tree has the shape of random insertions. */
#include "model/edits.h"

#include "base/checked.h"
#include "base/error.h"

static struct sb__edit *at(const struct sb__edits *edits, uint32_t link) {
    return link ? &edits->items[link - 1] : NULL;
}

static bool is_before(const struct sb__edit *edit, int64_t layer, int64_t index) {
    return edit->layer < layer || (edit->layer == layer && edit->index < index);
}

/* Returns a hash of (layer, index), computed with the finaliser of splitmix64. */
static uint64_t priority_of(const struct sb__edit *edit) {
    uint64_t z = (uint64_t)edit->index;
    z += (uint64_t)edit->layer * 0x9e3779b97f4a7c15u; /* same: another hash also works */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;          /* same: another hash also works */
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;          /* same: another hash also works */
    return z ^ z >> 31;                               /* same: another hash also works */
}

/* The bound of `room`. A file has at most 2^30 layers and blobs, and names.c allows fewer than 2^30
   added layers, so the layers and indices of edits fit an int32_t. */
#define MOST (UINT32_C(1) << 30)

/* --- room --------------------------------------------------------------------------- */

sb_status sb__edits_reserve(struct sb__edits *edits, sb_context *context, sb_error *err) {
    const size_t bytes = edits->room * sizeof *edits->items;
    const uint32_t more = 2 * edits->room + 4;
    void *items = edits->items;
    size_t more_bytes;
    if (edits->count < edits->room)
        return SB_OK;
    if (more > MOST || /* same: no test has so many edits */
        !sb__mul_size(more, sizeof *edits->items, &more_bytes))
        return sb__fail_memory(err, SIZE_MAX);
    sb_status st = sb__object_grow(context, &items, bytes, more_bytes, err);
    if (st != SB_OK)
        return st;
    edits->items = items;
    edits->room = more;
    return SB_OK;
}

void sb__edits_free(struct sb__edits *edits, sb_context *context) {
    sb__object_free(context, edits->items, edits->room * sizeof *edits->items);
}

/* --- searching ------------------------------------------------------------------------- */

struct sb__edit *sb__edits_last(const struct sb__edits *edits) {
    return at(edits, edits->last);
}

struct sb__edit *sb__edits_from(const struct sb__edits *edits, int64_t layer, int64_t index) {
    struct sb__edit *found = NULL, *edit = sb__edits_last(edits);
    if (!edit || is_before(edit, layer, index))
        return NULL; /* the common case: a net that is built in order */
    edit = at(edits, edits->root);
    while (edit) {
        if (is_before(edit, layer, index)) {
            edit = at(edits, edit->behind);
        } else {
            found = edit;
            edit = at(edits, edit->before);
        }
    }
    return found;
}

struct sb__edit *sb__edits_next(const struct sb__edits *edits, const struct sb__edit *edit) {
    if (edit == sb__edits_last(edits))
        return NULL;
    return edits->unordered ? sb__edits_from(edits, edit->layer, (int64_t)edit->index + 1)
                            : &edits->items[edit - edits->items + 1];
}

struct sb__edit *sb__edits_find(const struct sb__edits *edits, int64_t layer, int64_t index) {
    struct sb__edit *edit = sb__edits_from(edits, layer, index);
    return edit && edit->layer == layer && edit->index == index ? edit : NULL;
}

struct sb__edit *sb__edits_last_of(const struct sb__edits *edits, int64_t layer) {
    struct sb__edit *found = sb__edits_last(edits), *edit = at(edits, edits->root);
    if (!found || found->layer <= layer) /* same: only a fast path, as in sb__edits_from */
        return found && found->layer == layer ? found : NULL;
    while (edit) {
        if (edit->layer <= layer) {
            found = edit;
            edit = at(edits, edit->behind);
        } else {
            edit = at(edits, edit->before);
        }
    }
    return found->layer == layer ? found : NULL;
}

/* --- changing ------------------------------------------------------------------------ */

/* Splits a tree into the edits before and after `edit`, which become the subtrees of `edit`. */
static void split(struct sb__edits *edits, uint32_t tree, struct sb__edit *edit) {
    uint32_t *before = &edit->before, *behind = &edit->behind;
    while (tree) {
        struct sb__edit *top = at(edits, tree);
        if (is_before(top, edit->layer, edit->index)) {
            *before = tree;
            before = &top->behind;
            tree = top->behind;
        } else {
            *behind = tree;
            behind = &top->before;
            tree = top->before;
        }
    }
    *before = *behind = 0;
}

void sb__edits_add(struct sb__edits *edits, const struct sb__edit *edit) {
    struct sb__edit *put = &edits->items[edits->count++], *last = sb__edits_last(edits);
    uint32_t *link = &edits->root;
    const uint64_t priority = priority_of(edit);
    *put = *edit;
    if (!last || is_before(last, edit->layer, edit->index))
        edits->last = edits->count;
    else
        edits->unordered = true;
    for (struct sb__edit *top; (top = at(edits, *link)) && priority_of(top) >= priority;)
        link = is_before(top, edit->layer, edit->index) ? &top->behind : &top->before;
    split(edits, *link, put);
    *link = edits->count;
}

/* Returns the address of the link to the last edit. Sets `*out` to the link to the edit before the
   last edit, or to 0 if there is only one edit. A link is a position in `items` plus 1. */
static uint32_t *last_link(struct sb__edits *edits, uint32_t *out) {
    uint32_t *link = &edits->root;
    *out = 0;
    while (at(edits, *link)->behind) {
        *out = *link;
        link = &at(edits, *link)->behind;
    }
    for (uint32_t below = at(edits, *link)->before; below; below = at(edits, below)->behind)
        *out = below;
    return link;
}

static uint32_t *link_to(struct sb__edits *edits, const struct sb__edit *edit) {
    uint32_t *link = &edits->root;
    while (at(edits, *link) != edit) {
        struct sb__edit *top = at(edits, *link);
        link = is_before(top, edit->layer, edit->index) ? &top->behind : &top->before;
    }
    return link;
}

/* Moves the last item of the array to the position of the removed edit. */
struct sb__edit sb__edits_pop(struct sb__edits *edits) {
    uint32_t last;
    uint32_t *link = last_link(edits, &last);
    struct sb__edit *freed = at(edits, *link);
    const struct sb__edit popped = *freed, *end = &edits->items[edits->count - 1];
    *link = popped.before; /* the last edit has no successor */
    if (freed != end) {
        const uint32_t position = (uint32_t)(freed - edits->items) + 1;
        *link_to(edits, end) = position;
        last = last == edits->count ? position : last;
        *freed = *end;
    }
    edits->count--;
    edits->last = last;
    edits->unordered &= edits->count > 0;
    return popped;
}
