/* Computes axpy and scale with kernels that the driver compiles. The file sums.c computes sums. */
#include "arithmetic.h"

#include <string.h>

#define GROUP 64 /* the number of work items of a launch is a multiple of GROUP */

static int index_of(sb_dtype dtype) {
    return dtype == SB_DTYPE_F64;
}

/* --- the kernels ----------------------------------------------------------------------- */

static const char *const names[2][SB__OPENCL_KERNELS] = {
    {"axpy_float", "scale_float", "asum_float", "sumsq_float"},
    {"axpy_double", "scale_double", "asum_double", "sumsq_double"},
};

static void release(struct sb__opencl_arithmetic *arithmetic) {
    for (int index = 0; index < 2; index++)
        for (int i = 0; i < SB__OPENCL_KERNELS; i++)
            if (arithmetic->kernels[index][i])
                (void)clReleaseKernel(arithmetic->kernels[index][i]);
    if (arithmetic->program)
        (void)clReleaseProgram(arithmetic->program);
    memset((void *)arithmetic->kernels, 0, sizeof arithmetic->kernels);
    arithmetic->program = NULL;
}

static cl_int create_kernels(struct sb__opencl_arithmetic *arithmetic, int index, int count) {
    cl_int result = CL_SUCCESS;
    for (int i = 0; i < count && result == CL_SUCCESS; i++)
        arithmetic->kernels[index][i] =
            clCreateKernel(arithmetic->program, names[index][i], &result);
    return result;
}

static sb_status prepare(struct sb__opencl_device *device, sb_error *err) {
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    const bool has_doubles = device->has_doubles;
    static const char *const options[2][2] = {{"", "-DDOUBLES"},
                                              {"-DOFFSETS", "-DOFFSETS -DDOUBLES"}};
    const char *source = sb__opencl_source, *call = "clCreateProgramWithSource";
    cl_int result;
    arithmetic->program = clCreateProgramWithSource(device->context, 1, &source, NULL, &result);
    if (result == CL_SUCCESS) {
        call = "clBuildProgram";
        result = clBuildProgram(arithmetic->program, 1, &device->id,
                                options[device->memory->has_offsets][has_doubles], NULL, NULL);
    }
    if (result == CL_SUCCESS) {
        call = "clCreateKernel";
        result = create_kernels(arithmetic, 0, has_doubles ? SB__OPENCL_KERNELS : SB__OPENCL_ASUM);
    }
    if (result == CL_SUCCESS && has_doubles)
        result = create_kernels(arithmetic, 1, SB__OPENCL_KERNELS);
    if (result != CL_SUCCESS)
        release(arithmetic);
    return sb__opencl_status(device, result, call, err);
}

sb_status sb__opencl_prepare_arithmetic(void *opened, sb_error *err) {
    struct sb__opencl_device *device = opened;
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    sb_status st = SB_OK;
    if (atomic_load_explicit(&arithmetic->is_ready, memory_order_acquire))
        return SB_OK;
    sb__opencl_lock_take(&arithmetic->lock);
    if (!arithmetic->is_ready)
        st = prepare(device, err);
    if (st == SB_OK)
        atomic_store_explicit(&arithmetic->is_ready, true, memory_order_release);
    sb__opencl_lock_give(&arithmetic->lock);
    return st;
}

void sb__opencl_end_arithmetic(struct sb__opencl_device *device) {
    sb__opencl_end_sums(device);
    release(&device->arithmetic);
}

/* --- launches -------------------------------------------------------------------------- */

sb_status sb__opencl_check_dtype(const struct sb__opencl_device *device, sb_dtype dtype,
                                 sb_error *err) {
    if (dtype == SB_DTYPE_F32 || device->has_doubles)
        return SB_OK;
    return sb__opencl_fail(err, SB_ERR_UNSUPPORTED, 0, "opencl:%d has no doubles (cl_khr_fp64)",
                           device->ordinal);
}

static cl_int set_arguments(struct sb__opencl_device *device, cl_kernel kernel,
                            const struct sb__opencl_launch *launch) {
    const size_t element = sb_dtype_size(launch->dtype);
    cl_uint index = 0;
    cl_int result = CL_SUCCESS;
    for (int i = 0; i < SB__OPENCL_NUMBERS && launch->numbers[i].bytes && result == CL_SUCCESS; i++)
        result = clSetKernelArg(kernel, index++, launch->numbers[i].bytes, launch->numbers[i].at);
    for (int i = 0; i < 2 && launch->operands[i] && result == CL_SUCCESS; i++)
        result = device->memory->argument(device, kernel, &index, launch->operands[i], element);
    if (launch->sums && result == CL_SUCCESS)
        result = clSetKernelArg(kernel, index, sizeof launch->sums, (const void *)&launch->sums);
    return result;
}

/* Queues a kernel. Holds the lock while the function sets the kernel's arguments and queues it. */
static cl_int enqueue(struct sb__opencl_device *device, const struct sb__opencl_launch *launch,
                      cl_command_queue queue, cl_event *event) {
    struct sb__opencl_arithmetic *arithmetic = &device->arithmetic;
    cl_kernel kernel = arithmetic->kernels[index_of(launch->dtype)][launch->kernel];
    const size_t items = (launch->items + GROUP - 1) / GROUP * GROUP;
    sb__opencl_lock_take(&arithmetic->lock);
    cl_int result = set_arguments(device, kernel, launch);
    if (result == CL_SUCCESS)
        result = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, event);
    sb__opencl_lock_give(&arithmetic->lock);
    return result;
}

sb_status sb__opencl_launch(struct sb__opencl_device *device,
                            const struct sb__opencl_launch *launch, sb_stream stream,
                            sb_error *err) {
    const cl_command_queue queue = (cl_command_queue)stream;
    struct sb__opencl_command *command;
    const sb_status st = sb__opencl_begin(device, queue, &command, err);
    if (st != SB_OK)
        return st;
    const cl_int result = enqueue(device, launch, queue, &command->event);
    return sb__opencl_end(device, command, result, names[index_of(launch->dtype)][launch->kernel],
                          err);
}

/* Queues axpy, or scale if `x` is NULL. */
static sb_status update(struct sb__opencl_device *device, sb_dtype dtype, int64_t count,
                        double alpha, const void *x, void *y, sb_stream stream, sb_error *err) {
    const cl_ulong elements = (cl_ulong)count;
    const float rounded = (float)alpha;
    const bool is_float = dtype == SB_DTYPE_F32;
    const struct sb__opencl_launch launch = {
        .kernel = x ? SB__OPENCL_AXPY : SB__OPENCL_SCALE,
        .dtype = dtype,
        .items = (size_t)count,
        .numbers = {{sizeof elements, &elements},
                    {is_float ? sizeof rounded : sizeof alpha,
                     is_float ? (const void *)&rounded : (const void *)&alpha}},
        .operands = {y, x},
    };
    const sb_status st = sb__opencl_check_dtype(device, dtype, err);
    return st == SB_OK ? sb__opencl_launch(device, &launch, stream, err) : st;
}

sb_status sb__opencl_axpy(void *device, sb_dtype dtype, int64_t count, double alpha, const void *x,
                          void *y, sb_stream stream, sb_error *err) {
    return update(device, dtype, count, alpha, x, y, stream, err);
}

sb_status sb__opencl_scale(void *device, sb_dtype dtype, int64_t count, double alpha, void *x,
                           sb_stream stream, sb_error *err) {
    return update(device, dtype, count, alpha, NULL, x, stream, err);
}
