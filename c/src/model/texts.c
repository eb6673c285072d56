#include "model/texts.h"

#include "base/checked.h"
#include "base/error.h"

/* Within these bounds, a new block is a fourth as large as all earlier blocks together. There are
   thus few blocks, and little memory is unused. */
#define LEAST_BYTES ((size_t)1000)
#define MOST_BYTES  ((size_t)4 << 20)

static size_t room_of_next(const struct sb__texts *texts, size_t bytes) {
    size_t room = texts->room / 4;
    if (room < LEAST_BYTES)
        room = LEAST_BYTES;
    if (room > MOST_BYTES)
        room = MOST_BYTES;
    return room > bytes ? room : bytes;
}

static sb_status add_block(struct sb__texts *texts, sb_context *context, size_t bytes,
                           sb_error *err) {
    const size_t room = room_of_next(texts, bytes);
    size_t size;
    void *object;
    if (!sb__add_size(room, sizeof(struct sb__text_block), &size))
        return sb__fail_memory(err, bytes);
    sb_status st = sb__object_alloc(context, size, &object, err);
    if (st != SB_OK)
        return st;
    struct sb__text_block *block = object;
    block->before = texts->last;
    block->room = room;
    texts->last = block;
    texts->room += room;
    return SB_OK;
}

static void drop_block(struct sb__texts *texts, sb_context *context) {
    struct sb__text_block *block = texts->last;
    texts->last = block->before;
    texts->room -= block->room;
    sb__object_free(context, block, sizeof *block + block->room);
}

sb_status sb__texts_take(struct sb__texts *texts, sb_context *context, size_t bytes, char **out,
                         sb_error *err) {
    const struct sb__text_block *last = texts->last;
    sb_status st = SB_OK;
    if (!last || last->room - last->used < bytes)
        st = add_block(texts, context, bytes, err);
    if (st != SB_OK)
        return st;
    *out = (char *)(texts->last + 1) + texts->last->used;
    texts->last->used += bytes;
    return SB_OK;
}

void sb__texts_release(struct sb__texts *texts, sb_context *context, size_t bytes) {
    texts->last->used -= bytes;
    if (texts->last->used == 0)
        drop_block(texts, context);
}

void sb__texts_free(struct sb__texts *texts, sb_context *context) {
    while (texts->last)
        drop_block(texts, context);
}
