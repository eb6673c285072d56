// Creates the context of a test on a device, and ends the test if a call fails.
#ifndef SYNCBLOB_TESTS_CAFFE_CONTEXT_HPP
#define SYNCBLOB_TESTS_CAFFE_CONTEXT_HPP

#include <cstdio>
#include <cstdlib>

#include "syncblob/backend.h"
#include "syncblob/syncblob.h"

template <typename... Parameters, typename... Arguments>
void must(sb_status (*function)(Parameters...), Arguments... arguments) {
    sb_error error;
    const sb_status status = function(arguments..., &error);
    if (status == SB_OK)
        return;
    std::fprintf(stderr, "%s: %s\n", sb_status_name(status), error.message);
    std::exit(1);
}

/** A NULL backend selects a device of libsyncblob. */
inline sb_context *create_context(const sb_backend *backend, const char *device) {
    sb_context *made = nullptr;
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.backend = backend;
    options.device = device;
    must(sb_context_create, &options, &made);
    return made;
}

#endif
