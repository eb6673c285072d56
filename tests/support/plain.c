#include "plain.h"

#include "aligned.h"

static sb_status plain_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    struct plain *plain = user;
    if (plain->open_status != SB_OK)
        return sb_error_fill(err, plain->open_status, 4711, "the test makes this fail");
    plain->opened++;
    plain->ordinal = ordinal;
    *out = plain;
    return SB_OK;
}

static void plain_close(void *device) {
    ((struct plain *)device)->closed++;
}

sb_status plain_alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err) {
    void *ptr = test_aligned_alloc(64, bytes);
    if (!ptr)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "the heap is full");
    memset(ptr, 0x77, bytes);
    ((struct plain *)device)->live++;
    *out = ptr;
    return SB_OK;
}

void plain_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    ((struct plain *)device)->live--;
    test_aligned_free(ptr);
}

static sb_status plain_zero(void *device, void *dst, size_t bytes, sb_stream stream,
                            sb_error *err) {
    memset(dst, 0, bytes);
    return SB_OK;
}

static sb_status plain_copy(void *device, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err) {
    ((struct plain *)device)->self_copies += dst == src;
    memmove(dst, src, bytes);
    return SB_OK;
}

sb_backend plain_backend(struct plain *plain) {
    sb_backend table = {.struct_size = sizeof table,
                        .abi_version = SB_BACKEND_ABI_VERSION,
                        .name = "plain",
                        .user = plain,
                        .open = plain_open,
                        .close = plain_close,
                        .alloc = plain_alloc,
                        .free = plain_free,
                        .zero = plain_zero,
                        .upload = plain_copy,
                        .download = plain_copy,
                        .copy = plain_copy};
    return table;
}

sb_status create_with_backend(const sb_backend *table, const char *device, sb_context **out,
                              sb_error *err) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = device;
    options.backend = table;
    return sb_context_create(&options, out, err);
}
