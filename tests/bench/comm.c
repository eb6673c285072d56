/* mpirun -n 2 comm [ROUNDS]: the 161 diffs of ResNet-50, reduced by the reducer, by one bare
   MPI_Allreduce over one buffer of the same bytes, and by one for each blob. They take turns. Rank
   0 prints a table, with the goals. Then it prints what two constants rest on: bare calls of MPI on
   that buffer, cut into pieces; and small blobs, by themselves and gathered. README.md explains it.
   Nothing fails by time. */
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

/* A convolution without bias, and what normalises after it: a scale and a bias a channel. */
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

/* --- what is timed ---------------------------------------------------------------------------- */

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

static void reduce_bare(struct world *w) {
    (void)MPI_Allreduce(MPI_IN_PLACE, w->buffer, (int)w->total, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_each(struct world *w) {
    for (int i = BLOBS; i--;) {
        float *diff = NULL;
        MUST(sb_blob_mutable_cpu_f32(w->blobs[i], SB_DIFF, &diff, NULL));
        (void)MPI_Allreduce(MPI_IN_PLACE, diff, (int)w->shapes.counts[i], MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD);
    }
}

/* What lies before the ready call of blob `i` of a step that began then. */
typedef void work_before(double began, int i);

/* Work of this processor. */
static void work_here(double began, int i) {
    const double end = MPI_Wtime() + WORK_SECONDS / BLOBS;
    (void)began;
    (void)i;
    while (MPI_Wtime() < end)
        continue;
}

/* Work of a device, beside which this processor has nothing to do. */
static void work_elsewhere(double began, int i) {
    const double left = began + WORK_SECONDS * (BLOBS - i) / BLOBS - MPI_Wtime();
    const struct timespec time = {.tv_nsec = (long)(left * 1e9)};
    if (left > 0)
        (void)nanosleep(&time, NULL);
}

static void step(struct world *w, work_before *work) {
    const double began = MPI_Wtime();
    for (int i = BLOBS; i--;) {
        if (work)
            work(began, i);
        MUST(sb_reducer_ready(w->reducer, w->blobs[i], NULL));
    }
    MUST(sb_reducer_wait(w->reducer, NULL));
}

static void reduce_by_reducer(struct world *w) {
    step(w, NULL);
}

static void reduce_beside_work(struct world *w) {
    step(w, work_here);
}

static void reduce_beside_device(struct world *w) {
    step(w, work_elsewhere);
}

enum { REDUCER, BARE, EACH, BESIDE_WORK, BESIDE_DEVICE, CONTESTANTS };

static const struct {
    const char *name;
    void (*run)(struct world *w);
} contestants[CONTESTANTS] = {
    [REDUCER] = {"the reducer", reduce_by_reducer},
    [BARE] = {"one MPI_Allreduce", reduce_bare},
    [EACH] = {"one MPI_Allreduce a blob", reduce_each},
    [BESIDE_WORK] = {"the reducer, 30 ms of work", reduce_beside_work},
    [BESIDE_DEVICE] = {"the reducer, 30 ms of a device's", reduce_beside_device},
};

/* Of the slowest rank. */
static double timed(struct world *w, int which) {
    double seconds;
    (void)MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    contestants[which].run(w);
    seconds = MPI_Wtime() - began;
    (void)MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* --- the table ------------------------------------------------------------------------------ */

static int is_before(const void *a, const void *b) {
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

struct figures {
    double best[CONTESTANTS], median[CONTESTANTS];
    double ratio; /* the median of the rounds' */
};

static struct figures measure(struct world *w, int rounds) {
    static double samples[CONTESTANTS][MOST_ROUNDS], ratios[MOST_ROUNDS];
    struct figures figures;
    for (int which = 0; which < CONTESTANTS; which++)
        (void)timed(w, which);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < CONTESTANTS; i++) {
            const int which = (i + round) % CONTESTANTS; /* each begins in its turn */
            samples[which][round] = timed(w, which);
        }
        ratios[round] = samples[REDUCER][round] / samples[BARE][round];
    }
    for (int which = 0; which < CONTESTANTS; which++) {
        qsort(samples[which], (size_t)rounds, sizeof(double), is_before);
        figures.best[which] = samples[which][0];
        figures.median[which] = samples[which][rounds / 2];
    }
    qsort(ratios, (size_t)rounds, sizeof(double), is_before);
    figures.ratio = ratios[rounds / 2];
    return figures;
}

static void print_goal(const char *what, double value, double limit, const char *unit) {
    (void)printf("%-44s %8.2f %s  goal %.2f: %s\n", what, value, unit, limit,
                 value <= limit ? "met" : "missed");
}

/* The share of the reduction that took no time of its own, by medians. */
static void print_hidden(const char *what, const struct figures *figures, int which) {
    const double alone = figures->median[REDUCER], beside = figures->median[which];
    const double most = alone < WORK_SECONDS ? 1 : WORK_SECONDS / alone;
    (void)printf("%-44s %8.0f %%  of at most %.0f %%\n", what,
                 (alone + WORK_SECONDS - beside) / alone * 100, most * 100);
}

static void print(const struct figures *figures, size_t extra, int rounds) {
    const double alone = figures->best[REDUCER];
    (void)printf("ResNet-50's %d diffs, %d rounds     best ms  median ms\n", BLOBS, rounds);
    for (int which = 0; which < CONTESTANTS; which++)
        (void)printf("%-32s %10.2f %10.2f\n", contestants[which].name, figures->best[which] * 1e3,
                     figures->median[which] * 1e3);
    print_goal("the reducer, over one MPI_Allreduce (best)", alone / figures->best[BARE], 1.10,
               "x");
    print_goal("the same, median of the rounds", figures->ratio, 1.10, "x");
    print_goal("memory beside the blobs", (double)extra / (25 << 20), 2.00, "buckets");
    print_hidden("hidden by work on these processors", figures, BESIDE_WORK);
    print_hidden("hidden by work of a device", figures, BESIDE_DEVICE);
}

/* --- what constants rest on ----------------------------------------------------------------- */

#define MOST_PIECES 4096

static void cut_blocking(struct world *w, int64_t length) {
    for (int64_t i = 0; i < w->total; i += length)
        (void)MPI_Allreduce(MPI_IN_PLACE, w->buffer + i,
                            (int)(w->total - i < length ? w->total - i : length), MPI_FLOAT,
                            MPI_SUM, MPI_COMM_WORLD);
}

/* All of them at once, as the engine begins them. */
static void cut_at_once(struct world *w, int64_t length) {
    static MPI_Request requests[MOST_PIECES];
    int count = 0;
    for (int64_t i = 0; i < w->total && count < MOST_PIECES; i += length)
        (void)MPI_Iallreduce(MPI_IN_PLACE, w->buffer + i,
                             (int)(w->total - i < length ? w->total - i : length), MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD, &requests[count++]);
    (void)MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* A part of the buffer as if it were blobs of that length. */
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
    float *room = w->buffer + GATHERED;
    struct world part = {.total = GATHERED, .buffer = room};
    copy_blobs(room, w->buffer, length);
    cut_at_once(&part, (int64_t)1 << 18);
    copy_blobs(w->buffer, room, length);
}

struct sweep {
    const char *title, *one, *other;
    void (*run[2])(struct world *w, int64_t length);
    int64_t first_kib, last_kib;
};

static const struct sweep sweeps[] = {
    {"the buffer in pieces of",
     "MPI_Iallreduce at once",
     "MPI_Allreduce",
     {cut_at_once, cut_blocking},
     64,
     128 << 10},
    {"16 MiB of blobs of",
     "each in place",
     "gathered",
     {blobs_in_place, blobs_gathered},
     16,
     4 << 10},
};

static double timed_sweep(struct world *w, const struct sweep *sweep, int which, int64_t kib) {
    double seconds;
    (void)MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    sweep->run[which](w, kib << 8);
    seconds = MPI_Wtime() - began;
    (void)MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* The sizes take turns, too. */
static void print_sweep(struct world *w, const struct sweep *sweep, int rounds, bool prints) {
    static double samples[32][2][MOST_ROUNDS];
    for (int round = 0; round < rounds; round++)
        for (int64_t kib = sweep->first_kib, i = 0; kib <= sweep->last_kib; kib *= 2, i++)
            for (int which = 0; which < 2; which++)
                samples[i][which][round] = timed_sweep(w, sweep, which, kib);
    if (prints)
        (void)printf("\n%-24s %24s %24s   best, median ms\n", sweep->title, sweep->one,
                     sweep->other);
    for (int64_t kib = sweep->first_kib, i = 0; kib <= sweep->last_kib; kib *= 2, i++) {
        for (int which = 0; which < 2; which++)
            qsort(samples[i][which], (size_t)rounds, sizeof(double), is_before);
        if (prints)
            (void)printf("%20lld KiB %15.2f %8.2f %15.2f %8.2f\n", (long long)kib,
                         samples[i][0][0] * 1e3, samples[i][0][rounds / 2] * 1e3,
                         samples[i][1][0] * 1e3, samples[i][1][rounds / 2] * 1e3);
    }
}

/* --- the whole ------------------------------------------------------------------------------ */

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
    const struct figures figures = measure(&w, rounds);
    if (sb_comm_rank(w.comm) == 0)
        print(&figures, extra, rounds);
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
        print_sweep(&w, &sweeps[i], rounds, sb_comm_rank(w.comm) == 0);
    sb_reducer_destroy(w.reducer);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(w.blobs[i]);
    sb_comm_destroy(w.comm);
    sb_context_release(w.context);
    free(w.buffer);
    return MPI_Finalize() != MPI_SUCCESS;
}
