/* Tests loans of device memory, a full device, and a process exit with live objects. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <syncblob/dlpack.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)

static void refuses(sb_mem *mem, const void *ptr, const char *words) {
    assert_status(SB_ERR_WRONG_DEVICE,
                  sb_mem_set_gpu(mem, (void *)(uintptr_t)ptr, BYTES, 0, NULL, NULL, &err));
    if (!strstr(err.message, words))
        fail_with("\"%s\" lacks \"%s\"", err.message, words);
    assert_int_equal(err.device_code, 0);
    assert_int_equal(sb_mem_head(mem), SB_HEAD_UNINITIALIZED);
}

TEST_ON(stage, only_memory_of_the_device_is_borrowed) {
    static char on_host[BYTES];
    sb_mem *mem = test_mem(f->context, BYTES);
    const char *lent =
        mem_pointer(mem_on_device(test_context_on("cuda:0"), 2 * BYTES, 6), GPU_DATA);
    refuses(mem, on_host, "is not memory of cuda:0");
    refuses(mem, lent + 2 * BYTES - 64, "bytes at 0x");
    if (device_count() > 1)
        refuses(mem, mem_pointer(test_filled(test_context_on("cuda:1"), BYTES, 6), GPU_DATA),
                "is not memory of cuda:0");
    else
        print_message("skipped: the driver reports only one device\n");
    assert_ok(sb_mem_set_gpu(mem, (void *)(uintptr_t)(lent + BYTES), BYTES, 0, NULL, NULL, &err));
    assert_true(host_holds(mem, 6));
}

TEST_ON(stage, memory_of_another_context_is_not_borrowed) {
    sb__cu_context made, popped;
    sb__cu_device device;
    sb__cu_ptr lent = 0;
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuCtxCreate_v2(&made, 0, device));
    cu_ok(cuMemAlloc_v2(&lent, BYTES));
    refuses(test_mem(f->context, BYTES), (void *)(uintptr_t)lent,
            "does not belong to the primary context of cuda:0");
    cu_ok(cuMemFree_v2(lent));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    cu_ok(cuCtxDestroy_v2(made));
}

TEST_ON(stage, managed_memory_is_the_devices) {
    sb__cu_ptr managed = 0;
    primary_ok(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    void *lent = device_own(managed);
    queue_fill(NULL, lent, 6, BYTES);
    stream_wait(NULL);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_set_gpu(mem, lent, BYTES, 0, NULL, NULL, &err));
    assert_true(host_holds(mem, 6));
}

/* Several mapped pages, as in PyTorch's expandable segments. */
struct mapped {
    sb__cu_ptr ptr;
    size_t page;
};

static void end_mapped(void *user) {
    const struct mapped *mapped = user;
    cu_ok(cuMemUnmap(mapped->ptr, 2 * mapped->page));
    cu_ok(cuMemAddressFree(mapped->ptr, 3 * mapped->page));
}

static void map(struct mapped *mapped) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cu_ok(cuMemGetAllocationGranularity(&mapped->page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    cu_ok(cuMemAddressReserve(&mapped->ptr, 3 * mapped->page, 0, 0, 0));
    for (size_t i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle handle;
        cu_ok(cuMemCreate(&handle, mapped->page, &prop, 0));
        cu_ok(cuMemMap(mapped->ptr + i * mapped->page, mapped->page, 0, handle, 0));
        cu_ok(cuMemRelease(handle));
    }
    cu_ok(cuMemSetAccess(mapped->ptr, 2 * mapped->page, &access, 1));
    test_own_loan(mapped, end_mapped);
}

TEST_ON(stage, mapped_memory_is_used_in_place) {
    static struct mapped mapped;
    void *out;
    map(&mapped);
    for (size_t pages = 1; pages <= 2; pages++) { /* across both mappings, then beyond the second */
        char *at = (char *)(uintptr_t)mapped.ptr + pages * mapped.page - BYTES / 2;
        sb_mem *mem = test_mem(f->context, BYTES);
        const sb_status st = sb_mem_set_gpu(mem, at, BYTES, 0, NULL, NULL, &err);
        assert_int_equal(st, pages == 1 ? SB_OK : SB_ERR_WRONG_DEVICE);
        if (st != SB_OK)
            continue;
        assert_ok(sb_mem_mutable_gpu(mem, &out, &err));
        assert_ptr_equal(out, at);
        queue_fill(NULL, out, 0x17, BYTES);
        assert_true(host_holds(mem, 0x17));
        test_end(mem);
    }
}

TEST_ON(stage, tensors_have_the_device_of_their_memory) {
    for (sb_side side = SB_SIDE_CPU; side <= SB_SIDE_GPU; side++) {
        sb_dl_managed_versioned *tensor;
        sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, 1000), *other;
        host_fill(data_of(blob), 0x21);
        assert_ok(sb_blob_to_dlpack(blob, SB_DATA, side, &tensor, &err));
        const sb_dl_device device = tensor->dl_tensor.device;
        const void *const data = tensor->dl_tensor.data;
        assert_int_equal(device.device_type,
                         side == SB_SIDE_GPU ? SB_DL_DEVICE_CUDA : SB_DL_DEVICE_CUDA_HOST);
        assert_int_equal(device.device_id, 0);
        assert_ok(sb_blob_create_from_dlpack(f->context, tensor, &other, &err));
        assert_ptr_equal(blob_pointer(other, SB_DATA, side == SB_SIDE_GPU ? GPU_DATA : CPU_DATA),
                         data);
        assert_true(bytes_are(blob_pointer(other, SB_DATA, CPU_DATA), 4000, 0x21));
        sb_blob_destroy(other); /* ends the tensor */
    }
}

enum { ELEMENTS = 1 << 18, CHUNKS = 4096 };

static sb__cu_ptr taken[CHUNKS];

static int take_all(void) {
    int count = 0;
    enter();
    for (size_t bytes = (size_t)64 << 30; bytes >= 4096; bytes /= 2)
        while (count < CHUNKS && driver.cuMemAlloc_v2(&taken[count], bytes) == SB__CUDA_SUCCESS)
            count++;
    leave();
    return count;
}

static void give_all(int count) {
    enter();
    while (count)
        cu_ok(cuMemFree_v2(taken[--count]));
    leave();
}

static bool is_done(const struct stage *stage, sb_status st) {
    if (st != SB_OK && st != SB_ERR_OUT_OF_MEMORY && st != SB_ERR_DEVICE_FAILURE)
        fail_with("arithmetic without memory: %s", sb_status_name(st));
    assert_int_equal(sb_context_device_status(stage->context), SB_OK);
    return st == SB_OK;
}

TEST_ON(stage, arithmetic_without_free_memory_works_or_changes_nothing) {
    double sum, factor = 1;
    sb_blob *blob = test_vector(f->context, SB_DTYPE_F32, ELEMENTS);
    float *x = blob_pointer(blob, SB_DATA, OVERWRITE_CPU);
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = 1;
    (void)blob_pointer(blob, SB_DATA, MUTABLE_GPU);
    for (int round = 0; round < 2; round++) { /* only round 0 begins without loaded kernels */
        const int pieces = take_all();
        int done = 0;
        for (int i = 0; i < 3; i++) {
            if (is_done(f, sb_blob_scale(blob, SB_DATA, 2, &err))) {
                factor *= 2;
                done++;
            }
            if (is_done(f, sb_blob_asum(blob, SB_DATA, &sum, &err)))
                assert_true(sum == factor * ELEMENTS);
        }
        print_message("%d pieces were allocated; then %d of 3 scalings succeeded\n", pieces, done);
        give_all(pieces);
        assert_ok(sb_blob_asum(blob, SB_DATA, &sum, &err));
        assert_true(sum == factor * ELEMENTS);
    }
}

/* The fake driver allocates device memory on the host. */
__attribute__((constructor)) static void limit_memory(void) {
    (void)setenv("FAKE_MEMORY", "33554432", 1);
}

static struct stage last;
static sb_mem *alive[4];
static sb_blob *blob_alive;

static void leave_everything_alive(void) {
    double sum;
    stage_open(&last);
    for (int i = 0; i < 4; i++)
        alive[i] =
            i % 2 ? mem_on_device(last.context, BYTES, i) : test_filled(last.context, BYTES, i);
    blob_alive = test_vector(last.context, SB_DTYPE_F32, 1000);
    (void)blob_pointer(blob_alive, SB_DATA, MUTABLE_GPU);
    assert_ok(sb_blob_asum(blob_alive, SB_DATA, &sum, &err));
    queue_pause(last.stream);
    assert_ok(sb_mem_async_gpu_push(alive[0], last.stream, &err));
    assert_ok(sb_mem_async_cpu_pull(alive[1], last.stream, &err));
}

static void release_everything(void) {
    for (int i = 0; i < 4; i++)
        sb_mem_release(alive[i]);
    sb_blob_destroy(blob_alive);
    sb_context_release(last.context);
}

static bool in_destructor;

__attribute__((destructor)) static void at_the_very_end(void) {
    if (in_destructor)
        release_everything();
}

static int run_scenario(const char *name) {
    if (strcmp(name, "exit_handler") == 0)
        (void)atexit(release_everything); /* registered after the driver's handler: runs first */
    leave_everything_alive();
    in_destructor = strcmp(name, "destructor") == 0;
    return 0;
}

static char *program; /* argv[0], because /proc/self/exe may name an emulator */

TEST(the_process_may_exit_with_live_objects) {
    static const char *const scenarios[] = {"return", "exit_handler", "destructor"};
    for (size_t i = 0; i < 3 * (sizeof scenarios / sizeof *scenarios); i++) {
        char command[600];
        (void)snprintf(command, sizeof command, "ASAN_OPTIONS=detect_leaks=0 '%s' %s >/dev/null",
                       program, scenarios[i / 3]); /* the scenarios leak */
        const int how = system(command);
        if (how != 0)
            fail_with("%s: wait status %x", scenarios[i / 3], (unsigned int)how);
    }
}

int gpu_main(int argc, char **argv) {
    program = argv[0];
    if (argc < 2)
        return run_all_tests();
    (void)alarm(60);
    return run_scenario(argv[1]);
}
