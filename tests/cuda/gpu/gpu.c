#include "gpu.h"

#include <stdio.h>
#include <string.h>

const struct driver *driver;

/* --- life ------------------------------------------------------------------------------------ */

sb_context_options stage_options(void) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.device = "cuda:0";
    return options;
}

/* For the life of the process: a driver takes long to make one anew for each test. */
static void keep_primary_context(void) {
    sb__cu_context kept;
    sb__cu_device device;
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuDevicePrimaryCtxRetain(&kept, device));
}

int gpu_begin(void) {
    sb_context_options options = stage_options();
    sb_context *context;
    const char *why;
    char device[200];
    sb_status st = sb_context_create(&options, &context, &err);
    if (st != SB_OK) {
        printf("%s: %s\n", st == SB_ERR_NO_DEVICE ? "skipped" : "no context", err.message);
        return st == SB_ERR_NO_DEVICE ? GPU_SKIPPED : 1;
    }
    sb_context_release(context);
    driver = driver_open(&why);
    if (!driver) {
        printf("no driver: %s\n", why);
        return 1;
    }
    keep_primary_context();
    driver_describe(driver, device, sizeof device);
    printf("on %s\n", device);
    (void)fflush(stdout); /* children would print it again */
    return 0;
}

void stage_open(struct stage *stage, const sb_context_options *options) {
    sb_context_options plain = stage_options();
    sb__cu_device device;
    assert_ok(sb_context_create(options ? options : &plain, &stage->context, &err));
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuDevicePrimaryCtxRetain(&stage->primary, device));
    stage->stream = stream_make(stage, STREAM_NON_BLOCKING);
}

void stage_close(struct stage *stage) {
    sb__cu_context current = NULL;
    sb__cu_device device;
    assert_ok(sb_context_forget_stream(stage->context, (sb_stream)stage->stream, &err));
    stream_end(stage, stage->stream);
    sb_context_trim(stage->context);
    sb_stats stats = stats_of(stage->context);
    assert_int_equal(stats.device_bytes, 0);
    assert_int_equal(stats.pinned_bytes, 0);
    assert_int_equal(stats.borrowed_bytes, 0);
    sb_context_release(stage->context);
    cu_ok(cuCtxGetCurrent(&current));
    assert_null(current);
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuDevicePrimaryCtxRelease_v2(device));
}

sb_context *another_context(const char *device) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    options.device = device;
    assert_ok(sb_context_create(&options, &context, &err));
    return context;
}

int device_count(void) {
    int count = 0;
    cu_ok(cuDeviceGetCount(&count));
    return count;
}

/* --- figures --------------------------------------------------------------------------------- */

sb_stats stats_of(const sb_context *context) {
    sb_stats stats = SB_STATS_INIT;
    assert_ok(sb_context_stats(context, &stats, &err));
    return stats;
}

struct copies copies_so_far(const sb_context *context) {
    sb_stats s = stats_of(context);
    return (struct copies){(int64_t)s.uploads,           (int64_t)s.downloads,
                           (int64_t)s.device_copies,     (int64_t)s.host_copies,
                           (int64_t)s.upload_bytes,      (int64_t)s.download_bytes,
                           (int64_t)s.device_copy_bytes, (int64_t)s.host_copy_bytes};
}

struct copies copies_since(const sb_context *context, const struct copies *before) {
    struct copies now = copies_so_far(context);
    return (struct copies){now.uploads - before->uploads,
                           now.downloads - before->downloads,
                           now.device_copies - before->device_copies,
                           now.host_copies - before->host_copies,
                           now.upload_bytes - before->upload_bytes,
                           now.download_bytes - before->download_bytes,
                           now.device_copy_bytes - before->device_copy_bytes,
                           now.host_copy_bytes - before->host_copy_bytes};
}

void assert_transfers(const sb_context *context, const struct copies *before, int64_t uploads,
                      int64_t downloads, size_t bytes) {
    struct copies since = copies_since(context, before);
    assert_int_equal(since.uploads, uploads);
    assert_int_equal(since.downloads, downloads);
    assert_int_equal(since.upload_bytes, uploads * (int64_t)bytes);
    assert_int_equal(since.download_bytes, downloads * (int64_t)bytes);
    assert_int_equal(since.device_copies, 0);
    assert_int_equal(since.host_copies, 0);
}

/* --- streams --------------------------------------------------------------------------------- */

void enter(const struct stage *stage) {
    cu_ok(cuCtxPushCurrent_v2(stage->primary));
}

void leave(void) {
    sb__cu_context old;
    cu_ok(cuCtxPopCurrent_v2(&old));
}

sb__cu_stream stream_make(const struct stage *stage, unsigned int flags) {
    sb__cu_stream stream = NULL;
    enter(stage);
    cu_ok(cuStreamCreate(&stream, flags));
    leave();
    return stream;
}

void stream_wait(const struct stage *stage, sb__cu_stream stream) {
    enter(stage);
    cu_ok(cuStreamSynchronize(stream));
    leave();
}

void stream_end(const struct stage *stage, sb__cu_stream stream) {
    stream_wait(stage, stream);
    enter(stage);
    cu_ok(cuStreamDestroy_v2(stream));
    leave();
}

/* --- bytes of the device --------------------------------------------------------------------- */

static sb__cu_ptr address(const void *ptr) {
    return (sb__cu_ptr)(uintptr_t)ptr;
}

void *device_make(const struct stage *stage, size_t bytes) {
    sb__cu_ptr ptr = 0;
    enter(stage);
    cu_ok(cuMemAlloc_v2(&ptr, bytes));
    leave();
    return (void *)(uintptr_t)ptr;
}

void device_end(const struct stage *stage, void *ptr) {
    enter(stage);
    cu_ok(cuMemFree_v2(address(ptr)));
    leave();
}

void queue_pause(const struct stage *stage, sb__cu_stream stream) {
    enter(stage);
    driver_pause(driver, stream);
    leave();
}

void queue_fill(const struct stage *stage, sb__cu_stream stream, void *ptr, int value,
                size_t bytes) {
    enter(stage);
    cu_ok(cuMemsetD8Async(address(ptr), (unsigned char)value, bytes, stream));
    leave();
}

void queue_copy(const struct stage *stage, sb__cu_stream stream, void *dst, const void *src,
                size_t bytes) {
    enter(stage);
    cu_ok(cuMemcpyDtoDAsync_v2(address(dst), address(src), bytes, stream));
    leave();
}

void device_read(const struct stage *stage, void *out, const void *src, size_t bytes) {
    enter(stage);
    cu_ok(cuMemcpyDtoHAsync_v2(out, address(src), bytes, NULL));
    cu_ok(cuStreamSynchronize(NULL));
    leave();
}

void device_write(const struct stage *stage, void *dst, const void *in, size_t bytes) {
    enter(stage);
    cu_ok(cuMemcpyHtoDAsync_v2(address(dst), in, bytes, NULL));
    cu_ok(cuStreamSynchronize(NULL));
    leave();
}

size_t device_free(const struct stage *stage) {
    size_t free_bytes = 0, total = 0;
    enter(stage);
    if (driver->cuMemGetInfo_v2)
        cu_ok(cuMemGetInfo_v2(&free_bytes, &total));
    leave();
    return free_bytes;
}

bool bytes_are(const void *ptr, size_t bytes, int value) {
    const unsigned char *p = ptr;
    return bytes == 0 || (p[0] == (unsigned char)value && memcmp(p, p + 1, bytes - 1) == 0);
}

bool device_holds(const struct stage *stage, const void *ptr, size_t bytes, int value) {
    void *seen = malloc(bytes);
    assert_non_null(seen);
    device_read(stage, seen, ptr, bytes);
    bool same = bytes_are(seen, bytes, value);
    free(seen);
    return same;
}

/* --- memories -------------------------------------------------------------------------------- */

sb_mem *mem_make(sb_context *context, size_t bytes) {
    sb_mem *mem;
    assert_ok(sb_mem_create(context, bytes, &mem, &err));
    return mem;
}

void host_fill(sb_mem *mem, int value) {
    void *out;
    assert_ok(sb_mem_overwrite_cpu(mem, &out, &err));
    memset(out, value, sb_mem_size(mem));
}

sb_mem *mem_on_host(sb_context *context, size_t bytes, int value) {
    sb_mem *mem = mem_make(context, bytes);
    host_fill(mem, value);
    return mem;
}

sb_mem *mem_on_device(const struct stage *stage, sb_context *context, size_t bytes, int value) {
    sb_mem *mem = mem_make(context, bytes);
    void *out;
    assert_ok(sb_mem_overwrite_gpu(mem, &out, &err));
    queue_fill(stage, NULL, out, value, bytes);
    stream_wait(stage, NULL);
    return mem;
}

bool host_holds(const sb_mem *mem, int value) {
    const void *in;
    assert_ok(sb_mem_cpu(mem, &in, &err));
    return bytes_are(in, sb_mem_size(mem), value);
}

const void *gpu_pointer(const sb_mem *mem) {
    const void *in;
    assert_ok(sb_mem_gpu(mem, &in, &err));
    return in;
}
