/* The list of open devices of the process. Each context of the library has a separate pool. If the
   device is out of memory, a context also trims the pools of the other contexts. */
#include "device.h"

/* Held while pools are trimmed, so that no pool is destroyed meanwhile. The holder must not wait
   for a stream, whose work may wait for a thread that needs the lock. A forked child never takes
   the lock, since it cannot open the driver. */
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

/* Queries the stream first, because freed memory counts as used until a query or a wait. Skips the
   query if a caller has the stream and may capture it: a query would invalidate the capture. */
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

/* Takes the lock, so that no other context queries the stream after this function returns. */
void sb__cuda_siblings_expose(struct sb__cuda_device *device) {
    if (atomic_load(&device->caller_has_stream))
        return;
    sb__mutex_lock(&lock);
    atomic_store(&device->caller_has_stream, true);
    sb__mutex_unlock(&lock);
}
