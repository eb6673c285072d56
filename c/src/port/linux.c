/* Linux: access lists, error texts, pages. */
#include "port/pages.h"

#ifdef __linux__

#include "port/posix.h"
#include "port/random.h"
#include "port/text.h"
#include "port/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- files ---------------------------------------------------------------------------------- */

bool sb__random_number(uint64_t *out) {
    return getrandom(out, sizeof *out, 0) == (ssize_t)sizeof *out;
}

struct timespec sb__modified(const struct stat *info) {
    return info->st_mtim;
}

struct timespec sb__changed(const struct stat *info) {
    return info->st_ctim;
}

int sb__sync(int descriptor) {
    return fsync(descriptor);
}

int sb__folder_open(const char *path) {
    const int flags = O_DIRECTORY | O_CLOEXEC;
    int folder;
    SB__RETRY(folder, open(path, O_RDONLY | flags));
    if (folder < 0 && errno == EACCES)
        SB__RETRY(folder, open(path, O_PATH | flags));
    return folder;
}

bool sb__links_to_open_files(int folder) {
    struct statfs info;
    int error;
    SB__RETRY(error, fstatfs(folder, &info));
    return error != 0 || info.f_type == PROC_SUPER_MAGIC;
}

/* --- access lists ------------------------------------------------------------------------- */

#define LIST "system.posix_acl_access"
/* A list has a version of 4 bytes and up to 256 entries of 8 bytes: tag, permissions and id. */
#define LIST_BYTES (4 + 8 * 256)
#define OWNER      1

/* Returns whether an error means that the file has no list, or that the file system does not
   support lists; some file systems in user space then return EINVAL. */
static bool means_none(int error) {
    return error == ENODATA || error == ENOTSUP || error == ENOSYS || error == EINVAL;
}

/* Returns the mode for a file whose list is not copied: all users except the owner get the
   permissions that every entry allows. */
static mode_t without_list(mode_t mode, const unsigned char *list, ssize_t size) {
    mode_t least = 07;
    for (ssize_t at = 4; at + 8 <= size; at += 8)
        if (list[at] != OWNER || list[at + 1] != 0)
            least &= list[at + 2];
    return (mode & 0700) | (mode_t)(least << 3) | least;
}

static bool remove_list(int file) {
    int error;
    SB__RETRY(error, fremovexattr(file, LIST));
    return error == 0 || means_none(errno);
}

bool sb__keep_access_list(int file, const char *old, bool same_group, mode_t *mode) {
    unsigned char list[LIST_BYTES];
    ssize_t size;
    int error = -1;
    SB__RETRY(size, lgetxattr(old, LIST, list, sizeof list));
    if (size >= 0) {
        if (same_group)
            SB__RETRY(error, fsetxattr(file, LIST, list, (size_t)size, 0));
        if (error == 0)
            return true;
        *mode = without_list(*mode, list, size);
    } else if (errno == ERANGE) {
        *mode &= 0700; /* an implausibly long list: only the owner keeps permissions */
    } else if (!means_none(errno)) {
        return false;
    } else if (!same_group) {
        *mode = sb__mode_without_group(*mode);
    }
    return remove_list(file); /* removes a list inherited from the folder, because setting the mode
                                 would widen the list's mask */
}

/* --- texts ---------------------------------------------------------------------------------- */

/* glibc's strerror_r returns the text; the function of POSIX and musl returns a status. */
const char *sb__system_text(int error, char *buffer, size_t capacity) {
#ifdef __GLIBC__
    return strerror_r(error, buffer, capacity);
#else
    return strerror_r(error, buffer, capacity) == 0 ? buffer : "unknown error";
#endif
}

/* --- pages ------------------------------------------------------------------------------ */

void sb__advise_large_pages(void *pages, size_t bytes) {
    (void)madvise(pages, bytes, MADV_HUGEPAGE);
}

/* The size of the file that sb__pages_filled maps repeatedly. */
#define FILE_BYTES ((size_t)4 << 20)

static bool open_filled_file(intptr_t *kept, int byte) {
    if (*kept >= 0)
        return true;
    int file = memfd_create("rubbish", MFD_CLOEXEC);
    if (file < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (ftruncate(file, (off_t)FILE_BYTES) == 0)
        bytes = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) {
        (void)close(file);
        return false;
    }
    memset(bytes, byte, FILE_BYTES);
    (void)munmap(bytes, FILE_BYTES);
    *kept = file;
    return true;
}

void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes) {
    char *range = open_filled_file(kept, byte) ? sb__pages_reserve(bytes) : NULL;
    if (!range)
        return NULL;
    for (size_t at = 0; at < bytes; at += FILE_BYTES) {
        size_t length = bytes - at < FILE_BYTES ? bytes - at : FILE_BYTES;
        if (mmap(range + at, length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, (int)*kept, 0) == MAP_FAILED) {
            sb__pages_unmap(range, bytes);
            return NULL;
        }
    }
    return range;
}

void sb__pages_drop(intptr_t kept) {
    if (kept >= 0)
        (void)close((int)kept);
}

#endif
