/* The host's arithmetic as a backend. */
#include "conforming.h"

#include "aligned.h"
#include "host/arithmetic.h"

static const struct sb__parallel alone = {NULL, NULL};

static sb_status host_open(void *user, int32_t ordinal, void **out, sb_error *err) {
    *out = (void *)(uintptr_t)&alone;
    return SB_OK;
}

static void host_close(void *device) {
}

static sb_status host_alloc(void *device, size_t bytes, sb_stream stream, void **out,
                            sb_error *err) {
    static const uint64_t limit = (uint64_t)1 << 40; /* sanitizers abort above this size */
    *out = bytes < limit ? test_aligned_alloc(64, bytes) : NULL;
    if (*out)
        return SB_OK;
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory");
}

static void host_free(void *device, void *ptr, size_t bytes, sb_stream stream) {
    test_aligned_free(ptr);
}

static sb_status host_zero(void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err) {
    sb__host_zero(&alone, dst, bytes);
    return SB_OK;
}

static sb_status host_copy(void *device, void *dst, const void *src, size_t bytes, sb_stream stream,
                           sb_error *err) {
    sb__host_copy(&alone, dst, src, bytes);
    return SB_OK;
}

static sb_status host_prepare(void *device, sb_error *err) {
    return SB_OK;
}

static sb_status host_axpy(void *device, int32_t dtype, int64_t count, double alpha, const void *x,
                           void *y, sb_stream stream, sb_error *err) {
    sb__host_axpy(&alone, dtype, count, alpha, x, y);
    return SB_OK;
}

static sb_status host_scale(void *device, int32_t dtype, int64_t count, double alpha, void *x,
                            sb_stream stream, sb_error *err) {
    sb__host_scale(&alone, dtype, count, alpha, x);
    return SB_OK;
}

static sb_status host_asum(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                           sb_stream stream, sb_error *err) {
    *out = sb__host_asum(&alone, dtype, count, x);
    return SB_OK;
}

static sb_status host_sumsq(void *device, int32_t dtype, int64_t count, const void *x, double *out,
                            sb_stream stream, sb_error *err) {
    *out = sb__host_sumsq(&alone, dtype, count, x);
    return SB_OK;
}

const sb_backend host_backend = {
    .struct_size = sizeof(sb_backend),
    .abi_version = SB_BACKEND_ABI_VERSION,
    .name = "host",
    .open = host_open,
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .zero = host_zero,
    .upload = host_copy,
    .download = host_copy,
    .copy = host_copy,
    .prepare_arithmetic = host_prepare,
    .axpy = host_axpy,
    .scale = host_scale,
    .asum = host_asum,
    .sumsq = host_sumsq,
};
