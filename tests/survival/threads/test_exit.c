/* Ends a program in many states, repeatedly, and checks that it neither crashes nor hangs. Each
   scenario runs this program again with the scenario's name. */
#include "blobs.h"
#include "child.h"
#include "nets.h"
#include "plain.h"
#include "pointers.h"
#include "team.h"

#include <errno.h>
#include <spawn.h>

enum { THREADS = 4, OBJECTS = 6 };
#define RUNS  (test_is_quick() || IS_SANITIZED ? 5 : 100)
#define BYTES ((size_t)128 << 10) /* a size that the cache keeps */

/* --- the objects that are alive at exit ------------------------------------------------------- */

static sb_context *contexts[2];
static sb_stream streams[2];
static sb_mem *mems[2][OBJECTS];
static sb_blob *blobs[2];
static sb_model *model;
static _Atomic int deleted;
static char lent[2][BYTES];

static void count_deleter(void *user, void *ptr) {
    atomic_fetch_add(&deleted, 1);
}

static void make_memories(int c) {
    for (int i = 0; i < OBJECTS; i++)
        mems[c][i] = mem_filled(contexts[c], BYTES, i);
    assert_ok(sb_mem_set_cpu(mems[c][0], lent[c], BYTES, 0, count_deleter, NULL, &err));
    (void)mem_pointer(mems[c][1], MUTABLE_GPU);
    assert_ok(sb_sim_set_schedule(contexts[c], c ? SB_SIM_LAZY : SB_SIM_RANDOM, 1, &err));
    for (int i = 0; i < 3; i++)
        assert_ok(
            (i == 1 ? sb_mem_async_cpu_pull : sb_mem_async_gpu_push)(mems[c][i], streams[c], &err));
    sb_mem_release(mems[c][OBJECTS - 1]); /* goes into the cache */
    mems[c][OBJECTS - 1] = NULL;
}

/* A failed assertion ends only the process of its scenario. */
static void make_everything(void) {
    for (int c = 0; c < 2; c++) {
        assert_ok(create_with_backend(NULL, "sim:0", &contexts[c], &err));
        assert_ok(sb_sim_stream_create(contexts[c], &streams[c], &err));
        make_memories(c);
        blobs[c] = blob_of_count(contexts[c], SB_DTYPE_F32, 1000);
        memset(blob_pointer(blobs[c], SB_DATA, OVERWRITE_CPU), 0, 4000);
    }
    model = small_model(contexts[0]);
}

static void release_everything(void) {
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < OBJECTS; i++)
            sb_mem_release(mems[c][i]);
        sb_blob_destroy(blobs[c]);
    }
    sb_model_destroy(model);
    for (int c = 0; c < 2; c++)
        sb_context_release(contexts[c]);
    child_wants(atomic_load(&deleted) == 2);
}

/* --- threads that do not end ----------------------------------------------------------------- */

static _Atomic int busy;

static void work_a_bit(sb_context *context, int c) {
    sb_mem *mem = NULL;
    const void *in;
    if (sb_mem_create(context, BYTES, &mem, NULL) == SB_OK) {
        ignore(sb_mem_prefetch_gpu(mem, streams[c], NULL));
        ignore(sb_mem_cpu(mem, &in, NULL));
    }
    sb_mem_release(mem);
    ignore(sb_mem_cpu(mems[c][2], &in, NULL));
    ignore(sb_mem_gpu(mems[c][3], &in, NULL));
    sb_context_trim(context);
}

static void *work_for_ever(void *user) {
    int c = *(const int *)user;
    for (;;) {
        work_a_bit(contexts[c], c);
        work_a_bit(NULL, c);
        atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
    }
    return NULL;
}

static void start_threads(void) {
    static const int which[2] = {0, 1};
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        child_wants(
            pthread_create(&thread, NULL, work_for_ever, (void *)(uintptr_t)&which[i % 2]) == 0);
        child_wants(pthread_detach(thread) == 0);
    }
    while (atomic_load(&busy) < THREADS)
        sched_yield();
}

/* --- scenarios ------------------------------------------------------------------------------- */

static bool releases_in_destructor;

__attribute__((destructor)) static void at_the_very_end(void) {
    if (releases_in_destructor)
        release_everything();
}

static void leave(void *arg, int member) {
    exit(0);
}

static void exit_from_a_thread(void) {
    make_everything();
    start_threads();
    team_run(1, leave, NULL);
}

static void deleters_run_in_a_destructor(void) {
    make_everything();
    releases_in_destructor = true;
}

static void release_in_an_exit_handler(void) {
    make_everything();
    child_wants(atexit(release_everything) == 0);
}

/* The threads continue while handlers and destructors run. */
static void pause_a_bit(void) {
    const struct timespec some = {0, 3000000};
    (void)nanosleep(&some, NULL);
    child_wants(atomic_load(&deleted) == 0);
}

static void threads_work_through_exit_handlers(void) {
    make_everything();
    child_wants(atexit(pause_a_bit) == 0);
    start_threads();
}

static void end(void *arg) {
    exit(0);
}

static void a_forked_child_exits(void) {
    make_everything();
    child_wants(atexit(release_everything) == 0);
    in_child(end, NULL);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
#define SCENARIO(name)                                                                             \
    { #name, name }
    SCENARIO(exit_from_a_thread),         SCENARIO(deleters_run_in_a_destructor),
    SCENARIO(release_in_an_exit_handler), SCENARIO(threads_work_through_exit_handlers),
    SCENARIO(a_forked_child_exits),
#undef SCENARIO
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* --- running the scenarios ------------------------------------------------------------------- */

extern char **environ;

static int run_once(const char *name) {
    char *const arguments[] = {(char *)(uintptr_t) "exit", (char *)(uintptr_t)name, NULL};
    pid_t child;
    int how = -1;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    while (waitpid(child, &how, 0) < 0)
        assert_int_equal(errno, EINTR);
    return how;
}

static void run_scenario(void **state) {
    const struct scenario *s = *state;
    /* the scenarios do not destroy all objects, and a child cannot free its parent's device
       objects */
    assert_int_equal(setenv("ASAN_OPTIONS", "detect_leaks=0", 1), 0);
    for (int i = 0; i < RUNS; i++)
        assert_child_status(run_once(s->name));
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[SCENARIOS];
    for (int i = 0; i < SCENARIOS; i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            (void)alarm(CHILD_SECONDS);
            scenarios[i].run();
            return 0;
        }
        tests[i] = (struct CMUnitTest){scenarios[i].name, run_scenario, NULL, NULL,
                                       (void *)(uintptr_t)&scenarios[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
