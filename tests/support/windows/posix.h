/* What the tests use of POSIX and Windows lacks. Included before every file of theirs. */
#ifndef SB_TESTS_WINDOWS_POSIX_H
#define SB_TESTS_WINDOWS_POSIX_H

#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <sys/types.h>
#include <unistd.h>

#define O_CLOEXEC         O_NOINHERIT
#define truncate(path, n) truncate64(path, n)

/* A folder of its own in a path that ends in XXXXXX. */
char *mkdtemp(char *path);
/* ctest has deadlines of its own. */
unsigned alarm(unsigned seconds);

int alphasort(const struct dirent **a, const struct dirent **b);
int scandir(const char *path, struct dirent ***out, int (*wanted)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **));

#endif
