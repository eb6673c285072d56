/* Part of the library in a tree with mutants in it. SYNCBLOB_MUTANT chooses one by its number;
   SYNCBLOB_MUTANTS_REACHED is a file with a byte for each, mapped so that it keeps what was
   reached however the program ends. */
#include "mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int sb__mutant = -1;
unsigned char *sb__mutants_reached;

/* By the system's number: tests put functions of their own in the place of mmap. */
static unsigned char *map(const char *path) {
    struct stat file;
    long address = -1;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &file) == 0)
        address = syscall(SYS_mmap, NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return address == -1 ? NULL : (unsigned char *)address;
}

__attribute__((constructor)) static void choose(void) {
    const char *number = getenv("SYNCBLOB_MUTANT"), *reached = getenv("SYNCBLOB_MUTANTS_REACHED");
    if (number)
        sb__mutant = (int)strtol(number, NULL, 10);
    if (reached)
        sb__mutants_reached = map(reached);
}
