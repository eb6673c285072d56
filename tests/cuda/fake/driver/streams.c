/* Streams, events and queued work of the fake driver. */
#include "driver.h"

#include "base/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A per-thread default stream is ordered only with the legacy default stream. */
static CUstream per_thread_stream(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next)
        if (s->per_thread && s->thread == fake_thread())
            return s;
    CUstream made = need_memory(malloc(sizeof *made));
    *made = (struct CUstream_st){.context = context,
                                 .blocking = true,
                                 .per_thread = true,
                                 .thread = fake_thread(),
                                 .next = context->streams};
    return context->streams = made;
}

static CUstream find_stream(CUcontext context, CUstream handle) {
    if (!handle || handle == CU_STREAM_LEGACY)
        return &context->legacy;
    if (handle == CU_STREAM_PER_THREAD)
        return per_thread_stream(context);
    for (CUstream s = context->streams; s; s = s->next)
        if (s == handle && !s->destroyed)
            return s;
    return NULL;
}

CUstream resolve(CUcontext context, CUstream handle) {
    return context->streams ? find_stream(context, handle) : NULL;
}

static CUstream find_known(CUstream handle) {
    for (int i = 0; i < MAX_CONTEXTS; i++) {
        CUstream s = handle ? resolve(&fake.contexts[i], handle) : NULL;
        if (s && s != &fake.contexts[i].legacy)
            return s;
    }
    return NULL;
}

READS(int, fake_knows, (CUstream handle), find_known(handle) != NULL)

/* By cuda.h, a call with an unknown handle has undefined behaviour. */
static CUstream find_anywhere(CUstream handle) {
    CUstream stream = find_known(handle);
    if (!stream)
        fake_violation("%p is not a live stream", (void *)handle);
    return stream;
}

static bool is_capturing(CUstream stream) {
    return stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void invalidate(CUstream stream) {
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

static CUstream blocking_capture(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next)
        if (s->blocking && is_capturing(s))
            return s;
    return NULL;
}

static CUresult check_capture(CUstream stream) {
    CUstream captured =
        stream == &stream->context->legacy ? blocking_capture(stream->context) : NULL;
    if (captured) {
        invalidate(captured);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return CUDA_SUCCESS;
}

void drop_record(struct record *record) {
    if (record && --record->refs == 0)
        fake_object_free(record);
}

static void unlink_stream(CUstream stream) {
    CUstream *link = &stream->context->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    free(stream);
}

/* Event records do not make blocking streams wait, an exception that cuda.h does not document. */
static bool legacy_holds(CUcontext context, uint64_t turn) {
    for (const struct item *item = context->legacy.head; item && item->turn < turn;
         item = item->next)
        if (item->operation != RECORD)
            return true;
    return false;
}

static CUstream blocker(CUstream stream) {
    const struct item *item = stream->head;
    CUcontext context = stream->context;
    if (item->operation == WAIT && !item->record->done)
        return item->record->stream;
    if (stream != &context->legacy)
        return stream->blocking && legacy_holds(context, item->turn) ? &context->legacy : NULL;
    for (CUstream s = context->streams; s; s = s->next)
        if (s->blocking && s->head && s->head->turn < item->turn)
            return s;
    return NULL;
}

static CUresult illegal(const struct item *item, CUdeviceptr ptr) {
    fake_violation("work uses %zu bytes at %p, not allocated when it runs", item->bytes,
                   (void *)(uintptr_t)ptr);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_upload(struct item *item, void *dst) {
    if (memcmp(item->snapshot, item->host, item->bytes) != 0)
        fake_violation("the source of an upload changed before the copy had run");
    memcpy(dst, item->staged ? item->snapshot : item->host, item->bytes);
    return CUDA_SUCCESS;
}

static CUresult run_download(const struct item *item, const void *src) {
    const unsigned char *p = item->host;
    for (size_t i = 0; item->scribbled && i < item->bytes; i++)
        if (p[i] != RUBBISH) {
            fake_violation("the target of a download was written before the copy had run");
            break;
        }
    memcpy(item->host, src, item->bytes);
    return CUDA_SUCCESS;
}

static CUresult run_copies(struct item *item) {
    void *dst = item->dst ? fake_address(item->dst, item->bytes) : NULL;
    void *src = item->src ? fake_address(item->src, item->bytes) : NULL;
    if (item->dst && !dst)
        return illegal(item, item->dst);
    if (item->src && !src)
        return illegal(item, item->src);
    switch (item->operation) {
    case SET:
        memset(dst, item->value, item->bytes);
        return CUDA_SUCCESS;
    case UPLOAD:
        return run_upload(item, dst);
    case DOWNLOAD:
        return run_download(item, src);
    default:
        memmove(dst, src, item->bytes);
        return CUDA_SUCCESS;
    }
}

static CUresult run_free(const struct item *item) {
    struct block *block = find_block(item->dst, 0);
    if (!block || !block->ready)
        return illegal(item, item->dst);
    item->record->done = true;
    drop_block(block);
    return CUDA_SUCCESS;
}

/* After a wait has returned a failure, only the thread that queued the failed work gets the failure
   again. */
static CUresult failure_for(CUstream stream, int64_t thread) {
    for (int i = 0; i < stream->failure_count; i++)
        if (stream->failures[i].thread == thread || !stream->failures[i].is_reported)
            return stream->failures[i].code;
    return CUDA_SUCCESS;
}

static void mark_reported(CUstream stream) {
    for (int i = 0; i < stream->failure_count; i++)
        stream->failures[i].is_reported = true;
}

static void end_failure(CUstream stream, int64_t thread) {
    int kept = 0;
    for (int i = 0; i < stream->failure_count; i++)
        if (stream->failures[i].thread != thread)
            stream->failures[kept++] = stream->failures[i];
    stream->failure_count = kept;
}

static void add_failure(CUstream stream, CUresult code, int64_t thread) {
    end_failure(stream, thread);
    if (stream->failure_count < MAX_FAILURES)
        stream->failures[stream->failure_count++] = (struct failure){code, thread, false};
    else
        lose(stream->context, code);
}

static void run_record(CUstream stream, const struct item *item) {
    item->record->done = true;
    item->record->failure = item->failure ? item->failure : failure_for(stream, item->thread);
    end_failure(stream, item->thread);
}

static CUresult run_item(CUstream stream, struct item *item) {
    struct block *block;
    switch (item->operation) {
    case ALLOCATE:
        block = find_block(item->dst, 0);
        if (block)
            block->ready = true;
        return item->failure;
    case RELEASE:
        return run_free(item);
    case RECORD:
        run_record(stream, item);
        return item->passing ? CUDA_SUCCESS : item->failure;
    case WAIT:
        return item->failure;
    default:
        break;
    }
    if (stream->context->lost || item->failure)
        return item->failure;
    if (item->operation == GATE)
        return CUDA_SUCCESS;
    if (item->operation == LAUNCH) {
        item->kernel(item->user);
        return CUDA_SUCCESS;
    }
    return run_copies(item);
}

static void step(CUstream stream) {
    struct item *item = stream->head;
    CUresult failure = run_item(stream, item);
    stream->head = item->next;
    if (!stream->head)
        stream->tail = NULL;
    if (failure && item->passing)
        add_failure(stream, failure, item->thread);
    else if (failure)
        lose(stream->context, failure);
    drop_record(item->record);
    free(item->snapshot);
    if (item->owned)
        free(item->user);
    free(item);
    if (stream->destroyed && !stream->head)
        unlink_stream(stream);
}

static bool is_held(CUstream stream) {
    const struct item *item = stream->head;
    return item->operation == GATE && !item->failure && !stream->context->lost &&
           !item->passes(item->user);
}

/* The loop ends, because an item waits only for items that were queued earlier. */
static bool try_first(CUstream stream) {
    CUstream first = stream;
    for (CUstream b = first; b; b = blocker(first))
        first = b;
    if (is_held(first))
        return false;
    step(first);
    return true;
}

/* Releases the lock at a closed gate, because another thread opens the gate. */
static void run_first(CUstream stream) {
    while (stream->head && !try_first(stream)) {
        fake_unlock(NULL);
        (void)usleep(50);
        (void)fake_lock();
    }
}

static void run_stream(CUstream stream) {
    const uint64_t turn = fake.turn;
    while (stream->head && stream->head->turn <= turn)
        run_first(stream);
}

static void try_stream(CUstream stream) {
    while (stream->head && try_first(stream))
        ;
}

/* Running a stream's last item may free the stream. */
static CUstream with_work(CUcontext context) {
    CUstream s = context->streams;
    while (s && !s->head)
        s = s->next;
    return s;
}

void run_all(CUcontext context) {
    for (CUstream s = with_work(context); s; s = with_work(context))
        run_first(s);
}

void drop_per_thread(CUcontext context) {
    for (CUstream next, s = context->streams; s; s = next) {
        next = s->next;
        if (s->per_thread)
            unlink_stream(s);
    }
}

void forget_streams(CUcontext context) {
    context->lost = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    run_all(context);
    while (context->streams && context->streams != &context->legacy)
        unlink_stream(context->streams);
}

void fake_drain(void) {
    FAKE_LOCKED;
    for (int i = 0; i < MAX_CONTEXTS; i++)
        run_all(&fake.contexts[i]);
}

static void drift(CUcontext context) {
    while (sb__draw(&fake.random) % 4 != 0) {
        uint64_t count = 0;
        for (CUstream s = context->streams; s; s = s->next)
            count++;
        uint64_t index = sb__draw(&fake.random) % count;
        CUstream s = context->streams;
        while (index--)
            s = s->next;
        if (s->head && !blocker(s) && !is_held(s))
            step(s);
    }
}

static bool overlaps(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
    return a && b && a < b + b_bytes && b < a + a_bytes;
}

static bool uses(const struct item *item, const void *host, CUdeviceptr device, size_t bytes) {
    return overlaps((uintptr_t)item->host, item->bytes, (uintptr_t)host, bytes) ||
           overlaps((uintptr_t)item->dst, item->bytes, (uintptr_t)device, bytes) ||
           overlaps((uintptr_t)item->src, item->bytes, (uintptr_t)device, bytes);
}

bool is_pending(const void *host, CUdeviceptr device, size_t bytes) {
    for (int i = 0; i < MAX_CONTEXTS; i++)
        for (CUstream s = fake.contexts[i].streams; s; s = s->next)
            for (const struct item *item = s->head; item; item = item->next)
                if (!s->context->lost && uses(item, host, device, bytes))
                    return true;
    return false;
}

/* A download's target is filled with rubbish until the copy runs. With the random schedule, an
   upload from pageable memory may read its source at the call, as real drivers may. */
static void prepare(struct item *item) {
    int64_t schedule = fake.settings[FAKE_SCHEDULE];
    if (item->operation == UPLOAD) {
        item->snapshot = need_memory(malloc(item->bytes));
        memcpy(item->snapshot, item->host, item->bytes);
        bool early = schedule == FAKE_RANDOM && sb__draw(&fake.random) % 2 == 0;
        item->staged = early && !find_pinned(item->host, item->bytes);
    }
    if (item->operation == DOWNLOAD && !is_pending(item->host, 0, item->bytes)) {
        memset(item->host, RUBBISH, item->bytes);
        item->scribbled = true;
    }
}

static void append(CUstream stream, struct item *item) {
    item->next = NULL;
    item->turn = ++fake.turn;
    item->thread = fake_thread();
    if (stream->tail)
        stream->tail->next = item;
    else
        stream->head = item;
    stream->tail = item;
}

static void drop_item(const struct item *item) {
    drop_record(item->record);
    if (item->owned)
        free(item->user);
}

static CUresult capture(CUstream stream, const struct item *item) {
    stream->captured_from->nodes++;
    if (item->operation == RECORD) {
        item->record->captured = true;
        item->record->stream = stream;
    }
    drop_item(item);
    return CUDA_SUCCESS;
}

static CUresult join_capture(CUstream stream, const struct item *item) {
    CUstream from = item->record->stream;
    stream->capture = from->capture;
    stream->captured_from = from->captured_from;
    return capture(stream, item);
}

/* A call that copies pageable memory may wait for earlier work of the stream: see "API
   synchronization behavior" in the CUDA Driver API. A gate with memory is a kernel of NCCL. */
static void check_copy(CUstream stream, const struct item *item) {
    const bool is_pageable = item->host && !find_pinned(item->host, item->bytes);
    for (const struct item *gate = stream->head; gate && is_pageable; gate = gate->next)
        if (gate->operation == GATE && gate->dst)
            fake_violation("a copy of pageable memory waits for a kernel of NCCL");
}

static void queue_item(struct call *c, CUstream stream, const struct item *item) {
    struct item *made = need_memory(malloc(sizeof *made));
    *made = *item;
    made->failure = c->later;
    made->passing = c->passing;
    check_copy(stream, made);
    prepare(made);
    append(stream, made);
    if (fake.settings[FAKE_SCHEDULE] == FAKE_EAGER)
        try_stream(stream);
    else if (fake.settings[FAKE_SCHEDULE] == FAKE_RANDOM)
        drift(c->context);
}

void fake_reserve(CUcontext context, CUstream handle, bool reserved) {
    FAKE_LOCKED;
    CUstream stream = resolve(context, handle);
    if (stream)
        stream->reserved = reserved;
}

CUresult enqueue(struct call *c, CUstream handle, const struct item *item) {
    CUstream stream = resolve(c->context, handle);
    if (stream && stream->reserved)
        fake_violation("work is queued on a stream while a call of NCCL is in progress there");
    CUresult result = stream ? check_capture(stream) : CUDA_ERROR_INVALID_HANDLE;
    if (!result && is_capturing(stream))
        return capture(stream, item);
    if (!result && item->operation == WAIT && item->record->captured)
        return join_capture(stream, item);
    if (result)
        drop_item(item);
    else
        queue_item(c, stream, item);
    return result;
}

static CUresult queue_copy(const char *function, CUstream stream, const struct item *item) {
    BEGIN_AS(function, WORK);
    if ((item->dst && !find_block(item->dst, item->bytes)) ||
        (item->src && !find_block(item->src, item->bytes)) || is_device_range(item->host))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&c, stream, item);
}

#define COPIES(name, parameters, ...)                                                              \
    CUresult CUDAAPI name parameters {                                                             \
        return queue_copy(__func__, stream, &(struct item){__VA_ARGS__});                          \
    }
COPIES(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream),
       .operation = SET, .dst = dst, .value = value, .bytes = bytes)
COPIES(cuMemcpyHtoDAsync, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
       .operation = UPLOAD, .dst = dst, .host = (void *)(uintptr_t)src, .bytes = bytes)
COPIES(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream),
       .operation = DOWNLOAD, .src = src, .host = dst, .bytes = bytes)
COPIES(cuMemcpyDtoDAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
       .operation = COPY, .dst = dst, .src = src, .bytes = bytes)
#undef COPIES

RETURNS(fake_launch, WORK, (CUstream stream, void (*kernel)(void *user), void *user),
        enqueue(&c, stream, &(struct item){.operation = LAUNCH, .kernel = kernel, .user = user}))

static CUresult queue_in(CUcontext context, CUstream stream, const struct item *item) {
    FAKE_LOCKED;
    struct call c = {.need = WORK, .context = context};
    if (!context->lost)
        return enqueue(&c, stream, item);
    drop_item(item);
    return context->lost;
}

CUresult fake_blas_run(CUcontext context, CUstream stream, void (*kernel)(void *user), void *user) {
    return queue_in(
        context, stream,
        &(struct item){.operation = LAUNCH, .kernel = kernel, .user = user, .owned = true});
}

CUresult fake_gate(CUcontext context, CUstream stream, bool (*passes)(void *user), void *user,
                   CUdeviceptr ptr, size_t bytes) {
    return queue_in(
        context, stream,
        &(struct item){
            .operation = GATE, .passes = passes, .user = user, .dst = ptr, .bytes = bytes});
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
    BEGIN(CONTEXT);
    CUstream made = need_memory(malloc(sizeof *made));
    *made = (struct CUstream_st){.context = c.context,
                                 .blocking = !(flags & CU_STREAM_NON_BLOCKING),
                                 .next = c.context->streams};
    c.context->streams = *stream = made;
    fake.live.streams++;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
    BEGIN(INITIALISED);
    CUstream stream = find_anywhere(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    fake.live.streams--;
    stream->destroyed = true;
    if (!stream->head)
        unlink_stream(stream);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *context) {
    BEGIN(CONTEXT);
    const bool special = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    const CUstream stream = special ? &c.context->legacy : find_anywhere(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *context = stream->context;
    return CUDA_SUCCESS;
}

static CUresult look_at(const struct call *c, CUstream stream) {
    CUresult result = stream ? check_capture(stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result || !is_capturing(stream))
        return result ? result : check_unsafe(c->context);
    invalidate(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    BEGIN(CONTEXT);
    CUstream stream = resolve(c.context, handle);
    CUresult result = look_at(&c, stream);
    if (result)
        return result;
    run_stream(stream);
    trim_pools(c.context->device);
    result = failure_for(stream, fake_thread());
    mark_reported(stream);
    end_failure(stream, fake_thread());
    return c.context->lost ? c.context->lost : result;
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    BEGIN(CONTEXT);
    CUstream stream = resolve(c.context, handle);
    const CUresult result = look_at(&c, stream);
    if (result)
        return result;
    try_stream(stream);
    return stream->head ? CUDA_ERROR_NOT_READY : c.context->lost;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    BEGIN(WORK);
    if (flags || !event->latest)
        return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* only captures use flags */
    event->latest->refs++;
    return enqueue(&c, stream, &(struct item){.operation = WAIT, .record = event->latest});
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
    BEGIN(CONTEXT);
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        fake_violation("an event lacks DISABLE_TIMING, which makes the event slower");
    CUevent made = fake_object(sizeof *made);
    made->context = c.context;
    made->flags = flags;
    fake.live.events++;
    *event = made;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream handle) {
    BEGIN(WORK);
    CUstream stream = resolve(c.context, handle);
    if (!stream || event->context != c.context)
        return CUDA_ERROR_INVALID_HANDLE;
    struct record *record = fake_object(sizeof *record);
    *record = (struct record){.refs = 2, .stream = stream};
    const CUresult result =
        enqueue(&c, handle, &(struct item){.operation = RECORD, .record = record});
    drop_record(result ? record : event->latest);
    if (!result)
        event->latest = record;
    return result;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    BEGIN(UNSAFE);
    struct record *record = event->latest;
    if (!record)
        return CUDA_SUCCESS;
    if (record->captured) {
        invalidate(record->stream);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event->context->flags == CU_CTX_SCHED_BLOCKING_SYNC &&
        !(event->flags & CU_EVENT_BLOCKING_SYNC))
        fake_violation("a wait for an event spins, but the context has the flag to block");
    while (!record->done)
        run_first(record->stream);
    trim_pools(event->context->device);
    for (CUstream s = event->context->streams; s && record->failure; s = s->next)
        if (s == record->stream) /* `record->stream` may have been freed */
            mark_reported(s);
    return event->context->lost ? event->context->lost : record->failure;
}

/* The first query of a recorded event runs no work, so that callers meet CUDA_ERROR_NOT_READY. Only
   waits return a transient failure. */
CUresult CUDAAPI cuEventQuery(CUevent event) {
    BEGIN(CONTEXT);
    struct record *record = event->latest;
    if (!record)
        return CUDA_SUCCESS;
    if (!record->done && record->queries++ > 0)
        while (!record->done && try_first(record->stream))
            ;
    return record->done ? event->context->lost : CUDA_ERROR_NOT_READY;
}

/* Fails without a current context: cuda.h lists INVALID_CONTEXT without a condition. */
CUresult CUDAAPI cuEventDestroy(CUevent event) {
    BEGIN(INITIALISED);
    if (!c.context)
        return CUDA_ERROR_INVALID_CONTEXT;
    drop_record(event->latest);
    fake.live.events--;
    fake_object_free(event);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    BEGIN(CONTEXT);
    const CUstream stream = resolve(c.context, handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream == &c.context->legacy && blocking_capture(c.context))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = stream->capture;
    return CUDA_SUCCESS;
}

/* Ignores `mode`: the tests begin captures only in the global mode. */
CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    BEGIN(CONTEXT);
    CUstream stream = resolve(c.context, handle);
    if (!stream || stream == &c.context->legacy || is_capturing(stream))
        return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    stream->capturer = fake_thread();
    stream->captured_from = stream;
    stream->nodes = 0;
    return CUDA_SUCCESS;
}

/* Unlike a real driver, accepts a capture whose other streams were not joined to the first
   stream. */
CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    BEGIN(CONTEXT);
    CUstream stream = resolve(c.context, handle);
    if (!stream || stream->captured_from != stream)
        return CUDA_ERROR_ILLEGAL_STATE;
    const bool valid = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    for (CUstream s = c.context->streams; s; s = s->next)
        if (s->captured_from == stream) {
            s->capture = CU_STREAM_CAPTURE_STATUS_NONE;
            s->captured_from = NULL;
        }
    *graph = valid ? fake_object(sizeof **graph) : NULL;
    if (!valid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    (*graph)->nodes = stream->nodes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    BEGIN(INITIALISED);
    *count = graph->nodes;
    return CUDA_SUCCESS;
}

SIMPLE(cuGraphDestroy, INITIALISED, (CUgraph graph), fake_object_free(graph))
