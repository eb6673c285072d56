#include "table.h"

#include "device.h"

#include <string.h>
#include <syncblob/cuda_device.h>
#include <syncblob/dlpack.h>

static int32_t ordinal(const void *device) {
    return ((const struct sb__cuda_device *)device)->ordinal;
}

static const sb_cuda_device device_table = {ordinal};

static const void *extension(void *device, const char *name) {
    (void)device;
    return strcmp(name, SB_CUDA_DEVICE) == 0 ? &device_table : NULL;
}

const sb_backend sb__cuda_backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .flags = SB_BACKEND_PINNED_NOT_IN_CHILD, /* CUDA does not document the use of page-locked memory
                                                in a forked child */
    .name = "cuda",
    .open = sb__cuda_open,
    .close = sb__cuda_close,
    .alloc = sb__cuda_alloc,
    .free = sb__cuda_free,
    .zero = sb__cuda_zero,
    .upload = sb__cuda_upload,
    .download = sb__cuda_download,
    .copy = sb__cuda_copy,
    .alloc_pinned = sb__cuda_alloc_pinned,
    .free_pinned = sb__cuda_free_pinned,
    .check_pointer = sb__cuda_check_pointer,
    .own_stream = sb__cuda_own_stream,
    .check_stream = sb__cuda_check_stream,
    .stream_synchronize = sb__cuda_stream_synchronize,
    .event_record = sb__cuda_event_record,
    .stream_wait = sb__cuda_stream_wait,
    .event_wait = sb__cuda_event_wait,
    .event_destroy = sb__cuda_event_destroy,
    .prepare_arithmetic = sb__cuda_prepare_arithmetic,
    .axpy = sb__cuda_axpy,
    .scale = sb__cuda_scale,
    .asum = sb__cuda_asum,
    .sumsq = sb__cuda_sumsq,
    .dlpack_device = SB_DL_DEVICE_CUDA,
    .dlpack_pinned = SB_DL_DEVICE_CUDA_HOST,
    .trim = sb__cuda_trim,
    .after_default = sb__cuda_after_default,
    .event_query = sb__cuda_event_query,
    .extension = extension,
};
