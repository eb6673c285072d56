/* Reads which mutant is chosen, and records which mutants a test reaches. */
#include "mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int sb__mutant = -1;
unsigned char *sb__mutants_reached;

/* The marks in a mapped file survive a crash. Calls the system directly: tests replace mmap. */
static void map(int fd) {
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0)
        return;
    long at = syscall(SYS_mmap, NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sb__mutants_reached = at == -1 ? NULL : (unsigned char *)at;
    (void)close(fd);
}

__attribute__((constructor)) static void choose(void) {
    const char *number = getenv("SYNCBLOB_MUTANT"), *reached = getenv("SYNCBLOB_MUTANTS_REACHED");
    if (number)
        sb__mutant = (int)strtol(number, NULL, 10);
    if (reached)
        map(open(reached, O_RDWR | O_CLOEXEC));
}
