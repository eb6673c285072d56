/* Functions of POSIX that the tests use and Windows lacks. CMake includes this file before each
   file of the tests. */
#ifndef SB_TESTS_WINDOWS_POSIX_H
#define SB_TESTS_WINDOWS_POSIX_H

#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <sys/types.h>
#include <unistd.h>

#define O_CLOEXEC         O_NOINHERIT
#define truncate(path, n) truncate64(path, n)

/* Creates a new folder; replaces the XXXXXX at the end of `path`. */
char *mkdtemp(char *path);
/* Does nothing, because ctest ends a test that runs too long. */
unsigned alarm(unsigned seconds);

int alphasort(const struct dirent **a, const struct dirent **b);
int scandir(const char *path, struct dirent ***out, int (*wanted)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **));

#endif
