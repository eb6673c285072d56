/* The system's texts of errors, and the attribute of functions with a printf format. */
#ifndef SB_PORT_TEXT_H
#define SB_PORT_TEXT_H

#include <stddef.h>

#ifdef __MINGW32__
#include <stdio.h> /* defines __MINGW_PRINTF_FORMAT */
#define SB__PRINTF(format_at, args_at)                                                             \
    __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, args_at)))
#elif defined(__GNUC__)
#define SB__PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define SB__PRINTF(format_at, args_at)
#endif

/* The character that separates folders in a path. Error messages do not escape this character. */
#ifdef _WIN32
#define SB__PATH_SEPARATOR '\\'
#else
#define SB__PATH_SEPARATOR '/'
#endif

/* Returns the text for an error number of port/files.h. The text is in `buffer` or static. */
const char *sb__system_text(int error, char *buffer, size_t capacity);

#endif
