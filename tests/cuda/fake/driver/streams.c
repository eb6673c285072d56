/* Streams, events and the work between them. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- streams by their handles ---------------------------------------------------------------- */

/* Each thread has one in each context. It is ordered with the legacy default stream alone. */
static CUstream per_thread_stream(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next)
        if (s->per_thread && pthread_equal(s->thread, pthread_self()))
            return s;
    CUstream made = calloc(1, sizeof *made);
    if (made) {
        *made = (struct CUstream_st){.context = context,
                                     .blocking = true,
                                     .per_thread = true,
                                     .thread = pthread_self(),
                                     .next = context->streams};
        context->streams = made;
    }
    return made;
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

int fake_knows(CUstream handle) {
    lock();
    bool known = find_known(handle) != NULL;
    unlock();
    return known;
}

/* The driver follows whatever handle it is given: cuda.h calls that undefined behaviour. */
static CUstream find_anywhere(CUstream handle) {
    CUstream stream = find_known(handle);
    if (!stream)
        fake_violation("%p is no stream, or one no longer", (void *)handle);
    return stream;
}

/* --- captures -------------------------------------------------------------------------------- */

static bool is_capturing(CUstream stream) {
    return stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUstream blocking_capture(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next)
        if (s->blocking && is_capturing(s))
            return s;
    return NULL;
}

CUresult check_capture(CUstream stream) {
    CUstream captured =
        stream == &stream->context->legacy ? blocking_capture(stream->context) : NULL;
    if (captured) {
        captured->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return CUDA_SUCCESS;
}

/* --- running --------------------------------------------------------------------------------- */

static void drop_record(struct record *record) {
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

/* Work of the legacy default stream comes before later work of blocking streams. Whether a mere
   event does is nowhere said, so here it does not. */
static bool legacy_holds(CUcontext context, uint64_t turn) {
    for (const struct item *item = context->legacy.head; item && item->turn < turn;
         item = item->next)
        if (item->operation != RECORD)
            return true;
    return false;
}

/* The stream whose work has to run before the first of `stream` can. */
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
    static const char *const names[] = {"an allocation", "a free", "a memset", "an upload",
                                        "a download",    "a copy", "a kernel", "a record",
                                        "a wait",        "a gate"};
    fake_violation("%s of %zu bytes at %p: not allocated, or not yet", names[item->operation],
                   item->bytes, (void *)(uintptr_t)ptr);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_upload(struct item *item, void *dst) {
    if (item->snapshot && memcmp(item->snapshot, item->host, item->bytes) != 0)
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
    drop_block(block);
    return CUDA_SUCCESS;
}

static void run_record(CUstream stream, const struct item *item) {
    item->record->done = true;
    item->record->failure = item->failure ? item->failure : stream->failure;
    stream->failure = CUDA_SUCCESS;
}

/* Bookkeeping happens on a lost device as well: events are done, memory is given back. */
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
        stream->failure = failure;
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

/* A kernel that waits for one of another device holds what is behind it. */
static bool is_held(CUstream stream) {
    const struct item *item = stream->head;
    return item->operation == GATE && !item->failure && !stream->context->lost &&
           !item->passes(item->user);
}

/* Whatever blocks work was queued before it, so that this ends. The first of `stream` runs, or
   false: a gate is closed. */
static bool try_first(CUstream stream) {
    CUstream first = stream;
    for (CUstream b = first; b; b = blocker(first))
        first = b;
    if (is_held(first))
        return false;
    step(first);
    return true;
}

/* Who waits on a closed gate lets other threads on, one of which may open it. */
static void run_first(CUstream stream) {
    while (stream->head && !try_first(stream)) {
        unlock();
        (void)usleep(50);
        lock();
    }
}

static void run_until(CUstream stream, uint64_t turn) {
    while (stream->head && stream->head->turn <= turn)
        run_first(stream);
}

static void try_stream(CUstream stream) {
    while (stream->head && try_first(stream))
        ;
}

/* A destroyed stream goes with its last item. */
static CUstream with_work(CUcontext context) {
    CUstream s = context->streams;
    while (s && !s->head)
        s = s->next;
    return s;
}

void run_stream(CUstream stream) {
    run_until(stream, fake.turn);
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
    lock();
    for (int i = 0; i < MAX_CONTEXTS; i++)
        run_all(&fake.contexts[i]);
    unlock();
}

/* Runs something here and there. */
static void drift(CUcontext context) {
    while (draw() % 4 != 0) {
        uint64_t count = 0;
        for (CUstream s = context->streams; s; s = s->next)
            count++;
        uint64_t index = draw() % count;
        CUstream s = context->streams;
        while (index--)
            s = s->next;
        if (s->head && !blocker(s) && !is_held(s))
            step(s);
    }
}

/* --- queueing -------------------------------------------------------------------------------- */

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

/* The source of an upload is read now and, unless the memory is pageable and the driver takes a
   copy of it, again when the copy runs; the target of a download is rubbish until then. */
static void prepare(struct item *item) {
    int64_t schedule = fake.settings[FAKE_SCHEDULE];
    if (item->operation == UPLOAD) {
        item->snapshot = malloc(item->bytes);
        if (item->snapshot)
            memcpy(item->snapshot, item->host, item->bytes);
        bool early = schedule == FAKE_RANDOM && draw() % 2 == 0;
        item->staged = item->snapshot && early && !find_pinned(item->host, item->bytes);
    }
    if (item->operation == DOWNLOAD && !is_pending(item->host, 0, item->bytes)) {
        memset(item->host, RUBBISH, item->bytes);
        item->scribbled = true;
    }
}

static void append(CUstream stream, struct item *item) {
    item->next = NULL;
    item->turn = ++fake.turn;
    if (stream->tail)
        stream->tail->next = item;
    else
        stream->head = item;
    stream->tail = item;
}

/* What a capturing stream is given becomes a node of its graph. */
static CUresult capture(CUstream stream, const struct item *item) {
    stream->captured_from->nodes++;
    if (item->operation == RECORD) {
        item->record->captured = true;
        item->record->stream = stream;
    }
    drop_record(item->record);
    if (item->owned)
        free(item->user);
    return CUDA_SUCCESS;
}

static CUresult join_capture(CUstream stream, const struct item *item) {
    CUstream from = item->record->stream;
    stream->capture = from->capture;
    stream->captured_from = from->captured_from;
    return capture(stream, item);
}

static CUresult queue_item(struct call *c, CUstream stream, const struct item *item) {
    struct item *made = malloc(sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = *item;
    made->failure = c->later;
    made->passing = c->passing;
    prepare(made);
    append(stream, made);
    if (fake.settings[FAKE_SCHEDULE] == FAKE_EAGER)
        try_stream(stream);
    else if (fake.settings[FAKE_SCHEDULE] == FAKE_RANDOM)
        drift(c->context);
    return CUDA_SUCCESS;
}

CUresult enqueue(struct call *c, CUstream handle, const struct item *item) {
    CUstream stream = resolve(c->context, handle);
    CUresult result = stream ? check_capture(stream) : CUDA_ERROR_INVALID_HANDLE;
    if (!result && is_capturing(stream))
        return capture(stream, item);
    if (!result && item->operation == WAIT && item->record->captured)
        return join_capture(stream, item);
    if (!result)
        result = queue_item(c, stream, item);
    if (result)
        drop_record(item->record);
    if (result && item->owned)
        free(item->user);
    return result;
}

/* --- copies ---------------------------------------------------------------------------------- */

static CUresult queue_copy(const char *function, CUstream stream, const struct item *item) {
    struct call c;
    if (begin(&c, function, WORK)) {
        if ((item->dst && !find_block(item->dst, item->bytes)) ||
            (item->src && !find_block(item->src, item->bytes)) || is_device_range(item->host))
            c.result = CUDA_ERROR_INVALID_VALUE;
        else
            c.result = enqueue(&c, stream, item);
    }
    return end(&c);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes,
                                 CUstream stream) {
    return queue_copy(__func__, stream,
                      &(struct item){.operation = SET, .dst = dst, .value = value, .bytes = bytes});
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes,
                                   CUstream stream) {
    return queue_copy(
        __func__, stream,
        &(struct item){
            .operation = UPLOAD, .dst = dst, .host = (void *)(uintptr_t)src, .bytes = bytes});
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    return queue_copy(
        __func__, stream,
        &(struct item){.operation = DOWNLOAD, .src = src, .host = dst, .bytes = bytes});
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                   CUstream stream) {
    return queue_copy(__func__, stream,
                      &(struct item){.operation = COPY, .dst = dst, .src = src, .bytes = bytes});
}

CUresult fake_launch(CUstream stream, void (*kernel)(void *user), void *user) {
    struct call c;
    if (begin(&c, __func__, WORK))
        c.result = enqueue(&c, stream,
                           &(struct item){.operation = LAUNCH, .kernel = kernel, .user = user});
    return end(&c);
}

CUresult fake_blas_run(CUcontext context, CUstream handle, void (*kernel)(void *user), void *user,
                       int wait) {
    struct call c = {.need = WORK, .context = context};
    lock();
    c.result = context->lost;
    if (c.result)
        free(user);
    else
        c.result = enqueue(
            &c, handle,
            &(struct item){.operation = LAUNCH, .kernel = kernel, .user = user, .owned = true});
    CUstream stream = resolve(context, handle);
    if (!c.result && wait && is_capturing(stream)) {
        stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        c.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (!c.result && wait) {
        run_stream(stream);
        c.result = context->lost ? context->lost : stream->failure;
        stream->failure = CUDA_SUCCESS;
    }
    unlock();
    return c.result;
}

void fake_blas_wait(CUcontext context) {
    lock();
    for (CUstream s = context->streams; s; s = s->next)
        if (is_capturing(s))
            s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    run_all(context);
    unlock();
}

CUresult fake_gate(CUcontext context, CUstream handle, bool (*passes)(void *user), void *user,
                   CUdeviceptr ptr, size_t bytes) {
    struct call c = {.need = WORK, .context = context};
    lock();
    c.result = context->lost;
    if (!c.result)
        c.result = enqueue(
            &c, handle,
            &(struct item){
                .operation = GATE, .passes = passes, .user = user, .dst = ptr, .bytes = bytes});
    unlock();
    return c.result;
}

/* --- streams --------------------------------------------------------------------------------- */

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
    struct call c;
    CUstream made = NULL;
    if (begin(&c, __func__, CONTEXT)) {
        made = calloc(1, sizeof *made);
        c.result = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (made) {
        made->context = c.context;
        made->blocking = !(flags & CU_STREAM_NON_BLOCKING);
        made->next = c.context->streams;
        c.context->streams = made;
        fake.live.streams++;
        *stream = made;
    }
    return end(&c);
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
    struct call c;
    CUstream stream = NULL;
    if (begin(&c, __func__, INITIALISED)) {
        stream = find_anywhere(handle);
        c.result = stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream) {
        fake.live.streams--;
        stream->destroyed = true;
        if (!stream->head)
            unlink_stream(stream);
    }
    return end(&c);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *context) {
    struct call c;
    if (begin(&c, __func__, CONTEXT)) {
        bool special = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
        CUstream stream = special ? &c.context->legacy : find_anywhere(handle);
        if (stream)
            *context = stream->context;
        else
            c.result = CUDA_ERROR_INVALID_HANDLE;
    }
    return end(&c);
}

/* Who looks whether a stream is done spoils a capture of it. */
static CUstream begin_look(struct call *c, const char *name, CUstream handle) {
    CUstream stream = NULL;
    if (begin(c, name, CONTEXT)) {
        stream = resolve(c->context, handle);
        c->result = stream ? check_capture(stream) : CUDA_ERROR_INVALID_HANDLE;
    }
    if (!c->result && is_capturing(stream)) {
        stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        c->result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!c->result)
        c->result = check_unsafe(c->context);
    return stream;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    struct call c;
    CUstream stream = begin_look(&c, __func__, handle);
    if (!c.result) {
        run_stream(stream);
        trim_pools(c.context->device);
        c.result = c.context->lost ? c.context->lost : stream->failure;
        stream->failure = CUDA_SUCCESS;
    }
    return end(&c);
}

/* What can run has run when somebody looks, and counts as seen: what it has freed is free. */
CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    struct call c;
    CUstream stream = begin_look(&c, __func__, handle);
    if (!c.result) {
        try_stream(stream);
        c.result = stream->head ? CUDA_ERROR_NOT_READY : c.context->lost;
    }
    return end(&c);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    struct call c;
    if (begin(&c, __func__, WORK) && flags)
        c.result = CUDA_ERROR_INVALID_VALUE; /* external waits are for captures */
    if (!c.result && event->latest) {
        event->latest->refs++;
        c.result = enqueue(&c, stream, &(struct item){.operation = WAIT, .record = event->latest});
    }
    return end(&c);
}

/* --- events ---------------------------------------------------------------------------------- */

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
    struct call c;
    CUevent made = NULL;
    if (begin(&c, __func__, CONTEXT)) {
        if (!(flags & CU_EVENT_DISABLE_TIMING))
            fake_violation("an event takes the time, which costs more");
        made = fake_object(sizeof *made);
        c.result = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (made) {
        made->context = c.context;
        made->flags = flags;
        fake.live.events++;
        *event = made;
    }
    return end(&c);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream handle) {
    struct call c;
    struct record *record = NULL;
    if (begin(&c, __func__, WORK)) {
        CUstream stream = resolve(c.context, handle);
        record = stream && event->context == c.context ? fake_object(sizeof *record) : NULL;
        c.result = record ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        if (record)
            *record = (struct record){.refs = 2, .stream = stream};
    }
    if (record) {
        c.result = enqueue(&c, handle, &(struct item){.operation = RECORD, .record = record});
        drop_record(c.result ? record : event->latest);
        if (!c.result)
            event->latest = record;
    }
    return end(&c);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    struct record *record = c.result ? NULL : event->latest;
    if (record && record->captured) {
        record->stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        c.result = CUDA_ERROR_CAPTURED_EVENT;
    } else if (record) {
        if (event->context->flags == CU_CTX_SCHED_BLOCKING_SYNC &&
            !(event->flags & CU_EVENT_BLOCKING_SYNC))
            fake_violation("a wait for an event spins, but its context has the flag to block");
        while (!record->done)
            run_first(record->stream);
        trim_pools(event->context->device);
        c.result = event->context->lost ? event->context->lost : record->failure;
    }
    return end(&c);
}

/* Nothing runs while nobody looks, and nothing is done when somebody looks for the first time,
   unless it was before. */
CUresult CUDAAPI cuEventQuery(CUevent event) {
    struct call c;
    struct record *record = begin(&c, __func__, CONTEXT) ? event->latest : NULL;
    if (record && !record->done && record->queries++ > 0)
        while (!record->done && try_first(record->stream))
            ;
    if (record && record->done)
        c.result = event->context->lost ? event->context->lost : record->failure;
    else if (record)
        c.result = CUDA_ERROR_NOT_READY;
    return end(&c);
}

/* Whether it needs a current context is left open by cuda.h, which lists the error. */
CUresult CUDAAPI cuEventDestroy(CUevent event) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && !c.context)
        c.result = CUDA_ERROR_INVALID_CONTEXT;
    if (!c.result) {
        drop_record(event->latest);
        fake.live.events--;
        fake_object_free(event);
    }
    return end(&c);
}

/* --- capturing ------------------------------------------------------------------------------- */

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    struct call c;
    CUstream stream = NULL;
    if (begin(&c, __func__, CONTEXT)) {
        stream = resolve(c.context, handle);
        if (!stream)
            c.result = CUDA_ERROR_INVALID_HANDLE;
        else if (stream == &c.context->legacy && blocking_capture(c.context))
            c.result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        else
            *status = stream->capture;
    }
    return end(&c);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    struct call c;
    if (begin(&c, __func__, CONTEXT)) {
        CUstream stream = resolve(c.context, handle);
        if (!stream)
            c.result = CUDA_ERROR_INVALID_HANDLE;
        else if (stream == &c.context->legacy)
            c.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        else if (is_capturing(stream))
            c.result = CUDA_ERROR_ILLEGAL_STATE;
        else {
            stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
            stream->capture_mode = mode;
            stream->capturer = pthread_self();
            stream->captured_from = stream;
            stream->nodes = 0;
        }
    }
    return end(&c);
}

/* Streams that joined leave with it; whether they came back is not looked at. */
static CUresult end_capture(CUcontext context, CUstream stream, CUgraph *graph) {
    bool valid = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    for (CUstream s = context->streams; s; s = s->next)
        if (s->captured_from == stream) {
            s->capture = CU_STREAM_CAPTURE_STATUS_NONE;
            s->captured_from = NULL;
        }
    *graph = NULL;
    if (!valid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *graph = calloc(1, sizeof **graph);
    if (*graph)
        (*graph)->nodes = stream->nodes;
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    struct call c;
    if (begin(&c, __func__, CONTEXT)) {
        CUstream stream = resolve(c.context, handle);
        if (!stream || stream->captured_from != stream)
            c.result = CUDA_ERROR_ILLEGAL_STATE;
        else
            c.result = end_capture(c.context, stream, graph);
    }
    return end(&c);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    struct call c;
    (void)nodes;
    if (begin(&c, __func__, INITIALISED))
        *count = graph->nodes;
    return end(&c);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        free(graph);
    return end(&c);
}
