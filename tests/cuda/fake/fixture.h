/* A context on the fake driver: at its end no object of the driver is live, no rule was broken, and
   no context is current. */
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
/* On a driver with pools or without, and with `flags` of SB_CONTEXT_*. */
void stage_open_on(struct stage *stage, bool pools, uint32_t flags);
/* Then the driver has pools and 16 GiB again, and no call fails. Objects of a lost device are
   forgotten. */
void stage_close(struct stage *stage);
void stage_reopen(struct stage *stage, bool pools, uint32_t flags);
/* If objects cannot be freed. */
void stage_abandon(struct stage *stage);
/* For contexts that may not open. */
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);
/* Creates a context on "cuda:0" and releases it. */
sb_status cuda_come_and_go(sb_error *err);

/* Limits the memory of each device to the mapped bytes and `more`. */
void limit_memory(size_t more);
#define ALL_MEMORY ((int64_t)16 << 30)

/* --- objects of the test ---------------------------------------------------------------------- */

sb_context *another_context(const char *device);
/* In device 0's primary context. */
CUstream stage_stream(struct stage *stage, unsigned int flags);
/* Filled on the host with `fill`, without a copy at the device. */
sb_mem *host_mem(sb_context *context, size_t bytes, int fill);
/* At the device, with unspecified bytes. */
sb_mem *device_mem(sb_context *context, size_t bytes);

/* Nothing is live, no rule was broken, no context is current. */
void assert_untouched(void);
/* Whether the message names a function of the driver, without the version of its form. */
bool names(const sb_error *err, const char *function);

#endif
