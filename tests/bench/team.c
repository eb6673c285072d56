#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SPINS 50000 /* about 500 µs */

static pthread_t helper;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic bool working, stopping; /* change under the lock */

static struct {
    _Atomic int64_t next;
    int64_t tasks;
    void (*task)(void *arg, int64_t i);
    void *arg;
} job;

static void take_tasks(void) {
    for (int64_t i; (i = atomic_fetch_add(&job.next, 1)) < job.tasks;)
        job.task(job.arg, i);
}

static void set(_Atomic bool *flag, bool value) {
    pthread_mutex_lock(&lock);
    *flag = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Spins for a while before it sleeps, as the threads of a BLAS do, because it takes long to wake a
   thread that sleeps. */
static void wait_until(bool is_working) {
    for (int i = 0; i < SPINS && working != is_working && !stopping; i++) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&lock);
    while (working != is_working && !stopping)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void *help(void *unused) {
    (void)unused;
    pin(1);
    for (;;) {
        wait_until(true);
        if (stopping)
            return NULL;
        take_tasks();
        set(&working, false);
    }
}

void team_start(void) {
    stopping = false;
    must(pthread_create(&helper, NULL, help, NULL));
}

void team_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    (void)user;
    job.tasks = tasks;
    job.task = task;
    job.arg = arg;
    atomic_store(&job.next, 0);
    set(&working, true);
    take_tasks();
    wait_until(false);
}

void team_stop(void) {
    set(&stopping, true);
    pthread_join(helper, NULL);
}
