/* sb_reducer from inside. */
#ifndef SB_COMM_REDUCER_H
#define SB_COMM_REDUCER_H

#include "exchange.h"

#include <syncblob/reducer.h>

/* A blob. They lie in the order of buckets; in a bucket, and among those that are large, the last
   of the list comes first. */
struct sb__entry {
    sb_blob *blob;
    int64_t index; /* in the caller's list */
    int64_t count; /* elements when it was registered */
    int64_t bucket;
    bool ready;
    struct sb__exchange exchange; /* while the bucket flies */
};

/* Those before the reducer's `next`; what the others have is of the last step. */
enum sb__bucket_state { SB__BUCKET_FLIES = 1, SB__BUCKET_DONE };

/* Consecutive entries, of one dtype. */
struct sb__bucket {
    int64_t first, num_entries;
    int64_t missing; /* entries that are not ready */
    int64_t elements;
    bool gathers; /* on the host; else one large blob, or none that has elements */
    sb_dtype dtype;
    enum sb__bucket_state state;
    int32_t room; /* the buffer that it flies in, or -1 */
    void *request;
};

/* Where a bucket's blobs are gathered. */
struct sb__room {
    sb_mem *mem;
    void *ptr; /* its host bytes */
    bool taken;
};

struct sb__registered {
    const sb_blob *blob;
    int64_t entry;
};

#define SB__ROOMS 2

/* A blob of so many bytes for each rank is large. `./dev bench comm` measures it for two ranks;
   that it grows with the ranks is an estimate. */
#define SB__LARGE_BYTES_A_RANK ((size_t)128 << 10)

struct sb_reducer {
    sb_comm *comm;
    sb_part part;
    sb_comm_op op;
    size_t bucket_bytes;
    int64_t num_entries, num_buckets, num_done, next; /* `next`: the bucket to start */
    int64_t oldest;                                   /* bucket that is not done */
    int64_t num_placed;                               /* entries that have their bucket */
    struct sb__entry *entries;
    struct sb__bucket *buckets;     /* room for one an entry */
    struct sb__registered *by_blob; /* sorted by pointer */
    struct sb__room rooms[SB__ROOMS];
    size_t room_bytes; /* 0: nothing is gathered */
    bool in_step;
    sb_status result; /* of the step so far: a device that was lost while it scaled */
    sb_error error;
    struct sb__comm_write *ended; /* of blobs: destroyed when a call has done all else */
};

/* Collective, where `blobs` are those of `reducer` in the caller's order, `st` is what this rank
   has to say so far, with its story in `err`, not NULL: SB_OK if it is that at every rank and all
   have registered the same. Where the engine sends nothing of the first reduction, the call may be
   made again. */
sb_status sb__register(const struct sb_reducer *reducer, sb_blob *const *blobs, sb_comm *comm,
                       sb_status st, sb_error *err);

/* Makes the blobs' bytes current and starts the request. Changes nothing on failure, unless that
   is COMM_FAILURE: then the step has to fail. The bucket has a room if it gathers. */
sb_status sb__bucket_start(sb_reducer *reducer, struct sb__bucket *bucket, sb_error *err);
/* The request is done: scales, and gives the blobs their values. */
void sb__bucket_end(sb_reducer *reducer, struct sb__bucket *bucket);
/* A failure of the engine, or the reducer's end: gives up a bucket that flies. */
void sb__bucket_fail(sb_reducer *reducer, struct sb__bucket *bucket);

#endif
