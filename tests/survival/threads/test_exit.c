/* Tests that processes in many states exit without a crash or a hang. */
#include "child.h"
#include "estate.h"
#include "team.h"

enum { THREADS = 4 };
#define RUNS (test_is_quick() || IS_SANITIZED ? 5 : 100)

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

/* The scenarios do not destroy all objects. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { /* NOLINT: AddressSanitizer prescribes the name */
    return "detect_leaks=0";
}

static void run_and_exit(void *arg) {
    void (*const *scenario)(void) = arg;
    (*scenario)();
    exit(0);
}

#define SCENARIO(name)                                                                             \
    static void name##_scenario(void);                                                             \
    TEST(name) {                                                                                   \
        void (*scenario)(void) = name##_scenario;                                                  \
        for (int i = 0; i < RUNS; i++) {                                                           \
            (void)fflush(NULL); /* otherwise the child would also print the buffered text */       \
            in_child(run_and_exit, &scenario);                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name##_scenario(void)

static bool releases_in_destructor;

__attribute__((destructor)) static void at_the_very_end(void) {
    if (releases_in_destructor)
        release_everything();
}

static void leave(void *arg, int member) {
    exit(0);
}

SCENARIO(deleters_run_in_a_destructor) {
    make_everything();
    releases_in_destructor = true;
}

/* Sleeps, so that the scenario's threads keep using the library during the exit. */
static void pause_a_bit(void) {
    const struct timespec some = {0, 3000000};
    (void)nanosleep(&some, NULL);
    child_wants(estates[0].host.deleted == 0);
}

SCENARIO(threads_work_through_an_exit_from_another_thread) {
    make_everything();
    child_wants(atexit(pause_a_bit) == 0);
    start_threads();
    team_run(1, leave, NULL);
}

static void end(void *arg) {
    exit(0);
}

SCENARIO(a_process_and_its_forked_child_release_in_exit_handlers) {
    make_everything();
    child_wants(atexit(release_everything) == 0);
    in_child(end, NULL);
}
