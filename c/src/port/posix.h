/* What the files for Linux and macOS share, and what each of them does in its own way: linux.c,
   macos.c. */
#ifndef SB_PORT_POSIX_H
#define SB_PORT_POSIX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* A hint alone. */
void sb__advise_large_pages(void *pages, size_t bytes);
struct timespec sb__modified(const struct stat *info);
struct timespec sb__changed(const struct stat *info);
/* Brings a file's bytes to the disk: 0 or -1, as fsync. */
int sb__sync(int descriptor);

/* A call that returns -1 is made again when a signal interrupted it. */
#define SB__RETRY(result, call)                                                                    \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

/* For the names in it; for reading too, so that it can be brought to the disk, where the process
   may. -1: errno has the reason. */
int sb__folder_open(const char *path);
/* Whether links in the folder lead where their text does not: to what a process has open. */
bool sb__links_to_open_files(int folder);
/* Gives `file` the access list of the one at `old`, and none where that has none. Where a list is
   not kept, and where `file` has not the same group, `*mode`, which is old's, becomes what nobody
   had less than. False: errno has the reason. */
bool sb__keep_access_list(int file, const char *old, bool same_group, mode_t *mode);

/* A group that is not the old one gets what all others had, and these get what the old group had at
   most, whose members are among them now. */
static inline mode_t sb__mode_without_group(mode_t mode) {
    const mode_t both = mode >> 3 & mode & 07;
    return (mode & 0700) | (mode_t)(both << 3) | both;
}

#endif
