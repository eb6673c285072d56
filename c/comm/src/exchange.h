/* The transfer of one part of a blob through a communicator. The function sb__exchange_begin makes
   the bytes current on a side that the engine accepts, and changes nothing observable. The function
   sb__exchange_end moves the head to that side. Between the two calls the caller must not use the
   blob. */
#ifndef SB_COMM_EXCHANGE_H
#define SB_COMM_EXCHANGE_H

#include "comm.h"

/* A write (sb_write) of an sb_mem. Destroying a write runs deleters, which may use any object of
   the library. A public call therefore destroys writes last. */
struct sb__comm_write {
    struct sb__comm_write *next;
    sb_write *write;
};

struct sb__exchange {
    sb_blob *blob;
    sb_part part;
    struct sb__comm_write *write; /* NULL if the bytes are read in place */
    bool sends;                   /* this rank sends its bytes, which do not change */
    sb_comm_buffer buffer;
    struct sb__comm_write **ended; /* the list that receives the write when the exchange ends */
};

enum sb__exchange_kind {
    SB__EXCHANGE_REDUCE, /* reads and writes the bytes on the side of the head */
    SB__EXCHANGE_HOST,   /* reads and writes the bytes on the host */
    SB__EXCHANGE_SEND,   /* reads the bytes */
    SB__EXCHANGE_RECEIVE /* writes the bytes */
};

/* Begins an exchange. If `scales`, sb__exchange_end will scale the result. Returns the errors of
   sb_blob_mutable_cpu and sb_blob_mutable_gpu. The caller destroys the writes in `ended` after the
   exchange. */
sb_status sb__exchange_begin(struct sb__exchange *exchange, sb_comm *comm, sb_blob *blob,
                             sb_part part, enum sb__exchange_kind kind, bool scales,
                             struct sb__comm_write **ended, sb_error *err);
/* Ends an exchange: commits the bytes and scales the result. Returns DEVICE_LOST if the device
   failed while scaling the result. */
sb_status sb__exchange_end(struct sb__exchange *exchange, double factor, sb_error *err);
/* Ends an exchange that has written nothing. */
void sb__exchange_cancel(struct sb__exchange *exchange);
/* Ends an exchange after a failure of the engine. Unless `is_over`, the engine may still access the
   bytes, so the storage of the bytes is never freed. */
void sb__exchange_failed(struct sb__exchange *exchange, bool is_over);

/* Destroys all writes and runs deleters. The list is then empty. */
void sb__comm_writes_destroy(struct sb__comm_write **list);

/* Returns SHARED if two of the memories are the same. Sorts `memories`. */
sb_status sb__check_apart(const sb_mem **memories, int64_t count, sb_error *err);

static inline size_t sb__comm_blob_bytes(const sb_blob *blob) {
    return (size_t)sb_blob_count(blob) * sb_dtype_size(sb_blob_dtype(blob));
}

#endif
