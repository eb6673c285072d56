#define _CRT_RAND_S

#include "posix.h"

#include <direct.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void open_as_they_are(void) {
    _fmode = _O_BINARY;
}

char *mkdtemp(char *path) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    char *end = path + strlen(path) - 6;
    for (int attempts = 0; attempts < 100; attempts++) {
        unsigned int number;
        if (rand_s(&number) != 0)
            return NULL;
        for (int i = 0; i < 6; i++)
            end[i] = letters[number >> 5 * i & 31];
        if (_mkdir(path) == 0)
            return path;
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

unsigned alarm(unsigned seconds) {
    (void)seconds;
    return 0;
}

int alphasort(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

typedef int by_address(const void *, const void *);

int scandir(const char *path, struct dirent ***out, int (*wanted)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **)) {
    DIR *folder = opendir(path);
    int count = 0;
    if (!folder)
        return -1;
    *out = NULL;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (!wanted(entry))
            continue;
        *out = realloc(*out, (size_t)(count + 1) * sizeof **out);
        (*out)[count] = malloc(sizeof *entry);
        *(*out)[count++] = *entry;
    }
    (void)closedir(folder);
    if (count > 0)
        qsort(*out, (size_t)count, sizeof **out, (by_address *)compare);
    return count;
}
