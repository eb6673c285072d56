/* The fake driver never reuses an address, so that a use after a free is detected. The bytes of a
   block are at another address, so that a host access to a device address faults. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULE  ((size_t)512)
#define SPACE    ((size_t)1 << 36)
#define SMALLEST ((size_t)4096)
#define PAGE     ((size_t)2 << 20) /* the size of a mapping is a multiple of PAGE */

static char *space;
static size_t used;

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

static void grow(void **array, size_t *capacity, size_t count, size_t element) {
    if (count < *capacity)
        return;
    *capacity = *capacity * 2 + 16;
    *array = need_memory(realloc(*array, *capacity * element));
}

static size_t usable_bytes(const struct block *block) {
    return block->is_reserved ? block->mapped : block->bytes;
}

static struct block *block_at(CUdeviceptr ptr) {
    for (size_t i = 0; i < fake.block_count; i++)
        if (ptr - fake.blocks[i].address < usable_bytes(&fake.blocks[i]))
            return &fake.blocks[i];
    return NULL;
}

struct block *find_block(CUdeviceptr ptr, size_t bytes) {
    struct block *block = block_at(ptr);
    return block && bytes <= usable_bytes(block) - (size_t)(ptr - block->address) ? block : NULL;
}

static struct block *find_reservation(CUdeviceptr ptr) {
    for (size_t i = 0; i < fake.block_count; i++)
        if (fake.blocks[i].is_reserved && ptr - fake.blocks[i].address < fake.blocks[i].bytes)
            return &fake.blocks[i];
    return NULL;
}

/* A pool does not join its free chunks, so an allocation can fail with enough free bytes. */

bool map_bytes(CUmemoryPool pool, size_t bytes) {
    if (fake.live.mapped_bytes + bytes > (size_t)fake.settings[FAKE_MEMORY])
        return false;
    fake.live.mapped_bytes += bytes;
    if (pool)
        pool->reserved += bytes;
    return true;
}

void unmap_bytes(CUmemoryPool pool, size_t bytes) {
    fake.live.mapped_bytes -= bytes;
    if (pool)
        pool->reserved -= bytes;
}

static bool take_chunk(CUmemoryPool pool, size_t bytes) {
    int best = -1;
    for (int i = 0; i < pool->chunk_count; i++)
        if (pool->chunks[i] >= bytes && (best < 0 || pool->chunks[i] < pool->chunks[best]))
            best = i;
    if (best < 0)
        return false;
    unmap_bytes(pool, pool->chunks[best] - bytes);
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
    if (!reserve_space() || span > SPACE - used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(block->pool && take_chunk(block->pool, block->bytes)) &&
        !map_bytes(block->pool, block->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    grow((void **)&fake.blocks, &fake.block_capacity, fake.block_count, sizeof *fake.blocks);
    char *backing = need_memory(malloc(block->bytes));
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
    drop_record(block->freed);
    free(block->backing);
    *block = fake.blocks[--fake.block_count];
    if (pool) {
        pool->blocks--;
        drop_pool(pool);
    }
}

void *fake_address(CUdeviceptr ptr, size_t bytes) {
    FAKE_LOCKED;
    const struct block *block = find_block(ptr, bytes);
    return block && block->ready ? block->backing + (ptr - block->address) : NULL;
}

bool fake_is_memory_of(CUcontext context, CUdeviceptr ptr, size_t bytes) {
    FAKE_LOCKED;
    const struct block *block = find_block(ptr, bytes);
    return block && block->device == context->device;
}

bool fake_may_store(CUcontext context, CUdeviceptr ptr, size_t bytes) {
    FAKE_LOCKED;
    const struct block *block = find_block(ptr, bytes);
    return block && (!block->pool || block->device == context->device ||
                     block->pool->access >> context->device & 1);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *ptr, size_t bytes) {
    BEGIN(UNSAFE);
    const struct block wanted = {
        .bytes = bytes, .device = c.context->device, .context = c.context, .ready = true};
    return bytes ? add_block(&wanted, ptr) : CUDA_ERROR_INVALID_VALUE;
}

/* Returns ordinary device memory, because no test accesses managed memory on the host. */
RETURNS(cuMemAllocManaged, CONTEXT, (CUdeviceptr * ptr, size_t bytes, unsigned int flags),
        cuMemAlloc(ptr, bytes))

static struct block *freeable(CUdeviceptr ptr, const char *function) {
    struct block *block = block_at(ptr);
    if (block && block->address == ptr && !block->freeing)
        return block;
    fake_violation("%s of %p, which is not allocated", function, (void *)(uintptr_t)ptr);
    return NULL;
}

/* By cuda.h, cuMemFree also frees memory of a pool. The header does not document whether cuMemFree
   waits, so a free of memory in use is a violation. */
CUresult CUDAAPI cuMemFree(CUdeviceptr ptr) {
    BEGIN(UNSAFE);
    struct block *block = freeable(ptr, __func__);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_pending(NULL, ptr, block->bytes) || !block->ready)
        fake_violation("cuMemFree of %p, which is still in use", (void *)(uintptr_t)ptr);
    drop_block(block);
    return CUDA_SUCCESS;
}

static bool is_location(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
           location->id < fake.settings[FAKE_DEVICES];
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    static const CUmemPoolProps zero;
    BEGIN(INITIALISED);
    if (!fake.settings[FAKE_POOLS])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        !is_location(&properties->location) ||
        memcmp(properties->reserved, zero.reserved, sizeof zero.reserved) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool made = fake_object(sizeof *made);
    made->device = properties->location.id;
    made->adds_dependencies = true;
    made->next = fake.pools;
    fake.pools = *pool = made;
    fake.live.pools++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
    BEGIN(INITIALISED);
    pool->destroyed = true;
    fake.live.pools--;
    drop_pool(pool);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value) {
    BEGIN(INITIALISED);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        memcpy(&pool->threshold, value, sizeof pool->threshold);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->adds_dependencies = *(int *)value != 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void *value) {
    BEGIN(INITIALISED);
    if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = pool->reserved;
    return CUDA_SUCCESS;
}

/* Like NVIDIA's driver, fails for the pool's own device (NVIDIA/cuda-python, issue 2807). */
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    BEGIN(INITIALISED);
    for (size_t i = 0; i < count; i++) {
        if (!is_location(&map[i].location))
            return CUDA_ERROR_INVALID_VALUE;
        if (map[i].location.id == pool->device)
            return CUDA_ERROR_INVALID_DEVICE;
        if (!fake.settings[FAKE_PEERS])
            fake_violation("device %d cannot access a pool of device %d", map[i].location.id,
                           pool->device);
    }
    for (size_t i = 0; i < count; i++)
        if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            pool->access |= 1u << map[i].location.id;
        else
            pool->access &= ~(1u << map[i].location.id);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
                                    CUmemLocation *location) {
    BEGIN(INITIALISED);
    if (!is_location(location))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned int all = pool->access | 1u << pool->device;
    *flags = all >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

SIMPLE(cuMemPoolTrimTo, INITIALISED, (CUmemoryPool pool, size_t keep), trim(pool, keep))

static CUresult depend(const struct call *c, CUmemoryPool pool, CUstream stream) {
    struct call quiet = {.need = WORK, .context = c->context};
    struct record *record = NULL;
    for (size_t i = 0; i < fake.block_count && pool->adds_dependencies; i++)
        if (fake.blocks[i].pool == pool && fake.blocks[i].freed)
            record = fake.blocks[i].freed;
    if (!record)
        return CUDA_SUCCESS;
    record->refs++;
    return enqueue(&quiet, stream, &(struct item){.operation = WAIT, .record = record});
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool,
                                         CUstream stream) {
    BEGIN(WORK);
    const struct block wanted = {.bytes = bytes, .device = pool->device, .pool = pool};
    if (bytes == 0 || pool->destroyed)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = add_block(&wanted, ptr);
    if (result)
        return result;
    result = depend(&c, pool, stream);
    if (!result)
        result = enqueue(&c, stream, &(struct item){.operation = ALLOCATE, .dst = *ptr});
    if (result)
        drop_block(block_at(*ptr));
    return result;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) {
    BEGIN(WORK);
    if (!freeable(ptr, __func__))
        return CUDA_ERROR_INVALID_VALUE;
    struct record *record = fake_object(sizeof *record);
    *record = (struct record){.refs = 2, .stream = resolve(c.context, stream)};
    const CUresult result =
        enqueue(&c, stream, &(struct item){.operation = RELEASE, .dst = ptr, .record = record});
    struct block *block = block_at(ptr); /* NULL if the free has run */
    if (!block || result) {
        drop_record(record);
        return result;
    }
    block->freeing = true;
    block->freed = record;
    return CUDA_SUCCESS;
}

/* For memory from cuMemMap, the range is the whole reservation, even if parts are not mapped. */
static void describe(CUpointer_attribute attribute, CUdeviceptr ptr, void *value) {
    static const struct block none = {.device = -2};
    const struct block *found = block_at(ptr), *block = found ? found : &none;
    const size_t mapping = block->mapping ? block->mapping : block->bytes;
#define ATTRIBUTE(name, type, expression)                                                          \
    case CU_POINTER_ATTRIBUTE_##name:                                                              \
        *(type *)value = (expression);                                                             \
        return
    switch (attribute) {
        ATTRIBUTE(CONTEXT, CUcontext, block->context);
        ATTRIBUTE(MEMORY_TYPE, CUmemorytype, found ? CU_MEMORYTYPE_DEVICE : (CUmemorytype)0);
        ATTRIBUTE(DEVICE_ORDINAL, int, block->device);
        ATTRIBUTE(MEMPOOL_HANDLE, CUmemoryPool, block->pool);
        ATTRIBUTE(RANGE_START_ADDR, CUdeviceptr, block->address);
        ATTRIBUTE(RANGE_SIZE, size_t, block->bytes);
        ATTRIBUTE(MAPPING_BASE_ADDR, CUdeviceptr,
                  mapping ? ptr - (ptr - block->address) % mapping : 0);
        ATTRIBUTE(MAPPING_SIZE, size_t, mapping);
    default:
        fake_violation("the fake driver lacks the pointer attribute %d", (int)attribute);
    }
#undef ATTRIBUTE
}

SIMPLE(cuPointerGetAttributes, INITIALISED,
       (unsigned int count, CUpointer_attribute *attributes, void **values, CUdeviceptr ptr),
       for (unsigned int i = 0; i < count; i++) describe(attributes[i], ptr, values[i]))

/* Mappings in a reservation must have the same size and be contiguous from its start. */

SIMPLE(cuMemGetAllocationGranularity, INITIALISED,
       (size_t * granularity, const CUmemAllocationProp *prop,
        CUmemAllocationGranularity_flags option),
       *granularity = PAGE)

RETURNS(cuMemAddressReserve, INITIALISED,
        (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr address,
         unsigned long long flags),
        add_block(&(struct block){.bytes = size, .ready = true, .is_reserved = true}, ptr))

SIMPLE(cuMemAddressFree, INITIALISED, (CUdeviceptr ptr, size_t size),
       drop_block(find_reservation(ptr)))

SIMPLE(cuMemCreate, INITIALISED,
       (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
        unsigned long long flags),
       *handle = (CUmemGenericAllocationHandle)prop->location.id)

SIMPLE(cuMemRelease, INITIALISED, (CUmemGenericAllocationHandle handle), (void)handle)

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
    BEGIN(INITIALISED);
    struct block *block = find_reservation(ptr);
    if (ptr != block->address + block->mapped || (block->mapped && block->mapping != size))
        fake_violation("the mappings in a reservation have gaps, or differ in size");
    block->device = (int)handle;
    block->mapping = size;
    block->mapped += size;
    return CUDA_SUCCESS;
}

RETURNS(cuMemSetAccess, INITIALISED,
        (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *access, size_t count),
        find_block(ptr, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size) {
    BEGIN(INITIALISED);
    if (is_pending(NULL, ptr, size))
        fake_violation("cuMemUnmap of %p, which is still in use", (void *)(uintptr_t)ptr);
    find_reservation(ptr)->mapped = 0;
    return CUDA_SUCCESS;
}

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
        posix_memalign(out, SMALLEST, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    grow((void **)&fake.pinned, &fake.pinned_capacity, fake.pinned_count, sizeof *fake.pinned);
    memset(*out, RUBBISH, bytes);
    fake.pinned[fake.pinned_count++] = (struct pinned){*out, bytes};
    fake.live.pinned++;
    fake.live.pinned_bytes += bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags) {
    BEGIN(UNSAFE);
    if (bytes && !(flags & CU_MEMHOSTALLOC_PORTABLE))
        fake_violation("page-locked memory must be portable");
    return bytes ? pin(bytes, ptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemFreeHost(void *ptr) {
    BEGIN(UNSAFE);
    struct pinned *p = find_pinned(ptr, 1);
    if (!p || p->address != ptr) {
        fake_violation("cuMemFreeHost of %p, which is not allocated", ptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_pending(p->address, 0, p->bytes))
        fake_violation("cuMemFreeHost of %p, which is still in use", ptr);
    fake.live.pinned--;
    fake.live.pinned_bytes -= p->bytes;
    *p = fake.pinned[--fake.pinned_count];
    free(ptr);
    return CUDA_SUCCESS;
}

void forget_memory(void) {
    while (fake.block_count)
        drop_block(&fake.blocks[0]);
    while (fake.pinned_count)
        free(fake.pinned[--fake.pinned_count].address);
}
