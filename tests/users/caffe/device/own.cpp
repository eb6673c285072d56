// Fake functions of CUDA for Caffe's own classes. The device memory is memory of the process.
#include "device.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "caffe/util/math_functions.hpp"

void *device_malloc(size_t bytes) {
    return std::malloc(bytes);
}
void device_free(void *memory) {
    std::free(memory);
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

extern "C" {

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
    *memory = std::malloc(bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    std::free(memory);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
    return cudaMalloc(memory, bytes);
}
cudaError_t cudaFreeHost(void *memory) {
    return cudaFree(memory);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void *memory, int byte, size_t bytes) {
    std::memset(memory, byte, bytes);
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t) {
    return "an error of CUDA";
}

} // extern "C"

namespace caffe {

void caffe_gpu_memcpy(const size_t bytes, const void *from, void *to) {
    std::memmove(to, from, bytes);
}

template <typename Dtype>
void caffe_gpu_axpy(const int count, const Dtype alpha, const Dtype *x, Dtype *y) {
    for (int i = 0; i < count; i++)
        y[i] += alpha * x[i];
}

template <typename Dtype> void caffe_gpu_scal(const int count, const Dtype alpha, Dtype *x) {
    for (int i = 0; i < count; i++)
        x[i] *= alpha;
}

template <typename Dtype> void caffe_gpu_asum(const int count, const Dtype *x, Dtype *sum) {
    *sum = 0;
    for (int i = 0; i < count; i++)
        *sum += std::abs(x[i]);
}

template <typename Dtype>
void caffe_gpu_dot(const int count, const Dtype *x, const Dtype *y, Dtype *sum) {
    *sum = 0;
    for (int i = 0; i < count; i++)
        *sum += x[i] * y[i];
}

template void caffe_gpu_axpy(int, float, const float *, float *);
template void caffe_gpu_axpy(int, double, const double *, double *);
template void caffe_gpu_scal(int, float, float *);
template void caffe_gpu_scal(int, double, double *);
template void caffe_gpu_asum(int, const float *, float *);
template void caffe_gpu_asum(int, const double *, double *);
template void caffe_gpu_dot(int, const float *, const float *, float *);
template void caffe_gpu_dot(int, const double *, const double *, double *);

} // namespace caffe
