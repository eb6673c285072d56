/* Contexts on the first OpenCL device with a chosen kind of memory instead of the best kind. */
#ifndef SB_TESTS_OPENCL_MODES_H
#define SB_TESTS_OPENCL_MODES_H

#include <syncblob/opencl.h>

/* Returns a backend that uses one kind of memory, from SB_OPENCL_SVM to SB_OPENCL_FINE_SVM. */
const sb_backend *opencl_backend(int32_t memory);
/* Creates a context of `backend` on "opencl:0". */
sb_status opencl_context(const sb_backend *backend, sb_context **out, sb_error *err);
/* Creates a queue of the caller; `properties` may be NULL. */
cl_command_queue opencl_queue(const sb_context *context, const cl_queue_properties *properties);
/* Returns the extension table SB_OPENCL_DEVICE of the context's device. */
const sb_opencl_device *opencl_device(const sb_context *context, void **out_device);

#endif
