/* The device of a rank, with its primary context. Calls of the driver are made between
   sb__nccl_enter, which makes the primary context current on the thread, and sb__nccl_leave, which
   restores the previous context. */
#ifndef SB_NCCL_DEVICE_H
#define SB_NCCL_DEVICE_H

#include "libraries.h"

#include <stdbool.h>
#include <syncblob/context.h>

/* The maximum number of attempts of a call whose failure cannot be reported. */
#define SB__NCCL_TRIES 3

struct sb__nccl_device {
    const struct sb__nccl_driver *cu;
    int32_t ordinal;
    sb__cu_device handle;
    sb__cu_context context; /* the primary context, retained */
    /* Devices that can access this device's memory, and that other ranks of the process may use. */
    sb__cu_device *peers;
    int num_peers;
};

/* State that sb__nccl_enter stores for sb__nccl_leave. */
struct sb__nccl_visit {
    const char *call;  /* the name of the call that failed */
    unsigned int mode; /* the thread's capture mode, to be restored */
};

/* Returns the ordinal of the device of a context on the library's CUDA backend, or -1 for any other
   context. */
int32_t sb__nccl_ordinal(const sb_context *context);

sb_status sb__nccl_device_open(struct sb__nccl_device *device, int32_t ordinal, sb_error *err);
void sb__nccl_device_close(struct sb__nccl_device *device);

/* Defined in peers.c. Call sb__nccl_find_peers after all ranks have connected. The function
   sb__nccl_give_access makes the pool that contains `ptr` accessible to the peers. */
sb_status sb__nccl_find_peers(struct sb__nccl_device *device, sb_error *err);
sb_status sb__nccl_give_access(const struct sb__nccl_device *device, const void *ptr,
                               sb_error *err);

/* Begins calls of the driver, and allows allocations while a stream is captured. On failure `visit`
   contains the name of the failed call, and the caller must not call sb__nccl_leave. */
sb__cu_result sb__nccl_enter(const struct sb__nccl_device *device, struct sb__nccl_visit *visit);
/* Calls sb__nccl_enter up to SB__NCCL_TRIES times, because a caller that cannot enter cannot free
   its memory. */
sb__cu_result sb__nccl_enter_to_free(const struct sb__nccl_device *device,
                                     struct sb__nccl_visit *visit);
/* Ends the calls of the driver. Returns `result`. */
sb__cu_result sb__nccl_leave(const struct sb__nccl_device *device,
                             const struct sb__nccl_visit *visit, sb__cu_result result);

/* Records the name of a failed call in the visit. Returns `result`. */
static inline sb__cu_result sb__nccl_named(struct sb__nccl_visit *visit, sb__cu_result result,
                                           const char *call) {
    if (result != SB__CUDA_SUCCESS)
        visit->call = call;
    return result;
}

/* Converts the `result` of `call` to a status and fills `err`. Errors: OUT_OF_MEMORY, UNSUPPORTED,
   DEVICE_FAILURE. */
sb_status sb__nccl_status(const struct sb__nccl_device *device, sb__cu_result result,
                          const char *call, sb_error *err);

#endif
