#include "device.h"

static sb_status fail_alloc(const struct sb__opencl_device *device, cl_int result, size_t bytes,
                            sb_error *err) {
    cl_ulong most = 0;
    if (clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL) !=
            CL_SUCCESS ||
        bytes <= most)
        return sb__opencl_status(device, result, "an allocation", err);
    return sb__opencl_fail(err, SB_ERR_OUT_OF_MEMORY, result,
                           "opencl:%d allocates at most %llu bytes at once", device->ordinal,
                           (unsigned long long)most);
}

/* Waits for `queue` and for the device's own queue, on which libsyncblob queues frees. Returns
   whether both waits succeeded. */
static bool has_waited_for_frees(struct sb__opencl_device *device, cl_command_queue queue) {
    const cl_command_queue own = device->own.queue;
    return sb__opencl_wait(device, own) == CL_SUCCESS &&
           (queue == own || sb__opencl_wait(device, queue) == CL_SUCCESS);
}

/* Allocates memory, which all streams may use immediately. If the allocation fails, waits for
   queued frees and retries. */
sb_status sb__opencl_alloc(void *opened, size_t bytes, sb_stream stream, void **out,
                           sb_error *err) {
    struct sb__opencl_device *device = opened;
    void *memory = NULL;
    cl_int result = device->memory->alloc(device, bytes, &memory);
    if (result != CL_SUCCESS && has_waited_for_frees(device, (cl_command_queue)stream))
        result = device->memory->alloc(device, bytes, &memory);
    if (result != CL_SUCCESS)
        return fail_alloc(device, result, bytes, err);
    *out = memory;
    return SB_OK;
}

void sb__opencl_free(void *opened, void *ptr, size_t bytes, sb_stream stream) {
    struct sb__opencl_device *device = opened;
    (void)bytes;
    device->memory->free(device, ptr, (cl_command_queue)stream);
}

sb_status sb__opencl_zero(void *opened, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    struct sb__opencl_device *device = opened;
    const cl_command_queue queue = (cl_command_queue)stream;
    struct sb__opencl_command *command;
    const sb_status st = sb__opencl_begin(device, queue, &command, err);
    if (st != SB_OK)
        return st;
    const cl_int result = device->memory->zero(device, dst, bytes, queue, &command->event);
    return sb__opencl_end(device, command, result, "zero", err);
}

/* Calls `function`, which queues a copy for the device's kind of memory. */
static sb_status transfer(struct sb__opencl_device *device, sb__opencl_transfer *function,
                          void *dst, const void *src, size_t bytes, sb_stream stream,
                          const char *call, sb_error *err) {
    const cl_command_queue queue = (cl_command_queue)stream;
    struct sb__opencl_command *command;
    const sb_status st = sb__opencl_begin(device, queue, &command, err);
    if (st != SB_OK)
        return st;
    const cl_int result = function(device, dst, src, bytes, queue, &command->event);
    return sb__opencl_end(device, command, result, call, err);
}

sb_status sb__opencl_upload(void *opened, void *dst, const void *src, size_t bytes,
                            sb_stream stream, sb_error *err) {
    struct sb__opencl_device *device = opened;
    return transfer(device, device->memory->upload, dst, src, bytes, stream, "upload", err);
}

sb_status sb__opencl_download(void *opened, void *dst, const void *src, size_t bytes,
                              sb_stream stream, sb_error *err) {
    struct sb__opencl_device *device = opened;
    return transfer(device, device->memory->download, dst, src, bytes, stream, "download", err);
}

sb_status sb__opencl_copy(void *opened, void *dst, const void *src, size_t bytes, sb_stream stream,
                          sb_error *err) {
    struct sb__opencl_device *device = opened;
    return transfer(device, device->memory->copy, dst, src, bytes, stream, "copy", err);
}

sb_status sb__opencl_check_pointer(void *opened, const void *ptr, size_t bytes, sb_error *err) {
    struct sb__opencl_device *device = opened;
    if (device->memory->holds(device, ptr, bytes))
        return SB_OK;
    return sb__opencl_fail(err, SB_ERR_WRONG_DEVICE, 0,
                           "%zu bytes at %p are not memory of opencl:%d", bytes, ptr,
                           device->ordinal);
}
