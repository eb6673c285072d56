/* One part of a blob in flight through a communicator: begin makes its bytes current where the
   engine takes them and changes nothing that a caller can see; end moves the head there. In between
   the caller keeps off the blob. */
#ifndef SB_COMM_EXCHANGE_H
#define SB_COMM_EXCHANGE_H

#include "comm.h"

/* A write of a memory. Destroying it runs deleters, which may call the library on any object: this
   is the last that a call does. */
struct sb__comm_write {
    struct sb__comm_write *next;
    sb_write *write;
};

struct sb__exchange {
    sb_blob *blob;
    sb_part part;
    struct sb__comm_write *write; /* NULL: nothing is written, but sent alone */
    bool sends;                   /* the root's, whose write changes nothing */
    sb_comm_buffer buffer;
    struct sb__comm_write **ended; /* the list that takes the write */
};

enum sb__exchange_kind {
    SB__EXCHANGE_REDUCE, /* in and out, where the head is */
    SB__EXCHANGE_HOST,   /* in and out, on the host */
    SB__EXCHANGE_SEND,   /* in */
    SB__EXCHANGE_RECEIVE /* out */
};

/* `scales`: what is reduced is scaled in the end. Errors are those of a mutable call. `ended` is
   destroyed after the exchange. */
sb_status sb__exchange_begin(struct sb__exchange *exchange, sb_comm *comm, sb_blob *blob,
                             sb_part part, enum sb__exchange_kind kind, bool scales,
                             struct sb__comm_write **ended, sb_error *err);
/* Commits what was reduced, and scales it. DEVICE_LOST: the device failed in this. */
sb_status sb__exchange_end(struct sb__exchange *exchange, double factor, sb_error *err);
/* Nothing was written. */
void sb__exchange_cancel(struct sb__exchange *exchange);
/* The engine failed. `is_over`: it touches the bytes no more; else the storage is kept for ever. */
void sb__exchange_failed(struct sb__exchange *exchange, bool is_over);

/* Runs deleters, and leaves an empty list. */
void sb__comm_writes_destroy(struct sb__comm_write **list);

/* SHARED where two of the memories are one. Changes their order. */
sb_status sb__check_apart(const sb_mem **memories, int64_t count, sb_error *err);

static inline size_t sb__comm_blob_bytes(const sb_blob *blob) {
    return (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
}

#endif
