/* Tests which memory of the application can be lent, and a process exit with live objects. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)

/* --- lent memory ----------------------------------------------------------------------------- */

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

/* The application has created the other context. */
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

/* --- the end of a process -------------------------------------------------------------------- */

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
    if (!freopen("/dev/null", "w", stdout) || gpu_begin())
        return 1;
    if (strcmp(name, "exit_handler") == 0)
        (void)atexit(release_everything); /* registered last: runs before the driver's handler */
    leave_everything_alive();
    in_destructor = strcmp(name, "destructor") == 0;
    return 0;
}

static char *program; /* argv[0]: an emulator's /proc/self/exe is not the program */

TEST(the_process_may_exit_with_live_objects) {
    static const char *const scenarios[] = {"return", "exit_handler", "destructor"};
    for (size_t i = 0; i < 3 * (sizeof scenarios / sizeof *scenarios); i++) {
        char command[600];
        (void)snprintf(command, sizeof command, "ASAN_OPTIONS=detect_leaks=0 '%s' %s", program,
                       scenarios[i / 3]); /* the scenarios leak */
        const int how = system(command);
        if (how != 0)
            fail_with("%s: wait status %x", scenarios[i / 3], (unsigned int)how);
    }
}

int main(int argc, char **argv) {
    program = argv[0];
    if (argc == 2) {
        (void)alarm(60);
        return run_scenario(argv[1]);
    }
    const int missing = gpu_begin();
    return missing ? missing : run_all_tests();
}
