/* One blob's data or diff on its way through a communicator: begin makes its bytes current
   where the engine takes them and changes nothing that a caller can see; commit moves the
   head there. In between the caller keeps off the blob. */
#ifndef SB_COMM_EXCHANGE_H
#define SB_COMM_EXCHANGE_H

#include "blob/blob.h"
#include "comm/comm.h"

struct sb__exchange {
    struct sb__write write; /* its memory is held; NULL: nothing is written, but sent alone */
    sb_comm_buffer buffer;
    struct sb__retired *retired; /* takes what the exchange gives up */
};

enum sb__exchange_kind {
    SB__EXCHANGE_REDUCE, /* in and out, where the head is */
    SB__EXCHANGE_HOST,   /* in and out, on the host */
    SB__EXCHANGE_SEND,   /* in */
    SB__EXCHANGE_RECEIVE /* out */
};

/* `factor` is what a reduced blob will be scaled by. Errors are those of a mutable call; for a
   device without arithmetic the host is taken. `retired` is ended after the exchange. */
sb_status sb__exchange_begin(struct sb__exchange *exchange, sb_comm *comm, sb_blob *blob,
                             sb_part part, enum sb__exchange_kind kind, double factor,
                             struct sb__retired *retired, sb_error *err);
/* Scales what was reduced, and commits. DEVICE_LOST: the device failed while it scaled. */
sb_status sb__exchange_end(struct sb__exchange *exchange, double factor, sb_error *err);
/* Nothing was written. */
void sb__exchange_cancel(struct sb__exchange *exchange);
/* The engine failed. `is_over`: it touches the bytes no more; else the storage is kept for ever. */
void sb__exchange_failed(struct sb__exchange *exchange, bool is_over);

/* SHARED where two of the memories are one. Changes their order. */
sb_status sb__check_apart(const sb_mem **memories, int64_t count, sb_error *err);

#endif
