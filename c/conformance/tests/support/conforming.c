#include "conforming.h"

#include "host/arithmetic.h"
#include "sim/table.h"

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
    if (test_is_full() && !IS_SANITIZED) /* a sanitizer needs far more memory */
        chosen.max_count = INT64_MAX;
    else if (test_is_quick())
        chosen.max_count = 10000;
    assert_ok(
        sb_conformance_run(table, &chosen, print_result, (void *)(uintptr_t)name, &failed, &err));
    assert_int_equal(failed, 0);
}

static const struct sb__parallel alone = {NULL, NULL};

static sb_status host_prepare(void *device, sb_error *err) {
    return SB_OK;
}

static sb_status host_axpy SLOT_AXPY {
    sb__host_axpy(&alone, dtype, count, alpha, x, y);
    return SB_OK;
}

static sb_status host_scale SLOT_SCALE {
    sb__host_scale(&alone, dtype, count, alpha, x);
    return SB_OK;
}

static sb_status host_asum SLOT_SUM {
    *out = sb__host_asum(&alone, dtype, count, x);
    return SB_OK;
}

static sb_status host_sumsq SLOT_SUM {
    *out = sb__host_sumsq(&alone, dtype, count, x);
    return SB_OK;
}

sb_backend host_backend;

__attribute__((constructor)) static void make_host_backend(void) {
    static struct plain plain;
    host_backend = plain_backend(&plain);
    host_backend.name = "host";
    host_backend.prepare_arithmetic = host_prepare;
    host_backend.axpy = host_axpy;
    host_backend.scale = host_scale;
    host_backend.asum = host_asum;
    host_backend.sumsq = host_sumsq;
}

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
