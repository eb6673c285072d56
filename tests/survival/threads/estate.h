/* Objects of every kind, and pending transfers, on a context with a device. */
#ifndef SB_TESTS_ESTATE_H
#define SB_TESTS_ESTATE_H

#include "blobs.h"
#include "nets.h"
#include "plain.h"
#include "pointers.h"

#define BYTES ((size_t)512)
#define LARGE ((size_t)256 << 10) /* a size that the cache keeps */

struct estate {
    sb_context *context;
    sb_stream stream;
    sb_mem *pinned, *pushed, *pulled, *lent_host, *lent_device, *at_device, *written;
    sb_blob *blob, *sharer;
    sb_model *model;
    struct lent host, device;
};

static inline void estate_memories(struct estate *e) {
    sb_context *context = e->context;
    sb_mem_release(mem_filled(context, LARGE, 0x77)); /* stays in the cache */
    e->pinned = mem_filled(context, LARGE, 1);
    e->pushed = mem_filled(context, BYTES, 2);
    e->pulled = mem_filled(context, BYTES, 3);
    e->at_device = mem_filled(context, BYTES, 4);
    assert_ok(sb_mem_create(context, BYTES, &e->lent_host, &err));
    assert_ok(sb_mem_create(context, BYTES, &e->lent_device, &err));
    e->host = lend_host(BYTES, 5);
    e->device = lend_device(context, BYTES, 6);
    assert_ok(sb_mem_set_cpu(e->lent_host, e->host.ptr, BYTES, 0, lent_deleter, &e->host, &err));
    assert_ok(sb_mem_set_gpu(e->lent_device, e->device.ptr, BYTES, SB_READ_ONLY, lent_deleter,
                             &e->device, &err));
    (void)mem_pointer(e->at_device, MUTABLE_GPU);
    assert_ok(sb_mem_create(context, BYTES, &e->written, &err));
    (void)mem_pointer_on(e->written, OVERWRITE_GPU_ON, e->stream);
    (void)mem_pointer(e->pulled, MUTABLE_GPU);
    assert_ok(sb_sim_set_schedule(context, SB_SIM_LAZY, 0, &err));
    assert_ok(sb_mem_async_gpu_push(e->pushed, e->stream, &err));
    assert_ok(sb_mem_async_cpu_pull(e->pulled, e->stream, &err));
}

static inline void estate_open(struct estate *e) {
    memset(e, 0, sizeof *e);
    assert_ok(create_with_backend(NULL, "sim:0", &e->context, &err));
    assert_ok(sb_sim_stream_create(e->context, &e->stream, &err));
    estate_memories(e);
    e->blob = blob_of_count(e->context, SB_DTYPE_F32, 100);
    fill_values(SB_DTYPE_F32, 100, 2, 0, blob_pointer(e->blob, SB_DATA, OVERWRITE_CPU));
    e->sharer = blob_of_count(e->context, SB_DTYPE_F32, 100);
    assert_ok(sb_blob_share(e->sharer, SB_DATA, e->blob, &err));
    e->model = small_model(e->context);
}

static inline void estate_release(struct estate *e) {
    sb_mem *mems[] = {e->pinned,      e->pushed,    e->pulled, e->lent_host,
                      e->lent_device, e->at_device, e->written};
    for (size_t i = 0; i < sizeof mems / sizeof mems[0]; i++)
        sb_mem_release(mems[i]);
    lent_free(&e->device);
    sb_blob_destroy(e->blob);
    sb_blob_destroy(e->sharer);
    sb_model_destroy(e->model);
    sb_context_trim(e->context);
    sb_context_release(e->context);
}

static inline bool host_holds(const sb_mem *mem, size_t bytes, int fill) {
    const void *ptr;
    return sb_mem_cpu(mem, &ptr, NULL) == SB_OK && bytes_are(ptr, bytes, fill);
}

/* Ignores failures of the calls. */
static inline void use_new_memory(sb_context *context, sb_stream stream, size_t bytes) {
    sb_mem *mem = NULL;
    const void *in;
    if (sb_mem_create(context, bytes, &mem, NULL) == SB_OK) {
        ignore(sb_mem_prefetch_gpu(mem, stream, NULL));
        ignore(sb_mem_cpu(mem, &in, NULL));
    }
    sb_mem_release(mem);
}

#endif
