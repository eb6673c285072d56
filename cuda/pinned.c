/* Page-locked host memory. An allocation by the driver takes long, and a free waits for the device.
   Small buffers are therefore parts of slabs, which remain until a trim. Each slab has one buffer
   size. */
#include "device.h"

#include <stdlib.h>

#define SMALLEST ((size_t)64)
#define LARGEST  (SMALLEST << (SB__CUDA_SLAB_CLASSES - 1))
/* The size of the first slab of a class, or of four buffers if that is larger. Each further
   slab of the class is twice as large, up to DOUBLINGS times, so that there are few slabs. */
#define SLAB      ((size_t)64 << 10)
#define DOUBLINGS 8

struct sb__cuda_slab {
    struct sb__cuda_slab *next;
    char *start;
    size_t bytes, carved; /* bytes of the slab, and bytes before the first buffer that was never
                             used */
    uint32_t used, spare; /* numbers of buffers in use, and of released buffers */
    uint32_t spares[];    /* indices of the released buffers */
};

/* --- the driver's memory -----------------------------------------------------------------------
 */

/* Allocates portable memory, which is page-locked for every context of the process. */
static sb_status take(const struct sb__cuda_device *device, size_t bytes, void **out,
                      sb_error *err) {
    struct sb__cuda_visit visit;
    void *ptr = NULL;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(
            device, &visit, device->cu->cuMemHostAlloc(&ptr, bytes, SB__CU_MEMHOSTALLOC_PORTABLE),
            "cuMemHostAlloc");
    if (result == SB__CUDA_SUCCESS)
        *out = ptr;
    return sb__cuda_status(device, result, visit.call, err);
}

static void give(struct sb__cuda_device *device, void *ptr, size_t bytes) {
    struct sb__cuda_visit visit;
    const sb__cu_result entered = sb__cuda_enter_to_free(device, &visit);
    bool is_gone = sb__cuda_done(entered) == SB__CUDA_SUCCESS;
    if (entered == SB__CUDA_SUCCESS) {
        is_gone = sb__cuda_try_free(device, SB__CUDA_KEPT_PINNED, ptr);
        (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    }
    if (!is_gone)
        sb__cuda_keep(device, SB__CUDA_KEPT_PINNED, ptr, bytes, (sb_stream)device->stream);
}

/* --- slabs, used under the lock -------------------------------------------------------------- */

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

static sb_status add_slab(struct sb__cuda_device *device, int class, struct sb__cuda_slab **out,
                          sb_error *err) {
    struct sb__cuda_slab **first = &device->slabs.first[class];
    const size_t four = SMALLEST << class << 2;
    size_t bytes = four > SLAB ? four : SLAB;
    void *start = NULL;
    for (const struct sb__cuda_slab *s = *first; s && bytes < SLAB << DOUBLINGS; s = s->next)
        bytes *= 2;
    struct sb__cuda_slab *slab =
        calloc(1, sizeof *slab + (bytes / (SMALLEST << class)) * sizeof *slab->spares);
    if (!slab)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a slab's table");
    slab->bytes = bytes;
    sb_status st = take(device, slab->bytes, &start, err);
    if (st != SB_OK) {
        free(slab);
        return st;
    }
    slab->start = start;
    slab->next = *first;
    *out = *first = slab;
    return SB_OK;
}

static sb_status take_small(struct sb__cuda_device *device, size_t bytes, void **out,
                            sb_error *err) {
    int class = class_of(bytes);
    struct sb__cuda_slab *slab = NULL;
    void *ptr = NULL;
    for (struct sb__cuda_slab *s = device->slabs.first[class]; s && !ptr; s = s->next)
        ptr = carve(s, SMALLEST << class);
    sb_status st = ptr ? SB_OK : add_slab(device, class, &slab, err);
    if (slab)
        ptr = carve(slab, SMALLEST << class);
    if (st == SB_OK)
        *out = ptr;
    return st;
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
    if (bytes > LARGEST)
        return take(device, bytes, out, err);
    sb__mutex_lock(&device->slabs.lock);
    sb_status st = take_small(device, bytes, out, err);
    sb__mutex_unlock(&device->slabs.lock);
    return st;
}

void sb__cuda_free_pinned(void *opened, void *ptr, size_t bytes) {
    struct sb__cuda_device *device = opened;
    if (bytes > LARGEST) {
        give(device, ptr, bytes);
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
        give(device, slab->start, slab->bytes);
        free(slab);
    }
}
