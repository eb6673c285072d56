#include "conforming.h"

#include "host/arithmetic.h"
#include "sim/table.h"
#include "support.h"

static void print_result(void *user, const sb_conformance_result *result) {
    static const char *const outcomes[] = {"passed", "FAILED", "skipped"};
    if (result->outcome != SB_CONFORMANCE_PASSED)
        print_message("%s: %s: %s: %s\n", outcomes[result->outcome], (const char *)user,
                      result->claim, result->detail);
}

void assert_conforms(const char *name, const sb_backend *table,
                     const sb_conformance_options *options) {
    sb_conformance_options chosen = *options;
    int32_t failed = -1;
    if (test_is_full() && test_has_memory((size_t)9 << 30, (size_t)18 << 30))
        chosen.max_count = INT64_MAX;
    else if (test_is_quick())
        chosen.max_count = 10000;
    assert_ok(
        sb_conformance_run(table, &chosen, print_result, (void *)(uintptr_t)name, &failed, &err));
    assert_int_equal(failed, 0);
}

/* --- the host's arithmetic ------------------------------------------------------------------ */

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

/* --- the simulated device as a caller's backend ------------------------------------------------
 */

const sb_sim_device *simulated_controls(void *device) {
    return sb__sim_backend.extension(device, SB_SIM_DEVICE);
}

static sb_sim_schedule schedule; /* the schedule of devices that are opened next */

static sb_status open_device(void *user, int32_t ordinal, void **out, sb_error *err) {
    sb_status st = sb__sim_backend.open(user, ordinal, out, err);
    if (st == SB_OK)
        simulated_controls(*out)->set_schedule(*out, schedule, 1);
    return st;
}

sb_backend simulated_backend(sb_sim_schedule of_devices) {
    sb_backend table = sb__sim_backend;
    schedule = of_devices;
    table.open = open_device;
    return table;
}

static sb_status stream_create(void *user, void *device, sb_stream *out, sb_error *err) {
    const sb_sim_device *sim = simulated_controls(device);
    sim->lock(device);
    sb_status st = sim->stream_create(device, out, err);
    sim->unlock(device);
    return st;
}

static void stream_destroy(void *user, void *device, sb_stream stream) {
    const sb_sim_device *sim = simulated_controls(device);
    sim->lock(device);
    ignore(sim->stream_destroy(device, stream, NULL));
    sim->unlock(device);
}

static void fail_copy(void *user, void *device, int32_t later) {
    const sb_sim_device *sim = simulated_controls(device);
    int32_t count;
    sim->lock(device);
    sim->faults(device, &count)[0] =
        (sb_sim_fault){SB_SIM_COPY, later ? SB_SIM_FAIL_LATER : SB_SIM_FAIL_NOW, 1};
    sim->unlock(device);
}

sb_conformance_options simulated_options(void) {
    sb_conformance_options options = SB_CONFORMANCE_OPTIONS_INIT;
    options.stream_create = stream_create;
    options.stream_destroy = stream_destroy;
    options.fail_copy = fail_copy;
    return options;
}
