/* Functions that differ between systems. */
#ifndef SB_CONFORMANCE_PORT_H
#define SB_CONFORMANCE_PORT_H

#include <stdbool.h>

#ifdef __MINGW32__
#include <stdio.h> /* for __MINGW_PRINTF_FORMAT */
#define SB__KIT_PRINTF(format_at, args_at)                                                         \
    __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, args_at)))
#else
#define SB__KIT_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#endif

/* Runs task(other) on a new thread and, if `own` is not NULL, task(own) on the calling thread at
   the same time; returns when both calls have returned. If no thread can be created, makes neither
   call and returns false. */
bool sb__kit_run_beside(void (*task)(void *arg), void *own, void *other);

/* Returns the time in seconds since an arbitrary moment. */
double sb__kit_seconds(void);

#endif
