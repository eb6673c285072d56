// Functions of newer versions of wasi-libc, which Rust's standard library calls. Debian 12 has a
// version of 2022.
#include <errno.h>
#include <stddef.h>

int *__errno_location(void);
char *realpath(const char *path, char *resolved);

int *__errno_location(void) {
    return &errno;
}

// WASI cannot resolve paths.
char *realpath(const char *path, char *resolved) {
    (void)path;
    (void)resolved;
    errno = ENOTSUP;
    return NULL;
}
