/* mpirun -n 2 comm [ROUNDS]: sums the 161 diffs of ResNet-50 by the reducer, by one MPI_Allreduce
   over a buffer of the same size, and by one MPI_Allreduce for each blob, in turn. Rank 0 prints a
   table with the goals, then the times by which a constant of the engine and a constant of the
   reducer were chosen. */
#include <syncblob/mpi.h>
#include <syncblob/reducer.h>
#include <syncblob/syncblob.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOBS        161
#define MOST_ROUNDS  1000
#define WORK_SECONDS 0.030

/* --- the shapes of ResNet-50 ---------------------------------------------------------------- */

struct shapes {
    int64_t counts[BLOBS];
    int num;
};

static void add(struct shapes *shapes, int64_t count) {
    if (shapes->num < BLOBS)
        shapes->counts[shapes->num] = count;
    shapes->num++;
}

/* Adds a convolution's weights (it has no bias), and its normalisation's scales and biases. */
static void add_convolution(struct shapes *shapes, int64_t in, int64_t out, int64_t kernel) {
    add(shapes, out * in * kernel * kernel);
    add(shapes, out);
    add(shapes, out);
}

static void add_stage(struct shapes *shapes, int64_t in, int64_t width, int blocks) {
    for (int i = 0; i < blocks; i++) {
        const int64_t from = i ? 4 * width : in;
        if (i == 0)
            add_convolution(shapes, from, 4 * width, 1);
        add_convolution(shapes, from, width, 1);
        add_convolution(shapes, width, width, 3);
        add_convolution(shapes, width, 4 * width, 1);
    }
}

static struct shapes resnet_50(void) {
    struct shapes shapes = {.num = 0};
    add_convolution(&shapes, 3, 64, 7);
    add_stage(&shapes, 64, 64, 3);
    add_stage(&shapes, 256, 128, 4);
    add_stage(&shapes, 512, 256, 6);
    add_stage(&shapes, 1024, 512, 3);
    add(&shapes, 1000 * 2048);
    add(&shapes, 1000);
    return shapes;
}

/* --- contestants ------------------------------------------------------------------------------ */

struct world {
    struct shapes shapes;
    int64_t total;
    sb_context *context;
    sb_comm *comm;
    sb_blob *blobs[BLOBS];
    sb_reducer *reducer;
    float *buffer;
};

static void must(bool holds, const char *what) {
    if (holds)
        return;
    (void)fprintf(stderr, "bench comm: %s\n", what);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
}

#define MUST(call) must((call) == SB_OK, #call)

static void sum_in_place(float *values, int64_t count) {
    (void)MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_bare(struct world *w, int64_t unused) {
    (void)unused;
    sum_in_place(w->buffer, w->total);
}

static void reduce_each(struct world *w, int64_t unused) {
    (void)unused;
    for (int i = BLOBS; i--;) {
        float *diff = NULL;
        MUST(sb_blob_mutable_cpu_f32(w->blobs[i], SB_DIFF, &diff, NULL));
        sum_in_place(diff, w->shapes.counts[i]);
    }
}

enum work { NO_WORK, WORK_HERE, WORK_OF_A_DEVICE };

/* Simulates the work that computes the diff of blob `i`, before sb_reducer_ready: keeps this
   processor busy, or sleeps as if a device did the work. */
static void work_before(enum work work, double began, int i) {
    const double end = began + WORK_SECONDS * (BLOBS - i) / BLOBS, now = MPI_Wtime();
    if (work == WORK_OF_A_DEVICE && now < end) {
        const struct timespec time = {.tv_nsec = (long)((end - now) * 1e9)};
        (void)nanosleep(&time, NULL);
    }
    const double own_end = now + WORK_SECONDS / BLOBS;
    while (work == WORK_HERE && MPI_Wtime() < own_end)
        continue;
}

static void reduce_by_reducer(struct world *w, int64_t work) {
    const double began = MPI_Wtime();
    for (int i = BLOBS; i--;) {
        work_before((enum work)work, began, i);
        MUST(sb_reducer_ready(w->reducer, w->blobs[i], NULL));
    }
    MUST(sb_reducer_wait(w->reducer, NULL));
}

/* Reduces the buffer in pieces of `length` floats, by one blocking call after the other. */
static void cut_blocking(struct world *w, int64_t length) {
    for (int64_t i = 0; i < w->total; i += length)
        sum_in_place(w->buffer + i, w->total - i < length ? w->total - i : length);
}

#define MOST_PIECES 4096

/* Reduces the buffer in pieces. Begins all calls before it waits for them, as the engine does. */
static void cut_at_once(struct world *w, int64_t length) {
    static MPI_Request requests[MOST_PIECES];
    int count = 0;
    for (int64_t i = 0; i < w->total && count < MOST_PIECES; i += length)
        (void)MPI_Iallreduce(MPI_IN_PLACE, w->buffer + i,
                             (int)(w->total - i < length ? w->total - i : length), MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD, &requests[count++]);
    (void)MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* The number of floats that all small blobs have together; the blobs are a part of the buffer. */
#define GATHERED ((int64_t)4 << 20)

static void blobs_in_place(struct world *w, int64_t length) {
    struct world part = {.total = GATHERED, .buffer = w->buffer};
    cut_at_once(&part, length);
}

static void copy_blobs(float *to, const float *from, int64_t length) {
    for (int64_t i = 0; i < GATHERED; i += length)
        memcpy(to + i, from + i, (size_t)length * sizeof *to);
}

static void blobs_gathered(struct world *w, int64_t length) {
    struct world part = {.total = GATHERED, .buffer = w->buffer + GATHERED};
    copy_blobs(part.buffer, w->buffer, length);
    cut_at_once(&part, (int64_t)1 << 18);
    copy_blobs(w->buffer, part.buffer, length);
}

/* --- timing ----------------------------------------------------------------------------------- */

struct contestant {
    const char *name;
    void (*run)(struct world *w, int64_t argument);
    int64_t argument; /* a value of enum work, or the floats of a piece */
    double samples[MOST_ROUNDS];
    double best, median;
};

/* Returns the seconds that the slowest rank takes for a run. */
static double timed(struct world *w, const struct contestant *c) {
    double seconds;
    (void)MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    c->run(w, c->argument);
    seconds = MPI_Wtime() - began;
    (void)MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static int is_before(const void *a, const void *b) {
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double *samples, int rounds) {
    qsort(samples, (size_t)rounds, sizeof(double), is_before);
    return samples[rounds / 2];
}

/* Times all contestants. Returns the median of the rounds' ratios of the first to the second. */
static double measure(struct world *w, struct contestant *contestants, int count, int rounds) {
    static double ratios[MOST_ROUNDS];
    for (int i = 0; i < count; i++)
        (void)timed(w, &contestants[i]);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            struct contestant *c = &contestants[(i + round) % count]; /* rotates the order */
            c->samples[round] = timed(w, c);
        }
        ratios[round] = contestants[0].samples[round] / contestants[1].samples[round];
    }
    for (int i = 0; i < count; i++) {
        contestants[i].median = median(contestants[i].samples, rounds);
        contestants[i].best = contestants[i].samples[0];
    }
    return median(ratios, rounds);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void print_goal(const char *what, double value, double limit, const char *unit) {
    (void)printf("%-44s %8.2f %s  goal %.2f: %s\n", what, value, unit, limit,
                 value <= limit ? "met" : "missed");
}

/* Prints the share of the reduction's time `alone` that overlapped with work, in time `beside`. */
static void print_hidden(const char *what, double alone, double beside) {
    const double most = alone < WORK_SECONDS ? 1 : WORK_SECONDS / alone;
    (void)printf("%-44s %8.0f %%  of at most %.0f %%\n", what,
                 (alone + WORK_SECONDS - beside) / alone * 100, most * 100);
}

static void compare_reductions(struct world *w, size_t extra, int rounds) {
    static struct contestant all[] = {
        {.name = "the reducer", .run = reduce_by_reducer, .argument = NO_WORK},
        {.name = "one MPI_Allreduce", .run = reduce_bare},
        {.name = "one MPI_Allreduce a blob", .run = reduce_each},
        {.name = "the reducer, 30 ms of work", .run = reduce_by_reducer, .argument = WORK_HERE},
        {.name = "the reducer, 30 ms of a device",
         .run = reduce_by_reducer,
         .argument = WORK_OF_A_DEVICE},
    };
    const int count = sizeof all / sizeof *all;
    const double ratio = measure(w, all, count, rounds);
    if (sb_comm_rank(w->comm) != 0)
        return;
    (void)printf("ResNet-50's %d diffs, %d rounds     best ms  median ms\n", BLOBS, rounds);
    for (int i = 0; i < count; i++)
        (void)printf("%-32s %10.2f %10.2f\n", all[i].name, all[i].best * 1e3, all[i].median * 1e3);
    print_goal("the reducer, over one MPI_Allreduce (best)", all[0].best / all[1].best, 1.10, "x");
    print_goal("the same, median of the rounds", ratio, 1.10, "x");
    print_goal("memory beside the blobs", (double)extra / (25 << 20), 2.00, "buckets");
    print_hidden("hidden by work on these processors", all[0].median, all[3].median);
    print_hidden("hidden by work of a device", all[0].median, all[4].median);
}

/* Times two ways of reducing pieces, for each size of pieces. */
static void sweep(struct world *w, const char *title, struct contestant pair[2], int64_t first_kib,
                  int64_t last_kib, int rounds) {
    if (sb_comm_rank(w->comm) == 0)
        (void)printf("\n%-24s %24s %24s   best, median ms\n", title, pair[0].name, pair[1].name);
    for (int64_t kib = first_kib; kib <= last_kib; kib *= 2) {
        pair[0].argument = pair[1].argument = kib << 8;
        (void)measure(w, pair, 2, rounds);
        if (sb_comm_rank(w->comm) == 0)
            (void)printf("%20lld KiB %15.2f %8.2f %15.2f %8.2f\n", (long long)kib,
                         pair[0].best * 1e3, pair[0].median * 1e3, pair[1].best * 1e3,
                         pair[1].median * 1e3);
    }
}

static void compare_constants(struct world *w, int rounds) {
    static struct contestant pieces[] = {{.name = "MPI_Iallreduce at once", .run = cut_at_once},
                                         {.name = "MPI_Allreduce", .run = cut_blocking}};
    static struct contestant small[] = {{.name = "each in place", .run = blobs_in_place},
                                        {.name = "gathered", .run = blobs_gathered}};
    sweep(w, "the buffer in pieces of", pieces, 64, 128 << 10, rounds);
    sweep(w, "16 MiB of blobs of", small, 16, 4 << 10, rounds);
}

/* --- setting up ------------------------------------------------------------------------------- */

static size_t live_bytes(sb_context *context) {
    sb_stats stats = {.struct_size = sizeof stats};
    MUST(sb_context_stats(context, &stats, NULL));
    return stats.host_bytes;
}

static size_t make_world(struct world *w) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    w->shapes = resnet_50();
    must(w->shapes.num == BLOBS, "these are not ResNet-50's blobs");
    MUST(sb_context_create(&options, &w->context, NULL));
    MUST(sb_mpi_comm_create(w->context, MPI_COMM_WORLD, &w->comm, NULL));
    for (int i = 0; i < BLOBS; i++) {
        float *diff = NULL;
        const int64_t count = w->shapes.counts[i];
        MUST(sb_blob_create_shaped(w->context, SB_DTYPE_F32, &count, 1, &w->blobs[i], NULL));
        MUST(sb_blob_overwrite_cpu_f32(w->blobs[i], SB_DIFF, &diff, NULL));
        memset(diff, 0, (size_t)count * sizeof *diff);
        w->total += count;
    }
    w->buffer = calloc((size_t)w->total, sizeof *w->buffer);
    must(w->buffer != NULL, "no memory");
    memset(w->buffer, 0, (size_t)w->total * sizeof *w->buffer);
    const size_t before = live_bytes(w->context);
    MUST(sb_reducer_create(w->comm, w->blobs, BLOBS, NULL, &w->reducer, NULL));
    return live_bytes(w->context) - before;
}

int main(int argc, char **argv) {
    static struct world w;
    const int rounds = argc > 1 ? atoi(argv[1]) : 15;
    (void)MPI_Init(&argc, &argv);
    must(rounds > 0 && rounds <= MOST_ROUNDS, "comm [ROUNDS], 1 to 1000");
    const size_t extra = make_world(&w);
    compare_reductions(&w, extra, rounds);
    compare_constants(&w, rounds);
    sb_reducer_destroy(w.reducer);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(w.blobs[i]);
    sb_comm_destroy(w.comm);
    sb_context_release(w.context);
    free(w.buffer);
    return MPI_Finalize() != MPI_SUCCESS;
}
