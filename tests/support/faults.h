/* Failing one step of a call: an allocation, or an operation of the device,
   in each way that it can fail. */
#ifndef SB_TESTS_FAULTS_H
#define SB_TESTS_FAULTS_H

#include "rig.h"

enum fault {
    FAULT_ALLOC,  /* the n-th call of the allocator returns NULL */
    FAULT_NOW,    /* the n-th operation of the device fails and has done nothing */
    FAULT_LATER,  /* ... is queued and fails in its turn */
    FAULT_STICKY, /* ... fails and takes the device with it */
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
/* Whether it has fired; from here on nothing fails. */
bool fault_disarm(const struct armed *armed);
/* A status that a call may return for it. `writes_in_place`: the call overwrites current bytes of
   the device, which a failure on the way spoils. */
bool fault_explains(enum fault fault, sb_status status, bool writes_in_place);

/* As assert_true, but the test's own blame(t, TEXT) prints which trial failed. */
#define demand(t, condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            blame(t, #condition);                                                                  \
    } while (0)

#endif
