/* Runs threads for tests. The hand-overs here use no memory ordering. The library alone must order
   what one thread does and another observes, or ThreadSanitizer reports a race. */
#ifndef SB_TESTS_TEAM_H
#define SB_TESTS_TEAM_H

#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* A flag without memory ordering. */
typedef _Atomic int quiet_flag;

static inline void quiet_raise(quiet_flag *flag) {
    atomic_store_explicit(flag, 1, memory_order_relaxed);
}

static inline void quiet_await(quiet_flag *flag) {
    while (!atomic_load_explicit(flag, memory_order_relaxed))
        sched_yield();
}

struct hand_over {
    void (*first)(void *arg);
    void (*second)(void *arg);
    void *arg;
    quiet_flag passed;
};

static inline void *hand_over_first(void *user) {
    struct hand_over *h = user;
    h->first(h->arg);
    quiet_raise(&h->passed);
    return NULL;
}

static inline void *hand_over_second(void *user) {
    struct hand_over *h = user;
    quiet_await(&h->passed);
    h->second(h->arg);
    return NULL;
}

/* Runs first(arg) on one thread, then second(arg) on another. */
static inline void hand_over(void (*first)(void *arg), void (*second)(void *arg), void *arg) {
    struct hand_over h = {.first = first, .second = second, .arg = arg};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, hand_over_first, &h), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, hand_over_second, &h), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

#define TEAM_MAX 16

struct team {
    void (*task)(void *arg, int member);
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

/* Runs task(arg, 0) to task(arg, members - 1) at once, each on a separate thread. */
static inline void team_run(int members, void (*task)(void *arg, int member), void *arg) {
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

static inline double stress_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns how many seconds a test of random calls runs: SYNCBLOB_STRESS_SECONDS, or `otherwise`. */
static inline double stress_seconds(double otherwise) {
    const char *text = getenv("SYNCBLOB_STRESS_SECONDS");
    double given = text ? strtod(text, NULL) : 0;
    return given > 0 ? given : otherwise;
}

#endif
