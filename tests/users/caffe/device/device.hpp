// A device for Caffe without a GPU, and the tests' access to the device's memory.
#ifndef SYNCBLOB_TESTS_CAFFE_DEVICE_HPP
#define SYNCBLOB_TESTS_CAFFE_DEVICE_HPP

#include <cstddef>

#include <driver_types.h>

#ifdef SYNCBLOB_CAFFE_CONTEXT
struct sb_context *device_context();
#endif

void *device_malloc(size_t bytes);
void device_free(void *memory);
void device_read(void *to, const void *device, size_t bytes);
void device_write(void *device, const void *from, size_t bytes);
cudaStream_t stream_create();
void stream_synchronize(cudaStream_t stream);
void stream_destroy(cudaStream_t stream);

#endif
