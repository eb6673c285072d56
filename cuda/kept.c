/* Kept memory: memory that the driver failed to free, or that may still be in use, because a wait
   failed or was impossible. The next successful wait for the library's stream frees kept memory. */
#include "device.h"

#include "context/context.h"
#include "table.h"

#include <stdlib.h>

static void put(struct sb__cuda_device *device, struct sb__cuda_kept *entry) {
    sb__mutex_lock(&device->kept.lock);
    entry->next = atomic_load(&device->kept.first);
    atomic_store(&device->kept.first, entry);
    sb__mutex_unlock(&device->kept.lock);
}

static struct sb__cuda_kept *take_all(struct sb__cuda_device *device) {
    if (!sb__cuda_keeps_any(device))
        return NULL;
    sb__mutex_lock(&device->kept.lock);
    struct sb__cuda_kept *first = atomic_exchange(&device->kept.first, NULL);
    sb__mutex_unlock(&device->kept.lock);
    return first;
}

static void drop(struct sb__cuda_device *device, struct sb__cuda_kept *entry) {
    sb__counter_subtract(&device->kept.bytes[entry->kind], entry->bytes);
    free(entry);
}

bool sb__cuda_keeps_any(const struct sb__cuda_device *device) {
    return atomic_load(&device->kept.first) != NULL;
}

void sb__cuda_kept_bytes(const void *opened, uint64_t *out_device, uint64_t *out_pinned) {
    const struct sb__cuda_device *device = opened;
    *out_device = sb__counter_read(&device->kept.bytes[SB__CUDA_KEPT_BLOCK]);
    *out_pinned = sb__counter_read(&device->kept.bytes[SB__CUDA_KEPT_PINNED]);
}

void sb__cuda_keep_parts(struct sb__cuda_device *device, struct sb__cuda_kept *entry,
                         sb_stream stream) {
    if (sb__cuda_stream(stream) != device->stream) {
        sb__quarantine_lose(entry->bytes);
        return;
    }
    (void)sb__counter_add(&device->kept.bytes[entry->kind], entry->bytes);
    put(device, entry);
}

void sb__cuda_keep(struct sb__cuda_device *device, enum sb__cuda_kept_kind kind, void *ptr,
                   size_t bytes, sb_stream stream) {
    struct sb__cuda_kept *entry =
        sb__cuda_stream(stream) == device->stream ? calloc(1, sizeof *entry) : NULL;
    if (!entry) {
        sb__quarantine_lose(bytes);
        return;
    }
    *entry = (struct sb__cuda_kept){.kind = kind, .ptr = ptr, .bytes = bytes};
    sb__cuda_keep_parts(device, entry, stream);
}

/* --- freeing, called between enter and leave ------------------------------------------------- */

bool sb__cuda_try_free(const struct sb__cuda_device *device, enum sb__cuda_kept_kind kind,
                       void *ptr) {
    sb__cu_result result = SB__CUDA_SUCCESS;
    for (int tries = 0; tries < SB__CUDA_TRIES; tries++) {
        result = kind == SB__CUDA_KEPT_BLOCK ? device->cu->cuMemFree_v2(sb__cuda_address(ptr))
                                             : device->cu->cuMemFreeHost(ptr);
        if (sb__cuda_is_over(result))
            return true;
    }
    return false;
}

static void release(struct sb__cuda_device *device, struct sb__cuda_kept *entry) {
    if (entry->kind == SB__CUDA_KEPT_PARTS || sb__cuda_try_free(device, entry->kind, entry->ptr))
        drop(device, entry);
    else
        put(device, entry);
}

/* Frees only memory that was kept before the wait began. */
sb__cu_result sb__cuda_wait(struct sb__cuda_device *device, sb__cu_stream stream) {
    struct sb__cuda_kept *next = stream == device->stream ? take_all(device) : NULL;
    sb__cu_result result = device->cu->cuStreamSynchronize(stream);
    while (next) {
        struct sb__cuda_kept *entry = next;
        next = entry->next;
        if (sb__cuda_is_over(result))
            release(device, entry);
        else
            put(device, entry);
    }
    return result;
}

void sb__cuda_free_kept(struct sb__cuda_device *device) {
    struct sb__cuda_kept *next = take_all(device);
    while (next) {
        struct sb__cuda_kept *entry = next;
        next = entry->next;
        if (entry->kind == SB__CUDA_KEPT_BLOCK &&
            device->cu->cuMemFreeAsync(sb__cuda_address(entry->ptr), device->stream) ==
                SB__CUDA_SUCCESS)
            drop(device, entry);
        else
            put(device, entry);
    }
}

/* Does not free entries of the kind SB__CUDA_KEPT_PARTS, to which the device may still write. */
void sb__cuda_end_kept(struct sb__cuda_device *device, bool is_gone) {
    struct sb__cuda_kept *next = take_all(device);
    while (next) {
        struct sb__cuda_kept *entry = next;
        next = entry->next;
        if (!is_gone)
            sb__quarantine_lose(entry->bytes);
        if (entry->kind != SB__CUDA_KEPT_PARTS)
            free(entry);
    }
}
