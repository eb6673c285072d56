/* Compares fillers on one thread and on two threads with Caffe's fillers on one thread. All
   contestants fill the same memory. */
#include "cases.h"
#include "harness.h"
#include "loops.h"
#include "peers/caffe.h"
#include "team.h"

#include <syncblob/syncblob.h>

#include <stdbool.h>

#define HALF        (1 / 2.0) /* the goal on one thread: half of Caffe's time */
#define TEAM_GOAL   (1 / 3.5) /* the goal on two threads, of Caffe's time on one */
#define SMALL_BYTES KIB
#define SMALL_GOAL  1.2 /* for the constant filler: the call itself takes part of the time */
#define LEAST_TEAM  (8 * MIB)
#define VALUE       0.25F /* of the constant filler; its bytes differ, so memset cannot write it */

struct state {
    size_t count;
    float *data;
    sb_context *context;
    sb_blob *blob;
    void *caffe_blob;
    sb_filler filler;
    enum peer_filler peer;
};

static const struct kind {
    const char *what;
    int32_t type;
    enum peer_filler peer;
} kinds[] = {{"constant", SB_FILLER_CONSTANT, PEER_CONSTANT},
             {"uniform", SB_FILLER_UNIFORM, PEER_UNIFORM},
             {"gaussian", SB_FILLER_GAUSSIAN, PEER_GAUSSIAN},
             {"sparse gaussian", SB_FILLER_GAUSSIAN, PEER_SPARSE},
             {"positive_unitball", SB_FILLER_POSITIVE_UNITBALL, PEER_UNITBALL},
             {"bilinear", SB_FILLER_BILINEAR, PEER_BILINEAR}};

static void fill(void *arg) {
    struct state *s = arg;
    must(sb_blob_fill(s->blob, &s->filler, 1, NULL));
}

static void caffe_fill(void *arg) {
    struct state *s = arg;
    bench.caffe->fill(s->caffe_blob, (int)s->peer);
}

static void loop(void *arg) {
    struct state *s = arg;
    loop_fill(s->data, VALUE, s->count);
    keep(s->data);
}

static void contest_of(const struct kind *kind, struct state *s, int threads) {
    size_t bytes = s->count * sizeof *s->data;
    struct contest c = {.what = kind->what, .bytes = bytes, .threads = threads};
    bool constant = kind->type == SB_FILLER_CONSTANT;
    sb_filler_init(&s->filler, sizeof s->filler);
    s->filler.type = kind->type;
    s->filler.value = (double)VALUE;
    s->peer = kind->peer;
    if (kind->peer == PEER_SPARSE)
        s->filler.sparse = (int32_t)((sb_blob_shape(s->blob)[0] + 9) / 10);
    contest_add(&c, "syncblob", fill, NULL, s);
    if (constant && threads == 1)
        contest_add(&c, "plain loop", loop, NULL, s);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_fill, NULL, s);
    contest_run(&c);
    if (constant && threads == 1)
        goal_ratio(&c, "plain loop", bytes <= SMALL_BYTES ? SMALL_GOAL : 1 / 0.97);
    else if (!constant)
        goal_ratio(&c, "Caffe", threads == 1 ? HALF : TEAM_GOAL);
    contest_free(&c);
}

/* Creates a blob of four axes, which the bilinear filler requires: images of 16 x 4 x 4. */
static void set_up(struct state *s, sb_parallel_for parallel_for) {
    const int64_t shape[] = {(int64_t)(s->count / 256), 16, 4, 4};
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.parallel_for = parallel_for;
    must(sb_context_create(&options, &s->context, NULL));
    must(sb_blob_create_shaped(s->context, SB_DTYPE_F32, shape, 4, &s->blob, NULL));
    must(sb_blob_set_cpu(s->blob, SB_DATA, s->data, s->count * sizeof *s->data, 0, NULL, NULL,
                         NULL));
}

static void take_down(struct state *s) {
    sb_blob_destroy(s->blob);
    sb_context_release(s->context);
}

static void contests_of_size(size_t bytes) {
    struct state s = {.count = bytes / sizeof(float)};
    s.data = random_floats(s.count, 8);
    if (bench.caffe) {
        s.caffe_blob = bench.caffe->create((int)(s.count / 256), 16, 4, 4);
        bench.caffe->borrow(s.caffe_blob, s.data, NULL);
    }
    for (int threads = 1; threads <= (bytes >= LEAST_TEAM ? 2 : 1); threads++) {
        set_up(&s, threads == 1 ? NULL : team_run);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            contest_of(&kinds[i], &s, threads);
        take_down(&s);
    }
    if (bench.caffe)
        bench.caffe->destroy(s.caffe_blob);
    fresh_memory_free(s.data, bytes);
}

void bench_fillers(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    team_start();
    for (int i = 0; i < count; i++)
        contests_of_size(sizes[i]);
    team_stop();
}
