#include "proto/bytes.h"

#include "base/checked.h"
#include "base/error.h"

/* Stands before the bytes; as large as their alignment. */
union header {
    struct {
        sb_context *context;
        size_t size; /* header included */
    } of;
    unsigned char aligned[64];
};

sb_status sb__bytes_alloc(sb_context *context, size_t size, void **out, sb_error *err) {
    void *block;
    size_t whole;
    if (!sb__add_size(size, sizeof(union header), &whole))
        return sb__fail_memory(err, size);
    sb_status st = sb__ordinary_alloc(context, whole, 0, &block, err);
    if (st != SB_OK)
        return st;
    union header *header = block;
    header->of.context = sb_context_retain(context);
    header->of.size = whole;
    *out = header + 1;
    return SB_OK;
}

void sb_bytes_free(void *bytes) {
    if (!bytes)
        return;
    union header *header = (union header *)bytes - 1;
    sb_context *context = header->of.context;
    sb__ordinary_free(context, header, header->of.size, 0);
    sb_context_release(context);
}
