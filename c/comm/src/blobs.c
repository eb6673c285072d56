/* Collectives on a list of blobs. All blobs are prepared before the first blob is sent. If a blob
   cannot be prepared, the call fails before other ranks wait for this rank's data. */
#include "exchange.h"

#include "error.h"

#include <stdlib.h>

struct list {
    sb_comm *comm;
    sb_blob *const *blobs;
    int64_t num_blobs;
    sb_part part;
    enum sb__exchange_kind kind;
    sb_comm_op op;
    int32_t root;
    double factor;
    struct sb__exchange *exchanges;
    struct sb__comm_write *ended;
};

static sb_status check_list(sb_comm *comm, sb_blob *const *blobs, int64_t num_blobs, sb_part part,
                            sb_error *err) {
    sb_status st = sb__comm_check(comm, err);
    if (st != SB_OK)
        return st;
    if (part != SB_DATA && part != SB_DIFF)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "a blob has no part %d", part);
    if (num_blobs < 0)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "the number of blobs is %lld: negative",
                             (long long)num_blobs);
    if (num_blobs && !blobs)
        return sb__comm_fail_null(err, "blobs");
    for (int64_t i = 0; i < num_blobs; i++)
        if (!blobs[i])
            return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "blob %lld is NULL", (long long)i);
    return SB_OK;
}

static void cancel(struct list *list, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++)
        sb__exchange_cancel(&list->exchanges[i]);
}

/* Returns SHARED if two blobs have the same memory. `memories` has room for a pointer per blob. */
static sb_status check_memories(const struct list *list, const sb_mem **memories, sb_error *err) {
    int64_t count = 0;
    for (int64_t i = 0; i < list->num_blobs; i++) {
        sb_mem *mem = NULL;
        sb_status st = SB_OK;
        if (sb_blob_count(list->blobs[i]))
            st = sb_blob_mutable_mem(list->blobs[i], list->part, &mem, err);
        if (st != SB_OK)
            return st;
        if (mem)
            memories[count++] = mem;
    }
    return sb__check_apart(memories, count, err);
}

static sb_status begin(struct list *list, sb_error *err) {
    for (int64_t i = 0; i < list->num_blobs; i++) {
        sb_status st =
            sb__exchange_begin(&list->exchanges[i], list->comm, list->blobs[i], list->part,
                               list->kind, list->factor != 1.0, &list->ended, err);
        if (st != SB_OK) {
            cancel(list, 0, i);
            return st;
        }
    }
    return SB_OK;
}

static sb_status send(struct list *list, int64_t i, sb_error *err) {
    const sb_comm_buffer *buffer = &list->exchanges[i].buffer;
    return list->kind == SB__EXCHANGE_REDUCE
               ? sb__comm_all_reduce(list->comm, list->op, buffer, err)
               : sb__comm_broadcast(list->comm, list->root, buffer, err);
}

/* Handles the engine's failure `st` for blob i. Returns `st` if no earlier blob was sent, else
   COMM_FAILURE. */
static sb_status fail(struct list *list, int64_t i, sb_status st, sb_error *err) {
    if (st == SB_ERR_COMM_FAILURE)
        sb__exchange_failed(&list->exchanges[i], true);
    cancel(list, i, list->num_blobs);
    return i == 0 ? st : sb__comm_disable(list->comm, err);
}

/* Sends all blobs, even after a device is lost, because the other ranks wait for every blob. */
static sb_status run(struct list *list, sb_error *err) {
    sb_status first = SB_OK;
    for (int64_t i = 0; i < list->num_blobs; i++) {
        sb_status st = send(list, i, err);
        if (st != SB_OK)
            return fail(list, i, st, err);
        st = sb__exchange_end(&list->exchanges[i], list->factor, first == SB_OK ? err : NULL);
        if (first == SB_OK)
            first = st;
    }
    return first;
}

static sb_status exchange(struct list *list, sb_error *err) {
    if (!list->num_blobs)
        return SB_OK;
    if ((uint64_t)list->num_blobs > SIZE_MAX / 2 / sizeof *list->exchanges)
        return sb__comm_fail_memory(err);
    const sb_mem **memories = calloc((size_t)list->num_blobs, sizeof *memories);
    list->exchanges = calloc((size_t)list->num_blobs, sizeof *list->exchanges);
    sb_status st = memories && list->exchanges ? check_memories(list, memories, err)
                                               : sb__comm_fail_memory(err);
    if (st == SB_OK)
        st = begin(list, err);
    if (st == SB_OK)
        st = run(list, err);
    free(memories);
    free(list->exchanges);
    sb__comm_writes_destroy(&list->ended);
    return st;
}

sb_status sb_comm_all_reduce_blobs(sb_comm *comm, sb_blob *const *blobs, int64_t num_blobs,
                                   sb_part part, sb_comm_op op, sb_error *err) {
    sb_status st = check_list(comm, blobs, num_blobs, part, err);
    if (st == SB_OK)
        st = sb__comm_check_op(op, err);
    for (int64_t i = 0; i < num_blobs && st == SB_OK; i++)
        st = sb__comm_check_dtype(comm, sb_blob_dtype(blobs[i]), err);
    if (st != SB_OK)
        return st;
    struct list list = {.comm = comm,
                        .blobs = blobs,
                        .num_blobs = num_blobs,
                        .part = part,
                        .kind = SB__EXCHANGE_REDUCE,
                        .op = op,
                        .factor = sb__comm_factor(comm, op)};
    return exchange(&list, err);
}

sb_status sb_comm_broadcast_blobs(sb_comm *comm, sb_blob *const *blobs, int64_t num_blobs,
                                  sb_part part, int32_t root, sb_error *err) {
    sb_status st = check_list(comm, blobs, num_blobs, part, err);
    if (st == SB_OK)
        st = sb__comm_check_root(comm, root, err);
    if (st != SB_OK)
        return st;
    struct list list = {.comm = comm,
                        .blobs = blobs,
                        .num_blobs = num_blobs,
                        .part = part,
                        .kind = comm->rank == root ? SB__EXCHANGE_SEND : SB__EXCHANGE_RECEIVE,
                        .root = root,
                        .factor = 1.0};
    return exchange(&list, err);
}
