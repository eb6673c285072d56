#include "kernel.h"

#include <string.h>

static void look(const struct kernel *kernel, const unsigned char *seen) {
    for (size_t i = 0; i < kernel->bytes; i++)
        fuzz_check(seen[i] == kernel->expected[i],
                   "a kernel on stream %p found %02x at byte %zu of %zu, not %02x",
                   (void *)kernel->stream, seen[i], i, kernel->bytes, kernel->expected[i]);
}

static void run(void *user) {
    struct kernel *kernel = user;
    kernel->ran = true;
    if (kernel->all->blind)
        return;
    unsigned char *bytes = sb_sim_address(kernel->all->context, kernel->ptr, kernel->bytes);
    fuzz_check(bytes, "a kernel on stream %p found its memory freed", (void *)kernel->stream);
    if (kernel->looks)
        look(kernel, bytes);
    if (kernel->writes)
        memcpy(bytes, kernel->fill, kernel->bytes);
}

void kernel_launch(struct kernels *kernels, sb_stream stream, const void *owner, const void *ptr,
                   size_t bytes, const unsigned char *expected, const unsigned char *fill) {
    fuzz_check(kernels->count < KERNELS_MAX && bytes <= KERNEL_BYTES_MAX,
               "KERNELS_MAX or KERNEL_BYTES_MAX is too small");
    struct kernel *kernel = &kernels->each[kernels->count++];
    *kernel = (struct kernel){.all = kernels,
                              .owner = owner,
                              .stream = stream,
                              .ptr = ptr,
                              .bytes = bytes,
                              .looks = expected != NULL,
                              .writes = fill != NULL};
    if (expected)
        memcpy(kernel->expected, expected, bytes);
    if (fill)
        memcpy(kernel->fill, fill, bytes);
    sb_status st = status_of(sb_sim_launch(kernels->context, stream, run, kernel, &call_error));
    if (st == SB_ERR_DEVICE_LOST && kernels->blind)
        kernels->count--; /* the device was lost, and this call is the first to report it */
    else
        check_equal(st, SB_OK);
}

bool kernel_is_queued(const struct kernels *kernels, const void *owner) {
    for (const struct kernel *k = kernels->each; k < kernels->each + kernels->count; k++)
        if (k->owner == owner && !k->stream && !k->ran)
            return true;
    return false;
}
