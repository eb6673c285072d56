// A device for Caffe without a GPU, and the tests' access to its memory. For Caffe's own classes
// the device is the process's memory, behind fake CUDA functions (own.cpp); for ours it is the
// simulated device (sim.cpp) or an OpenCL device (opencl.cpp).
#ifndef SYNCBLOB_TESTS_CAFFE_DEVICE_HPP
#define SYNCBLOB_TESTS_CAFFE_DEVICE_HPP

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <driver_types.h>

void *device_malloc(size_t bytes);
void device_read(void *to, const void *device, size_t bytes);
void device_write(void *device, const void *from, size_t bytes);
cudaStream_t stream_create();
void stream_synchronize(cudaStream_t stream);
void stream_destroy(cudaStream_t stream);

#ifdef SYNCBLOB_CAFFE_CONTEXT
#include "syncblob/backend.h"
#include "syncblob/syncblob.h"

sb_context *device_context();

// Calls function(arguments..., &error), which must succeed.
template <typename... Parameters, typename... Arguments>
void must(sb_status (*function)(Parameters...), Arguments... arguments) {
    sb_error error;
    const sb_status status = function(arguments..., &error);
    if (status == SB_OK)
        return;
    std::fprintf(stderr, "%s: %s\n", sb_status_name(status), error.message);
    std::exit(1);
}

/** Creates a context; a NULL backend selects a device of libsyncblob. */
inline sb_context *create_context(const sb_backend *backend, const char *device) {
    sb_context *made = nullptr;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.backend = backend;
    options.device = device;
    must(sb_context_create, &options, &made);
    return made;
}
#endif

#endif
