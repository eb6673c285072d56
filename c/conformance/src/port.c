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

double sb__kit_seconds(void) {
    LARGE_INTEGER count, frequency;
    (void)QueryPerformanceCounter(&count);
    (void)QueryPerformanceFrequency(&frequency);
    return (double)count.QuadPart / (double)frequency.QuadPart;
}

#else

#include <pthread.h>
#include <stddef.h>
#include <time.h>

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

double sb__kit_seconds(void) {
    struct timespec now;
    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
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
