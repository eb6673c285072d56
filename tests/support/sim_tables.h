/* Variants of the simulated device's table, for contexts on "sim:N". */
#ifndef SB_TESTS_SIM_TABLES_H
#define SB_TESTS_SIM_TABLES_H

#include <syncblob/backend.h>

const sb_backend *coherent_table(void);

/* A captured stream, as for a CUDA graph, refuses events and waits. */
sb_backend captured_table(void);

extern sb_stream captured_stream; /* NULL if no stream is captured */
extern int64_t captured_waits;    /* calls of event_wait and stream_synchronize */

#endif
