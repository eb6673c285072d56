/* Simulates a faulty file system below DISK_FOLDER, for a program with this library in LD_PRELOAD.

   DISK_LACKS    words: links, noreplace, modes, sync, lists, folders (which cannot be opened)
   DISK_FAIL     CALL:ERRNO:N, the N-th CALL fails with ERRNO; a failed "close" closes the file
   DISK_ONE_IN   N, at random one call in N fails
   DISK_SEED     the seed of DISK_ONE_IN
   DISK_SIGNAL   CALL:NUMBER, each CALL first raises signal NUMBER
   DISK_LOG      a file, gets a line for each failure and each signal

   The array `calls` lists the calls, and the words that make them fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NEXT(function) ((__typeof__(function) *)dlsym(RTLD_NEXT, #function))

enum call {
    OPEN,
    WRITE,
    FSYNC,
    SYNCFOLDER,
    CLOSE,
    RENAME,
    NOREPLACE,
    LINK,
    CHMOD,
    CHOWN,
    SETLIST,
    GETLIST,
    CALLS
};

static const struct {
    const char *name, /* as in DISK_FAIL, DISK_SIGNAL and DISK_LOG */
        *lacking;     /* the word in DISK_LACKS that makes this call fail, or NULL */
    int lacks;        /* the errno if DISK_LACKS contains the word */
    int errors[4];    /* the errnos of random failures */
} calls[CALLS] = {
    [OPEN] = {"open", NULL, 0, {EINTR, EMFILE, ENOSPC, EIO}},
    [WRITE] = {"write", NULL, 0, {EINTR, EINTR, ENOSPC, EIO}},
    [FSYNC] = {"fsync", "sync", EINVAL, {EINTR, EINVAL, ENOSPC, EIO}},
    [SYNCFOLDER] = {"syncfolder", "sync", EINVAL, {EINTR, EINVAL, ENOSPC, EIO}},
    [CLOSE] = {"close", NULL, 0, {EINTR, EDQUOT, ENOSPC, EIO}},
    [RENAME] = {"rename", NULL, 0, {EINTR, EACCES, ENOSPC, EIO}},
    [NOREPLACE] = {"noreplace", "noreplace", EINVAL, {EINTR, EINVAL, ENOSYS, EIO}},
    [LINK] = {"link", "links", EPERM, {EINTR, EMLINK, EPERM, EIO}},
    [CHMOD] = {"chmod", "modes", EPERM, {EINTR, EPERM, EROFS, EIO}},
    [CHOWN] = {"chown", "modes", EPERM, {EINTR, EPERM, EROFS, EIO}},
    [SETLIST] = {"setlist", "lists", ENOTSUP, {EINTR, EPERM, ENOTSUP, EIO}},
    [GETLIST] = {"getlist", "lists", ENOTSUP, {EINTR, ENODATA, ENOTSUP, EIO}},
};

static bool is_within(const char *path) {
    const char *folder = getenv("DISK_FOLDER");
    const size_t length = folder ? strlen(folder) : 0;
    return length > 0 && strncmp(path, folder, length) == 0 &&
           (path[length] == '\0' || path[length] == '/');
}

static bool is_file_within(int file) {
    char link[64], path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0)
        return false;
    path[size] = '\0';
    return is_within(path);
}

static bool is_path_within(int folder, const char *path) {
    char here[PATH_MAX];
    if (path[0] == '/')
        return is_within(path);
    if (folder != AT_FDCWD)
        return is_file_within(folder);
    return getcwd(here, sizeof here) && is_within(here);
}

static bool is_folder(int file) {
    struct stat info;
    return fstat(file, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool has_word(const char *name, const char *word) {
    const char *words = getenv(name);
    return words && word && strstr(words, word);
}

static uint32_t draw(void) {
    static uint64_t state;
    if (state == 0)
        state = strtoull(getenv("DISK_SEED"), NULL, 10) * 2654435761U + 1;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 33);
}

static int chosen(enum call call) {
    static long made[CALLS];
    const char *fail = getenv("DISK_FAIL"), *one_in = getenv("DISK_ONE_IN");
    char name[32];
    int error;
    long nth;
    made[call]++;
    if (calls[call].lacking && has_word("DISK_LACKS", calls[call].lacking))
        return calls[call].lacks;
    if (fail && sscanf(fail, "%31[a-z]:%d:%ld", name, &error, &nth) == 3 &&
        strcmp(name, calls[call].name) == 0 && nth == made[call])
        return error;
    if (one_in && draw() % (uint32_t)atoi(one_in) == 0)
        return calls[call].errors[draw() % 4];
    return 0;
}

static void put_in_log(enum call call, int error) {
    const char *path = getenv("DISK_LOG");
    char line[64];
    if (!path)
        return;
    const int log = NEXT(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int size = snprintf(line, sizeof line, "%s %d\n", calls[call].name, error);
    if (log >= 0) {
        (void)!NEXT(write)(log, line, (size_t)size);
        (void)NEXT(close)(log);
    }
}

static void send_signal(enum call call) {
    const char *signal = getenv("DISK_SIGNAL");
    char name[32];
    int number;
    if (signal && sscanf(signal, "%31[a-z]:%d", name, &number) == 2 &&
        strcmp(name, calls[call].name) == 0) {
        put_in_log(call, 0);
        (void)raise(number);
    }
}

static bool fails(enum call call, bool is_ours) {
    const int error = is_ours ? chosen(call) : 0;
    if (is_ours)
        send_signal(call);
    if (error) {
        put_in_log(call, error);
        errno = error;
    }
    return error != 0;
}

static bool opening_fails(int folder, const char *path, int flags) {
    struct stat info;
    if (!is_path_within(folder, path))
        return false;
    const bool is_directory = fstatat(folder, path, &info, 0) == 0 && S_ISDIR(info.st_mode);
    if (is_directory && has_word("DISK_LACKS", "folders")) {
        put_in_log(OPEN, EACCES);
        errno = EACCES;
        return true;
    }
    return (is_directory || (flags & O_CREAT)) && fails(OPEN, true);
}

#define DEFINE_OPEN(name, folder, arguments, ...)                                                  \
    int name(__VA_ARGS__, int flags, ...) {                                                        \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        const mode_t mode = flags & O_CREAT ? (mode_t)va_arg(more, int) : 0;                       \
        va_end(more);                                                                              \
        return opening_fails(folder, path, flags) ? -1 : NEXT(name) arguments;                     \
    }
DEFINE_OPEN(open, AT_FDCWD, (path, flags, mode), const char *path)
DEFINE_OPEN(open64, AT_FDCWD, (path, flags, mode), const char *path)
DEFINE_OPEN(openat, folder, (folder, path, flags, mode), int folder, const char *path)

/* A failure with EINTR first writes half of the bytes, as if a signal had interrupted the write. */
ssize_t write(int file, const void *bytes, size_t size) {
    if (!fails(WRITE, is_file_within(file)))
        return NEXT(write)(file, bytes, size);
    return errno == EINTR && size > 1 ? NEXT(write)(file, bytes, size / 2) : -1;
}

int close(int file) {
    if (!is_file_within(file) || is_folder(file))
        return NEXT(close)(file);
    const int status = NEXT(close)(file);
    return fails(CLOSE, true) ? -1 : status;
}

/* Programs built for older C libraries call renameat2 through syscall. */
long syscall(long number, ...) {
    va_list more;
    long args[6];
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_renameat2 &&
        fails(NOREPLACE, is_path_within((int)args[2], (const char *)(uintptr_t)args[3])))
        return -1;
    return NEXT(syscall)(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

#define DEFINE(type, name, parameters, call, is_within, ...)                                       \
    type name parameters {                                                                         \
        return fails(call, is_within) ? -1 : NEXT(name)(__VA_ARGS__);                              \
    }
DEFINE(int, fsync, (int file), is_folder(file) ? SYNCFOLDER : FSYNC, is_file_within(file), file)
DEFINE(int, rename, (const char *from, const char *to), RENAME, is_path_within(AT_FDCWD, to), from,
       to)
DEFINE(int, renameat, (int old, const char *from, int folder, const char *to), RENAME,
       is_path_within(folder, to), old, from, folder, to)
DEFINE(int, linkat, (int old, const char *from, int folder, const char *to, int flags), LINK,
       is_path_within(folder, to), old, from, folder, to, flags)
DEFINE(int, fchmod, (int file, mode_t mode), CHMOD, is_file_within(file), file, mode)
DEFINE(int, fchown, (int file, uid_t user, gid_t group), CHOWN, is_file_within(file), file, user,
       group)
DEFINE(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), GETLIST,
       is_path_within(AT_FDCWD, path), path, name, value, size)
DEFINE(ssize_t, fgetxattr, (int file, const char *name, void *value, size_t size), GETLIST,
       is_file_within(file), file, name, value, size)
DEFINE(int, fsetxattr, (int file, const char *name, const void *value, size_t size, int flags),
       SETLIST, is_file_within(file), file, name, value, size, flags)
DEFINE(int, fremovexattr, (int file, const char *name), SETLIST, is_file_within(file), file, name)
