/* Page-locked memory of the host. The driver takes long for each piece, and to
   free one waits for the device; so small buffers are carved out of slabs, by
   powers of two, and slabs are kept until somebody trims. */
#include "device.h"

#include <stdlib.h>

#define SMALLEST  ((size_t)64)
#define LARGEST   (SMALLEST << (SB__CUDA_SLAB_CLASSES - 1))
#define SLAB      ((size_t)64 << 10) /* the first of a class, or four buffers; each next is twice */
#define DOUBLINGS 8                  /* as large, so that few are to be searched */

struct sb__cuda_slab {
    struct sb__cuda_slab *next;
    char *start;
    size_t bytes, carved; /* from the start on */
    uint32_t used, spare; /* buffers; those given back */
    uint32_t spares[];    /* by number: what was given back is not touched */
};

/* --- of the driver ----------------------------------------------------------------------- */

/* Portable: other contexts of the process may use it as page-locked, too. */
static sb__cu_result take(const struct sb__cuda_device *device, size_t bytes, void **out) {
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return result;
    return sb__cuda_leave(device, &visit,
                          device->cu->cuMemHostAlloc(out, bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
}

static void give(const struct sb__cuda_device *device, void *ptr) {
    struct sb__cuda_visit visit;
    if (sb__cuda_enter_to_free(device, &visit) != SB__CUDA_SUCCESS)
        return;
    SB__CUDA_GIVE_BACK(device->cu->cuMemFreeHost(ptr));
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
}

/* --- slabs; the lock is held ----------------------------------------------------------------- */

static int class_of(size_t bytes) {
    int class = 0;
    while (SMALLEST << class < bytes)
        class ++;
    return class;
}

static void *carve(struct sb__cuda_slab *slab, size_t bytes) {
    char *buffer;
    if (slab->spare) {
        buffer = slab->start + slab->spares[--slab->spare] * bytes;
    } else if (slab->bytes - slab->carved >= bytes) {
        buffer = slab->start + slab->carved;
        slab->carved += bytes;
    } else {
        return NULL;
    }
    slab->used++;
    return buffer;
}

/* NULL: the driver has none, as `result` says, or there is no memory to remember it in. */
static struct sb__cuda_slab *add_slab(struct sb__cuda_device *device, int class,
                                      sb__cu_result *result) {
    struct sb__cuda_slab **first = &device->slabs.first[class];
    const size_t four = SMALLEST << class << 2;
    size_t bytes = four > SLAB ? four : SLAB;
    void *start = NULL;
    for (const struct sb__cuda_slab *s = *first; s && bytes < SLAB << DOUBLINGS; s = s->next)
        bytes *= 2;
    struct sb__cuda_slab *slab =
        calloc(1, sizeof *slab + (bytes / (SMALLEST << class)) * sizeof *slab->spares);
    *result = SB__CUDA_ERROR_OUT_OF_MEMORY;
    if (!slab)
        return NULL;
    slab->bytes = bytes;
    *result = take(device, slab->bytes, &start);
    if (*result != SB__CUDA_SUCCESS) {
        free(slab);
        return NULL;
    }
    slab->start = start;
    slab->next = *first;
    *first = slab;
    return slab;
}

static sb__cu_result take_small(struct sb__cuda_device *device, size_t bytes, void **out) {
    int class = class_of(bytes);
    sb__cu_result result = SB__CUDA_SUCCESS;
    *out = NULL;
    for (struct sb__cuda_slab *s = device->slabs.first[class]; s && !*out; s = s->next)
        *out = carve(s, SMALLEST << class);
    if (*out)
        return result;
    struct sb__cuda_slab *slab = add_slab(device, class, &result);
    if (slab)
        *out = carve(slab, SMALLEST << class);
    return result;
}

static void give_small(struct sb__cuda_device *device, void *ptr, size_t bytes) {
    const int class = class_of(bytes);
    struct sb__cuda_slab *slab = device->slabs.first[class];
    while ((uintptr_t)ptr - (uintptr_t)slab->start >= slab->bytes)
        slab = slab->next;
    size_t offset = (size_t)((char *)ptr - slab->start);
    slab->spares[slab->spare++] = (uint32_t)(offset / (SMALLEST << class));
    slab->used--;
}

/* --- slots --------------------------------------------------------------------------------- */

sb_status sb__cuda_alloc_pinned(void *opened, size_t bytes, void **out, sb_error *err) {
    struct sb__cuda_device *device = opened;
    sb__cu_result result;
    void *ptr = NULL;
    if (bytes > LARGEST) {
        result = take(device, bytes, &ptr);
    } else {
        sb__mutex_lock(&device->slabs.lock);
        result = take_small(device, bytes, &ptr);
        sb__mutex_unlock(&device->slabs.lock);
    }
    if (result == SB__CUDA_SUCCESS)
        *out = ptr;
    return sb__cuda_status(device, result, "cuMemHostAlloc", err);
}

void sb__cuda_free_pinned(void *opened, void *ptr, size_t bytes) {
    struct sb__cuda_device *device = opened;
    if (bytes > LARGEST) {
        give(device, ptr);
        return;
    }
    sb__mutex_lock(&device->slabs.lock);
    give_small(device, ptr, bytes);
    sb__mutex_unlock(&device->slabs.lock);
}

void sb__cuda_trim_pinned(struct sb__cuda_device *device) {
    struct sb__cuda_slab *empty = NULL;
    sb__mutex_lock(&device->slabs.lock);
    for (int class = 0; class < SB__CUDA_SLAB_CLASSES; class ++)
        for (struct sb__cuda_slab **link = &device->slabs.first[class]; *link;) {
            struct sb__cuda_slab *slab = *link;
            if (slab->used) {
                link = &slab->next;
                continue;
            }
            *link = slab->next;
            slab->next = empty;
            empty = slab;
        }
    sb__mutex_unlock(&device->slabs.lock);
    while (empty) {
        struct sb__cuda_slab *slab = empty;
        empty = slab->next;
        give(device, slab->start);
        free(slab);
    }
}
