/* Linux, macOS and WASI: time, aligned memory, and reading files. */
#include "port/files.h" /* IWYU pragma: keep */

#ifndef _WIN32

#include "port/pages.h"
#include "port/posix.h"
#include "port/threads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void sb__sleep_milliseconds(uint32_t milliseconds) {
    const struct timespec pause = {.tv_sec = (time_t)(milliseconds / 1000),
                                   .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    (void)nanosleep(&pause, NULL); /* same: callers poll */
}

uint64_t sb__now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t sb__thread_number(void) {
    static _Atomic int64_t count;
    static _Thread_local int64_t number;
    if (!number)
        number = ++count;
    return number;
}

void *sb__aligned_alloc(size_t alignment, size_t bytes) {
    return aligned_alloc(alignment, bytes);
}

void sb__aligned_free(void *block) {
    free(block);
}

/* --- files ------------------------------------------------------------------------------ */

#define LEASE_MILLISECONDS 60000 /* the kernel breaks a lease after 45 s */

/* If another process has a lease on a regular file, open fails with EAGAIN. This function then
   waits a moment and returns true, so that the caller retries. */
static bool wait_for_lease(const char *path, uint32_t *waited) {
    const uint32_t pause = *waited < 16 ? *waited + 1 : 16;
    struct stat info;
    if (errno != EAGAIN || *waited >= LEASE_MILLISECONDS)
        return false;
    const bool is_leased = fstatat(AT_FDCWD, path, &info, 0) == 0 && S_ISREG(info.st_mode);
    errno = EAGAIN;
    if (is_leased)
        sb__sleep_milliseconds(pause);
    *waited += pause;
    return is_leased;
}

int sb__file_open(const char *path, sb__file *out) {
    uint32_t waited = 0;
    int descriptor;
    do /* O_NONBLOCK: opening a pipe must not block */
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (descriptor < 0 && (errno == EINTR || wait_for_lease(path, &waited)));
    *out = descriptor;
    return descriptor < 0 ? errno : 0;
}

static uint64_t nanoseconds(struct timespec time) {
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int sb__file_examine(sb__file file, struct sb__file_info *out) {
    struct stat info;
    int error;
    SB__RETRY(error, fstat((int)file, &info));
    if (error != 0)
        return errno;
    out->size = (uint64_t)info.st_size;
    /* The version also differs if only the size differs. */
    out->version = nanoseconds(sb__modified(&info)) * 0x9E3779B97F4A7C15 + out->size;
    out->changed = nanoseconds(sb__changed(&info));
    out->names = (uint64_t)info.st_nlink;
    out->misfit = S_ISREG(info.st_mode) ? 0 : S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    return 0;
}

int sb__file_read_at(sb__file file, uint64_t offset, void *to, size_t bytes, size_t *got) {
    ssize_t n;
    do
        n = pread((int)file, to, bytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    *got = n < 0 ? 0 : (size_t)n;
    return n < 0 ? errno : 0;
}

void sb__file_close(sb__file file) {
    (void)close((int)file);
}

#endif
