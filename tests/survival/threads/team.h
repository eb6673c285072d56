/* Runs threads for tests under ThreadSanitizer. */
#ifndef SB_TESTS_TEAM_H
#define SB_TESTS_TEAM_H

#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* A flag without memory ordering: ThreadSanitizer still reports races of the library. */
typedef _Atomic int quiet_flag;

static inline void quiet_raise(quiet_flag *flag) {
    atomic_store_explicit(flag, 1, memory_order_relaxed);
}

static inline void quiet_await(quiet_flag *flag) {
    while (!atomic_load_explicit(flag, memory_order_relaxed))
        sched_yield();
}

/* For threads: cmocka's assertions would call exit() while other threads run. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            expect_fails(#condition, __FILE__, __LINE__);                                          \
    } while (0)

static inline void expect_fails(const char *condition, const char *file, int line) {
    print_error("%s:%d: not true: %s\n", file, line, condition);
    _Exit(1);
}

#define TEAM_MAX 16

typedef void team_task(void *arg, int member);

struct team {
    team_task *task;
    void *arg;
    pthread_barrier_t start;
    _Atomic int next;
};

static inline void *team_member(void *user) {
    struct team *team = user;
    int member = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
    (void)pthread_barrier_wait(&team->start);
    team->task(team->arg, member);
    return NULL;
}

static inline void team_run(int members, team_task *task, void *arg) {
    struct team team = {.task = task, .arg = arg};
    pthread_t threads[TEAM_MAX];
    assert_true(members <= TEAM_MAX);
    assert_int_equal(pthread_barrier_init(&team.start, NULL, (unsigned)members), 0);
    for (int i = 0; i < members; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, team_member, &team), 0);
    for (int i = 0; i < members; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_barrier_destroy(&team.start);
}

struct hand_over {
    team_task *tasks[2];
    void *arg;
    quiet_flag passed;
};

static inline void hand_over_member(void *arg, int member) {
    struct hand_over *h = arg;
    if (member == 1)
        quiet_await(&h->passed);
    h->tasks[member](h->arg, member);
    quiet_raise(&h->passed);
}

/* Runs first(arg, 0) on one thread, then second(arg, 1) on another thread. */
static inline void hand_over(team_task *first, team_task *second, void *arg) {
    struct hand_over h = {.tasks = {first, second}, .arg = arg};
    team_run(2, hand_over_member, &h);
}

static inline double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
