/* The functions by which the benchmarks call Caffe. libcaffe_peer.so exports this table. */
#ifndef SB_BENCH_CAFFE_H
#define SB_BENCH_CAFFE_H

#include <stddef.h>
#include <stdint.h>

/* PEER_SPARSE leaves a tenth of the elements nonzero. */
enum peer_filler {
    PEER_CONSTANT,
    PEER_UNIFORM,
    PEER_GAUSSIAN,
    PEER_SPARSE,
    PEER_UNITBALL,
    PEER_BILINEAR
};

struct caffe_peer {
    void *(*create)(int n, int c, int h, int w);
    void (*destroy)(void *blob);
    /* Makes the blob use the caller's memory as data and diff. */
    void (*borrow)(void *blob, float *data, float *diff);

    void (*update)(void *blob);
    void (*asum)(void *blob);
    void (*sumsq)(void *blob);
    void (*scale)(void *blob); /* multiplies the data by -1 */
    void (*copy)(void *to, const void *from);

    void (*fill)(void *blob, int filler);

    /* Returns a new blob, which the caller destroys, from a BlobProto message. */
    void *(*load)(const void *bytes, size_t size);
    void (*save)(const void *blob, void *buffer, size_t capacity);
};

#endif
