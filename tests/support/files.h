/* Files that a test reads back. */
#ifndef SB_TESTS_FILES_H
#define SB_TESTS_FILES_H

#include "wire_builder.h"

/* All bytes of a file; wire_free. */
struct wire wire_of_file(const char *path);

#endif
