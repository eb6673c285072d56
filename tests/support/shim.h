/* Runs tests of the simulated device on another backend. The linker redirects calls of
   sb_context_create to shim.c (--wrap), which opens the other backend's device for "sim:N". The
   shim counts the calls of each slot, and can make a driver call inside a chosen slot call fail. */
#ifndef SB_TESTS_SHIM_H
#define SB_TESTS_SHIM_H

#include "support.h"

#include <syncblob/backend.h>
#include <syncblob/sim_device.h>

enum { SHIM_FAULTS = 4, SHIM_STREAMS = 128 };

struct shim {
    void *device; /* a device of the other backend */
    int64_t calls[SB_SIM_OP_COUNT];
    sb_sim_fault faults[SHIM_FAULTS];
    sb_stream streams[SHIM_STREAMS]; /* the test's streams, which `close` destroys */
    sb_sim_schedule schedule;        /* only shim_target uses this member */
    uint64_t random;                 /* only shim_target uses this member */
    struct shim *next;
};

struct shim *shim_of(const void *device);

struct shim_call {
    int32_t op;              /* SB_SIM_* */
    sb_dtype dtype;          /* the element type, or 0 if the slot does no arithmetic */
    const sb_stream *stream; /* NULL if the slot waits or has no stream */
    int32_t mode;            /* the mode of the fault that is due, or SHIM_NO_FAULT */
};
#define SHIM_NO_FAULT (-1)

struct shim_target {
    sb_backend backend;
    /* `faults` and `calls` are NULL; `stream_destroy` gets only streams of the test. */
    sb_sim_device controls;
    void (*lock)(void);
    void (*unlock)(void);
    /* Called before a slot. If a fault is due, makes a driver call of the slot fail. */
    void (*arm)(struct shim *shim, const struct shim_call *call);
    /* Called after a slot. Removes the fault. Returns whether the fault made a driver call fail. */
    bool (*disarm)(struct shim *shim, const struct shim_call *call);
};

/* Each program defines this function. */
struct shim_target shim_target(void);

#endif
