#include "plain.h"

static void count(_Atomic int *counter, int by) {
    (void)atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static sb_status plain_open SLOT_OPEN {
    struct plain *plain = user;
    count(&plain->opened, 1);
    atomic_store_explicit(&plain->ordinal, ordinal, memory_order_relaxed);
    *out = plain;
    return SB_OK;
}

static void plain_close(void *device) {
    count(&((struct plain *)device)->closed, 1);
}

static sb_status plain_alloc SLOT_ALLOC {
    const uint64_t limit = (uint64_t)1 << 40; /* sanitizers abort above this size */
    void *ptr = bytes < limit ? test_aligned_alloc(64, bytes) : NULL;
    if (!ptr)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "the heap is full");
    memset(ptr, 0x77, bytes);
    count(&((struct plain *)device)->live, 1);
    *out = ptr;
    return SB_OK;
}

void plain_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    count(&((struct plain *)device)->live, -1);
    test_aligned_free(ptr);
}

static sb_status plain_zero SLOT_ZERO {
    memset(dst, 0, bytes);
    return SB_OK;
}

static sb_status plain_copy SLOT_MOVE {
    count(&((struct plain *)device)->self_copies, dst == src);
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
    return sb_context_create(&CONTEXT_OPTIONS(.device = device, .backend = table), out, err);
}

sb_status try_device(const sb_backend *table, const char *device, sb_error *err) {
    sb_context *context = NULL;
    const sb_status status = create_with_backend(table, device, &context, err);
    assert_int_equal(context != NULL, status == SB_OK);
    if (context)
        assert_string_equal(sb_context_device(context), device);
    sb_context_release(context);
    return status;
}
