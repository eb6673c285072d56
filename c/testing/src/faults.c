/* The functions that plant faults and read the counters of calls. */
#include "device.h"

#include <syncblob/sim.h>

#include <stdbool.h>

/* Appends a fault to the device's faults. If `alone`, first removes all other faults. Returns false
   if there is no space. */
static bool arm(const struct sb__testing_handle *sim, const sb_sim_fault *fault, bool alone) {
    int32_t count;
    int32_t armed = 0;
    sb_sim_fault *faults = sim->table->faults(sim->device, &count);
    for (int32_t i = 0; i < count && !alone; i++)
        if (faults[i].countdown)
            faults[armed++] = faults[i];
    if (armed == count)
        return false;
    faults[armed++] = *fault;
    while (armed < count)
        faults[armed++].countdown = 0;
    return true;
}

static sb_status plant(sb_context *context, const sb_sim_fault *fault, bool alone, sb_error *err) {
    struct sb__testing_handle sim;
    if (fault->op < SB_SIM_ANY || fault->op >= SB_SIM_OP_COUNT)
        return sb__testing_fail(err, SB_ERR_INVALID_ARGUMENT, "operation %d is not an SB_SIM_*",
                                fault->op);
    if (fault->mode < SB_SIM_FAIL_NOW || fault->mode > SB_SIM_FAIL_STICKY ||
        fault->countdown < (alone ? 0 : 1))
        return sb__testing_fail(err, SB_ERR_INVALID_ARGUMENT, "call %lld cannot fail in mode %d",
                                (long long)fault->countdown, fault->mode);
    sb_status st = sb__testing_lock(context, &sim, err);
    if (st != SB_OK)
        return st;
    if (!arm(&sim, fault, alone))
        st = sb__testing_fail(err, SB_ERR_OVER_LIMIT, "the maximum number of faults is planted");
    return sb__testing_unlock(&sim, st);
}

sb_status sb_sim_fail(sb_context *context, sb_sim_op op, int64_t nth, sb_sim_failure mode,
                      sb_error *err) {
    const sb_sim_fault fault = {.op = op, .mode = mode, .countdown = nth};
    return plant(context, &fault, true, err);
}

sb_status sb_sim_fail_also(sb_context *context, sb_sim_op op, int64_t nth, sb_sim_failure mode,
                           sb_error *err) {
    const sb_sim_fault fault = {.op = op, .mode = mode, .countdown = nth};
    return plant(context, &fault, false, err);
}

sb_status sb_sim_calls(const sb_context *context, int64_t *out, int32_t count, sb_error *err) {
    struct sb__testing_handle sim;
    int32_t known;
    if (!out)
        return sb__testing_fail_null(err, "out");
    if (count < 0)
        return sb__testing_fail(err, SB_ERR_INVALID_ARGUMENT, "count is %d, which is negative",
                                count);
    sb_status st = sb__testing_lock(context, &sim, err);
    if (st != SB_OK)
        return st;
    const int64_t *calls = sim.table->calls(sim.device, &known);
    for (int32_t op = 0; op < count; op++)
        out[op] = op < known ? calls[op] : 0;
    return sb__testing_unlock(&sim, SB_OK);
}
