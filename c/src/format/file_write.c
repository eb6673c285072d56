#include "format/file_write.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ATTEMPTS 100
#define MAX_LINKS     40 /* as many as Linux follows */

static sb_status fail(const struct sb__file_write *file, int error, const char *what,
                      sb_error *err) {
    char shown[96];
    return sb__fail_io(err, error, "\"%s\" %s",
                       sb__escape(file->path, strlen(file->path), shown, sizeof shown), what);
}

/* Puts in place of a link what it says: 1; 0: the path is no link, or nothing; -1: errno says. */
static int follow(struct sb__file_write *file) {
    char says[PATH_MAX];
    ssize_t n = readlink(file->path, says, sizeof says);
    if (n < 0)
        return errno == EINVAL || errno == ENOENT ? 0 : -1;
    const char *slash = strrchr(file->path, '/');
    size_t folder = slash && says[0] != '/' ? (size_t)(slash + 1 - file->path) : 0;
    if ((size_t)n >= sizeof file->path - folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(file->path + folder, says, (size_t)n);
    file->path[folder + (size_t)n] = '\0';
    return 1;
}

/* The real path, so that a link to the file stays a link, one to nothing too; a path to nothing is
   taken as it is. */
static bool resolve(struct sb__file_write *file, const char *path) {
    char real[PATH_MAX];
    size_t length = strlen(path);
    errno = length == 0 ? ENOENT : ENAMETOOLONG;
    if (length == 0 || length >= sizeof file->path)
        return false;
    memcpy(file->path, path, length + 1);
    for (int links = 0; !realpath(file->path, real); links++) {
        if (errno != ENOENT || links == MAX_LINKS)
            return false;
        int followed = follow(file);
        if (followed <= 0)
            return followed == 0;
    }
    memcpy(file->path, real, strlen(real) + 1);
    return true;
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

/* What is there, if anything is. */
static bool examine(const struct sb__file_write *file, struct stat *out, bool *exists) {
    *exists = fstatat(file->directory, file->name, out, 0) == 0;
    if (!*exists)
        return errno == ENOENT;
    errno = S_ISDIR(out->st_mode) ? EISDIR : EINVAL;
    return S_ISREG(out->st_mode);
}

/* No name of another process is in the way, not even of one with our number in a container. */
static int open_temporary(struct sb__file_write *file, mode_t mode) {
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        uint64_t name;
        if (getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name)
            return -1;
        (void)snprintf(file->temporary, sizeof file->temporary, ".syncblob-%016llx.tmp",
                       (unsigned long long)name);
        int fd = openat(file->directory, file->temporary,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* A group that is not the old one gets what all others had, and these get what the old group had at
   most, whose members are among them now. */
static mode_t without_group(mode_t mode) {
    const mode_t both = mode >> 3 & mode & 07;
    return (mode & 0700) | both << 3 | both;
}

/* Owner and group are kept where the process may. The owner comes last, who alone may change the
   permissions; until they are set the file is open to nobody else. It never runs as another user:
   the bits for that are not kept. */
static bool keep_permissions(const struct sb__file_write *file, const struct stat *old) {
    struct stat made;
    mode_t mode = old->st_mode & 0777;
    if (fstat(file->fd, &made) != 0)
        return false;
    if (made.st_gid != old->st_gid && fchown(file->fd, (uid_t)-1, old->st_gid) != 0)
        mode = without_group(mode);
    if (fchmod(file->fd, mode) != 0)
        return false;
    bool kept = made.st_uid == old->st_uid || fchown(file->fd, old->st_uid, (gid_t)-1) == 0;
    (void)kept; /* ours then, and as open as it was */
    return true;
}

sb_status sb__file_write_begin(struct sb__file_write *file, const char *path, sb_error *err) {
    char shown[96];
    struct stat old;
    bool exists;
    sb_status st;
    if (!resolve(file, path))
        return sb__fail_io(err, errno, "\"%s\" cannot be written",
                           sb__escape(path, strlen(path), shown, sizeof shown));
    file->directory = open_directory(file);
    if (file->directory < 0)
        return fail(file, errno, "is in a directory that cannot be opened", err);
    if (!examine(file, &old, &exists)) {
        st = fail(file, errno, "cannot be replaced: it is no regular file", err);
        goto close_directory;
    }
    file->fd = open_temporary(file, exists ? 0600 : 0666);
    if (file->fd < 0) {
        st = fail(file, errno, "cannot be written beside", err);
        goto close_directory;
    }
    if (!exists || keep_permissions(file, &old))
        return SB_OK;
    st = fail(file, errno, "has permissions that cannot be kept", err);
    sb__file_write_cancel(file);
    return st;

close_directory:
    (void)close(file->directory);
    return st;
}

static sb_status write_out(void *user, const void *bytes, size_t size, sb_error *err) {
    struct sb__file_write *file = user;
    const unsigned char *from = bytes;
    while (size > 0) {
        ssize_t n = write(file->fd, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(file, n < 0 ? errno : EIO, "cannot be written", err);
        from += n;
        size -= (size_t)n;
    }
    return SB_OK;
}

sb_sink sb__file_write_sink(struct sb__file_write *file) {
    return (sb_sink){sizeof(sb_sink), file, write_out};
}

void sb__file_write_cancel(struct sb__file_write *file) {
    if (file->fd >= 0)
        (void)close(file->fd);
    (void)unlinkat(file->directory, file->temporary, 0);
    (void)close(file->directory);
}

/* 0 or an errno. */
static int finish(struct sb__file_write *file) {
    int fd = file->fd, error = fsync(fd) != 0 ? errno : 0;
    file->fd = -1;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && renameat(file->directory, file->temporary, file->directory, file->name) != 0)
        error = errno;
    return error;
}

sb_status sb__file_write_commit(struct sb__file_write *file, sb_error *err) {
    int error = finish(file);
    if (error) {
        sb_status st = fail(file, error, "cannot be written", err);
        sb__file_write_cancel(file);
        return st;
    }
    /* Not every file system can: EINVAL. */
    error = fsync(file->directory) != 0 && errno != EINVAL ? errno : 0;
    (void)close(file->directory);
    return error ? fail(file, error, "is in place, but may not outlive a power failure", err)
                 : SB_OK;
}
