/* One bucket of a reducer: gathers blobs, sends them, and stores the results. */
#include "reducer.h"

#include "error.h"

#include <string.h>

static struct sb__entry *entries_of(sb_reducer *reducer, const struct sb__bucket *bucket) {
    return reducer->entries + bucket->first;
}

static void cancel(struct sb__entry *entries, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        sb__exchange_cancel(&entries[i].exchange);
}

/* Checks that the caller has not changed the count of a ready blob, because the blob's values must
   fit into the bucket's buffer. */
static sb_status check_entry(const struct sb__entry *entry, sb_error *err) {
    if (sb_blob_count(entry->blob) == entry->count)
        return SB_OK;
    return sb__comm_fail(err, SB_ERR_SHAPE_MISMATCH,
                         "a blob was reshaped to %lld elements after it was ready with %lld",
                         (long long)sb_blob_count(entry->blob), (long long)entry->count);
}

static sb_status begin(sb_reducer *reducer, const struct sb__bucket *bucket, sb_error *err) {
    struct sb__entry *entries = entries_of(reducer, bucket);
    const enum sb__exchange_kind kind = bucket->gathers ? SB__EXCHANGE_HOST : SB__EXCHANGE_REDUCE;
    const double factor = sb__comm_factor(reducer->comm, reducer->op);
    for (int64_t i = 0; i < bucket->num_entries; i++) {
        sb_status st = check_entry(&entries[i], err);
        if (st == SB_OK)
            st = sb__exchange_begin(&entries[i].exchange, reducer->comm, entries[i].blob,
                                    reducer->part, kind, factor != 1.0, &reducer->ended, err);
        if (st != SB_OK) {
            cancel(entries, i);
            return st;
        }
    }
    return SB_OK;
}

/* Copies a blob's host bytes to the bucket's buffer at `*at` if `into_room`, else the buffer's
   bytes to the blob. Advances `*at` by the blob's bytes. */
static void copy(const struct sb__entry *entry, sb_dtype dtype, char **at, bool into_room) {
    void *ptr = entry->exchange.buffer.ptr;
    const size_t bytes = (size_t)entry->count * sb_dtype_size(dtype);
    if (!bytes)
        return;
    memcpy(into_room ? *at : ptr, into_room ? ptr : *at, bytes);
    *at += bytes;
}

sb_status sb__bucket_start(sb_reducer *reducer, struct sb__bucket *bucket, sb_error *err) {
    struct sb__entry *entries = entries_of(reducer, bucket);
    sb_status st = begin(reducer, bucket, err);
    if (st != SB_OK)
        return st;
    sb_comm_buffer buffer = entries[0].exchange.buffer;
    if (bucket->gathers) {
        char *at = reducer->rooms[bucket->room].ptr;
        for (int64_t i = 0; i < bucket->num_entries; i++)
            copy(&entries[i], bucket->dtype, &at, true);
        buffer = (sb_comm_buffer){.ptr = reducer->rooms[bucket->room].ptr,
                                  .count = bucket->elements,
                                  .dtype = bucket->dtype};
    }
    st = sb__comm_start(reducer->comm, reducer->op, &buffer, &bucket->request, err);
    if (st == SB_ERR_COMM_FAILURE && !bucket->gathers)
        sb__exchange_failed(&entries[0].exchange, true);
    else if (st != SB_OK)
        cancel(entries, bucket->num_entries);
    return st;
}

static void note(sb_reducer *reducer, sb_status st, const sb_error *err) {
    if (st == SB_OK || reducer->result != SB_OK)
        return;
    reducer->result = st;
    reducer->error = *err;
}

void sb__bucket_end(sb_reducer *reducer, struct sb__bucket *bucket) {
    struct sb__entry *entries = entries_of(reducer, bucket);
    const double factor = sb__comm_factor(reducer->comm, reducer->op);
    char *at = bucket->gathers ? reducer->rooms[bucket->room].ptr : NULL;
    for (int64_t i = 0; i < bucket->num_entries; i++) {
        sb_error err;
        if (bucket->gathers)
            copy(&entries[i], bucket->dtype, &at, false);
        note(reducer, sb__exchange_end(&entries[i].exchange, factor, &err), &err);
    }
}

void sb__bucket_fail(sb_reducer *reducer, struct sb__bucket *bucket) {
    struct sb__entry *entries = entries_of(reducer, bucket);
    const bool is_over = sb__comm_abandon(reducer->comm, bucket->request);
    if (!bucket->gathers) {
        sb__exchange_failed(&entries[0].exchange, is_over);
        return;
    }
    cancel(entries, bucket->num_entries);
    if (!is_over)
        reducer->rooms[bucket->room].mem = NULL; /* never freed: the engine may still use the
                                                    memory */
}
