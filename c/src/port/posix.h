/* Functions that the files for Linux and macOS share, and functions that linux.c and macos.c each
   define. */
#ifndef SB_PORT_POSIX_H
#define SB_PORT_POSIX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Advises the kernel to use large pages; the kernel may ignore the advice. */
void sb__advise_large_pages(void *pages, size_t bytes);
struct timespec sb__modified(const struct stat *info);
struct timespec sb__changed(const struct stat *info);
/* Writes a file's cached data to the disk; returns 0 or -1, as fsync does. */
int sb__sync(int descriptor);

/* Retries a call that a signal has interrupted. */
#define SB__RETRY(result, call)                                                                    \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

/* Opens a folder for access to its entries. If the process may read the folder, also opens it for
   reading: otherwise the folder cannot be synced. Returns -1 on failure, with the reason in
   errno. */
int sb__folder_open(const char *path);
/* Returns whether the folder is in procfs, where a link can lead to an open file instead of the
   path that readlink returns. */
bool sb__links_to_open_files(int folder);
/* Copies the access control list of the file at `old` to `file`, or removes the list of `file`. If
   the list cannot be copied, or the groups differ, removes permissions from `*mode`, the mode of
   `old`, so that no user gains access. Returns false on failure, with the reason in errno. */
bool sb__keep_access_list(int file, const char *old, bool same_group, mode_t *mode);

/* Returns the mode for a file whose group changes: the new group and all other users get only the
   permissions that both the old group and other users had. */
static inline mode_t sb__mode_without_group(mode_t mode) {
    const mode_t both = mode >> 3 & mode & 07;
    return (mode & 0700) | (mode_t)(both << 3) | both;
}

#endif
