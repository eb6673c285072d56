#include "sim/device.h"

#include <stdarg.h>
#include <stdio.h>

/* Values of sb_error.device_code for failures of the simulated device. */
enum { CODE_FAILURE = 1, CODE_LOST = 2, CODE_OUT_OF_MEMORY = 3, CODE_UNKNOWN_STREAM = 4 };

sb_status sb__sim_fail_device(sb_error *err, const char *reason) {
    return sb_error_fill(err, SB_ERR_DEVICE_FAILURE, CODE_FAILURE, reason);
}

sb_status sb__sim_fail_memory(sb_error *err, size_t bytes) {
    char reason[SB__SIM_REASON];
    (void)snprintf(reason, sizeof reason, "%zu bytes of memory cannot be allocated", bytes);
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, CODE_OUT_OF_MEMORY, reason);
}

sb_status sb__sim_fail_stream(sb_error *err, sb_stream stream) {
    char reason[SB__SIM_REASON];
    (void)snprintf(reason, sizeof reason, "%p is not a stream of this device", (void *)stream);
    return sb_error_fill(err, SB_ERR_WRONG_DEVICE, CODE_UNKNOWN_STREAM, reason);
}

sb_status sb__sim_check_lost(const struct sb__sim *sim, sb_error *err) {
    return sim->lost ? sb_error_fill(err, SB_ERR_DEVICE_LOST, CODE_LOST, sim->lost_reason) : SB_OK;
}

void sb__sim_lose(struct sb__sim *sim, const char *format, ...) {
    va_list args;
    if (sim->lost)
        return;
    sim->lost = true;
    va_start(args, format);
    (void)vsnprintf(sim->lost_reason, sizeof sim->lost_reason, format, args);
    va_end(args);
}

/* Counts the call in every armed fault. Sets `*mode` to the mode of the first fault that is due. */
static bool is_due(struct sb__sim *sim, int32_t op, int32_t *mode) {
    bool due = false;
    for (int i = 0; i < SB__SIM_MAX_FAULTS; i++) {
        sb_sim_fault *fault = &sim->faults[i];
        if (fault->countdown == 0 || (fault->op != SB_SIM_ANY && fault->op != op) ||
            --fault->countdown != 0)
            continue;
        if (!due)
            *mode = fault->mode;
        due = true;
    }
    return due;
}

static sb_status fail_now(int32_t op, sb_error *err) {
    char reason[SB__SIM_REASON];
    (void)snprintf(reason, sizeof reason, "%s was made to fail", sb__sim_op_name(op));
    if (op == SB_SIM_ALLOC || op == SB_SIM_ALLOC_PINNED)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, CODE_OUT_OF_MEMORY, reason);
    return sb__sim_fail_device(err, reason);
}

sb_status sb__sim_enter(struct sb__sim *sim, int32_t op, bool *breaks, sb_error *err) {
    int32_t mode = SB_SIM_FAIL_NOW;
    sim->calls[op]++;
    if (sim->lost || !is_due(sim, op, &mode))
        return sb__sim_check_lost(sim, err);
    if (breaks)
        *breaks = mode != SB_SIM_FAIL_NOW;
    if (mode == SB_SIM_FAIL_STICKY) {
        sb__sim_lose(sim, "%s was made to lose the device", sb__sim_op_name(op));
        return sb__sim_check_lost(sim, err);
    }
    return breaks && *breaks ? SB_OK : fail_now(op, err);
}
