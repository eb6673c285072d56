/* A stage is a fixture with a context on the fake driver. When the fixture is closed, no object of
   the driver may be live, no rule may have been broken, and no context may be current. */
#ifndef SB_TESTS_FAKE_FIXTURE_H
#define SB_TESTS_FAKE_FIXTURE_H

#include "blobs.h"
#include "fake.h"
#include "pointers.h"
#include "table.h"

struct stage {
    struct rig rig;
    sb_context *context; /* the context of the rig */
    CUcontext primary;   /* the primary context of device 0 */
};

/* Opens a stage on "cuda:0", on which no kernel has been loaded. */
void stage_open(struct stage *stage);
/* Opens a stage on a driver that has memory pools if `pools` is true. `flags` are the context's
   flags. */
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Closes the stage, and restores the driver's defaults: pools, 16 GiB of memory, no fault. If the
   device is lost, discards its objects. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
/* Closes a stage whose driver objects cannot be freed. */
void stage_abandon(struct stage *stage);
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);

/* Limits the memory of each device to `more` bytes above the bytes that are mapped now. */
void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

/* Creates a stream in device 0's primary context. */
CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Creates a memory with unspecified bytes, which are only on the device. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Asserts that no object of the driver is live, no rule was broken and no context is current. */
void assert_untouched(void);
/* Returns whether the message contains the name of the driver's function, without "_v2". */
bool names(const sb_error *err, const char *function);

#endif
