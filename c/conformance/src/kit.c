#include "kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The header before each block of sb__kit_memory. */
struct sb__kit_block {
    _Alignas(max_align_t) struct sb__kit_block *next;
};

/* --- outcomes ---------------------------------------------------------------------- */

void sb__kit_fail(struct sb__kit *kit, const char *format, ...) {
    va_list args;
    if (!sb__kit_goes(kit))
        return;
    kit->outcome = SB_CONFORMANCE_FAILED;
    va_start(args, format);
    (void)vsnprintf(kit->detail, sizeof kit->detail, format, args);
    va_end(args);
}

void sb__kit_skip(struct sb__kit *kit, const char *reason) {
    if (!sb__kit_goes(kit))
        return;
    kit->outcome = SB_CONFORMANCE_SKIPPED;
    (void)snprintf(kit->detail, sizeof kit->detail, "%s", reason);
}

void sb__kit_lose(struct sb__kit *kit) {
    if (!sb__kit_goes(kit))
        return;
    kit->is_lost = true;
    (void)snprintf(kit->detail, sizeof kit->detail, "%s",
                   "the device was lost, so the rest was not tested");
}

void sb__kit_join(struct sb__kit *kit, struct sb__kit *copy) {
    struct sb__kit_block **end = &kit->kept;
    if (sb__kit_goes(kit) && !sb__kit_goes(copy)) {
        kit->outcome = copy->outcome;
        kit->is_lost = copy->is_lost;
        memcpy(kit->detail, copy->detail, sizeof kit->detail);
    }
    while (*end)
        end = &(*end)->next;
    *end = copy->kept;
}

void *sb__kit_memory(struct sb__kit *kit, size_t bytes) {
    struct sb__kit_block *block = malloc(sizeof *block + bytes);
    if (block)
        return block + 1;
    sb__kit_skip(kit, "the host is out of memory");
    return NULL;
}

void sb__kit_memory_free(struct sb__kit *kit, void *memory) {
    struct sb__kit_block *block = memory;
    if (!memory)
        return;
    block--;
    if (sb__kit_goes(kit)) {
        free(block);
        return;
    }
    block->next = kit->kept;
    kit->kept = block;
}

void sb__kit_memory_end(struct sb__kit *kit) {
    while (kit->kept) {
        struct sb__kit_block *block = kit->kept;
        kit->kept = block->next;
        free(block);
    }
}

uint64_t sb__kit_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void sb__kit_fill(void *bytes, size_t count, uint64_t seed) {
    unsigned char *at = bytes;
    for (size_t i = 0; bytes && i < count; i++)
        at[i] = (unsigned char)(sb__kit_random(&seed) >> 40);
}

/* --- slots ------------------------------------------------------------------------- */

void sb__kit_expect(struct sb__kit *kit, const char *slot, sb_status expected, sb_status found,
                    const sb_error *err) {
    const bool is_filled =
        found != SB_OK && memchr(err->message, 0, sizeof err->message) && err->message[0];
    const char *message = is_filled ? err->message : "without a message";
    if (kit->may_be_lost && expected == SB_OK && found == SB_ERR_DEVICE_LOST) {
        sb__kit_expect(kit, slot, found, found, err);
        sb__kit_lose(kit);
    } else if (found != expected)
        sb__kit_fail(kit, "%s returned %s, not %s%s%.200s", slot, sb_status_name(found),
                     sb_status_name(expected), found != SB_OK ? ": " : "",
                     found != SB_OK ? message : "");
    else if (found != SB_OK && (err->code != found || !is_filled))
        sb__kit_fail(kit, "%s returned %s and did not fill its error with sb_error_fill", slot,
                     sb_status_name(found));
}

sb_context *sb__kit_context(struct sb__kit *kit, const sb_backend *table, const char *name) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    char device[64];
    (void)snprintf(device, sizeof device, "%s:%d", name, (int)kit->options.ordinal);
    options.flags = SB_CONTEXT_NO_HOST_CACHE; /* a cache would keep freed memory live */
    options.backend = table;
    options.device = device;
    SB__KIT_TRY(kit, sb_context_create, &options, &context);
    return context;
}

void sb__kit_open(struct sb__kit *kit, void **out, sb_stream *out_stream) {
    sb_error err = {.code = SB_OK};
    *out = NULL;
    *out_stream = NULL;
    if (!sb__kit_goes(kit))
        return;
    void *device = NULL;
    sb_status st = kit->table.open(kit->table.user, kit->options.ordinal, &device, &err);
    sb__kit_expect(kit, "open", SB_OK, st, &err);
    if (st != SB_OK)
        return;
    *out = device;
    if (kit->table.own_stream)
        *out_stream = kit->table.own_stream(device);
}

void sb__kit_close(struct sb__kit *kit, void *device) {
    if (device)
        kit->table.close(device);
}

void *sb__kit_alloc(struct sb__kit *kit, size_t bytes) {
    void *ptr = NULL;
    SB__KIT_CALL(kit, alloc, bytes, kit->stream, &ptr);
    if (sb__kit_goes(kit) && !ptr)
        sb__kit_fail(kit, "alloc returned SB_OK and a NULL pointer");
    else if ((uintptr_t)ptr % 64)
        sb__kit_fail(kit, "alloc returned %p for %zu bytes, which is not aligned to 64 bytes", ptr,
                     bytes);
    return ptr;
}

void sb__kit_free(struct sb__kit *kit, void *ptr, size_t bytes) {
    if (ptr)
        kit->table.free(kit->device, ptr, bytes, kit->stream);
}

void sb__kit_upload(struct sb__kit *kit, void *dst, const void *src, size_t bytes) {
    SB__KIT_CALL(kit, upload, dst, src, bytes, kit->stream);
}

void sb__kit_download(struct sb__kit *kit, void *dst, const void *src, size_t bytes) {
    SB__KIT_CALL(kit, download, dst, src, bytes, kit->stream);
}

void sb__kit_wait(struct sb__kit *kit, sb_stream stream) {
    if (kit->table.stream_synchronize)
        SB__KIT_CALL(kit, stream_synchronize, stream);
}

void sb__kit_compare(struct sb__kit *kit, const void *ptr, const void *expected, size_t bytes,
                     const char *what) {
    unsigned char *found = sb__kit_memory(kit, bytes);
    const unsigned char *wanted = expected;
    if (found)
        memset(found, 0x77, bytes);
    sb__kit_download(kit, found, ptr, bytes);
    sb__kit_wait(kit, kit->stream);
    for (size_t i = 0; sb__kit_goes(kit) && i < bytes; i++)
        if (found[i] != wanted[i])
            sb__kit_fail(kit, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, bytes,
                         (unsigned)found[i], (unsigned)wanted[i]);
    sb__kit_memory_free(kit, found);
}

/* --- what the backend and the caller have ------------------------------------------- */

bool sb__kit_has_streams(struct sb__kit *kit) {
    if (!kit->table.own_stream)
        sb__kit_skip(kit, "the slots of streams are NULL");
    return sb__kit_goes(kit);
}

bool sb__kit_computes(struct sb__kit *kit) {
    if (!kit->table.axpy || !sb__kit_goes(kit))
        return false;
    sb_error err = {.code = SB_OK};
    sb_status st = kit->table.prepare_arithmetic(kit->device, &err);
    sb__kit_expect(kit, "prepare_arithmetic", st == SB_ERR_UNSUPPORTED ? st : SB_OK, st, &err);
    return st == SB_OK;
}

bool sb__kit_has_arithmetic(struct sb__kit *kit) {
    if (!sb__kit_computes(kit))
        sb__kit_skip(kit, kit->table.axpy ? "prepare_arithmetic returned UNSUPPORTED"
                                          : "the slots of arithmetic are NULL");
    return sb__kit_goes(kit);
}

bool sb__kit_has_default(struct sb__kit *kit) {
    if (kit->table.flags & SB_BACKEND_NO_DEFAULT_STREAM)
        sb__kit_skip(kit, "the device has no default stream");
    return sb__kit_has_streams(kit);
}

sb_dtype sb__kit_last_dtype(struct sb__kit *kit) {
    sb_status st = SB_OK;
    if (!sb__kit_has_arithmetic(kit))
        return SB_DTYPE_F64;
    if (kit->lacks & SB_DEVICE_LACKS_F64)
        return SB_DTYPE_F32;
    void *x = sb__kit_alloc(kit, sizeof(double));
    SB__KIT_CALL(kit, zero, x, sizeof(double), kit->stream);
    if (sb__kit_goes(kit)) {
        sb_error err = {.code = SB_OK};
        st = kit->table.scale(kit->device, SB_DTYPE_F64, 1, 1, x, kit->stream, &err);
        sb__kit_expect(kit, "scale", st == SB_ERR_UNSUPPORTED ? st : SB_OK, st, &err);
    }
    sb__kit_free(kit, x, sizeof(double));
    return st == SB_OK ? SB_DTYPE_F64 : SB_DTYPE_F32;
}

sb_stream sb__kit_stream_create_on(struct sb__kit *kit, void *device, sb_stream own) {
    sb_stream stream = NULL;
    sb_error err = {.code = SB_OK};
    if (!sb__kit_goes(kit))
        return NULL;
    sb_status st = kit->options.stream_create(kit->options.user, device, &stream, &err);
    sb__kit_expect(kit, "stream_create", SB_OK, st, &err);
    if (st == SB_OK && (!stream || stream == own)) {
        sb__kit_fail(kit, "stream_create of the options returned %s",
                     stream ? "own_stream" : "NULL, the default stream");
        return NULL;
    }
    return stream;
}

sb_stream sb__kit_stream_create(struct sb__kit *kit) {
    if (sb__kit_has_streams(kit) && !kit->options.stream_create)
        sb__kit_skip(kit, "the options have no function that creates a stream");
    return sb__kit_stream_create_on(kit, kit->device, kit->stream);
}

void sb__kit_stream_destroy(struct sb__kit *kit, sb_stream stream) {
    if (stream)
        kit->options.stream_destroy(kit->options.user, kit->device, stream);
}

/* --- threads ------------------------------------------------------------------------- */

void sb__kit_on_two_threads(struct sb__kit *kit, void (*task)(void *arg), void *first,
                            void *second) {
    if (sb__kit_goes(kit) && !sb__kit_run_beside(task, first, second))
        sb__kit_skip(kit, "no thread can be created");
}

void sb__kit_on_thread(struct sb__kit *kit, void (*task)(void *arg), void *arg) {
    sb__kit_on_two_threads(kit, task, NULL, arg);
}
