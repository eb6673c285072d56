/**
 * The extension table of the device "cuda:N", for libraries that call the driver on it themselves,
 * as libsyncblob-comm does for NCCL. sb_context_extension (context.h) returns it for SB_CUDA_DEVICE
 * from the library's CUDA backend only: a caller's backend may also be named "cuda" without using
 * the driver.
 */
#ifndef SYNCBLOB_CUDA_DEVICE_H
#define SYNCBLOB_CUDA_DEVICE_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** The name of the table sb_cuda_device. */
#define SB_CUDA_DEVICE "sb_cuda_device"

/** Properties of a CUDA device, also of a lost one. The struct never grows. */
typedef struct sb_cuda_device {
    /** The device's ordinal, as cuDeviceGet takes it. The context works in that device's primary
     *  context, which it keeps retained. */
    int32_t (*ordinal)(const void *device);
} sb_cuda_device;

SB_END_DECLS

#endif
