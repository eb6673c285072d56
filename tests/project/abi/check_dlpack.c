/* Compares our structs of DLPack with dlpack.h. This file is only compiled. */
#ifdef DLPACK_FIRST
#include <dlpack/dlpack.h>
#endif
#include <syncblob/dlpack.h>

#include <dlpack/dlpack.h>

#include <assert.h>
#include <stddef.h>

#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_MEMBER(ours, theirs, member)                                                          \
    static_assert(offsetof(ours, member) == offsetof(theirs, member) &&                            \
                      sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->member),                \
                  #ours "." #member)
#define SAME_NUMBER(ours, theirs) static_assert((long)(ours) == (long)(theirs), #ours)

SAME_NUMBER(SB_DL_MAJOR_VERSION, DLPACK_MAJOR_VERSION);
static_assert(SB_DL_MINOR_VERSION <= DLPACK_MINOR_VERSION, "dlpack.h is older than our header");

SAME_NUMBER(SB_DL_DEVICE_CPU, kDLCPU);
SAME_NUMBER(SB_DL_DEVICE_CUDA, kDLCUDA);
SAME_NUMBER(SB_DL_DEVICE_CUDA_HOST, kDLCUDAHost);
SAME_NUMBER(SB_DL_DEVICE_EXTENSION, kDLExtDev);
SAME_NUMBER(SB_DL_CODE_INT, kDLInt);
SAME_NUMBER(SB_DL_CODE_UINT, kDLUInt);
SAME_NUMBER(SB_DL_CODE_FLOAT, kDLFloat);
SAME_NUMBER(SB_DL_CODE_BFLOAT, kDLBfloat);
SAME_NUMBER(SB_DL_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY);
SAME_NUMBER(SB_DL_IS_COPIED, DLPACK_FLAG_BITMASK_IS_COPIED);
SAME_NUMBER(SB_DL_SUBBYTE_PADDED, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);

#define SAME_2(ours, theirs, a, b)                                                                 \
    SAME_SIZE(ours, theirs);                                                                       \
    SAME_MEMBER(ours, theirs, a);                                                                  \
    SAME_MEMBER(ours, theirs, b)
#define SAME_3(ours, theirs, a, b, c)                                                              \
    SAME_2(ours, theirs, a, b);                                                                    \
    SAME_MEMBER(ours, theirs, c)

SAME_2(sb_dl_version, DLPackVersion, major, minor);
SAME_2(sb_dl_device, DLDevice, device_type, device_id);
SAME_3(sb_dl_data_type, DLDataType, code, bits, lanes);
SAME_3(sb_dl_tensor, DLTensor, data, device, ndim);
SAME_2(sb_dl_tensor, DLTensor, dtype, shape);
SAME_2(sb_dl_tensor, DLTensor, strides, byte_offset);
SAME_3(sb_dl_managed_versioned, DLManagedTensorVersioned, version, manager_ctx, deleter);
SAME_2(sb_dl_managed_versioned, DLManagedTensorVersioned, flags, dl_tensor);
SAME_3(sb_dl_managed, DLManagedTensor, dl_tensor, manager_ctx, deleter);
