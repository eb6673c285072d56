/* A context on the fake driver: at its end nothing of the driver's is left, no rule of its was
   broken, and the caller's current context is as it was. */
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

/* On "cuda:0", of which no kernel is loaded. */
void stage_open(struct stage *stage);
/* The same on a driver with pools or without, and with `flags` of SB_CONTEXT_*. */
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Then the driver has pools and 16 GiB again, and no call of it fails. What a lost device has left
   is forgotten. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
/* Where something cannot go back. */
void stage_abandon(struct stage *stage);
/* For contexts that may not open. */
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);
/* Opens one on "cuda:0" and lets it go. */
sb_status cuda_come_and_go(sb_error *err);

/* Memory of each device, from now on; that which is there and `more` bytes. */
void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

/* --- things that the test owns ---------------------------------------------------------------- */

sb_context *another_context(const char *device);
/* As the application makes it, in device 0's primary context. */
CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Filled on the host with `fill`, and nowhere else. */
sb_mem *host_mem(sb_context *context, size_t bytes, int fill);
/* Of device memory, whose bytes are not specified. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Nothing is live, no rule was broken, no context is current. */
void assert_untouched(void);
/* Whether the message names a function of the driver, without the version of its form. */
bool names(const sb_error *err, const char *function);

#endif
