#include "team.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static pthread_t helper;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool working, stopping; /* under the lock */

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

static void *help(void *unused) {
    (void)unused;
    pin(1);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!working && !stopping)
            pthread_cond_wait(&changed, &lock);
        if (stopping)
            break;
        pthread_mutex_unlock(&lock);
        take_tasks();
        pthread_mutex_lock(&lock);
        working = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void team_start(void) {
    stopping = false;
    must(pthread_create(&helper, NULL, help, NULL));
}

void team_run(void *user, int64_t tasks, void (*task)(void *arg, int64_t i), void *arg) {
    (void)user;
    pthread_mutex_lock(&lock);
    job.tasks = tasks;
    job.task = task;
    job.arg = arg;
    atomic_store(&job.next, 0);
    working = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    take_tasks();
    pthread_mutex_lock(&lock);
    while (working)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void team_stop(void) {
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(helper, NULL);
}
