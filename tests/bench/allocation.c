/* Times the allocation of fresh memory, and of memory that was used before. The last result of a
   contestant is freed after the clock has stopped. */
#include "harness.h"
#include "peers/caffe.h"

#include <string.h>

#define GOAL_BYTES (256 * MIB)

static size_t bytes;
static sb_context *context;
static sb_blob *blob;
static void *memory;

static void touch(char *data) {
    for (size_t i = 0; i < bytes; i += 4096)
        data[i] = 1;
    keep(data);
}

static void destroy_blob(void) {
    sb_blob_destroy(blob);
    blob = NULL;
}

static void allocate(void) {
    void *data;
    sb_blob_destroy(blob);
    blob = make_blob(context, SB_DTYPE_F32, bytes / sizeof(float));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    touch(data);
}

static void allocate_again(void) {
    void *data;
    sb_blob_destroy(blob);
    blob = make_blob(context, SB_DTYPE_F32, bytes / sizeof(float));
    must(sb_blob_overwrite_cpu(blob, SB_DATA, &data, NULL));
    memset(data, 1, bytes);
    keep(data);
}

static void unmap(void) {
    fresh_memory_free(memory, bytes);
    memory = NULL;
}

static void map(void) {
    unmap();
    memory = fresh_memory(bytes);
    if (bytes < 2 * MIB) /* this memory is from malloc, which does not zero it */
        memset(memory, 0, bytes);
    touch(memory);
}

static void write_warm(void) {
    memset(memory, 1, bytes);
    keep(memory);
}

static void make(void) {
    static const int64_t shape[] = {2, 3, 4, 5};
    sb_blob *made;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 4, &made, NULL));
        keep(made);
        sb_blob_destroy(made);
    }
}

static void caffe_make(void) {
    bench.caffe->make();
}

static const struct contest objects = {
    .what = "make and destroy",
    .contestants = {{"syncblob", make, NULL}},
    .caffe = {{"Caffe", caffe_make, NULL}},
    .goals = {{"Caffe", 0.5, 0}},
};

static const struct contest fresh = {
    .what = "allocate and write",
    .contestants = {{"syncblob", allocate, destroy_blob}, {"mmap", map, unmap}},
    .goals = {{"mmap", 1.1, GOAL_BYTES}},
};

static const struct contest again = {
    .what = "allocate again",
    .contestants = {{"syncblob", allocate_again, destroy_blob},
                    {"writing warm memory", write_warm, NULL}},
    .goals = {{"writing warm memory", 1.1, GOAL_BYTES}},
};

static void contests_of_size(size_t size) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    bytes = size;
    context = make_context(SB_CONTEXT_NO_HOST_CACHE, NULL);
    contest_run(&fresh, bytes, 1);
    sb_context_release(context);

    options.max_cache_bytes = bytes > GOAL_BYTES ? bytes : 0;
    must(sb_context_create(&options, &context, NULL));
    memory = fresh_memory(bytes);
    contest_run(&again, bytes, 1);
    unmap();
    sb_context_release(context);
}

void bench_allocation(void) {
    contest_run(&objects, 0, 1);
    each_size(contests_of_size);
}
