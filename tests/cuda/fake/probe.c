/* Tests the rows of contract.tsv on libcuda.so.1 and libnccl.so.2, which are the fakes or, on a
   machine with a device, NVIDIA's libraries. Fails if a result differs from its row, if a row has
   no test (here or in probe_nccl.c), or if a test has no row. */
#include "probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)100000)

void *driver, *nccl;
static struct row *rows;

void add_row(struct row *row) {
    row->next = rows;
    rows = row;
}

void (*look_up(void *library, const char *name))(void) {
    void (*function)(void) = NULL;
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "probe: the library lacks %s\n", name);
        exit(2);
    }
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static const char *running; /* the id of the row that is tested */

/* Reports that the row is skipped, because this machine cannot test it. */
static bool skip(const char *why) {
    printf("skipped: %s: %s\n", why, running);
    return true;
}

static CUcontext primary;
static CUdevice device;
static CUresult early; /* the result of cuThreadExchangeStreamCaptureMode before cuInit */

/* --- contexts -------------------------------------------------------------------------------- */

ROW(no_context) {
    CUdeviceptr ptr;
    CUcontext old;
    bool right = OK(CU(cuCtxPopCurrent)(&old));
    right &= IS(CU(cuMemAlloc)(&ptr, 100), CUDA_ERROR_INVALID_CONTEXT);
    return right & OK(CU(cuCtxPushCurrent)(primary));
}

ROW(pop_empty) {
    CUcontext old;
    bool right = OK(CU(cuCtxPopCurrent)(&old));
    right &= IS(CU(cuCtxPopCurrent)(&old), CUDA_ERROR_INVALID_CONTEXT);
    return right & OK(CU(cuCtxPushCurrent)(primary));
}

ROW(push_pop) {
    CUcontext now = NULL, popped = NULL;
    return OK(CU(cuCtxPushCurrent)(primary)) && OK(CU(cuCtxPopCurrent)(&popped)) &&
           popped == primary && OK(CU(cuCtxGetCurrent)(&now)) && now == primary;
}

ROW(retain_twice) {
    CUcontext again = NULL;
    return OK(CU(cuDevicePrimaryCtxRetain)(&again, device)) && again == primary &&
           OK(CU(cuDevicePrimaryCtxRelease)(device));
}

ROW(primary_flags) {
    unsigned int before, now;
    int active;
    return OK(CU(cuDevicePrimaryCtxGetState)(device, &before, &active)) && active &&
           OK(CU(cuDevicePrimaryCtxSetFlags)(device, CU_CTX_SCHED_BLOCKING_SYNC)) &&
           OK(CU(cuDevicePrimaryCtxGetState)(device, &now, &active)) &&
           (now & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC &&
           OK(CU(cuDevicePrimaryCtxSetFlags)(device, before));
}

ROW(device_past_end) {
    int count = 0;
    CUdevice none;
    return OK(CU(cuDeviceGetCount)(&count)) &&
           IS(CU(cuDeviceGet)(&none, count), CUDA_ERROR_INVALID_DEVICE);
}

/* The parent process has initialised CUDA, possibly in another library. */
ROW(init_after_fork) {
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

ROW(alloc_nothing) {
    CUdeviceptr ptr;
    return IS(CU(cuMemAlloc)(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
}

ROW(pool_ready) {
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

ROW(pool_free_plain) {
    CUmemoryPool pool = make_pool();
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, s)) &&
           OK(CU(cuStreamSynchronize)(s)) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuStreamDestroy)(s));
}

ROW(pool_destroyed) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuMemFreeAsync)(ptr, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL));
}

/* Returns whether another device has the expected access to a pool, by default or, if `given`,
   after a call of cuMemPoolSetAccess. */
static bool has_access(bool given, CUmemAccess_flags expected) {
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
    CUdevice other;
    int can = 0;
    if (!OK(CU(cuDeviceGet)(&other, 1)) || !OK(CU(cuDeviceCanAccessPeer)(&can, other, device)) ||
        (given && !can))
        return skip("no second device is a peer");
    CUmemoryPool pool = make_pool();
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = other;
    bool right = (!given || OK(CU(cuMemPoolSetAccess)(pool, &access, 1))) &&
                 OK(CU(cuMemPoolGetAccess)(&flags, pool, &access.location)) && flags == expected;
    return OK(CU(cuMemPoolDestroy)(pool)) && right;
}

HOLDS(pool_private, has_access(false, CU_MEM_ACCESS_FLAGS_PROT_NONE))
HOLDS(pool_shared, has_access(true, CU_MEM_ACCESS_FLAGS_PROT_READWRITE))

/* --- what a pool keeps ----------------------------------------------------------------------- */

#define LARGE ((size_t)64 << 20)

static uint64_t reserved(CUmemoryPool pool) {
    uint64_t bytes = 0;
    (void)CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

/* Uses one block of a pool, frees another block, and trims the pool if `trims`. Returns whether
   afterwards at least `least` and at most `most` bytes of the pool are mapped. */
static bool maps(uint64_t threshold, bool trims, uint64_t least, uint64_t most) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr used = 0, freed;
    bool right =
        OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) &&
        OK(CU(cuMemAllocFromPoolAsync)(&used, LARGE, pool, NULL)) &&
        OK(CU(cuMemAllocFromPoolAsync)(&freed, LARGE, pool, NULL)) &&
        OK(CU(cuMemFreeAsync)(freed, NULL)) && OK(CU(cuStreamSynchronize)(NULL)) &&
        (!trims || OK(CU(cuMemPoolTrimTo)(pool, 0))) && reserved(pool) >= least &&
        reserved(pool) <= most;
    return OK(CU(cuMemFree)(used)) && OK(CU(cuMemPoolDestroy)(pool)) && right;
}

HOLDS(threshold_counts_used, maps(LARGE, false, 0, 2 * LARGE - 1))
HOLDS(threshold_keeps, maps(UINT64_MAX, false, 2 * LARGE, UINT64_MAX))
HOLDS(pool_trim, maps(UINT64_MAX, true, LARGE, 2 * LARGE - 1))

/* After a successful query of the stream, a trim unmaps freed memory without a wait. */
ROW(pool_trim_seen) {
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

static bool in_plain(bool (*check)(CUdeviceptr ptr)) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAlloc)(&ptr, BYTES)) && check(ptr) && OK(CU(cuMemFree)(ptr));
}

static bool in_managed(bool (*check)(CUdeviceptr ptr)) {
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocManaged)(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL)) && check(ptr) &&
           OK(CU(cuMemFree)(ptr));
}

static bool in_pool(bool (*check)(CUdeviceptr ptr)) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL)) && check(ptr) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemPoolDestroy)(pool));
}

static bool get(CUdeviceptr ptr, CUpointer_attribute which, void *out) {
    return OK(CU(cuPointerGetAttributes)(1, &which, &out, ptr));
}

static bool has_type(CUdeviceptr ptr, unsigned int expected) {
    CUmemorytype type = (CUmemorytype)77;
    return get(ptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type) && type == expected;
}

static bool is_of(CUdeviceptr ptr, CUcontext expected) {
    CUcontext context = (CUcontext)&context;
    return get(ptr, CU_POINTER_ATTRIBUTE_CONTEXT, &context) && context == expected &&
           has_type(ptr, CU_MEMORYTYPE_DEVICE);
}

static bool is_of_primary(CUdeviceptr ptr) {
    return is_of(ptr, primary);
}

static bool is_of_none(CUdeviceptr ptr) {
    return is_of(ptr, NULL);
}

static bool is_of_pool(CUdeviceptr ptr, CUmemoryPool expected) {
    CUmemoryPool pool = (CUmemoryPool)&pool;
    return get(ptr, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool) && pool == expected;
}

static bool has_no_pool(CUdeviceptr ptr) {
    return is_of_pool(ptr, NULL);
}

ROW(pool_of) {
    CUmemoryPool pool = make_pool();
    CUdeviceptr ptr;
    bool right = OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, pool, NULL)) &&
                 OK(CU(cuStreamSynchronize)(NULL)) && is_of_pool(ptr, pool);
    return right && OK(CU(cuMemFree)(ptr)) && OK(CU(cuMemPoolDestroy)(pool)) &&
           in_plain(has_no_pool);
}

HOLDS(context_plain, in_plain(is_of_primary))
HOLDS(context_pool, in_pool(is_of_none))
HOLDS(context_managed, in_managed(is_of_primary))

static bool has_range(CUdeviceptr ptr) {
    CUdeviceptr start = 0;
    size_t size = 0;
    return has_type(ptr + 7, CU_MEMORYTYPE_DEVICE) &&
           get(ptr + 7, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start) && start == ptr &&
           get(ptr + 7, CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size) && size >= BYTES;
}

HOLDS(range_device, in_plain(has_range))
HOLDS(range_pool, in_pool(has_range))

/* Three pages of reserved addresses, of which two are mapped. */
struct mapped {
    CUdeviceptr ptr;
    size_t page;
};

static bool map(struct mapped *mapped) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location.type = prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = prop.location.id = device;
    bool right = OK(CU(cuMemGetAllocationGranularity)(&mapped->page, &prop,
                                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) &&
                 OK(CU(cuMemAddressReserve)(&mapped->ptr, 3 * mapped->page, 0, 0, 0));
    for (size_t i = 0; i < 2 && right; i++) {
        CUmemGenericAllocationHandle handle;
        right = OK(CU(cuMemCreate)(&handle, mapped->page, &prop, 0)) &&
                OK(CU(cuMemMap)(mapped->ptr + i * mapped->page, mapped->page, 0, handle, 0)) &&
                OK(CU(cuMemRelease)(handle));
    }
    return right && OK(CU(cuMemSetAccess)(mapped->ptr, 2 * mapped->page, &access, 1));
}

static bool in_mapped(bool (*check)(const struct mapped *mapped)) {
    struct mapped mapped;
    return map(&mapped) && check(&mapped) && OK(CU(cuMemUnmap)(mapped.ptr, 2 * mapped.page)) &&
           OK(CU(cuMemAddressFree)(mapped.ptr, 3 * mapped.page));
}

static bool has_no_owner(const struct mapped *mapped) {
    return is_of_none(mapped->ptr) && has_no_pool(mapped->ptr);
}

static bool has_mappings(const struct mapped *mapped) {
    bool right = true;
    for (size_t i = 0; i < 2; i++) {
        CUdeviceptr start = 0, expected = mapped->ptr + i * mapped->page;
        size_t size = 0;
        right = right && get(expected + 7, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, &start) &&
                get(expected + 7, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, &size) && start == expected &&
                size == mapped->page;
    }
    return right;
}

static bool ends(const struct mapped *mapped) {
    return has_type(mapped->ptr + 2 * mapped->page, 0);
}

HOLDS(mapped_memory, in_mapped(has_no_owner))
HOLDS(mapped_range, in_mapped(has_mappings))
HOLDS(unmapped, in_mapped(ends))
HOLDS(range_host, has_type((CUdeviceptr)(uintptr_t)up, 0))

/* --- streams and events ---------------------------------------------------------------------- */

static CUevent make_event(void) {
    CUevent event = NULL;
    (void)CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    return event;
}

static bool on_new_event(CUresult(CUDAAPI *call)(CUevent event)) {
    CUevent event = make_event();
    return OK(call(event)) && OK(CU(cuEventDestroy)(event));
}

HOLDS(event_never, on_new_event(CU(cuEventSynchronize)))
HOLDS(query_never, on_new_event(CU(cuEventQuery)))

/* Delays later work of a stream. */
static void nap(void *user) {
    (void)user;
    (void)usleep(20000);
}

/* Queues a delay and an upload on the stream `first`, and a download on `second`. An event recorded
   on `recorded`, or the rules of the legacy default stream, must make the download wait. */
static bool round_trip(CUstream first, CUstream recorded, CUstream second, bool by_event,
                       bool destroyed_early) {
    CUdeviceptr ptr;
    CUevent between = make_event(), last = make_event();
    void *from;
    fresh_bytes();
    if (!OK(CU(cuMemHostAlloc)(&from, BYTES, CU_MEMHOSTALLOC_PORTABLE)))
        return false;
    memcpy(from, up, BYTES);
    bool right = OK(CU(cuMemAlloc)(&ptr, BYTES)) && OK(CU(cuLaunchHostFunc)(first, nap, NULL)) &&
                 OK(CU(cuMemcpyHtoDAsync)(ptr, from, BYTES, first)) &&
                 OK(CU(cuEventRecord)(between, recorded));
    if (by_event)
        right = right && OK(CU(cuStreamWaitEvent)(second, between, 0));
    if (destroyed_early)
        right = right && OK(CU(cuEventDestroy)(between));
    right = right && OK(CU(cuMemcpyDtoHAsync)(down, ptr, BYTES, second)) &&
            OK(CU(cuEventRecord)(last, second)) && OK(CU(cuEventSynchronize)(last)) &&
            memcmp(up, down, BYTES) == 0;
    if (!destroyed_early)
        right = right && OK(CU(cuEventDestroy)(between));
    return right && OK(CU(cuEventDestroy)(last)) && OK(CU(cuMemFree)(ptr)) &&
           OK(CU(cuMemFreeHost)(from));
}

static bool on_streams(unsigned int flags, bool two, bool null_first, bool null_second,
                       bool by_event, bool early) {
    CUstream a = make_stream(flags), b = two ? make_stream(flags) : a;
    const CUstream first = null_first ? NULL : a;
    return round_trip(first, first, null_second ? NULL : b, by_event, early) &&
           OK(CU(cuStreamDestroy)(a)) && (!two || OK(CU(cuStreamDestroy)(b)));
}

ROW(query_done) {
    CUevent event = make_event();
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    return OK(CU(cuEventRecord)(event, stream)) && OK(CU(cuStreamSynchronize)(stream)) &&
           OK(CU(cuEventQuery)(event)) && OK(CU(cuStreamDestroy)(stream)) &&
           OK(CU(cuEventDestroy)(event));
}

HOLDS(event_pageable, on_streams(CU_STREAM_NON_BLOCKING, false, false, false, false, false))
HOLDS(event_other_stream, on_streams(CU_STREAM_NON_BLOCKING, true, false, false, true, false))
HOLDS(event_destroyed, on_streams(CU_STREAM_NON_BLOCKING, true, false, false, true, true))
HOLDS(legacy_after_blocking, on_streams(CU_STREAM_DEFAULT, false, false, true, false, false))
HOLDS(blocking_after_legacy, on_streams(CU_STREAM_DEFAULT, false, true, false, false, false))
HOLDS(legacy_after_per_thread,
      round_trip(CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD, NULL, false, false))
HOLDS(per_thread_after_legacy, round_trip(NULL, NULL, CU_STREAM_PER_THREAD, false, false))

ROW(legacy_event) {
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    return round_trip(CU_STREAM_PER_THREAD, NULL, s, true, false) && OK(CU(cuStreamDestroy)(s));
}

ROW(special_context) {
    CUcontext legacy = NULL, per_thread = NULL;
    return OK(CU(cuStreamGetCtx)(CU_STREAM_LEGACY, &legacy)) && legacy == primary &&
           OK(CU(cuStreamGetCtx)(CU_STREAM_PER_THREAD, &per_thread)) && per_thread == primary;
}

ROW(stream_context) {
    CUstream s = make_stream(CU_STREAM_DEFAULT);
    CUcontext context = NULL;
    return OK(CU(cuStreamGetCtx)(s, &context)) && context == primary && OK(CU(cuStreamDestroy)(s));
}

/* --- captures -------------------------------------------------------------------------------- */

static bool is_capturing(CUstream s, CUstreamCaptureStatus expected) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    return OK(CU(cuStreamIsCapturing)(s, &status)) && status == expected;
}

/* Skips the row on drivers for CUDA before 12.4, which have no green contexts. */
ROW(green_context) {
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream s;
    CUcontext context = primary;
    if (!dlsym(driver, "cuGreenCtxStreamCreate"))
        return skip("the driver has no green contexts");
    if (!OK(CU(cuDeviceGetDevResource)(device, &resource, CU_DEV_RESOURCE_TYPE_SM)) ||
        !OK(CU(cuDevResourceGenerateDesc)(&description, &resource, 1)) ||
        !OK(CU(cuGreenCtxCreate)(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM)) ||
        !OK(CU(cuGreenCtxStreamCreate)(&s, green, CU_STREAM_NON_BLOCKING, 0)))
        return false;
    const CUresult result = CU(cuStreamGetCtx)(s, &context);
    return (IS(result, CUDA_ERROR_NOT_SUPPORTED) || (OK(result) && context != primary)) &&
           OK(CU(cuStreamDestroy)(s)) && OK(CU(cuGreenCtxDestroy)(green));
}

ROW(not_capturing) {
    CUstream s = make_stream(CU_STREAM_DEFAULT);
    return is_capturing(s, CU_STREAM_CAPTURE_STATUS_NONE) && OK(CU(cuStreamDestroy)(s));
}

static CUstream captured(unsigned int flags) {
    CUstream s = make_stream(flags);
    (void)CU(cuStreamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return s;
}

/* Ends the capture; returns whether it was still valid. */
static bool end_capture(CUstream s) {
    CUgraph graph = NULL;
    bool valid = OK(CU(cuStreamEndCapture)(s, &graph));
    if (graph)
        (void)CU(cuGraphDestroy)(graph);
    (void)CU(cuStreamDestroy)(s);
    return valid;
}

ROW(capturing) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = is_capturing(s, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    return end_capture(s) && right;
}

ROW(legacy_while_capturing) {
    CUstream s = captured(CU_STREAM_DEFAULT);
    CUstreamCaptureStatus status;
    bool right = IS(CU(cuStreamIsCapturing)(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return end_capture(s) && right;
}

ROW(record_in_capture) {
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

ROW(sync_in_capture) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = IS(CU(cuStreamSynchronize)(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return !end_capture(s) && right;
}

ROW(alloc_in_capture) {
    CUdeviceptr ptr;
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = IS(CU(cuMemAlloc)(&ptr, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return !end_capture(s) && right;
}

/* Makes the call in the relaxed capture mode while this thread captures a stream. */
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

HOLDS(alloc_relaxed, is_relaxed(alloc_and_free))

/* Uses the last device, so that the call probably creates the device's primary context. */
static bool retain_and_release(void) {
    CUcontext context;
    int count = 0;
    return OK(CU(cuDeviceGetCount)(&count)) &&
           OK(CU(cuDevicePrimaryCtxRetain)(&context, count - 1)) &&
           OK(CU(cuDevicePrimaryCtxRelease)(count - 1));
}

HOLDS(retain_relaxed, is_relaxed(retain_and_release))
HOLDS(exchange_early, IS(early, CUDA_ERROR_NOT_INITIALIZED))

ROW(exchange_mode) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool right =
        OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return right && OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) &&
           mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

ROW(events_beside_capture) {
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

ROW(module_ptx) {
    CUmodule module;
    CUfunction function;
    return OK(CU(cuModuleLoadData)(&module, ptx)) &&
           OK(CU(cuModuleGetFunction)(&function, module, "move")) && OK(CU(cuModuleUnload)(module));
}

ROW(module_wrong) {
    CUmodule module;
    return IS(CU(cuModuleLoadData)(&module, ENTRY), CUDA_ERROR_INVALID_PTX);
}

HOLDS(module_relaxed, is_relaxed(module_ptx))

ROW(function_none) {
    CUmodule module;
    CUfunction function;
    return OK(CU(cuModuleLoadData)(&module, ptx)) &&
           IS(CU(cuModuleGetFunction)(&function, module, "none"), CUDA_ERROR_NOT_FOUND) &&
           OK(CU(cuModuleUnload)(module));
}

/* Loads the kernel and allocates memory for it. */
static bool load(CUmodule *module, CUfunction *move, CUdeviceptr *ptr) {
    return OK(CU(cuModuleLoadData)(module, ptx)) &&
           OK(CU(cuModuleGetFunction)(move, *module, "move")) && OK(CU(cuMemAlloc)(ptr, BYTES));
}

static bool unload(CUmodule module, CUdeviceptr ptr) {
    return OK(CU(cuMemFree)(ptr)) && OK(CU(cuModuleUnload)(module));
}

/* Launches the kernel, which copies a double from the start to the middle of a block of memory. */
static bool launch(unsigned int blocks, CUresult expected) {
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
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
    from = to = 0;
    right = right && OK(CU(cuMemcpyDtoHAsync)(down, ptr + BYTES / 2, sizeof(double), s)) &&
            OK(CU(cuStreamSynchronize)(s)) &&
            (memcmp(up, down, sizeof(double)) == 0) == (expected == CUDA_SUCCESS);
    return unload(module, ptr) && OK(CU(cuStreamDestroy)(s)) && right;
}

HOLDS(launch_order, launch(1, CUDA_SUCCESS))
HOLDS(launch_nothing, launch(0, CUDA_ERROR_INVALID_VALUE))

/* Launches a kernel while this thread captures another stream. If `first`, the kernel has not run
   before and the thread is in the relaxed mode; otherwise the kernel has run before. */
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

HOLDS(launch_beside_capture, launch_while_capturing(false))
HOLDS(launch_relaxed, launch_while_capturing(true))

/* --- page-locked memory ---------------------------------------------------------------------- */

ROW(pinned_aligned) {
    bool right = true;
    for (size_t bytes = 1; bytes <= BYTES; bytes = bytes * 3 + 1) {
        void *ptr;
        right &= OK(CU(cuMemHostAlloc)(&ptr, bytes, CU_MEMHOSTALLOC_PORTABLE)) &&
                 (uintptr_t)ptr % 64 == 0 && OK(CU(cuMemFreeHost)(ptr));
    }
    return right;
}

ROW(pinned_inside) {
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

ROW(pinned_type) {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    void *ptr;
    return OK(CU(cuMemHostAlloc)(&ptr, BYTES, CU_MEMHOSTALLOC_PORTABLE)) &&
           get((CUdeviceptr)(uintptr_t)ptr + 64, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type) &&
           type != CU_MEMORYTYPE_DEVICE && OK(CU(cuMemFreeHost)(ptr));
}

HOLDS(pinned_relaxed, is_relaxed(pinned_aligned))

/* --- the table ------------------------------------------------------------------------------- */

static int failed;

static void check_row(char *line) {
    char *fields[5] = {NULL};
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *f = strtok(line, "\t"); f && count < 5; f = strtok(NULL, "\t"))
        fields[count++] = f;
    struct row *row = rows;
    while (count == 5 && row && strcmp(row->id, fields[0]) != 0)
        row = row->next;
    if (count != 5 || !row) {
        failed += printf("fewer than five fields, or an id without a test: %s\n", line) > 0;
        return;
    }
    row->listed = true;
    running = row->id;
    if (strncmp(fields[1], "nccl", 4) == 0 && !nccl)
        printf("skipped: there is no NCCL: %s\n", row->id);
    else if (!row->holds())
        failed += printf("differs: %s: %s, %s: not %s (%s)\n", fields[0], fields[1], fields[2],
                         fields[3], fields[4]) > 0;
}

static bool open_driver(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        fprintf(stderr, "probe: %s\n", dlerror());
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (driver)
        early = CU(cuThreadExchangeStreamCaptureMode)(&mode);
    return driver && OK(CU(cuInit)(0)) && OK(CU(cuDeviceGet)(&device, 0)) &&
           OK(CU(cuDevicePrimaryCtxRetain)(&primary, device)) && OK(CU(cuCtxPushCurrent)(primary));
}

int main(int argc, char **argv) {
    char line[1024];
    int count = 0;
    FILE *table = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!table || !fgets(line, sizeof line, table) || !open_driver()) {
        fprintf(stderr, "usage: probe contract.tsv (needs a driver and a device)\n");
        return 2;
    }
    nccl = dlopen("libnccl.so.2", RTLD_NOW);
    for (; fgets(line, sizeof line, table); count++)
        check_row(line);
    (void)fclose(table);
    for (const struct row *row = rows; row; row = row->next)
        if (!row->listed)
            failed += printf("%s has no row in contract.tsv\n", row->id) > 0;
    printf("%d rows, %d failed\n", count, failed);
    return failed != 0;
}
