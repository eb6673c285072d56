#include "device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- finding the device ---------------------------------------------------------------- */

/* Refuses a forked child, because a driver's threads and locks do not survive a fork. */
static sb_status check_process(sb_error *err) {
    static _Atomic int64_t user; /* the first process that used OpenCL; a fork copies the value */
    const int64_t self = sb__opencl_process();
    int64_t first = 0;
    if (atomic_compare_exchange_strong(&user, &first, self) || first == self)
        return SB_OK;
    return sb_error_fill(
        err, SB_ERR_FORKED, 0,
        "OpenCL was used before this process was forked; call exec, or fork before "
        "the first use");
}

static sb_status fail_ordinal(const struct sb__opencl_device *device, cl_uint count,
                              sb_error *err) {
    if (!count)
        return sb__opencl_fail(err, SB_ERR_NO_DEVICE, 0,
                               "there is no opencl:%d: install a driver of OpenCL",
                               device->ordinal);
    return sb__opencl_fail(err, SB_ERR_NO_DEVICE, 0,
                           "there is no opencl:%d: the drivers report %u device%s", device->ordinal,
                           count, count == 1 ? "" : "s");
}

/* Finds device `*ordinal` of the platform. If the platform has fewer devices, subtracts their
   number from `*ordinal`. */
static cl_int find_on(struct sb__opencl_device *device, cl_platform_id platform, cl_uint *ordinal) {
    cl_uint count = 0;
    cl_int result = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (result == CL_DEVICE_NOT_FOUND)
        return CL_SUCCESS;
    if (result != CL_SUCCESS || *ordinal >= count) {
        *ordinal -= result == CL_SUCCESS ? count : 0;
        return result;
    }
    cl_device_id *ids = calloc(count, sizeof *ids);
    if (!ids)
        return CL_OUT_OF_HOST_MEMORY;
    result = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    if (result == CL_SUCCESS) {
        device->platform = platform;
        device->id = ids[*ordinal];
    }
    free((void *)ids);
    return result;
}

static sb_status find_among(struct sb__opencl_device *device, cl_platform_id *platforms,
                            cl_uint count, sb_error *err) {
    cl_uint ordinal = (cl_uint)device->ordinal;
    cl_int result = clGetPlatformIDs(count, platforms, NULL);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, "clGetPlatformIDs", err);
    for (cl_uint i = 0; i < count && !device->id && result == CL_SUCCESS; i++)
        result = find_on(device, platforms[i], &ordinal);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, "clGetDeviceIDs", err);
    return device->id ? SB_OK : fail_ordinal(device, (cl_uint)device->ordinal - ordinal, err);
}

static sb_status find_device(struct sb__opencl_device *device, sb_error *err) {
    cl_uint count = 0;
    const cl_int result = clGetPlatformIDs(0, NULL, &count);
    if (result == SB__OPENCL_NO_PLATFORM || (result == CL_SUCCESS && !count))
        return fail_ordinal(device, 0, err);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, "clGetPlatformIDs", err);
    cl_platform_id *platforms = calloc(count, sizeof *platforms);
    if (!platforms)
        return sb__opencl_status(device, CL_OUT_OF_HOST_MEMORY, "a list of platforms", err);
    const sb_status st = find_among(device, platforms, count, err);
    free((void *)platforms);
    return st;
}

/* --- opening --------------------------------------------------------------------------- */

static sb_status inspect(struct sb__opencl_device *device, sb_error *err) {
    char version[256] = "";
    cl_device_type type = 0;
    cl_device_fp_config doubles = 0;
    cl_int result = clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version, version, NULL);
    if (result == CL_SUCCESS)
        result = clGetDeviceInfo(device->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (result == CL_SUCCESS)
        result =
            clGetDeviceInfo(device->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, NULL);
    if (result != CL_SUCCESS)
        return sb__opencl_status(device, result, "clGetDeviceInfo", err);
    device->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    device->has_doubles = doubles != 0;
    if (strncmp(version, "OpenCL 1.", 9) != 0)
        return SB_OK;
    return sb__opencl_fail(err, SB_ERR_UNSUPPORTED, 0,
                           "opencl:%d has %.32s; the library needs OpenCL 2.0", device->ordinal,
                           version);
}

/* Chooses the device's best kind of memory. If `only` is not 0, chooses that kind or fails. */
static sb_status choose_memory(struct sb__opencl_device *device, int32_t only, sb_error *err) {
    static const struct sb__opencl_memory *const kinds[] = {&sb__opencl_fine_svm, &sb__opencl_usm,
                                                            &sb__opencl_svm, &sb__opencl_buffers};
    for (int i = 0; i < 4 && !device->memory; i++)
        if ((!only || kinds[i]->kind == only) && kinds[i]->open(device))
            device->memory = kinds[i];
    if (device->memory)
        return SB_OK;
    return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0, "the device has no memory of a required kind");
}

static sb_status create_parts(struct sb__opencl_device *device, sb_error *err) {
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->platform, 0};
    cl_int result;
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &result);
    if (!device->context)
        return sb__opencl_status(device, result, "clCreateContext", err);
    device->own.queue =
        clCreateCommandQueueWithProperties(device->context, device->id, NULL, &result);
    if (device->own.queue)
        device->reads.queue =
            clCreateCommandQueueWithProperties(device->context, device->id, NULL, &result);
    return device->reads.queue
               ? SB_OK
               : sb__opencl_status(device, result, "clCreateCommandQueueWithProperties", err);
}

static sb_status open_device(struct sb__opencl_device *device, int32_t only, sb_error *err) {
    sb_status st = find_device(device, err);
    if (st == SB_OK)
        st = inspect(device, err);
    if (st == SB_OK)
        st = create_parts(device, err);
    if (st == SB_OK)
        st = choose_memory(device, only, err);
    if (st == SB_ERR_DEVICE_LOST) /* this device was never open, so it cannot be lost */
        st = err->code = SB_ERR_NO_DEVICE;
    return st;
}

sb_status sb__opencl_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    static const sb__opencl_lock unlocked = SB__OPENCL_LOCK_INIT;
    sb_status st = check_process(err);
    if (st != SB_OK)
        return st;
    struct sb__opencl_device *device = calloc(1, sizeof *device);
    if (!device)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for an OpenCL device");
    device->ordinal = ordinal;
    device->table.lock = device->queued.lock = unlocked;
    device->own.lock = device->reads.lock = unlocked;
    sb__opencl_queued_begin(device);
    device->arithmetic.lock = device->arithmetic.sum_lock = unlocked;
    st = open_device(device, user ? *(const int32_t *)user : 0, err);
    if (st == SB_OK)
        *out = device;
    else
        sb__opencl_close(device);
    return st;
}

/* Also closes a device that was only partly opened. */
void sb__opencl_close(void *opened) {
    struct sb__opencl_device *device = opened;
    const cl_command_queue queues[] = {device->own.queue, device->reads.queue};
    for (int i = 0; i < 2; i++)
        if (queues[i] && sb__opencl_wait(device, queues[i]) != CL_SUCCESS)
            (void)sb__opencl_wait(device, queues[i]);
    sb__opencl_queued_end(device);
    sb__opencl_end_arithmetic(device);
    for (int i = 0; i < 2; i++)
        if (queues[i])
            (void)clReleaseCommandQueue(queues[i]);
    if (device->context)
        (void)clReleaseContext(device->context);
    free(device->table.at);
    free(device);
}
