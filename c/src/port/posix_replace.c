/* A file replaced on Linux and macOS: by rename, in a directory that stays open. */
#include "port/files.h"

#ifndef _WIN32

#include "port/posix.h"
#include "port/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_ATTEMPTS 100
#define MAX_LINKS     40 /* as many as Linux follows */

_Static_assert(PATH_MAX <= SB__PATH_MAX, "what realpath writes has to fit");

/* Puts in place of a link what it says: 1; 0: the path is no link, or nothing; -1: errno says. */
static int follow(struct sb__replacement *to) {
    char says[PATH_MAX];
    ssize_t n = readlink(to->path, says, sizeof says);
    if (n < 0)
        return errno == EINVAL || errno == ENOENT ? 0 : -1;
    const char *slash = strrchr(to->path, '/');
    size_t folder = slash && says[0] != '/' ? (size_t)(slash + 1 - to->path) : 0;
    if ((size_t)n >= sizeof to->path - folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(to->path + folder, says, (size_t)n);
    to->path[folder + (size_t)n] = '\0';
    return 1;
}

/* The real path, so that a link to the file stays a link, one to nothing too; a path to nothing is
   taken as it is. */
static bool resolve(struct sb__replacement *to, const char *path) {
    char real[PATH_MAX];
    size_t length = strlen(path);
    errno = length == 0 ? ENOENT : ENAMETOOLONG;
    if (length == 0 || length >= sizeof to->path)
        return false;
    memcpy(to->path, path, length + 1);
    for (int links = 0; !realpath(to->path, real); links++) {
        if (errno != ENOENT || links == MAX_LINKS)
            return false;
        int followed = follow(to);
        if (followed <= 0)
            return followed == 0;
    }
    memcpy(to->path, real, strlen(real) + 1);
    return true;
}

/* With the slash behind it, nothing but a folder opens. */
static int open_folder(struct sb__replacement *to) {
    char *slash = strrchr(to->path, '/');
    int flags = O_RDONLY | O_CLOEXEC;
    to->name = slash ? slash + 1 : to->path;
    if (!slash)
        return open(".", flags);
    char kept = slash[1];
    slash[1] = '\0';
    int folder = open(to->path, flags);
    slash[1] = kept;
    return folder;
}

/* What is there, if anything is. */
static bool examine(const struct sb__replacement *to, struct stat *out, bool *exists) {
    *exists = fstatat((int)to->folder, to->name, out, 0) == 0;
    if (!*exists)
        return errno == ENOENT;
    errno = S_ISDIR(out->st_mode) ? EISDIR : EINVAL;
    return S_ISREG(out->st_mode);
}

/* No name of another process is in the way, not even of one with our number in a container. */
static int open_temporary(struct sb__replacement *to, mode_t mode) {
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        uint64_t name;
        if (!sb__random_number(&name))
            return -1;
        (void)snprintf(to->temporary, sizeof to->temporary, ".syncblob-%016llx.tmp",
                       (unsigned long long)name);
        int made = openat((int)to->folder, to->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

/* A group that is not the old one gets what all others had, and these get what the old group had at
   most, whose members are among them now. */
static mode_t without_group(mode_t mode) {
    const mode_t both = mode >> 3 & mode & 07;
    return (mode & 0700) | (mode_t)(both << 3) | both;
}

/* Owner and group are kept where the process may. The owner comes last, who alone may change the
   permissions; until they are set the file is open to nobody else. It never runs as another user:
   the bits for that are not kept. */
static bool keep_permissions(int file, const struct stat *old) {
    struct stat made;
    mode_t mode = old->st_mode & 0777;
    if (fstat(file, &made) != 0)
        return false;
    if (made.st_gid != old->st_gid && fchown(file, (uid_t)-1, old->st_gid) != 0)
        mode = without_group(mode);
    if (fchmod(file, mode) != 0)
        return false;
    bool kept = made.st_uid == old->st_uid || fchown(file, old->st_uid, (gid_t)-1) == 0;
    (void)kept; /* ours then, and as open as it was */
    return true;
}

int sb__replacement_begin(struct sb__replacement *to, const char *path, const char **what) {
    struct stat old;
    bool exists;
    int error;
    *what = "cannot be written";
    to->shown = path;
    if (!resolve(to, path))
        return errno;
    to->shown = to->path;
    *what = "is in a directory that cannot be opened";
    to->folder = open_folder(to);
    if (to->folder < 0)
        return errno;
    *what = "cannot be replaced: it is no regular file";
    if (!examine(to, &old, &exists))
        goto close_folder;
    *what = "cannot be written beside";
    to->file = open_temporary(to, exists ? 0600 : 0666);
    if (to->file < 0)
        goto close_folder;
    *what = "has permissions that cannot be kept";
    if (!exists || keep_permissions((int)to->file, &old))
        return 0;
    error = errno;
    sb__replacement_cancel(to);
    return error;

close_folder:
    error = errno;
    (void)close((int)to->folder);
    return error;
}

int sb__replacement_write(struct sb__replacement *to, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    while (size > 0) {
        ssize_t n = write((int)to->file, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        from += n;
        size -= (size_t)n;
    }
    return 0;
}

void sb__replacement_cancel(struct sb__replacement *to) {
    if (to->file >= 0)
        (void)close((int)to->file);
    (void)unlinkat((int)to->folder, to->temporary, 0);
    (void)close((int)to->folder);
}

static int put_in_place(struct sb__replacement *to) {
    int file = (int)to->file, folder = (int)to->folder;
    int error = sb__sync(file) != 0 ? errno : 0;
    to->file = -1;
    if (close(file) != 0 && !error)
        error = errno;
    if (!error && renameat(folder, to->temporary, folder, to->name) != 0)
        error = errno;
    return error;
}

int sb__replacement_commit(struct sb__replacement *to, bool *in_place) {
    int error = put_in_place(to);
    *in_place = error == 0;
    if (error) {
        sb__replacement_cancel(to);
        return error;
    }
    /* Not every file system can: EINVAL. */
    error = fsync((int)to->folder) != 0 && errno != EINVAL ? errno : 0;
    (void)close((int)to->folder);
    return error;
}

#endif
