/* A context on the stand-in, watched: nothing of the driver's is left at the end,
   no rule of its was broken, and the caller's current context is as it was. */
#ifndef SB_TESTS_STANDIN_FIXTURE_H
#define SB_TESTS_STANDIN_FIXTURE_H

#include "blobs.h"
#include "rig.h"
#include "standin.h"
#include "table.h"

struct stage {
    struct rig rig;
    CUcontext primary; /* device 0's */
};

/* "cuda:0", with `flags` of SB_CONTEXT_*. */
void stage_open(struct stage *stage, uint32_t flags);
void stage_close(struct stage *stage);
/* The same, on any device; for contexts that may not open. */
sb_status cuda_context(const char *device, sb_context **out, sb_error *err);

/* Opens one on "cuda:0" and lets it go. */
sb_status cuda_come_and_go(sb_error *err);

/* As the application does it, in device 0's primary context. */
CUstream stage_stream(struct stage *stage, unsigned int flags);
void stage_stream_destroy(struct stage *stage, CUstream stream);

/* The memory of a blob's data; lives as long as the blob. */

/* Written on the host, and nowhere else. */
sb_mem *host_mem(sb_context *context, size_t bytes);

/* Nothing lives, nothing was done wrong, no context is current. */
void assert_untouched(void);

#endif
