#ifndef SB_OPENCL_ARITHMETIC_H
#define SB_OPENCL_ARITHMETIC_H

#include "device.h"

/* The source of the kernels in OpenCL C (kernels.c). The build option -DDOUBLES adds the kernels
   that compute in double; -DOFFSETS adds the parameters for operands' offsets (has_offsets). */
extern const char sb__opencl_source[];

enum { SB__OPENCL_NUMBERS = 4 };

/* One launch. A kernel's parameters are `numbers`, `operands` and `sums`, in this order. */
struct sb__opencl_launch {
    enum sb__opencl_kernel kernel;
    sb_dtype dtype;
    size_t items; /* number of work items; a launch rounds it up to whole groups */
    struct {
        size_t bytes;
        const void *at;
    } numbers[SB__OPENCL_NUMBERS];
    const void *operands[2];
    cl_mem sums;
};

sb_status sb__opencl_launch(struct sb__opencl_device *device,
                            const struct sb__opencl_launch *launch, sb_stream stream,
                            sb_error *err);
/* Returns UNSUPPORTED for a dtype with which the device cannot compute. */
sb_status sb__opencl_check_dtype(const struct sb__opencl_device *device, sb_dtype dtype,
                                 sb_error *err);

#endif
