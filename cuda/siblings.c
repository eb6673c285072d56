/* The devices that this process has open. Each context of a device keeps memory in a pool of its
   own, and frees it where another one runs out. */
#include "device.h"

/* Held while pools are trimmed, so that none is closed meanwhile. Nothing is waited for under it:
   work of another context may wait for a thread that wants the lock. A forked child does not come
   here: the driver is not opened there. */
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

/* What was freed counts as used until the driver has been asked whether the stream is past it. The
   question would end a capture, which cannot begin where no caller has the stream. */
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

/* Under the lock: after it no other context looks at the stream. */
void sb__cuda_siblings_expose(struct sb__cuda_device *device) {
    if (atomic_load(&device->caller_has_stream))
        return;
    sb__mutex_lock(&lock);
    atomic_store(&device->caller_has_stream, true);
    sb__mutex_unlock(&lock);
}
