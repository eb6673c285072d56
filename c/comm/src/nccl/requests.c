/* The operations of NCCL's communicators. NCCL accepts an operation only after the previous
   operation was queued on the stream. Each operation is therefore a request with a state. The
   request WAITS, is then POSTED to NCCL, and RUNS once the operation and an event are queued. Bytes
   in host memory are copied to device memory and back, because NCCL accepts only device memory. */
#include "engine.h"

#include "../error.h"
#include "../port.h"

#include <stdio.h>
#include <stdlib.h>

enum kind { REDUCE, BROADCAST };
enum state { WAITS, POSTED, RUNS };

struct sb__nccl_request {
    struct sb__nccl_request *next;
    enum state state;
    enum kind kind;
    sb_comm_op op;
    int32_t root;
    sb_comm_buffer buffer;
    void *ptr; /* device memory: the buffer, or a copy of a buffer in host memory */
    sb_mem *mem;
    sb_write *write; /* `mem` and `write` are NULL if the buffer is in device memory */
    size_t bytes;
    bool is_copying;    /* a wait for a copy has failed, so the copy may be in progress */
    sb__cu_event event; /* recorded before the request runs, and again behind its operation */
};

static bool is_staged(const struct sb__nccl_request *request) {
    return !request->buffer.context;
}

/* --- before posting ------------------------------------------------------------------- */

static sb__cu_result create_event(const struct sb__nccl_end *end, sb__cu_event *event,
                                  struct sb__nccl_visit *visit) {
    return sb__nccl_named(visit, end->device.cu->cuEventCreate(event, SB__CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate");
}

/* Creates the request's event, and records it after work queued on `stream` so far. Fails while
   `stream` is being captured. */
static sb__cu_result mark(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                          sb__cu_stream stream, struct sb__nccl_visit *visit) {
    const struct sb__nccl_driver *cu = end->device.cu;
    unsigned int capturing = SB__CU_STREAM_CAPTURE_STATUS_NONE;
    sb__cu_result result = cu->cuStreamIsCapturing(stream, &capturing);
    if (result == SB__CUDA_SUCCESS && capturing != SB__CU_STREAM_CAPTURE_STATUS_NONE)
        result = SB__CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result != SB__CUDA_SUCCESS)
        return sb__nccl_named(visit, result, "cuStreamIsCapturing");
    if (!request->event)
        result = create_event(end, &request->event, visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__nccl_named(visit, cu->cuEventRecord(request->event, stream), "cuEventRecord");
    return result;
}

static sb_status order_after(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                             sb__cu_stream stream, sb_error *err) {
    struct sb__nccl_visit visit;
    sb__cu_result result = sb__nccl_enter(&end->device, &visit);
    if (result == SB__CUDA_SUCCESS)
        result = sb__nccl_leave(&end->device, &visit, mark(end, request, stream, &visit));
    return sb__nccl_status(&end->device, result, visit.call, err);
}

/* Orders the request after the legacy default stream, which is ordered with the context's stream
   and the per-thread default streams. While a thread captures a blocking stream, the legacy stream
   cannot be used. The request is then ordered only after the context's stream. */
static sb_status order(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                       sb_error *err) {
    sb_stream stream;
    sb_status st = order_after(end, request, NULL, err);
    if (st != SB_ERR_UNSUPPORTED)
        return st;
    st = sb_context_stream(request->buffer.context, &stream, err);
    return st == SB_OK ? order_after(end, request, (sb__cu_stream)stream, err) : st;
}

static void unstage(struct sb__nccl_request *request) {
    sb_write_destroy(request->write);
    sb_mem_release(request->mem);
}

/* Copies host bytes to the device if `uploads`, else back to the host, and waits for the copy. Does
   not use NCCL's stream: a copy of pageable memory may wait, without a time limit, for earlier work
   of its stream. */
static sb_status copy(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                      bool uploads, sb_error *err) {
    const struct sb__nccl_driver *cu = end->device.cu;
    const sb__cu_ptr ptr = (sb__cu_ptr)(uintptr_t)request->ptr;
    void *const host = request->buffer.ptr;
    struct sb__nccl_visit visit;
    sb__cu_result result = sb__nccl_enter(&end->device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        result = uploads ? cu->cuMemcpyHtoDAsync_v2(ptr, host, request->bytes, end->copies)
                         : cu->cuMemcpyDtoHAsync_v2(host, ptr, request->bytes, end->copies);
        (void)sb__nccl_named(&visit, result, uploads ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync");
        request->is_copying = true; /* also after a failure: earlier work may have failed, not this
                                       copy */
        for (int tries = 0; request->is_copying && tries < SB__NCCL_TRIES; tries++) {
            const sb__cu_result waited = cu->cuStreamSynchronize(end->copies);
            request->is_copying = waited != SB__CUDA_SUCCESS;
            if (result == SB__CUDA_SUCCESS) /* keeps the first failure, which a second wait does not
                                               report */
                result = sb__nccl_named(&visit, waited, "cuStreamSynchronize");
        }
        result = sb__nccl_leave(&end->device, &visit, result);
    }
    return sb__nccl_status(&end->device, result, visit.call, err);
}

static sb_status stage(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                       sb_error *err) {
    const bool sends = request->kind == REDUCE || request->root == end->rank;
    sb_status st = sb_mem_create(end->context, request->bytes, &request->mem, err);
    if (st == SB_OK)
        st = sb_write_begin(request->mem, SB_SIDE_GPU, SB_WRITE_OVERWRITE, &request->ptr,
                            &request->write, err);
    if (st == SB_OK)
        st = sb__nccl_give_access(&end->device, request->ptr, err);
    return st == SB_OK && sends ? copy(end, request, true, err) : st;
}

/* Prepares the request's memory, and orders the request after earlier work. Queues nothing on
   NCCL's stream, where an earlier request may be in progress. */
static sb_status prepare(const struct sb__nccl_end *end, struct sb__nccl_request *request,
                         sb_error *err) {
    if (is_staged(request))
        return stage(end, request, err);
    request->ptr = request->buffer.ptr;
    const sb_status st = sb__nccl_give_access(&end->device, request->ptr, err);
    return st == SB_OK ? order(end, request, err) : st;
}

/* --- posting ------------------------------------------------------------------------------- */

static unsigned int type_of(sb_dtype dtype) {
    switch (dtype) {
    case SB_DTYPE_F16:
        return SB__NCCL_FLOAT16;
    case SB_DTYPE_BF16:
        return SB__NCCL_BFLOAT16;
    case SB_DTYPE_F32:
        return SB__NCCL_FLOAT32;
    case SB_DTYPE_F64:
        return SB__NCCL_FLOAT64;
    default:
        return SB__NCCL_UINT8;
    }
}

static unsigned int op_of(sb_comm_op op) {
    return op == SB_COMM_MIN ? SB__NCCL_MIN : op == SB_COMM_MAX ? SB__NCCL_MAX : SB__NCCL_SUM;
}

static sb__nccl_result call(const struct sb__nccl_end *end,
                            const struct sb__nccl_request *request) {
    const unsigned int type = type_of(request->buffer.dtype);
    const size_t count = (size_t)request->buffer.count;
    if (request->kind == REDUCE)
        return end->nccl->ncclAllReduce(request->ptr, request->ptr, count, type, op_of(request->op),
                                        end->comm, end->stream);
    return end->nccl->ncclBroadcast(request->ptr, request->ptr, count, type, request->root,
                                    end->comm, end->stream);
}

static const char *name_of(const struct sb__nccl_request *request) {
    return request->kind == REDUCE ? "ncclAllReduce" : "ncclBroadcast";
}

/* Posts a request. NCCL must have no request in progress. */
static sb_status post(struct sb__nccl_end *end, struct sb__nccl_request *request, sb_error *err) {
    struct sb__nccl_visit visit;
    sb__nccl_result result = SB__NCCL_SUCCESS;
    sb__cu_result queued = sb__nccl_enter(&end->device, &visit);
    if (queued == SB__CUDA_SUCCESS) {
        if (!is_staged(request))
            queued = sb__nccl_named(
                &visit, end->device.cu->cuStreamWaitEvent(end->stream, request->event, 0),
                "cuStreamWaitEvent");
        if (queued == SB__CUDA_SUCCESS)
            result = call(end, request);
        (void)sb__nccl_leave(&end->device, &visit, queued);
    }
    if (sb__nccl_status(&end->device, queued, visit.call, err) != SB_OK)
        return sb__nccl_break(end, err);
    if (!sb__nccl_has_begun(result))
        return sb__nccl_fail(end, result, name_of(request), err);
    request->state = POSTED;
    return SB_OK;
}

/* Queues the event behind the operation, which is already on the stream. */
static sb_status follow(struct sb__nccl_end *end, struct sb__nccl_request *request, sb_error *err) {
    struct sb__nccl_visit visit;
    sb__cu_result result = sb__nccl_enter(&end->device, &visit);
    if (result == SB__CUDA_SUCCESS) {
        if (!request->event)
            result = create_event(end, &request->event, &visit);
        if (result == SB__CUDA_SUCCESS)
            result =
                sb__nccl_named(&visit, end->device.cu->cuEventRecord(request->event, end->stream),
                               "cuEventRecord");
        result = sb__nccl_leave(&end->device, &visit, result);
    }
    if (sb__nccl_status(&end->device, result, visit.call, err) != SB_OK)
        return sb__nccl_break(end, err);
    request->state = RUNS;
    return SB_OK;
}

static sb_status fail_again(const struct sb__nccl_end *end, sb_error *err) {
    *err = end->cause;
    return SB_ERR_COMM_FAILURE;
}

/* Posts the requests that NCCL can accept now, and checks for asynchronous errors of NCCL. */
static sb_status advance(struct sb__nccl_end *end, sb_error *err) {
    sb_status st = end->failed ? fail_again(end, err) : SB_OK;
    while (st == SB_OK) {
        const sb__nccl_result state = sb__nccl_state(end);
        struct sb__nccl_request *request = end->first;
        if (state == SB__NCCL_IN_PROGRESS)
            return SB_OK;
        if (state != SB__NCCL_SUCCESS)
            return sb__nccl_fail(end, state, "NCCL", err);
        while (request && request->state == RUNS)
            request = request->next;
        if (!request)
            return SB_OK;
        st = request->state == WAITS ? post(end, request, err) : follow(end, request, err);
    }
    return st;
}

/* --- requests ------------------------------------------------------------------------------ */

static void append(struct sb__nccl_end *end, struct sb__nccl_request *request) {
    struct sb__nccl_request **link = &end->first;
    while (*link)
        link = &(*link)->next;
    *link = request;
}

static void destroy_event(const struct sb__nccl_end *end, sb__cu_event event) {
    struct sb__nccl_visit visit;
    if (sb__nccl_enter_to_free(&end->device, &visit) != SB__CUDA_SUCCESS)
        return;
    (void)end->device.cu->cuEventDestroy_v2(event);
    (void)sb__nccl_leave(&end->device, &visit, SB__CUDA_SUCCESS);
}

/* Removes and frees a request. Unless `is_over`, the device may still use the request's memory.
   Returns whether the device no longer uses any memory of the request. */
static bool drop(struct sb__nccl_end *end, struct sb__nccl_request *request, bool is_over) {
    struct sb__nccl_request **link = &end->first;
    while (*link && *link != request)
        link = &(*link)->next;
    if (*link)
        *link = request->next;
    if (request->event)
        destroy_event(end, request->event);
    is_over = is_over && !request->is_copying;
    if (!is_over && request->write)
        sb__comm_ignore(sb_write_end(request->write, SB_WRITE_ABANDONED, NULL));
    unstage(request);
    free(request);
    return is_over;
}

/* Returns whether a call that failed with `st` has sent nothing and may be retried. */
static bool has_sent_nothing(sb_status st) {
    return st == SB_ERR_OUT_OF_MEMORY || st == SB_ERR_CAP_REACHED || st == SB_ERR_UNSUPPORTED ||
           st == SB_ERR_DEVICE_LOST;
}

static sb_status status_of_slot(sb_status st) {
    return st == SB_ERR_CAP_REACHED ? (sb_status)SB_ERR_OUT_OF_MEMORY : st;
}

/* Creates a request. On failure returns NULL, with the status in `out`. */
static struct sb__nccl_request *begin(struct sb__nccl_end *end,
                                      const struct sb__nccl_request *wanted, sb_status *out,
                                      sb_error *err) {
    sb_error cause;
    *out = end->failed ? fail_again(end, err) : SB_OK;
    if (*out != SB_OK)
        return NULL;
    struct sb__nccl_request *request = calloc(1, sizeof *request);
    if (!request) {
        *out = sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a request");
        return NULL;
    }
    *request = *wanted;
    request->bytes = (size_t)wanted->buffer.count * sb_dtype_size(wanted->buffer.dtype);
    const sb_status st = prepare(end, request, err);
    if (st != SB_OK) {
        (void)drop(end, request, true);
        *out = has_sent_nothing(st) ? status_of_slot(st) : sb__nccl_break(end, err);
        return NULL;
    }
    append(end, request);
    /* A failure here is ignored: waiting for the request will report it. */
    (void)advance(end, &cause);
    return request;
}

static sb_status fail_late(struct sb__nccl_end *end, const struct sb__nccl_request *request,
                           sb_error *err) {
    char message[sizeof err->message];
    (void)snprintf(message, sizeof message,
                   "rank %d of %d waited %llu ms for %s of %lld elements: another rank is late, "
                   "has ended, or makes another call",
                   end->rank, end->size, (unsigned long long)(end->limit / 1000000u),
                   name_of(request), (long long)request->buffer.count);
    sb__comm_ignore(sb_error_fill(err, SB_ERR_COMM_FAILURE, 0, message));
    return sb__nccl_break(end, err);
}

static sb_status look(struct sb__nccl_end *end, struct sb__nccl_request *request, bool *out_done,
                      sb_error *err) {
    const bool receives = request->kind == REDUCE || request->root != end->rank;
    struct sb__nccl_visit visit;
    *out_done = false;
    sb_status st = advance(end, err);
    if (st != SB_OK)
        return st;
    sb__cu_result result = SB__CUDA_ERROR_NOT_READY;
    if (request->state == RUNS) {
        result = sb__nccl_enter(&end->device, &visit);
        if (result == SB__CUDA_SUCCESS)
            result =
                sb__nccl_leave(&end->device, &visit,
                               sb__nccl_named(&visit, end->device.cu->cuEventQuery(request->event),
                                              "cuEventQuery"));
    }
    if (result == SB__CUDA_ERROR_NOT_READY)
        return SB_OK;
    st = sb__nccl_status(&end->device, result, visit.call, err);
    if (st == SB_OK && is_staged(request) && receives)
        st = copy(end, request, false, err);
    if (st != SB_OK)
        return sb__nccl_break(end, err);
    (void)drop(end, request, true);
    *out_done = true;
    return SB_OK;
}

/* --- slots --------------------------------------------------------------------------------- */

static sb_status nccl_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                           sb_error *err) {
    const struct sb__nccl_end *end = user;
    (void)err;
    *out = user;
    *out_rank = end->rank;
    *out_size = end->size;
    return SB_OK;
}

static int32_t nccl_takes(void *comm, sb_context *context) {
    const struct sb__nccl_end *end = comm;
    return sb__nccl_ordinal(context) == end->device.ordinal ? 2 : 0;
}

static sb_status nccl_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                            sb_error *err) {
    const struct sb__nccl_request wanted = {.kind = REDUCE, .op = op, .buffer = *buffer};
    sb_status st;
    *out = begin(comm, &wanted, &st, err);
    return st;
}

static sb_status nccl_test(void *comm, void *request, int32_t *out_done, sb_error *err) {
    bool done;
    const sb_status st = look(comm, request, &done, err);
    *out_done = done;
    return st;
}

static sb_status nccl_wait(void *comm, void *request, sb_error *err) {
    struct sb__nccl_end *end = comm;
    const uint64_t began = sb__comm_now();
    bool done;
    sb_status st = look(end, request, &done, err);
    while (st == SB_OK && !done && sb__comm_now() - began < end->limit) {
        sb__nccl_pause(began);
        st = look(end, request, &done, err);
    }
    return st == SB_OK && !done ? fail_late(end, request, err) : st;
}

/* Aborts the whole communicator: NCCL cannot cancel one request. */
static int32_t nccl_abandon(void *comm, void *request) {
    struct sb__nccl_end *end = comm;
    sb_error cause;
    if (!end->failed) {
        sb__comm_ignore(sb_error_fill(&cause, SB_ERR_COMM_FAILURE, 0, "a request was abandoned"));
        (void)sb__nccl_break(end, &cause);
    }
    return drop(end, request, end->is_idle);
}

static sb_status run(void *comm, const struct sb__nccl_request *wanted, sb_error *err) {
    sb_status st;
    struct sb__nccl_request *request = begin(comm, wanted, &st, err);
    if (!request)
        return st;
    st = nccl_wait(comm, request, err);
    if (st != SB_OK)
        (void)nccl_abandon(comm, request);
    return st;
}

static sb_status nccl_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                 sb_error *err) {
    const struct sb__nccl_request wanted = {.kind = REDUCE, .op = op, .buffer = *buffer};
    return run(comm, &wanted, err);
}

static sb_status nccl_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                sb_error *err) {
    const struct sb__nccl_request wanted = {.kind = BROADCAST, .root = root, .buffer = *buffer};
    return run(comm, &wanted, err);
}

const sb_comm_engine sb__nccl_engine = {
    .struct_size = sizeof(sb_comm_engine),
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .flags = SB_COMM_ENGINE_HALF,
    .name = "nccl",
    .open = nccl_open,
    .close = sb__nccl_close,
    .all_reduce = nccl_all_reduce,
    .broadcast = nccl_broadcast,
    .takes = nccl_takes,
    .start = nccl_start,
    .test = nccl_test,
    .wait = nccl_wait,
    .abandon = nccl_abandon,
};
