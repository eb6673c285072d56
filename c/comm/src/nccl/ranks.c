#include "engine.h"

#include "../comm.h"
#include "../error.h"

#include <stdlib.h>
#include <string.h>
#include <syncblob/nccl.h>

_Static_assert(SB_NCCL_ID_BYTES == SB__NCCL_ID_BYTES, "an id");

sb_status sb_nccl_id_create(uint8_t *out, sb_error *err) {
    sb_error cause = {.code = SB_OK};
    if (!out)
        return sb__comm_fail_null(err, "out");
    const sb_status st = sb__nccl_make_id(out, &cause);
    return st == SB_OK ? SB_OK : sb__comm_fail_slot(err, st, &cause, "nccl");
}

static sb_status check_context(const sb_context *context, sb_error *err) {
    if (!context)
        return sb__comm_fail_null(err, "context");
    const sb_status st = sb_context_device_status(context);
    /* In a forked child the ordinal is not available. The function then returns FORKED. */
    if (st != SB_ERR_FORKED && sb__nccl_ordinal(context) < 0)
        return sb__comm_fail(err, SB_ERR_NO_DEVICE,
                             "NCCL needs a context on the library's CUDA backend, not on \"%s\"",
                             sb_context_device(context));
    return st == SB_OK ? (sb_status)SB_OK : sb_error_fill(err, st, 0, NULL);
}

/* Destroys a communicator (may be NULL) without waiting for other ranks. */
static void destroy_now(sb_comm *comm) {
    if (comm)
        comm->failed = true;
    sb_comm_destroy(comm);
}

/* Connects the ranks before it creates communicators: only connecting depends on other ranks. */
static sb_status connect_ranks(sb_context *const *contexts, int32_t count, const uint8_t *id,
                               int32_t first, int32_t size, uint32_t limit, sb_comm **out,
                               sb_error *err) {
    sb_error cause = {.code = SB_OK};
    sb_comm **comms = calloc((size_t)count, sizeof *comms);
    struct sb__nccl_end **ends = calloc((size_t)count, sizeof *ends);
    sb_status st = comms && ends ? (sb_status)SB_OK
                                 : sb_error_fill(&cause, SB_ERR_OUT_OF_MEMORY, 0,
                                                 "no memory for the ranks' handles");
    if (st == SB_OK)
        st = sb__nccl_connect(contexts, count, id, first, size, limit, ends, &cause);
    if (st != SB_OK)
        st = sb__comm_fail_slot(err, st, &cause, "nccl");
    int32_t made = 0;
    while (st == SB_OK && made < count) {
        st = sb_comm_create(contexts[made], &sb__nccl_engine, ends[made], &comms[made], err);
        made += st == SB_OK;
        if (st == SB_OK)
            continue;
        for (int32_t i = made; i < count; i++)
            sb__nccl_close(ends[i], true);
        while (made)
            destroy_now(comms[--made]);
        break;
    }
    if (st == SB_OK)
        memcpy(out, comms, (size_t)count * sizeof *out);
    free(ends);
    free(comms);
    return st;
}

sb_status sb_nccl_comm_create(sb_context *context, const uint8_t *id, int32_t rank, int32_t size,
                              uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    if (!id || !out)
        return sb__comm_fail_null(err, id ? "out" : "id");
    sb_status st = check_context(context, err);
    if (st != SB_OK)
        return st;
    if (size < 1 || rank < 0 || rank >= size)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "rank %d does not exist: there are %d ranks", rank, size);
    return connect_ranks(&context, 1, id, rank, size, limit_milliseconds, out, err);
}

sb_status sb_nccl_comm_create_all(sb_context *const *contexts, int32_t size,
                                  uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    uint8_t id[SB_NCCL_ID_BYTES];
    sb_status st = SB_OK;
    if (!contexts || !out)
        return sb__comm_fail_null(err, contexts ? "out" : "contexts");
    if (size < 1)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "the number of ranks is %d: less than 1",
                             size);
    for (int32_t i = 0; i < size && st == SB_OK; i++)
        st = check_context(contexts[i], err);
    if (st == SB_OK)
        st = sb_nccl_id_create(id, err);
    if (st != SB_OK)
        return st;
    return connect_ranks(contexts, size, id, 0, size, limit_milliseconds, out, err);
}

/* --- over another communicator ------------------------------------------------------------- */

/* Compares the ranks' `st`. If this rank's `st` is a failure, which `err` describes, returns `st`.
   Otherwise returns SB_OK if `st` is SB_OK at every rank, else an error. */
static sb_status agree(sb_comm *other, sb_status st, sb_error *err) {
    sb_error cause = {.code = SB_OK};
    double failed = st != SB_OK;
    const sb_status sent = sb_comm_all_reduce(other, SB_COMM_MAX, SB_DTYPE_F64, 1, &failed, &cause);
    if (st != SB_OK)
        return st;
    if (sent != SB_OK) {
        sb__comm_copy_error(err, &cause);
        return sent;
    }
    return failed == 0 ? SB_OK
                       : sb__comm_fail(err, SB_ERR_COMM_FAILURE, "another rank cannot use NCCL");
}

/* The last call of `agree` is needed because NCCL may fail at one rank while others connect. */
sb_status sb_nccl_comm_create_over(sb_context *context, sb_comm *other, uint32_t limit_milliseconds,
                                   sb_comm **out, sb_error *err) {
    uint8_t id[SB_NCCL_ID_BYTES] = {0};
    sb_error cause = {.code = SB_OK};
    const struct sb__nccl *nccl;
    sb_comm *comm = NULL;
    if (!other)
        return sb__comm_fail_null(err, "other");
    sb_status st = out ? check_context(context, err) : sb__comm_fail_null(err, "out");
    if (st == SB_OK && sb__nccl_open(&nccl, &cause) != SB_OK)
        st = sb__comm_fail_slot(err, cause.code, &cause, "nccl");
    if (st == SB_OK && sb_comm_rank(other) == 0)
        st = sb_nccl_id_create(id, err);
    st = agree(other, st, err);
    if (st != SB_OK)
        return st;
    st = sb_comm_broadcast(other, 0, id, sizeof id, err);
    if (st == SB_OK)
        st = connect_ranks(&context, 1, id, sb_comm_rank(other), sb_comm_size(other),
                           limit_milliseconds, &comm, err);
    st = agree(other, st, err);
    if (st == SB_OK)
        *out = comm;
    else
        destroy_now(comm);
    return st;
}
