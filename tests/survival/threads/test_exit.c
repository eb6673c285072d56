/* Ends a program in many states, repeatedly, and checks that it neither crashes nor hangs. Each
   scenario runs this program again with the scenario's name. */
#include "child.h"
#include "estate.h"
#include "team.h"

#include <errno.h>
#include <spawn.h>

enum { THREADS = 4 };
#define RUNS (test_is_quick() || IS_SANITIZED ? 5 : 100)

/* The objects that are alive at exit. A failed assertion ends only the process of its scenario. */
static struct estate estates[2];

static void make_everything(void) {
    for (int i = 0; i < 2; i++)
        estate_open(&estates[i]);
    assert_ok(sb_sim_set_schedule(estates[1].context, SB_SIM_RANDOM, 1, &err));
}

static void release_everything(void) {
    for (int i = 0; i < 2; i++) {
        estate_release(&estates[i]);
        child_wants(estates[i].host.deleted == 1 && estates[i].device.deleted == 1);
    }
}

/* --- threads that do not end ----------------------------------------------------------------- */

static _Atomic int busy;

static void *work_for_ever(void *user) {
    const struct estate *e = user;
    const void *in;
    for (;;) {
        use_new_memory(e->context, e->stream, LARGE);
        use_new_memory(NULL, e->stream, LARGE);
        ignore(sb_mem_cpu(e->pulled, &in, NULL));
        ignore(sb_mem_gpu(e->pinned, &in, NULL));
        sb_context_trim(e->context);
        atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
    }
    return NULL;
}

static void start_threads(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        child_wants(pthread_create(&thread, NULL, work_for_ever, &estates[i % 2]) == 0);
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
    child_wants(estates[0].host.deleted == 0);
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
