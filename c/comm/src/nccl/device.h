/* The device of a rank: its primary context, which the rank's sb_context keeps alive. Calls of the
   driver stand between enter and leave, which make that context the thread's and put back what was
   there. */
#ifndef SB_NCCL_DEVICE_H
#define SB_NCCL_DEVICE_H

#include "libraries.h"

#include <stdbool.h>
#include <syncblob/context.h>

struct sb__nccl_device {
    const struct sb__nccl_driver *cu;
    int32_t ordinal;
    sb__cu_device handle;
    sb__cu_context context; /* retained */
};

/* Which call failed, and what is put back in the end. */
struct sb__nccl_visit {
    const char *call;
    unsigned int mode; /* of captures */
    bool relaxed;
};

/* The ordinal of a context on a device of the library's CUDA backend, -1 of any other. */
int32_t sb__nccl_ordinal(const sb_context *context);

sb_status sb__nccl_device_open(struct sb__nccl_device *device, int32_t ordinal, sb_error *err);
void sb__nccl_device_close(struct sb__nccl_device *device);

/* The calls may allocate even while the thread captures a stream elsewhere. On failure there is
   nothing to leave, and the visit names the call. */
sb__cu_result sb__nccl_enter(const struct sb__nccl_device *device, struct sb__nccl_visit *visit);
/* The same before something is given back: tried several times. */
sb__cu_result sb__nccl_enter_to_free(const struct sb__nccl_device *device,
                                     struct sb__nccl_visit *visit);
/* Ends them; hands `result` through. */
sb__cu_result sb__nccl_leave(const struct sb__nccl_device *device,
                             const struct sb__nccl_visit *visit, sb__cu_result result);

/* Notes in the visit which call it was that failed; hands `result` through. */
static inline sb__cu_result sb__nccl_named(struct sb__nccl_visit *visit, sb__cu_result result,
                                           const char *call) {
    if (result != SB__CUDA_SUCCESS)
        visit->call = call;
    return result;
}

/* The status of a result of `call`, told in `err`: OUT_OF_MEMORY, UNSUPPORTED, DEVICE_FAILURE. */
sb_status sb__nccl_status(const struct sb__nccl_device *device, sb__cu_result result,
                          const char *call, sb_error *err);

#endif
