/* Handles of NCCL's communicators: creation, failure and closing. No call of NCCL blocks: this file
   polls NCCL's state until the operation completes or the time limit ends. */
#include "engine.h"

#include "../port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND   1000000u
#define SPIN          (2 * (uint64_t)MILLISECOND)
#define DEFAULT_LIMIT 600000u /* milliseconds */
/* In nanoseconds: the longest wait for kernels after an abort, and the longest wait for other ranks
   when a handle is closed. */
#define LAST_LIMIT (5000 * (uint64_t)MILLISECOND)

void sb__nccl_pause(uint64_t began) {
    if (sb__comm_now() - began > SPIN)
        sb__comm_sleep(MILLISECOND);
}

/* --- failures ------------------------------------------------------------------------------ */

enum call { RECORD, QUERY };

static sb__cu_result once(const struct sb__nccl_end *end, enum call call) {
    const struct sb__nccl_driver *cu = end->device.cu;
    struct sb__nccl_visit visit;
    const sb__cu_result result = sb__nccl_enter(&end->device, &visit);
    if (result != SB__CUDA_SUCCESS)
        return result;
    return sb__nccl_leave(&end->device, &visit,
                          call == RECORD ? cu->cuEventRecord(end->before, end->stream)
                                         : cu->cuEventQuery(end->before));
}

/* Makes a call, and retries a failed call once: after a second failure, the requests' memory is
   never freed. */
static sb__cu_result twice(const struct sb__nccl_end *end, enum call call) {
    const sb__cu_result result = once(end, call);
    return result == SB__CUDA_SUCCESS || result == SB__CUDA_ERROR_NOT_READY ? result
                                                                            : once(end, call);
}

/* Waits up to LAST_LIMIT until all queued work has ended. Returns false if the work may still run.
   On a lost device the result is always false. */
static bool wait_until_idle(const struct sb__nccl_end *end) {
    const uint64_t began = sb__comm_now();
    sb__cu_result result = twice(end, RECORD);
    if (result == SB__CUDA_SUCCESS)
        result = twice(end, QUERY);
    while (result == SB__CUDA_ERROR_NOT_READY && sb__comm_now() - began < LAST_LIMIT) {
        sb__nccl_pause(began);
        result = twice(end, QUERY);
    }
    return result == SB__CUDA_SUCCESS;
}

static void abort_comm(struct sb__nccl_end *end) {
    struct sb__nccl_visit visit;
    if (!end->comm || sb__nccl_enter_to_free(&end->device, &visit) != SB__CUDA_SUCCESS)
        return;
    (void)end->nccl->ncclCommAbort(end->comm);
    end->comm = NULL;
    (void)sb__nccl_leave(&end->device, &visit, SB__CUDA_SUCCESS);
}

sb_status sb__nccl_break(struct sb__nccl_end *end, const sb_error *err) {
    end->failed = true;
    end->cause = *err;
    abort_comm(end);
    end->is_idle = wait_until_idle(end);
    return SB_ERR_COMM_FAILURE;
}

static sb_status fill(const struct sb__nccl *nccl, sb__nccl_comm comm, sb__nccl_result result,
                      const char *call, sb_error *err) {
    char message[sizeof err->message];
    const char *text = nccl->ncclGetErrorString(result), *last = nccl->ncclGetLastError(comm);
    (void)snprintf(message, sizeof message, "%s: %.60s%s%.120s", call, text ? text : "an error",
                   last && *last ? ": " : "", last ? last : "");
    return sb_error_fill(err, SB_ERR_COMM_FAILURE, (int32_t)result, message);
}

sb_status sb__nccl_fail(struct sb__nccl_end *end, sb__nccl_result result, const char *call,
                        sb_error *err) {
    (void)fill(end->nccl, end->comm, result, call, err);
    return sb__nccl_break(end, err);
}

sb__nccl_result sb__nccl_state(const struct sb__nccl_end *end) {
    sb__nccl_result state = SB__NCCL_SUCCESS;
    const sb__nccl_result result = end->nccl->ncclCommGetAsyncError(end->comm, &state);
    return result == SB__NCCL_SUCCESS ? state : result;
}

/* --- creation ------------------------------------------------------------------------------ */

sb_status sb__nccl_make_id(uint8_t *out, sb_error *err) {
    const struct sb__nccl *nccl;
    sb__nccl_id id;
    sb_status st = sb__nccl_open(&nccl, err);
    if (st != SB_OK)
        return st;
    const sb__nccl_result result = nccl->ncclGetUniqueId(&id);
    if (result != SB__NCCL_SUCCESS)
        return fill(nccl, NULL, result, "ncclGetUniqueId", err);
    memcpy(out, id.internal, sizeof id.internal);
    return SB_OK;
}

static sb__cu_result create_stream(const struct sb__nccl_end *end, sb__cu_stream *out,
                                   struct sb__nccl_visit *visit) {
    return sb__nccl_named(visit, end->device.cu->cuStreamCreate(out, SB__CU_STREAM_NON_BLOCKING),
                          "cuStreamCreate");
}

/* Creates the event, and two streams that do not synchronize with the default streams. */
static sb_status make_parts(struct sb__nccl_end *end, sb_error *err) {
    struct sb__nccl_visit visit;
    const struct sb__nccl_driver *cu = end->device.cu;
    sb__cu_result result = sb__nccl_enter(&end->device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = sb__nccl_named(
            &visit, cu->cuEventCreate(&end->before, SB__CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        if (result == SB__CUDA_SUCCESS)
            result = create_stream(end, &end->stream, &visit);
        if (result == SB__CUDA_SUCCESS)
            result = create_stream(end, &end->copies, &visit);
        result = sb__nccl_leave(&end->device, &visit, result);
    }
    return sb__nccl_status(&end->device, result, visit.call, err);
}

static void free_end(struct sb__nccl_end *end) {
    struct sb__nccl_visit visit;
    if (sb__nccl_enter_to_free(&end->device, &visit) == SB__CUDA_SUCCESS) {
        if (end->copies)
            (void)end->device.cu->cuStreamDestroy_v2(end->copies);
        if (end->stream)
            (void)end->device.cu->cuStreamDestroy_v2(end->stream);
        if (end->before)
            (void)end->device.cu->cuEventDestroy_v2(end->before);
        (void)sb__nccl_leave(&end->device, &visit, SB__CUDA_SUCCESS);
    }
    sb__nccl_device_close(&end->device);
    free(end);
}

static sb_status make_end(const struct sb__nccl *nccl, sb_context *context,
                          struct sb__nccl_end **out, sb_error *err) {
    struct sb__nccl_end *end = calloc(1, sizeof *end);
    if (!end)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a rank's handle");
    end->nccl = nccl;
    end->context = context;
    sb_status st = sb__nccl_device_open(&end->device, sb__nccl_ordinal(context), err);
    if (st != SB_OK) {
        free(end);
        return st;
    }
    st = make_parts(end, err);
    if (st == SB_OK)
        *out = end;
    else
        free_end(end);
    return st;
}

/* Begins to create one rank. On failure the caller must abort end->comm, unless end->comm is
   NULL. */
static sb_status begin_one(struct sb__nccl_end *end, const sb__nccl_id *id, sb_error *err) {
    struct sb__nccl_visit visit;
    sb__nccl_config config = {
        .size = sizeof config,
        .magic = SB__NCCL_MAGIC,
        .version = SB__NCCL_VERSION_2_14,
        .blocking = 0,
        .cga_cluster_size = SB__NCCL_UNDEFINED,
    };
    const sb__cu_result entered = sb__nccl_enter(&end->device, &visit);
    if (entered != SB__CUDA_SUCCESS)
        return sb__nccl_status(&end->device, entered, visit.call, err);
    const sb__nccl_result result =
        end->nccl->ncclCommInitRankConfig(&end->comm, end->size, *id, end->rank, &config);
    (void)sb__nccl_leave(&end->device, &visit, SB__CUDA_SUCCESS);
    return sb__nccl_has_begun(result)
               ? SB_OK
               : fill(end->nccl, end->comm, result, "ncclCommInitRankConfig", err);
}

/* Begins to create the ranks within one ncclGroup. Only the end of the group waits for other ranks,
   so one thread can create several ranks. */
static sb_status begin_all(struct sb__nccl_end *const *ends, int32_t count, const sb__nccl_id *id,
                           sb_error *err) {
    const struct sb__nccl *nccl = ends[0]->nccl;
    sb__nccl_result result = nccl->ncclGroupStart();
    if (result != SB__NCCL_SUCCESS)
        return fill(nccl, NULL, result, "ncclGroupStart", err);
    sb_status st = SB_OK;
    for (int32_t i = 0; i < count && st == SB_OK; i++)
        st = begin_one(ends[i], id, err);
    result = nccl->ncclGroupEnd();
    if (st == SB_OK && !sb__nccl_has_begun(result))
        return fill(nccl, NULL, result, "ncclGroupEnd", err);
    return st;
}

static sb_status wait_for_ranks(const struct sb__nccl_end *end, uint64_t began, sb_error *err) {
    char message[sizeof err->message];
    sb__nccl_result state = sb__nccl_state(end);
    while (state == SB__NCCL_IN_PROGRESS && sb__comm_now() - began < end->limit) {
        sb__nccl_pause(began);
        state = sb__nccl_state(end);
    }
    if (state == SB__NCCL_SUCCESS)
        return SB_OK;
    if (state != SB__NCCL_IN_PROGRESS)
        return fill(end->nccl, end->comm, state, "ncclCommInitRankConfig", err);
    (void)snprintf(message, sizeof message, "not all of %d ranks connected within %llu ms",
                   end->size, (unsigned long long)(end->limit / MILLISECOND));
    return sb_error_fill(err, SB_ERR_COMM_FAILURE, 0, message);
}

static sb_status connect_all(struct sb__nccl_end *const *ends, int32_t count, const sb__nccl_id *id,
                             sb_error *err) {
    const uint64_t began = sb__comm_now();
    sb_status st = begin_all(ends, count, id, err);
    for (int32_t i = 0; i < count && st == SB_OK; i++)
        st = wait_for_ranks(ends[i], began, err);
    for (int32_t i = 0; i < count && st == SB_OK && ends[i]->size > 1; i++)
        st = sb__nccl_find_peers(&ends[i]->device, err);
    return st;
}

sb_status sb__nccl_connect(sb_context *const *contexts, int32_t count, const uint8_t *id,
                           int32_t first, int32_t size, uint32_t limit_milliseconds,
                           struct sb__nccl_end **out, sb_error *err) {
    const struct sb__nccl *nccl;
    const uint32_t limit = limit_milliseconds ? limit_milliseconds : DEFAULT_LIMIT;
    sb__nccl_id name;
    int32_t made = 0;
    sb_status st = sb__nccl_open(&nccl, err);
    while (st == SB_OK && made < count) {
        st = make_end(nccl, contexts[made], &out[made], err);
        if (st == SB_OK) {
            out[made]->rank = first + made;
            out[made]->size = size;
            out[made]->limit = (uint64_t)limit * MILLISECOND;
            made++;
        }
    }
    if (st == SB_OK) {
        memcpy(name.internal, id, sizeof name.internal);
        st = connect_all(out, count, &name, err);
    }
    while (st != SB_OK && made)
        sb__nccl_close(out[--made], true);
    return st;
}

/* --- closing --------------------------------------------------------------------------------- */

/* Waits, up to a time limit, for other ranks, because they may still read data of this rank. */
static void finalize(struct sb__nccl_end *end) {
    struct sb__nccl_visit visit;
    const uint64_t began = sb__comm_now();
    const uint64_t limit = end->limit < LAST_LIMIT ? end->limit : LAST_LIMIT;
    if (sb__nccl_enter_to_free(&end->device, &visit) != SB__CUDA_SUCCESS)
        return;
    sb__nccl_result state = end->nccl->ncclCommFinalize(end->comm);
    if (sb__nccl_has_begun(state))
        state = sb__nccl_state(end);
    while (state == SB__NCCL_IN_PROGRESS && sb__comm_now() - began < limit) {
        sb__nccl_pause(began);
        state = sb__nccl_state(end);
    }
    if (state == SB__NCCL_SUCCESS) {
        (void)end->nccl->ncclCommDestroy(end->comm);
        end->comm = NULL;
    }
    (void)sb__nccl_leave(&end->device, &visit, SB__CUDA_SUCCESS);
}

void sb__nccl_close(void *comm, int32_t failed) {
    struct sb__nccl_end *end = comm;
    if (!failed && end->comm)
        finalize(end);
    abort_comm(end);
    free_end(end);
}
