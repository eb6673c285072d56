#include "format/file_write.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ATTEMPTS 100

static sb_status fail(const struct sb__file_write *file, int error, const char *what,
                      sb_error *err) {
    char shown[96];
    return sb__fail_io(err, error, "\"%s\" %s",
                       sb__escape(file->path, strlen(file->path), shown, sizeof shown), what);
}

/* The real path, so that a link to the file stays a link; a path to nothing is taken as it is. */
static bool resolve(struct sb__file_write *file, const char *path) {
    if (realpath(path, file->path))
        return true;
    if (errno != ENOENT)
        return false;
    int n = snprintf(file->path, sizeof file->path, "%s", path);
    errno = *path ? ENAMETOOLONG : ENOENT;
    return n > 0 && (size_t)n < sizeof file->path;
}

static int open_directory(struct sb__file_write *file) {
    char *slash = strrchr(file->path, '/');
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    file->name = slash ? slash + 1 : file->path;
    if (!slash)
        return open(".", flags);
    char kept = slash[1];
    slash[1] = '\0';
    int directory = open(file->path, flags);
    slash[1] = kept;
    return directory;
}

/* The permissions of the file that is there, 0666 without one. */
static bool target_mode(const struct sb__file_write *file, mode_t *out, bool *exists) {
    struct stat info;
    *exists = fstatat(file->directory, file->name, &info, 0) == 0;
    *out = *exists ? info.st_mode & 0777 : 0666;
    if (!*exists)
        return errno == ENOENT;
    errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    return S_ISREG(info.st_mode);
}

static int open_temporary(struct sb__file_write *file, mode_t mode) {
    static _Atomic unsigned long serial;
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        (void)snprintf(file->temporary, sizeof file->temporary, ".syncblob-%ld-%lu.tmp",
                       (long)getpid(), atomic_fetch_add(&serial, 1));
        int fd = openat(file->directory, file->temporary,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

sb_status sb__file_write_begin(struct sb__file_write *file, const char *path, sb_error *err) {
    char shown[96];
    mode_t mode;
    bool exists;
    sb_status st;
    file->error = 0;
    file->used = 0;
    if (!resolve(file, path))
        return sb__fail_io(err, errno, "\"%s\" cannot be written",
                           sb__escape(path, strlen(path), shown, sizeof shown));
    file->directory = open_directory(file);
    if (file->directory < 0)
        return fail(file, errno, "is in a directory that cannot be opened", err);
    if (!target_mode(file, &mode, &exists)) {
        st = fail(file, errno, "cannot be replaced: it is no regular file", err);
        goto close_directory;
    }
    file->fd = open_temporary(file, mode);
    if (file->fd < 0) {
        st = fail(file, errno, "cannot be written beside", err);
        goto close_directory;
    }
    /* The mask of the process was for a new file. */
    if (!exists || fchmod(file->fd, mode) == 0)
        return SB_OK;
    st = fail(file, errno, "has permissions that cannot be kept", err);
    sb__file_write_cancel(file);
    return st;

close_directory:
    (void)close(file->directory);
    return st;
}

static void write_out(struct sb__file_write *file, const unsigned char *bytes, size_t size) {
    while (size > 0 && !file->error) {
        ssize_t n = write(file->fd, bytes, size);
        if (n <= 0 && (n == 0 || errno != EINTR))
            file->error = n < 0 ? errno : EIO;
        if (n <= 0)
            continue;
        bytes += n;
        size -= (size_t)n;
    }
}

void sb__file_write_bytes(struct sb__file_write *file, const void *bytes, size_t size) {
    if (size > sizeof file->buffer - file->used) {
        write_out(file, file->buffer, file->used);
        file->used = 0;
    }
    if (size > sizeof file->buffer) {
        write_out(file, bytes, size);
        return;
    }
    if (size > 0)
        memcpy(file->buffer + file->used, bytes, size);
    file->used += size;
}

void sb__file_write_cancel(struct sb__file_write *file) {
    if (file->fd >= 0)
        (void)close(file->fd);
    (void)unlinkat(file->directory, file->temporary, 0);
    (void)close(file->directory);
}

static bool finish(struct sb__file_write *file) {
    write_out(file, file->buffer, file->used);
    if (!file->error && fsync(file->fd) != 0)
        file->error = errno;
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && !file->error)
        file->error = errno;
    if (!file->error &&
        renameat(file->directory, file->temporary, file->directory, file->name) != 0)
        file->error = errno;
    return file->error == 0;
}

sb_status sb__file_write_commit(struct sb__file_write *file, sb_error *err) {
    if (!finish(file)) {
        sb_status st = fail(file, file->error, "cannot be written", err);
        sb__file_write_cancel(file);
        return st;
    }
    /* Not every file system can: EINVAL. */
    int error = fsync(file->directory) != 0 && errno != EINVAL ? errno : 0;
    (void)close(file->directory);
    return error ? fail(file, error, "is in place, but may not outlive a power failure", err)
                 : SB_OK;
}
