/* A backend in a shared library, for the tests of Rust and Python. Every device number exists. All
   devices allocate from one array, and never reuse freed memory. */
#include <syncblob/backend.h>

#include <string.h>

static _Alignas(64) char memory[1 << 16];
static size_t used;

static sb_status open_device(void *user, int32_t ordinal, void **out, sb_error *err) {
    (void)ordinal, (void)err;
    *out = user;
    return SB_OK;
}

static void close_device(void *device) {
    (void)device;
}

static sb_status alloc(void *device, size_t bytes, sb_stream stream, void **out, sb_error *err) {
    (void)device, (void)stream, (void)err;
    if (bytes > sizeof memory - used)
        return SB_ERR_OUT_OF_MEMORY;
    *out = memory + used;
    used += (bytes + 63) / 64 * 64;
    return SB_OK;
}

static void release(void *device, void *ptr, size_t bytes, sb_stream stream) {
    (void)device, (void)ptr, (void)bytes, (void)stream;
}

static sb_status zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    (void)device, (void)stream, (void)err;
    memset(dst, 0, bytes);
    return SB_OK;
}

static sb_status copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                      sb_error *err) {
    (void)device, (void)stream, (void)err;
    memcpy(dst, src, bytes);
    return SB_OK;
}

SB_API const sb_backend *syncblob_backend(void);

const sb_backend *syncblob_backend(void) {
    static const sb_backend backend = {
        .struct_size = sizeof(sb_backend),
        .abi_version = SB_BACKEND_ABI_VERSION,
        .name = "loaded",
        .open = open_device,
        .close = close_device,
        .alloc = alloc,
        .free = release,
        .zero = zero,
        .upload = copy,
        .download = copy,
        .copy = copy,
    };
    return &backend;
}
