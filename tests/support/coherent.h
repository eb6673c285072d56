/* The simulated device with host-coherent memory. */
#ifndef SB_TESTS_COHERENT_H
#define SB_TESTS_COHERENT_H

#include <syncblob/backend.h>

/* Returns a backend for contexts on "sim:N". @return [borrowed] a constant */
const sb_backend *coherent_table(void);

#endif
