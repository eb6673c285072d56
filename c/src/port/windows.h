/* Functions that the files for Windows share. */
#ifndef SB_PORT_WINDOWS_H
#define SB_PORT_WINDOWS_H

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include "port/files.h"

#include <windows.h>

/* Writes the absolute form of `path` to `out`. Adds the prefix \\?\ if the path is too long for
   Windows. Copies a path that has this prefix already. Returns 0 or an error number. */
int sb__whole_path(const char *path, wchar_t out[SB__PATH_MAX]);

/* Error numbers for files that are not regular. */
#define SB__IS_DIRECTORY 336 /* ERROR_DIRECTORY_NOT_SUPPORTED, missing in older headers */
#define SB__NOT_REGULAR  ERROR_BAD_FILE_TYPE

#endif
