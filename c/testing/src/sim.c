/* Schedules, streams and memory of the simulated device. */
#include <syncblob/sim.h>

#include "device.h"

#include <stdbool.h>
#include <string.h>

sb_status sb_sim_set_schedule(sb_context *context, sb_sim_schedule schedule, uint64_t seed,
                              sb_error *err) {
    struct sb__testing_handle sim;
    if (schedule < SB_SIM_EAGER || schedule > SB_SIM_RANDOM)
        return sb__testing_fail(err, SB_ERR_INVALID_ARGUMENT, "schedule %d is not an SB_SIM_*",
                                schedule);
    sb_status st = sb__testing_lock(context, &sim, err);
    if (st != SB_OK)
        return st;
    sim.table->set_schedule(sim.device, schedule, seed);
    return sb__testing_unlock(&sim, SB_OK);
}

sb_status sb_sim_stream_create(sb_context *context, sb_stream *out, sb_error *err) {
    struct sb__testing_handle sim;
    if (!out)
        return sb__testing_fail_null(err, "out");
    sb_status st = sb__testing_lock(context, &sim, err);
    return st == SB_OK ? sb__testing_unlock(&sim, sim.table->stream_create(sim.device, out, err))
                       : st;
}

sb_status sb_sim_stream_destroy(sb_context *context, sb_stream stream, sb_error *err) {
    struct sb__testing_handle sim;
    if (!stream)
        return sb__testing_fail_null(err, "stream");
    sb_status st = sb__testing_lock(context, &sim, err);
    return st == SB_OK
               ? sb__testing_unlock(&sim, sim.table->stream_destroy(sim.device, stream, err))
               : st;
}

sb_status sb_sim_launch(sb_context *context, sb_stream stream, void (*kernel)(void *user),
                        void *user, sb_error *err) {
    struct sb__testing_handle sim;
    if (!kernel)
        return sb__testing_fail_null(err, "kernel");
    sb_status st = sb__testing_lock(context, &sim, err);
    return st == SB_OK
               ? sb__testing_unlock(&sim, sim.table->launch(sim.device, stream, kernel, user, err))
               : st;
}

sb_status sb_sim_malloc(sb_context *context, size_t bytes, void **out, sb_error *err) {
    struct sb__testing_handle sim;
    if (!out)
        return sb__testing_fail_null(err, "out");
    sb_status st = sb__testing_lock(context, &sim, err);
    return st == SB_OK ? sb__testing_unlock(&sim, sim.table->alloc(sim.device, bytes, out, err))
                       : st;
}

sb_status sb_sim_free(sb_context *context, void *ptr, sb_error *err) {
    struct sb__testing_handle sim;
    sb_status st = sb__testing_lock(context, &sim, err);
    return st == SB_OK ? sb__testing_unlock(&sim, sim.table->free(sim.device, ptr, err)) : st;
}

void *sb_sim_address(const sb_context *context, const void *ptr, size_t bytes) {
    struct sb__testing_handle sim;
    int32_t is_ready = 0;
    if (sb__testing_lock(context, &sim, NULL) != SB_OK)
        return NULL;
    void *address = sim.table->address(sim.device, ptr, bytes, &is_ready);
    (void)sb__testing_unlock(&sim, SB_OK);
    return is_ready ? address : NULL;
}

/* Copies host memory `src` to device memory `dst` if `writes`, else device memory `src` to host
   memory `dst`. */
static sb_status copy(const sb_context *context, void *dst, const void *src, size_t bytes,
                      bool writes, sb_error *err) {
    struct sb__testing_handle sim;
    if (!dst || !src)
        return sb__testing_fail_null(err, dst ? "src" : "dst");
    sb_status st = sb__testing_lock(context, &sim, err);
    if (st != SB_OK)
        return st;
    void *host = sim.table->address(sim.device, writes ? dst : src, bytes, NULL);
    if (host)
        memcpy(writes ? host : dst, writes ? src : host, bytes);
    else
        st = sb__testing_fail(err, SB_ERR_DEVICE_FAILURE,
                              "the range is not allocated on this device");
    return sb__testing_unlock(&sim, st);
}

sb_status sb_sim_peek(const sb_context *context, void *dst, const void *src, size_t bytes,
                      sb_error *err) {
    return copy(context, dst, src, bytes, false, err);
}

sb_status sb_sim_poke(sb_context *context, void *dst, const void *src, size_t bytes,
                      sb_error *err) {
    return copy(context, dst, src, bytes, true, err);
}
