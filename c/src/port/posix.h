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

#endif
