/* The port to WASI, which has one thread, no memory maps and no shared libraries. */
#include "port/files.h" /* IWYU pragma: keep */

#ifdef __wasi__

#include "port/libraries.h"
#include "port/pages.h"
#include "port/posix.h"
#include "port/random.h"
#include "port/text.h"
#include "port/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- threads ---------------------------------------------------------------------------- */

int64_t sb__process(void) {
    return 1; /* WASI has no process ids */
}

bool sb__random_number(uint64_t *out) {
    return getentropy(out, sizeof *out) == 0;
}

/* --- pages ------------------------------------------------------------------------------ */

/* Returns the page size of WebAssembly, whose memory grows by pages and never shrinks. */
size_t sb__page_size(void) {
    return 65536;
}

void *sb__pages_map(size_t bytes, size_t alignment) {
    void *pages = aligned_alloc(alignment, bytes);
    return pages ? memset(pages, 0, bytes) : NULL;
}

/* Allocates memory, since WASI cannot reserve a range of addresses without memory. */
void *sb__pages_reserve(size_t bytes) {
    return aligned_alloc(sb__page_size(), bytes);
}

void sb__pages_unmap(void *pages, size_t bytes) {
    (void)bytes;
    free(pages);
}

void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes) {
    void *pages = aligned_alloc(sb__page_size(), bytes);
    (void)kept;
    return pages ? memset(pages, byte, bytes) : NULL;
}

void sb__pages_drop(intptr_t kept) {
    (void)kept;
}

/* --- files ------------------------------------------------------------------------------ */

struct timespec sb__modified(const struct stat *info) {
    return info->st_mtim;
}

struct timespec sb__changed(const struct stat *info) {
    return info->st_ctim;
}

/* Fails: WASI cannot map files. */
int sb__file_map(sb__file file, size_t bytes, const void **out) {
    (void)file;
    (void)bytes;
    (void)out;
    return ENOTSUP;
}

void sb__file_unmap(const void *map, size_t bytes) {
    (void)map;
    (void)bytes;
}

/* --- replacing a file --------------------------------------------------------------------- */

/* WASI files have no permissions to keep. Fails for a link, which a rename would replace. */
static int check_old(struct sb__replacement *to, const char **what) {
    struct stat old;
    if (lstat(to->path, &old) != 0)
        return errno == ENOENT ? 0 : errno;
    *what = "cannot be replaced: it is not a regular file";
    return S_ISREG(old.st_mode) ? 0 : S_ISDIR(old.st_mode) ? EISDIR : EINVAL;
}

/* Writes the path of the temporary file to `out`. */
static int beside(const struct sb__replacement *to, char out[SB__PATH_MAX]) {
    const int length =
        snprintf(out, SB__PATH_MAX, "%.*s%s", (int)(to->name - to->path), to->path, to->temporary);
    return length < SB__PATH_MAX ? 0 : ENAMETOOLONG;
}

static int open_temporary(struct sb__replacement *to) {
    char path[SB__PATH_MAX];
    uint64_t number;
    if (!sb__random_number(&number))
        return errno;
    (void)snprintf(to->temporary, sizeof to->temporary, ".syncblob-%016llx.tmp",
                   (unsigned long long)number);
    int error = beside(to, path);
    if (error)
        return error;
    to->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return to->file < 0 ? errno : 0;
}

int sb__replacement_begin(struct sb__replacement *to, const char *path, const char **what) {
    const size_t length = strlen(path);
    *what = "cannot be written";
    to->file = to->folder = -1;
    to->temporary[0] = '\0';
    (void)snprintf(to->shown, sizeof to->shown, "%.*s", (int)sizeof to->shown - 1, path);
    if (length == 0 || length >= sizeof to->path)
        return length == 0 ? ENOENT : ENAMETOOLONG;
    memcpy(to->path, path, length + 1);
    char *slash = strrchr(to->path, '/');
    to->name = slash ? slash + 1 : to->path;
    if (!*to->name)
        return EISDIR;
    int error = check_old(to, what);
    if (error)
        return error;
    *what = "needs a temporary file in the same directory";
    return open_temporary(to);
}

int sb__replacement_write(struct sb__replacement *to, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    while (size > 0) {
        const ssize_t n = write((int)to->file, from, size);
        if (n <= 0)
            return n < 0 ? errno : EIO;
        from += n;
        size -= (size_t)n;
    }
    return 0;
}

void sb__replacement_cancel(struct sb__replacement *to) {
    char path[SB__PATH_MAX];
    if (to->file >= 0)
        (void)close((int)to->file);
    if (to->temporary[0] && beside(to, path) == 0)
        (void)unlink(path);
}

int sb__replacement_commit(struct sb__replacement *to, bool *in_place) {
    char path[SB__PATH_MAX];
    int error = beside(to, path);
    if (!error && fsync((int)to->file) != 0 && errno != ENOSYS && errno != ENOTSUP)
        error = errno;
    if (!error && close((int)to->file) != 0)
        error = errno;
    else if (!error)
        to->file = -1;
    if (!error && rename(path, to->path) != 0)
        error = errno;
    *in_place = error == 0;
    if (error)
        sb__replacement_cancel(to);
    return error;
}

/* --- libraries -------------------------------------------------------------------------- */

void *sb__library_open(const char *name, char *cause, size_t capacity) {
    (void)name;
    (void)snprintf(cause, capacity, "%s", "WASI has no shared libraries");
    return NULL;
}

void *sb__library_open_file(const char *path, char *cause, size_t capacity) {
    return sb__library_open(path, cause, capacity);
}

void *sb__library_loaded(const char *name) {
    (void)name;
    return NULL;
}

void *sb__library_symbol(void *library, const char *name) {
    (void)library;
    (void)name;
    return NULL;
}

void sb__library_close(void *library) {
    (void)library;
}

/* --- texts ---------------------------------------------------------------------------------- */

const char *sb__system_text(int error, char *buffer, size_t capacity) {
    return strerror_r(error, buffer, capacity) == 0 ? buffer : "unknown error";
}

#endif
