/* Times the allocation of fresh memory, and of memory that was used before. The last result of a
   contestant is freed after the clock has stopped. */
#include "cases.h"
#include "harness.h"
#include "peers/caffe.h"

#include <syncblob/syncblob.h>

#include <string.h>

#define GOAL_BYTES (256 * MIB)

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

static void allocate(void *arg) {
    struct state *s = arg;
    void *data;
    create_blob(s);
    must(sb_blob_mutable_cpu(s->blob, SB_DATA, &data, NULL));
    touch(data, s->bytes);
}

static void allocate_again(void *arg) {
    struct state *s = arg;
    void *data;
    create_blob(s);
    must(sb_blob_overwrite_cpu(s->blob, SB_DATA, &data, NULL));
    memset(data, 1, s->bytes);
    keep(data);
}

static void unmap(void *arg) {
    struct state *s = arg;
    fresh_memory_free(s->memory, s->bytes);
    s->memory = NULL;
}

static void map(void *arg) {
    struct state *s = arg;
    unmap(s);
    s->memory = fresh_memory(s->bytes);
    if (s->bytes < 2 * MIB) /* this memory is from malloc, which does not zero it */
        memset(s->memory, 0, s->bytes);
    touch(s->memory, s->bytes);
}

static void write_warm(void *arg) {
    struct state *s = arg;
    memset(s->memory, 1, s->bytes);
    keep(s->memory);
}

static void caffe_destroy(void *arg) {
    struct state *s = arg;
    bench.caffe->destroy(s->caffe_blob);
    s->caffe_blob = NULL;
}

static void caffe_allocate(void *arg) {
    struct state *s = arg;
    float *data;
    caffe_destroy(s);
    s->caffe_blob = bench.caffe->allocate((int64_t)(s->bytes / sizeof(float)), &data);
    touch(data, s->bytes);
}

static void contest_fresh(struct state *s) {
    struct contest c = {.what = "allocate and write", .bytes = s->bytes, .threads = 1};
    contest_add(&c, "syncblob", allocate, destroy_blob, s);
    contest_add(&c, "mmap", map, unmap, s);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_allocate, caffe_destroy, s);
    contest_run(&c);
    if (s->bytes == GOAL_BYTES)
        goal_ratio(&c, "mmap", 1.1);
    contest_free(&c);
}

static void contest_again(struct state *s) {
    struct contest c = {.what = "allocate again", .bytes = s->bytes, .threads = 1};
    s->memory = fresh_memory(s->bytes);
    contest_add(&c, "syncblob", allocate_again, destroy_blob, s);
    contest_add(&c, "writing warm memory", write_warm, NULL, s);
    contest_run(&c);
    if (s->bytes == GOAL_BYTES)
        goal_ratio(&c, "writing warm memory", 1.1);
    contest_free(&c);
    unmap(s);
}

static void make(void *unused) {
    static const int64_t shape[] = {2, 3, 4, 5};
    sb_blob *blob;
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 4, &blob, NULL));
        keep(blob);
        sb_blob_destroy(blob);
    }
}

static void contest_objects(void) {
    struct contest c = {.what = "make and destroy", .threads = 1};
    contest_add(&c, "syncblob", make, NULL, NULL);
    if (bench.caffe)
        contest_add(&c, "Caffe", bench.caffe->make, NULL, NULL);
    contest_run(&c);
    goal_ratio(&c, "Caffe", 0.5);
    contest_free(&c);
}

void bench_allocation(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    contest_objects();
    for (int i = 0; i < count; i++)
        for (int again = 0; again < 2; again++) {
            sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
            struct state s = {.bytes = sizes[i]};
            options.flags = again ? 0 : SB_CONTEXT_NO_HOST_CACHE;
            if (again && sizes[i] > GOAL_BYTES)
                options.max_cache_bytes = sizes[i];
            must(sb_context_create(&options, &s.context, NULL));
            (again ? contest_again : contest_fresh)(&s);
            sb_context_release(s.context);
        }
}
