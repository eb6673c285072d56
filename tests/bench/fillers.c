/* Compares fillers on one thread and on two threads with Caffe's fillers on one thread. All
   contestants fill the same memory. */
#include "harness.h"
#include "peers/caffe.h"

#define HALF        (1 / 2.0) /* the goal on one thread: half of Caffe's time */
#define TEAM_GOAL   (1 / 3.5) /* the goal on two threads, relative to Caffe's time on one */
#define SMALL_BYTES KIB
#define SMALL_GOAL  1.2 /* for the constant filler: includes the time of the call */
#define LEAST_TEAM  (8 * MIB)
#define VALUE       0.25F /* of the constant filler; its bytes differ, so memset cannot write it */

static size_t count;
static float *data;
static sb_blob *blob;
static void *caffe_blob;
static sb_filler filler;

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

static const struct kind *kind;

static void fill(void) {
    must(sb_blob_fill(blob, &filler, 1, NULL));
}

static void caffe_fill(void) {
    bench.caffe->fill(caffe_blob, (int)kind->peer);
}

static void loop(void) {
    loop_fill(data, VALUE, count);
    keep(data);
}

static void contest_filler(int threads) {
    const size_t bytes = count * sizeof *data;
    struct contest contest = {
        .what = kind->what,
        .contestants = {{"syncblob", fill, NULL}},
        .caffe = {{"Caffe", caffe_fill, NULL}},
    };
    if (kind->type != SB_FILLER_CONSTANT) {
        contest.goals[0] = (struct goal){"Caffe", threads == 1 ? HALF : TEAM_GOAL, 0};
    } else if (threads == 1) {
        contest.contestants[1] = (struct contestant){"plain loop", loop, NULL};
        contest.goals[0] =
            (struct goal){"plain loop", bytes <= SMALL_BYTES ? SMALL_GOAL : 1 / 0.97, 0};
    }
    sb_filler_init(&filler, sizeof filler);
    filler.type = kind->type;
    filler.value = (double)VALUE;
    if (kind->peer == PEER_SPARSE)
        filler.sparse = (int32_t)((sb_blob_shape(blob)[0] + 9) / 10);
    contest_run(&contest, bytes, threads);
}

/* The bilinear filler requires four axes: images of 16 x 4 x 4. */
static void each_filler(int threads) {
    const int images = (int)(count / 256);
    sb_context *context = make_context(0, threads == 1 ? NULL : team_run);
    must(sb_blob_create_legacy(context, SB_DTYPE_F32, images, 16, 4, 4, &blob, NULL));
    data = fill_randomly(blob, SB_DATA, 8);
    if (bench.caffe) {
        caffe_blob = bench.caffe->create(images, 16, 4, 4);
        bench.caffe->borrow(caffe_blob, data, NULL);
    }
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++)
        contest_filler(threads);
    if (bench.caffe)
        bench.caffe->destroy(caffe_blob);
    sb_blob_destroy(blob);
    sb_context_release(context);
}

static void contests_of_size(size_t bytes) {
    count = bytes / sizeof *data;
    each_filler(1);
    if (bytes >= LEAST_TEAM)
        each_filler(2);
}

void bench_fillers(void) {
    each_size(contests_of_size);
}
