// Runs Caffe's tests of Blob and SyncedMemory on a GPU.
#include "device.hpp"

#include <string>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

extern "C" cudaError_t cudaMemset(void *memory, int byte, size_t bytes) {
    const std::string filled(bytes, static_cast<char>(byte));
    device_write(memory, filled.data(), bytes);
    return cudaSuccess;
}

extern "C" const char *cudaGetErrorString(cudaError_t) {
    return "an error of CUDA";
}

namespace caffe {

void caffe_gpu_memcpy(const size_t bytes, const void *from, void *to) {
    device_read(to, from, bytes);
}

} // namespace caffe

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
