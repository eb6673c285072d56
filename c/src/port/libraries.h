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

#ifdef __wasi__
#define SB__HAS_LIBRARIES false
#else
#define SB__HAS_LIBRARIES true
#endif

/* Opens a library. On failure returns NULL and writes the reason to `cause`. A name without a
   folder is searched for in the system's folders. */
void *sb__library_open(const char *name, char *cause, size_t capacity);
/* Opens the library at `path`, which is relative to the current folder. Otherwise works as
   sb__library_open, but the reason in `cause` does not repeat the path. */
void *sb__library_open_file(const char *path, char *cause, size_t capacity);
/* Opens a library if the process has already loaded the library. Otherwise returns NULL. */
void *sb__library_loaded(const char *name);
/* Returns NULL if the library has no function `name`. */
void *sb__library_symbol(void *library, const char *name);
void sb__library_close(void *library);

#endif
