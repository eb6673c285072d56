/* Compares, at compile time, the declarations in cuda/declarations.h with NVIDIA's headers. */
#include "declarations.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <nccl.h>
#include <stddef.h>

#define SAME_PROTOTYPE(result, symbol, parameters)                                                 \
    extern result(*const check_##symbol) parameters;                                               \
    result(*const check_##symbol) parameters = &symbol;
SB__CUDA_FUNCTIONS(SAME_PROTOTYPE)
SB__CUBLAS_FUNCTIONS(SAME_PROTOTYPE)

/* The tags of NCCL's structs differ between versions, so their layouts are compared. */
#define SAME_NCCL(ours, theirs)                                                                    \
    _Static_assert(offsetof(sb__nccl_config, ours) == offsetof(ncclConfig_t, theirs), #ours)
SAME_NCCL(size, size);
SAME_NCCL(magic, magic);
SAME_NCCL(version, version);
SAME_NCCL(blocking, blocking);
SAME_NCCL(cga_cluster_size, cgaClusterSize);
_Static_assert(sizeof(sb__nccl_config) <= sizeof(ncclConfig_t), "config");
_Static_assert(sizeof(sb__nccl_id) == sizeof(ncclUniqueId), "id");
#define sb__nccl_config ncclConfig_t
#define sb__nccl_id     ncclUniqueId
SB__NCCL_FUNCTIONS(SAME_PROTOTYPE)
#undef sb__nccl_config
#undef sb__nccl_id

#define SAME_AS(ours, theirs) _Static_assert((int)SB__NCCL_##ours == (int)(theirs), #theirs)
SAME_AS(SUCCESS, ncclSuccess);
SAME_AS(IN_PROGRESS, ncclInProgress);
SAME_AS(UINT8, ncclUint8);
SAME_AS(FLOAT16, ncclFloat16);
SAME_AS(FLOAT32, ncclFloat32);
SAME_AS(FLOAT64, ncclFloat64);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 32, 0) /* NCCL 2.18 declares ncclBfloat16 only for C++ */
SAME_AS(BFLOAT16, ncclBfloat16);
#endif
SAME_AS(SUM, ncclSum);
SAME_AS(MAX, ncclMax);
SAME_AS(MIN, ncclMin);
SAME_AS(ID_BYTES, NCCL_UNIQUE_ID_BYTES);
SAME_AS(UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME_AS(VERSION_2_14, NCCL_VERSION(2, 14, 0));

/* constants.inc has a line SAME(NAME) for each constant SB__NAME of cuda/declarations.h. */
#define SAME(name) _Static_assert((int)SB__##name == (int)name, #name);
#include "constants.inc"

#define SAME_OFFSET(ours, theirs)                                                                  \
    _Static_assert(                                                                                \
        offsetof(struct sb__cu_pool_properties, ours) == offsetof(CUmemPoolProps, theirs), #ours)
SAME_OFFSET(alloc_type, allocType);
SAME_OFFSET(handle_types, handleTypes);
SAME_OFFSET(location_type, location.type);
SAME_OFFSET(location_id, location.id);
SAME_OFFSET(security_attributes, win32SecurityAttributes);
_Static_assert(sizeof(struct sb__cu_pool_properties) == sizeof(CUmemPoolProps), "pool");
_Static_assert(offsetof(struct sb__cu_location, id) == offsetof(CUmemLocation, id), "location");
_Static_assert(sizeof(struct sb__cu_location) == sizeof(CUmemLocation), "location");
_Static_assert(offsetof(struct sb__cu_access, flags) == offsetof(CUmemAccessDesc, flags), "access");
_Static_assert(sizeof(struct sb__cu_access) == sizeof(CUmemAccessDesc), "access");
_Static_assert(sizeof(sb__cu_ptr) == sizeof(CUdeviceptr), "CUdeviceptr");
_Static_assert(sizeof(sb__cu_device) == sizeof(CUdevice), "CUdevice");
