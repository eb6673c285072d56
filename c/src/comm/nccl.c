/* Communicators over NCCL: who the ranks are. The engine is the CUDA backend's. */
#include "comm/comm.h"

#include "base/error.h"

#include <syncblob/nccl.h>

#ifdef SYNCBLOB_CUDA

#include "cuda/nccl_engine.h"

#include <string.h>

_Static_assert(SB_NCCL_ID_BYTES == SB__NCCL_ID_BYTES, "an id");

sb_status sb_nccl_id_create(uint8_t *out, sb_error *err) {
    sb_error story = {.code = SB_OK};
    if (!out)
        return sb__fail_null(err, "out");
    const sb_status st = sb__nccl_make_id(out, &story);
    return st == SB_OK ? SB_OK : sb__fail_told(err, st, -1, &story, "nccl");
}

static sb_status check_context(const sb_context *context, sb_error *err) {
    if (!context)
        return sb__fail_null(err, "context");
    if (context->backend.open != sb__cuda_open)
        return sb__fail(err, SB_ERR_NO_DEVICE, "NCCL needs a context on \"cuda:N\", not on \"%s\"",
                        sb_context_device(context));
    return sb__device_check(context, err);
}

/* The connection first, since it alone can fail at another rank, too. */
static sb_status connect_ranks(sb_context *const *contexts, int32_t count, const uint8_t *id,
                               int32_t first, int32_t size, uint32_t limit, sb_comm **out,
                               sb_error *err) {
    void *objects = NULL;
    sb_error story = {.code = SB_OK};
    sb_context *context = contexts[0];
    const size_t bytes = (size_t)count * 3 * sizeof(void *);
    sb_status st = sb__object_alloc(context, bytes, &objects, err);
    if (st != SB_OK)
        return st;
    sb_comm **comms = objects;
    struct sb__cuda_device **devices = (struct sb__cuda_device **)(void *)(comms + count);
    struct sb__nccl_end **ends = (struct sb__nccl_end **)(void *)(devices + count);
    for (int32_t i = 0; i < count; i++)
        devices[i] = contexts[i]->device;
    st = sb__nccl_connect(devices, count, id, first, size, limit, ends, &story);
    if (st != SB_OK)
        st = sb__fail_told(err, st, -1, &story, "nccl");
    int32_t made = 0;
    while (st == SB_OK && made < count) {
        st = sb_comm_create(contexts[made], &sb__nccl_engine, ends[made], &comms[made], err);
        made += st == SB_OK;
        if (st == SB_OK)
            continue;
        for (int32_t i = made; i < count; i++)
            sb__nccl_close(ends[i], true);
        while (made) {
            comms[--made]->failed = true; /* nobody waits for the others */
            sb_comm_destroy(comms[made]);
        }
        break;
    }
    if (st == SB_OK)
        memcpy(out, comms, (size_t)count * sizeof *out);
    sb__object_free(context, objects, bytes);
    return st;
}

sb_status sb_nccl_comm_create(sb_context *context, const uint8_t *id, int32_t rank, int32_t size,
                              uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    if (!id || !out)
        return sb__fail_null(err, id ? "out" : "id");
    sb_status st = check_context(context, err);
    if (st != SB_OK)
        return st;
    if (size < 1 || rank < 0 || rank >= size)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "there is no rank %d among %d", rank, size);
    return connect_ranks(&context, 1, id, rank, size, limit_milliseconds, out, err);
}

sb_status sb_nccl_comm_create_all(sb_context *const *contexts, int32_t size,
                                  uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    uint8_t id[SB_NCCL_ID_BYTES];
    sb_status st = SB_OK;
    if (!contexts || !out)
        return sb__fail_null(err, contexts ? "out" : "contexts");
    if (size < 1)
        return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "there are no %d ranks", size);
    for (int32_t i = 0; i < size && st == SB_OK; i++)
        st = check_context(contexts[i], err);
    if (st == SB_OK)
        st = sb_nccl_id_create(id, err);
    if (st != SB_OK)
        return st;
    return connect_ranks(contexts, size, id, 0, size, limit_milliseconds, out, err);
}

/* --- over another communicator ------------------------------------------------------------- */

/* SB_OK if this rank and all others can go on; `st` is what this one has to say, in `err`. */
static sb_status agree(sb_comm *other, sb_status st, sb_error *err) {
    sb_error story = {.code = SB_OK};
    double failed = st != SB_OK;
    const sb_status told = sb_comm_all_reduce(other, SB_COMM_MAX, SB_DTYPE_F64, 1, &failed, &story);
    if (st != SB_OK)
        return st;
    if (told != SB_OK && err)
        *err = story;
    if (told != SB_OK)
        return told;
    return failed == 0 ? SB_OK : sb__fail(err, SB_ERR_COMM_FAILURE, "another rank cannot use NCCL");
}

sb_status sb_nccl_comm_create_over(sb_context *context, sb_comm *other, uint32_t limit_milliseconds,
                                   sb_comm **out, sb_error *err) {
    uint8_t id[SB_NCCL_ID_BYTES] = {0};
    sb_error story = {.code = SB_OK};
    const struct sb__nccl *nccl;
    if (!other)
        return sb__fail_null(err, "other");
    sb_status st = out ? check_context(context, err) : sb__fail_null(err, "out");
    if (st == SB_OK && sb__nccl_open(&nccl, &story) != SB_OK)
        st = sb__fail_told(err, story.code, -1, &story, "nccl");
    if (st == SB_OK && sb_comm_rank(other) == 0)
        st = sb_nccl_id_create(id, err);
    st = agree(other, st, err);
    if (st == SB_OK)
        st = sb_comm_broadcast(other, 0, id, sizeof id, err);
    if (st != SB_OK)
        return st;
    return connect_ranks(&context, 1, id, sb_comm_rank(other), sb_comm_size(other),
                         limit_milliseconds, out, err);
}

#else

static sb_status fail_without(sb_error *err) {
    return sb__fail(err, SB_ERR_NO_DEVICE,
                    "this build has no CUDA backend; build it with SYNCBLOB_CUDA=ON");
}

sb_status sb_nccl_id_create(uint8_t *out, sb_error *err) {
    (void)out;
    return fail_without(err);
}

sb_status sb_nccl_comm_create(sb_context *context, const uint8_t *id, int32_t rank, int32_t size,
                              uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    (void)context, (void)id, (void)rank, (void)size, (void)limit_milliseconds, (void)out;
    return fail_without(err);
}

sb_status sb_nccl_comm_create_over(sb_context *context, sb_comm *other, uint32_t limit_milliseconds,
                                   sb_comm **out, sb_error *err) {
    (void)context, (void)other, (void)limit_milliseconds, (void)out;
    return fail_without(err);
}

sb_status sb_nccl_comm_create_all(sb_context *const *contexts, int32_t size,
                                  uint32_t limit_milliseconds, sb_comm **out, sb_error *err) {
    (void)contexts, (void)size, (void)limit_milliseconds, (void)out;
    return fail_without(err);
}

#endif
