/* Settings, counters, failing calls, and contexts on threads' stacks. */
#include "driver.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FUNCTIONS 128
#define MAX_DEPTH     64

struct fake fake;

static struct {
    const char *name;
    int64_t calls;
} functions[MAX_FUNCTIONS];

static struct {
    const char *function;
    int64_t in, again;
    enum fake_mode mode;
    unsigned int code;
    const char *fired;
    int failures;
} armed;

static struct {
    const char *function; /* NULL: there is none */
    void (*run)(void *user);
    void *user;
} hook;

static _Thread_local struct {
    CUcontext contexts[MAX_DEPTH];
    int depth;
    CUstreamCaptureMode mode;
} thread;

/* --- settings -------------------------------------------------------------------------------- */

static int64_t setting(const char *variable, int64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static int64_t schedule_setting(void) {
    const char *text = getenv("FAKE_SCHEDULE");
    if (text && strcmp(text, "lazy") == 0)
        return FAKE_LAZY;
    return text && strcmp(text, "random") == 0 ? FAKE_RANDOM : FAKE_EAGER;
}

__attribute__((constructor)) static void load(void) {
    pthread_mutexattr_t recursive;
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&fake.lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
    fake.settings[FAKE_SCHEDULE] = schedule_setting();
    fake.settings[FAKE_DEVICES] = setting("FAKE_DEVICES", 2);
    fake.settings[FAKE_VERSION] = setting("FAKE_VERSION", 13000);
    fake.settings[FAKE_POOLS] = setting("FAKE_POOLS", 1);
    fake.settings[FAKE_INIT] = setting("FAKE_INIT", 0);
    fake.settings[FAKE_MEMORY] = setting("FAKE_MEMORY", (int64_t)16 << 30);
    fake.settings[FAKE_LOSS] = CUDA_ERROR_ILLEGAL_ADDRESS;
    fake_set(FAKE_SEED, setting("FAKE_SEED", 1));
}

void lock(void) {
    (void)pthread_mutex_lock(&fake.lock);
}

void unlock(void) {
    (void)pthread_mutex_unlock(&fake.lock);
}

void fake_lock(void) {
    lock();
}

void fake_unlock(void) {
    unlock();
}

void fake_set(enum fake_setting which, int64_t value) {
    lock();
    fake.settings[which] = value;
    if (which == FAKE_SEED)
        fake.random = (uint64_t)value;
    unlock();
}

uint64_t draw(void) {
    uint64_t x = fake.random += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* --- what a test sees ------------------------------------------------------------------------ */

void fake_violation(const char *format, ...) {
    va_list args;
    va_start(args, format);
    lock();
    fake.violations++;
    (void)fputs("fake: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    unlock();
    va_end(args);
}

int64_t fake_violations(void) {
    lock();
    int64_t count = fake.violations;
    unlock();
    return count;
}

void fake_forgive(void) {
    lock();
    fake.violations = 0;
    unlock();
}

struct fake_live fake_live(void) {
    lock();
    struct fake_live live = fake.live;
    unlock();
    return live;
}

int fake_depth(void) {
    return thread.depth;
}

void fake_count_handle(int by) {
    lock();
    fake.live.handles += by;
    unlock();
}

void fake_shut_down(void) {
    lock();
    fake.shut_down = true;
    unlock();
}

/* --- objects ------------------------------------------------------------------------------ */

struct object {
    struct object *next, *previous;
    max_align_t bytes[];
};

static struct object objects = {&objects, &objects};

void *fake_object(size_t bytes) {
    struct object *object = calloc(1, sizeof *object + bytes);
    if (!object)
        return NULL;
    lock();
    object->next = objects.next;
    object->previous = &objects;
    objects.next->previous = object;
    objects.next = object;
    unlock();
    return object->bytes;
}

void fake_object_free(void *bytes) {
    if (!bytes)
        return;
    struct object *object =
        (struct object *)(void *)((char *)bytes - offsetof(struct object, bytes));
    lock();
    object->next->previous = object->previous;
    object->previous->next = object->next;
    unlock();
    free(object);
}

void fake_heal(void) {
    lock();
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
    unlock();
}

void fake_revive(CUcontext context) {
    lock();
    context->lost = context->lost_soon = CUDA_SUCCESS;
    unlock();
}

static void count_call(const char *function) {
    for (int i = 0; i < MAX_FUNCTIONS; i++) {
        if (!functions[i].name)
            functions[i].name = function;
        if (strcmp(functions[i].name, function) != 0)
            continue;
        functions[i].calls++;
        return;
    }
}

int64_t fake_calls(const char *function) {
    int64_t calls = 0;
    lock();
    for (int i = 0; i < MAX_FUNCTIONS && functions[i].name; i++)
        if (!function || strcmp(functions[i].name, function) == 0)
            calls += functions[i].calls;
    unlock();
    return calls;
}

/* --- failing --------------------------------------------------------------------------------- */

void fake_fail(const char *function, int64_t nth, enum fake_mode mode, unsigned int code) {
    lock();
    armed.function = function;
    armed.in = nth;
    armed.again = 0;
    armed.mode = mode;
    armed.code = code;
    if (nth) {
        armed.fired = NULL;
        armed.failures = 0;
    }
    unlock();
}

void fake_fail_again(int64_t nth) {
    lock();
    armed.again = nth;
    unlock();
}

int fake_failures(void) {
    lock();
    int failures = armed.failures;
    unlock();
    return failures;
}

void fake_before(const char *function, void (*run)(void *user), void *user) {
    lock();
    hook.function = function;
    hook.run = run;
    hook.user = user;
    unlock();
}

static void run_hook(const char *function) {
    if (!hook.function || strcmp(hook.function, function) != 0)
        return;
    hook.function = NULL;
    hook.run(hook.user);
}

const char *fake_fired(void) {
    lock();
    const char *fired = armed.fired;
    unlock();
    return fired;
}

bool fault_is_due(const char *function, enum fake_mode *mode, unsigned int *code) {
    if (armed.in == 0 || (armed.function && strcmp(armed.function, function) != 0) ||
        --armed.in > 0)
        return false;
    armed.fired = function;
    armed.failures++;
    *mode = armed.mode;
    armed.in = armed.mode == FAKE_ALWAYS ? 1 : armed.again;
    armed.again = 0;
    *code = armed.code;
    return true;
}

void lose(CUcontext context, CUresult code) {
    if (context && !context->lost)
        context->lost = code;
}

CUcontext current(void) {
    return thread.depth ? thread.contexts[thread.depth - 1] : NULL;
}

static void fail_call(struct call *c, enum fake_mode mode, CUresult code) {
    switch (mode) {
    case FAKE_STICKY:
        lose(current() ? current() : &fake.contexts[0], code);
        c->result = code;
        return;
    case FAKE_LATE:
    case FAKE_TRANSIENT:
        c->passing = mode == FAKE_TRANSIENT;
        if (c->passing && c->need != WORK)
            c->result = code;
        else
            c->later = code;
        return;
    case FAKE_EXIT:
        fake.shut_down = true;
        c->result = CUDA_ERROR_DEINITIALIZED;
        return;
    default:
        c->result = code;
    }
}

static CUresult check_state(const struct call *c) {
    if (c->need == NOTHING)
        return CUDA_SUCCESS;
    if (!fake.initialised || fake.process != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (c->need == INITIALISED)
        return CUDA_SUCCESS;
    return c->context ? c->context->lost : CUDA_ERROR_INVALID_CONTEXT;
}

bool begin(struct call *c, const char *function, enum need need) {
    enum fake_mode mode;
    unsigned int code;
    *c = (struct call){.need = need};
    lock();
    run_hook(function);
    c->context = current();
    count_call(function);
    if (fake.shut_down)
        c->result = CUDA_ERROR_DEINITIALIZED;
    if (!c->result && c->context && c->context->lost_soon)
        lose(c->context, c->context->lost_soon);
    if (!c->result && fault_is_due(function, &mode, &code))
        fail_call(c, mode, (CUresult)code);
    if (!c->result)
        c->result = check_state(c);
    return c->result == CUDA_SUCCESS;
}

CUresult end(struct call *c) {
    CUresult result = c->result;
    if (!result && c->later && c->need != WORK)
        (c->context ? c->context : &fake.contexts[0])->lost_soon = c->later;
    unlock();
    return result;
}

static void fail_blas(struct fake_blas_call *call, enum fake_mode mode, unsigned int code) {
    if (mode != FAKE_LATE)
        call->status = code;
    else if (call->context)
        call->context->lost_soon = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (mode == FAKE_STICKY)
        lose(call->context, (CUresult)fake.settings[FAKE_LOSS]);
    if (mode == FAKE_EXIT)
        fake.shut_down = true;
}

struct fake_blas_call fake_blas(const char *function) {
    struct fake_blas_call call = {0, NULL};
    enum fake_mode mode;
    unsigned int code;
    lock();
    count_call(function);
    call.context = current();
    if (fake.shut_down)
        fake_violation("%s was called after the driver had shut down", function);
    if (fault_is_due(function, &mode, &code))
        fail_blas(&call, mode, code);
    unlock();
    return call;
}

/* --- the driver's life ----------------------------------------------------------------------- */

static void at_exit(void) {
    fake_shut_down();
}

CUresult CUDAAPI cuInit(unsigned int flags) {
    struct call c;
    static bool registered;
    if (begin(&c, __func__, NOTHING))
        c.result = flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)fake.settings[FAKE_INIT];
    if (!c.result && fake.initialised && fake.process != getpid())
        c.result = CUDA_ERROR_NOT_INITIALIZED;
    if (!c.result) {
        fake.initialised = true;
        fake.process = getpid();
        if (!registered)
            (void)atexit(at_exit);
        registered = true;
    }
    return end(&c);
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
    struct call c;
    if (begin(&c, __func__, NOTHING))
        *version = (int)fake.settings[FAKE_VERSION];
    return end(&c);
}

#define NAMED(code)                                                                                \
    case code:                                                                                     \
        return #code

static const char *name_of(CUresult code) {
    switch (code) {
        NAMED(CUDA_SUCCESS);
        NAMED(CUDA_ERROR_INVALID_VALUE);
        NAMED(CUDA_ERROR_OUT_OF_MEMORY);
        NAMED(CUDA_ERROR_NOT_INITIALIZED);
        NAMED(CUDA_ERROR_DEINITIALIZED);
        NAMED(CUDA_ERROR_NO_DEVICE);
        NAMED(CUDA_ERROR_INVALID_DEVICE);
        NAMED(CUDA_ERROR_INVALID_CONTEXT);
        NAMED(CUDA_ERROR_INVALID_HANDLE);
        NAMED(CUDA_ERROR_ILLEGAL_ADDRESS);
        NAMED(CUDA_ERROR_LAUNCH_FAILED);
        NAMED(CUDA_ERROR_NOT_SUPPORTED);
        NAMED(CUDA_ERROR_MPS_CLIENT_TERMINATED);
        NAMED(CUDA_ERROR_EXTERNAL_DEVICE);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        NAMED(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        NAMED(CUDA_ERROR_CAPTURED_EVENT);
        NAMED(CUDA_ERROR_UNKNOWN);
    default:
        return NULL;
    }
}

static CUresult describe(const char *function, CUresult error, const char **out) {
    struct call c;
    if (begin(&c, function, NOTHING)) {
        *out = name_of(error);
        c.result = *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    return end(&c);
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **out) {
    return describe(__func__, error, out);
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **out) {
    return describe(__func__, error, out);
}

/* --- devices and contexts -------------------------------------------------------------------- */

static bool is_device(int device) {
    return device >= 0 && device < fake.settings[FAKE_DEVICES] && device < MAX_DEVICES;
}

CUresult CUDAAPI cuDeviceGetCount(int *count) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        *count = (int)fake.settings[FAKE_DEVICES];
    return end(&c);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        c.result = is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        if (!c.result)
            *device = ordinal;
    }
    return end(&c);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        if (!is_device(device))
            c.result = CUDA_ERROR_INVALID_DEVICE;
        else if (attribute != CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
            c.result = CUDA_ERROR_INVALID_VALUE;
        else
            *value = (int)fake.settings[FAKE_POOLS];
    }
    return end(&c);
}

static void start_context(CUcontext context, int device) {
    static uint64_t last_id;
    context->device = device;
    context->id = ++last_id;
    context->legacy = (struct CUstream_st){.context = context, .blocking = true};
    context->streams = &context->legacy;
}

/* Creating or destroying a context may wait for other contexts. cuda.h does not document which
   captures that invalidates; the fake invalidates all that forbid unsafe calls. */
static CUresult check_unsafe_anywhere(void) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < MAX_CONTEXTS; i++)
        if (check_unsafe(&fake.contexts[i]))
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && !is_device(device))
        c.result = CUDA_ERROR_INVALID_DEVICE;
    if (!c.result && !fake.contexts[device].retained)
        c.result = check_unsafe_anywhere();
    if (!c.result) {
        CUcontext primary = &fake.contexts[device];
        if (primary->retained++ == 0)
            start_context(primary, device);
        fake.live.retained++;
        *context = primary;
    }
    return end(&c);
}

/* They stay when the primary context ends. */
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && !is_device(device))
        c.result = CUDA_ERROR_INVALID_DEVICE;
    if (!c.result)
        fake.contexts[device].flags = flags;
    return end(&c);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && !is_device(device))
        c.result = CUDA_ERROR_INVALID_DEVICE;
    if (!c.result) {
        *flags = fake.contexts[device].flags;
        *active = fake.contexts[device].retained != 0;
    }
    return end(&c);
}

static void unload_kernels(CUcontext context) {
    give_bytes((size_t)context->kernel_count * FAKE_KERNEL_BYTES);
    context->kernel_count = 0;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && !is_device(device))
        c.result = CUDA_ERROR_INVALID_DEVICE;
    if (!c.result && !fake.contexts[device].retained)
        c.result = CUDA_ERROR_INVALID_CONTEXT;
    if (!c.result && fake.contexts[device].retained == 1)
        c.result = check_unsafe_anywhere();
    if (!c.result) {
        CUcontext primary = &fake.contexts[device];
        fake.live.retained--;
        if (--primary->retained == 0) {
            run_all(primary);
            drop_per_thread(primary);
            if (primary->streams != &primary->legacy)
                fake_violation("the primary context of device %d ended before its streams", device);
            unload_kernels(primary);
            primary->lost = primary->lost_soon = CUDA_SUCCESS;
        }
    }
    return end(&c);
}

uint64_t fake_context_id(CUcontext context) {
    lock();
    uint64_t id = context->id;
    unlock();
    return id;
}

/* The driver loads kernels when they are first launched, and may synchronise the context for it:
   the guide of CUDA C++, "Lazy Loading". */
CUresult fake_load_kernel(CUcontext context, const char *function) {
    CUresult result = CUDA_SUCCESS;
    lock();
    int i = 0;
    while (i < context->kernel_count && strcmp(context->kernels[i], function) != 0)
        i++;
    const bool loads = i == context->kernel_count;
    if (loads)
        result = check_unsafe(context);
    if (!result && (i == MAX_KERNELS || (loads && !take_bytes(FAKE_KERNEL_BYTES))))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!result && loads)
        context->kernels[context->kernel_count++] = function;
    unlock();
    return result;
}

void unload_kernel(CUcontext context, const char *function) {
    for (int i = 0; i < context->kernel_count; i++)
        if (context->kernels[i] == function) {
            context->kernels[i] = context->kernels[--context->kernel_count];
            give_bytes(FAKE_KERNEL_BYTES);
        }
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        *id = context->id;
    return end(&c);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        if (!context || thread.depth == MAX_DEPTH)
            c.result = CUDA_ERROR_INVALID_CONTEXT;
        else
            thread.contexts[thread.depth++] = context;
    }
    return end(&c);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        if (thread.depth == 0)
            c.result = CUDA_ERROR_INVALID_CONTEXT;
        else
            *context = thread.contexts[--thread.depth];
    }
    return end(&c);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    struct call c;
    (void)flags;
    int i = MAX_DEVICES;
    if (begin(&c, __func__, INITIALISED)) {
        while (i < MAX_CONTEXTS && fake.contexts[i].retained)
            i++;
        if (!is_device(device) || i == MAX_CONTEXTS || thread.depth == MAX_DEPTH)
            c.result = is_device(device) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE;
    }
    if (!c.result) {
        *context = &fake.contexts[i];
        (*context)->retained = 1;
        start_context(*context, device);
        thread.contexts[thread.depth++] = *context;
    }
    return end(&c);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
    struct call c;
    if (begin(&c, __func__, INITIALISED) && context - fake.contexts < MAX_DEVICES)
        c.result = CUDA_ERROR_INVALID_CONTEXT;
    if (!c.result) {
        if (current() == context)
            thread.depth--;
        run_all(context);
        forget_streams(context);
        unload_kernels(context);
        *context = (struct CUctx_st){0};
    }
    return end(&c);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
    struct call c;
    if (begin(&c, __func__, INITIALISED))
        *context = current();
    return end(&c);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        if (thread.depth)
            thread.depth--;
        if (context)
            thread.contexts[thread.depth++] = context;
    }
    return end(&c);
}

CUresult CUDAAPI cuCtxSynchronize(void) {
    struct call c;
    if (begin(&c, __func__, CONTEXT))
        c.result = check_unsafe(c.context);
    if (!c.result) {
        run_all(c.context);
        trim_pools(c.context->device);
        c.result = c.context->lost;
    }
    return end(&c);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    struct call c;
    if (begin(&c, __func__, INITIALISED)) {
        CUstreamCaptureMode old = thread.mode;
        thread.mode = *mode;
        *mode = old;
    }
    return end(&c);
}

/* Here, since the mode is the thread's. */
static bool forbids(CUstream stream) {
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE || stream->captured_from != stream ||
        thread.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (pthread_equal(stream->capturer, pthread_self()))
        return stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           thread.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
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
