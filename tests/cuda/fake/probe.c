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

/* --- objects of the rows, which remain until the process ends -------------------------------- */

CUstream stream;
static CUstream other, blocking; /* `other` is non-blocking */

static CUstream make_stream(unsigned int flags) {
    CUstream made = NULL;
    (void)CU(cuStreamCreate)(&made, flags);
    return made;
}

static CUevent make_event(void) {
    CUevent event = NULL;
    (void)CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    return event;
}

static CUmemoryPool make_pool(void) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool = NULL;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    (void)CU(cuMemPoolCreate)(&pool, &properties);
    return pool;
}

static CUdeviceptr plain_memory(void) {
    CUdeviceptr ptr = 0;
    (void)CU(cuMemAlloc)(&ptr, BYTES);
    return ptr;
}

static CUdeviceptr managed_memory(void) {
    CUdeviceptr ptr = 0;
    (void)CU(cuMemAllocManaged)(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL);
    return ptr;
}

/* Allocates on the stream, and waits for it. */
static CUdeviceptr memory_of(CUmemoryPool pool, size_t bytes) {
    CUdeviceptr ptr = 0;
    (void)CU(cuMemAllocFromPoolAsync)(&ptr, bytes, pool, stream);
    (void)CU(cuStreamSynchronize)(stream);
    return ptr;
}

static void *pinned_memory(size_t bytes) {
    void *ptr = NULL;
    (void)CU(cuMemHostAlloc)(&ptr, bytes, CU_MEMHOSTALLOC_PORTABLE);
    return ptr;
}

static char up[BYTES], down[BYTES];

static void fresh_bytes(void) {
    static unsigned char next;
    memset(up, ++next, BYTES);
    memset(down, 0, BYTES);
}

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

ROW(alloc_nothing) {
    CUdeviceptr ptr;
    return IS(CU(cuMemAlloc)(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
}

ROW(pool_ready) {
    CUdeviceptr ptr;
    fresh_bytes();
    return OK(CU(cuMemAllocFromPoolAsync)(&ptr, BYTES, make_pool(), stream)) &&
           OK(CU(cuMemcpyHtoDAsync)(ptr, up, BYTES, stream)) &&
           OK(CU(cuMemcpyDtoHAsync)(down, ptr, BYTES, stream)) &&
           OK(CU(cuMemFreeAsync)(ptr, stream)) && OK(CU(cuStreamSynchronize)(stream)) &&
           memcmp(up, down, BYTES) == 0;
}

HOLDS(pool_free_plain, OK(CU(cuMemFree)(memory_of(make_pool(), BYTES))))

ROW(pool_destroyed) {
    CUmemoryPool pool = make_pool();
    const CUdeviceptr ptr = memory_of(pool, BYTES);
    return OK(CU(cuMemPoolDestroy)(pool)) && OK(CU(cuMemFreeAsync)(ptr, NULL)) &&
           OK(CU(cuStreamSynchronize)(NULL));
}

/* Returns whether another device has the expected access to a pool, by default or, if `given`,
   after a call of cuMemPoolSetAccess. */
static bool has_access(bool given, CUmemAccess_flags expected) {
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
    CUdevice second;
    int can = 0;
    if (!OK(CU(cuDeviceGet)(&second, 1)) || !OK(CU(cuDeviceCanAccessPeer)(&can, second, device)) ||
        (given && !can))
        return skip("no second device is a peer");
    CUmemoryPool pool = make_pool();
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = second;
    return (!given || OK(CU(cuMemPoolSetAccess)(pool, &access, 1))) &&
           OK(CU(cuMemPoolGetAccess)(&flags, pool, &access.location)) && flags == expected;
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
    return OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) &&
           memory_of(pool, LARGE) && OK(CU(cuMemFreeAsync)(memory_of(pool, LARGE), stream)) &&
           OK(CU(cuStreamSynchronize)(stream)) && (!trims || OK(CU(cuMemPoolTrimTo)(pool, 0))) &&
           reserved(pool) >= least && reserved(pool) <= most;
}

HOLDS(threshold_counts_used, maps(LARGE, false, 0, 2 * LARGE - 1))
HOLDS(threshold_keeps, maps(UINT64_MAX, false, 2 * LARGE, UINT64_MAX))
HOLDS(pool_trim, maps(UINT64_MAX, true, LARGE, 2 * LARGE - 1))

/* After a successful query of the stream, a trim unmaps freed memory without a wait. */
ROW(pool_trim_seen) {
    CUmemoryPool pool = make_pool();
    uint64_t threshold = UINT64_MAX;
    CUresult seen = CUDA_ERROR_NOT_READY;
    bool right =
        OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)) &&
        OK(CU(cuMemFreeAsync)(memory_of(pool, LARGE), stream));
    while (right && seen == CUDA_ERROR_NOT_READY)
        seen = CU(cuStreamQuery)(stream);
    return right && OK(seen) && OK(CU(cuMemPoolTrimTo)(pool, 0)) && reserved(pool) == 0;
}

/* --- pointers ------------------------------------------------------------------------------- */

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

static bool is_of_pool(CUdeviceptr ptr, CUmemoryPool expected) {
    CUmemoryPool pool = (CUmemoryPool)&pool;
    return get(ptr, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool) && pool == expected;
}

ROW(pool_of) {
    CUmemoryPool pool = make_pool();
    return is_of_pool(memory_of(pool, BYTES), pool) && is_of_pool(plain_memory(), NULL);
}

HOLDS(context_plain, is_of(plain_memory(), primary))
HOLDS(context_pool, is_of(memory_of(make_pool(), BYTES), NULL))
HOLDS(context_managed, is_of(managed_memory(), primary))

static bool has_range(CUdeviceptr ptr) {
    CUdeviceptr start = 0;
    size_t size = 0;
    return has_type(ptr + 7, CU_MEMORYTYPE_DEVICE) &&
           get(ptr + 7, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start) && start == ptr &&
           get(ptr + 7, CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size) && size >= BYTES;
}

HOLDS(range_device, has_range(plain_memory()))
HOLDS(range_pool, has_range(memory_of(make_pool(), BYTES)))

/* Returns three pages of reserved addresses, of which two are mapped; 0 on failure. */
static CUdeviceptr mapped_memory_of(size_t *page) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr ptr = 0;
    access.location.type = prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = prop.location.id = device;
    bool right =
        OK(CU(cuMemGetAllocationGranularity)(page, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) &&
        OK(CU(cuMemAddressReserve)(&ptr, 3 * *page, 0, 0, 0));
    for (size_t i = 0; i < 2 && right; i++) {
        CUmemGenericAllocationHandle handle;
        right = OK(CU(cuMemCreate)(&handle, *page, &prop, 0)) &&
                OK(CU(cuMemMap)(ptr + i * *page, *page, 0, handle, 0)) &&
                OK(CU(cuMemRelease)(handle));
    }
    return right && OK(CU(cuMemSetAccess)(ptr, 2 * *page, &access, 1)) ? ptr : 0;
}

ROW(mapped_memory) {
    size_t page;
    const CUdeviceptr ptr = mapped_memory_of(&page);
    return is_of(ptr, NULL) && is_of_pool(ptr, NULL);
}

ROW(mapped_range) {
    size_t page, size = 0;
    const CUdeviceptr ptr = mapped_memory_of(&page);
    bool right = true;
    for (CUdeviceptr start = 0, at = ptr; at < ptr + 2 * page; at += page)
        right = right && get(at + 7, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, &start) &&
                get(at + 7, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, &size) && start == at &&
                size == page;
    return ptr && right;
}

ROW(unmapped) {
    size_t page;
    const CUdeviceptr ptr = mapped_memory_of(&page);
    return ptr && has_type(ptr + 2 * page, 0);
}

HOLDS(range_host, has_type((CUdeviceptr)(uintptr_t)up, 0))

/* --- streams and events ---------------------------------------------------------------------- */

HOLDS(event_never, OK(CU(cuEventSynchronize)(make_event())))
HOLDS(query_never, OK(CU(cuEventQuery)(make_event())))

/* Delays later work of a stream. */
static void nap(void *user) {
    (void)user;
    (void)usleep(20000);
}

enum order { BY_STREAMS, BY_EVENT, BY_DESTROYED_EVENT, BY_LEGACY_EVENT };

/* Queues a delay and an upload on the stream `first`, and a download on `second`. An event recorded
   on `first` or NULL, or the rules of the legacy default stream, must make the download wait. */
static bool round_trip(CUstream first, CUstream second, enum order order) {
    const CUdeviceptr ptr = plain_memory();
    CUevent between = make_event(), last = make_event();
    void *from = pinned_memory(BYTES);
    fresh_bytes();
    if (!from)
        return false;
    memcpy(from, up, BYTES);
    return OK(CU(cuLaunchHostFunc)(first, nap, NULL)) &&
           OK(CU(cuMemcpyHtoDAsync)(ptr, from, BYTES, first)) &&
           OK(CU(cuEventRecord)(between, order == BY_LEGACY_EVENT ? NULL : first)) &&
           (order == BY_STREAMS || OK(CU(cuStreamWaitEvent)(second, between, 0))) &&
           (order != BY_DESTROYED_EVENT || OK(CU(cuEventDestroy)(between))) &&
           OK(CU(cuMemcpyDtoHAsync)(down, ptr, BYTES, second)) &&
           OK(CU(cuEventRecord)(last, second)) && OK(CU(cuEventSynchronize)(last)) &&
           memcmp(up, down, BYTES) == 0;
}

ROW(query_done) {
    CUevent event = make_event();
    return OK(CU(cuEventRecord)(event, stream)) && OK(CU(cuStreamSynchronize)(stream)) &&
           OK(CU(cuEventQuery)(event));
}

HOLDS(event_pageable, round_trip(stream, stream, BY_STREAMS))
HOLDS(event_other_stream, round_trip(stream, other, BY_EVENT))
HOLDS(event_destroyed, round_trip(stream, other, BY_DESTROYED_EVENT))
HOLDS(legacy_after_blocking, round_trip(blocking, NULL, BY_STREAMS))
HOLDS(blocking_after_legacy, round_trip(NULL, blocking, BY_STREAMS))
HOLDS(legacy_after_per_thread, round_trip(CU_STREAM_PER_THREAD, NULL, BY_STREAMS))
HOLDS(per_thread_after_legacy, round_trip(NULL, CU_STREAM_PER_THREAD, BY_STREAMS))
HOLDS(legacy_event, round_trip(CU_STREAM_PER_THREAD, stream, BY_LEGACY_EVENT))

static bool is_of_primary(CUstream handle) {
    CUcontext context = NULL;
    return OK(CU(cuStreamGetCtx)(handle, &context)) && context == primary;
}

HOLDS(special_context, is_of_primary(CU_STREAM_LEGACY) && is_of_primary(CU_STREAM_PER_THREAD))
HOLDS(stream_context, is_of_primary(blocking))

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

/* --- captures -------------------------------------------------------------------------------- */

static bool is_capturing(CUstream s, CUstreamCaptureStatus expected) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    return OK(CU(cuStreamIsCapturing)(s, &status)) && status == expected;
}

HOLDS(not_capturing, is_capturing(blocking, CU_STREAM_CAPTURE_STATUS_NONE))

static CUstream captured(unsigned int flags) {
    CUstream s = make_stream(flags);
    (void)CU(cuStreamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return s;
}

/* Ends the capture; returns whether it was still valid. */
static bool end_capture(CUstream s) {
    CUgraph graph = NULL;
    return OK(CU(cuStreamEndCapture)(s, &graph));
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

/* Makes the call in the relaxed capture mode. */
static bool in_relaxed_mode(bool (*call)(void)) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool right = OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && call();
    return OK(CU(cuThreadExchangeStreamCaptureMode)(&mode)) && right;
}

static CUevent in_capture;

static bool is_captured_event(void) {
    return IS(CU(cuEventSynchronize)(in_capture), CUDA_ERROR_CAPTURED_EVENT);
}

ROW(record_in_capture) {
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    in_capture = make_event();
    bool right = OK(CU(cuEventRecord)(in_capture, s)) && in_relaxed_mode(is_captured_event);
    (void)end_capture(s);
    return right;
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
    bool right = in_relaxed_mode(call);
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
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event();
    bool right =
        OK(CU(cuEventRecord)(event, blocking)) && OK(CU(cuStreamWaitEvent)(blocking, event, 0));
    return end_capture(s) && right;
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

/* Returns the result of the search for the function. */
static CUresult load_into(CUmodule *module, CUfunction *function, const char *name) {
    const CUresult result =
        CU(cuModuleLoadData)(module, ".version 6.0\n.target sm_50\n.address_size 64\n" ENTRY);
    return result ? result : CU(cuModuleGetFunction)(function, *module, name);
}

static CUresult load(CUfunction *function, const char *name) {
    CUmodule module;
    return load_into(&module, function, name);
}

ROW(module_ptx) {
    CUmodule module;
    CUfunction function;
    return OK(load_into(&module, &function, "move")) && OK(CU(cuModuleUnload)(module));
}

ROW(module_wrong) {
    CUmodule module;
    return IS(CU(cuModuleLoadData)(&module, ENTRY), CUDA_ERROR_INVALID_PTX);
}

HOLDS(module_relaxed, is_relaxed(module_ptx))

ROW(function_none) {
    CUfunction function;
    return IS(load(&function, "none"), CUDA_ERROR_NOT_FOUND);
}

/* Launches the kernel, which copies a double from the start to the middle of a block of memory. */
static bool launch(unsigned int blocks, CUresult expected) {
    CUfunction move;
    const CUdeviceptr ptr = plain_memory();
    CUdeviceptr from = ptr, to = ptr + BYTES / 2;
    void *parameters[] = {&from, &to};
    fresh_bytes();
    up[0] ^= 0x55;
    if (!OK(load(&move, "move")) || !OK(CU(cuMemcpyHtoDAsync)(ptr, up, BYTES, stream)))
        return false;
    bool right =
        IS(CU(cuLaunchKernel)(move, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), expected);
    from = to = 0;
    return right && OK(CU(cuMemcpyDtoHAsync)(down, ptr + BYTES / 2, sizeof(double), stream)) &&
           OK(CU(cuStreamSynchronize)(stream)) &&
           (memcmp(up, down, sizeof(double)) == 0) == (expected == CUDA_SUCCESS);
}

HOLDS(launch_order, launch(1, CUDA_SUCCESS))
HOLDS(launch_nothing, launch(0, CUDA_ERROR_INVALID_VALUE))

static CUfunction moving;
static CUdeviceptr moved;

static bool move_in_place(void) {
    void *parameters[] = {&moved, &moved};
    return OK(CU(cuLaunchKernel)(moving, 1, 1, 1, 1, 1, 1, 0, blocking, parameters, NULL));
}

static bool may_move(void) {
    moved = plain_memory();
    return OK(load(&moving, "move"));
}

ROW(launch_beside_capture) {
    if (!may_move() || !move_in_place())
        return false;
    CUstream s = captured(CU_STREAM_NON_BLOCKING);
    bool right = move_in_place();
    return end_capture(s) && right && OK(CU(cuStreamSynchronize)(blocking));
}

ROW(launch_relaxed) {
    return may_move() && is_relaxed(move_in_place) && OK(CU(cuStreamSynchronize)(blocking));
}

/* --- page-locked memory ---------------------------------------------------------------------- */

ROW(pinned_aligned) {
    bool right = true;
    for (size_t bytes = 1; bytes <= BYTES; bytes = bytes * 3 + 1) {
        void *ptr = pinned_memory(bytes);
        right &= ptr && (uintptr_t)ptr % 64 == 0 && OK(CU(cuMemFreeHost)(ptr));
    }
    return right;
}

ROW(pinned_inside) {
    const CUdeviceptr ptr = plain_memory();
    char *block = pinned_memory(2 * BYTES), *from = block + 64, *to = from + BYTES / 2;
    if (!block)
        return false;
    memset(block, 0x5A, 2 * BYTES);
    memset(from, 0x11, 640);
    return OK(CU(cuMemcpyHtoDAsync)(ptr, from, 640, stream)) &&
           OK(CU(cuMemcpyDtoHAsync)(to, ptr, 640, stream)) && OK(CU(cuStreamSynchronize)(stream)) &&
           memcmp(from, to, 640) == 0 && to[640] == 0x5A;
}

ROW(pinned_type) {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    return get((CUdeviceptr)(uintptr_t)pinned_memory(BYTES) + 64, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
               &type) &&
           type != CU_MEMORYTYPE_DEVICE;
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
           OK(CU(cuDevicePrimaryCtxRetain)(&primary, device)) &&
           OK(CU(cuCtxPushCurrent)(primary)) && (stream = make_stream(CU_STREAM_NON_BLOCKING)) &&
           (other = make_stream(CU_STREAM_NON_BLOCKING)) &&
           (blocking = make_stream(CU_STREAM_DEFAULT));
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
