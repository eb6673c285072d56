/* The simulated device's extension table. All functions except `lock` require the device's lock. */
#include "sim/device.h"

#include <stdlib.h>

static void lock(void *device) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_lock(&sim->lock);
}

static void unlock(void *device) {
    struct sb__sim *sim = device;
    sb__recursive_mutex_unlock(&sim->lock);
}

static void set_schedule(void *device, sb_sim_schedule schedule, uint64_t seed) {
    struct sb__sim *sim = device;
    sim->schedule = schedule;
    sim->random = seed;
}

static sb_sim_fault *faults(void *device, int32_t *out_count) {
    struct sb__sim *sim = device;
    *out_count = SB__SIM_MAX_FAULTS;
    return sim->faults;
}

static const int64_t *calls(const void *device, int32_t *out_count) {
    const struct sb__sim *sim = device;
    *out_count = SB_SIM_OP_COUNT;
    return sim->calls;
}

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    struct sb__sim *sim = device;
    sb_status st = sb__sim_check_lost(sim, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *stream = sb__sim_stream_add(sim);
    if (!stream)
        return sb__sim_fail_memory(err, sizeof *stream);
    *out = stream->handle;
    return SB_OK;
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
    struct sb__sim *sim = device;
    struct sb__sim_stream *found = sb__sim_stream_find(sim, stream);
    if (!found)
        return sb__sim_fail_stream(err, stream);
    if (found == &sim->own || found == &sim->legacy)
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0,
                             "the stream belongs to the context: it cannot be destroyed");
    sb__sim_stream_remove(sim, found);
    return SB_OK;
}

static sb_status launch(void *device, sb_stream handle, void (*kernel)(void *user), void *user,
                        sb_error *err) {
    struct sb__sim *sim = device;
    sb_status st = sb__sim_check_lost(sim, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *stream = sb__sim_stream_find(sim, handle);
    if (!stream)
        return sb__sim_fail_stream(err, handle);
    struct sb__sim_op *op = calloc(1, sizeof *op);
    if (!op)
        return sb__sim_fail_memory(err, sizeof *op);
    op->work = (struct sb__sim_work){.op = SB__SIM_LAUNCH, .kernel = kernel, .user = user};
    sb__sim_enqueue(sim, stream, op);
    return SB_OK;
}

static sb_status alloc_block(void *device, size_t bytes, void **out, sb_error *err) {
    struct sb__sim *sim = device;
    sb_status st = sb__sim_check_lost(sim, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_block *block = sb__sim_block_create(sim, bytes ? bytes : 1);
    if (!block)
        return sb__sim_fail_memory(err, bytes);
    block->user_owned = block->ready = true;
    *out = block->address;
    return SB_OK;
}

static sb_status free_block(void *device, void *ptr, sb_error *err) {
    struct sb__sim *sim = device;
    struct sb__sim_block *block = sb__sim_block_find(sim, ptr, 0);
    if (!ptr)
        return SB_OK;
    if (!block || block->address != ptr || !block->user_owned)
        return sb__sim_fail_device(err, "the pointer was not allocated by this table");
    sb__sim_block_remove(sim, block);
    sb__sim_block_free(block);
    return SB_OK;
}

static void *address(const void *device, const void *ptr, size_t bytes, int32_t *out_ready) {
    const struct sb__sim *sim = device;
    const struct sb__sim_block *block = sb__sim_block_find(sim, ptr, bytes);
    if (block && out_ready)
        *out_ready = block->ready;
    return sb__sim_translate(sim, ptr, bytes);
}

const sb_sim_device sb__sim_controls = {
    .struct_size = sizeof(sb_sim_device),
    .lock = lock,
    .unlock = unlock,
    .set_schedule = set_schedule,
    .faults = faults,
    .calls = calls,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .launch = launch,
    .alloc = alloc_block,
    .free = free_block,
    .address = address,
};
