/* Times small calls, whose cost does not depend on the size. A run makes CALLS calls, so that the
   cost of calling the run does not matter. */
#include "cases.h"
#include "harness.h"
#include "peers/caffe.h"
#include "peers/linked.h"

#include <syncblob/syncblob.h>

static void access_data(void *blob) {
    const void *data;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_cpu(blob, SB_DATA, &data, NULL));
        keep(data);
    }
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

static void reshape_vector(void *blob) {
    int64_t shape[] = {2, 3, 4, 5};
    for (int i = 0; i < CALLS; i++) {
        shape[0] = 1 + (i & 1);
        must(sb_blob_reshape(blob, shape, 4, NULL, NULL));
    }
}

static void reshape_four(void *blob) {
    for (int i = 0; i < CALLS; i++)
        must(sb_blob_reshape_legacy(blob, 1 + (i & 1), 3, 4, 5, NULL, NULL));
}

static void offset(void *blob) {
    int64_t at;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_offset_legacy(blob, 1, 2, 3, i & 3, &at, NULL));
        keep(&at);
    }
}

static void contest(const char *what, double limit, void *blob, void (*ours)(void *),
                    void *caffe_blob, void (*caffes)(void *)) {
    struct contest c = {.what = what, .threads = 1};
    contest_add(&c, "syncblob", ours, NULL, blob);
    if (caffes)
        contest_add(&c, "Caffe", caffes, NULL, caffe_blob);
    contest_run(&c);
    goal_ratio(&c, "Caffe", limit);
    contest_free(&c);
}

void bench_small(void) {
    const struct caffe_peer none = {0}, *caffe = bench.caffe ? bench.caffe : &none;
    void *theirs = bench.caffe ? caffe->create(2, 3, 4, 5) : NULL;
    void *data;
    sb_blob *blob;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    contest("access to valid data", 0.9, blob, access_data, theirs, caffe->access);
    if (bench.linked) {
        void *linked = bench.linked->create();
        must(linked ? 0 : -1);
        contest("access, linked statically and optimised at link time", 0.5, linked,
                bench.linked->access, theirs, caffe->access);
        bench.linked->destroy(linked);
    }
    contest("make and destroy", 0.5, NULL, make, NULL, caffe->make);
    contest("offset", 0.1, blob, offset, theirs, caffe->offset);
    contest("reshape, vector", 0.6, blob, reshape_vector, theirs, caffe->reshape_vector);
    contest("reshape, four numbers", 0.7, blob, reshape_four, theirs, caffe->reshape_four);
    sb_blob_destroy(blob);
    if (bench.caffe)
        caffe->destroy(theirs);
}
