/* macOS: file syncing, large pages. */
#include "port/pages.h" /* IWYU pragma: keep */

#ifdef __APPLE__

#include "port/posix.h"
#include "port/random.h"
#include "port/text.h"
#include "port/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

bool sb__random_number(uint64_t *out) {
    return getentropy(out, sizeof *out) == 0;
}

struct timespec sb__modified(const struct stat *info) {
    return info->st_mtimespec;
}

struct timespec sb__changed(const struct stat *info) {
    return info->st_ctimespec;
}

/* Prefers F_FULLFSYNC, since fsync leaves the bytes in the disk's cache. Uses fsync on file systems
   that do not support F_FULLFSYNC. */
int sb__sync(int descriptor) {
    return fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : fsync(descriptor);
}

int sb__folder_open(const char *path) {
    const int flags = O_DIRECTORY | O_CLOEXEC;
    int folder;
    SB__RETRY(folder, open(path, O_RDONLY | flags));
#ifdef O_SEARCH /* missing on older systems */
    if (folder < 0 && errno == EACCES)
        SB__RETRY(folder, open(path, O_SEARCH | flags));
#endif
    return folder;
}

/* Returns false: macOS has no links that lead to open files. */
bool sb__links_to_open_files(int folder) {
    (void)folder;
    return false;
}

/* Does not copy access lists. */
bool sb__keep_access_list(int file, const char *old, bool same_group, mode_t *mode) {
    (void)file;
    (void)old;
    if (!same_group)
        *mode = sb__mode_without_group(*mode);
    return true;
}

const char *sb__system_text(int error, char *buffer, size_t capacity) {
    return strerror_r(error, buffer, capacity) == 0 ? buffer : "unknown error";
}

/* Does nothing: the system uses large pages without advice. */
void sb__advise_large_pages(void *pages, size_t bytes) {
    (void)pages;
    (void)bytes;
}

void *sb__pages_filled(intptr_t *kept, int byte, size_t bytes) {
    const size_t page = sb__page_size(), whole = (bytes + page - 1) / page * page;
    void *pages = sb__pages_map(whole, page);
    (void)kept;
    return pages ? memset(pages, byte, bytes) : NULL;
}

void sb__pages_drop(intptr_t kept) {
    (void)kept;
}

#endif
