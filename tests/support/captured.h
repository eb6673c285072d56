/* The simulated device with a stream that is being captured, as for a CUDA graph: recording an
   event on the stream fails, and so does a wait for the stream. Other work succeeds. */
#ifndef SB_TESTS_CAPTURED_H
#define SB_TESTS_CAPTURED_H

#include <syncblob/backend.h>

/* Returns a backend for contexts on "sim:N". */
sb_backend captured_table(void);

extern sb_stream captured_stream; /* NULL: no stream is captured */
extern int64_t captured_waits;    /* calls of event_wait and stream_synchronize */

#endif
