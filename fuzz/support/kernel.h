/* Kernels of a user of the library on the simulated device. A kernel checks bytes, then writes
   other bytes. */
#ifndef SB_FUZZ_KERNEL_H
#define SB_FUZZ_KERNEL_H

#include "fuzz.h"

#include <syncblob/sim.h>

#define KERNELS_MAX      64
#define KERNEL_BYTES_MAX 64

struct kernel {
    struct kernels *all;
    const void *owner; /* the owner of the bytes */
    sb_stream stream;
    const void *ptr;
    size_t bytes;
    bool looks, writes, ran;
    unsigned char expected[KERNEL_BYTES_MAX], fill[KERNEL_BYTES_MAX];
};

struct kernels {
    sb_context *context;
    bool blind; /* kernels no longer check or write bytes; the device may be lost */
    int count;
    struct kernel each[KERNELS_MAX];
};

/* Queues a kernel that checks (if `expected` is not NULL) and writes (if `fill` is not NULL). */
void kernel_launch(struct kernels *kernels, sb_stream stream, const void *owner, const void *ptr,
                   size_t bytes, const unsigned char *expected, const unsigned char *fill);
/* Returns whether a kernel on the owner's bytes is still queued on the stream. */
bool kernel_is_queued(const struct kernels *kernels, const void *owner, sb_stream stream);

#endif
