/* Tests each row of contract.tsv on libcuda.so.1: the fake driver or NVIDIA's driver. Also fails if
   a row has no test, or a test has no row. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)100000)
#define LARGE ((size_t)64 << 20)

static struct row {
    const char *id;
    bool (*holds)(void);
    bool listed;
    struct row *next;
} * rows;

/* Defines the test of the row `id`, which is correct if the expression is true. The primary context
   is current, the capture mode is global, and no stream is captured. */
#define HOLDS(id, expression)                                                                      \
    static bool id(void) {                                                                         \
        return expression;                                                                         \
    }                                                                                              \
    __attribute__((constructor)) static void add_##id(void) {                                      \
        static struct row row = {#id, id, false, NULL};                                            \
        row.next = rows;                                                                           \
        rows = &row;                                                                               \
    }

static void *driver;

static void (*look_up(const char *name))(void) {
    void (*function)(void) = NULL;
    void *symbol = dlsym(driver, name);
    if (!symbol) {
        fprintf(stderr, "probe: the library lacks %s\n", name);
        exit(2);
    }
    memcpy(&function, &symbol, sizeof function);
    return function;
}

#define STRING(name)  STRING_(name)
#define STRING_(name) #name
/* Calls a function by the name that cuda.h defines for the function, such as cuMemAlloc_v2. */
#define CALL(name, ...) (((__typeof__(&(name)))look_up(STRING(name)))(__VA_ARGS__))
#define OK(name, ...)   (CALL(name, __VA_ARGS__) == CUDA_SUCCESS)

static CUcontext primary, context;
static CUdevice device;
static CUstream stream, blocking, captured;
static CUevent event;
static CUdeviceptr ptr;
static void *host;

static bool exits_with_0(pid_t child) {
    int how = -1;
    return child > 0 && waitpid(child, &how, 0) == child && how == 0;
}

static bool init_in_child(void) {
    const pid_t child = fork();
    if (child == 0)
        _exit(CALL(cuInit, 0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    return exits_with_0(child);
}

HOLDS(init_after_fork, init_in_child())

static CUmemoryPool make_pool(uint64_t threshold) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool = NULL;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    (void)CALL(cuMemPoolCreate, &pool, &properties);
    (void)CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    return pool;
}

static CUdeviceptr memory_of(CUmemoryPool pool) {
    CUdeviceptr made = 0;
    (void)CALL(cuMemAllocFromPoolAsync, &made, LARGE, pool, stream);
    (void)CALL(cuStreamSynchronize, stream);
    return made;
}

static bool outlives(CUmemoryPool pool) {
    ptr = memory_of(pool);
    return OK(cuMemPoolDestroy, pool) && OK(cuMemFreeAsync, ptr, stream) &&
           OK(cuStreamSynchronize, stream);
}

HOLDS(pool_free_plain, OK(cuMemFree, memory_of(make_pool(0))))
HOLDS(pool_destroyed, outlives(make_pool(0)))

static uint64_t reserved(CUmemoryPool pool) {
    uint64_t bytes = 0;
    (void)CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

/* Returns whether `waited` blocks are mapped after a wait, and `trimmed` after a trim. */
static bool maps(CUmemoryPool pool, uint64_t waited, uint64_t trimmed) {
    return memory_of(pool) && OK(cuMemFreeAsync, memory_of(pool), stream) &&
           OK(cuStreamSynchronize, stream) && reserved(pool) / LARGE == waited &&
           OK(cuMemPoolTrimTo, pool, 0) && reserved(pool) / LARGE == trimmed;
}

static bool trims_after_query(CUmemoryPool pool) {
    CUresult seen = CUDA_ERROR_NOT_READY;
    const bool freed = OK(cuMemFreeAsync, memory_of(pool), stream);
    while (freed && seen == CUDA_ERROR_NOT_READY)
        seen = CALL(cuStreamQuery, stream);
    return freed && !seen && OK(cuMemPoolTrimTo, pool, 0) && reserved(pool) == 0;
}

HOLDS(threshold_counts_used, maps(make_pool(LARGE), 1, 1))
HOLDS(threshold_keeps, maps(make_pool(UINT64_MAX), 2, 1))
HOLDS(pool_trim_seen, trims_after_query(make_pool(UINT64_MAX)))

static CUstream make_stream(unsigned int flags) {
    CUstream made = NULL;
    (void)CALL(cuStreamCreate, &made, flags);
    return made;
}

static bool captures(unsigned int flags) {
    captured = make_stream(flags);
    return OK(cuStreamBeginCapture, captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static bool end_capture(void) {
    CUgraph graph = NULL;
    CUstream ended = captured;
    captured = NULL;
    return OK(cuStreamEndCapture, ended, &graph);
}

static bool is_relaxed(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return OK(cuThreadExchangeStreamCaptureMode, &mode);
}

#define BESIDE(expression)  (captures(CU_STREAM_NON_BLOCKING) && (expression))
#define RELAXED(expression) (BESIDE(is_relaxed() && (expression)) && end_capture())
#define FORBIDDEN(name, ...)                                                                       \
    (BESIDE(CALL(name, __VA_ARGS__) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) && !end_capture())

HOLDS(legacy_while_capturing, captures(CU_STREAM_DEFAULT) &&
                                  CALL(cuStreamIsCapturing, NULL,
                                       &(CUstreamCaptureStatus){CU_STREAM_CAPTURE_STATUS_NONE}) ==
                                      CUDA_ERROR_STREAM_CAPTURE_IMPLICIT &&
                                  end_capture())
HOLDS(sync_in_capture, FORBIDDEN(cuStreamSynchronize, captured))
HOLDS(alloc_in_capture, FORBIDDEN(cuMemAlloc, &ptr, BYTES))
HOLDS(alloc_relaxed, RELAXED(OK(cuMemAlloc, &ptr, BYTES) && OK(cuMemFree, ptr)))
HOLDS(pinned_relaxed, RELAXED(OK(cuMemHostAlloc, &host, BYTES, CU_MEMHOSTALLOC_PORTABLE) &&
                              OK(cuMemFreeHost, host)))

/* The primary context of the last device probably does not exist yet. */
static bool retain_and_release(void) {
    int count = 0;
    return OK(cuDeviceGetCount, &count) && OK(cuDevicePrimaryCtxRetain, &context, count - 1) &&
           OK(cuDevicePrimaryCtxRelease, count - 1);
}

HOLDS(retain_relaxed, RELAXED(retain_and_release()))
HOLDS(events_beside_capture,
      BESIDE(OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) &&
             OK(cuEventRecord, event, blocking) && OK(cuStreamWaitEvent, blocking, event, 0)) &&
          end_capture())

HOLDS(record_in_capture, BESIDE(OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) &&
                                OK(cuEventRecord, event, captured) && is_relaxed() &&
                                CALL(cuEventSynchronize, event) == CUDA_ERROR_CAPTURED_EVENT))

static CUfunction kernel;

static bool load(void) {
    CUmodule module;
    return OK(cuMemAlloc, &ptr, BYTES) &&
           OK(cuModuleLoadData, &module,
              ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry move(\n"
              "    .param .u64 x)\n{\n    .reg .f64 %d<1>;\n    .reg .b64 %l<1>;\n"
              "    ld.param.u64 %l0, [x];\n    cvta.to.global.u64 %l0, %l0;\n"
              "    ld.global.f64 %d0, [%l0];\n    st.global.f64 [%l0], %d0;\n    ret;\n}\n") &&
           OK(cuModuleGetFunction, &kernel, module, "move");
}

static bool launch(void) {
    void *parameters[] = {&ptr};
    return OK(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, blocking, parameters, NULL);
}

HOLDS(module_wrong,
      CALL(cuModuleLoadData, &(CUmodule){NULL}, ".entry move(){}") == CUDA_ERROR_INVALID_PTX)
HOLDS(module_relaxed, RELAXED(load()))
HOLDS(launch_relaxed, load() && RELAXED(launch()))
HOLDS(launch_beside_capture, load() && launch() && BESIDE(launch()) && end_capture())

static int failed;

static void begin_row(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (captured)
        (void)end_capture();
    (void)CALL(cuThreadExchangeStreamCaptureMode, &mode);
}

static void check_row(const char *line) {
    const size_t length = strcspn(line, "\t");
    struct row *row = rows;
    while (row && (strlen(row->id) != length || strncmp(row->id, line, length) != 0))
        row = row->next;
    if (!row) {
        failed += printf("a row without a test: %s", line) > 0;
        return;
    }
    row->listed = true;
    begin_row();
    if (!row->holds())
        failed += printf("differs: %s", line) > 0;
}

static bool open_driver(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        fprintf(stderr, "probe: %s\n", dlerror());
    return driver && OK(cuInit, 0) && OK(cuDeviceGet, &device, 0) &&
           OK(cuDevicePrimaryCtxRetain, &primary, device) && OK(cuCtxPushCurrent, primary) &&
           (stream = make_stream(CU_STREAM_NON_BLOCKING)) &&
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
    for (; fgets(line, sizeof line, table); count++)
        check_row(line);
    (void)fclose(table);
    for (const struct row *row = rows; row; row = row->next)
        if (!row->listed)
            failed += printf("%s has no row in contract.tsv\n", row->id) > 0;
    printf("%d rows, %d failed\n", count, failed);
    return failed != 0;
}
