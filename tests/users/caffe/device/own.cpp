// Fake functions of CUDA and Caffe that Caffe's own two classes call; device memory is the
// process's memory.
#include "device.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "caffe/util/math_functions.hpp"

void *device_malloc(size_t bytes) {
    return std::malloc(bytes);
}
void device_read(void *to, const void *device, size_t bytes) {
    std::memcpy(to, device, bytes);
}
void device_write(void *device, const void *from, size_t bytes) {
    std::memcpy(device, from, bytes);
}
cudaStream_t stream_create() {
    return nullptr;
}
void stream_synchronize(cudaStream_t) {
}
void stream_destroy(cudaStream_t) {
}

#define FAKE(name, parameters, action)                                                             \
    extern "C" cudaError_t name parameters {                                                       \
        action;                                                                                    \
        return cudaSuccess;                                                                        \
    }
FAKE(cudaGetDevice, (int *device), *device = 0)
FAKE(cudaSetDevice, (int), )
FAKE(cudaMalloc, (void **memory, size_t bytes), *memory = std::malloc(bytes))
FAKE(cudaFree, (void *memory), std::free(memory))
FAKE(cudaMallocHost, (void **memory, size_t bytes), *memory = std::malloc(bytes))
FAKE(cudaFreeHost, (void *memory), std::free(memory))
FAKE(cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind),
     std::memcpy(to, from, bytes))
FAKE(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t),
     std::memcpy(to, from, bytes))
FAKE(cudaMemset, (void *memory, int byte, size_t bytes), std::memset(memory, byte, bytes))

extern "C" const char *cudaGetErrorString(cudaError_t) {
    return "an error of CUDA";
}

namespace caffe {

void caffe_gpu_memcpy(const size_t bytes, const void *from, void *to) {
    std::memmove(to, from, bytes);
}

#define FAKE_LOOP(Dtype, name, parameters, begin, step)                                            \
    template <> void name<Dtype> parameters {                                                      \
        begin;                                                                                     \
        for (int i = 0; i < count; i++)                                                            \
            step;                                                                                  \
    }
#define FAKE_MATH(Dtype)                                                                           \
    FAKE_LOOP(Dtype, caffe_gpu_axpy, (int count, Dtype alpha, const Dtype *x, Dtype *y), ,         \
              y[i] += alpha * x[i])                                                                \
    FAKE_LOOP(Dtype, caffe_gpu_scal, (int count, Dtype alpha, Dtype *x), , x[i] *= alpha)          \
    FAKE_LOOP(Dtype, caffe_gpu_asum, (int count, const Dtype *x, Dtype *sum), *sum = 0,            \
              *sum += std::abs(x[i]))                                                              \
    FAKE_LOOP(Dtype, caffe_gpu_dot, (int count, const Dtype *x, const Dtype *y, Dtype *sum),       \
              *sum = 0, *sum += x[i] * y[i])
FAKE_MATH(float)
FAKE_MATH(double)

} // namespace caffe
