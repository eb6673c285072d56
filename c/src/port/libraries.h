/* Shared libraries that are opened at run time. */
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

/* Opens a library; on failure returns NULL and writes the reason to `story`. */
void *sb__library_open(const char *name, char *story, size_t capacity);
/* Opens a library that the process has already loaded, else returns NULL. */
void *sb__library_loaded(const char *name);
/* Returns NULL if the library has no function `name`. */
void *sb__library_symbol(void *library, const char *name);
void sb__library_close(void *library);

#endif
