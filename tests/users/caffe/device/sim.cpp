// The simulated device, and the context for bindings/caffe.
#include "context.hpp"
#include "device.hpp"

#include "syncblob/sim.h"

sb_context *device_context() {
    static sb_context *context = create_context(nullptr, "sim:0");
    return context;
}

void *device_malloc(size_t bytes) {
    sb_error error;
    void *memory = nullptr;
    check(sb_sim_malloc(device_context(), bytes, &memory, &error), error);
    return memory;
}

void device_free(void *memory) {
    sb_error error;
    check(sb_sim_free(device_context(), memory, &error), error);
}

void device_read(void *to, const void *device, size_t bytes) {
    sb_error error;
    check(sb_sim_peek(device_context(), to, device, bytes, &error), error);
}

void device_write(void *device, const void *from, size_t bytes) {
    sb_error error;
    check(sb_sim_poke(device_context(), device, from, bytes, &error), error);
}

cudaStream_t stream_create() {
    sb_error error;
    sb_stream stream;
    check(sb_sim_stream_create(device_context(), &stream, &error), error);
    return reinterpret_cast<cudaStream_t>(stream);
}

void stream_synchronize(cudaStream_t stream) {
    sb_error error;
    check(sb_context_forget_stream(device_context(), reinterpret_cast<sb_stream>(stream), &error),
          error);
}

void stream_destroy(cudaStream_t stream) {
    sb_error error;
    check(sb_sim_stream_destroy(device_context(), reinterpret_cast<sb_stream>(stream), &error),
          error);
}
