/* Goal 1: what costs the same whatever the size. */
#include "caffe.h"
#include "cases.h"
#include "harness.h"
#include "linked.h"

#include <syncblob/syncblob.h>

static void access_data(void *blob, int64_t n) {
    const void *data;
    for (; n > 0; n--) {
        must(sb_blob_cpu(blob, SB_DATA, &data, NULL));
        keep(data);
    }
}

static void make(void *unused, int64_t n) {
    static const int64_t shape[] = {2, 3, 4, 5};
    sb_blob *blob;
    (void)unused;
    for (; n > 0; n--) {
        must(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, 4, &blob, NULL));
        keep(blob);
        sb_blob_destroy(blob);
    }
}

static void reshape_vector(void *blob, int64_t n) {
    int64_t shape[] = {2, 3, 4, 5};
    for (; n > 0; n--) {
        shape[0] = 1 + (n & 1);
        must(sb_blob_reshape(blob, shape, 4, NULL, NULL));
    }
}

static void reshape_four(void *blob, int64_t n) {
    for (; n > 0; n--)
        must(sb_blob_reshape_legacy(blob, 1 + (n & 1), 3, 4, 5, NULL, NULL));
}

static void offset(void *blob, int64_t n) {
    int64_t at;
    for (; n > 0; n--) {
        must(sb_blob_offset_legacy(blob, 1, 2, 3, n & 3, &at, NULL));
        keep(&at);
    }
}

static void contest(const char *what, double limit, void *blob, void (*ours)(void *, int64_t),
                    void *caffe_blob, void (*caffes)(void *, int64_t)) {
    struct contest c = {.goal = 1, .what = what, .threads = 1};
    contest_add(&c, "syncblob", ours, NULL, blob);
    if (caffes)
        contest_add(&c, "Caffe", caffes, NULL, caffe_blob);
    contest_run(&c);
    goal_ratio(&c, "Caffe", limit);
    contest_free(&c);
}

static void contest_linked(void *theirs) {
    void *blob = bench.linked->create();
    must(blob ? 0 : -1);
    contest("access, linked statically and optimised at link time", 0.5, blob, bench.linked->access,
            theirs, bench.caffe ? bench.caffe->access : NULL);
    bench.linked->destroy(blob);
}

void bench_small(void) {
    const struct caffe_peer none = {0}, *caffe = bench.caffe ? bench.caffe : &none;
    void *theirs = bench.caffe ? caffe->create(2, 3, 4, 5) : NULL;
    void *data;
    sb_blob *blob;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    contest("access to valid data", 0.9, blob, access_data, theirs, caffe->access);
    if (bench.linked)
        contest_linked(theirs);
    contest("make and destroy", 0.5, NULL, make, NULL, caffe->make);
    contest("offset", 0.1, blob, offset, theirs, caffe->offset);
    contest("reshape, vector", 0.6, blob, reshape_vector, theirs, caffe->reshape_vector);
    contest("reshape, four numbers", 0.7, blob, reshape_four, theirs, caffe->reshape_four);
    sb_blob_destroy(blob);
    if (bench.caffe)
        caffe->destroy(theirs);
}
