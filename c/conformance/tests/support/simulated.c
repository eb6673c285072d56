/* The simulated device as a caller's backend. */
#include "conforming.h"

#include "ignore.h"

#include "sim/table.h"

#include <string.h>

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
