#include "memory/retired.h"

#include "memory/mem.h"

struct sb__retiree {
    struct sb__retiree *next;
    sb_context *context; /* retained: a deleter may release the context's last object */
    int32_t side;
    size_t bytes;
    struct sb__storage storage;
};

sb_status sb__retiree_make(sb_context *context, struct sb__retiree **out, sb_error *err) {
    void *object;
    sb_status st = sb__object_alloc(context, sizeof(struct sb__retiree), &object, err);
    if (st == SB_OK)
        *out = object;
    return st;
}

void sb__retiree_free(sb_context *context, struct sb__retiree *place) {
    sb__object_free(context, place, sizeof *place);
}

void sb__retire_storage(struct sb__retired *retired, struct sb__retiree *place, const sb_mem *mem,
                        int32_t side, const struct sb__storage *storage) {
    place->context = sb_context_retain(mem->context);
    place->side = side;
    place->bytes = mem->bytes;
    place->storage = *storage;
    place->next = retired->storages;
    retired->storages = place;
}

void sb__retire_mem(struct sb__retired *retired, sb_mem *mem) {
    if (!mem || !sb__mem_drop_owner(mem))
        return;
    mem->next_retired = retired->mems;
    retired->mems = mem;
}

static void end_storage(struct sb__retiree *place) {
    sb_context *context = place->context;
    struct sb__storage storage = place->storage;
    const int32_t side = place->side;
    const size_t bytes = place->bytes;
    sb__retiree_free(context, place);
    sb__storage_end(&storage, context, side, bytes);
    sb_context_release(context);
}

void sb__retired_release(struct sb__retired *retired) {
    while (retired->storages) {
        struct sb__retiree *place = retired->storages;
        retired->storages = place->next;
        end_storage(place);
    }
    while (retired->mems) {
        sb_mem *mem = retired->mems;
        retired->mems = mem->next_retired;
        sb__mem_destroy(mem);
    }
}
