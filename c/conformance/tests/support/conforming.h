/* Tables for the conformance test: the host's arithmetic, and the simulated device. */
#ifndef SB_TESTS_CONFORMING_H
#define SB_TESTS_CONFORMING_H

#include "plain.h"

#include <syncblob/conformance.h>
#include <syncblob/sim_device.h>

/* The host's backend, without streams, events and page-locked memory. */
extern sb_backend host_backend;

/* Returns the simulated device's table. Sets the schedule of all devices that are opened later. */
sb_backend simulated_backend(sb_sim_schedule schedule);
/* Returns options whose functions create streams and make copies fail. */
sb_conformance_options simulated_options(void);
const sb_sim_device *simulated_controls(void *device);

/* Fails the running test if a claim fails. A quick run (test_is_quick) tests only small counts. */
void assert_conforms(const char *name, const sb_backend *table,
                     const sb_conformance_options *options);

#endif
