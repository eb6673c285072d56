#include "device.h"

#include <stdio.h>

static sb__cu_result alloc(const struct sb__cuda_device *device, size_t bytes, sb__cu_stream stream,
                           sb__cu_ptr *out, struct sb__cuda_visit *visit) {
    if (device->pool)
        return sb__cuda_named(visit,
                              device->cu->cuMemAllocFromPoolAsync(out, bytes, device->pool, stream),
                              "cuMemAllocFromPoolAsync");
    return sb__cuda_named(visit, device->cu->cuMemAlloc_v2(out, bytes), "cuMemAlloc");
}

/* Waits before the trim, since memory freed on the library's stream counts as used until a wait. */
static sb__cu_result trim_pool(struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    sb__cu_result result = sb__cuda_refuse_captured(device, device->stream, visit);
    if (result == SB__CUDA_SUCCESS)
        result =
            sb__cuda_named(visit, sb__cuda_wait(device, device->stream), "cuStreamSynchronize");
    if (result == SB__CUDA_SUCCESS && device->pool)
        result =
            sb__cuda_named(visit, device->cu->cuMemPoolTrimTo(device->pool, 0), "cuMemPoolTrimTo");
    return result;
}

static bool has_something_to_trim(const struct sb__cuda_device *device) {
    return device->pool || sb__cuda_keeps_any(device);
}

static sb__cu_result make_room(struct sb__cuda_device *device, struct sb__cuda_visit *visit) {
    sb__cu_result result = trim_pool(device, visit);
    if (result == SB__CUDA_SUCCESS && device->pool)
        sb__cuda_siblings_trim(device);
    return result;
}

/* Retries after a trim. On a device that is out of memory, the library's pools may have free memory
   in pieces that are too small. The free of other memory may still be queued. */
static sb__cu_result alloc_or_trim(struct sb__cuda_device *device, size_t bytes,
                                   sb__cu_stream stream, sb__cu_ptr *out,
                                   struct sb__cuda_visit *visit) {
    sb__cu_result result = alloc(device, bytes, stream, out, visit);
    if (result != SB__CUDA_ERROR_OUT_OF_MEMORY || !has_something_to_trim(device))
        return result;
    sb__cu_result trimmed = make_room(device, visit);
    return trimmed == SB__CUDA_SUCCESS ? alloc(device, bytes, stream, out, visit) : trimmed;
}

void sb__cuda_trim(void *opened) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cuda_trim_pinned(device);
    if (!has_something_to_trim(device) || sb__cuda_enter(device, &visit) != SB__CUDA_SUCCESS)
        return;
    (void)sb__cuda_leave(device, &visit, trim_pool(device, &visit));
}

void sb__cuda_make_room(struct sb__cuda_device *device) {
    struct sb__cuda_visit visit;
    if (has_something_to_trim(device) && sb__cuda_enter(device, &visit) == SB__CUDA_SUCCESS)
        (void)sb__cuda_leave(device, &visit, make_room(device, &visit));
}

sb_status sb__cuda_alloc(void *opened, size_t bytes, sb_stream stream, void **out, sb_error *err) {
    struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_ptr ptr = 0;
    sb__cu_result result = sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave(
            device, &visit, alloc_or_trim(device, bytes, sb__cuda_stream(stream), &ptr, &visit));
    if (result == SB__CUDA_SUCCESS)
        *out = (void *)(uintptr_t)ptr;
    return sb__cuda_status(device, result, visit.call, err);
}

/* A block to free after the work on `stream`. */
struct freed {
    void *ptr;
    size_t bytes;
    sb_stream stream;
};

static void keep(struct sb__cuda_device *device, const struct freed *block) {
    sb__cuda_keep(device, SB__CUDA_KEPT_BLOCK, block->ptr, block->bytes, block->stream);
}

/* Waits for the block's stream, then calls cuMemFree, which accepts memory of a pool. */
static void free_now(struct sb__cuda_device *device, const struct freed *block) {
    sb__cu_result result = sb__cuda_wait(device, sb__cuda_stream(block->stream));
    if (!sb__cuda_is_over(result))
        result = sb__cuda_wait(device, sb__cuda_stream(block->stream));
    if (!sb__cuda_is_over(result) || !sb__cuda_try_free(device, SB__CUDA_KEPT_BLOCK, block->ptr))
        keep(device, block);
}

/* Tries to allocate 2 MiB, the smallest unit that a device maps. */
bool sb__cuda_is_full(struct sb__cuda_device *device) {
    const size_t page = (size_t)2 << 20;
    struct sb__cuda_visit visit;
    sb__cu_ptr ptr = 0;
    if (sb__cuda_enter(device, &visit) != SB__CUDA_SUCCESS)
        return false;
    const sb__cu_result result = device->cu->cuMemAlloc_v2(&ptr, page);
    const struct freed block = {(void *)(uintptr_t)ptr, page, (sb_stream)device->stream};
    if (result == SB__CUDA_SUCCESS && !sb__cuda_try_free(device, SB__CUDA_KEPT_BLOCK, block.ptr))
        keep(device, &block);
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
    return result == SB__CUDA_ERROR_OUT_OF_MEMORY;
}

static void free_queued(struct sb__cuda_device *device, const struct freed *block) {
    const sb__cu_stream stream = sb__cuda_stream(block->stream);
    if (!device->pool ||
        device->cu->cuMemFreeAsync(sb__cuda_address(block->ptr), stream) != SB__CUDA_SUCCESS)
        free_now(device, block);
    else if (stream == device->stream)
        sb__cuda_free_kept(device);
}

void sb__cuda_free(void *opened, void *ptr, size_t bytes, sb_stream stream) {
    struct sb__cuda_device *device = opened;
    const struct freed block = {ptr, bytes, stream};
    struct sb__cuda_visit visit;
    const sb__cu_result entered = sb__cuda_enter_to_free(device, &visit);
    if (entered != SB__CUDA_SUCCESS) {
        if (sb__cuda_done(entered) != SB__CUDA_SUCCESS)
            keep(device, &block);
        return;
    }
    if (sb__cuda_refuse_captured(device, sb__cuda_stream(stream), &visit) == SB__CUDA_SUCCESS)
        free_queued(device, &block);
    else
        keep(device, &block);
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
}

sb_status sb__cuda_zero(void *opened, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(
            device, &visit,
            device->cu->cuMemsetD8Async(sb__cuda_address(dst), 0, bytes, sb__cuda_stream(stream)),
            "cuMemsetD8Async");
    return sb__cuda_status(device, result, visit.call, err);
}

sb_status sb__cuda_upload(void *opened, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result =
            sb__cuda_leave_after(device, &visit,
                                 device->cu->cuMemcpyHtoDAsync_v2(sb__cuda_address(dst), src, bytes,
                                                                  sb__cuda_stream(stream)),
                                 "cuMemcpyHtoDAsync");
    return sb__cuda_status(device, result, visit.call, err);
}

sb_status sb__cuda_download(void *opened, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result =
            sb__cuda_leave_after(device, &visit,
                                 device->cu->cuMemcpyDtoHAsync_v2(dst, sb__cuda_address(src), bytes,
                                                                  sb__cuda_stream(stream)),
                                 "cuMemcpyDtoHAsync");
    return sb__cuda_status(device, result, visit.call, err);
}

sb_status sb__cuda_copy(void *opened, void *dst, const void *src, size_t bytes, sb_stream stream,
                        sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter_stream(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(device, &visit,
                                      device->cu->cuMemcpyDtoDAsync_v2(sb__cuda_address(dst),
                                                                       sb__cuda_address(src), bytes,
                                                                       sb__cuda_stream(stream)),
                                      "cuMemcpyDtoDAsync");
    return sb__cuda_status(device, result, visit.call, err);
}

/* --- the caller's pointers ------------------------------------------------------------ */

struct region {
    sb__cu_context context; /* NULL for memory from a pool or from cuMemMap */
    sb__cu_pool pool;       /* NULL for memory that is not from a pool */
    unsigned int memory_type;
    int ordinal;
    bool is_mapped; /* `start` and `bytes` are only one mapping of cuMemMap */
    sb__cu_ptr start;
    size_t bytes;
};

static sb__cu_result ask(const struct sb__cuda_device *device, sb__cu_ptr ptr, struct region *out) {
    unsigned int attributes[] = {
        SB__CU_POINTER_ATTRIBUTE_CONTEXT,          SB__CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        SB__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      SB__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        SB__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, SB__CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&out->context, &out->pool,  &out->memory_type,
                      &out->ordinal, &out->start, &out->bytes};
    return device->cu->cuPointerGetAttributes(6, attributes, values, ptr);
}

/* Narrows the range of memory from cuMemMap to one mapping, since the whole range may contain
   unmapped addresses. Changes nothing if the driver does not have the attributes of mappings. */
static sb__cu_result ask_for_mapping(const struct sb__cuda_device *device, sb__cu_ptr ptr,
                                     struct region *out) {
    unsigned int attributes[] = {SB__CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                 SB__CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
    sb__cu_ptr start = 0;
    size_t bytes = 0;
    void *values[] = {&start, &bytes};
    const sb__cu_result result = device->cu->cuPointerGetAttributes(2, attributes, values, ptr);
    if (result != SB__CUDA_SUCCESS || !bytes)
        return result == SB__CUDA_ERROR_INVALID_VALUE ? (sb__cu_result)SB__CUDA_SUCCESS : result;
    out->is_mapped = true;
    out->start = start;
    out->bytes = bytes;
    return SB__CUDA_SUCCESS;
}

/* Asks the driver about a pointer. If the pointer is unknown, the result is zeros, not an error. */
static sb_status look_up(const struct sb__cuda_device *device, sb__cu_ptr ptr, struct region *out,
                         sb_error *err) {
    struct sb__cuda_visit visit;
    *out = (struct region){.ordinal = -1};
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = ask(device, ptr, out);
        if (result == SB__CUDA_SUCCESS && !out->context && !out->pool && out->memory_type)
            result = ask_for_mapping(device, ptr, out);
        result = sb__cuda_leave_after(device, &visit, result, "cuPointerGetAttributes");
    }
    return sb__cuda_status(device, result, visit.call, err);
}

/* Checks the memory's device and context. Accepts managed memory, whose type is device memory. */
static sb_status check_region(const struct sb__cuda_device *device, const struct region *region,
                              const void *ptr, sb_error *err) {
    char message[sizeof err->message];
    if (region->memory_type != SB__CU_MEMORYTYPE_DEVICE || region->ordinal != device->ordinal) {
        (void)snprintf(message, sizeof message, "%p is not memory of cuda:%d", ptr,
                       device->ordinal);
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, message);
    }
    if (region->context && region->context != device->context) {
        (void)snprintf(message, sizeof message,
                       "%p does not belong to the primary context of cuda:%d", ptr,
                       device->ordinal);
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, message);
    }
    return SB_OK;
}

static size_t bytes_from(const struct region *region, sb__cu_ptr at) {
    const size_t before = (size_t)(at - region->start);
    return before < region->bytes ? region->bytes - before : 0;
}

sb_status sb__cuda_check_pointer(void *opened, const void *ptr, size_t bytes, sb_error *err) {
    const struct sb__cuda_device *device = opened;
    struct region region;
    char message[sizeof err->message];
    size_t found = 0, more;
    do {
        const sb__cu_ptr at = sb__cuda_address(ptr) + found;
        sb_status st = look_up(device, at, &region, err);
        if (st == SB_OK)
            st = check_region(device, &region, (const char *)ptr + found, err);
        if (st != SB_OK)
            return st;
        more = bytes_from(&region, at);
        found += more;
    } while (more && found < bytes && region.is_mapped);
    if (found >= bytes)
        return SB_OK;
    (void)snprintf(message, sizeof message,
                   "%zu bytes at %p go beyond the %zu allocated on cuda:%d", bytes, ptr, found,
                   device->ordinal);
    return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, message);
}
