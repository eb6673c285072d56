/* The linker redirects the library's calls of OpenCL to driver.c (--wrap), which makes chosen calls
   fail and counts live objects. */
#ifndef SB_TESTS_OPENCL_DRIVER_H
#define SB_TESTS_OPENCL_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <syncblob/opencl.h>

/* Returns a backend for one kind of memory, from SB_OPENCL_SVM to SB_OPENCL_FINE_SVM. */
const sb_backend *opencl_backend(int32_t memory);
sb_status opencl_context(const sb_backend *backend, sb_context **out, sb_error *err);
cl_command_queue opencl_queue(const sb_context *context, const cl_queue_properties *properties);
const sb_opencl_device *opencl_device(const sb_context *context, void **out_device);

enum driver_mode {
    DRIVER_NOW,  /* the call does nothing and returns the code */
    DRIVER_LATER /* the call's command fails later; a call without a command fails at once */
};

/* Makes the `nth` call of `name` (NULL: of any function) on this thread fail. An `nth` of 0 removes
   the fault. Releases of objects never fail. */
void driver_fail(const char *name, int64_t nth, enum driver_mode mode, cl_int code);
/* Returns the function that driver_fail has made fail, or NULL. */
const char *driver_fired(void);

extern struct driver_live {
    atomic_int_fast64_t contexts, queues, programs, kernels, buffers, blocks, events;
} driver_live;

void assert_nothing_is_live(void);

/* Properties of devices that are opened later. By default, a device has the properties of pocl's
   device, and Intel's unified shared memory. */
extern struct fake_device {
    bool hides_doubles, hides_svm, hides_fine_svm, hides_usm;
    bool is_separate;    /* the device's memory is not the host's */
    const char *version; /* if NULL, the device reports its real version */
} fake_device;

#endif
