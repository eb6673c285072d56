#include "port.h"

#include <stdio.h>
#include <time.h>

uint64_t sb__comm_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SB__COMM_SECOND + (uint64_t)t.tv_nsec;
}

void sb__comm_sleep(uint64_t nanoseconds) {
    const struct timespec t = {(time_t)(nanoseconds / SB__COMM_SECOND),
                               (long)(nanoseconds % SB__COMM_SECOND)};
    (void)nanosleep(&t, NULL); /* a shorter sleep is harmless: callers poll */
}

#ifdef _WIN32

#include <string.h>
#include <windows.h>

int64_t sb__comm_process(void) {
    return 0;
}

void *sb__comm_library_open(const char *name, char *reason, size_t capacity) {
    void *library = (void *)LoadLibraryA(name);
    if (!library)
        (void)snprintf(reason, capacity, "%s: error %lu of Windows", name, GetLastError());
    return library;
}

void *sb__comm_library_symbol(void *library, const char *name) {
    void *address = NULL;
    const FARPROC function = GetProcAddress((HMODULE)library, name);
    memcpy(&address, &function, sizeof address);
    return address;
}

void sb__comm_library_close(void *library) {
    (void)FreeLibrary((HMODULE)library);
}

#else

#include <dlfcn.h>
#include <unistd.h>

int64_t sb__comm_process(void) {
    return getpid();
}

void *sb__comm_library_open(const char *name, char *reason, size_t capacity) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        (void)snprintf(reason, capacity, "%s", dlerror());
    return library;
}

void *sb__comm_library_symbol(void *library, const char *name) {
    return dlsym(library, name);
}

void sb__comm_library_close(void *library) {
    (void)dlclose(library);
}

#endif
