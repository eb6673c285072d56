/* Goal 5: arithmetic and copies, by one thread and by two, and how exact sums are. All contestants
   work on the same memory. */
#include "caffe.h"
#include "cases.h"
#include "harness.h"
#include "loops.h"
#include "team.h"

#include <syncblob/syncblob.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SAME       1.02 /* a ratio of two equals, with the noise that is left */
#define CALL_NS    8    /* what a call may cost beside 1 KiB of work */
#define COUNTED_NS 12   /* and one that is counted */
#define SUM_LOOP   1.2  /* a sum to a loop that adds in floats alone, 1 MiB */
#define SUM_SHARED 1.08 /* a sum to Caffe's, of what is in the cache that cores share */
#define LEAST_TEAM ((size_t)8 << 20) /* bytes from which two threads are shown */

struct state {
    size_t count;
    float *data, *diff, *copy;
    sb_context *context;
    sb_blob *blob, *target; /* data and diff; copy */
    void *caffe_blob, *caffe_target;
};

/* --- the library ----------------------------------------------------------------------- */

static void update(void *arg, int64_t n) {
    struct state *s = arg;
    for (; n > 0; n--)
        must(sb_blob_update(s->blob, NULL));
}

static void asum(void *arg, int64_t n) {
    struct state *s = arg;
    double sum;
    for (; n > 0; n--)
        must(sb_blob_asum(s->blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void sumsq(void *arg, int64_t n) {
    struct state *s = arg;
    double sum;
    for (; n > 0; n--)
        must(sb_blob_sumsq(s->blob, SB_DATA, &sum, NULL));
    keep(&sum);
}

static void scale(void *arg, int64_t n) {
    struct state *s = arg;
    for (; n > 0; n--)
        must(sb_blob_scale(s->blob, SB_DATA, -1, NULL));
}

static void copy(void *arg, int64_t n) {
    struct state *s = arg;
    for (; n > 0; n--)
        must(sb_blob_copy_from(s->target, SB_DATA, s->blob, 0, NULL));
}

/* --- the limits: the loop over a range, whole or a half by each of two threads --------------- */

typedef void range_work(struct state *s, size_t at, size_t count);

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

struct limit {
    struct state *state;
    range_work *work;
};

static void run_whole(void *arg, int64_t n) {
    struct limit *limit = arg;
    for (; n > 0; n--) {
        limit->work(limit->state, 0, limit->state->count);
        keep(limit->state->data);
    }
}

static void run_half(void *arg, int64_t i) {
    struct limit *limit = arg;
    size_t half = limit->state->count / 2;
    limit->work(limit->state, (size_t)i * half, half);
}

static void run_halves(void *arg, int64_t n) {
    for (; n > 0; n--)
        team_run(NULL, 2, run_half, arg);
}

/* --- Caffe -------------------------------------------------------------------------------- */

static void caffe_update(void *arg, int64_t n) {
    bench.caffe->update(((struct state *)arg)->caffe_blob, n);
}

static void caffe_asum(void *arg, int64_t n) {
    bench.caffe->asum(((struct state *)arg)->caffe_blob, n);
}

static void caffe_sumsq(void *arg, int64_t n) {
    bench.caffe->sumsq(((struct state *)arg)->caffe_blob, n);
}

static void caffe_scale(void *arg, int64_t n) {
    bench.caffe->scale(((struct state *)arg)->caffe_blob, n);
}

static void caffe_copy(void *arg, int64_t n) {
    struct state *s = arg;
    bench.caffe->copy(s->caffe_target, s->caffe_blob, n);
}

/* --- contests ------------------------------------------------------------------------------ */

static const struct operation {
    const char *what, *limit;
    void (*run)(void *, int64_t);
    range_work *range;
    void (*caffe)(void *, int64_t);
    double call_ns; /* more than the loop's, 1 KiB */
    double loop;    /* the ratio to the loop's, 1 MiB */
    double shared;  /* the ratio to Caffe's, 8 MiB */
    double team;    /* the ratio to the loop's with two threads, 256 MiB */
} operations[] = {
    {"update", "plain loop", update, update_range, caffe_update, CALL_NS, SAME, SAME, 1 / 0.9},
    {"asum", "plain loop", asum, asum_range, caffe_asum, CALL_NS, SUM_LOOP, SUM_SHARED, 1 / 0.9},
    {"sumsq", "plain loop", sumsq, sumsq_range, caffe_sumsq, CALL_NS, SUM_LOOP, SUM_SHARED,
     1 / 0.9},
    {"scale", "plain loop", scale, scale_range, caffe_scale, CALL_NS, SAME, SAME, 1 / 0.9},
    {"copy", "memcpy", copy, copy_range, caffe_copy, COUNTED_NS, SAME, SAME, 1.05},
};

static void contest_alone(const struct operation *op, struct state *s) {
    size_t bytes = s->count * sizeof *s->data;
    struct contest c = {.goal = 5, .what = op->what, .bytes = bytes, .threads = 1};
    struct limit limit = {s, op->range};
    contest_add(&c, "syncblob", op->run, NULL, s);
    contest_add(&c, op->limit, run_whole, NULL, &limit);
    if (bench.caffe)
        contest_add(&c, "Caffe", op->caffe, NULL, s);
    contest_run(&c);
    if (bytes == (size_t)1 << 10)
        goal_extra(&c, op->limit, op->call_ns);
    if (bytes == (size_t)1 << 20 || bytes == (size_t)256 << 20)
        goal_ratio(&c, op->limit, bytes == (size_t)1 << 20 ? op->loop : SAME);
    goal_ratio(&c, "Caffe", bytes == (size_t)8 << 20 ? op->shared : SAME);
    contest_free(&c);
}

static void contest_team(const struct operation *op, struct state *s) {
    size_t bytes = s->count * sizeof *s->data;
    struct contest c = {.goal = 5, .what = op->what, .bytes = bytes, .threads = 2};
    struct limit limit = {s, op->range};
    contest_add(&c, "syncblob", op->run, NULL, s);
    contest_add(&c, op->limit, run_halves, NULL, &limit);
    contest_run(&c);
    if (bytes == (size_t)256 << 20)
        goal_ratio(&c, op->limit, op->team);
    contest_free(&c);
}

/* As many calls at once as take a millisecond or more, since threads that sleep must be woken. */
#define THREADED_BYTES ((size_t)64 << 20)

struct threaded {
    const struct operation *op;
    struct state *state;
};

static int64_t calls_at_once(const struct state *s) {
    const size_t bytes = s->count * sizeof *s->data;
    return bytes < THREADED_BYTES ? (int64_t)(THREADED_BYTES / bytes) : 1;
}

static void run_threaded(void *arg, int64_t n) {
    const struct threaded *t = arg;
    t->op->run(t->state, n * calls_at_once(t->state));
}

static void caffe_threaded(void *arg, int64_t n) {
    const struct threaded *t = arg;
    t->op->caffe(t->state, n * calls_at_once(t->state));
}

/* Until nobody's threads look for work any more. */
static void nap(void *unused) {
    const struct timespec time = {.tv_nsec = 5000000};
    (void)unused;
    (void)nanosleep(&time, NULL);
}

static void contest_threads(const struct operation *op, struct state *s) {
    char what[64];
    struct threaded both = {op, s};
    struct contest c = {.goal = 5, .what = what, .bytes = s->count * sizeof *s->data, .threads = 2};
    snprintf(what, sizeof what, "%s, a BLAS with threads", op->what);
    contest_add(&c, "syncblob", run_threaded, nap, &both);
    contest_add(&c, "Caffe", caffe_threaded, nap, &both);
    contest_run(&c);
    goal_ratio(&c, "Caffe", SAME);
    contest_free(&c);
}

/* --- setting up ------------------------------------------------------------------------------ */

static sb_blob *blob_over(sb_context *context, float *data, float *diff, size_t count) {
    int64_t shape = (int64_t)count;
    size_t bytes = count * sizeof *data;
    sb_blob *blob;
    sb_mem *mem;
    must(sb_blob_create_shaped(context, SB_DTYPE_F32, &shape, 1, &blob, NULL));
    must(sb_blob_set_cpu(blob, SB_DATA, data, bytes, 0, NULL, NULL, NULL));
    if (diff) {
        must(sb_blob_mutable_mem(blob, SB_DIFF, &mem, NULL));
        must(sb_mem_set_cpu(mem, diff, bytes, 0, NULL, NULL, NULL));
    }
    return blob;
}

static void set_up_blobs(struct state *s, sb_parallel_for parallel_for) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.parallel_for = parallel_for;
    must(sb_context_create(&options, &s->context, NULL));
    s->blob = blob_over(s->context, s->data, s->diff, s->count);
    s->target = blob_over(s->context, s->copy, NULL, s->count);
}

static void take_down_blobs(struct state *s) {
    sb_blob_destroy(s->blob);
    sb_blob_destroy(s->target);
    sb_context_release(s->context);
}

static void set_up_caffe(struct state *s) {
    const struct caffe_peer *caffe = bench.caffe;
    s->caffe_blob = caffe->create(1, 1, 1, (int)s->count);
    s->caffe_target = caffe->create(1, 1, 1, (int)s->count);
    caffe->borrow(s->caffe_blob, s->data, s->diff);
    caffe->borrow(s->caffe_target, s->copy, NULL);
}

static void contests_of_size(size_t bytes) {
    size_t count = bytes / sizeof(float), n = sizeof operations / sizeof *operations;
    struct state s = {.count = count,
                      .data = random_floats(count, 4),
                      .diff = random_floats(count, 5),
                      .copy = random_floats(count, 6)};
    set_up_blobs(&s, NULL);
    if (bench.caffe)
        set_up_caffe(&s);
    for (size_t i = 0; i < n; i++)
        contest_alone(&operations[i], &s);
    if (bench.caffe) {
        bench.caffe->destroy(s.caffe_blob);
        bench.caffe->destroy(s.caffe_target);
    }
    take_down_blobs(&s);

    set_up_blobs(&s, team_run);
    for (size_t i = 0; i < n && bytes >= LEAST_TEAM; i++)
        contest_team(&operations[i], &s);
    take_down_blobs(&s);
    fresh_memory_free(s.data, bytes);
    fresh_memory_free(s.diff, bytes);
    fresh_memory_free(s.copy, bytes);
}

/* --- how exact sums are ---------------------------------------------------------------------- */

/* The sum, far closer than it is judged by; `power` is 1 or 2. */
static long double exact_sum(const float *x, size_t count, int power) {
    long double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += power == 1 ? (long double)fabsf(x[i]) : (long double)x[i] * (long double)x[i];
    return sum;
}

static double sum_of(const float *x, size_t count, int power, sb_parallel_for parallel_for) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context;
    double sum;
    options.parallel_for = parallel_for;
    must(sb_context_create(&options, &context, NULL));
    sb_blob *blob = blob_over(context, (float *)(uintptr_t)x, NULL, count);
    must(power == 1 ? sb_blob_asum(blob, SB_DATA, &sum, NULL)
                    : sb_blob_sumsq(blob, SB_DATA, &sum, NULL));
    sb_blob_destroy(blob);
    sb_context_release(context);
    return sum;
}

struct exactness {
    double error;   /* relative, the worst so far */
    double differs; /* 1 if two threads ever gave another sum than one */
};

static void look_at(struct exactness *worst, const float *x, size_t count, int power) {
    long double exact = exact_sum(x, count, power);
    double alone = sum_of(x, count, power, NULL), team = sum_of(x, count, power, team_run);
    worst->error = fmax(worst->error, (double)(fabsl((long double)alone - exact) / exact));
    if (memcmp(&alone, &team, sizeof alone) != 0)
        worst->differs = 1;
}

static void judge(const char *what, const struct exactness *worst, size_t count, double limit) {
    size_t bytes = count * sizeof(float);
    goal_value(5, what, bytes, 1, "error", worst->error, limit);
    goal_value(5, what, bytes, 2, "differs", worst->differs, 0);
}

static void fill(float *x, size_t count, float value) {
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

static void bench_exactness(void) {
    static const float values[] = {0.1F, 0.3F, 0.7F, 1.1F, 1.3F, 1.7F, 1.9F};
    size_t count = (size_t)(bench.effort == QUICK ? 1 : 64) << 20;
    struct exactness random[2] = {0}, hard[2] = {0};
    float *x = random_floats(count, 7);
    for (int power = 1; power <= 2; power++)
        look_at(&random[power - 1], x, count, power);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        fill(x, count, values[v]);
        for (int power = 1; power <= 2; power++)
            look_at(&hard[power - 1], x, count, power);
    }
    for (size_t i = 0; i < count; i++) /* what is beside the large ones is rounded away */
        x[i] = i % 64 ? 1.0F : 16777216.0F;
    for (int power = 1; power <= 2; power++)
        look_at(&hard[power - 1], x, count, power);
    judge("asum of random values", &random[0], count, 2e-7);
    judge("sumsq of random values", &random[1], count, 2e-7);
    judge("asum of one value repeated, of large among small", &hard[0], count, 1e-6);
    judge("sumsq of one value repeated, of large among small", &hard[1], count, 1e-6);
    fresh_memory_free(x, count * sizeof *x);
}

static void threads_of_size(size_t bytes) {
    size_t count = bytes / sizeof(float);
    struct state s = {.count = count,
                      .data = random_floats(count, 4),
                      .diff = random_floats(count, 5),
                      .copy = random_floats(count, 6)};
    set_up_blobs(&s, team_run);
    set_up_caffe(&s);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        contest_threads(&operations[i], &s);
    bench.caffe->destroy(s.caffe_blob);
    bench.caffe->destroy(s.caffe_target);
    take_down_blobs(&s);
    fresh_memory_free(s.data, bytes);
    fresh_memory_free(s.diff, bytes);
    fresh_memory_free(s.copy, bytes);
}

void bench_threads(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    if (!bench.caffe || bench.caffe->blas_threads() != 2) {
        puts("threads: needs Caffe with a BLAS of two threads");
        return;
    }
    team_start();
    for (int i = 0; i < count; i++)
        if (sizes[i] >= (size_t)1 << 20 && sizes[i] <= (size_t)256 << 20)
            threads_of_size(sizes[i]);
    team_stop();
}

void bench_arithmetic(void) {
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    team_start();
    bench_exactness();
    for (int i = 0; i < count; i++)
        contests_of_size(sizes[i]);
    team_stop();
}
