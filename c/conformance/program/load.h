/* Opens a backend in a shared library. */
#ifndef SB_CONFORMANCE_LOAD_H
#define SB_CONFORMANCE_LOAD_H

#include <syncblob/backend.h>

/* Returns the table of the library at `path`, which stays loaded; NULL with the reason in `reason`
   on failure. */
const sb_backend *load_backend(const char *path, char *reason, size_t capacity);

#endif
