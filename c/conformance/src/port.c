#include "port.h"

struct started {
    void (*task)(void *arg);
    void *arg;
};

#ifdef _WIN32

#include <windows.h>

typedef HANDLE thread;

static DWORD WINAPI run(void *arg) {
    const struct started *started = arg;
    started->task(started->arg);
    return 0;
}

static bool start(thread *out, struct started *started) {
    *out = CreateThread(NULL, 0, run, started, 0, NULL);
    return *out != NULL;
}

static void join(thread started) {
    (void)WaitForSingleObject(started, INFINITE);
    (void)CloseHandle(started);
}

#else

#include <pthread.h>
#include <stddef.h>

typedef pthread_t thread;

static void *run(void *arg) {
    const struct started *started = arg;
    started->task(started->arg);
    return NULL;
}

static bool start(thread *out, struct started *started) {
    return pthread_create(out, NULL, run, started) == 0;
}

static void join(thread started) {
    (void)pthread_join(started, NULL);
}

#endif

bool sb__kit_run_beside(void (*task)(void *arg), void *own, void *other) {
    struct started started = {task, other};
    thread beside;
    if (!start(&beside, &started))
        return false;
    if (own)
        task(own);
    join(beside);
    return true;
}
