#include "faults.h"

const char *fault_name(enum fault fault) {
    static const char *const names[FAULTS] = {"allocation", "device now", "device later",
                                              "device for good"};
    return names[fault];
}

static int64_t device_calls(struct rig *rig) {
    struct tally t = rig_tally(rig);
    int64_t sum = 0;
    for (int op = 0; op < SB_SIM_OP_COUNT; op++)
        sum += t.calls[op];
    return sum;
}

struct armed fault_arm(struct rig *rig, enum fault fault, int64_t nth) {
    static const int32_t modes[FAULTS] = {-1, SB_SIM_FAIL_NOW, SB_SIM_FAIL_LATER,
                                          SB_SIM_FAIL_STICKY};
    struct armed armed = {rig, fault, nth, 0};
    if (fault == FAULT_ALLOC) {
        armed.calls_before = rig->counting.failures;
        rig->counting.fail_nth = nth;
    } else {
        armed.calls_before = device_calls(rig);
        device_fail(rig->context, SB_SIM_ANY, nth, modes[fault]);
    }
    return armed;
}

bool fault_fired(const struct armed *armed) {
    return armed->fault == FAULT_ALLOC
               ? armed->rig->counting.failures > armed->calls_before
               : device_calls(armed->rig) - armed->calls_before >= armed->nth;
}

bool fault_disarm(const struct armed *armed) {
    armed->rig->counting.fail_nth = 0;
    if (armed->fault != FAULT_ALLOC)
        ignore(sb_sim_fail(armed->rig->context, SB_SIM_ANY, 0, SB_SIM_FAIL_NOW, NULL));
    return fault_fired(armed);
}

bool fault_explains(enum fault fault, sb_status status, bool writes_in_place) {
    switch (status) {
    case SB_ERR_OUT_OF_MEMORY:
        return fault != FAULT_STICKY;
    case SB_ERR_DEVICE_FAILURE:
        return fault == FAULT_NOW || fault == FAULT_LATER;
    case SB_ERR_DEVICE_LOST:
        return fault == FAULT_STICKY || (writes_in_place && fault != FAULT_ALLOC);
    default:
        return false;
    }
}
