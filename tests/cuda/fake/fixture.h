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
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Closes the stage, and asserts that no object of the driver is live. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
void stage_abandon(struct stage *stage);
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);

void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Creates a memory whose current bytes are only on the device. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Asserts that no object of the driver is live, and that no rule was broken. */
void assert_untouched(void);
/* Returns whether the message contains the name of the driver's function. */
bool names(const sb_error *err, const char *function);

#endif
