/* NCCL's engine of communicators. */
#ifndef SB_NCCL_ENGINE_H
#define SB_NCCL_ENGINE_H

#include "device.h"

#include <syncblob/comm_engine.h>

/* A rank's end. One thread at a time uses it. */
struct sb__nccl_end {
    const struct sb__nccl *nccl;
    struct sb__nccl_device device;
    sb_context *context; /* of the rank, which its communicator keeps */
    sb__nccl_comm comm;  /* NULL: it was aborted, or is not there yet */
    int32_t rank, size;
    uint64_t limit; /* nanoseconds that the other ranks may take */
    sb__cu_stream stream;
    sb__cu_event before; /* recorded on other streams again and again */
    struct sb__nccl_request *first;
    bool failed;  /* `story` says why */
    bool is_idle; /* once it failed: nothing of it uses memory any more */
    sb_error story;
};

/* SB__NCCL_ID_BYTES bytes that name a communicator still to be made. Errors: UNSUPPORTED,
   OUT_OF_MEMORY, COMM_FAILURE. */
sb_status sb__nccl_make_id(uint8_t *out, sb_error *err);
/* Makes the ends of the ranks `first` to first + count - 1 of `size`, one a context on "cuda:N",
   and waits until all ranks have come. On failure there are none. Errors: UNSUPPORTED,
   OUT_OF_MEMORY, DEVICE_FAILURE, COMM_FAILURE. */
sb_status sb__nccl_connect(sb_context *const *contexts, int32_t count, const uint8_t *id,
                           int32_t first, int32_t size, uint32_t limit_milliseconds,
                           struct sb__nccl_end **out, sb_error *err);
/* `open` takes an end of sb__nccl_connect as `user`; until then the caller closes it. */
extern const sb_comm_engine sb__nccl_engine;

/* --- life.c, for requests.c --------------------------------------------------------------- */

/* The end is of no use from now on, because `call` returned `result`. Writes `err`.
   Returns COMM_FAILURE. */
sb_status sb__nccl_fail(struct sb__nccl_end *end, sb__nccl_result result, const char *call,
                        sb_error *err);
/* The same for what `err` tells already. */
sb_status sb__nccl_break(struct sb__nccl_end *end, const sb_error *err);
/* What NCCL is at: SUCCESS, IN_PROGRESS, or an error that came up meanwhile. */
sb__nccl_result sb__nccl_state(const struct sb__nccl_end *end);
/* Between two looks at something that has gone on since `began`. */
void sb__nccl_pause(uint64_t began);
void sb__nccl_close(void *comm, int32_t failed);

#endif
