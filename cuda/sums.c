/* Sums by the library's kernels. cuBLAS adds floats in single precision, and would wait for the
   device while its handle is locked. The first launch computes one sum for each thread. If there
   are more than LAST_SUMS sums, a second launch reduces the sums to LAST_SUMS. The host adds the
   last sums. */
#include "blas.h"

#include "kernels.h"

#include <stdlib.h>

#define THREADS     SB__CUDA_THREADS
#define MOST_BLOCKS 1024 /* the maximum number of blocks of the first launch */
#define LAST_SUMS   1024 /* the maximum number of sums that the host adds */

static const char *const names[] = {"sb_asum_f32", "sb_asum_f64", "sb_sumsq_f32", "sb_sumsq_f64"};

sb_status sb__cuda_load_sums(const struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                             sb_error *err) {
    struct sb__cuda_visit visit;
    sb__cu_result result = sb__cuda_enter(device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return sb__cuda_status(device, result, visit.call, err);
    result = sb__cuda_named(&visit, device->cu->cuModuleLoadData(&blas->module, sb__cuda_kernels),
                            "cuModuleLoadData");
    for (int i = 0; i < 4 && result == SB__CUDA_SUCCESS; i++)
        result = sb__cuda_named(
            &visit, device->cu->cuModuleGetFunction(&blas->sums[i], blas->module, names[i]),
            "cuModuleGetFunction");
    return sb__cuda_status(device, sb__cuda_leave(device, &visit, result), visit.call, err);
}

void sb__cuda_unload_sums(const struct sb__cuda_device *device, const struct sb__cuda_blas *blas) {
    struct sb__cuda_visit visit;
    if (!blas->module || sb__cuda_enter_to_free(device, &visit) != SB__CUDA_SUCCESS)
        return;
    SB__CUDA_RELEASE(device->cu->cuModuleUnload(blas->module));
    (void)sb__cuda_leave(device, &visit, SB__CUDA_SUCCESS);
}

/* Queues a kernel that adds `count` elements and stores one sum for each thread in `sums`. */
static sb_status launch(const struct sb__cuda_device *device, sb__cu_function kernel, const void *x,
                        int64_t count, void *sums, unsigned int blocks, sb_stream stream,
                        sb_error *err) {
    struct sb__cuda_visit visit;
    sb__cu_ptr from = sb__cuda_address(x), to = sb__cuda_address(sums);
    uint64_t elements = (uint64_t)count;
    void *parameters[] = {&from, &elements, &to};
    sb__cu_result result = sb__cuda_enter_queue(device, sb__cuda_stream(stream), &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__cuda_leave_after(device, &visit,
                                      device->cu->cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1,
                                                                 1, 0, sb__cuda_stream(stream),
                                                                 parameters, NULL),
                                      "cuLaunchKernel");
    return sb__cuda_status(device, result, visit.call, err);
}

/* Returns the number of blocks that together have a thread for each vector of 16 bytes, but at most
   MOST_BLOCKS. */
static unsigned int blocks_for(int64_t count, int32_t dtype) {
    const int64_t elements = (int64_t)THREADS * 16 / (int64_t)sb_dtype_size(dtype);
    const int64_t blocks = count / elements + (count % elements != 0);
    return blocks < MOST_BLOCKS ? (unsigned int)blocks : MOST_BLOCKS;
}

/* A buffer for the sums that the host adds. `kept` is used if the buffer cannot be freed yet. */
struct last {
    struct sb__cuda_kept kept;
    double sums[LAST_SUMS];
};

/* Waits for the download into `*last`. If the wait fails twice, the download may still write the
   buffer. In this case passes the buffer to sb__cuda_keep_parts and sets `*last` to NULL. */
static sb_status wait_for(struct sb__cuda_device *device, struct last **last, sb_stream stream,
                          sb_error *err) {
    sb_error again;
    sb_status st = sb__cuda_stream_synchronize(device, stream, err);
    if (st == SB_OK || st == SB_ERR_DEVICE_LOST)
        return st;
    sb_status second = sb__cuda_stream_synchronize(device, stream, &again);
    if (second != SB_OK && second != SB_ERR_DEVICE_LOST) {
        (*last)->kept = (struct sb__cuda_kept){.kind = SB__CUDA_KEPT_PARTS, .bytes = sizeof **last};
        sb__cuda_keep_parts(device, &(*last)->kept, stream);
        *last = NULL;
    }
    return st;
}

/* Launches the kernels and adds the last sums on the host. `scratch` has space for the sums of both
   launches. The second launch uses the kernel of asum, since no sum is negative. */
static sb_status add(struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                     sb__cu_function kernel, unsigned int blocks, int64_t count, const void *x,
                     double *scratch, struct last **last, double *out, sb_stream stream,
                     sb_error *err) {
    int64_t sums = (int64_t)blocks * THREADS;
    const double *from = scratch;
    sb_status st = launch(device, kernel, x, count, scratch, blocks, stream, err);
    if (st == SB_OK && sums > LAST_SUMS) {
        from = scratch + sums;
        st = launch(device, blas->sums[SB__CUDA_ASUM + 1], scratch, sums, scratch + sums,
                    LAST_SUMS / THREADS, stream, err);
        sums = LAST_SUMS;
    }
    if (st == SB_OK)
        st = sb__cuda_download(device, (*last)->sums, from, (size_t)sums * sizeof *from, stream,
                               err);
    if (st == SB_OK)
        st = wait_for(device, last, stream, err);
    double total = 0;
    for (int64_t i = 0; i < sums && st == SB_OK; i++)
        total += (*last)->sums[i];
    *out = total;
    return st;
}

sb_status sb__cuda_sum(struct sb__cuda_device *device, const struct sb__cuda_blas *blas,
                       enum sb__cuda_sum kind, int32_t dtype, int64_t count, const void *x,
                       double *out, sb_stream stream, sb_error *err) {
    const unsigned int blocks = blocks_for(count, dtype);
    size_t bytes = ((size_t)blocks * THREADS + LAST_SUMS) * sizeof(double);
    sb__cu_function kernel = blas->sums[kind + (dtype == SB_DTYPE_F64)];
    void *scratch;
    struct last *last = calloc(1, sizeof *last);
    if (!last)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for the parts of a sum");
    sb_status st = sb__cuda_alloc(device, bytes, stream, &scratch, err);
    if (st == SB_OK) {
        st = add(device, blas, kernel, blocks, count, x, scratch, &last, out, stream, err);
        sb__cuda_free(device, scratch, bytes, stream);
    }
    free(last);
    return st;
}
