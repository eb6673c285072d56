/* Memory that work on our own stream may still use, since a wait for it has
   failed or could not be tried. The next wait that succeeds gives it back. */
#include "device.h"

#include <stdlib.h>

static void put(struct sb__cuda_device *device, struct sb__cuda_kept *entry) {
    sb__mutex_lock(&device->kept.lock);
    entry->next = atomic_load(&device->kept.first);
    atomic_store(&device->kept.first, entry);
    sb__mutex_unlock(&device->kept.lock);
}

static struct sb__cuda_kept *take_all(struct sb__cuda_device *device) {
    if (!atomic_load(&device->kept.first))
        return NULL;
    sb__mutex_lock(&device->kept.lock);
    struct sb__cuda_kept *first = atomic_exchange(&device->kept.first, NULL);
    sb__mutex_unlock(&device->kept.lock);
    return first;
}

void sb__cuda_keep(struct sb__cuda_device *device, struct sb__cuda_kept *entry, sb_stream stream) {
    if (sb__cuda_stream(stream) == device->stream)
        put(device, entry);
}

void sb__cuda_keep_block(struct sb__cuda_device *device, sb__cu_ptr ptr, sb_stream stream) {
    struct sb__cuda_kept *entry =
        sb__cuda_stream(stream) == device->stream ? calloc(1, sizeof *entry) : NULL;
    if (!entry)
        return;
    entry->ptr = ptr;
    put(device, entry);
}

/* Only what was kept before the wait began is over after it. */
sb__cu_result sb__cuda_wait(struct sb__cuda_device *device, sb__cu_stream stream) {
    struct sb__cuda_kept *next = stream == device->stream ? take_all(device) : NULL;
    sb__cu_result result = device->cu->cuStreamSynchronize(stream);
    while (next) {
        struct sb__cuda_kept *entry = next;
        next = entry->next;
        if (!sb__cuda_is_over(result)) {
            put(device, entry);
            continue;
        }
        if (entry->ptr)
            SB__CUDA_GIVE_BACK(device->cu->cuMemFree_v2(entry->ptr));
        free(entry);
    }
    return result;
}
