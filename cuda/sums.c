#include "blas.h"

#include <math.h>

/* cuBLAS adds floats in floats, in an order that its guide leaves open. If 8192 threads or more
   share a piece, each adds 128 elements, and halving their sums takes 13 steps: the error of a sum
   is (128 / 2 + 13) * 2^-24 of it at most, 5e-6. Pieces are added in double. */
#define PIECE ((int64_t)1 << 20)

/* Squares of floats may be larger than any float, or lose bits below the smallest ones: then the
   piece is added once more, its values times a power of two. Of squares that add up to less than
   this, those that were lost may be worth something. */
#define SMALLEST_SUM 0x1p-80F
#define UP           0x1p90F
#define DOWN         0x1p-80F

struct piece {
    enum sb__cuda_sum kind;
    int64_t count;
    const float *x;
    float *scaled; /* NULL: x is added as it is */
    float factor;
    float sum;
};

static sb__cublas_status add(const struct sb__cuda_blas *blas, void *user) {
    struct piece *p = user;
    const struct sb__cublas *cublas = blas->functions;
    const float *x = p->scaled ? p->scaled : p->x;
    if (p->scaled) {
        sb__cublas_status status =
            cublas->cublasSscal_v2_64(blas->handle, p->count, &p->factor, p->scaled, 1);
        if (status != SB__CUBLAS_STATUS_SUCCESS)
            return status;
    }
    return p->kind == SB__CUDA_ASUM
               ? cublas->cublasSasum_v2_64(blas->handle, p->count, x, 1, &p->sum)
               : cublas->cublasSdot_v2_64(blas->handle, p->count, x, 1, x, 1, &p->sum);
}

static sb_status add_scaled(struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                            struct piece *piece, float factor, double *out, sb_stream stream,
                            sb_error *err) {
    size_t bytes = (size_t)piece->count * sizeof(float);
    void *scratch;
    sb_status st = sb__cuda_alloc(device, bytes, stream, &scratch, err);
    if (st != SB_OK)
        return st;
    piece->scaled = scratch;
    piece->factor = factor;
    st = sb__cuda_copy(device, scratch, piece->x, bytes, stream, err);
    if (st == SB_OK)
        st = sb__cuda_blas_run(device, blas, add, piece, stream, err);
    sb__cuda_free(device, scratch, bytes, stream);
    *out = (double)piece->sum / (double)factor;
    if (piece->kind == SB__CUDA_SUMSQ)
        *out /= (double)factor;
    return st;
}

static sb_status add_piece(struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                           struct piece *piece, double *out, sb_stream stream, sb_error *err) {
    sb_status st = sb__cuda_blas_run(device, blas, add, piece, stream, err);
    *out = (double)piece->sum;
    if (st != SB_OK)
        return st;
    if (!isfinite(piece->sum))
        return add_scaled(device, blas, piece, DOWN, out, stream, err);
    if (piece->kind == SB__CUDA_ASUM || piece->sum >= SMALLEST_SUM)
        return SB_OK;
    struct piece absolute = {.kind = SB__CUDA_ASUM, .count = piece->count, .x = piece->x};
    st = sb__cuda_blas_run(device, blas, add, &absolute, stream, err);
    if (st != SB_OK || absolute.sum == 0)
        return st;
    return add_scaled(device, blas, piece, UP, out, stream, err);
}

sb_status sb__cuda_sum_f32(struct sb__cuda_device *device, struct sb__cuda_blas *blas,
                           enum sb__cuda_sum kind, int64_t count, const float *x, double *out,
                           sb_stream stream, sb_error *err) {
    double total = 0;
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t left = count - at;
        double sum;
        struct piece piece = {.kind = kind, .count = left < PIECE ? left : PIECE, .x = x + at};
        sb_status st = add_piece(device, blas, &piece, &sum, stream, err);
        if (st != SB_OK)
            return st;
        total += sum;
    }
    *out = total;
    return SB_OK;
}
