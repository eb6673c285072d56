/* What systems of POSIX do each in its own way: linux.c, macos.c. */
#ifndef SB_PORT_POSIX_H
#define SB_PORT_POSIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* A hint alone. */
void sb__advise_large_pages(void *pages, size_t bytes);
struct timespec sb__modified(const struct stat *info);
/* Brings a file's bytes to the disk: 0 or -1, as fsync. */
int sb__sync(int descriptor);

#endif
