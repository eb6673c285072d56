/* Variants of the simulated device's table, for contexts on "sim:N". */
#ifndef SB_TESTS_SIM_TABLES_H
#define SB_TESTS_SIM_TABLES_H

#include <syncblob/backend.h>

/* Returns the table of a device with host-coherent memory. @return [borrowed] a constant */
const sb_backend *coherent_table(void);

/* Returns the table of a device with a stream that is being captured, as for a CUDA graph: an event
   cannot be recorded on the stream, and a wait for the stream fails. Other work succeeds. */
sb_backend captured_table(void);

extern sb_stream captured_stream; /* NULL: no stream is captured */
extern int64_t captured_waits;    /* calls of event_wait and stream_synchronize */

#endif
