/* A fixture with a context on the fake driver. */
#ifndef SB_TESTS_FAKE_FIXTURE_H
#define SB_TESTS_FAKE_FIXTURE_H

#include "blobs.h"
#include "fake.h"
#include "pointers.h"
#include "table.h"

struct stage {
    struct rig rig;
    sb_context *context;
    CUcontext primary;
};

void stage_open(struct stage *stage);
/* `pools`: whether the driver has memory pools. `flags` are SB_CONTEXT_*. */
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Closes the stage, and asserts that no object of the driver is live. Restores the driver's pools
   and memory, and removes the fault. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
/* Closes a stage whose driver objects cannot be freed, and discards the objects. */
void stage_abandon(struct stage *stage);
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);

/* Limits the mapped memory of the fake driver to `more` bytes above the bytes mapped now. */
void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Creates a memory of which only the device side is current. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Runs all queued work. Asserts that no object of the driver is live, no rule was broken and no
   context is current. */
void assert_untouched(void);
/* Returns whether the message contains the name of the driver's function, without a suffix such as
   "_v2". */
bool names(const sb_error *err, const char *function);

#endif
