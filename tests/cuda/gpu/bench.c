/* Compares the speed of the library on a GPU with the speed of the driver. */
#include "../../survival/threads/team.h"
#include "gpu.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { REPEATS = 31, ENTRIES = 5 };

static struct subject {
    struct stage stage;
    size_t bytes;
    sb_blob *blob;
    sb_mem *mem;
    void *pinned, *device;
} s;

#define CALL(name, ...)                                                                            \
    static void name(int i) {                                                                      \
        __VA_ARGS__;                                                                               \
    }
#define STREAM      ((sb__cu_stream)s.stage.stream)
#define ADDRESS(p)  ((sb__cu_ptr)(uintptr_t)(p))
#define ANY_POINTER (&(void *){NULL})

CALL(nothing, )
CALL(sync, assert_ok(sb_context_synchronize(s.stage.context, &err)))
CALL(sync_driver, cu_ok(cuStreamSynchronize(STREAM)))
CALL(write_host, assert_ok(sb_mem_mutable_cpu(s.mem, ANY_POINTER, &err)))
CALL(write_device, assert_ok(sb_mem_mutable_gpu(s.mem, ANY_POINTER, &err)))

CALL(copy_by_driver,
     cu_ok(cuMemcpyDtoDAsync_v2(ADDRESS(s.device), ADDRESS(blob_pointer(s.blob, SB_DATA, GPU_DATA)),
                                s.bytes, STREAM)))
CALL(update, assert_ok(sb_blob_update(s.blob, &err)))
CALL(scale, assert_ok(sb_blob_scale(s.blob, SB_DATA, i % 2 ? 0.5 : 2, &err)))
CALL(asum, assert_ok(sb_blob_asum(s.blob, SB_DATA, &(double){0}, &err)))
CALL(sumsq, assert_ok(sb_blob_sumsq(s.blob, SB_DATA, &(double){0}, &err)))

CALL(up_by_driver, cu_ok(cuMemcpyHtoDAsync_v2(ADDRESS(s.device), s.pinned, s.bytes, STREAM));
     sync_driver(i))
CALL(down_by_driver, cu_ok(cuMemcpyDtoHAsync_v2(s.pinned, ADDRESS(s.device), s.bytes, STREAM));
     sync_driver(i))
CALL(up, assert_ok(sb_mem_gpu(s.mem, &(const void *){NULL}, &err)))
CALL(down, assert_ok(sb_mem_cpu(s.mem, &(const void *){NULL}, &err)))

CALL(alloc_by_driver, sb__cu_ptr ptr; cu_ok(cuMemAlloc_v2(&ptr, s.bytes)); cu_ok(cuMemFree_v2(ptr)))
CALL(pin_by_driver, void *ptr; cu_ok(cuMemHostAlloc(&ptr, s.bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
     cu_ok(cuMemFreeHost(ptr)))

static void use_memory(sb_status (*access)(sb_mem *mem, void **out, sb_error *err)) {
    sb_mem *mem;
    assert_ok(sb_mem_create(s.stage.context, s.bytes, &mem, &err));
    assert_ok(access(mem, ANY_POINTER, &err));
    sb_mem_release(mem);
}

CALL(alloc, use_memory(sb_mem_overwrite_gpu))
CALL(pin, use_memory(sb_mem_overwrite_cpu))

CALL(push, assert_ok(sb_mem_async_gpu_push(s.mem, s.stage.stream, &err)))
CALL(scales, for (int k = 0; k < 4; k++) scale(k))
CALL(push_and_scales, push(i); scales(i))
CALL(sync_both, assert_ok(sb_mem_synchronize(s.mem, &err)); sync(i))

/* `traffic` is the number of bytes that a call moves, divided by the size of the buffer. */
static const struct table {
    const char *title;
    int32_t dtype;
    struct entry {
        const char *name;
        double traffic;
        void (*prepare)(int i), (*call)(int i), (*wait)(int i);
    } entries[ENTRIES];
} tables[] = {
#define ARITHMETIC(dtype)                                                                          \
    {                                                                                              \
        "Arithmetic, " #dtype, SB_DTYPE_##dtype, {                                                 \
            {"copy by the driver", 2, nothing, copy_by_driver, sync_driver},                       \
                {"Update", 3, nothing, update, sync}, {"asum", 1, nothing, asum, nothing},         \
                {"sumsq", 1, nothing, sumsq, nothing}, {                                           \
                "scale", 2, nothing, scale, sync                                                   \
            }                                                                                      \
        }                                                                                          \
    }
    ARITHMETIC(F32),
    ARITHMETIC(F64),
    {"Transfers of page-locked memory to the device",
     SB_DTYPE_F32,
     {{"up by the driver", 1, nothing, up_by_driver, nothing}, {"up", 1, write_host, up, nothing}}},
    {"Transfers of page-locked memory to the host",
     SB_DTYPE_F32,
     {{"down by the driver", 1, nothing, down_by_driver, nothing},
      {"down", 1, write_device, down, nothing}}},
    {"Allocation at the device: create a memory, access it, release it",
     SB_DTYPE_F32,
     {{"cuMemAlloc and cuMemFree", 1, nothing, alloc_by_driver, nothing},
      {"a memory at the device", 1, nothing, alloc, nothing}}},
    {"Allocation of page-locked memory: create a memory, access it, release it",
     SB_DTYPE_F32,
     {{"cuMemHostAlloc and cuMemFreeHost", 1, nothing, pin_by_driver, nothing},
      {"a page-locked memory", 1, nothing, pin, nothing}}},
    {"An asynchronous push beside arithmetic",
     SB_DTYPE_F32,
     {{"push", 1, write_host, push, sync_both},
      {"arithmetic", 1, write_host, scales, sync_both},
      {"both", 1, write_host, push_and_scales, sync_both}}},
};

static double seconds_of(const struct entry *entry, int times) {
    double seconds = 0;
    for (int i = 0; i < times; i++) {
        entry->prepare(i);
        const double start = now();
        entry->call(i);
        if (i == times - 1)
            entry->wait(i);
        seconds += now() - start;
    }
    return seconds / times;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_in_turn(const struct table *table, int times) {
    const int repeats = driver.is_fake ? 3 : REPEATS;
    double seconds[ENTRIES][REPEATS], first = 0;
    for (int round = -1; round < repeats; round++)
        for (int i = 0; i < ENTRIES && table->entries[i].name; i++)
            seconds[i][round < 0 ? 0 : round] = seconds_of(&table->entries[i], times);
    for (int i = 0; i < ENTRIES && table->entries[i].name; i++) {
        const struct entry *entry = &table->entries[i];
        qsort(seconds[i], (size_t)repeats, sizeof(double), compare);
        const double median = seconds[i][repeats / 2], speed = entry->traffic / median;
        first = i ? first : speed;
        printf("| %s | %.4g | %.4g | %.4g | %.2f | %.1f %% |\n", entry->name,
               (double)s.bytes / (double)MIB, median * 1e6, seconds[i][0] * 1e6,
               speed * (double)s.bytes * 1e-9, 100 * speed / first);
    }
}

/* With these bytes, the numbers in the blob stay small in all timed calls. */
static void make_subject(int32_t dtype, size_t bytes) {
    s.bytes = bytes;
    s.blob = test_vector(s.stage.context, dtype, (int64_t)(bytes / sb_dtype_size(dtype)));
    queue_fill(NULL, blob_pointer(s.blob, SB_DATA, OVERWRITE_GPU), 0x3C, bytes);
    queue_fill(NULL, blob_pointer(s.blob, SB_DIFF, OVERWRITE_GPU), 0x30, bytes);
    stream_wait(NULL);
    s.mem = test_filled(s.stage.context, bytes, 1);
    assert_int_equal(sb_mem_storage(s.mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
    s.device = device_make(bytes);
    enter();
    cu_ok(cuMemHostAlloc(&s.pinned, bytes, SB__CU_MEMHOSTALLOC_PORTABLE));
    memset(s.pinned, 2, bytes);
}

static void end_subject(void) {
    cu_ok(cuMemFreeHost(s.pinned));
    leave();
    test_end(s.device);
    test_end(s.mem);
    test_end(s.blob);
}

int gpu_main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--describe") == 0)
        return 0;
    const bool quick = driver.is_fake;
    stage_open_options(&s.stage,
                       CONTEXT_OPTIONS(.device = "cuda:0", .max_pinned_bytes = (size_t)4 << 30));
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        printf("\n## %s\n\n| call | MiB | us, median | us, best | GB/s, median | share of the "
               "first |\n|---|---|---|---|---|---|\n",
               tables[t].title);
        for (size_t bytes = 4096; bytes <= (quick ? MIB / 16 : 256 * MIB);
             bytes *= quick ? 16 : 4) {
            make_subject(tables[t].dtype, bytes);
            time_in_turn(&tables[t], quick || bytes > 16 * MIB ? 2 : 16);
            end_subject();
        }
    }
    printf("\nThe aim is that sums of 256 MiB have 80 %% of the copy's bandwidth.\n");
    stage_close(&s.stage);
    return 0;
}
