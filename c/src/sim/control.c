/* The functions by which a test steers the device and looks into it. */
#include "sim/device.h"

#include "base/error.h"
#include "context/context.h"

#include <stdlib.h>
#include <string.h>

/* The device, locked: unlock it. */
static sb_status lock_device(const sb_context *context, struct sb__sim **out, sb_error *err) {
    *out = NULL;
    if (!context)
        return sb__fail_null(err, "context");
    if (!context->has_device || context->backend.open != sb__sim_backend.open)
        return sb__fail(err, SB_ERR_WRONG_DEVICE, "the context's device is %s, no simulated one",
                        context->device_name);
    if (context->fork_generation != atomic_load(&sb__fork_generation))
        return sb__fail(err, SB_ERR_FORKED, "%s was opened before a fork", context->device_name);
    *out = context->device;
    sb__recursive_mutex_lock(&(*out)->lock);
    return SB_OK;
}

static sb_status unlock(struct sb__sim *sim, sb_status status) {
    sb__recursive_mutex_unlock(&sim->lock);
    return status;
}

sb_status sb_sim_set_schedule(sb_context *context, sb_sim_schedule schedule, uint64_t seed,
                              sb_error *err) {
    struct sb__sim *sim;
    if (schedule < SB_SIM_EAGER || schedule > SB_SIM_RANDOM)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "schedule %d is none of SB_SIM_*", schedule);
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    sim->schedule = schedule;
    sim->random = seed;
    return unlock(sim, SB_OK);
}

static sb_status arm_fault(sb_context *context, sb_sim_op op, int64_t nth, sb_sim_failure mode,
                           bool alone, sb_error *err) {
    struct sb__sim *sim;
    int slot = 0;
    if (op < SB_SIM_ANY || op >= SB_SIM_OP_COUNT)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "operation %d is none of SB_SIM_*", op);
    if (mode < SB_SIM_FAIL_NOW || mode > SB_SIM_FAIL_STICKY || nth < (alone ? 0 : 1))
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "no call %lld can fail in mode %d",
                        (long long)nth, mode);
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    for (int i = 0; alone && i < SB__SIM_MAX_FAULTS; i++)
        sim->armed[i].in = 0;
    while (slot < SB__SIM_MAX_FAULTS && sim->armed[slot].in)
        slot++;
    if (slot == SB__SIM_MAX_FAULTS)
        return unlock(sim, sb__fail(err, SB_ERR_OVER_LIMIT, "%d faults are armed already", slot));
    sim->armed[slot] = (struct sb__sim_fault){.op = op, .mode = mode, .in = nth};
    return unlock(sim, SB_OK);
}

sb_status sb_sim_fail(sb_context *context, sb_sim_op op, int64_t nth, sb_sim_failure mode,
                      sb_error *err) {
    return arm_fault(context, op, nth, mode, true, err);
}

sb_status sb_sim_fail_also(sb_context *context, sb_sim_op op, int64_t nth, sb_sim_failure mode,
                           sb_error *err) {
    return arm_fault(context, op, nth, mode, false, err);
}

sb_status sb_sim_calls(const sb_context *context, int64_t *out, int32_t count, sb_error *err) {
    struct sb__sim *sim;
    if (!out)
        return sb__fail_null(err, "out");
    if (count < 0)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "count is %d, which is negative", count);
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    for (int32_t op = 0; op < count; op++)
        out[op] = op < SB_SIM_OP_COUNT ? sim->calls[op] : 0;
    return unlock(sim, SB_OK);
}

sb_status sb_sim_stream_create(sb_context *context, sb_stream *out, sb_error *err) {
    struct sb__sim *sim;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    st = sb__sim_check_lost(sim, err);
    if (st != SB_OK)
        return unlock(sim, st);
    struct sb__sim_stream *stream = sb__sim_stream_add(sim);
    if (!stream)
        return unlock(sim, sb__sim_fail_memory(err, sizeof *stream));
    *out = stream->handle;
    return unlock(sim, SB_OK);
}

sb_status sb_sim_stream_destroy(sb_context *context, sb_stream stream, sb_error *err) {
    struct sb__sim *sim;
    if (!stream)
        return sb__fail_null(err, "stream");
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_stream *found = sb__sim_stream_find(sim, stream);
    if (!found)
        return unlock(sim, sb__sim_fail_stream(err, stream));
    if (found == &sim->own)
        return unlock(sim, sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                                    "the library's own stream lives as long as its context"));
    sb__sim_stream_remove(sim, found);
    return unlock(sim, SB_OK);
}

static sb_status launch(struct sb__sim *sim, sb_stream handle, void (*kernel)(void *user),
                        void *user, sb_error *err) {
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

sb_status sb_sim_launch(sb_context *context, sb_stream stream, void (*kernel)(void *user),
                        void *user, sb_error *err) {
    struct sb__sim *sim;
    if (!kernel)
        return sb__fail_null(err, "kernel");
    sb_status st = lock_device(context, &sim, err);
    return st == SB_OK ? unlock(sim, launch(sim, stream, kernel, user, err)) : st;
}

void *sb_sim_address(const sb_context *context, const void *ptr, size_t bytes) {
    struct sb__sim *sim;
    if (lock_device(context, &sim, NULL) != SB_OK)
        return NULL;
    const struct sb__sim_block *block = sb__sim_block_find(sim, ptr, bytes);
    void *address = block && block->ready ? sb__sim_translate(sim, ptr, bytes) : NULL;
    (void)unlock(sim, SB_OK);
    return address;
}

sb_status sb_sim_malloc(sb_context *context, size_t bytes, void **out, sb_error *err) {
    struct sb__sim *sim;
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    st = sb__sim_check_lost(sim, err);
    if (st != SB_OK)
        return unlock(sim, st);
    struct sb__sim_block *block = sb__sim_block_create(sim, bytes ? bytes : 1);
    if (!block)
        return unlock(sim, sb__sim_fail_memory(err, bytes));
    block->user_owned = block->ready = true;
    *out = block->address;
    return unlock(sim, SB_OK);
}

sb_status sb_sim_free(sb_context *context, void *ptr, sb_error *err) {
    struct sb__sim *sim;
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    struct sb__sim_block *block = sb__sim_block_find(sim, ptr, 0);
    if (ptr && !(block && block->address == ptr && block->user_owned))
        return unlock(sim, sb__sim_fail_device(err, "the pointer is none of sb_sim_malloc"));
    if (ptr) {
        sb__sim_block_remove(sim, block);
        sb__sim_block_free(block);
    }
    return unlock(sim, SB_OK);
}

/* Host memory behind a device pointer. */
static sb_status look(const struct sb__sim *sim, const void *ptr, size_t bytes, void **out,
                      sb_error *err) {
    *out = sb__sim_translate(sim, ptr, bytes);
    return *out ? SB_OK : sb__sim_fail_device(err, "the range is not allocated on this device");
}

sb_status sb_sim_peek(const sb_context *context, void *dst, const void *src, size_t bytes,
                      sb_error *err) {
    struct sb__sim *sim;
    void *host;
    if (!dst || !src)
        return sb__fail_null(err, dst ? "src" : "dst");
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    st = look(sim, src, bytes, &host, err);
    if (st == SB_OK)
        memcpy(dst, host, bytes);
    return unlock(sim, st);
}

sb_status sb_sim_poke(sb_context *context, void *dst, const void *src, size_t bytes,
                      sb_error *err) {
    struct sb__sim *sim;
    void *host;
    if (!dst || !src)
        return sb__fail_null(err, dst ? "src" : "dst");
    sb_status st = lock_device(context, &sim, err);
    if (st != SB_OK)
        return st;
    st = look(sim, dst, bytes, &host, err);
    if (st == SB_OK)
        memcpy(host, src, bytes);
    return unlock(sim, st);
}
