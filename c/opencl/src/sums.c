/* Sums. Each work item computes a part of the sum. The host adds the parts in order, so the result
   does not depend on the schedule. If the device has no doubles, the host adds all elements. */
#include "arithmetic.h"

#include <math.h>
#include <stdlib.h>

/* The maximum numbers of work items. On a CPU each item adds one contiguous range. On a GPU the
   items read neighbouring vectors at the same time. */
#define CPU_ITEMS 256
#define GPU_ITEMS 16384

/* --- memory for the parts -------------------------------------------------------------- */

static void free_parts(struct sb__opencl_parts *parts) {
    if (parts->sums)
        (void)clReleaseMemObject(parts->sums);
    free(parts->host);
    free(parts);
}

static cl_int fill_parts(const struct sb__opencl_device *device, struct sb__opencl_parts *parts) {
    cl_int result = CL_SUCCESS;
    parts->count = device->is_cpu ? CPU_ITEMS : GPU_ITEMS;
    parts->host = malloc(parts->count * sizeof *parts->host);
    if (!parts->host)
        return CL_OUT_OF_HOST_MEMORY;
    if (device->has_doubles)
        parts->sums = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                     parts->count * sizeof *parts->host, NULL, &result);
    return result;
}

/* Returns the device's parts. On failure returns NULL and fills `err`. Call with sum_lock held. */
static struct sb__opencl_parts *get_parts(struct sb__opencl_device *device, sb_error *err) {
    if (device->arithmetic.parts)
        return device->arithmetic.parts;
    struct sb__opencl_parts *parts = calloc(1, sizeof *parts);
    const cl_int result = parts ? fill_parts(device, parts) : CL_OUT_OF_HOST_MEMORY;
    if (result != CL_SUCCESS) {
        (void)sb__opencl_status(device, result, "memory for the parts of a sum", err);
        if (parts)
            free_parts(parts);
        return NULL;
    }
    device->arithmetic.parts = parts;
    return parts;
}

void sb__opencl_end_sums(struct sb__opencl_device *device) {
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    struct sb__opencl_parts *parts = arithmetic->parts ? arithmetic->parts : arithmetic->abandoned;
    if (arithmetic->parts)
        parts->next = arithmetic->abandoned;
    while (parts) {
        struct sb__opencl_parts *next = parts->next;
        free_parts(parts);
        parts = next;
    }
}

/* Waits for the work that writes the parts, and retries a failed wait once. Returns a failure of
   the work, even if only one of the two waits has returned it. If both waits fail, abandons the
   parts. */
static sb_status wait_for_parts(struct sb__opencl_device *device, sb_stream stream, sb_error *err) {
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    sb_error again;
    const sb_status st = sb__opencl_stream_synchronize(device, stream, err);
    if (st == SB_OK || st == SB_ERR_DEVICE_LOST)
        return st;
    const sb_status second = sb__opencl_stream_synchronize(device, stream, &again);
    if (second != SB_OK && second != SB_ERR_DEVICE_LOST) {
        arithmetic->parts->next = arithmetic->abandoned;
        arithmetic->abandoned = arithmetic->parts;
        arithmetic->parts = NULL;
    }
    if (st == SB_ERR_OUT_OF_MEMORY && second != SB_OK)
        *err = again;
    return st == SB_ERR_OUT_OF_MEMORY ? second : st;
}

/* --- on the device --------------------------------------------------------------------- */

struct sum {
    enum sb__opencl_kernel kernel;
    sb_dtype dtype;
    int64_t count;
    const void *x;
    sb_stream stream;
};

static sb_status launch(struct sb__opencl_device *device, const struct sum *sum,
                        const struct sb__opencl_parts *parts, size_t items, sb_error *err) {
    const cl_ulong count = (cl_ulong)sum->count, vectors = count / 8;
    const cl_ulong range = (vectors + items - 1) / items;
    const cl_ulong span = device->is_cpu ? range : 1, reach = device->is_cpu ? range : vectors;
    const cl_ulong step = device->is_cpu ? 1 : items;
    const struct sb__opencl_launch launch = {
        .kernel = sum->kernel,
        .dtype = sum->dtype,
        .items = items,
        .numbers = {{sizeof count, &count},
                    {sizeof span, &span},
                    {sizeof reach, &reach},
                    {sizeof step, &step}},
        .operands = {sum->x},
        .sums = parts->sums,
    };
    return sb__opencl_launch(device, &launch, sum->stream, err);
}

static sb_status read_parts(struct sb__opencl_device *device, const struct sum *sum,
                            const struct sb__opencl_parts *parts, size_t items, sb_error *err) {
    const cl_command_queue queue = (cl_command_queue)sum->stream;
    struct sb__opencl_command *command;
    const sb_status st = sb__opencl_begin(device, queue, &command, err);
    if (st != SB_OK)
        return st;
    const cl_int result =
        clEnqueueReadBuffer(queue, parts->sums, CL_FALSE, 0, items * sizeof *parts->host,
                            parts->host, 0, NULL, &command->event);
    return sb__opencl_end(device, command, result, "clEnqueueReadBuffer", err);
}

/* Returns the number of work items: one for each vector, in whole groups, at most parts->count. */
static size_t items_for(const struct sb__opencl_parts *parts, int64_t count) {
    const size_t groups = (size_t)(count / 8) / 64 + 1;
    return groups < parts->count / 64 ? groups * 64 : parts->count;
}

static sb_status sum_on_device(struct sb__opencl_device *device, const struct sum *sum,
                               const struct sb__opencl_parts *parts, double *out, sb_error *err) {
    const size_t items = items_for(parts, sum->count);
    double total = 0;
    sb_status st = launch(device, sum, parts, items, err);
    if (st == SB_OK)
        st = read_parts(device, sum, parts, items, err);
    if (st == SB_OK)
        st = wait_for_parts(device, sum->stream, err);
    for (size_t i = 0; i < items && st == SB_OK; i++)
        total += parts->host[i];
    *out = total;
    return st;
}

/* --- on the host ----------------------------------------------------------------------- */

static double add(enum sb__opencl_kernel kernel, const float *x, size_t count) {
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += kernel == SB__OPENCL_ASUM ? fabs((double)x[i]) : (double)x[i] * (double)x[i];
    return total;
}

/* Downloads 32-bit elements piece by piece, and adds them. */
static sb_status sum_on_host(struct sb__opencl_device *device, const struct sum *sum,
                             const struct sb__opencl_parts *parts, double *out, sb_error *err) {
    const size_t most = parts->count * sizeof *parts->host / sizeof(float);
    const float *x = sum->x;
    size_t left = (size_t)sum->count;
    sb_status st = SB_OK;
    *out = 0;
    while (left && st == SB_OK) {
        const size_t count = left < most ? left : most;
        st = sb__opencl_download(device, parts->host, x, count * sizeof *x, sum->stream, err);
        if (st == SB_OK)
            st = wait_for_parts(device, sum->stream, err);
        if (st == SB_OK)
            *out += add(sum->kernel, (const float *)(const void *)parts->host, count);
        x += count;
        left -= count;
    }
    return st;
}

/* --- the slots ------------------------------------------------------------------------- */

/* Computes a sum. After a sum libsyncblob regards earlier arithmetic of the stream as successful.
   The wait must therefore report failures of that arithmetic, too. */
static sb_status run(struct sb__opencl_device *device, const struct sum *sum, double *out,
                     sb_error *err) {
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    sb_status st = sb__opencl_check_dtype(device, sum->dtype, err);
    if (st != SB_OK)
        return st;
    sb__opencl_lock_take(&arithmetic->sum_lock);
    const struct sb__opencl_parts *parts = get_parts(device, err);
    if (parts)
        st = (device->has_doubles ? sum_on_device : sum_on_host)(device, sum, parts, out, err);
    else
        st = err->code;
    sb__opencl_lock_give(&arithmetic->sum_lock);
    return st;
}

sb_status sb__opencl_asum(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                          sb_stream stream, sb_error *err) {
    const struct sum sum = {SB__OPENCL_ASUM, dtype, count, x, stream};
    return run(device, &sum, out, err);
}

sb_status sb__opencl_sumsq(void *device, sb_dtype dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    const struct sum sum = {SB__OPENCL_SUMSQ, dtype, count, x, stream};
    return run(device, &sum, out, err);
}
