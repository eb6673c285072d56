// Functions that Rust's standard library calls, but that Debian 12's wasi-libc, of 2022, lacks.
// WASI has no threads and cannot resolve paths, so pthread_create and realpath fail.
#include <errno.h>
#include <stddef.h>

int *__errno_location(void);
char *realpath(const char *path, char *resolved);
int pthread_attr_destroy(void *attr);
int pthread_attr_init(void *attr);
int pthread_attr_setstacksize(void *attr, size_t size);
int pthread_create(void **thread, const void *attr, void *(*run)(void *), void *arg);
int pthread_detach(void *thread);
int pthread_join(void *thread, void **result);

int *__errno_location(void) {
    return &errno;
}

char *realpath(const char *path, char *resolved) {
    (void)path, (void)resolved;
    errno = ENOTSUP;
    return NULL;
}

int pthread_attr_destroy(void *attr) {
    (void)attr;
    return 0;
}

int pthread_attr_init(void *attr) {
    (void)attr;
    return 0;
}

int pthread_attr_setstacksize(void *attr, size_t size) {
    (void)attr, (void)size;
    return 0;
}

int pthread_create(void **thread, const void *attr, void *(*run)(void *), void *arg) {
    (void)thread, (void)attr, (void)run, (void)arg;
    return ENOTSUP;
}

int pthread_detach(void *thread) {
    (void)thread;
    return ENOTSUP;
}

int pthread_join(void *thread, void **result) {
    (void)thread, (void)result;
    return ENOTSUP;
}
