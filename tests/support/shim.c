#include "shim.h"

#include "plain.h"
#include "sim_tables.h"

#include <syncblob/dlpack.h>

static struct shim_target target;
static struct shim *shims;

struct shim *shim_of(const void *device) {
    target.lock();
    struct shim *shim = shims;
    while (shim->device != device)
        shim = shim->next;
    target.unlock();
    return shim;
}

static sb_status open_device SLOT_OPEN {
    void *device;
    const sb_status st = target.backend.open(user, ordinal, &device, err);
    if (st != SB_OK)
        return st;
    struct shim *shim = calloc(1, sizeof *shim);
    if (!shim)
        abort();
    *out = shim->device = device;
    target.lock();
    shim->next = shims;
    shims = shim;
    target.unlock();
    return SB_OK;
}

static void close_device(void *device) {
    struct shim *shim = shim_of(device), **link = &shims;
    for (int i = 0; i < SHIM_STREAMS; i++)
        if (shim->streams[i])
            ignore(target.controls.stream_destroy(device, shim->streams[i], NULL));
    target.lock();
    while (*link != shim)
        link = &(*link)->next;
    *link = shim->next;
    target.unlock();
    free(shim);
    target.backend.close(device);
}

/* The first armed fault whose countdown reaches 0 takes effect. */
static struct shim_call begin(void *device, int32_t op, sb_dtype dtype, const sb_stream *stream) {
    struct shim *shim = shim_of(device);
    struct shim_call call = {op, dtype, stream, SHIM_NO_FAULT};
    target.lock();
    shim->calls[op]++;
    for (sb_sim_fault *fault = shim->faults; fault < shim->faults + SHIM_FAULTS; fault++)
        if (fault->countdown && (fault->op == SB_SIM_ANY || fault->op == op) &&
            --fault->countdown == 0 && call.mode == SHIM_NO_FAULT)
            call.mode = fault->mode;
    target.unlock();
    target.arm(shim, &call);
    return call;
}

/* Returns an error if a fault was due but no driver call has failed. */
static sb_status end(void *device, const struct shim_call *call, sb_status st, sb_error *err) {
    const bool failed = target.disarm(shim_of(device), call);
    if (failed || st != SB_OK || call->mode == SHIM_NO_FAULT)
        return st;
    const bool allocates = call->op == SB_SIM_ALLOC || call->op == SB_SIM_ALLOC_PINNED;
    st = call->mode == SB_SIM_FAIL_STICKY ? SB_ERR_DEVICE_LOST
         : allocates                      ? SB_ERR_OUT_OF_MEMORY
                                          : SB_ERR_DEVICE_FAILURE;
    return sb_error_fill(err, st, 1, "made to fail");
}

#define SLOT(name, OP, dtype, stream, parameters, ...)                                             \
    static sb_status name parameters {                                                             \
        const struct shim_call call = begin(device, SB_SIM_##OP, dtype, stream);                   \
        return end(device, &call, target.backend.name(device, __VA_ARGS__), err);                  \
    }
SLOT(alloc, ALLOC, 0, NULL, SLOT_ALLOC, bytes, stream, out, err)
SLOT(zero, ZERO, 0, &stream, SLOT_ZERO, dst, bytes, stream, err)
SLOT(upload, UPLOAD, 0, &stream, SLOT_MOVE, dst, src, bytes, stream, err)
SLOT(download, DOWNLOAD, 0, &stream, SLOT_MOVE, dst, src, bytes, stream, err)
SLOT(copy, COPY, 0, &stream, SLOT_MOVE, dst, src, bytes, stream, err)
SLOT(check_pointer, CHECK_POINTER, 0, NULL, SLOT_POINTER, ptr, bytes, err)
SLOT(check_stream, CHECK_STREAM, 0, NULL, SLOT_STREAM, stream, err)
SLOT(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, SLOT_STREAM, stream, err)
SLOT(event_record, EVENT_RECORD, 0, &stream, SLOT_RECORD, stream, out, err)
SLOT(stream_wait, STREAM_WAIT, 0, &stream, SLOT_ORDER, stream, event, err)
SLOT(event_wait, EVENT_WAIT, 0, NULL, SLOT_EVENT, event, err)
SLOT(prepare_arithmetic, PREPARE_ARITHMETIC, 0, NULL, (void *device, sb_error *err), err)
SLOT(axpy, AXPY, dtype, &stream, SLOT_AXPY, dtype, count, alpha, x, y, stream, err)
SLOT(scale, SCALE, dtype, &stream, SLOT_SCALE, dtype, count, alpha, x, stream, err)
SLOT(asum, ASUM, dtype, NULL, SLOT_SUM, dtype, count, x, out, stream, err)
SLOT(sumsq, SUMSQ, dtype, NULL, SLOT_SUM, dtype, count, x, out, stream, err)

static sb_status alloc_pinned(void *device, size_t bytes, void **out, sb_error *err) {
    void *made = NULL;
    const struct shim_call call = begin(device, SB_SIM_ALLOC_PINNED, 0, NULL);
    const sb_status st =
        end(device, &call, target.backend.alloc_pinned(device, bytes, &made, err), err);
    if (st == SB_OK)
        *out = made;
    else if (made)
        target.backend.free_pinned(device, made, bytes);
    return st;
}

static sb_sim_fault *faults(void *device, int32_t *out_count) {
    *out_count = SHIM_FAULTS;
    return shim_of(device)->faults;
}

static const int64_t *calls(const void *device, int32_t *out_count) {
    *out_count = SB_SIM_OP_COUNT;
    return shim_of(device)->calls;
}

static sb_stream *place_of(void *device, sb_stream stream) {
    sb_stream *place = shim_of(device)->streams, *const past = place + SHIM_STREAMS;
    while (place < past && *place != stream)
        place++;
    return place < past ? place : NULL;
}

static sb_status stream_create(void *device, sb_stream *out, sb_error *err) {
    sb_stream *place = place_of(device, NULL);
    if (!place)
        return sb_error_fill(err, SB_ERR_OVER_LIMIT, 0, "too many streams");
    const sb_status st = target.controls.stream_create(device, place, err);
    if (st == SB_OK)
        *out = *place;
    return st;
}

static sb_status stream_destroy(void *device, sb_stream stream, sb_error *err) {
    sb_stream *place = place_of(device, stream);
    if (!place)
        return sb_error_fill(err, SB_ERR_WRONG_DEVICE, 0, "no stream");
    *place = NULL;
    return target.controls.stream_destroy(device, stream, err);
}

static sb_sim_device controls;

static const void *extension(void *device, const char *name) {
    return strcmp(name, SB_SIM_DEVICE) == 0 ? &controls : NULL;
}

static sb_backend backend;

__attribute__((constructor)) static void make_tables(void) {
    target = shim_target();
    controls = target.controls;
    controls.struct_size = sizeof controls;
    controls.faults = faults;
    controls.calls = calls;
    controls.stream_create = stream_create;
    controls.stream_destroy = stream_destroy;
    backend = target.backend;
    backend.name = "sim";
    backend.dlpack_device = SB_DL_DEVICE_EXTENSION;
    backend.extension = extension;
    backend.open = open_device;
    backend.close = close_device;
    backend.alloc = alloc;
    backend.zero = zero;
    backend.upload = upload;
    backend.download = download;
    backend.copy = copy;
    backend.alloc_pinned = alloc_pinned;
    backend.check_pointer = check_pointer;
    backend.check_stream = check_stream;
    backend.stream_synchronize = stream_synchronize;
    backend.event_record = event_record;
    backend.stream_wait = stream_wait;
    backend.event_wait = event_wait;
    backend.prepare_arithmetic = prepare_arithmetic;
    backend.axpy = axpy;
    backend.scale = scale;
    backend.asum = asum;
    backend.sumsq = sumsq;
}

/* The linker's --wrap prescribes these names.
   NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
sb_status __real_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);
sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err);

sb_status __wrap_sb_context_create(const sb_context_options *options, sb_context **out,
                                   sb_error *err) {
    if (!options || !options->device || strncmp(options->device, "sim:", 4) != 0 ||
        options->backend)
        return __real_sb_context_create(options, out, err);
    sb_context_options changed = *options;
    changed.backend = &backend;
    return __real_sb_context_create(&changed, out, err);
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
