/* Functions that differ between systems. */
#ifndef SB_COMM_PORT_H
#define SB_COMM_PORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __MINGW32__
#include <stdio.h> /* defines __MINGW_PRINTF_FORMAT, the variant of printf */
#define SB__COMM_PRINTF(format_at, args_at)                                                        \
    __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, args_at)))
#else
#define SB__COMM_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#endif

#ifdef _WIN32
#define SB__COMM_LIBRARY(elsewhere, on_windows) on_windows
#define SB__COMM_LIBRARY_PATH                   "PATH"
#else
#define SB__COMM_LIBRARY(elsewhere, on_windows) elsewhere
#define SB__COMM_LIBRARY_PATH                   "LD_LIBRARY_PATH"
#endif

#define SB__COMM_SECOND 1000000000u

/* Returns the process id, or a constant on systems without fork. */
int64_t sb__comm_process(void);

/* Returns the nanoseconds of a monotonic clock. */
uint64_t sb__comm_now(void);
void sb__comm_sleep(uint64_t nanoseconds);

/* Opens a shared library. Prefers a copy that the process has already loaded. On failure returns
   NULL and writes the system's text to `reason`. */
void *sb__comm_library_open(const char *name, char *reason, size_t capacity);
/* Returns NULL if the library has no function `name`. */
void *sb__comm_library_symbol(void *library, const char *name);
void sb__comm_library_close(void *library);

#endif
