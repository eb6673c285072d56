/* The struct of sb_reducer. */
#ifndef SB_COMM_REDUCER_H
#define SB_COMM_REDUCER_H

#include "exchange.h"

#include <syncblob/reducer.h>

/* A registered blob. Entries are sorted by bucket; within a bucket, and among large blobs, the last
   of the caller's list comes first. */
struct sb__entry {
    sb_blob *blob;
    int64_t index; /* in the caller's list */
    int64_t count; /* elements at the registration */
    int64_t bucket;
    bool ready;
    struct sb__exchange exchange; /* while the bucket is in flight */
};

/* States of buckets before the reducer's `next`; other buckets have states of the last step. */
enum sb__bucket_state { SB__BUCKET_FLIES = 1, SB__BUCKET_DONE };

/* Consecutive entries, of one dtype. */
struct sb__bucket {
    int64_t first, num_entries;
    int64_t missing; /* number of entries that are not ready */
    int64_t elements;
    bool gathers; /* gathers on the host; else one large blob, or no elements */
    sb_dtype dtype;
    enum sb__bucket_state state;
    int32_t room; /* the buffer in use while in flight, or -1 */
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

/* A blob with at least so many bytes for each rank is large. `./dev bench comm` measures this for
   two ranks; the growth with the ranks is an estimate. */
#define SB__LARGE_BYTES_A_RANK ((size_t)128 << 10)

struct sb_reducer {
    sb_comm *comm;
    sb_part part;
    sb_comm_op op;
    size_t bucket_bytes;
    int64_t num_entries, num_buckets, num_done, next; /* `next`: the next bucket to start */
    int64_t oldest;                                   /* oldest incomplete bucket */
    int64_t num_placed;                               /* entries that have a bucket */
    struct sb__entry *entries;
    struct sb__bucket *buckets;     /* capacity of one bucket an entry */
    struct sb__registered *by_blob; /* sorted by pointer */
    struct sb__room rooms[SB__ROOMS];
    size_t room_bytes; /* 0: no gathering */
    bool in_step;
    sb_status result; /* of the step so far: DEVICE_LOST of a device that failed while scaling */
    sb_error error;
    struct sb__comm_write *ended; /* writes that the call destroys last */
};

/* Collective: compares the registrations of all ranks. `blobs` are those of `reducer` in the
   caller's order; `st` is this rank's status so far, described in `err` (not NULL). SB_OK if `st`
   is SB_OK at every rank and all registrations are equal. If the engine sends nothing of the first
   reduction, the call may be retried. */
sb_status sb__register(const struct sb_reducer *reducer, sb_blob *const *blobs, sb_comm *comm,
                       sb_status st, sb_error *err);

/* Makes the blobs' bytes current and starts the request. Changes nothing on failure, except
   COMM_FAILURE: then the step must fail. A gathering bucket has a room. */
sb_status sb__bucket_start(sb_reducer *reducer, struct sb__bucket *bucket, sb_error *err);
/* Ends a bucket after its request: scales, and stores the blobs' values. */
void sb__bucket_end(sb_reducer *reducer, struct sb__bucket *bucket);
/* Abandons a bucket in flight, after a failure of the engine or at the reducer's end. */
void sb__bucket_fail(sb_reducer *reducer, struct sb__bucket *bucket);

#endif
