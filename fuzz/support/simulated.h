/* Opens a context on the simulated device, counts allocations and copies, and makes calls fail. */
#ifndef SB_FUZZ_SIMULATED_H
#define SB_FUZZ_SIMULATED_H

#include "fuzz.h"

#include <syncblob/sim.h>

#define STREAMS        4
#define UNKNOWN_STREAM ((sb_stream)(uintptr_t)0x7b0) /* no device has this stream */

struct simulated_options {
    bool host_only;
    bool coherent;
    bool no_pinned;
    size_t max_host, max_pinned, max_device; /* caps in bytes (0: the library's default) */
};

struct fault {
    int32_t op, mode;
    int64_t nth, base; /* nth: 0 if no fault is armed. base: the calls of `op` before arming */
};

struct simulated {
    struct counting_allocator counting;
    struct simulated_options options;
    sb_context *context;
    sb_stream streams[STREAMS]; /* the legacy stream, the library's stream, and two other streams */
    struct fault fault;
    int64_t failures;
};

enum {
    UPLOADS,
    DOWNLOADS,
    DEVICE_COPIES,
    HOST_COPIES,
    DEVICE_CLEARS,
    HOST_BUFFERS,
    DEVICE_BUFFERS,
    WORKS
};
extern const char *const work_names[WORKS];

struct tally {
    int64_t of[WORKS];
};

/* The armed faults that have taken effect since the last call of simulated_strike. */
struct strike {
    bool device, allocator;
    struct fault fault;
};

void simulated_open(struct simulated *sim, struct simulated_options options);
/* Destroys the context, and checks that all other objects were destroyed, and all memory freed. */
void simulated_close(struct simulated *sim);

sb_stats simulated_stats(const struct simulated *sim);
struct tally simulated_tally(const struct simulated *sim);
int64_t simulated_calls(const struct simulated *sim);

/* Makes the nth call of `op` from now on fail. `op` may be SB_SIM_ANY. */
void simulated_arm(struct simulated *sim, int32_t op, int64_t nth, int32_t mode);
void simulated_disarm(struct simulated *sim);
struct strike simulated_strike(struct simulated *sim);
bool simulated_is_lost(const struct simulated *sim);

/* Runs all queued work of every stream. The schedule is SB_SIM_EAGER from then on. */
void simulated_drain(struct simulated *sim);

#endif
