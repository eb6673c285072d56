/* The linker redirects the library's calls of OpenCL to driver.c (--wrap), which makes chosen calls
   fail, and counts the live objects that calls have created. */
#ifndef SB_TESTS_OPENCL_DRIVER_H
#define SB_TESTS_OPENCL_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <syncblob/opencl.h>

/* --- contexts on the first OpenCL device, with a chosen kind of memory --------------------- */

/* Returns a backend that uses one kind of memory, from SB_OPENCL_SVM to SB_OPENCL_FINE_SVM. */
const sb_backend *opencl_backend(int32_t memory);
/* Creates a context of `backend` on "opencl:0". */
sb_status opencl_context(const sb_backend *backend, sb_context **out, sb_error *err);
/* Creates a queue of the caller; `properties` may be NULL. */
cl_command_queue opencl_queue(const sb_context *context, const cl_queue_properties *properties);
/* Returns the extension table SB_OPENCL_DEVICE of the context's device. */
const sb_opencl_device *opencl_device(const sb_context *context, void **out_device);

/* How a planted failure appears. */
enum driver_mode {
    DRIVER_NOW,  /* the call does nothing and returns the code */
    DRIVER_LATER /* the call queues a command that fails; a call that queues nothing fails now */
};

/* Makes the `nth` call of `name` (NULL: of any function) on this thread fail; an `nth` of 0 removes
   the fault. Releases of objects never fail. */
void driver_fail(const char *name, int64_t nth, enum driver_mode mode, cl_int code);
/* Returns the name of the function whose call failed since the last driver_fail, or NULL. */
const char *driver_fired(void);

extern struct driver_live {
    atomic_int_fast64_t contexts, queues, programs, kernels, buffers, blocks, events;
} driver_live;

void assert_nothing_is_live(void);

/* The properties of devices that are opened later. By default a device has all properties of pocl's
   device, and Intel's unified shared memory. */
extern struct fake_device {
    bool hides_doubles, hides_svm, hides_fine_svm, hides_usm;
    bool is_separate;    /* the device's memory is not the host's */
    const char *version; /* NULL: the device's real version */
} fake_device;

#endif
