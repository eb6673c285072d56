/* Memory of devices at addresses that nobody can access, with its bytes
   elsewhere, and page-locked memory. An address is never given out twice, so
   that every use after a free is found. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULE  ((size_t)512)
#define SPACE    ((size_t)1 << 36) /* addresses of the process */
#define SMALLEST ((size_t)4096)    /* page */

static char *space;
static size_t used;

/* --- addresses ------------------------------------------------------------------------------- */

static bool reserve_space(void) {
    if (space)
        return true;
    void *base = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    space = base;
    return true;
}

bool is_device_range(const void *ptr) {
    return space && (uintptr_t)ptr - (uintptr_t)space < SPACE;
}

static bool grow(void **array, size_t *capacity, size_t count, size_t element) {
    if (count < *capacity)
        return true;
    size_t wanted = *capacity * 2 + 16;
    void *grown = realloc(*array, wanted * element);
    if (!grown)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static struct block *block_at(CUdeviceptr ptr) {
    for (size_t i = 0; i < fake.block_count; i++)
        if (ptr - fake.blocks[i].address < fake.blocks[i].bytes)
            return &fake.blocks[i];
    return NULL;
}

struct block *find_block(CUdeviceptr ptr, size_t bytes) {
    struct block *block = block_at(ptr);
    return block && bytes <= block->bytes - (size_t)(ptr - block->address) ? block : NULL;
}

/* --- what is mapped ---------------------------------------------------------------------------

   A pool keeps freed blocks as chunks. The smallest that is large enough serves an allocation;
   chunks are not joined, so that a pool may hold enough and yet not serve. */

static bool map_bytes(CUmemoryPool pool, size_t bytes) {
    if (fake.live.mapped_bytes + bytes > (size_t)fake.settings[FAKE_MEMORY])
        return false;
    fake.live.mapped_bytes += bytes;
    if (pool)
        pool->reserved += bytes;
    return true;
}

static void unmap_bytes(CUmemoryPool pool, size_t bytes) {
    fake.live.mapped_bytes -= bytes;
    if (pool)
        pool->reserved -= bytes;
}

bool take_bytes(size_t bytes) {
    return map_bytes(NULL, bytes);
}

void give_bytes(size_t bytes) {
    unmap_bytes(NULL, bytes);
}

static bool take_chunk(CUmemoryPool pool, size_t bytes) {
    int best = -1;
    for (int i = 0; i < pool->chunk_count; i++)
        if (pool->chunks[i] >= bytes && (best < 0 || pool->chunks[i] < pool->chunks[best]))
            best = i;
    if (best < 0)
        return false;
    unmap_bytes(pool, pool->chunks[best] - bytes); /* what is over */
    pool->chunks[best] = pool->chunks[--pool->chunk_count];
    return true;
}

static void keep_chunk(CUmemoryPool pool, size_t bytes) {
    if (pool && !pool->destroyed && pool->chunk_count < MAX_CHUNKS)
        pool->chunks[pool->chunk_count++] = bytes;
    else
        unmap_bytes(pool, bytes);
}

static void trim(CUmemoryPool pool, uint64_t keep) {
    while (pool->reserved > keep && pool->chunk_count) {
        unmap_bytes(pool, pool->chunks[--pool->chunk_count]);
        fake.live.unmapped++;
    }
}

void trim_pools(int device) {
    for (CUmemoryPool pool = fake.pools; pool; pool = pool->next)
        if (pool->device == device)
            trim(pool, pool->threshold);
}

static CUresult add_block(const struct block *block, CUdeviceptr *out) {
    size_t span = (block->bytes + 2 * GRANULE - 1) / GRANULE * GRANULE;
    if (!reserve_space() || span > SPACE - used ||
        !grow((void **)&fake.blocks, &fake.block_capacity, fake.block_count, sizeof *fake.blocks))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(block->pool && take_chunk(block->pool, block->bytes)) &&
        !map_bytes(block->pool, block->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *backing = malloc(block->bytes);
    if (!backing) {
        unmap_bytes(block->pool, block->bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(backing, RUBBISH, block->bytes);
    struct block *made = &fake.blocks[fake.block_count++];
    *made = *block;
    made->backing = backing;
    made->address = (CUdeviceptr)(uintptr_t)(space + used);
    used += span;
    fake.live.blocks++;
    fake.live.device_bytes += block->bytes;
    if (block->pool)
        block->pool->blocks++;
    *out = made->address;
    return CUDA_SUCCESS;
}

/* A destroyed one with its last block. */
static void drop_pool(CUmemoryPool pool) {
    if (!pool->destroyed || pool->blocks)
        return;
    CUmemoryPool *link = &fake.pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    while (pool->chunk_count)
        unmap_bytes(pool, pool->chunks[--pool->chunk_count]);
    fake_object_free(pool);
}

void drop_block(struct block *block) {
    CUmemoryPool pool = block->pool;
    fake.live.blocks--;
    fake.live.device_bytes -= block->bytes;
    keep_chunk(pool, block->bytes);
    free(block->backing);
    *block = fake.blocks[--fake.block_count];
    if (pool) {
        pool->blocks--;
        drop_pool(pool);
    }
}

void *fake_address(CUdeviceptr ptr, size_t bytes) {
    lock();
    struct block *block = find_block(ptr, bytes);
    char *backing = block && block->ready ? block->backing + (ptr - block->address) : NULL;
    unlock();
    return backing;
}

bool fake_is_memory_of(CUcontext context, CUdeviceptr ptr, size_t bytes) {
    lock();
    const struct block *block = find_block(ptr, bytes);
    const bool found = block && block->device == context->device;
    unlock();
    return found;
}

/* --- the device's ---------------------------------------------------------------------------- */

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *ptr, size_t bytes) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    if (!c.result && bytes == 0)
        c.result = CUDA_ERROR_INVALID_VALUE;
    if (!c.result)
        c.result = add_block(
            &(struct block){
                .bytes = bytes, .device = c.context->device, .context = c.context, .ready = true},
            ptr);
    return end(&c);
}

/* Nobody here touches it on the host. */
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags) {
    (void)flags;
    return cuMemAlloc(ptr, bytes);
}

/* Of pool memory, too, once nothing uses it: cuda.h has it so. Whether it waits is nowhere said,
   so here it does not. */
CUresult CUDAAPI cuMemFree(CUdeviceptr ptr) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    if (!c.result) {
        struct block *block = block_at(ptr);
        if (!block || block->address != ptr || block->freeing) {
            fake_violation("cuMemFree of %p, which is not allocated", (void *)(uintptr_t)ptr);
            c.result = CUDA_ERROR_INVALID_VALUE;
        } else {
            if (is_pending(NULL, ptr, block->bytes) || !block->ready)
                fake_violation("cuMemFree of %p, which is still in use", (void *)(uintptr_t)ptr);
            drop_block(block);
        }
    }
    return end(&c);
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    struct call c;
    static const CUmemPoolProps zero;
    if (begin(&c, __func__, INITIALISED)) {
        if (!fake.settings[FAKE_POOLS])
            c.result = CUDA_ERROR_NOT_SUPPORTED;
        else if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
                 properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                 properties->location.id < 0 ||
                 properties->location.id >= fake.settings[FAKE_DEVICES] ||
                 memcmp(properties->reserved, zero.reserved, sizeof zero.reserved) != 0)
            c.result = CUDA_ERROR_INVALID_VALUE;
    }
    CUmemoryPool made = c.result ? NULL : fake_object(sizeof *made);
    if (made) {
        made->device = properties->location.id;
        made->next = fake.pools;
        fake.pools = made;
        fake.live.pools++;
        *pool = made;
    }
    return end(&c);
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        pool->destroyed = true;
        fake.live.pools--;
        drop_pool(pool);
    }
    return end(&c);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            c.result = CUDA_ERROR_INVALID_VALUE;
        else
            memcpy(&pool->threshold, value, sizeof pool->threshold);
    }
    return end(&c);
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        uint64_t reserved = pool->reserved;
        if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
            c.result = CUDA_ERROR_INVALID_VALUE;
        else
            memcpy(value, &reserved, sizeof reserved);
    }
    return end(&c);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        trim(pool, keep);
    return end(&c);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool,
                                         CUstream stream) {
    struct call c;
    if (begin(&c, __func__, WORK) && (bytes == 0 || pool->destroyed))
        c.result = CUDA_ERROR_INVALID_VALUE;
    if (!c.result)
        c.result =
            add_block(&(struct block){.bytes = bytes, .device = pool->device, .pool = pool}, ptr);
    if (!c.result) {
        c.result = enqueue(&c, stream, &(struct item){.operation = ALLOCATE, .dst = *ptr});
        if (c.result)
            drop_block(block_at(*ptr));
    }
    return end(&c);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) {
    struct call c;
    if (begin(&c, __func__, WORK)) {
        struct block *block = block_at(ptr);
        if (!block || block->address != ptr || block->freeing) {
            fake_violation("cuMemFreeAsync of %p, which is not allocated", (void *)(uintptr_t)ptr);
            c.result = CUDA_ERROR_INVALID_VALUE;
        } else {
            c.result = enqueue(&c, stream, &(struct item){.operation = RELEASE, .dst = ptr});
            block = block_at(ptr); /* unless it has gone already */
            if (block && !c.result)
                block->freeing = true;
        }
    }
    return end(&c);
}

static void describe(CUpointer_attribute attribute, const struct block *block, void *value) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = block ? block->context : NULL;
        return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(int *)value = block && !block->pool;
        return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)value = block ? CU_MEMORYTYPE_DEVICE : (CUmemorytype)0;
        return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = block ? block->device : -2;
        return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = block ? block->address : 0;
        return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = block ? block->bytes : 0;
        return;
    default:
        fake_violation("attribute %d of a pointer is not known here", (int)attribute);
    }
}

CUresult CUDAAPI cuMemGetInfo(size_t *available, size_t *total) {
    struct call c;
    if (begin(&c, __func__, CONTEXT)) {
        *total = (size_t)fake.settings[FAKE_MEMORY];
        *available = *total - fake.live.mapped_bytes;
    }
    return end(&c);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                        void **values, CUdeviceptr ptr) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        for (unsigned int i = 0; i < count; i++)
            describe(attributes[i], block_at(ptr), values[i]);
    return end(&c);
}

/* --- the host's ------------------------------------------------------------------------------ */

struct pinned *find_pinned(const void *ptr, size_t bytes) {
    for (size_t i = 0; i < fake.pinned_count; i++) {
        struct pinned *p = &fake.pinned[i];
        size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)p->address);
        if (offset < p->bytes && bytes <= p->bytes - offset)
            return p;
    }
    return NULL;
}

static CUresult pin(size_t bytes, void **out) {
    if (fake.live.pinned_bytes + bytes > (size_t)fake.settings[FAKE_MEMORY] ||
        !grow((void **)&fake.pinned, &fake.pinned_capacity, fake.pinned_count,
              sizeof *fake.pinned) ||
        posix_memalign(out, SMALLEST, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*out, RUBBISH, bytes);
    fake.pinned[fake.pinned_count++] = (struct pinned){*out, bytes};
    fake.live.pinned++;
    fake.live.pinned_bytes += bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    if (!c.result && bytes == 0)
        c.result = CUDA_ERROR_INVALID_VALUE;
    if (!c.result && !(flags & CU_MEMHOSTALLOC_PORTABLE))
        fake_violation("page-locked memory is not portable");
    if (!c.result)
        c.result = pin(bytes, ptr);
    return end(&c);
}

CUresult CUDAAPI cuMemFreeHost(void *ptr) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    struct pinned *p = c.result ? NULL : find_pinned(ptr, 1);
    if (!c.result && (!p || p->address != ptr)) {
        fake_violation("cuMemFreeHost of %p, which is not allocated", ptr);
        c.result = CUDA_ERROR_INVALID_VALUE;
    }
    if (!c.result) {
        if (is_pending(p->address, 0, p->bytes))
            fake_violation("cuMemFreeHost of %p, which is still in use", ptr);
        fake.live.pinned--;
        fake.live.pinned_bytes -= p->bytes;
        *p = fake.pinned[--fake.pinned_count];
        free(ptr);
    }
    return end(&c);
}

void forget_memory(void) {
    while (fake.block_count)
        drop_block(&fake.blocks[0]);
    while (fake.pinned_count)
        free(fake.pinned[--fake.pinned_count].address);
}
