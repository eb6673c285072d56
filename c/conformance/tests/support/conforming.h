/* Tables for the conformance test: the host's arithmetic, and the simulated device with each
   schedule. */
#ifndef SB_TESTS_CONFORMING_H
#define SB_TESTS_CONFORMING_H

#include <syncblob/conformance.h>
#include <syncblob/sim_device.h>

/* The parameters of slots. */
#define SLOT_EVENT   (void *device, void *event, sb_error *err)
#define SLOT_QUERY   (void *device, void *event, int32_t *out_done, sb_error *err)
#define SLOT_STREAM  (void *device, sb_stream stream, sb_error *err)
#define SLOT_ORDER   (void *device, sb_stream stream, void *event, sb_error *err)
#define SLOT_RECORD  (void *device, sb_stream stream, void **out, sb_error *err)
#define SLOT_POINTER (void *device, const void *ptr, size_t bytes, sb_error *err)
#define SLOT_OPEN    (void *user, int32_t ordinal, void **out, sb_error *err)
#define SLOT_ALLOC   (void *device, size_t bytes, sb_stream stream, void **out, sb_error *err)
#define SLOT_FREE    (void *device, void *ptr, size_t bytes, sb_stream stream)
#define SLOT_ZERO    (void *device, void *dst, size_t bytes, sb_stream stream, sb_error *err)
#define SLOT_MOVE                                                                                  \
    (void *device, void *dst, const void *src, size_t bytes, sb_stream stream, sb_error *err)
#define SLOT_AXPY                                                                                  \
    (void *device, sb_dtype dtype, int64_t count, double alpha, const void *x, void *y,            \
     sb_stream stream, sb_error *err)
#define SLOT_SUM                                                                                   \
    (void *device, sb_dtype dtype, int64_t count, const void *x, double *out, sb_stream stream,    \
     sb_error *err)
#define SLOT_SCALE                                                                                 \
    (void *device, sb_dtype dtype, int64_t count, double alpha, void *x, sb_stream stream,         \
     sb_error *err)

/* A table without streams, events and page-locked memory. */
extern sb_backend host_backend;

/* Returns the simulated device's table. All devices that are opened later have this schedule. */
sb_backend simulated_backend(sb_sim_schedule schedule);
/* Returns options with functions that create streams and make copies fail. */
sb_conformance_options simulated_options(void);
/* Returns the control functions of a simulated device. */
const sb_sim_device *simulated_controls(void *device);

/* Runs the conformance test. Prints the claims that did not pass, and fails the running test if a
   claim failed. A quick run (test_is_quick) tests only small counts. */
void assert_conforms(const char *name, const sb_backend *table,
                     const sb_conformance_options *options);

#endif
