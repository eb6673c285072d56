/* Files that a test writes and reads back. */
#ifndef SB_TESTS_FILES_H
#define SB_TESTS_FILES_H

#include "wire_builder.h"

#include <stdbool.h>

/* All bytes of a file; wire_free. */
struct wire wire_of_file(const char *path);
void file_write(const char *path, const void *bytes, size_t size);
void file_write_wire(const char *path, const struct wire *wire);
bool file_holds(const char *path, const char *text);

/* Not on Windows before version 10, nor under wine 8; prints so. */
#ifdef _WIN32
bool file_is_replaced_while_open(void);
#else
static inline bool file_is_replaced_while_open(void) {
    return true;
}
#endif

#endif
