/* What the files for Windows share. */
#ifndef SB_PORT_WINDOWS_H
#define SB_PORT_WINDOWS_H

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

/* What a file is that is no regular one. */
#define SB__IS_DIRECTORY 336 /* ERROR_DIRECTORY_NOT_SUPPORTED, which older headers lack */
#define SB__NOT_REGULAR  ERROR_BAD_FILE_TYPE

#endif
