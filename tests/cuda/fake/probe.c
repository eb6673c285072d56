/* Runs the rows of contract.tsv on whatever libcuda.so.1 is found: the fake one,
   or a real driver on a real device. A row whose result differs fails; one
   without code here, or code without a row, too. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES         ((size_t)100000)
#define STRING(name)  STRING_(name)
#define STRING_(name) #name
/* The function by the name that cuda.h gives its prototype. */
#define CU(name) ((__typeof__(&(name)))look_up(STRING(name)))

static void *library;

static void (*look_up(const char *name))(void) {
    void (*function)(void) = NULL;
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "probe: the driver lacks %s\n", name);
        exit(2);
    }
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static CUcontext primary;
static CUdevice device;
static CUresult early; /* what cuThreadExchangeStreamCaptureMode said before cuInit */

/* A row is right when its function returns true. */
#define IS(call, code) ((call) == (code))
#define OK(call)       IS(call, CUDA_SUCCESS)

/* --- contexts -------------------------------------------------------------------------------- */

static bool no_context(void) {
    CUdeviceptr ptr;
    CUcontext old;
    bool right = OK(CU(cuCtxPopCurrent)(&old));
    right &= IS(CU(cuMemAlloc)(&ptr, 100), CUDA_ERROR_INVALID_CONTEXT);
    return right & OK(CU(cuCtxPushCurrent)(primary));
}

static bool pop_empty(void) {
    CUcontext old;
    bool right = OK(CU(cuCtxPopCurrent)(&old));
    right &= IS(CU(cuCtxPopCurrent)(&old), CUDA_ERROR_INVALID_CONTEXT);
    return right & OK(CU(cuCtxPushCurrent)(primary));
}

static bool push_pop(void) {
    CUcontext now = NULL, popped = NULL;
    return OK(CU(cuCtxPushCurrent)(primary)) && OK(CU(cuCtxPopCurrent)(&popped)) &&
           popped == primary && OK(CU(cuCtxGetCurrent)(&now)) && now == primary;
}

static bool retain_twice(void) {
    CUcontext again = NULL;
    return OK(CU(cuDevicePrimaryCtxRetain)(&again, device)) && again == primary &&
           OK(CU(cuDevicePrimaryCtxRelease)(device));
}

static bool primary_flags(void) {
    unsigned int before, now;
    int active;
    return OK(CU(cuDevicePrimaryCtxGetState)(device, &before, &active)) && active &&
           OK(CU(cuDevicePrimaryCtxSetFlags)(device, CU_CTX_SCHED_BLOCKING_SYNC)) &&
           OK(CU(cuDevicePrimaryCtxGetState)(device, &now, &active)) &&
           (now & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC &&
           OK(CU(cuDevicePrimaryCtxSetFlags)(device, before));
}

static bool device_past_end(void) {
    int count = 0;
    CUdevice none;
    return OK(CU(cuDeviceGetCount)(&count)) &&
           IS(CU(cuDeviceGet)(&none, count), CUDA_ERROR_INVALID_DEVICE);
}

/* Another library may have initialised CUDA before the fork. */
static bool init_after_fork(void) {
    int how = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(IS(CU(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED) ? 0 : 1);
    return child > 0 && waitpid(child, &how, 0) == child && how == 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

static CUmemoryPool make_pool(void) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool = NULL;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    (void)CU(cuMemPoolCreate)(&pool, &properties);
    return pool;
}

static CUstream make_stream(unsigned int flags) {
    CUstream stream = NULL;
    (void)CU(cuStreamCreate)(&stream, flags);
    return stream;
}

static char up[BYTES], down[BYTES];

static void fresh_bytes(void) {
    static unsigned char next;
    memset(up, ++next, BYTES);
    memset(down, 0, BYTES);
}

static bool alloc_nothing(void) {
    CUdeviceptr ptr;
    return IS(CU(cuMemAlloc)(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
}

static bool pool_ready(void) {
    CUmemoryPool pool = make_pool();
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ptr;
    fresh_bytes();
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, s)) &&
           OK(CU(cuMemcpyHtoDAsync)(ptr, up, BYTES, s)) &&
           OK(CU(cuMemcpyDtoHAsync)(down, ptr, BYTES, s)) && OK(CU(cuMemFreeAsync)(ptr, s)) &&
           OK(CU(cuStreamSynchronize)(s)) && memcmp(up, down, BYTES) == 0 &&
           OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuStreamDestroy)(s));
}

static bool pool_free_plain(void) {
    CUmemoryPool pool = make_pool();
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, s)) &&
           OK(CU(cuStreamSynchronize)(s)) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuStreamDestroy)(s));
}

static bool pool_destroyed(void) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuMemFreeAsync)(ptr, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL));
}

/* --- what a pool keeps ----------------------------------------------------------------------- */

#define LARGE ((size_t)64 << 20)

static uint64_t reserved(CUmemoryPool pool) {
    uint64_t bytes = 0;
    (void)CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

/* One block stays in use, another one is freed. */
static bool half_freed(CUmemoryPool *pool, CUdeviceptr *used, uint64_t threshold) {
    CUdeviceptr freed;
    *pool = make_pool();
    return OK(CU(cuMemPoolSetAttribute)(*pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) &&
           OK(CU(cuMemAllocFromPoolAsync)(used, LARGE, *pool, NULL)) &&
           OK(CU(cuMemAllocFromPoolAsync)(&freed, LARGE, *pool, NULL)) &&
           OK(CU(cuMemFreeAsync)(freed, NULL)) && OK(CU(cuStreamSynchronize)(NULL));
}

static bool give_back(CUmemoryPool pool, CUdeviceptr used) {
    return OK(CU(cuMemFree)(used)) && OK(CU(cuMemPoolDestroy)(pool));
}

static bool threshold_counts_used(void) {
    CUmemoryPool pool;
    CUdeviceptr used;
    bool right = half_freed(&pool, &used, LARGE) && reserved(pool) < 2 * LARGE;
    return give_back(pool, used) && right;
}

static bool threshold_keeps(void) {
    CUmemoryPool pool;
    CUdeviceptr used;
    bool right = half_freed(&pool, &used, UINT64_MAX) && reserved(pool) >= 2 * LARGE;
    return give_back(pool, used) && right;
}

static bool pool_trim(void) {
    CUmemoryPool pool;
    CUdeviceptr used;
    bool right = half_freed(&pool, &used, UINT64_MAX) && OK(CU(cuMemPoolTrimTo)(pool, 0)) &&
                 reserved(pool) >= LARGE && reserved(pool) < 2 * LARGE;
    return give_back(pool, used) && right;
}

/* No wait: it is enough to have seen that the stream is done. */
static bool pool_trim_seen(void) {
    CUmemoryPool pool = make_pool();
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ptr;
    uint64_t threshold = UINT64_MAX;
    CUresult seen = CUDA_ERROR_NOT_READY;
    bool right =
        OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) &&
        OK(CU(cuMemAllocFromPoolAsync)(&ptr, LARGE, pool, s)) && OK(CU(cuMemFreeAsync)(ptr, s));
    while (right && seen == CUDA_ERROR_NOT_READY)
        seen = CU(cuStreamQuery)(s);
    right = right && OK(seen) && OK(CU(cuMemPoolTrimTo)(pool, 0)) && reserved(pool) == 0;
    return OK(CU(cuStreamDestroy)(s)) && OK(CU(cuMemPoolDestroy)(pool)) && right;
}

/* --- pointers ------------------------------------------------------------------------------- */

static bool is_of(CUdeviceptr ptr, CUcontext expected) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    CUcontext context = (CUcontext)which;
    CUmemorytype type = 0;
    void *values[] = {&context, &type};
    return OK(CU(cuPointerGetAttributes)(2, which, values, ptr)) && context == expected &&
           type == CU_MEMORYTYPE_DEVICE;
}

static bool context_plain(void) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAlloc)(&ptr, BYTES)) && is_of(ptr, primary) && OK(CU(cuMemFree)(ptr));
}

static bool context_pool(void) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL)) && is_of(ptr, NULL) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool));
}

static bool has_ipc(CUdeviceptr ptr, int expected) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    int capable = 77;
    void *values[] = {&capable};
    return OK(CU(cuPointerGetAttributes)(1, which, values, ptr)) && capable == expected;
}

static bool ipc_plain(void) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAlloc)(&ptr, BYTES)) && has_ipc(ptr, 1) && OK(CU(cuMemFree)(ptr));
}

static bool ipc_pool(void) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL)) && has_ipc(ptr, 0) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool));
}

static bool context_managed(void) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocManaged)(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL)) && is_of(ptr, primary) &&
           OK(CU(cuMemFree)(ptr));
}

static CUresult describe(CUdeviceptr ptr, CUmemorytype *type, CUdeviceptr *start, size_t *size) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {type, start, size};
    return CU(cuPointerGetAttributes)(3, which, values, ptr);
}

static bool is_range(CUdeviceptr ptr) {
    CUmemorytype type = 0;
    CUdeviceptr start = 0;
    size_t size = 0;
    return OK(describe(ptr + 7, &type, &start, &size)) && type == CU_MEMORYTYPE_DEVICE &&
           start == ptr && size >= BYTES;
}

static bool range_device(void) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAlloc)(&ptr, BYTES)) && is_range(ptr) && OK(CU(cuMemFree)(ptr));
}

static bool range_pool(void) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL)) && is_range(ptr) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool));
}

static bool range_host(void) {
    CUmemorytype type = 0;
    CUdeviceptr start = 0;
    size_t size = 0;
    return OK(describe((CUdeviceptr)(uintptr_t)up, &type, &start, &size)) && type == 0;
}

/* --- streams and events ---------------------------------------------------------------------- */

static CUevent make_event(void) {
    CUevent event = NULL;
    (void)CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    return event;
}

static bool event_never(void) {
    CUevent event = make_event();
    return OK(CU(cuEventSynchronize)(event)) && OK(CU(cuEventDestroy)(event));
}

/* Up on one stream, down on another; ordered by an event or by the legacy default stream. */
static bool round_trip(CUstream first, CUstream second, bool by_event, bool destroyed_early) {
    CUdeviceptr ptr;
    CUevent between = make_event(), last = make_event();
    fresh_bytes();
    bool right = OK(CU(cuMemAlloc)(&ptr, BYTES)) &&
                 OK(CU(cuMemcpyHtoDAsync)(ptr, up, BYTES, first)) &&
                 OK(CU(cuEventRecord)(between, first));
    if (by_event)
        right = right && OK(CU(cuStreamWaitEvent)(second, between, 0));
    if (destroyed_early)
        right = right && OK(CU(cuEventDestroy)(between));
    right = right && OK(CU(cuMemcpyDtoHAsync)(down, ptr, BYTES, second)) &&
            OK(CU(cuEventRecord)(last, second)) && OK(CU(cuEventSynchronize)(last)) &&
            memcmp(up, down, BYTES) == 0;
    if (!destroyed_early)
        right = right && OK(CU(cuEventDestroy)(between));
    return right && OK(CU(cuEventDestroy)(last)) && OK(CU(cuMemFree)(ptr));
}

static bool on_streams(unsigned int flags, bool two, bool null_first, bool null_second,
                       bool by_event, bool early) {
    CUstream a = make_stream(flags), b = two ? make_stream(flags) : a;
    return round_trip(null_first ? NULL : a, null_second ? NULL : b, by_event, early) &&
           OK(CU(cuStreamDestroy)(a)) && (!two || OK(CU(cuStreamDestroy)(b)));
}

static bool query_never(void) {
    CUevent event;
    bool right = OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    right &= OK(CU(cuEventQuery)(event));
    return right & OK(CU(cuEventDestroy)(event));
}

static bool query_done(void) {
    CUevent event;
    CUstream stream;
    bool right = OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    right &= OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    right &= OK(CU(cuEventRecord)(event, stream)) & OK(CU(cuStreamSynchronize)(stream));
    right &= OK(CU(cuEventQuery)(event));
    return right & OK(CU(cuStreamDestroy)(stream)) & OK(CU(cuEventDestroy)(event));
}

static bool event_pageable(void) {
    return on_streams(CU_STREAM_NON_BLOCKING, false, false, false, false, false);
}

static bool event_other_stream(void) {
    return on_streams(CU_STREAM_NON_BLOCKING, true, false, false, true, false);
}

static bool event_destroyed(void) {
    return on_streams(CU_STREAM_NON_BLOCKING, true, false, false, true, true);
}

static bool legacy_after_blocking(void) {
    return on_streams(CU_STREAM_DEFAULT, false, false, true, false, false);
}

static bool blocking_after_legacy(void) {
    return on_streams(CU_STREAM_DEFAULT, false, true, false, false, false);
}

static bool legacy_after_per_thread(void) {
    return round_trip(CU_STREAM_PER_THREAD, NULL, false, false);
}

static bool per_thread_after_legacy(void) {
    return round_trip(NULL, CU_STREAM_PER_THREAD, false, false);
}

static bool special_context(void) {
    CUcontext legacy = NULL, per_thread = NULL;
    return OK(CU(cuStreamGetCtx)(CU_STREAM_LEGACY, &legacy)) && legacy == primary &&
           OK(CU(cuStreamGetCtx)(CU_STREAM_PER_THREAD, &per_thread)) && per_thread == primary;
}

static bool stream_context(void) {
    CUstream s = make_stream(CU_STREAM_DEFAULT);
    CUcontext context = NULL;
    return OK(CU(cuStreamGetCtx)(s, &context)) && context == primary && OK(CU(cuStreamDestroy)(s));
}

/* --- captures -------------------------------------------------------------------------------- */

static bool is_capturing(CUstream s, CUstreamCaptureStatus expected) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    return OK(CU(cuStreamIsCapturing)(s, &status)) && status == expected;
}

static bool not_capturing(void) {
    CUstream s = make_stream(CU_STREAM_DEFAULT);
    return is_capturing(s, CU_STREAM_CAPTURE_STATUS_NONE) && OK(CU(cuStreamDestroy)(s));
}

static CUstream captured(unsigned int flags) {
    CUstream s = make_stream(flags);
    (void)CU(cuStreamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return s;
}

/* Whether the capture had gone on. */
static bool end_capture(CUstream s) {
    CUgraph graph = NULL;
    bool valid = OK(CU(cuStreamEndCapture)(s, &graph));
    if (graph)
        (void)CU(cuGraphDestroy)(graph);
    (void)CU(cuStreamDestroy)(s);
    return valid;
}

static bool capturing(void) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = is_capturing(s, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    return end_capture(s) && right;
}

static bool legacy_while_capturing(void) {
    CUstream s = captured(CU_STREAM_DEFAULT);
    CUstreamCaptureStatus status;
    bool right = IS(CU(cuStreamIsCapturing)(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return end_capture(s) && right;
}

static bool record_in_capture(void) {
    CUevent event = make_event();
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = OK(CU(cuEventRecord)(event, s));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
    right = right && IS(CU(cuEventSynchronize)(event), CUDA_ERROR_CAPTURED_EVENT);
    (void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
    (void)end_capture(s);
    return right && OK(CU(cuEventDestroy)(event));
}

static bool sync_in_capture(void) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = IS(CU(cuStreamSynchronize)(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return !end_capture(s) && right;
}

static bool alloc_in_capture(void) {
    CUdeviceptr ptr;
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = IS(CU(cuMemAlloc)(&ptr, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return !end_capture(s) && right;
}

/* While the thread captures, but in its relaxed mode. */
static bool is_relaxed(bool (*call)(void)) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool right = OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && call() &&
                 OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
    return end_capture(s) && right;
}

static bool alloc_and_free(void) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAlloc)(&ptr, BYTES)) && OK(CU(cuMemFree)(ptr));
}

static bool alloc_relaxed(void) {
    return is_relaxed(alloc_and_free);
}

/* On the last device, whose context may not be there yet. */
static bool retain_and_release(void) {
    CUcontext context;
    int count = 0;
    return OK(CU(cuDeviceGetCount)(&count)) &&
           OK(CU(cuDevicePrimaryCtxRetain)(&context, count - 1)) &&
           OK(CU(cuDevicePrimaryCtxRelease)(count - 1));
}

static bool retain_relaxed(void) {
    return is_relaxed(retain_and_release);
}

static bool exchange_early(void) {
    return IS(early, CUDA_ERROR_NOT_INITIALIZED);
}

static bool exchange_mode(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool right =
        OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return right && OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) &&
           mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

static bool events_beside_capture(void) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING), other = make_stream(CU_STREAM_DEFAULT);
    CUevent event = make_event();
    bool right = OK(CU(cuEventRecord)(event, other)) && OK(CU(cuStreamWaitEvent)(other, event, 0));
    right = end_capture(s) && right;
    return OK(CU(cuStreamDestroy)(other)) && OK(CU(cuEventDestroy)(event)) && right;
}

/* --- kernels --------------------------------------------------------------------------------- */

#define ENTRY                                                                                      \
    ".visible .entry move(\n"                                                                      \
    "    .param .u64 x, .param .u64 y)\n"                                                          \
    "{\n"                                                                                          \
    "    .reg .f64 %d<1>;\n"                                                                       \
    "    .reg .b64 %l<2>;\n"                                                                       \
    "    ld.param.u64 %l0, [x];\n"                                                                 \
    "    ld.param.u64 %l1, [y];\n"                                                                 \
    "    cvta.to.global.u64 %l0, %l0;\n"                                                           \
    "    cvta.to.global.u64 %l1, %l1;\n"                                                           \
    "    ld.global.f64 %d0, [%l0];\n"                                                              \
    "    st.global.f64 [%l1], %d0;\n"                                                              \
    "    ret;\n"                                                                                   \
    "}\n"
static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n" ENTRY;

static bool module_ptx(void) {
    CUmodule module;
    CUfunction function;
    return OK(CU(cuModuleLoadData)(&module, ptx)) &&
           OK(CU(cuModuleGetFunction)(&function, module, "move")) && OK(CU(cuModuleUnload)(module));
}

static bool module_wrong(void) {
    CUmodule module;
    return IS(CU(cuModuleLoadData)(&module, ENTRY), CUDA_ERROR_INVALID_PTX);
}

static bool module_relaxed(void) {
    return is_relaxed(module_ptx);
}

static bool function_none(void) {
    CUmodule module;
    CUfunction function;
    return OK(CU(cuModuleLoadData)(&module, ptx)) &&
           IS(CU(cuModuleGetFunction)(&function, module, "none"), CUDA_ERROR_NOT_FOUND) &&
           OK(CU(cuModuleUnload)(module));
}

/* The kernel, and memory that it works on. */
static bool load(CUmodule *module, CUfunction *move, CUdeviceptr *ptr) {
    return OK(CU(cuModuleLoadData)(module, ptx)) &&
           OK(CU(cuModuleGetFunction)(move, *module, "move")) && OK(CU(cuMemAlloc)(ptr, BYTES));
}

static bool unload(CUmodule module, CUdeviceptr ptr) {
    return OK(CU(cuMemFree)(ptr)) && OK(CU(cuModuleUnload)(module));
}

/* One double moves from the start of some memory to its middle. */
static bool launch(unsigned int blocks, bool spoils_parameters, CUresult expected, CUstream s) {
    CUmodule module;
    CUfunction move;
    CUdeviceptr ptr, from, to;
    void *parameters[] = {&from, &to};
    fresh_bytes();
    up[0] ^= 0x55;
    if (!load(&module, &move, &ptr) || !OK(CU(cuMemcpyHtoDAsync)(ptr, up, BYTES, s)))
        return false;
    from = ptr;
    to = ptr + BYTES / 2;
    bool right =
        IS(CU(cuLaunchKernel)(move, blocks, 1, 1, 1, 1, 1, 0, s, parameters, NULL), expected);
    if (spoils_parameters)
        from = to = 0;
    right = right && OK(CU(cuMemcpyDtoHAsync)(down, ptr + BYTES / 2, sizeof(double), s)) &&
            OK(CU(cuStreamSynchronize)(s)) &&
            (memcmp(up, down, sizeof(double)) == 0) == (expected == CUDA_SUCCESS);
    return unload(module, ptr) && right;
}

static bool launch_on_stream(unsigned int blocks, bool spoils_parameters, CUresult expected) {
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    return launch(blocks, spoils_parameters, expected, s) && OK(CU(cuStreamDestroy)(s));
}

static bool launch_order(void) {
    return launch_on_stream(1, false, CUDA_SUCCESS);
}

static bool launch_parameters(void) {
    return launch_on_stream(1, true, CUDA_SUCCESS);
}

static bool launch_nothing(void) {
    return launch_on_stream(0, false, CUDA_ERROR_INVALID_VALUE);
}

/* On another stream, by a thread that captures: again, or for the first time in its relaxed mode.
 */
static bool launch_while_capturing(bool first) {
    CUmodule module;
    CUfunction move;
    CUdeviceptr ptr;
    void *parameters[] = {&ptr, &ptr};
    CUstream other = make_stream(CU_STREAM_DEFAULT);
    if (!load(&module, &move, &ptr))
        return false;
    bool right =
        first || OK(CU(cuLaunchKernel)(move, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL));
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    CUstreamCaptureMode mode =
        first ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;
    right = OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) &&
            OK(CU(cuLaunchKernel)(move, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL)) &&
            OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && right;
    right = end_capture(s) && right;
    return OK(CU(cuStreamSynchronize)(other)) && OK(CU(cuStreamDestroy)(other)) &&
           unload(module, ptr) && right;
}

static bool launch_beside_capture(void) {
    return launch_while_capturing(false);
}

static bool launch_relaxed(void) {
    return launch_while_capturing(true);
}

/* --- page-locked memory ---------------------------------------------------------------------- */

static bool pinned_aligned(void) {
    bool right = true;
    for (size_t bytes = 1; bytes <= BYTES; bytes = bytes * 3 + 1) {
        void *ptr;
        right &= OK(CU(cuMemHostAlloc)(&ptr, bytes, CU_MEMHOSTALLOC_PORTABLE)) &&
                 (uintptr_t)ptr % 64 == 0 && OK(CU(cuMemFreeHost)(ptr));
    }
    return right;
}

static bool pinned_inside(void) {
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr device_bytes;
    void *ptr;
    if (!OK(CU(cuMemHostAlloc)(&ptr, 2 * BYTES, CU_MEMHOSTALLOC_PORTABLE)) ||
        !OK(CU(cuMemAlloc)(&device_bytes, BYTES)))
        return false;
    char *from = (char *)ptr + 64, *to = from + BYTES / 2;
    memset(ptr, 0x5A, 2 * BYTES);
    memset(from, 0x11, 640);
    bool right = OK(CU(cuMemcpyHtoDAsync)(device_bytes, from, 640, s)) &&
                 OK(CU(cuMemcpyDtoHAsync)(to, device_bytes, 640, s)) &&
                 OK(CU(cuStreamSynchronize)(s)) && memcmp(from, to, 640) == 0 && to[640] == 0x5A;
    return OK(CU(cuMemFreeHost)(ptr)) && OK(CU(cuMemFree)(device_bytes)) &&
           OK(CU(cuStreamDestroy)(s)) && right;
}

static bool pinned_type(void) {
    CUmemorytype type = 0;
    CUdeviceptr start;
    size_t size;
    void *ptr;
    return OK(CU(cuMemHostAlloc)(&ptr, BYTES, CU_MEMHOSTALLOC_PORTABLE)) &&
           OK(describe((CUdeviceptr)(uintptr_t)ptr + 64, &type, &start, &size)) &&
           type != CU_MEMORYTYPE_DEVICE && OK(CU(cuMemFreeHost)(ptr));
}

static bool pinned_relaxed(void) {
    return is_relaxed(pinned_aligned);
}

/* --- the rows -------------------------------------------------------------------------------- */

static struct row {
    const char *id;
    bool (*holds)(void);
    bool listed;
} rows[] = {
#define ROW(id)                                                                                    \
    { #id, id, false }
    ROW(no_context),
    ROW(pop_empty),
    ROW(push_pop),
    ROW(retain_twice),
    ROW(primary_flags),
    ROW(device_past_end),
    ROW(init_after_fork),
    ROW(alloc_nothing),
    ROW(pool_ready),
    ROW(pool_free_plain),
    ROW(pool_destroyed),
    ROW(threshold_counts_used),
    ROW(threshold_keeps),
    ROW(pool_trim),
    ROW(pool_trim_seen),
    ROW(context_plain),
    ROW(context_pool),
    ROW(context_managed),
    ROW(ipc_plain),
    ROW(ipc_pool),
    ROW(range_device),
    ROW(range_pool),
    ROW(range_host),
    ROW(event_never),
    ROW(query_never),
    ROW(query_done),
    ROW(event_pageable),
    ROW(event_other_stream),
    ROW(event_destroyed),
    ROW(legacy_after_blocking),
    ROW(blocking_after_legacy),
    ROW(legacy_after_per_thread),
    ROW(per_thread_after_legacy),
    ROW(special_context),
    ROW(stream_context),
    ROW(not_capturing),
    ROW(capturing),
    ROW(legacy_while_capturing),
    ROW(record_in_capture),
    ROW(sync_in_capture),
    ROW(alloc_in_capture),
    ROW(alloc_relaxed),
    ROW(retain_relaxed),
    ROW(exchange_early),
    ROW(exchange_mode),
    ROW(events_beside_capture),
    ROW(module_ptx),
    ROW(module_wrong),
    ROW(module_relaxed),
    ROW(function_none),
    ROW(launch_order),
    ROW(launch_parameters),
    ROW(launch_nothing),
    ROW(launch_beside_capture),
    ROW(launch_relaxed),
    ROW(pinned_aligned),
    ROW(pinned_inside),
    ROW(pinned_type),
    ROW(pinned_relaxed),
};

enum { ROWS = sizeof rows / sizeof rows[0] };
static int observed, headers, assumed, failed;

static void count_source(const char *source) {
    if (strncmp(source, "observed", 8) == 0)
        observed++;
    else if (strncmp(source, "cuda.h", 6) == 0)
        headers++;
    else if (strcmp(source, "assumed") == 0)
        assumed++;
    else
        failed += printf("a source of an unknown kind: %s\n", source) > 0;
}

static void check_row(char *line) {
    char *fields[5] = {NULL};
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *f = strtok(line, "\t"); f && count < 5; f = strtok(NULL, "\t"))
        fields[count++] = f;
    if (count != 5) {
        failed += printf("a row has not five fields: %s\n", line) > 0;
        return;
    }
    count_source(fields[4]);
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].id, fields[0]) != 0)
            continue;
        rows[i].listed = true;
        if (!rows[i].holds())
            failed += printf("differs: %s: %s, %s: not %s (%s)\n", fields[0], fields[1], fields[2],
                             fields[3], fields[4]) > 0;
        return;
    }
    failed += printf("nothing runs the row %s\n", fields[0]) > 0;
}

static bool open_driver(void) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        fprintf(stderr, "probe: %s\n", dlerror());
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (library)
        early = CU(cuThreadExchangeStreamCaptureMode)(&mode);
    return library && OK(CU(cuInit)(0)) && OK(CU(cuDeviceGet)(&device, 0)) &&
           OK(CU(cuDevicePrimaryCtxRetain)(&primary, device)) && OK(CU(cuCtxPushCurrent)(primary));
}

int main(int argc, char **argv) {
    char line[1024];
    FILE *table = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!table || !fgets(line, sizeof line, table) || !open_driver()) {
        fprintf(stderr, "usage: probe contract.tsv, where there is a driver and a device\n");
        return 2;
    }
    while (fgets(line, sizeof line, table))
        check_row(line);
    (void)fclose(table);
    for (int i = 0; i < ROWS; i++)
        if (!rows[i].listed)
            failed += printf("%s has no row\n", rows[i].id) > 0;
    printf("%d rows: %d observed, %d by a header, %d assumed; %d failed\n",
           observed + headers + assumed, observed, headers, assumed, failed);
    return failed != 0;
}
