/* The simulated device with a stream that is captured: nobody can record an event on it or wait for
   it, and its work goes on. */
#ifndef SB_TESTS_CAPTURED_H
#define SB_TESTS_CAPTURED_H

#include <syncblob/backend.h>

/* A table for contexts on "sim:N". */
sb_backend captured_table(void);

extern sb_stream captured_stream; /* NULL: none is captured */
extern int64_t captured_waits;    /* calls of event_wait and stream_synchronize */

#endif
