/* Functions that the files for Linux and macOS share, and functions that each system defines:
   linux.c, macos.c. */
#ifndef SB_PORT_POSIX_H
#define SB_PORT_POSIX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Only advice. */
void sb__advise_large_pages(void *pages, size_t bytes);
struct timespec sb__modified(const struct stat *info);
struct timespec sb__changed(const struct stat *info);
/* Syncs a file to the disk: 0 or -1, as fsync. */
int sb__sync(int descriptor);

/* Retries a call that a signal has interrupted. */
#define SB__RETRY(result, call)                                                                    \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

/* Opens a folder for access to its entries; also for reading, if permitted, so that it can be
   synced. -1: errno has the reason. */
int sb__folder_open(const char *path);
/* Whether links in the folder lead to open files instead of their text (procfs). */
bool sb__links_to_open_files(int folder);
/* Copies the access list of the file at `old` to `file`, or removes it. If a list cannot be kept,
   or the group differs, reduces `*mode`, which is that of `old`, so that no user gains permissions.
   False: errno has the reason. */
bool sb__keep_access_list(int file, const char *old, bool same_group, mode_t *mode);

/* The mode for another group: the new group gets the permissions of others; others, who now include
   the old group, lose permissions that it did not have. */
static inline mode_t sb__mode_without_group(mode_t mode) {
    const mode_t both = mode >> 3 & mode & 07;
    return (mode & 0700) | (mode_t)(both << 3) | both;
}

#endif
