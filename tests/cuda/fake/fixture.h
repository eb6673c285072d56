/* A context on the fake driver. When it closes, no object of the driver may be live, no rule
   broken, and no context current. */
#ifndef SB_TESTS_FAKE_FIXTURE_H
#define SB_TESTS_FAKE_FIXTURE_H

#include "blobs.h"
#include "fake.h"
#include "rig.h"
#include "table.h"

struct stage {
    struct rig rig;
    sb_context *context; /* the rig's */
    CUcontext primary;   /* device 0's */
};

/* Opens a stage on "cuda:0", where no kernel is loaded. */
void stage_open(struct stage *stage);
/* Opens a stage on a driver with pools or without, and with `flags` of SB_CONTEXT_*. */
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Closes the stage, and restores the driver: pools, 16 GiB, no faults. Forgets the objects of a
   lost device. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
/* Closes a stage whose objects cannot be freed. */
void stage_abandon(struct stage *stage);
/* Creates a context; the call may fail. */
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);
/* Creates a context on "cuda:0" and releases it. */
sb_status cuda_come_and_go(sb_error *err);

/* Limits the memory of each device to `more` bytes above the bytes that are mapped now. */
void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

/* --- objects of the test ---------------------------------------------------------------------- */

sb_context *another_context(const char *device);
/* Creates a stream in device 0's primary context. */
CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Creates a memory filled with `fill` on the host, without a copy at the device. */
sb_mem *host_mem(sb_context *context, size_t bytes, int fill);
/* Creates a memory with its head at the device and unspecified bytes. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Asserts that nothing is live, no rule was broken and no context is current. */
void assert_untouched(void);
/* Returns whether the message names the driver's function, without its version suffix. */
bool names(const sb_error *err, const char *function);

#endif
