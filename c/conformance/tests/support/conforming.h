/* Tables for the conformance test: the host's arithmetic, and the simulated device by its
   schedules. */
#ifndef SB_TESTS_CONFORMING_H
#define SB_TESTS_CONFORMING_H

#include <syncblob/conformance.h>
#include <syncblob/sim_device.h>

/* A table without streams, events and page-locked memory. */
extern const sb_backend host_backend;

/* The simulated device with a schedule. */
sb_backend simulated_backend(sb_sim_schedule schedule);
/* The options that give the conformance test its streams and failures. */
sb_conformance_options simulated_options(void);
/* The functions of a simulated device. */
const sb_sim_device *simulated_controls(void *device);

/* Runs the conformance test; prints the claims that did not pass, and fails the running test if one
   failed. In the sample, only small counts are tested. */
void assert_conforms(const char *name, const sb_backend *table,
                     const sb_conformance_options *options);

#endif
