/* Replaces a file on Linux and macOS by a rename within the file's folder, which is kept open. */
#include "port/files.h"

#if !defined(_WIN32) && !defined(__wasi__)

#include "port/posix.h"
#include "port/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_ATTEMPTS 100
#define MAX_LINKS     40 /* as in Linux */

_Static_assert(PATH_MAX <= SB__PATH_MAX, "the text of a link has to fit");

static void show(struct sb__replacement *to, const char *path) {
    (void)snprintf(to->shown, sizeof to->shown, "%.*s", (int)sizeof to->shown - 1, path);
}

/* --- resolving the path ----------------------------------------------------------------- */

static char *name_in(char *path) {
    char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Opens the folder of a path: the part up to the last slash. The slash at the end makes the call
   fail if the part does not name a folder. The kernel resolves links in the part. */
static int open_folder(char *path) {
    char *name = name_in(path), kept = *name;
    *name = '\0';
    int folder = sb__folder_open(name == path ? "." : path);
    *name = kept;
    return folder;
}

/* If the path names a link, replaces its last component by the link's text and returns 1. Returns 0
   if the path is not a link or does not exist. Returns -1 on failure, with the reason in errno. */
static int follow(int folder, char path[SB__PATH_MAX], const char **what) {
    char text[PATH_MAX], *name = name_in(path);
    ssize_t n;
    SB__RETRY(n, readlinkat(folder, name, text, sizeof text));
    if (n < 0)
        return errno == EINVAL || errno == ENOENT ? 0 : -1;
    if (sb__links_to_open_files(folder)) {
        *what = "leads to an open file, not to a name in a directory; write to a sink instead";
        errno = EINVAL;
        return -1;
    }
    char *from = n > 0 && text[0] == '/' ? path : name;
    if (n >= path + SB__PATH_MAX - from) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(from, text, (size_t)n);
    from[n] = '\0';
    return 1;
}

/* Resolves links and opens the target's folder. Links, even dangling links, are kept. */
static int resolve(struct sb__replacement *to, char path[SB__PATH_MAX], const char **what) {
    for (int links = 0;; links++) {
        *what = "is in a directory that cannot be opened";
        int folder = open_folder(path);
        to->folder = folder;
        if (folder < 0)
            return errno;
        *what = "cannot be written";
        const int followed = follow(folder, path, what);
        if (followed == 0)
            return 0;
        const int error = followed < 0 ? errno : links == MAX_LINKS ? ELOOP : 0;
        (void)close(folder);
        if (error)
            return error;
    }
}

/* Checks whether the target can be replaced, and whether it exists. */
static bool examine(const struct sb__replacement *to, struct stat *out, bool *exists) {
    int error;
    *exists = false;
    errno = EISDIR;
    if (!*to->name) /* a path that ends with a slash names a folder */
        return false;
    SB__RETRY(error, fstatat((int)to->folder, to->name, out, AT_SYMLINK_NOFOLLOW));
    if (error != 0)
        return errno == ENOENT;
    *exists = true;
    errno = S_ISDIR(out->st_mode) ? EISDIR : EINVAL;
    return S_ISREG(out->st_mode);
}

/* --- the temporary file ------------------------------------------------------------------- */

static bool draw(uint64_t *name) {
    bool drawn;
    do
        drawn = sb__random_number(name);
    while (!drawn && errno == EINTR);
    return drawn;
}

/* Creates the temporary file. The random name does not collide with names of other processes, even
   in containers with equal process ids. */
static int open_temporary(struct sb__replacement *to, mode_t mode) {
    uint64_t name;
    for (int i = 0; i < NAME_ATTEMPTS && draw(&name); i++) {
        (void)snprintf(to->temporary, sizeof to->temporary, ".syncblob-%016llx.tmp",
                       (unsigned long long)name);
        int made = openat((int)to->folder, to->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (made >= 0)
            return made;
        to->temporary[0] = '\0'; /* cancel must not remove another program's file */
        if (errno != EEXIST && errno != EINTR)
            return -1;
    }
    return -1;
}

/* Sets the mode of a file. Tolerates file systems with one fixed mode for all files. */
static bool set_mode(int file, mode_t mode) {
    struct stat info;
    int error;
    SB__RETRY(error, fstat(file, &info));
    if (error != 0 || (info.st_mode & 07777) == mode)
        return error == 0;
    SB__RETRY(error, fchmod(file, mode));
    return error == 0;
}

static bool give(int file, uid_t owner, gid_t group) {
    int error;
    SB__RETRY(error, fchown(file, owner, group));
    return error == 0;
}

/* Copies the old file's permissions, and its owner and group if the process may set them. The owner
   is set last, since only the owner may change permissions. Until the owner is set, no other user
   has access. The set-user-ID and set-group-ID bits are not copied. */
static bool keep_permissions(int file, const struct stat *old, const char *path) {
    struct stat made;
    mode_t mode = old->st_mode & 0777;
    int error;
    SB__RETRY(error, fstat(file, &made));
    if (error != 0)
        return false;
    const bool same_group = made.st_gid == old->st_gid || give(file, (uid_t)-1, old->st_gid);
    if (!sb__keep_access_list(file, path, same_group, &mode) || !set_mode(file, mode))
        return false;
    if (made.st_uid != old->st_uid)
        (void)give(file, old->st_uid, (gid_t)-1); /* on failure the process's user remains the
                                                     owner */
    return true;
}

static int open_beside(struct sb__replacement *to, const char *path, const char **what) {
    struct stat old;
    bool exists;
    *what = "cannot be replaced: it is not a regular file";
    if (!examine(to, &old, &exists))
        return errno;
    *what = "needs a temporary file in the same directory";
    to->file = open_temporary(to, exists ? 0600 : 0666);
    if (to->file < 0)
        return errno;
    *what = "has permissions that cannot be kept";
    return !exists || keep_permissions((int)to->file, &old, path) ? 0 : errno;
}

int sb__replacement_begin(struct sb__replacement *to, const char *path, const char **what) {
    char resolved[SB__PATH_MAX];
    const size_t length = strlen(path);
    *what = "cannot be written";
    to->file = -1;
    to->name = to->path;
    to->temporary[0] = '\0';
    show(to, path);
    if (length == 0 || length >= sizeof resolved)
        return length == 0 ? ENOENT : ENAMETOOLONG;
    memcpy(resolved, path, length + 1);
    int error = resolve(to, resolved, what);
    show(to, resolved);
    if (error)
        return error;
    (void)snprintf(to->path, sizeof to->path, "%s", name_in(resolved));
    error = open_beside(to, resolved, what);
    if (error)
        sb__replacement_cancel(to);
    return error;
}

/* --- committing --------------------------------------------------------------------------- */

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

/* Closes the written file. Ignores EINTR from close, because the bytes are written and the
   descriptor is closed. */
static int close_written(struct sb__replacement *to) {
    const int file = (int)to->file;
    to->file = -1;
    return close(file) != 0 && errno != EINTR ? errno : 0;
}

void sb__replacement_cancel(struct sb__replacement *to) {
    int error = 0;
    if (to->file >= 0)
        (void)close((int)to->file);
    if (to->temporary[0])
        SB__RETRY(error, unlinkat((int)to->folder, to->temporary, 0));
    (void)error; /* a failure has no remedy */
    (void)close((int)to->folder);
}

/* Returns whether a rename has succeeded although the rename reported an error. On a network file
   system the reply may be lost, and the retry then finds no file to rename. */
static bool is_in_place(const struct sb__replacement *to, const struct stat *written) {
    struct stat there;
    int error;
    SB__RETRY(error, fstatat((int)to->folder, to->name, &there, AT_SYMLINK_NOFOLLOW));
    return error == 0 && there.st_ino == written->st_ino && there.st_dev == written->st_dev;
}

static int put_in_place(struct sb__replacement *to) {
    const int folder = (int)to->folder;
    struct stat written;
    int result;
    SB__RETRY(result, sb__sync((int)to->file));
    if (result != 0)
        return errno;
    SB__RETRY(result, fstat((int)to->file, &written));
    if (result != 0)
        return errno;
    int error = close_written(to);
    if (error)
        return error;
    SB__RETRY(result, renameat(folder, to->temporary, folder, to->name));
    error = result != 0 ? errno : 0;
    return error && is_in_place(to, &written) ? 0 : error;
}

/* Syncs a folder. Returns 0 also if the file system cannot sync folders or if the process may not
   read the folder. */
static int sync_folder(int folder) {
    int result;
    SB__RETRY(result, fsync(folder));
    if (result == 0 || errno == EINVAL || errno == EBADF || errno == ENOTSUP || errno == ENOSYS)
        return 0;
    return errno;
}

int sb__replacement_commit(struct sb__replacement *to, bool *in_place) {
    int error = put_in_place(to);
    *in_place = error == 0;
    if (error) {
        sb__replacement_cancel(to);
        return error;
    }
    error = sync_folder((int)to->folder);
    (void)close((int)to->folder);
    return error;
}

#endif
