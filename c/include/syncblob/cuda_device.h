/**
 * The device "cuda:N" for libraries that call the driver on it themselves, as libsyncblob-comm does
 * for NCCL. sb_context_extension of context.h gives the table, by the name SB_CUDA_DEVICE, of the
 * library's own CUDA backend alone: a caller's backend may have the same name, and no device of
 * the driver's.
 */
#ifndef SYNCBLOB_CUDA_DEVICE_H
#define SYNCBLOB_CUDA_DEVICE_H

#include <syncblob/context.h>

SB_BEGIN_DECLS

/** The name of the table sb_cuda_device. */
#define SB_CUDA_DEVICE "sb_cuda_device"

/** What the CUDA backend offers, also where the device is lost. The struct never grows. */
typedef struct sb_cuda_device {
    /** The device's ordinal, as cuDeviceGet takes it. The context works in that device's primary
     *  context, which it keeps retained. */
    int32_t (*ordinal)(const void *device);
} sb_cuda_device;

SB_END_DECLS

#endif
