/* Ends a program in many states, repeatedly, and checks that it neither crashes nor hangs. Each
   scenario runs this program again with the scenario's name. */
#include "nets.h"
#include "team.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <syncblob/sim.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 20 /* seconds for one run */, THREADS = 4, OBJECTS = 6 };
#define RUNS  (test_is_quick() || IS_SANITIZED ? 5 : 100)
#define BYTES ((size_t)128 << 10) /* a size that the cache keeps */

/* --- what is alive ---------------------------------------------------------------------------- */

static sb_context *contexts[2];
static sb_stream streams[2];
static sb_mem *mems[2][OBJECTS];
static sb_blob *blobs[2];
static sb_model *model;
static _Atomic int deleted;
static char lent[2][BYTES];

/* A scenario runs without cmocka. */
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(2);                                                                              \
        }                                                                                          \
    } while (0)
#define need_ok(call) need((call) == SB_OK)

static void count_deleter(void *user, void *ptr) {
    atomic_fetch_add(&deleted, 1);
}

static void make_memories(int c) {
    void *out;
    for (int i = 0; i < OBJECTS; i++) {
        need_ok(sb_mem_create(contexts[c], BYTES, &mems[c][i], NULL));
        need_ok(sb_mem_overwrite_cpu(mems[c][i], &out, NULL));
        memset(out, i, BYTES);
    }
    need_ok(sb_mem_set_cpu(mems[c][0], lent[c], BYTES, 0, count_deleter, NULL, NULL));
    need_ok(sb_mem_mutable_gpu(mems[c][1], &out, NULL));
    need_ok(sb_sim_set_schedule(contexts[c], c ? SB_SIM_LAZY : SB_SIM_RANDOM, 1, NULL));
    for (int i = 0; i < 3; i++)
        need_ok(i == 1 ? sb_mem_async_cpu_pull(mems[c][i], streams[c], NULL)
                       : sb_mem_async_gpu_push(mems[c][i], streams[c], NULL));
    sb_mem_release(mems[c][OBJECTS - 1]); /* into the cache */
    mems[c][OBJECTS - 1] = NULL;
}

static void make_everything(void) {
    static struct wire net;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    float *x;
    options.device = "sim:0";
    for (int c = 0; c < 2; c++) {
        need_ok(sb_context_create(&options, &contexts[c], NULL));
        need_ok(sb_sim_stream_create(contexts[c], &streams[c], NULL));
        make_memories(c);
        need_ok(sb_blob_create_shaped(contexts[c], SB_DTYPE_F32, (int64_t[]){1000}, 1, &blobs[c],
                                      NULL));
        need_ok(sb_blob_overwrite_cpu_f32(blobs[c], SB_DATA, &x, NULL));
        memset(x, 0, 4000);
    }
    net_current(&net);
    need_ok(sb_model_open_bytes(contexts[0], SB_FORMAT_CAFFEMODEL, net.bytes, net.size, NULL, NULL,
                                NULL, &model, NULL));
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
    need(atomic_load(&deleted) == 2);
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
        need(pthread_create(&thread, NULL, work_for_ever, (void *)(uintptr_t)&which[i % 2]) == 0);
        need(pthread_detach(thread) == 0);
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

static void return_with_objects_alive(void) {
    make_everything();
}

static void return_with_threads_running(void) {
    make_everything();
    start_threads();
}

static void *leave(void *user) {
    exit(0);
}

static void exit_from_a_thread(void) {
    pthread_t thread;
    make_everything();
    start_threads();
    need(pthread_create(&thread, NULL, leave, NULL) == 0);
    for (;;)
        (void)pause();
}

static void deleters_run_in_a_destructor(void) {
    make_everything();
    releases_in_destructor = true;
}

static void release_in_an_exit_handler(void) {
    make_everything();
    need(atexit(release_everything) == 0);
}

/* The threads continue while handlers and destructors run. */
static void pause_a_bit(void) {
    const struct timespec some = {0, 3000000};
    (void)nanosleep(&some, NULL);
    need(atomic_load(&deleted) == 0);
}

static void threads_work_through_exit_handlers(void) {
    make_everything();
    need(atexit(pause_a_bit) == 0);
    start_threads();
}

static void a_forked_child_exits(void) {
    int how = -1;
    make_everything();
    need(atexit(release_everything) == 0);
    pid_t child = fork();
    need(child >= 0);
    if (child == 0) {
        (void)alarm(LIMIT);
        exit(0);
    }
    need(waitpid(child, &how, 0) == child && how == 0);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
#define SCENARIO(name)                                                                             \
    { #name, name }
    SCENARIO(return_with_objects_alive),  SCENARIO(return_with_threads_running),
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
    for (int i = 0; i < RUNS; i++) {
        int how = run_once(s->name);
        if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
            fail_with("run %d ended with %s %d", i, WIFSIGNALED(how) ? "signal" : "status",
                      WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[SCENARIOS];
    for (int i = 0; i < SCENARIOS; i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            (void)alarm(LIMIT);
            scenarios[i].run();
            return 0;
        }
        tests[i] = (struct CMUnitTest){scenarios[i].name, run_scenario, NULL, NULL,
                                       (void *)(uintptr_t)&scenarios[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
