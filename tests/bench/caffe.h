/* Caffe, as a contestant: what a shared library made of Caffe and caffe.cpp exports under the name
   caffe_peer. Each call with an `n` does its work n times. */
#ifndef SB_BENCH_CAFFE_H
#define SB_BENCH_CAFFE_H

#include <stddef.h>
#include <stdint.h>

/* With Caffe's defaults; sparse: a tenth of the elements is not zero. */
enum peer_filler {
    PEER_CONSTANT,
    PEER_UNIFORM,
    PEER_GAUSSIAN,
    PEER_SPARSE,
    PEER_UNITBALL,
    PEER_BILINEAR
};

struct caffe_peer {
    /* A Blob<float> with something in its data. */
    void *(*create)(int n, int c, int h, int w);
    void (*destroy)(void *blob);
    /* Works on the caller's memory from now on. */
    void (*borrow)(void *blob, float *data, float *diff);

    void (*access)(void *blob, int64_t n);
    void (*make)(void *unused, int64_t n);
    void (*reshape_vector)(void *blob, int64_t n);
    void (*reshape_four)(void *blob, int64_t n);
    void (*offset)(void *blob, int64_t n);

    void (*update)(void *blob, int64_t n);
    void (*asum)(void *blob, int64_t n);
    void (*sumsq)(void *blob, int64_t n);
    void (*scale)(void *blob, int64_t n); /* by -1 */
    void (*copy)(void *to, const void *from, int64_t n);

    /* Fills a blob's data by one of enum peer_filler. */
    void (*fill)(void *blob, int filler, int64_t n);

    /* mutable_cpu_data of a new blob; destroy it. */
    void *(*allocate)(int64_t count, float **out);
    /* A BlobProto's bytes into a blob, NULL: a new one; and back. Returns the blob. */
    void *(*load)(void *blob, const void *bytes, size_t size);
    void (*save)(const void *blob, void *buffer, size_t capacity);
    /* Google's protobuf alone: bytes to a message and back. */
    void (*parse)(const void *bytes, size_t size);
    /* The blobs of a model file, and their end. */
    void *(*load_net)(const char *path);
    void (*free_net)(void *net);
    /* Threads that the BLAS works with. */
    int (*blas_threads)(void);
};

#endif
