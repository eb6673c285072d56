/* Memory that cuMemMap maps to reserved addresses. The mappings in a reservation must have the same
   size and be contiguous from its start. All bytes of a reservation count as used memory. */
#include "driver.h"

#define PAGE ((size_t)2 << 20)

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option) {
    (void)prop, (void)option;
    BEGIN(INITIALISED);
    *granularity = PAGE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                     CUdeviceptr address, unsigned long long flags) {
    const struct block wanted = {.bytes = size, .ready = true, .is_reserved = true};
    BEGIN(INITIALISED);
    return size % PAGE || alignment || address || flags ? CUDA_ERROR_INVALID_VALUE
                                                        : add_block(&wanted, ptr);
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    BEGIN(INITIALISED);
    struct block *block = find_reservation(ptr);
    if (!block || block->bytes != size || block->mapped)
        return CUDA_ERROR_INVALID_VALUE;
    drop_block(block);
    return CUDA_SUCCESS;
}

/* Allocates nothing: the handle is the size, a multiple of PAGE, plus the device. */
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags) {
    BEGIN(INITIALISED);
    if (!size || size % PAGE || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = size + (unsigned int)prop->location.id;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
    BEGIN(INITIALISED);
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
    BEGIN(INITIALISED);
    struct block *block = find_reservation(ptr);
    if (!block || offset || flags || size != handle / PAGE * PAGE ||
        ptr != block->address + block->mapped || size > block->bytes - block->mapped)
        return CUDA_ERROR_INVALID_VALUE;
    if (block->mapped && block->mapping != size)
        fake_violation("the mappings in a reservation differ in size");
    block->device = (int)(handle % PAGE);
    block->mapping = size;
    block->mapped += size;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *access,
                                size_t count) {
    BEGIN(INITIALISED);
    return find_block(ptr, size) && count == 1 &&
                   access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size) {
    BEGIN(INITIALISED);
    struct block *block = find_reservation(ptr);
    if (!block || ptr != block->address || size != block->mapped)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_pending(NULL, ptr, size))
        fake_violation("cuMemUnmap of %p, which is still in use", (void *)(uintptr_t)ptr);
    block->mapped = 0;
    return CUDA_SUCCESS;
}
