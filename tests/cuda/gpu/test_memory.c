/* Tests page-locked memory, caps, freed memory, forked children, and a process exit with live
   objects. */
#include "gpu.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)

/* --- page-locked memory ---------------------------------------------------------------------- */

TEST_ON(stage, pinned_memory_is_zeroed_and_reused) {
    const void *first, *again;
    sb_mem *mem = test_filled(f->context, BYTES, 0x5A);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_PINNED);
    assert_ok(sb_mem_cpu(mem, &first, &err));
    test_end(mem);
    assert_int_equal(rig_stats(&f->rig).pinned_bytes, BYTES);
    assert_int_equal(rig_stats(&f->rig).cached_bytes, BYTES);
    mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_cpu(mem, &again, &err));
    assert_ptr_equal(again, first);
    assert_true(bytes_are(again, BYTES, 0));
    assert_int_equal(rig_stats(&f->rig).cached_bytes, 0);
}

TEST_ON(stage, memory_above_the_pinned_cap_is_ordinary) {
    sb_context_options options = stage_options();
    options.max_pinned_bytes = BYTES + BYTES / 2;
    stage_reopen(f, &options);
    sb_mem *pinned = test_filled(f->context, BYTES, 1);
    sb_mem *ordinary = test_filled(f->context, BYTES, 2);
    assert_int_equal(sb_mem_storage(pinned, SB_SIDE_CPU), SB_STORAGE_PINNED);
    assert_int_equal(sb_mem_storage(ordinary, SB_SIDE_CPU), SB_STORAGE_OWNED);
    assert_int_equal(rig_stats(&f->rig).pinned_peak, BYTES);
    assert_true(device_holds(gpu_pointer(ordinary), BYTES, 2));
}

TEST_ON(stage, no_memory_is_pinned_on_request) {
    void *out;
    sb_context_options options = stage_options();
    options.flags = SB_CONTEXT_NO_PINNED;
    stage_reopen(f, &options);
    sb_mem *mem = test_filled(f->context, BYTES, 3);
    assert_int_equal(sb_mem_storage(mem, SB_SIDE_CPU), SB_STORAGE_OWNED);
    assert_ok(sb_mem_async_gpu_push(mem, f->stream, &err));
    assert_ok(sb_mem_mutable_gpu_on(mem, f->stream, &out, &err));
    queue_pause(f->stream);
    queue_fill(f->stream, out, 4, BYTES);
    assert_ok(sb_mem_async_cpu_pull(mem, f->stream, &err));
    assert_true(host_holds(mem, 4));
    assert_int_equal(rig_stats(&f->rig).pinned_peak, 0);
}

/* --- device memory --------------------------------------------------------------------------- */

TEST_ON(stage, more_than_the_device_has_is_out_of_memory) {
    void *out;
    sb_mem *huge = test_mem(f->context, (size_t)1 << 46);
    assert_status(SB_ERR_OUT_OF_MEMORY, sb_mem_overwrite_gpu(huge, &out, &err));
    assert_int_equal(sb_mem_head(huge), SB_HEAD_UNINITIALIZED);
    assert_int_equal(sb_context_device_status(f->context), SB_OK);
    sb_mem *small = mem_on_device(f->context, BYTES, 5);
    assert_true(host_holds(small, 5));
}

/* A wait leaves free memory mapped, whatever amount of memory is in use. With the driver's default
   release threshold, a wait would unmap free memory. */
TEST_ON(stage, freed_memory_stays_until_it_is_trimmed) {
    const size_t mib = (size_t)1 << 20, freed = 64 * mib;
    sb_mem *used = mem_on_device(f->context, driver->is_fake ? mib : 288 * mib, 5);
    sb_mem *next = mem_on_device(f->context, freed, 6);
    const size_t before = device_free();
    test_end(next);
    assert_ok(sb_context_synchronize(f->context, &err));
    assert_true(device_free() < before + freed / 2); /* other programs may free memory */
    sb_context_trim(f->context);
    assert_true(device_free() > before + freed / 2);
    assert_true(host_holds(used, 5));
}

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
    const char *lent = gpu_pointer(mem_on_device(test_context_on("cuda:0"), 2 * BYTES, 6));
    refuses(mem, on_host, "is not memory of cuda:0");
    refuses(mem, lent + 2 * BYTES - 64, "bytes at 0x");
    if (device_count() > 1)
        refuses(mem, gpu_pointer(test_filled(test_context_on("cuda:1"), BYTES, 6)),
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
    assert_non_null(driver->cuCtxCreate_v2);
    cu_ok(cuDeviceGet(&device, 0));
    cu_ok(cuCtxCreate_v2(&made, 0, device));
    cu_ok(cuMemAlloc_v2(&lent, BYTES));
    refuses(test_mem(f->context, BYTES), (void *)(uintptr_t)lent,
            "does not belong to the primary context of cuda:0");
    cu_ok(cuMemFree_v2(lent));
    cu_ok(cuCtxPopCurrent_v2(&popped));
    cu_ok(cuCtxDestroy_v2(made));
}

static void end_managed(void *ptr) {
    primary_ok(cuMemFree_v2((sb__cu_ptr)(uintptr_t)ptr));
}

TEST_ON(stage, managed_memory_is_the_devices) {
    sb__cu_ptr managed = 0;
    primary_ok(cuMemAllocManaged(&managed, BYTES, ATTACH_GLOBAL));
    void *lent = (void *)(uintptr_t)managed;
    test_own_loan(lent, end_managed);
    queue_fill(NULL, lent, 6, BYTES);
    stream_wait(NULL);
    sb_mem *mem = test_mem(f->context, BYTES);
    assert_ok(sb_mem_set_gpu(mem, lent, BYTES, 0, NULL, NULL, &err));
    assert_true(host_holds(mem, 6));
}

/* --- a forked child -------------------------------------------------------------------------- */

struct inherited {
    struct stage *stage;
    sb_mem *at_gpu, *pinned, *ordinary;
};

/* If the condition is false, ends the child with an exit status that depends on the line. */
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 200 + 1);                                                             \
    } while (0)

static void use_in_child(struct inherited *i) {
    const sb_context_options options = stage_options();
    sb_context *context;
    const void *in;
    void *out;
    need(sb_context_device_status(i->stage->context) == SB_ERR_FORKED);
    need(sb_mem_cpu(i->at_gpu, &in, NULL) == SB_ERR_FORKED);
    need(sb_mem_gpu(i->ordinary, &in, NULL) == SB_ERR_FORKED);
    need(sb_mem_mutable_gpu(i->at_gpu, &out, NULL) == SB_ERR_FORKED);
    need(sb_mem_async_gpu_push(i->ordinary, NULL, NULL) == SB_ERR_FORKED);
    need(sb_context_synchronize(i->stage->context, NULL) == SB_ERR_FORKED);
    need(sb_context_create(&options, &context, NULL) == SB_ERR_FORKED);
    need(sb_mem_cpu(i->pinned, &in, NULL) == SB_ERR_FORKED);
    need(sb_mem_mutable_cpu(i->pinned, &out, NULL) == SB_ERR_FORKED);
    need(sb_mem_overwrite_cpu(i->pinned, &out, NULL) == SB_ERR_FORKED);
    need(sb_mem_head(i->at_gpu) == SB_HEAD_AT_GPU);
    need(sb_mem_cpu(i->ordinary, &in, NULL) == SB_OK && bytes_are(in, BYTES, 3));
    sb_mem_release(i->at_gpu);
    sb_mem_release(i->pinned);
    sb_mem_release(i->ordinary);
    sb_context_trim(i->stage->context);
    sb_context_release(i->stage->context);
    _exit(0);
}

TEST_ON(stage, a_forked_child_gets_a_status) {
    sb_context_options options = stage_options();
    options.max_pinned_bytes = BYTES; /* so the third memory cannot be page-locked */
    stage_reopen(f, &options);
    struct inherited i = {f, mem_on_device(f->context, BYTES, 1), test_filled(f->context, BYTES, 2),
                          test_filled(f->context, BYTES, 3)};
    int how = -1;
    assert_int_equal(sb_mem_storage(i.pinned, SB_SIDE_CPU), SB_STORAGE_PINNED);
    assert_int_equal(sb_mem_storage(i.ordinary, SB_SIDE_CPU), SB_STORAGE_OWNED);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* replaces cmocka's handlers */
        (void)signal(SIGBUS, SIG_DFL);
        (void)alarm(20);
        use_in_child(&i);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_true(host_holds(i.at_gpu, 1) && host_holds(i.pinned, 2));
    assert_true(device_holds(gpu_pointer(i.pinned), BYTES, 2));
    assert_true(device_holds(gpu_pointer(i.ordinary), BYTES, 3));
}

/* --- the end of a process -------------------------------------------------------------------- */

static struct stage last;
static sb_mem *alive[4];
static sb_blob *blob_alive;

static void leave_everything_alive(void) {
    void *out;
    double sum;
    stage_open(&last);
    for (int i = 0; i < 4; i++)
        alive[i] =
            i % 2 ? mem_on_device(last.context, BYTES, i) : test_filled(last.context, BYTES, i);
    blob_alive = test_vector(last.context, SB_DTYPE_F32, 1000);
    assert_ok(sb_blob_mutable_gpu(blob_alive, SB_DATA, &out, &err));
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

extern char **environ;
static char *program; /* argv[0]: an emulator's /proc/self/exe is not the program */

TEST(the_process_may_exit_with_live_objects) {
    static const char *const scenarios[] = {"return", "exit_handler", "destructor"};
    assert_int_equal(setenv("ASAN_OPTIONS", "detect_leaks=0", 1), 0); /* the scenarios leak */
    for (size_t i = 0; i < 3 * (sizeof scenarios / sizeof *scenarios); i++) {
        char *const arguments[] = {program, (char *)(uintptr_t)scenarios[i / 3], NULL};
        pid_t child;
        int how = -1;
        assert_int_equal(posix_spawnp(&child, program, NULL, NULL, arguments, environ), 0);
        assert_int_equal(waitpid(child, &how, 0), child);
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
