#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <syncblob/cuda_device.h>

int32_t sb__nccl_ordinal(const sb_context *context) {
    const void *found;
    void *device;
    if (sb_context_extension(context, SB_CUDA_DEVICE, &found, &device, NULL) != SB_OK)
        return -1;
    const sb_cuda_device *table = found;
    return table->ordinal(device);
}

/* --- calls of the driver --------------------------------------------------------------- */

static sb__cu_result relax(const struct sb__nccl_device *device, struct sb__nccl_visit *visit) {
    visit->mode = SB__CU_STREAM_CAPTURE_MODE_RELAXED;
    return sb__nccl_named(visit, device->cu->cuThreadExchangeStreamCaptureMode(&visit->mode),
                          "cuThreadExchangeStreamCaptureMode");
}

static void restore_mode(const struct sb__nccl_device *device, const struct sb__nccl_visit *visit) {
    for (int tries = 0; tries < SB__NCCL_TRIES; tries++) {
        unsigned int mode = visit->mode;
        if (device->cu->cuThreadExchangeStreamCaptureMode(&mode) == SB__CUDA_SUCCESS)
            return;
    }
}

static bool is_current(const struct sb__nccl_device *device) {
    sb__cu_context now = NULL;
    for (int tries = 0; !now && tries < SB__NCCL_TRIES; tries++)
        (void)device->cu->cuCtxGetCurrent(&now); /* `now` stays NULL after a failure */
    return now == device->context;
}

/* Pops the device's context. Retries only while that context is current: a call that returns an
   error of earlier work may have popped the context. */
static void pop(const struct sb__nccl_device *device) {
    sb__cu_context now;
    for (int tries = 0; tries < SB__NCCL_TRIES; tries++)
        if (device->cu->cuCtxPopCurrent_v2(&now) == SB__CUDA_SUCCESS || !is_current(device))
            return;
}

sb__cu_result sb__nccl_enter(const struct sb__nccl_device *device, struct sb__nccl_visit *visit) {
    sb__cu_result result =
        sb__nccl_named(visit, device->cu->cuCtxPushCurrent_v2(device->context), "cuCtxPushCurrent");
    if (result != SB__CUDA_SUCCESS)
        return result;
    result = relax(device, visit);
    if (result != SB__CUDA_SUCCESS)
        pop(device);
    return result;
}

sb__cu_result sb__nccl_enter_to_free(const struct sb__nccl_device *device,
                                     struct sb__nccl_visit *visit) {
    sb__cu_result result = sb__nccl_enter(device, visit);
    for (int tries = 1; tries < SB__NCCL_TRIES && result != SB__CUDA_SUCCESS; tries++)
        result = sb__nccl_enter(device, visit);
    return result;
}

sb__cu_result sb__nccl_leave(const struct sb__nccl_device *device,
                             const struct sb__nccl_visit *visit, sb__cu_result result) {
    restore_mode(device, visit);
    pop(device);
    return result;
}

/* --- failures -------------------------------------------------------------------------- */

static sb_status status_of(sb__cu_result result) {
    if (result == SB__CUDA_ERROR_OUT_OF_MEMORY)
        return SB_ERR_OUT_OF_MEMORY;
    if (result == SB__CUDA_ERROR_NOT_SUPPORTED ||
        (result >= SB__CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= SB__CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        return SB_ERR_UNSUPPORTED;
    return SB_ERR_DEVICE_FAILURE;
}

sb_status sb__nccl_status(const struct sb__nccl_device *device, sb__cu_result result,
                          const char *call, sb_error *err) {
    char message[sizeof err->message];
    const char *name = NULL, *text = NULL;
    if (result == SB__CUDA_SUCCESS)
        return SB_OK;
    (void)device->cu->cuGetErrorName(result, &name); /* `name` stays NULL for an unknown code */
    (void)device->cu->cuGetErrorString(result, &text);
    (void)snprintf(message, sizeof message, "cuda:%d: %s: %s (%s)", device->ordinal, call,
                   name ? name : "an unknown error", text ? text : "no description");
    return sb_error_fill(err, status_of(result), (int32_t)result, message);
}

/* --- life ------------------------------------------------------------------------------ */

sb_status sb__nccl_device_open(struct sb__nccl_device *device, int32_t ordinal, sb_error *err) {
    struct sb__nccl_visit visit;
    *device = (struct sb__nccl_device){.ordinal = ordinal};
    sb_status st = sb__nccl_driver_open(&device->cu, err);
    if (st != SB_OK)
        return st;
    sb__cu_result result =
        sb__nccl_named(&visit, device->cu->cuDeviceGet(&device->handle, ordinal), "cuDeviceGet");
    if (result == SB__CUDA_SUCCESS)
        result = relax(device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = sb__nccl_named(
            &visit, device->cu->cuDevicePrimaryCtxRetain(&device->context, device->handle),
            "cuDevicePrimaryCtxRetain");
        restore_mode(device, &visit);
    }
    return sb__nccl_status(device, result, visit.call, err);
}

void sb__nccl_device_close(struct sb__nccl_device *device) {
    struct sb__nccl_visit visit;
    free(device->peers);
    const bool relaxed = relax(device, &visit) == SB__CUDA_SUCCESS;
    (void)device->cu->cuDevicePrimaryCtxRelease_v2(device->handle);
    if (relaxed)
        restore_mode(device, &visit);
}
