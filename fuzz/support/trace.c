#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void trace(const char *format, ...) {
    va_list args;
    if (!getenv("SYNCBLOB_FUZZ_TRACE"))
        return;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}
