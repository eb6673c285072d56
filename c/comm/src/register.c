/* Compares the ranks' registrations when a reducer is created. If all ranks agree, one small
   reduction of checksums suffices. Otherwise rank 0 broadcasts its registration, and the first rank
   that differs broadcasts the difference. */
#include "reducer.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

/* Describes a blob or, as the first record, the reducer. Records are compared byte by byte. */
struct record {
    int64_t dtype;    /* a blob's element type; the next two members also describe a blob */
    int64_t num_axes; /* -1: the blob has no shape */
    int64_t dims[SB_MAX_AXES];
    int64_t num_blobs, name, op, bucket_bytes; /* describe the reducer */
};

/* The registration of this rank. */
struct list {
    const struct sb_reducer *reducer;
    sb_blob *const *blobs;
};

/* Returns record i: record 0 describes the reducer, record 1 the first blob. */
static struct record record_at(const struct list *list, int64_t i) {
    const struct sb_reducer *reducer = list->reducer;
    struct record record = {.dtype = 0};
    if (i == 0) {
        record.num_blobs = reducer->num_entries;
        record.name = reducer->part;
        record.op = reducer->op;
        record.bucket_bytes = (int64_t)reducer->bucket_bytes;
        return record;
    }
    if (i > reducer->num_entries)
        return record;
    const sb_blob *blob = list->blobs[i - 1];
    record.dtype = sb_blob_dtype(blob);
    const int32_t num_axes = sb_blob_num_axes(blob);
    record.num_axes = num_axes || sb_blob_count(blob) ? num_axes : -1;
    memcpy(record.dims, sb_blob_shape(blob), (size_t)num_axes * sizeof *record.dims);
    return record;
}

/* Computes the checksum of a registration: FNV-1a, 64 bits. */
static uint64_t sum_of(const struct list *list) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (int64_t i = 0; i <= list->reducer->num_entries; i++) {
        const struct record record = record_at(list, i);
        const unsigned char *bytes = (const unsigned char *)&record;
        for (size_t j = 0; j < sizeof record; j++)
            sum = (sum ^ bytes[j]) * 0x100000001b3u;
    }
    return sum;
}

static sb_status reduce(sb_comm *comm, sb_comm_op op, double *values, int64_t count,
                        sb_error *err) {
    const sb_comm_buffer buffer = {.ptr = values, .count = count, .dtype = SB_DTYPE_F64};
    return sb__comm_all_reduce(comm, op, &buffer, err);
}

/* Reduces `*first` to the minimum of all ranks. On failure marks the communicator as failed,
   because the comparison of the ranks has begun and this rank cannot retry. */
static sb_status reduce_first(sb_comm *comm, double *first, sb_error *err) {
    return reduce(comm, SB_COMM_MIN, first, 1, err) == SB_OK ? SB_OK : sb__comm_disable(comm, err);
}

static sb_status broadcast(sb_comm *comm, int32_t root, void *bytes, size_t size, sb_error *err) {
    const sb_comm_buffer buffer = {.ptr = bytes, .count = (int64_t)size, .dtype = SB_DTYPE_U8};
    return sb__comm_broadcast(comm, root, &buffer, err) == SB_OK ? SB_OK
                                                                 : sb__comm_disable(comm, err);
}

static void shape_text(const struct record *record, char out[100]) {
    if (record->num_axes < 0) {
        (void)snprintf(out, 100, "%s without a shape", sb_dtype_name((sb_dtype)record->dtype));
        return;
    }
    const int64_t num_axes = record->num_axes < SB_MAX_AXES ? record->num_axes : SB_MAX_AXES;
    int used = snprintf(out, 100, "%s (", sb_dtype_name((sb_dtype)record->dtype));
    for (int64_t i = 0; i < num_axes && used < 76; i++)
        used += snprintf(out + used, 100 - (size_t)used, i ? " %lld" : "%lld",
                         (long long)record->dims[i]);
    (void)snprintf(out + used, 100 - (size_t)used, ")");
}

static sb_status fail_blob(const struct record *theirs, const struct record *ours, int64_t i,
                           int32_t rank, sb_error *err) {
    char other[100], own[100];
    shape_text(theirs, other);
    shape_text(ours, own);
    const sb_status st =
        theirs->dtype != ours->dtype ? SB_ERR_DTYPE_MISMATCH : SB_ERR_SHAPE_MISMATCH;
    return sb__comm_fail(err, st, "blob %lld is %s at rank 0, %s at rank %d", (long long)i, other,
                         own, rank);
}

static const char *part_of(const struct record *record) {
    return record->name ? "diff" : "data";
}

static sb_status fail_head(const struct record *theirs, const struct record *ours, int32_t rank,
                           sb_error *err) {
    if (theirs->num_blobs != ours->num_blobs)
        return sb__comm_fail(err, SB_ERR_SHAPE_MISMATCH,
                             "rank 0 registers %lld blobs, rank %d registers %lld",
                             (long long)theirs->num_blobs, rank, (long long)ours->num_blobs);
    return sb__comm_fail(
        err, SB_ERR_INVALID_ARGUMENT,
        "rank 0 reduces %s by op %lld in buckets of %lld, rank %d reduces %s by op %lld in "
        "buckets of %lld",
        part_of(theirs), (long long)theirs->op, (long long)theirs->bucket_bytes, rank,
        part_of(ours), (long long)ours->op, (long long)ours->bucket_bytes);
}

/* Compares this rank's records with rank 0's, in order. `cause` describes the first difference. */
static sb_status compare(const struct list *list, sb_comm *comm, sb_status *out, sb_error *cause,
                         sb_error *err) {
    int64_t records = 1;
    for (int64_t i = 0; i < records; i++) {
        const struct record ours = record_at(list, i);
        struct record theirs = ours;
        sb_status st = broadcast(comm, 0, &theirs, sizeof theirs, err);
        if (st != SB_OK)
            return st;
        if (i == 0)
            records += theirs.num_blobs;
        if (*out != SB_OK || !memcmp(&ours, &theirs, sizeof ours))
            continue;
        *out = i ? fail_blob(&theirs, &ours, i - 1, comm->rank, cause)
                 : fail_head(&theirs, &ours, comm->rank, cause);
    }
    return SB_OK;
}

/* Broadcasts the error `cause` of the first rank that has an error. If `is_failure`, prefixes the
   message with the rank. A message about a difference already contains the ranks. */
static sb_status share_cause(sb_comm *comm, bool is_failure, sb_status ours, sb_error *cause,
                             sb_error *err) {
    double first = ours == SB_OK ? comm->size : comm->rank;
    sb_error sent = {.code = SB_OK};
    sb_status st = reduce_first(comm, &first, err);
    if (st != SB_OK)
        return st;
    if (!(first >= 0 && first < comm->size)) { /* the checksums differ, but all records are equal */
        (void)sb__comm_fail(err, SB_ERR_COMM_FAILURE,
                            "the registrations differ, but no rank found a difference");
        return sb__comm_disable(comm, err);
    }
    const int32_t rank = (int32_t)first;
    if (rank == comm->rank)
        sent = *cause;
    st = broadcast(comm, rank, &sent, sizeof sent, err);
    if (st != SB_OK)
        return st;
    if (sent.code >= 0) /* rank `rank` sent a code that is not a failure */
        sent.code = sb__comm_disable(comm, NULL);
    if (ours != SB_OK && is_failure)
        return ours; /* `err` describes `ours` */
    return is_failure ? sb__comm_fail(err, sent.code, "rank %d: %.200s", rank, sent.message)
                      : sb__comm_fail_slot(err, sent.code, &sent, "registration");
}

sb_status sb__register(const struct sb_reducer *reducer, sb_blob *const *blobs, sb_comm *comm,
                       sb_status st, sb_error *err) {
    const struct list list = {reducer, blobs};
    const uint64_t sum = reducer ? sum_of(&list) : 0; /* `reducer` is NULL if `st` is a failure */
    const double low = (double)(uint32_t)sum, high = (double)(sum >> 32);
    double most[] = {st == SB_OK ? 0 : 1, low, -low, high, -high};
    sb_error cause = {.code = SB_OK};
    if (st != SB_OK)
        cause = *err;
    sb_status ours = reduce(comm, SB_COMM_MAX, most, 5, err);
    if (ours != SB_OK)
        return ours;
    if (!reducer || most[0] > 0)
        return share_cause(comm, true, st, &cause, err);
    if (most[1] == -most[2] && most[3] == -most[4])
        return SB_OK;
    sb_status failed = compare(&list, comm, &ours, &cause, err);
    return failed != SB_OK ? failed : share_cause(comm, false, ours, &cause, err);
}
