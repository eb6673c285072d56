/* The list of open devices of the process. Each context keeps memory in a separate pool, and trims
   it when another context of the device is out of memory. */
#include "device.h"

/* Held while pools are trimmed, so that none is closed meanwhile. No waits under it: work of
   another context may wait for a thread that needs the lock. Never locked in a forked child, which
   cannot open the driver. */
static sb__mutex lock = SB__MUTEX_INIT;
static struct sb__cuda_device *first;

void sb__cuda_siblings_join(struct sb__cuda_device *device) {
    sb__mutex_lock(&lock);
    device->next = first;
    first = device;
    sb__mutex_unlock(&lock);
}

void sb__cuda_siblings_part(struct sb__cuda_device *device) {
    sb__mutex_lock(&lock);
    struct sb__cuda_device **link = &first;
    while (*link != device)
        link = &(*link)->next;
    *link = device->next;
    sb__mutex_unlock(&lock);
}

/* Freed memory counts as used until a query of the stream. The query would invalidate a capture, so
   only streams that no caller has are queried. */
static void trim(const struct sb__cuda_device *device) {
    if (!atomic_load(&device->caller_has_stream))
        (void)device->cu->cuStreamQuery(device->stream);
    (void)device->cu->cuMemPoolTrimTo(device->pool, 0);
}

void sb__cuda_siblings_trim(const struct sb__cuda_device *device) {
    sb__mutex_lock(&lock);
    for (const struct sb__cuda_device *other = first; other; other = other->next)
        if (other->context_id == device->context_id)
            trim(other);
    sb__mutex_unlock(&lock);
}

/* Under the lock: afterwards no other context queries the stream. */
void sb__cuda_siblings_expose(struct sb__cuda_device *device) {
    if (atomic_load(&device->caller_has_stream))
        return;
    sb__mutex_lock(&lock);
    atomic_store(&device->caller_has_stream, true);
    sb__mutex_unlock(&lock);
}
