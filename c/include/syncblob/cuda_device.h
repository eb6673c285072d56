/**
 * The extension table of the device "cuda:N", for libraries that call the CUDA driver directly, as
 * libsyncblob-comm does for NCCL. The function sb_context_extension (context.h) returns the table
 * for SB_CUDA_DEVICE if the device belongs to the library's CUDA backend, but not if it belongs to
 * a caller's backend that is also named "cuda".
 */
#ifndef SYNCBLOB_CUDA_DEVICE_H
#define SYNCBLOB_CUDA_DEVICE_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** The name of the table sb_cuda_device. */
#define SB_CUDA_DEVICE "sb_cuda_device"

/** Properties of a CUDA device; also valid for a lost device. The struct never grows. */
typedef struct sb_cuda_device {
    /** Returns the device's ordinal for cuDeviceGet. The sb_context uses and retains the primary
     *  context of that device. */
    int32_t (*ordinal)(const void *device);
} sb_cuda_device;

SB_END_DECLS

#endif
