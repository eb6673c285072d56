/* Files that a test writes and reads back. */
#ifndef SB_TESTS_FILES_H
#define SB_TESTS_FILES_H

#include "wire_builder.h"

#include <stdbool.h>

struct wire wire_of_file(const char *path);
void file_write(const char *path, const void *bytes, size_t size);
void file_write_wire(const char *path, const struct wire *wire);
/* Asserts that `found` has the bytes of `expected`. */
void assert_wire(const struct wire *found, const struct wire *expected);
/* Returns the number of files in a folder. */
int files_in(const char *folder);
bool file_holds(const char *path, const char *text);

/* Returns whether the system can replace a file that is open; prints a message if not. Wine 8
   and Windows before version 10 cannot replace open files. */
#ifdef _WIN32
bool file_is_replaced_while_open(void);
#else
static inline bool file_is_replaced_while_open(void) {
    return true;
}
#endif

#endif
