/* Shared libraries that are opened while the program runs. */
#ifndef SB_PORT_LIBRARIES_H
#define SB_PORT_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef _WIN32
#define SB__LIBRARY(elsewhere, on_windows) on_windows
#define SB__LIBRARY_PATH                   "PATH"
#else
#define SB__LIBRARY(elsewhere, on_windows) elsewhere
#define SB__LIBRARY_PATH                   "LD_LIBRARY_PATH"
#endif

/* NULL: it cannot be opened, and `story` has the reason. */
void *sb__library_open(const char *name, char *story, size_t capacity);
/* The same for a library that the process has already; NULL: it has none of that name. */
void *sb__library_loaded(const char *name);
/* NULL: there is no such function. */
void *sb__library_symbol(void *library, const char *name);
void sb__library_close(void *library);

#endif
