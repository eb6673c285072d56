/* What programs that pass structs share: places for these, and the check of what comes of it. */
#ifndef SB_TESTS_GROWTH_PLACE_H
#define SB_TESTS_GROWTH_PLACE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool library_is_older;
static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __func__, __LINE__, #condition);                                 \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* A place for `bytes` before memory that cannot be touched, filled with rubbish. */
static void *place(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, page, PROT_NONE))
        abort();
    memset(map, 0xAA, page);
    return map + page - bytes;
}

/* The first `bytes` of a struct, which says that these are all. */
static void *placed(const void *whole, size_t bytes) {
    void *out = place(bytes);
    memcpy(out, whole, bytes);
    memcpy(out, &bytes, sizeof bytes);
    return out;
}

/* The program's only argument says what it is beside the library. */
static void begin(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0); /* what was said before a fault */
    library_is_older = argc > 1 && strcmp(argv[1], "newer") == 0;
}

#endif
