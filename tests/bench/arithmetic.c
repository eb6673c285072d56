/* Times arithmetic, copies and fillers on one thread and on two. All contestants of a contest use
   the same memory. */
#include "harness.h"
#include "peers/caffe.h"

#include <string.h>

#define SAME        1.02 /* limit for the ratio of times that should be equal */
#define SUM_LOOP    1.2  /* limit for a sum of 1 MiB, relative to a loop that adds floats */
#define SUM_SHARED  1.08 /* limit for a sum of 8 MiB, relative to Caffe's sum */
#define TEAM        (1 / 0.9)
#define LEAST_TEAM  (8 * MIB)
#define HALF        (1 / 2.0)
#define TEAM_GOAL   (1 / 3.5) /* limit for two threads, relative to Caffe on one thread */
#define SMALL_BYTES KIB
#define SMALL_GOAL  1.2   /* limit for the constant filler with SMALL_BYTES */
#define VALUE       0.25F /* the bytes of 0.25F differ, so memset cannot write the value */

static size_t bytes, count;
static sb_blob *blob, *target;
static float *data, *diff, *copied;
static void *caffe_blob, *caffe_target;

/* --- the library and Caffe ---------------------------------------------------------------- */

static void update(void) {
    must(sb_blob_update(blob, NULL));
}

static void asum(void) {
    double sum;
    must(sb_blob_asum(blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void sumsq(void) {
    double sum;
    must(sb_blob_sumsq(blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void scale(void) {
    must(sb_blob_scale(blob, SB_DATA, -1, NULL));
}

static void copy(void) {
    must(sb_blob_copy_from(target, SB_DATA, blob, 0, NULL));
}

#define DEFINE_CAFFE(name)                                                                         \
    static void caffe_##name(void) {                                                               \
        bench.caffe->name(caffe_blob);                                                             \
    }

DEFINE_CAFFE(update)
DEFINE_CAFFE(asum)
DEFINE_CAFFE(sumsq)
DEFINE_CAFFE(scale)

static void caffe_copy(void) {
    bench.caffe->copy(caffe_target, caffe_blob);
}

/* --- the plain loops: over all elements, or over one half on each of two threads ------ */

static void update_range(size_t at, size_t n) {
    loop_update(data + at, diff + at, n);
}

static void asum_range(size_t at, size_t n) {
    float sum = loop_asum(data + at, n);
    keep(&sum);
}

static void sumsq_range(size_t at, size_t n) {
    float sum = loop_sumsq(data + at, n);
    keep(&sum);
}

static void scale_range(size_t at, size_t n) {
    loop_scale(data + at, -1, n);
}

static void copy_range(size_t at, size_t n) {
    memcpy(copied + at, data + at, n * sizeof *data);
}

static const struct operation {
    const char *what, *plain;
    void (*run)(void);
    void (*caffe)(void);
    void (*range)(size_t at, size_t n);
    double loop;
    double shared;
    double team;
} operations[] = {
    {"update", "plain loop", update, caffe_update, update_range, SAME, SAME, TEAM},
    {"asum", "plain loop", asum, caffe_asum, asum_range, SUM_LOOP, SUM_SHARED, TEAM},
    {"sumsq", "plain loop", sumsq, caffe_sumsq, sumsq_range, SUM_LOOP, SUM_SHARED, TEAM},
    {"scale", "plain loop", scale, caffe_scale, scale_range, SAME, SAME, TEAM},
    {"copy", "memcpy", copy, caffe_copy, copy_range, SAME, SAME, 1.05},
};

static const struct operation *operation;

static void run_whole(void) {
    operation->range(0, count);
    keep(data);
}

static void run_half(void *unused, int64_t i) {
    (void)unused;
    operation->range((size_t)i * (count / 2), count / 2);
}

static void run_halves(void) {
    team_run(NULL, 2, run_half, NULL);
}

/* --- contests ------------------------------------------------------------------------------ */

static void contest_alone(void) {
    const struct operation *op = operation;
    const struct contest contest = {
        .what = op->what,
        .contestants = {{"syncblob", op->run, NULL}, {op->plain, run_whole, NULL}},
        .caffe = {{"Caffe", op->caffe, NULL}},
        .goals = {{op->plain, op->loop, MIB},
                  {op->plain, SAME, 256 * MIB},
                  {"Caffe", bytes == 8 * MIB ? op->shared : SAME, 0}},
    };
    contest_run(&contest, bytes, 1);
}

static void contest_team(void) {
    const struct operation *op = operation;
    const struct contest contest = {
        .what = op->what,
        .contestants = {{"syncblob", op->run, NULL}, {op->plain, run_halves, NULL}},
        .goals = {{op->plain, op->team, 256 * MIB}},
    };
    contest_run(&contest, bytes, 2);
}

/* --- setting up ------------------------------------------------------------------------------ */

static void open_caffe(void) {
    caffe_blob = bench.caffe->create(1, 1, 1, (int)count);
    caffe_target = bench.caffe->create(1, 1, 1, (int)count);
    bench.caffe->borrow(caffe_blob, data, diff);
    bench.caffe->borrow(caffe_target, copied, NULL);
}

static void close_caffe(void) {
    bench.caffe->destroy(caffe_blob);
    bench.caffe->destroy(caffe_target);
}

static void each_operation(size_t size, sb_parallel_for parallel_for, void (*contest)(void)) {
    sb_context *context = make_context(0, parallel_for);
    bytes = size;
    count = size / sizeof *data;
    blob = make_blob(context, SB_DTYPE_F32, count);
    target = make_blob(context, SB_DTYPE_F32, count);
    data = fill_randomly(blob, SB_DATA, 4);
    diff = fill_randomly(blob, SB_DIFF, 5);
    copied = fill_randomly(target, SB_DATA, 6);
    if (bench.caffe)
        open_caffe();
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        operation = &operations[i];
        contest();
    }
    if (bench.caffe)
        close_caffe();
    sb_blob_destroy(blob);
    sb_blob_destroy(target);
    sb_context_release(context);
}

static void arithmetic_of_size(size_t size) {
    each_operation(size, NULL, contest_alone);
    if (size >= LEAST_TEAM)
        each_operation(size, team_run, contest_team);
}

void bench_arithmetic(void) {
    each_size(arithmetic_of_size);
}

/* --- fillers -------------------------------------------------------------------------------- */

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

/* The bilinear filler requires four axes. */
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

static void fillers_of_size(size_t size) {
    bytes = size;
    count = bytes / sizeof *data;
    each_filler(1);
    if (bytes >= LEAST_TEAM)
        each_filler(2);
}

void bench_fillers(void) {
    each_size(fillers_of_size);
}
