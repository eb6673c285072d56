// The simulated device, and the thread's context for bindings/caffe.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>

#include "syncblob/sim.h"
#include "syncblob/syncblob.h"

namespace {

void check(sb_status status, const sb_error &error) {
    if (status == SB_OK)
        return;
    std::fprintf(stderr, "%s: %s\n", sb_status_name(status), error.message);
    std::exit(1);
}

} // namespace

sb_context *simulated() {
    static sb_context *context = [] {
        sb_error error;
        sb_context *made = nullptr;
        sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
        options.device = "sim:0";
        check(sb_context_create(&options, &made, &error), error);
        return made;
    }();
    return context;
}

void *device_malloc(size_t bytes) {
    sb_error error;
    void *memory = nullptr;
    check(sb_sim_malloc(simulated(), bytes, &memory, &error), error);
    return memory;
}

void device_free(void *memory) {
    sb_error error;
    check(sb_sim_free(simulated(), memory, &error), error);
}

void device_read(void *to, const void *device, size_t bytes) {
    sb_error error;
    check(sb_sim_peek(simulated(), to, device, bytes, &error), error);
}

void device_write(void *device, const void *from, size_t bytes) {
    sb_error error;
    check(sb_sim_poke(simulated(), device, from, bytes, &error), error);
}

cudaStream_t stream_create() {
    sb_error error;
    sb_stream stream;
    check(sb_sim_stream_create(simulated(), &stream, &error), error);
    return reinterpret_cast<cudaStream_t>(stream);
}

void stream_synchronize(cudaStream_t stream) {
    sb_error error;
    check(sb_context_forget_stream(simulated(), reinterpret_cast<sb_stream>(stream), &error),
          error);
}

void stream_destroy(cudaStream_t stream) {
    sb_error error;
    check(sb_sim_stream_destroy(simulated(), reinterpret_cast<sb_stream>(stream), &error), error);
}
