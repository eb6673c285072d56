/* The backend's table, and its extension SB_OPENCL_DEVICE for programs that call OpenCL. */
#include "device.h"

#include <string.h>

static cl_context context(const void *device) {
    return ((const struct sb__opencl_device *)device)->context;
}

static cl_device_id id(const void *device) {
    return ((const struct sb__opencl_device *)device)->id;
}

static int32_t memory(const void *device) {
    return ((const struct sb__opencl_device *)device)->memory->kind;
}

static cl_mem buffer(void *device, const void *ptr, size_t *out_offset) {
    return sb__opencl_locate(device, ptr, out_offset);
}

static const void *extension(void *device, const char *name) {
    static const sb_opencl_device table = {context, id, memory, buffer};
    (void)device;
    return strcmp(name, SB_OPENCL_DEVICE) == 0 ? &table : NULL;
}

static uint32_t lacks(void *opened) {
    const struct sb__opencl_device *device = opened;
    return (device->has_doubles ? 0u : (uint32_t)SB_DEVICE_LACKS_F64) |
           (device->memory->holds ? 0u : (uint32_t)SB_DEVICE_LACKS_CHECK_POINTER) |
           (device->memory->kind == SB_OPENCL_FINE_SVM ? 0u
                                                       : (uint32_t)SB_DEVICE_LACKS_HOST_COHERENT);
}

static const sb_backend backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .flags = SB_BACKEND_NO_DEFAULT_STREAM | SB_BACKEND_HOST_COHERENT,
    .name = "opencl",
    .open = sb__opencl_open,
    .close = sb__opencl_close,
    .alloc = sb__opencl_alloc,
    .free = sb__opencl_free,
    .zero = sb__opencl_zero,
    .upload = sb__opencl_upload,
    .download = sb__opencl_download,
    .copy = sb__opencl_copy,
    .check_pointer = sb__opencl_check_pointer,
    .own_stream = sb__opencl_own_stream,
    .check_stream = sb__opencl_check_stream,
    .stream_synchronize = sb__opencl_stream_synchronize,
    .event_record = sb__opencl_event_record,
    .stream_wait = sb__opencl_stream_wait,
    .event_wait = sb__opencl_event_wait,
    .event_destroy = sb__opencl_event_destroy,
    .prepare_arithmetic = sb__opencl_prepare_arithmetic,
    .axpy = sb__opencl_axpy,
    .scale = sb__opencl_scale,
    .asum = sb__opencl_asum,
    .sumsq = sb__opencl_sumsq,
    .event_query = sb__opencl_event_query,
    .extension = extension,
    .read_stream = sb__opencl_read_stream,
    .lacks = lacks,
};

const sb_backend *sb_opencl_backend(void) {
    return &backend;
}

#ifndef SB__STATIC
/* The entry point of a backend that is loaded at run time. The static library does not define this
   function, since a program may link several backends. */
SB_API const sb_backend *syncblob_backend(void);

const sb_backend *syncblob_backend(void) {
    return &backend;
}
#endif
