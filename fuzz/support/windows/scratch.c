#include "watched.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Makes a file with the process id in its name; a process has at most one such file at a time. */
struct scratch_file scratch_file_make(const void *bytes, size_t size) {
    struct scratch_file file = {.fd = -1};
    (void)snprintf(file.path, sizeof file.path, "/tmp/input-%d", (int)getpid());
    file.fd = open(file.path, O_RDWR | O_CREAT | O_TRUNC | O_BINARY, 0600);
    fuzz_check(file.fd >= 0 && write(file.fd, bytes, (unsigned)size) == (int)size,
               "no scratch file");
    return file;
}

void scratch_file_end(struct scratch_file *file) {
    (void)close(file->fd);
    (void)unlink(file->path);
}
