#ifndef SB_NCCL_ENGINE_H
#define SB_NCCL_ENGINE_H

#include "device.h"

#include <syncblob/comm_engine.h>

/* The handle of one rank. Only one thread at a time uses a handle. */
struct sb__nccl_end {
    const struct sb__nccl *nccl;
    struct sb__nccl_device device;
    sb_context *context; /* retained by the rank's communicator */
    sb__nccl_comm comm;  /* NULL if aborted or not yet created */
    int32_t rank, size;
    uint64_t limit;       /* the time limit, in nanoseconds */
    sb__cu_stream stream; /* runs NCCL's kernels, which wait for other ranks */
    sb__cu_stream copies; /* copies host bytes; idle between calls of the slots */
    sb__cu_event before;  /* recorded after an abort, to detect the end of the device's work */
    struct sb__nccl_request *first;
    bool failed;  /* the handle is unusable; `cause` describes the failure */
    bool is_idle; /* after a failure: no operation uses memory any more */
    sb_error cause;
};

/* Creates the id of a future communicator and writes its SB__NCCL_ID_BYTES bytes to `out`.
   Errors: UNSUPPORTED, OUT_OF_MEMORY, COMM_FAILURE, FORKED. */
sb_status sb__nccl_make_id(uint8_t *out, sb_error *err);
/* Creates the handles of ranks `first` to first + count - 1 of `size`, one for each context on
   "cuda:N". Waits for all ranks. On failure no handle remains. Errors: UNSUPPORTED, OUT_OF_MEMORY,
   DEVICE_FAILURE, COMM_FAILURE. */
sb_status sb__nccl_connect(sb_context *const *contexts, int32_t count, const uint8_t *id,
                           int32_t first, int32_t size, uint32_t limit_milliseconds,
                           struct sb__nccl_end **out, sb_error *err);
/* The slot `open` takes ownership of `user`, a handle from sb__nccl_connect. */
extern const sb_comm_engine sb__nccl_engine;

/* --- defined in life.c, used by requests.c ------------------------------------------------ */

/* Marks the handle as failed, since `call` returned `result`. Fills `err`; returns COMM_FAILURE. */
sb_status sb__nccl_fail(struct sb__nccl_end *end, sb__nccl_result result, const char *call,
                        sb_error *err);
/* Marks the handle as failed with the error `err`. Returns COMM_FAILURE. */
sb_status sb__nccl_break(struct sb__nccl_end *end, const sb_error *err);
/* Returns whether a call of NCCL that returned `result` has begun its work. */
static inline bool sb__nccl_has_begun(sb__nccl_result result) {
    return result == SB__NCCL_SUCCESS || result == SB__NCCL_IN_PROGRESS;
}
/* Returns NCCL's state: SUCCESS, IN_PROGRESS, or an asynchronous error. */
sb__nccl_result sb__nccl_state(const struct sb__nccl_end *end);
/* Pauses between two polls of an operation that began at `began`. */
void sb__nccl_pause(uint64_t began);
void sb__nccl_close(void *comm, int32_t failed);

#endif
