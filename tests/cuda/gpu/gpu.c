#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct driver driver;
sb__cu_context primary;
static sb_context *running;

/* Retains the primary context until the process ends, because its creation is slow. */
static void keep_primary_context(void) {
    sb__cu_device device;
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuDevicePrimaryCtxRetain(&primary, device));
}

#define ENTRY(symbol)                             {#symbol, offsetof(struct driver, symbol)},
#define ENTRY_OF_OURS(result, symbol, parameters) ENTRY(symbol)

static void open_driver(void) {
    static const struct {
        const char *symbol;
        size_t member;
    } entries[] = {SB__CUDA_FUNCTIONS(ENTRY_OF_OURS) APPLICATION_FUNCTIONS(ENTRY)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(library, entries[i].symbol);
        memcpy((char *)&driver + entries[i].member, &address, sizeof address);
    }
    driver.is_fake = dlsym(library, "fake_live") != NULL;
}

static int begin(void) {
    const sb_context_options options = CONTEXT_OPTIONS(.device = "cuda:0");
    sb_context *context;
    char name[128] = "NO GPU (a fake driver)";
    int version = 0;
    sb_status st = sb_context_create(&options, &context, &err);
    if (st != SB_OK) {
        printf("%s: %s\n", st == SB_ERR_NO_DEVICE ? "skipped" : "no context", err.message);
        return st == SB_ERR_NO_DEVICE ? GPU_SKIPPED : 1;
    }
    sb_context_release(context);
    open_driver();
    keep_primary_context();
    cu_ok(cuDriverGetVersion(&version));
    if (!driver.is_fake)
        cu_ok(cuDeviceGetName(name, sizeof name, 0));
    printf("on %s, driver for CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
    (void)fflush(stdout); /* otherwise forked children would print the text again */
    return 0;
}

__attribute__((weak)) int gpu_main(int argc, char **argv) {
    return run_all_tests();
}

int main(int argc, char **argv) {
    const int missing = begin();
    return missing ? missing : gpu_main(argc, argv);
}

void stage_open_options(struct stage *stage, sb_context_options options) {
    rig_open_options(&stage->rig, options);
    stage->context = running = stage->rig.context;
    stage->stream = stream_make(CU_STREAM_NON_BLOCKING);
}

void stage_open(struct stage *stage) {
    stage_open_options(stage, CONTEXT_OPTIONS(.device = "cuda:0"));
}

void stage_close(struct stage *stage) {
    sb__cu_context current = NULL;
    rig_close(&stage->rig);
    cu_ok(cuCtxGetCurrent(&current));
    assert_null(current);
}

int device_count(void) {
    int count = 0;
    cu_ok(cuDeviceGetCount(&count));
    return count;
}

void enter(void) {
    cu_ok(cuCtxPushCurrent_v2(primary));
}

void leave(void) {
    sb__cu_context old;
    cu_ok(cuCtxPopCurrent_v2(&old));
}

static void end_stream(void *thing) {
    stream_wait(thing);
    assert_ok(sb_context_forget_stream(running, thing, &err));
    cu_ok(cuStreamDestroy_v2(thing));
}

sb_stream stream_make(unsigned int flags) {
    sb__cu_stream stream = NULL;
    primary_ok(cuStreamCreate(&stream, flags));
    test_own(stream, end_stream);
    return (sb_stream)stream;
}

void stream_wait(sb_stream stream) {
    primary_ok(cuStreamSynchronize((sb__cu_stream)stream));
}

static sb__cu_ptr address(const void *ptr) {
    return (sb__cu_ptr)(uintptr_t)ptr;
}

static void end_device(void *ptr) {
    primary_ok(cuMemFree_v2(address(ptr)));
}

void *device_own(sb__cu_ptr ptr) {
    test_own_loan((void *)(uintptr_t)ptr, end_device);
    return (void *)(uintptr_t)ptr;
}

void *device_make(size_t bytes) {
    sb__cu_ptr ptr = 0;
    primary_ok(cuMemAlloc_v2(&ptr, bytes));
    return device_own(ptr);
}

static void nap(void *user) {
    (void)nanosleep(&(struct timespec){0, 5000000}, NULL);
}

void queue_pause(sb_stream stream) {
    if (!driver.is_fake)
        primary_ok(cuLaunchHostFunc((sb__cu_stream)stream, nap, NULL));
}

void queue_fill(sb_stream stream, void *ptr, int value, size_t bytes) {
    primary_ok(cuMemsetD8Async(address(ptr), (unsigned char)value, bytes, (sb__cu_stream)stream));
}

void queue_copy(sb_stream stream, void *dst, const void *src, size_t bytes) {
    primary_ok(cuMemcpyDtoDAsync_v2(address(dst), address(src), bytes, (sb__cu_stream)stream));
}

void device_write(void *dst, const void *src, size_t bytes) {
    enter();
    cu_ok(cuMemcpyHtoDAsync_v2(address(dst), src, bytes, NULL));
    cu_ok(cuStreamSynchronize(NULL));
    leave();
}

bool device_holds(const void *ptr, size_t bytes, int value) {
    void *seen = malloc(bytes);
    assert_non_null(seen);
    enter();
    cu_ok(cuMemcpyDtoHAsync_v2(seen, address(ptr), bytes, NULL));
    cu_ok(cuStreamSynchronize(NULL));
    leave();
    bool same = bytes_are(seen, bytes, value);
    free(seen);
    return same;
}

void host_fill(sb_mem *mem, int value) {
    memset(mem_pointer(mem, OVERWRITE_CPU), value, sb_mem_size(mem));
}

sb_mem *mem_on_device(sb_context *context, size_t bytes, int value) {
    sb_mem *mem = test_mem(context, bytes);
    queue_fill(NULL, mem_pointer(mem, OVERWRITE_GPU), value, bytes);
    stream_wait(NULL);
    return mem;
}

bool host_holds(sb_mem *mem, int value) {
    return bytes_are(mem_pointer(mem, CPU_DATA), sb_mem_size(mem), value);
}
