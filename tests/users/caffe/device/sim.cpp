// The simulated device as the device of bindings/caffe.
#include "context.hpp"
#include "device.hpp"

#include "syncblob/sim.h"

sb_context *device_context() {
    static sb_context *context = create_context(nullptr, "sim:0");
    return context;
}

void *device_malloc(size_t bytes) {
    void *memory = nullptr;
    must(sb_sim_malloc, device_context(), bytes, &memory);
    return memory;
}

void device_free(void *memory) {
    must(sb_sim_free, device_context(), memory);
}

void device_read(void *to, const void *device, size_t bytes) {
    must(sb_sim_peek, device_context(), to, device, bytes);
}

void device_write(void *device, const void *from, size_t bytes) {
    must(sb_sim_poke, device_context(), device, from, bytes);
}

cudaStream_t stream_create() {
    sb_stream stream;
    must(sb_sim_stream_create, device_context(), &stream);
    return reinterpret_cast<cudaStream_t>(stream);
}

void stream_synchronize(cudaStream_t stream) {
    must(sb_context_forget_stream, device_context(), reinterpret_cast<sb_stream>(stream));
}

void stream_destroy(cudaStream_t stream) {
    must(sb_sim_stream_destroy, device_context(), reinterpret_cast<sb_stream>(stream));
}
