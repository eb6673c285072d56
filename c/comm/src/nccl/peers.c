/* Makes memory pools accessible to other devices. NCCL up to 2.22 stores directly into buffers of
   other ranks of the same process. NCCL gives peers access to memory of cuMemAlloc, but not to
   memory of a pool. By default only the pool's own device can access a pool. */
#include "device.h"

#include <stdlib.h>

/* Sets `*out` to 1 if `other` can access this device's memory and the primary context of `other` is
   active, else to 0. Without that context, no rank of this process uses `other`. */
static sb__cu_result is_peer(const struct sb__nccl_device *device, sb__cu_device other, int *out,
                             struct sb__nccl_visit *visit) {
    unsigned int flags;
    int active = 0;
    *out = 0;
    if (other == device->handle)
        return SB__CUDA_SUCCESS;
    const sb__cu_result result =
        sb__nccl_named(visit, device->cu->cuDevicePrimaryCtxGetState(other, &flags, &active),
                       "cuDevicePrimaryCtxGetState");
    if (result != SB__CUDA_SUCCESS || !active)
        return result;
    return sb__nccl_named(visit, device->cu->cuDeviceCanAccessPeer(out, other, device->handle),
                          "cuDeviceCanAccessPeer");
}

sb_status sb__nccl_find_peers(struct sb__nccl_device *device, sb_error *err) {
    struct sb__nccl_visit visit = {.call = "cuDeviceGetCount"};
    int count = 0, found = 0;
    sb__cu_result result = device->cu->cuDeviceGetCount(&count);
    if (result == SB__CUDA_SUCCESS)
        device->peers = calloc((size_t)count, sizeof *device->peers);
    if (result == SB__CUDA_SUCCESS && !device->peers)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a list of devices");
    for (int i = 0; i < count && result == SB__CUDA_SUCCESS; i++) {
        sb__cu_device *other = &device->peers[device->num_peers];
        result = sb__nccl_named(&visit, device->cu->cuDeviceGet(other, i), "cuDeviceGet");
        if (result == SB__CUDA_SUCCESS)
            result = is_peer(device, *other, &found, &visit);
        device->num_peers += result == SB__CUDA_SUCCESS && found;
    }
    return sb__nccl_status(device, result, visit.call, err);
}

static sb__cu_result give(const struct sb__nccl_device *device, sb__cu_pool pool,
                          sb__cu_device peer, struct sb__nccl_visit *visit) {
    struct sb__cu_access access = {
        {SB__CU_MEM_LOCATION_TYPE_DEVICE, peer},
        SB__CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    unsigned int flags = 0;
    const sb__cu_result result = sb__nccl_named(
        visit, device->cu->cuMemPoolGetAccess(&flags, pool, (void *)&access.location),
        "cuMemPoolGetAccess");
    if (result != SB__CUDA_SUCCESS || flags == access.flags)
        return result;
    return sb__nccl_named(visit, device->cu->cuMemPoolSetAccess(pool, (const void *)&access, 1),
                          "cuMemPoolSetAccess");
}

static sb__cu_result give_all(const struct sb__nccl_device *device, const void *ptr,
                              struct sb__nccl_visit *visit) {
    unsigned int attribute = SB__CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    sb__cu_pool pool = NULL;
    void *values[] = {&pool};
    sb__cu_result result = sb__nccl_named(
        visit,
        device->cu->cuPointerGetAttributes(1, &attribute, values, (sb__cu_ptr)(uintptr_t)ptr),
        "cuPointerGetAttributes");
    for (int i = 0; result == SB__CUDA_SUCCESS && pool && i < device->num_peers; i++)
        result = give(device, pool, device->peers[i], visit);
    return result;
}

sb_status sb__nccl_give_access(const struct sb__nccl_device *device, const void *ptr,
                               sb_error *err) {
    struct sb__nccl_visit visit;
    if (!device->num_peers)
        return SB_OK;
    sb__cu_result result = sb__nccl_enter(device, &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__nccl_leave(device, &visit, give_all(device, ptr, &visit));
    return sb__nccl_status(device, result, visit.call, err);
}
