/* Times arithmetic and copies on one thread and on two. All contestants use the same memory. */
#include "cases.h"
#include "harness.h"
#include "loops.h"
#include "peers/caffe.h"
#include "team.h"

#include <syncblob/syncblob.h>

#include <string.h>
#include <time.h>

#define SAME       1.02 /* limit for times that should be equal, with room for noise */
#define SUM_LOOP   1.2  /* limit for a sum of 1 MiB, relative to a loop that adds floats */
#define SUM_SHARED 1.08 /* limit for a sum in the shared cache, relative to Caffe's sum */
#define TEAM       (1 / 0.9)
#define LEAST_TEAM (8 * MIB)
/* Caffe's threads sleep between samples; for this size the time to wake them is negligible. */
#define THREADED_BYTES (64 * MIB)

struct state {
    const struct operation *operation;
    size_t count;
    float *data, *diff, *copy;
    sb_context *context;
    sb_blob *blob, *target; /* data and diff; copy */
    void *caffe_blob, *caffe_target;
};

/* --- the library ----------------------------------------------------------------------- */

static void update(void *arg) {
    must(sb_blob_update(((struct state *)arg)->blob, NULL));
}

static void asum(void *arg) {
    double sum;
    must(sb_blob_asum(((struct state *)arg)->blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void sumsq(void *arg) {
    double sum;
    must(sb_blob_sumsq(((struct state *)arg)->blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void scale(void *arg) {
    must(sb_blob_scale(((struct state *)arg)->blob, SB_DATA, -1, NULL));
}

static void copy(void *arg) {
    struct state *s = arg;
    must(sb_blob_copy_from(s->target, SB_DATA, s->blob, 0, NULL));
}

/* --- the plain loops: over all elements, or over one half on each of two threads ------ */

static void update_range(struct state *s, size_t at, size_t count) {
    loop_update(s->data + at, s->diff + at, count);
}

static void asum_range(struct state *s, size_t at, size_t count) {
    float sum = loop_asum(s->data + at, count);
    keep(&sum);
}

static void sumsq_range(struct state *s, size_t at, size_t count) {
    float sum = loop_sumsq(s->data + at, count);
    keep(&sum);
}

static void scale_range(struct state *s, size_t at, size_t count) {
    loop_scale(s->data + at, -1, count);
}

static void copy_range(struct state *s, size_t at, size_t count) {
    memcpy(s->copy + at, s->data + at, count * sizeof *s->data);
}

static const struct operation {
    const char *what, *limit;
    void (*run)(void *arg);
    void (*range)(struct state *s, size_t at, size_t count);
    double loop;   /* limit of the ratio to the loop's time, at 1 MiB */
    double shared; /* limit of the ratio to Caffe's time, at 8 MiB */
    double team;   /* limit of the ratio to the loop's time with two threads, at 256 MiB */
} operations[] = {
    {"update", "plain loop", update, update_range, SAME, SAME, TEAM},
    {"asum", "plain loop", asum, asum_range, SUM_LOOP, SUM_SHARED, TEAM},
    {"sumsq", "plain loop", sumsq, sumsq_range, SUM_LOOP, SUM_SHARED, TEAM},
    {"scale", "plain loop", scale, scale_range, SAME, SAME, TEAM},
    {"copy", "memcpy", copy, copy_range, SAME, SAME, 1.05},
};

#define NUM_OPERATIONS (sizeof operations / sizeof *operations)

static void run_whole(void *arg) {
    struct state *s = arg;
    s->operation->range(s, 0, s->count);
    keep(s->data);
}

static void run_half(void *arg, int64_t i) {
    struct state *s = arg;
    s->operation->range(s, (size_t)i * (s->count / 2), s->count / 2);
}

static void run_halves(void *arg) {
    team_run(NULL, 2, run_half, arg);
}

static void run_caffe(void *arg) {
    struct state *s = arg;
    const struct caffe_peer *caffe = bench.caffe;
    void (*const runs[NUM_OPERATIONS - 1])(void *) = {caffe->update, caffe->asum, caffe->sumsq,
                                                      caffe->scale};
    if (s->operation->run == copy)
        caffe->copy(s->caffe_target, s->caffe_blob);
    else
        runs[s->operation - operations](s->caffe_blob);
}

/* --- contests ------------------------------------------------------------------------------ */

static void contest_alone(struct state *s) {
    const struct operation *op = s->operation;
    struct contest c = {.what = op->what, .bytes = s->count * sizeof(float), .threads = 1};
    contest_add(&c, "syncblob", op->run, NULL, s);
    contest_add(&c, op->limit, run_whole, NULL, s);
    if (bench.caffe)
        contest_add(&c, "Caffe", run_caffe, NULL, s);
    contest_run(&c);
    if (c.bytes == MIB || c.bytes == 256 * MIB)
        goal_ratio(&c, op->limit, c.bytes == MIB ? op->loop : SAME);
    goal_ratio(&c, "Caffe", c.bytes == 8 * MIB ? op->shared : SAME);
    contest_free(&c);
}

static void contest_team(struct state *s) {
    const struct operation *op = s->operation;
    struct contest c = {.what = op->what, .bytes = s->count * sizeof(float), .threads = 2};
    contest_add(&c, "syncblob", op->run, NULL, s);
    contest_add(&c, op->limit, run_halves, NULL, s);
    contest_run(&c);
    if (c.bytes == 256 * MIB)
        goal_ratio(&c, op->limit, op->team);
    contest_free(&c);
}

static void repeat(struct state *s, void (*run)(void *arg)) {
    for (size_t bytes = 0; bytes < THREADED_BYTES; bytes += s->count * sizeof(float))
        run(s);
}

static void run_threaded(void *arg) {
    repeat(arg, ((struct state *)arg)->operation->run);
}

static void caffe_threaded(void *arg) {
    repeat(arg, run_caffe);
}

/* Waits until the threads of both contestants sleep. */
static void nap(void *unused) {
    const struct timespec time = {.tv_nsec = 5000000};
    (void)unused;
    (void)nanosleep(&time, NULL);
}

static void contest_threads(struct state *s) {
    char what[64];
    struct contest c = {.what = what, .bytes = s->count * sizeof(float), .threads = 2};
    snprintf(what, sizeof what, "%s, a BLAS with threads", s->operation->what);
    contest_add(&c, "syncblob", run_threaded, nap, s);
    contest_add(&c, "Caffe", caffe_threaded, nap, s);
    contest_run(&c);
    goal_ratio(&c, "Caffe", SAME);
    contest_free(&c);
}

/* --- setting up ------------------------------------------------------------------------------ */

static sb_blob *blob_over(sb_context *context, float *data, float *diff, size_t count) {
    int64_t shape = (int64_t)count;
    sb_blob *blob;
    must(sb_blob_create_shaped(context, SB_DTYPE_F32, &shape, 1, &blob, NULL));
    must(sb_blob_set_cpu(blob, SB_DATA, data, count * sizeof *data, 0, NULL, NULL, NULL));
    if (diff)
        must(sb_blob_set_cpu(blob, SB_DIFF, diff, count * sizeof *diff, 0, NULL, NULL, NULL));
    return blob;
}

static void with_blobs(struct state *s, sb_parallel_for parallel_for,
                       void (*contest)(struct state *)) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.parallel_for = parallel_for;
    must(sb_context_create(&options, &s->context, NULL));
    s->blob = blob_over(s->context, s->data, s->diff, s->count);
    s->target = blob_over(s->context, s->copy, NULL, s->count);
    for (size_t i = 0; i < NUM_OPERATIONS; i++) {
        s->operation = &operations[i];
        contest(s);
    }
    sb_blob_destroy(s->blob);
    sb_blob_destroy(s->target);
    sb_context_release(s->context);
}

static struct state make_state(size_t bytes) {
    size_t count = bytes / sizeof(float);
    struct state s = {.count = count,
                      .data = random_floats(count, 4),
                      .diff = random_floats(count, 5),
                      .copy = random_floats(count, 6)};
    if (bench.caffe) {
        s.caffe_blob = bench.caffe->create(1, 1, 1, (int)count);
        s.caffe_target = bench.caffe->create(1, 1, 1, (int)count);
        bench.caffe->borrow(s.caffe_blob, s.data, s.diff);
        bench.caffe->borrow(s.caffe_target, s.copy, NULL);
    }
    return s;
}

static void end_state(struct state *s) {
    if (bench.caffe) {
        bench.caffe->destroy(s->caffe_blob);
        bench.caffe->destroy(s->caffe_target);
    }
    fresh_memory_free(s->data, s->count * sizeof(float));
    fresh_memory_free(s->diff, s->count * sizeof(float));
    fresh_memory_free(s->copy, s->count * sizeof(float));
}

void bench_threads(void) {
    if (!bench.caffe || bench.caffe->blas_threads() != 2) {
        puts("threads: this case requires Caffe with a BLAS of two threads");
        return;
    }
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    team_start();
    for (int i = 0; i < count; i++)
        if (sizes[i] >= MIB && sizes[i] <= 256 * MIB) {
            struct state s = make_state(sizes[i]);
            with_blobs(&s, team_run, contest_threads);
            end_state(&s);
        }
    team_stop();
}

void bench_arithmetic(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    team_start();
    for (int i = 0; i < count; i++) {
        struct state s = make_state(sizes[i]);
        with_blobs(&s, NULL, contest_alone);
        if (sizes[i] >= LEAST_TEAM)
            with_blobs(&s, team_run, contest_team);
        end_state(&s);
    }
    team_stop();
}
