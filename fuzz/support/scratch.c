#include "watched.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct scratch_file scratch_file_make(const void *bytes, size_t size) {
    struct scratch_file file = {.fd = memfd_create("input", MFD_CLOEXEC)};
    fuzz_check(file.fd >= 0 && write(file.fd, bytes, size) == (ssize_t)size, "no scratch file");
    (void)snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

void scratch_file_end(struct scratch_file *file) {
    (void)close(file->fd);
}
