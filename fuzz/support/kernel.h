/* Kernels that a program runs on the simulated device. A kernel checks the bytes of some memory,
   then writes other bytes there. */
#ifndef SB_FUZZ_KERNEL_H
#define SB_FUZZ_KERNEL_H

#include "fuzz.h"

#include <syncblob/sim.h>

#define KERNELS_MAX      64
#define KERNEL_BYTES_MAX 64

struct kernel {
    struct kernels *all;
    const void *owner; /* identifies the memory, for kernel_is_queued */
    sb_stream stream;
    const void *ptr;
    size_t bytes;
    bool looks, writes, ran;
    unsigned char expected[KERNEL_BYTES_MAX], fill[KERNEL_BYTES_MAX];
};

struct kernels {
    sb_context *context;
    bool blind; /* set if the device may be lost: kernels no longer check or write bytes */
    int count;
    struct kernel each[KERNELS_MAX];
};

/* Queues a kernel that checks that the bytes are `expected` (NULL: omits the check), then writes
   `fill` (NULL: writes nothing). */
void kernel_launch(struct kernels *kernels, sb_stream stream, const void *owner, const void *ptr,
                   size_t bytes, const unsigned char *expected, const unsigned char *fill);
/* Returns whether a kernel with this owner is queued on the legacy stream. Until such a kernel has
   run, the harness must not use the memory. */
bool kernel_is_queued(const struct kernels *kernels, const void *owner);

#endif
