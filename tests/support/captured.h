/* The simulated device with a captured stream: recording an event on that stream fails, and so does
   a wait for the stream; other work on it succeeds. */
#ifndef SB_TESTS_CAPTURED_H
#define SB_TESTS_CAPTURED_H

#include <syncblob/backend.h>

/* Returns a backend for contexts on "sim:N". */
sb_backend captured_table(void);

extern sb_stream captured_stream; /* NULL: no stream is captured */
extern int64_t captured_waits;    /* calls of event_wait and stream_synchronize */

#endif
