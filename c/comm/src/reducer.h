#ifndef SB_COMM_REDUCER_H
#define SB_COMM_REDUCER_H

#include "exchange.h"

#include <syncblob/reducer.h>

/* A registered blob. Entries are sorted by bucket. Within a bucket, and among large blobs, the
   entries are in the reverse order of the caller's list. */
struct sb__entry {
    sb_blob *blob;
    int64_t index; /* position in the caller's list */
    int64_t count; /* the blob's count when it was registered */
    int64_t bucket;
    bool ready;
    struct sb__exchange exchange; /* valid while the bucket is in flight */
};

/* The state of a bucket that this step has started (its index is less than the reducer's `next`).
   The other buckets still have their states of the previous step. */
enum sb__bucket_state { SB__BUCKET_IN_FLIGHT = 1, SB__BUCKET_DONE };

/* A bucket: consecutive entries of one dtype. */
struct sb__bucket {
    int64_t first, num_entries;
    int64_t missing; /* number of entries that are not ready */
    int64_t elements;
    bool gathers; /* blobs are copied to a host buffer; false if the only blob is large or empty */
    sb_dtype dtype;
    enum sb__bucket_state state;
    int32_t room; /* index in `rooms` while the bucket is in flight; -1: no buffer */
    void *request;
};

/* A buffer in which a bucket's blobs are gathered. */
struct sb__room {
    sb_mem *mem;
    void *ptr; /* the host bytes of `mem` */
    bool taken;
};

struct sb__registered {
    const sb_blob *blob;
    int64_t entry;
};

#define SB__ROOMS 2

/* A blob is large if its size in bytes is at least this value times the number of ranks. The value
   was measured for two ranks (`./dev bench comm`). For more ranks the value is an estimate. */
#define SB__LARGE_BYTES_A_RANK ((size_t)128 << 10)

struct sb_reducer {
    sb_comm *comm;
    sb_part part;
    sb_comm_op op;
    size_t bucket_bytes;
    int64_t num_entries, num_buckets, num_done, next; /* `next`: bucket to start next */
    int64_t oldest;                                   /* oldest incomplete bucket */
    int64_t num_placed;                               /* number of entries that have a bucket */
    struct sb__entry *entries;
    struct sb__bucket *buckets;     /* an array with room for one bucket per entry */
    struct sb__registered *by_blob; /* sorted by the blobs' addresses */
    struct sb__room rooms[SB__ROOMS];
    size_t room_bytes; /* size of each buffer; 0: blobs are not gathered */
    bool in_step;
    sb_status result; /* the step's result: SB_OK, or DEVICE_LOST if scaling failed */
    sb_error error;
    sb_error unreported; /* describes failed work that wrote a blob, if sb_reducer_ready found the
                            failure but returned SB_OK. Code SB_OK: no failure */
    struct sb__comm_write *ended; /* writes that the public call destroys last */
};

/* Collective: compares the registrations of all ranks. `blobs` are the blobs of `reducer` in the
   caller's order. `st` is this rank's status so far. `err` (not NULL) describes a failure. Returns
   SB_OK if `st` is SB_OK at every rank and all registrations are equal. If the first reduction
   fails before sending, the caller may retry the call. */
sb_status sb__register(const struct sb_reducer *reducer, sb_blob *const *blobs, sb_comm *comm,
                       sb_status st, sb_error *err);

/* Makes the blobs' bytes current and starts the request. A bucket that gathers needs a free buffer.
   After COMM_FAILURE the caller must end the step. Any other failure changes nothing. */
sb_status sb__bucket_start(sb_reducer *reducer, struct sb__bucket *bucket, sb_error *err);
/* Ends a bucket whose request has completed: stores the results in the blobs, and scales the
   results. */
void sb__bucket_end(sb_reducer *reducer, struct sb__bucket *bucket);
/* Abandons a bucket in flight, after a failure of the engine or at the reducer's end. */
void sb__bucket_fail(sb_reducer *reducer, struct sb__bucket *bucket);

#endif
