/* The library's kernels, which add in double precision. */
#ifndef SB_CUDA_KERNELS_H
#define SB_CUDA_KERNELS_H

/* The number of threads of a block. */
#define SB__CUDA_THREADS 256

/* PTX of sb_asum_f32, sb_asum_f64, sb_sumsq_f32, sb_sumsq_f64, each with (x, count, sums). */
extern const char sb__cuda_kernels[];

#endif
