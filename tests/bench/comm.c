/* mpirun -n 2 comm [ROUNDS]: compares the reducer with MPI_Allreduce for the 161 diffs of
   ResNet-50. The later tables have the times by which constants of the engine and the reducer were
   chosen. */
#include "harness.h"
#include "resnet_50.h"

#include <syncblob/mpi.h>
#include <syncblob/reducer.h>

#include <stdlib.h>
#include <string.h>

static sb_context *context;
static sb_comm *comm;
static sb_blob *blobs[BLOBS];
static sb_reducer *reducer;
static float *buffer;
static int64_t length;

/* --- all diffs ------------------------------------------------------------------------------- */

static void sum_in_place(float *values, int64_t count) {
    (void)MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_bare(void) {
    sum_in_place(buffer, total);
}

static void reduce(void) {
    for (int i = BLOBS; i--;)
        must(sb_reducer_ready(reducer, blobs[i], NULL));
    must(sb_reducer_wait(reducer, NULL));
}

/* --- the buffer in pieces --------------------------------------------------------------------- */

static void cut_blocking(void) {
    for (int64_t i = 0; i < total; i += length)
        sum_in_place(buffer + i, total - i < length ? total - i : length);
}

/* Like the engine, begins all reductions before the first wait. */
static void reduce_pieces(float *values, int64_t count, int64_t piece) {
    static MPI_Request requests[4096];
    int num = 0;
    for (int64_t i = 0; i < count; i += piece)
        (void)MPI_Iallreduce(MPI_IN_PLACE, values + i, (int)(count - i < piece ? count - i : piece),
                             MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[num++]);
    (void)MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
}

static void cut_at_once(void) {
    reduce_pieces(buffer, total, length);
}

#define GATHERED ((int64_t)4 << 20)

static void blobs_in_place(void) {
    reduce_pieces(buffer, GATHERED, length);
}

static void copy_blobs(float *to, const float *from) {
    for (int64_t i = 0; i < GATHERED; i += length)
        memcpy(to + i, from + i, (size_t)length * sizeof *to);
}

static void blobs_gathered(void) {
    copy_blobs(buffer + GATHERED, buffer);
    reduce_pieces(buffer + GATHERED, GATHERED, (int64_t)1 << 18);
    copy_blobs(buffer, buffer + GATHERED);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Returns the time of the slowest rank. All ranks must call this function. */
static double slowest(double ns) {
    (void)MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return ns;
}

static void compare_reductions(size_t extra) {
    static const struct contest contest = {
        .what = "ResNet-50's diffs by the reducer",
        .contestants = {{"the reducer", reduce, NULL}, {"one MPI_Allreduce", reduce_bare, NULL}},
        .goals = {{"one MPI_Allreduce", 1.10, 0}},
    };
    (void)printf("     best    median     limit  unit  threads    goal\n");
    contest_run(&contest, 0, 1);
    goal_value("memory beside the blobs, in buckets", 0, "times", (double)extra / (25 << 20), 2.00);
}

static void sweep(const struct contest *contest, int64_t first_kib, int64_t last_kib) {
    (void)printf("\n%-24s %24s %24s   best, median ms\n", contest->what,
                 contest->contestants[0].name, contest->contestants[1].name);
    for (int64_t kib = first_kib; kib <= last_kib; kib *= 2) {
        length = kib << 8;
        const struct result *found = contest_run(contest, 0, 1);
        (void)printf("%20lld KiB %15.2f %8.2f %15.2f %8.2f\n", (long long)kib, found[0].best / 1e6,
                     found[0].median / 1e6, found[1].best / 1e6, found[1].median / 1e6);
    }
}

static const struct contest pieces = {
    .what = "the buffer in pieces of",
    .contestants = {{"MPI_Iallreduce at once", cut_at_once, NULL},
                    {"MPI_Allreduce", cut_blocking, NULL}},
};

static const struct contest small = {
    .what = "16 MiB of blobs of",
    .contestants = {{"each in place", blobs_in_place, NULL}, {"gathered", blobs_gathered, NULL}},
};

/* --- setting up ------------------------------------------------------------------------------- */

static void make_blobs(void) {
    for (int i = 0; i < BLOBS; i++) {
        float *diff = NULL;
        blobs[i] = make_blob(context, SB_DTYPE_F32, (size_t)counts[i]);
        must(sb_blob_overwrite_cpu_f32(blobs[i], SB_DIFF, &diff, NULL));
        memset(diff, 0, (size_t)counts[i] * sizeof *diff);
    }
    buffer = malloc((size_t)total * sizeof *buffer);
    must(buffer ? 0 : -1);
    memset(buffer, 0, (size_t)total * sizeof *buffer);
}

int main(int argc, char **argv) {
    bench.rounds = argc > 1 ? atoi(argv[1]) : 15;
    bench.slowest = slowest;
    (void)MPI_Init(&argc, &argv);
    add_resnet_50();
    must(num_counts == BLOBS && bench.rounds > 0 && bench.rounds <= 1000 ? 0 : -1);
    context = make_context(0, NULL);
    must(sb_mpi_comm_create(context, MPI_COMM_WORLD, &comm, NULL));
    if (sb_comm_rank(comm) != 0)
        must(freopen("/dev/null", "w", stdout) ? 0 : -1);
    make_blobs();
    const size_t before = host_bytes(context);
    must(sb_reducer_create(comm, blobs, BLOBS, NULL, &reducer, NULL));
    compare_reductions(host_bytes(context) - before);
    sweep(&pieces, 64, 128 << 10);
    sweep(&small, 16, 4 << 10);
    sb_reducer_destroy(reducer);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(blobs[i]);
    sb_comm_destroy(comm);
    sb_context_release(context);
    free(buffer);
    return MPI_Finalize() != MPI_SUCCESS;
}
