/* Settings, counters, faults and contexts of the fake driver. */
#include "driver.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FUNCTIONS 160
#define MAX_DEPTH     64

struct fake fake;

static struct {
    const char *name;
    int64_t calls;
} functions[MAX_FUNCTIONS];

static struct armed {
    const char *function;
    int64_t in;
    enum fake_mode mode;
    unsigned int code;
    const char *fired;
} armed;

static _Thread_local struct {
    CUcontext contexts[MAX_DEPTH];
    int depth;
    CUstreamCaptureMode mode;
} thread;

static int64_t setting(const char *variable, int64_t otherwise) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return otherwise;
    if (strcmp(text, "lazy") == 0)
        return FAKE_LAZY;
    return strcmp(text, "random") == 0 ? FAKE_RANDOM : strtoll(text, NULL, 10);
}

__attribute__((constructor)) static void load(void) {
    pthread_mutexattr_t recursive;
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&fake.lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
    fake.settings[FAKE_SCHEDULE] = setting("FAKE_SCHEDULE", FAKE_EAGER);
    fake.settings[FAKE_DEVICES] = 2;
    fake.settings[FAKE_VERSION] = setting("FAKE_VERSION", 13000);
    fake.settings[FAKE_POOLS] = fake.settings[FAKE_PEERS] = 1;
    fake.settings[FAKE_INIT] = setting("FAKE_INIT", 0);
    fake.settings[FAKE_MEMORY] = setting("FAKE_MEMORY", (int64_t)16 << 30);
    fake.settings[FAKE_LOSS] = CUDA_ERROR_ILLEGAL_ADDRESS;
    fake_set(FAKE_SEED, 1);
}

int fake_lock(void) {
    return pthread_mutex_lock(&fake.lock);
}

void fake_unlock(const int *held) {
    (void)pthread_mutex_unlock(&fake.lock);
}

void fake_set(enum fake_setting which, int64_t value) {
    FAKE_LOCKED;
    fake.settings[which] = value;
    if (which == FAKE_SEED)
        fake.random = (uint64_t)value;
}

READS(int64_t, fake_get, (enum fake_setting which), fake.settings[which])

void fake_violation(const char *format, ...) {
    FAKE_LOCKED;
    va_list args;
    va_start(args, format);
    fake.violations++;
    (void)fputs("fake: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

READS(int64_t, fake_violations, (void), fake.violations)

READS(struct fake_live, fake_live, (void), fake.live)

int fake_depth(void) {
    return thread.depth;
}

void fake_count_handle(void) {
    FAKE_LOCKED;
    fake.live.handles++;
}

int64_t fake_thread(void) {
    static _Atomic int64_t count;
    static _Thread_local int64_t number;
    return number ? number : (number = ++count);
}

static void count_call(const char *function) {
    int i = 0;
    while (functions[i].name && strcmp(functions[i].name, function) != 0)
        i++;
    functions[i].name = function;
    functions[i].calls++;
}

int64_t fake_calls(const char *function) {
    FAKE_LOCKED;
    int64_t calls = 0;
    for (int i = 0; i < MAX_FUNCTIONS && functions[i].name; i++)
        if (!function || strcmp(functions[i].name, function) == 0)
            calls += functions[i].calls;
    return calls;
}

struct object {
    struct object *next, *previous;
    max_align_t bytes[];
};

static struct object objects = {&objects, &objects};

void *need_memory(void *made) {
    if (!made)
        abort();
    return made;
}

void *fake_object(size_t bytes) {
    FAKE_LOCKED;
    struct object *object = need_memory(calloc(1, sizeof *object + bytes));
    object->next = objects.next;
    object->previous = &objects;
    objects.next->previous = object;
    objects.next = object;
    return object->bytes;
}

void fake_object_free(void *bytes) {
    FAKE_LOCKED;
    if (!bytes)
        return;
    struct object *object =
        (struct object *)(void *)((char *)bytes - offsetof(struct object, bytes));
    object->next->previous = object->previous;
    object->previous->next = object->next;
    free(object);
}

void fake_heal(void) {
    FAKE_LOCKED;
    for (int i = 0; i < MAX_CONTEXTS; i++) {
        forget_streams(&fake.contexts[i]);
        fake.contexts[i] = (struct CUctx_st){.device = i};
    }
    forget_memory();
    fake.pools = NULL;
    while (objects.next != &objects)
        fake_object_free(objects.next->bytes);
    fake.live = (struct fake_live){0};
    fake.shut_down = false;
    thread.depth = 0;
    thread.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void fake_revive(CUcontext context) {
    FAKE_LOCKED;
    if (context->lost)
        run_all(context); /* runs no copy: the copy's host memory may have been freed */
    context->lost = context->lost_soon = CUDA_SUCCESS;
}

void fake_fail(const char *function, int64_t nth, enum fake_mode mode, unsigned int code) {
    FAKE_LOCKED;
    const char *fired = nth ? NULL : armed.fired;
    armed = (struct armed){function, nth, mode, code, fired};
}

READS(const char *, fake_fired, (void), armed.fired)

static bool fault_is_due(const char *function) {
    if (armed.in == 0 || (armed.function && strcmp(armed.function, function) != 0) ||
        --armed.in > 0)
        return false;
    armed.fired = function;
    armed.in = armed.mode == FAKE_ALWAYS;
    return true;
}

void lose(CUcontext context, CUresult code) {
    if (context && !context->lost)
        context->lost = code;
}

static CUcontext current(void) {
    return thread.depth ? thread.contexts[thread.depth - 1] : NULL;
}

static void fail_call(struct call *c) {
    const CUresult code = (CUresult)armed.code;
    c->passing = armed.mode == FAKE_TRANSIENT;
    if (armed.mode == FAKE_LATE || (c->passing && c->need == WORK)) {
        c->later = code;
        return;
    }
    c->result = code;
    if (armed.mode == FAKE_STICKY)
        lose(c->context ? c->context : &fake.contexts[0], code);
    if (armed.mode == FAKE_EXIT) {
        fake.shut_down = true;
        c->result = CUDA_ERROR_DEINITIALIZED;
    }
}

static CUresult check_state(const struct call *c) {
    if (c->need == NOTHING)
        return CUDA_SUCCESS;
    if (!fake.initialised || fake.process != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (c->need == INITIALISED)
        return CUDA_SUCCESS;
    if (!c->context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return c->context->lost || c->need != UNSAFE ? c->context->lost : check_unsafe(c->context);
}

struct call begin_call(const char *function, enum need need) {
    (void)fake_lock();
    count_call(function);
    struct call c = {.need = need, .context = current()};
    if (fake.shut_down)
        c.result = CUDA_ERROR_DEINITIALIZED;
    if (!c.result && c.context && c.context->lost_soon)
        lose(c.context, c.context->lost_soon);
    if (!c.result && fault_is_due(function))
        fail_call(&c);
    if (!c.result)
        c.result = check_state(&c);
    return c;
}

void end_call(const struct call *c) {
    if (c->later && c->need != WORK)
        (c->context ? c->context : &fake.contexts[0])->lost_soon = c->later;
    fake_unlock(NULL);
}

struct fake_blas_call fake_blas(const char *function) {
    FAKE_LOCKED;
    struct fake_blas_call call = {0, current()};
    count_call(function);
    if (fake.shut_down)
        fake_violation("%s was called after the driver had shut down", function);
    if (!fault_is_due(function))
        return call;
    if (armed.mode != FAKE_LATE)
        call.status = armed.code;
    else if (call.context)
        call.context->lost_soon = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (armed.mode == FAKE_STICKY)
        lose(call.context, (CUresult)fake.settings[FAKE_LOSS]);
    if (armed.mode == FAKE_EXIT)
        fake.shut_down = true;
    return call;
}

static void at_exit(void) {
    FAKE_LOCKED;
    fake.shut_down = true;
}

CUresult CUDAAPI cuInit(unsigned int flags) {
    BEGIN(NOTHING);
    if (flags || fake.settings[FAKE_INIT])
        return flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)fake.settings[FAKE_INIT];
    if (!fake.initialised)
        (void)atexit(at_exit);
    else if (fake.process != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    fake.initialised = true;
    fake.process = getpid();
    return CUDA_SUCCESS;
}

SIMPLE(cuDriverGetVersion, NOTHING, (int *version), *version = (int)fake.settings[FAKE_VERSION])

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **out) {
    BEGIN(NOTHING);
    *out = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
           : error == CUDA_ERROR_UNKNOWN ? "CUDA_ERROR_UNKNOWN"
                                         : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **out) {
    return cuGetErrorName(error, out);
}

static bool is_device(int device) {
    return device >= 0 && device < fake.settings[FAKE_DEVICES] && device < MAX_DEVICES;
}

#define BEGIN_ON(device)                                                                           \
    BEGIN(INITIALISED);                                                                            \
    if (!is_device(device))                                                                        \
    return CUDA_ERROR_INVALID_DEVICE

SIMPLE(cuDeviceGetCount, INITIALISED, (int *count), *count = (int)fake.settings[FAKE_DEVICES])

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    BEGIN(INITIALISED);
    if (!is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    BEGIN_ON(device);
    if (attribute != CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    *value = (int)fake.settings[FAKE_POOLS];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    BEGIN(INITIALISED);
    if (!is_device(device) || !is_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && fake.settings[FAKE_PEERS];
    return CUDA_SUCCESS;
}

static void start_context(CUcontext context, int device) {
    static uint64_t last_id;
    context->device = device;
    context->id = ++last_id;
    context->legacy = (struct CUstream_st){.context = context, .blocking = true};
    context->streams = &context->legacy;
}

static CUresult check_unsafe_anywhere(void) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < MAX_CONTEXTS; i++)
        if (check_unsafe(&fake.contexts[i]))
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    BEGIN_ON(device);
    CUcontext primary = &fake.contexts[device];
    if (!primary->retained && check_unsafe_anywhere())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (primary->retained++ == 0)
        start_context(primary, device);
    fake.live.retained++;
    *context = primary;
    return CUDA_SUCCESS;
}

/* The driver keeps the flags when the primary context is destroyed and created again. */
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
    BEGIN_ON(device);
    fake.contexts[device].flags = flags;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    BEGIN_ON(device);
    *flags = fake.contexts[device].flags;
    *active = fake.contexts[device].retained != 0;
    return CUDA_SUCCESS;
}

static void unload_kernels(CUcontext context) {
    unmap_bytes(NULL, (size_t)context->kernel_count * FAKE_KERNEL_BYTES);
    context->kernel_count = 0;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    BEGIN_ON(device);
    CUcontext primary = &fake.contexts[device];
    if (!primary->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (primary->retained == 1 && check_unsafe_anywhere())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake.live.retained--;
    if (--primary->retained)
        return CUDA_SUCCESS;
    run_all(primary);
    drop_per_thread(primary);
    if (primary->streams != &primary->legacy)
        fake_violation("the primary context of device %d ended before its streams", device);
    unload_kernels(primary);
    primary->lost = primary->lost_soon = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

READS(uint64_t, fake_context_id, (CUcontext context), context->id)

CUresult fake_load_kernel(CUcontext context, const char *function) {
    FAKE_LOCKED;
    for (int i = 0; i < context->kernel_count; i++)
        if (strcmp(context->kernels[i], function) == 0)
            return CUDA_SUCCESS;
    if (check_unsafe(context))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (context->kernel_count == MAX_KERNELS || !map_bytes(NULL, FAKE_KERNEL_BYTES))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->kernels[context->kernel_count++] = function;
    return CUDA_SUCCESS;
}

void unload_kernel(CUcontext context, const char *function) {
    for (int i = 0; i < context->kernel_count; i++)
        if (context->kernels[i] == function) {
            context->kernels[i] = context->kernels[--context->kernel_count];
            unmap_bytes(NULL, FAKE_KERNEL_BYTES);
        }
}

SIMPLE(cuCtxGetId, INITIALISED, (CUcontext context, unsigned long long *id), *id = context->id)

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
    BEGIN(INITIALISED);
    if (!context || thread.depth == MAX_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread.contexts[thread.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
    BEGIN(INITIALISED);
    if (thread.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = thread.contexts[--thread.depth];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    BEGIN(INITIALISED);
    int i = MAX_DEVICES;
    while (i < MAX_CONTEXTS - 1 && fake.contexts[i].retained)
        i++;
    *context = &fake.contexts[i];
    (*context)->retained = 1;
    start_context(*context, device);
    thread.contexts[thread.depth++] = *context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
    BEGIN(INITIALISED);
    if (context - fake.contexts < MAX_DEVICES)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current() == context)
        thread.depth--;
    run_all(context);
    forget_streams(context);
    unload_kernels(context);
    *context = (struct CUctx_st){0};
    return CUDA_SUCCESS;
}

SIMPLE(cuCtxGetCurrent, INITIALISED, (CUcontext * context), *context = c.context)

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    BEGIN(INITIALISED);
    const CUstreamCaptureMode old = thread.mode;
    thread.mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

static bool forbids(CUstream stream) {
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE || stream->captured_from != stream ||
        thread.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return stream->capturer == fake_thread() || thread.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult check_unsafe(CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    for (CUstream s = context->streams; s; s = s->next)
        if (forbids(s)) {
            s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}
