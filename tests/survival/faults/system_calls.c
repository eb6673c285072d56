#include "system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct system_fault system_fault;
int refused_fsync;
bool no_luck;

void arm_system_call(enum system_mode mode, int n) {
    system_fault = (struct system_fault){.armed = true, .left = n, .mode = mode, .name = ""};
}

bool disarm_system_call(void) {
    system_fault.armed = false;
    return system_fault.fired;
}

/* Whether the call that is being made is the one. */
static bool fires(const char *name) {
    if (!system_fault.armed || --system_fault.left != 0)
        return false;
    system_fault.fired = true;
    system_fault.name = name;
    if (system_fault.mode == KILLS)
        (void)kill(getpid(), SIGKILL);
    return true;
}

static bool fails(const char *name) {
    const bool fired = fires(name);
    if (fired)
        errno = system_fault.mode == INTERRUPTED ? EINTR : EIO;
    return fired;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) {
    if (fires("pread")) {
        if (system_fault.mode == ENDS) {
            errno = EINTR; /* of an earlier call */
            return 0;
        }
        if (system_fault.mode == SHORT && size > 1)
            return syscall(SYS_pread64, fd, buffer, size - 1, offset);
        errno = system_fault.mode == INTERRUPTED ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, buffer, size, offset);
}

ssize_t write(int fd, const void *buffer, size_t size) {
    if (fires("write")) {
        if (system_fault.mode == SHORT && size > 1)
            return syscall(SYS_write, fd, buffer, size - 1);
        if (system_fault.mode == NOTHING)
            return 0;
        errno = system_fault.mode == INTERRUPTED ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_write, fd, buffer, size);
}

int open(const char *path, int flags, ...) {
    if (fails("open"))
        return -1;
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    if (fails("openat"))
        return -1;
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int fsync(int fd) {
    if (refused_fsync > 0 && --refused_fsync == 0) {
        errno = EINVAL;
        return -1;
    }
    (void)fd; /* no test here is about the disk */
    return fails("fsync") ? -1 : 0;
}

int fchmod(int fd, mode_t mode) {
    return fails("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t owner, gid_t group) {
    return fails("fchown") ? -1 : (int)syscall(SYS_fchown, fd, owner, group);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    if (no_luck) {
        memset(buffer, 0, size);
        return (ssize_t)size;
    }
    return fails("getrandom") ? -1 : syscall(SYS_getrandom, buffer, size, flags);
}

ssize_t readlinkat(int folder, const char *path, char *buffer, size_t size) {
    return fails("readlinkat") ? -1 : syscall(SYS_readlinkat, folder, path, buffer, size);
}

int unlinkat(int folder, const char *path, int flags) {
    return fails("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size) {
    return fails("lgetxattr") ? -1 : syscall(SYS_lgetxattr, path, name, value, size);
}

int fremovexattr(int fd, const char *name) {
    return fails("fremovexattr") ? -1 : (int)syscall(SYS_fremovexattr, fd, name);
}

int renameat(int from, const char *old, int to, const char *new) {
    if (fails("renameat"))
        return -1;
    return (int)syscall(SYS_renameat, from, old, to, new);
}

/* Closes in any case, as the kernel does. */
int close(int fd) {
    int closed = (int)syscall(SYS_close, fd);
    return fails("close") ? -1 : closed;
}

/* ThreadSanitizer must see every mapping. */
#if !defined(__SANITIZE_THREAD__)
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && fails("mmap"))
        return MAP_FAILED;
#ifdef __s390x__ /* whose call takes the place of its arguments */
    const long arguments[] = {(long)address, (long)size, protection, flags, fd, offset};
    return (void *)syscall(SYS_mmap, arguments);
#else
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
#endif
}
#endif

#if defined(SYS_newfstatat)
int fstat(int fd, struct stat *out) {
    if (fails("fstat"))
        return -1;
    return (int)syscall(SYS_newfstatat, fd, "", out, 0x1000 /* AT_EMPTY_PATH */);
}

int fstatat(int directory, const char *path, struct stat *out, int flags) {
    if (fails("fstatat"))
        return -1;
    return (int)syscall(SYS_newfstatat, directory, path, out, flags);
}
#endif
