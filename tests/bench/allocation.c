/* Goal 2: memory that was never written, and memory that was. */
#include "caffe.h"
#include "cases.h"
#include "harness.h"

#include <syncblob/syncblob.h>

#include <string.h>

#define GOAL_BYTES ((size_t)256 << 20)

/* A contestant keeps its last result until the clock has stopped: when it works once a sample,
   giving memory back is not timed. */
struct state {
    size_t bytes;
    sb_context *context;
    sb_blob *blob;
    void *memory;
    void *caffe_blob;
};

static void touch(void *memory, size_t bytes) {
    char *at = memory;
    for (size_t i = 0; i < bytes; i += 4096)
        at[i] = 1;
    keep(memory);
}

static void destroy_blob(void *arg) {
    struct state *s = arg;
    sb_blob_destroy(s->blob);
    s->blob = NULL;
}

static void create_blob(struct state *s) {
    int64_t count = (int64_t)(s->bytes / sizeof(float));
    destroy_blob(s);
    must(sb_blob_create_shaped(s->context, SB_DTYPE_F32, &count, 1, &s->blob, NULL));
}

static void allocate(void *arg, int64_t n) {
    struct state *s = arg;
    void *data;
    for (; n > 0; n--) {
        create_blob(s);
        must(sb_blob_mutable_cpu(s->blob, SB_DATA, &data, NULL));
        touch(data, s->bytes);
    }
}

static void allocate_again(void *arg, int64_t n) {
    struct state *s = arg;
    void *data;
    for (; n > 0; n--) {
        create_blob(s);
        must(sb_blob_overwrite_cpu(s->blob, SB_DATA, &data, NULL));
        memset(data, 1, s->bytes);
        keep(data);
    }
}

static void unmap(void *arg) {
    struct state *s = arg;
    fresh_memory_free(s->memory, s->bytes);
    s->memory = NULL;
}

static void map(void *arg, int64_t n) {
    struct state *s = arg;
    for (; n > 0; n--) {
        unmap(s);
        s->memory = fresh_memory(s->bytes);
        if (s->bytes < (size_t)2 << 20) /* malloc's is not zero yet, and the blob's has to be */
            memset(s->memory, 0, s->bytes);
        touch(s->memory, s->bytes);
    }
}

static void write_warm(void *arg, int64_t n) {
    struct state *s = arg;
    for (; n > 0; n--) {
        memset(s->memory, 1, s->bytes);
        keep(s->memory);
    }
}

static void caffe_destroy(void *arg) {
    struct state *s = arg;
    bench.caffe->destroy(s->caffe_blob);
    s->caffe_blob = NULL;
}

static void caffe_allocate(void *arg, int64_t n) {
    struct state *s = arg;
    float *data;
    for (; n > 0; n--) {
        caffe_destroy(s);
        s->caffe_blob = bench.caffe->allocate((int64_t)(s->bytes / sizeof(float)), &data);
        touch(data, s->bytes);
    }
}

static void contest_fresh(size_t bytes) {
    struct contest c = {.goal = 2, .what = "allocate and write", .bytes = bytes, .threads = 1};
    struct state ours = {.bytes = bytes}, kernels = {.bytes = bytes}, caffes = {.bytes = bytes};
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    must(sb_context_create(&options, &ours.context, NULL));
    contest_add(&c, "syncblob", allocate, destroy_blob, &ours);
    contest_add(&c, "mmap", map, unmap, &kernels);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_allocate, caffe_destroy, &caffes);
    contest_run(&c);
    if (bytes == GOAL_BYTES)
        goal_ratio(&c, "mmap", 1.1);
    contest_free(&c);
    sb_context_release(ours.context);
}

static void contest_again(size_t bytes) {
    struct contest c = {.goal = 2, .what = "allocate again", .bytes = bytes, .threads = 1};
    struct state ours = {.bytes = bytes}, warm = {.bytes = bytes};
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    if (bytes > GOAL_BYTES)
        options.max_cache_bytes = bytes;
    must(sb_context_create(&options, &ours.context, NULL));
    warm.memory = fresh_memory(bytes);
    contest_add(&c, "syncblob", allocate_again, destroy_blob, &ours);
    contest_add(&c, "writing warm memory", write_warm, NULL, &warm);
    contest_run(&c);
    if (bytes == GOAL_BYTES)
        goal_ratio(&c, "writing warm memory", 1.1);
    contest_free(&c);
    sb_context_release(ours.context);
    fresh_memory_free(warm.memory, bytes);
}

void bench_allocation(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    for (int i = 0; i < count; i++) {
        contest_fresh(sizes[i]);
        contest_again(sizes[i]);
    }
}
