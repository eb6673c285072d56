#include "host/arithmetic.h"
#include "sim/device.h"

#include <stdio.h>
#include <string.h>

struct traits {
    const char *name;
    bool writes_device, reads_device;
    bool replaces_target; /* the operation writes every byte of the target */
};

static const struct traits *traits_of(int32_t op) {
    static const struct traits all[] = {
        [SB_SIM_ALLOC] = {"alloc", false, false, false},
        [SB_SIM_ZERO] = {"zero", true, false, true},
        [SB_SIM_UPLOAD] = {"upload", true, false, true},
        [SB_SIM_DOWNLOAD] = {"download", false, true, true},
        [SB_SIM_COPY] = {"copy", true, true, true},
        [SB_SIM_ALLOC_PINNED] = {"alloc_pinned", false, false, false},
        [SB_SIM_CHECK_POINTER] = {"check_pointer", false, false, false},
        [SB_SIM_CHECK_STREAM] = {"check_stream", false, false, false},
        [SB_SIM_STREAM_SYNCHRONIZE] = {"stream_synchronize", false, false, false},
        [SB_SIM_EVENT_RECORD] = {"event_record", false, false, false},
        [SB_SIM_STREAM_WAIT] = {"stream_wait", false, false, false},
        [SB_SIM_EVENT_WAIT] = {"event_wait", false, false, false},
        [SB_SIM_PREPARE_ARITHMETIC] = {"prepare_arithmetic", false, false, false},
        [SB_SIM_AXPY] = {"axpy", true, true, false},
        [SB_SIM_SCALE] = {"scale", true, false, false},
        [SB_SIM_ASUM] = {"asum", false, true, false},
        [SB_SIM_SUMSQ] = {"sumsq", false, true, false},
        [SB__SIM_LAUNCH] = {"launch", false, false, false},
        [SB__SIM_READY] = {"alloc", false, false, false},
        [SB__SIM_FREE] = {"free", false, false, false},
    };
    return &all[op];
}

const char *sb__sim_op_name(int32_t op) {
    return traits_of(op)->name;
}

bool sb__sim_replaces_target(int32_t op) {
    return traits_of(op)->replaces_target;
}

static bool explain(char reason[SB__SIM_REASON], const char *name, size_t bytes, const void *ptr,
                    const char *what) {
    (void)snprintf(reason, SB__SIM_REASON, "%s of %zu bytes at %p: %s", name, bytes, ptr, what);
    return false;
}

static bool operand_is_valid(const struct sb__sim *sim, const struct sb__sim_work *work,
                             const void *ptr, bool on_device, bool at_turn,
                             char reason[SB__SIM_REASON]) {
    const char *name = sb__sim_op_name(work->op);
    if (!ptr)
        return true;
    if (!on_device && sb__sim_is_device_address(sim, ptr))
        return explain(reason, name, work->bytes, ptr, "it must be a host pointer");
    if (!on_device)
        return true;
    const struct sb__sim_block *block = sb__sim_block_find(sim, ptr, work->bytes);
    if (!block)
        return explain(reason, name, work->bytes, ptr, "not allocated on this device");
    if (at_turn && !block->ready)
        return explain(reason, name, work->bytes, ptr, "its stream has not allocated it yet");
    return true;
}

static bool overlap(const struct sb__sim_work *work) {
    uintptr_t dst = (uintptr_t)work->dst;
    uintptr_t src = (uintptr_t)work->src;
    return dst < src + work->bytes && src < dst + work->bytes;
}

bool sb__sim_is_valid(const struct sb__sim *sim, const struct sb__sim_work *work, bool at_turn,
                      char reason[SB__SIM_REASON]) {
    const struct traits *traits = traits_of(work->op);
    if (!operand_is_valid(sim, work, work->dst, traits->writes_device, at_turn, reason) ||
        !operand_is_valid(sim, work, work->src, traits->reads_device, at_turn, reason))
        return false;
    if (work->op == SB_SIM_COPY && overlap(work))
        return explain(reason, traits->name, work->bytes, work->dst, "the regions overlap");
    return true;
}

static void *target_of(const struct sb__sim *sim, const struct sb__sim_work *work) {
    return traits_of(work->op)->writes_device ? sb__sim_translate(sim, work->dst, work->bytes)
                                              : work->dst;
}

void sb__sim_perform(const struct sb__sim *sim, const struct sb__sim_work *work) {
    static const struct sb__parallel alone = {NULL, NULL};
    void *dst = target_of(sim, work);
    const void *src = traits_of(work->op)->reads_device
                          ? sb__sim_translate(sim, work->src, work->bytes)
                          : work->src;
    switch (work->op) {
    case SB_SIM_ZERO:
        memset(dst, 0, work->bytes);
        return;
    case SB_SIM_UPLOAD:
    case SB_SIM_DOWNLOAD:
    case SB_SIM_COPY:
        memcpy(dst, src, work->bytes);
        return;
    case SB_SIM_AXPY:
        sb__host_axpy(&alone, work->dtype, work->count, work->alpha, src, dst);
        return;
    case SB_SIM_SCALE:
        sb__host_scale(&alone, work->dtype, work->count, work->alpha, dst);
        return;
    case SB_SIM_ASUM:
        *work->result = sb__host_asum(&alone, work->dtype, work->count, src);
        return;
    default: /* SB_SIM_SUMSQ */
        *work->result = sb__host_sumsq(&alone, work->dtype, work->count, src);
    }
}

void sb__sim_spoil(const struct sb__sim *sim, const struct sb__sim_work *work) {
    void *dst = target_of(sim, work);
    if (dst)
        sb__sim_scribble(dst, traits_of(work->op)->replaces_target ? work->bytes
                                                                   : (work->bytes + 1) / 2);
}
