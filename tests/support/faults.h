/* Makes one step of a call fail: an allocation, or a device operation, which fails in one of three
   modes. */
#ifndef SB_TESTS_FAULTS_H
#define SB_TESTS_FAULTS_H

#include "blobs.h"

enum fault {
    FAULT_ALLOC,  /* the n-th call of the allocator returns NULL */
    FAULT_NOW,    /* the n-th operation of the device does nothing and fails */
    FAULT_LATER,  /* the n-th operation is queued, and fails when it runs */
    FAULT_STICKY, /* the n-th operation fails, and the device is lost */
    FAULTS
};

struct armed {
    struct rig *rig;
    enum fault fault;
    int64_t nth, calls_before;
};

const char *fault_name(enum fault fault);
struct armed fault_arm(struct rig *rig, enum fault fault, int64_t nth);
bool fault_fired(const struct armed *armed);
/* Disarms the fault; returns whether the fault has fired. */
bool fault_disarm(const struct armed *armed);
/* Returns whether a call may return `status` because of the fault. `writes_in_place` means that the
   call overwrites current bytes of the device, so that its failure makes the bytes invalid. */
bool fault_explains(enum fault fault, sb_status status, bool writes_in_place);

/* If the condition is false, calls the test's function blame(t, TEXT) to print the failed trial. */
#define demand(t, condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            blame(t, #condition);                                                                  \
    } while (0)

#endif
