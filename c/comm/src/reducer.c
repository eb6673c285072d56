#include "reducer.h"

#include "error.h"

#include <stdlib.h>

/* --- creating ----------------------------------------------------------------------- */

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Returns whether a blob is reduced in place. Gathering copies the blob twice, which for a large
   blob takes longer than a separate message. The time for a message grows with the number of ranks.
   So does the size from which a blob is large. */
static bool is_large(const sb_reducer *reducer, const sb_blob *blob) {
    const size_t bytes = sb__comm_blob_bytes(blob);
    return bytes >= reducer->bucket_bytes ||
           bytes >= SB__LARGE_BYTES_A_RANK * (uint64_t)reducer->comm->size;
}

static void add_bucket(sb_reducer *reducer, sb_blob *blob) {
    const int64_t first = reducer->num_placed;
    reducer->buckets[reducer->num_buckets++] =
        (struct sb__bucket){.first = first, .dtype = sb_blob_dtype(blob)};
}

/* Adds a blob to the last bucket. */
static void place(sb_reducer *reducer, sb_blob *blob, int64_t index) {
    struct sb__bucket *bucket = &reducer->buckets[reducer->num_buckets - 1];
    reducer->entries[reducer->num_placed++] = (struct sb__entry){
        .blob = blob,
        .index = index,
        .count = sb_blob_count(blob),
        .bucket = reducer->num_buckets - 1,
    };
    bucket->num_entries++;
    bucket->elements += sb_blob_count(blob);
}

/* Adds a bucket with the small blobs at the indices from `last` down to `first` + 1. */
static void gather(sb_reducer *reducer, sb_blob *const *blobs, int64_t last, int64_t first) {
    add_bucket(reducer, blobs[last]);
    for (int64_t i = last; i > first; i--)
        if (!is_large(reducer, blobs[i]))
            place(reducer, blobs[i], i);
    struct sb__bucket *bucket = &reducer->buckets[reducer->num_buckets - 1];
    bucket->gathers = bucket->elements > 0;
    if (bucket->gathers)
        reducer->room_bytes =
            max_size(reducer->room_bytes, (size_t)bucket->elements * sb_dtype_size(bucket->dtype));
}

/* Fills buckets from the last blob of the list to the first. Each large blob becomes a separate
   bucket, which precedes the bucket of small blobs that is being filled. */
static void make_buckets(sb_reducer *reducer, sb_blob *const *blobs) {
    int64_t open = -1; /* where the bucket that is being filled begins; -1: no bucket */
    size_t bytes = 0;
    for (int64_t i = reducer->num_entries; i--;) {
        sb_blob *blob = blobs[i];
        if (is_large(reducer, blob)) {
            add_bucket(reducer, blob);
            place(reducer, blob, i);
            continue;
        }
        const size_t more = sb__comm_blob_bytes(blob); /* below bucket_bytes, since the blob is not
                                                          large */
        if (open >= 0 && (sb_blob_dtype(blob) != sb_blob_dtype(blobs[open]) ||
                          more > reducer->bucket_bytes - bytes)) {
            gather(reducer, blobs, open, i);
            open = -1;
        }
        if (open < 0) {
            open = i;
            bytes = 0;
        }
        bytes += more;
    }
    if (open >= 0)
        gather(reducer, blobs, open, -1);
}

static int compare(const void *a, const void *b) {
    const struct sb__registered *one = a, *other = b;
    return ((uintptr_t)one->blob > (uintptr_t)other->blob) -
           ((uintptr_t)one->blob < (uintptr_t)other->blob);
}

/* Checks dtypes, and that no two blobs have the same memory. Uses the array `by_blob`, which has no
   elements yet, as scratch memory. */
static sb_status check_blobs(sb_reducer *reducer, sb_blob *const *blobs, sb_error *err) {
    const sb_mem **memories = (const sb_mem **)(void *)reducer->by_blob;
    for (int64_t i = 0; i < reducer->num_entries; i++) {
        sb_mem *mem;
        if (!blobs[i])
            return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "blob %lld is NULL", (long long)i);
        sb_status st = sb__comm_check_dtype(reducer->comm, sb_blob_dtype(blobs[i]), err);
        if (st == SB_OK)
            st = sb_blob_mutable_mem(blobs[i], reducer->part, &mem, err);
        if (st != SB_OK)
            return st;
        memories[i] = mem;
    }
    return sb__check_apart(memories, reducer->num_entries, err);
}

static void take_blobs(sb_reducer *reducer, sb_blob *const *blobs) {
    const int64_t count = reducer->num_entries;
    make_buckets(reducer, blobs);
    for (int64_t i = 0; i < count; i++)
        reducer->by_blob[i] = (struct sb__registered){reducer->entries[i].blob, i};
    qsort(reducer->by_blob, (size_t)count, sizeof *reducer->by_blob, compare);
}

static sb_status make_room(sb_reducer *reducer, struct sb__room *room, sb_error *err) {
    sb_status st = sb_mem_create(reducer->comm->context, reducer->room_bytes, &room->mem, err);
    return st == SB_OK ? sb_mem_overwrite_cpu(room->mem, &room->ptr, err) : st;
}

static sb_status make_rooms(sb_reducer *reducer, sb_error *err) {
    sb_status st = SB_OK;
    for (int i = 0; i < SB__ROOMS && st == SB_OK && reducer->room_bytes; i++)
        st = make_room(reducer, &reducer->rooms[i], err);
    return st;
}

/* Allocates the arrays with one element per blob. Checks for overflow. */
static sb_status allocate(sb_reducer *reducer, sb_error *err) {
    const size_t count = reducer->num_entries ? (size_t)reducer->num_entries : 1;
    if (count > PTRDIFF_MAX / sizeof *reducer->entries)
        return sb__comm_fail_memory(err);
    reducer->entries = calloc(count, sizeof *reducer->entries);
    reducer->buckets = calloc(count, sizeof *reducer->buckets);
    reducer->by_blob = calloc(count, sizeof *reducer->by_blob);
    return reducer->entries && reducer->buckets && reducer->by_blob ? (sb_status)SB_OK
                                                                    : sb__comm_fail_memory(err);
}

static void free_all(sb_reducer *reducer) {
    for (int i = 0; i < SB__ROOMS; i++)
        sb_mem_release(reducer->rooms[i].mem);
    free(reducer->entries);
    free(reducer->buckets);
    free(reducer->by_blob);
    free(reducer);
}

static sb_status make(sb_comm *comm, sb_blob *const *blobs, int64_t num_blobs,
                      const sb_reducer_options *options, sb_reducer **out, sb_error *err) {
    sb_reducer *reducer = calloc(1, sizeof *reducer);
    if (!reducer)
        return sb__comm_fail_memory(err);
    reducer->comm = comm;
    reducer->part = options->part;
    reducer->op = options->op;
    reducer->bucket_bytes = options->bucket_bytes;
    reducer->num_entries = num_blobs;
    sb_status st = allocate(reducer, err);
    if (st == SB_OK)
        st = check_blobs(reducer, blobs, err);
    if (st == SB_OK) {
        take_blobs(reducer, blobs);
        st = make_rooms(reducer, err);
    }
    if (st == SB_OK)
        *out = reducer;
    else
        free_all(reducer);
    return st;
}

#define FIRST_OPTIONS_SIZE                                                                         \
    (offsetof(sb_reducer_options, bucket_bytes) + sizeof(((sb_reducer_options *)0)->bucket_bytes))

static sb_status check_create(sb_blob *const *blobs, int64_t num_blobs,
                              const sb_reducer_options *options, sb_reducer_options *ours,
                              sb_reducer **out, sb_error *err) {
    sb_status st = SB_OK;
    if (options)
        st = sb__comm_adopt_struct(ours, sizeof *ours, FIRST_OPTIONS_SIZE, options,
                                   options->struct_size, "sb_reducer_options", err);
    if (st != SB_OK)
        return st;
    if (!out)
        return sb__comm_fail_null(err, "out");
    if (ours->part != SB_DATA && ours->part != SB_DIFF)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "a blob has no part %d", ours->part);
    if (num_blobs < 0)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "the number of blobs is %lld: negative",
                             (long long)num_blobs);
    if (num_blobs && !blobs)
        return sb__comm_fail_null(err, "blobs");
    return sb__comm_check_op(ours->op, err);
}

static void begin_step(sb_reducer *reducer) {
    reducer->next = reducer->num_done = reducer->oldest = 0;
    reducer->result = SB_OK;
    reducer->unreported.code = SB_OK;
    for (int64_t i = 0; i < reducer->num_entries; i++)
        reducer->entries[i].ready = false;
    for (int64_t i = 0; i < reducer->num_buckets; i++)
        reducer->buckets[i].missing = reducer->buckets[i].num_entries;
}

/* A rank that has failed also calls sb__register, because the other ranks wait for its call. */
sb_status sb_reducer_create(sb_comm *comm, sb_blob *const *blobs, int64_t num_blobs,
                            const sb_reducer_options *options, sb_reducer **out, sb_error *err) {
    sb_reducer_options ours = SB_REDUCER_OPTIONS_INIT;
    sb_reducer *reducer = NULL;
    sb_error cause;
    sb_status st = sb__comm_check(comm, err);
    if (st != SB_OK)
        return st;
    st = check_create(blobs, num_blobs, options, &ours, out, &cause);
    if (st == SB_OK)
        st = make(comm, blobs, num_blobs, &ours, &reducer, &cause);
    st = sb__register(reducer, blobs, comm, st, &cause);
    if (st != SB_OK) {
        if (reducer)
            free_all(reducer);
        sb__comm_copy_error(err, &cause);
        return st;
    }
    begin_step(reducer);
    *out = reducer;
    return SB_OK;
}

/* --- a step ---------------------------------------------------------------------------- */

static void end_step(sb_reducer *reducer) {
    reducer->in_step = reducer->comm->has_step = false;
    begin_step(reducer);
}

static void fail_step(sb_reducer *reducer) {
    for (int64_t i = 0; i < reducer->next; i++)
        if (reducer->buckets[i].state == SB__BUCKET_IN_FLIGHT)
            sb__bucket_fail(reducer, &reducer->buckets[i]);
    end_step(reducer);
}

static void abandon_step(sb_reducer *reducer) {
    sb_comm *comm = reducer->comm;
    const bool is_usable = sb__comm_check_usable(comm, NULL) == SB_OK;
    for (int64_t i = 0; is_usable && i < reducer->next && !comm->failed; i++) {
        struct sb__bucket *bucket = &reducer->buckets[i];
        if (bucket->state == SB__BUCKET_IN_FLIGHT &&
            sb__comm_wait(comm, bucket->request, NULL) == SB_OK)
            bucket->request = NULL;
    }
    comm->failed = true;
    fail_step(reducer);
}

void sb_reducer_destroy(sb_reducer *reducer) {
    if (!reducer)
        return;
    if (reducer->in_step)
        abandon_step(reducer);
    struct sb__comm_write *ended = reducer->ended;
    free_all(reducer);
    sb__comm_writes_destroy(&ended);
}

/* Must be the last statement of a public call, because a deleter may use or destroy the reducer. */
static void destroy_ended(sb_reducer *reducer) {
    struct sb__comm_write *ended = reducer->ended;
    reducer->ended = NULL;
    sb__comm_writes_destroy(&ended);
}

static void finish(sb_reducer *reducer, struct sb__bucket *bucket) {
    sb__bucket_end(reducer, bucket);
    bucket->state = SB__BUCKET_DONE;
    while (reducer->oldest < reducer->next &&
           reducer->buckets[reducer->oldest].state == SB__BUCKET_DONE)
        reducer->oldest++;
    if (bucket->room >= 0)
        reducer->rooms[bucket->room].taken = false;
    reducer->num_done++;
}

/* Ends completed buckets, up to the oldest incomplete bucket. Does not test later requests: one
   test already makes the engine progress on all requests, and many tests would take long. */
static sb_status test_oldest(sb_reducer *reducer, sb_error *err) {
    for (int64_t i = reducer->oldest; i < reducer->next; i++) {
        struct sb__bucket *bucket = &reducer->buckets[i];
        bool done = false;
        if (bucket->state != SB__BUCKET_IN_FLIGHT)
            continue;
        sb_status st = sb__comm_test(reducer->comm, bucket->request, &done, err);
        if (st != SB_OK)
            return st;
        if (!done)
            break;
        finish(reducer, bucket);
    }
    return SB_OK;
}

static bool find_room(sb_reducer *reducer, struct sb__bucket *bucket) {
    bucket->room = -1;
    if (!bucket->gathers)
        return true;
    for (int32_t i = 0; i < SB__ROOMS; i++)
        if (!reducer->rooms[i].taken)
            bucket->room = i;
    return bucket->room >= 0;
}

static bool may_start(sb_reducer *reducer) {
    if (reducer->next == reducer->num_buckets)
        return false;
    struct sb__bucket *bucket = &reducer->buckets[reducer->next];
    return bucket->missing == 0 && find_room(reducer, bucket);
}

static sb_status start_all(sb_reducer *reducer, sb_error *err) {
    while (may_start(reducer)) {
        struct sb__bucket *bucket = &reducer->buckets[reducer->next];
        sb_status st = sb__bucket_start(reducer, bucket, err);
        if (st != SB_OK)
            return st;
        reducer->next++;
        bucket->state = SB__BUCKET_IN_FLIGHT;
        if (bucket->room >= 0)
            reducer->rooms[bucket->room].taken = true;
        if (!bucket->request)
            finish(reducer, bucket);
    }
    return SB_OK;
}

static sb_status advance(sb_reducer *reducer, sb_error *cause) {
    sb_status st = test_oldest(reducer, cause);
    return st == SB_OK ? start_all(reducer, cause) : st;
}

static struct sb__entry *find(sb_reducer *reducer, const sb_blob *blob) {
    int64_t low = 0, high = reducer->num_entries;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((uintptr_t)reducer->by_blob[middle].blob < (uintptr_t)blob)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == reducer->num_entries || reducer->by_blob[low].blob != blob)
        return NULL;
    return &reducer->entries[reducer->by_blob[low].entry];
}

/* Refuses a call on this reducer during another reducer's step. */
static sb_status check_step(const sb_reducer *reducer, sb_error *err) {
    return reducer->in_step ? sb__comm_check_usable(reducer->comm, err)
                            : sb__comm_check(reducer->comm, err);
}

static sb_status check_ready(const sb_reducer *reducer, const struct sb__entry *entry,
                             const sb_blob *blob, sb_error *err) {
    const sb_dtype dtype = reducer->buckets[entry->bucket].dtype;
    if (entry->ready)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "the blob is already ready in this step");
    if (dtype != sb_blob_dtype(blob)) /* a new blob at the registered blob's address */
        return sb__comm_fail(err, SB_ERR_DTYPE_MISMATCH,
                             "the blob has elements of %s, but had %s when it was registered",
                             sb_dtype_name(sb_blob_dtype(blob)), sb_dtype_name(dtype));
    if (entry->count != sb_blob_count(blob))
        return sb__comm_fail(err, SB_ERR_SHAPE_MISMATCH,
                             "the blob has %lld elements, but had %lld when it was registered",
                             (long long)sb_blob_count(blob), (long long)entry->count);
    return SB_OK;
}

static sb_status ready(sb_reducer *reducer, sb_blob *blob, sb_error *err) {
    sb_error cause;
    sb_status st = check_step(reducer, err);
    if (st != SB_OK)
        return st;
    struct sb__entry *entry = find(reducer, blob);
    if (!entry)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "the blob was not registered");
    st = check_ready(reducer, entry, blob, err);
    if (st != SB_OK)
        return st;
    entry->ready = true;
    reducer->buckets[entry->bucket].missing--;
    reducer->in_step = reducer->comm->has_step = true;
    st = advance(reducer, &cause);
    if (st == SB_ERR_DEVICE_FAILURE)
        reducer->unreported = cause; /* a blob's newest bytes may be lost: a retry would reduce
                                        older bytes */
    if (st != SB_ERR_COMM_FAILURE)
        return SB_OK; /* buckets that could not start are retried later */
    fail_step(reducer);
    sb__comm_copy_error(err, &cause);
    return st;
}

sb_status sb_reducer_ready(sb_reducer *reducer, sb_blob *blob, sb_error *err) {
    if (!reducer || !blob)
        return sb__comm_fail_null(err, reducer ? "blob" : "reducer");
    sb_status st = ready(reducer, blob, err);
    destroy_ended(reducer);
    return st;
}

static sb_status check_all_ready(sb_reducer *reducer, sb_error *err) {
    for (int64_t i = 0; i < reducer->num_entries; i++)
        if (!reducer->entries[i].ready)
            return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "blob %lld was not ready",
                                 (long long)reducer->entries[i].index);
    return SB_OK;
}

/* Completes the step. The function start_all stops when no buffer is free. The loop then waits for
   the oldest bucket in flight, which frees its buffer. */
static sb_status run(sb_reducer *reducer, sb_error *err) {
    for (;;) {
        sb_status st = start_all(reducer, err);
        if (st != SB_OK || reducer->num_done == reducer->num_buckets)
            return st;
        struct sb__bucket *bucket = &reducer->buckets[reducer->oldest];
        st = sb__comm_wait(reducer->comm, bucket->request, err);
        if (st != SB_OK)
            return st;
        finish(reducer, bucket);
    }
}

/* Returns a failure that sb_reducer_ready has found but not returned. The next call returns
   SB_OK. */
static sb_status report(sb_reducer *reducer, sb_error *err) {
    const sb_status st = reducer->unreported.code;
    if (st != SB_OK)
        sb__comm_copy_error(err, &reducer->unreported);
    reducer->unreported.code = SB_OK;
    return st;
}

static sb_status wait_for_all(sb_reducer *reducer, sb_error *err) {
    sb_status st = check_step(reducer, err);
    if (st == SB_OK)
        st = check_all_ready(reducer, err);
    if (st == SB_OK)
        st = report(reducer, err);
    if (st == SB_OK)
        st = run(reducer, err);
    if (st == SB_ERR_COMM_FAILURE && reducer->in_step)
        fail_step(reducer);
    if (st != SB_OK)
        return st;
    st = reducer->result;
    if (st != SB_OK)
        sb__comm_copy_error(err, &reducer->error);
    end_step(reducer);
    return st;
}

sb_status sb_reducer_wait(sb_reducer *reducer, sb_error *err) {
    if (!reducer)
        return sb__comm_fail_null(err, "reducer");
    sb_status st = wait_for_all(reducer, err);
    destroy_ended(reducer);
    return st;
}
