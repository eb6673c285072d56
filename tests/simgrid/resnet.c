/* Simulates the reducer in a training step of ResNet-50, with SimGrid's SMPI. During the backward
   pass the 161 diffs become ready one after the other, the last layer's diffs first. Usage:

       smpirun ... resnet BUCKET_MIB STEPS FOLD COMPUTE_MS

   Each element of the simulation stands for FOLD elements of the net, and a host's bandwidth is
   divided by FOLD, so that a thousand ranks fit into one machine's memory. The printed bytes and
   seconds describe the net as if FOLD were 1. SMPI's own MPI_Iallreduce sends all data to all
   ranks, unlike real MPI libraries, so c/mpi/engine.c is compiled with the blocking MPI_Allreduce.
   From the duration of each bucket the program computes when the bucket would be complete if it
   were sent during the backward pass. Rank 0 prints for the last step:

       RANKS BUCKETS BYTES COMPUTE APART BESIDE NETWORK

   The last four columns are the seconds of the computation, of the step without overlap, of the
   step with overlap, and of all all-reduces. */
#include "../bench/resnet_50.h"

#include <syncblob/mpi.h>
#include <syncblob/reducer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <smpi/smpi.h>

static sb_error err;

static void need(sb_status st, const char *what) {
    if (st == SB_OK)
        return;
    (void)fprintf(stderr, "%s: %s\n", what, err.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- the network during the computation ---------------------------------------------------- */

static struct {
    double blocked; /* seconds in MPI so far, in this step */
    double began;   /* the start of the step */
    double free_at; /* seconds from `began` until all buckets so far would be complete */
    int buckets;
} network;

int simulated_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, MPI_Request *request);

/* Replaces MPI_Iallreduce in c/mpi/engine.c. */
int simulated_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, MPI_Request *request) {
    const double before = MPI_Wtime(), ready_at = before - network.began - network.blocked;
    const int code = MPI_Allreduce(from, to, count, type, op, comm);
    const double took = MPI_Wtime() - before;
    network.free_at = fmax(network.free_at, ready_at) + took;
    network.blocked += took;
    network.buckets++;
    *request = MPI_REQUEST_NULL;
    return code;
}

int simulated_query_thread(int *level);

/* Replaces MPI_Query_thread in c/mpi/engine.c, because SMPI's ranks are threads of one process, but
   SMPI reports that only the main thread may call MPI. */
int simulated_query_thread(int *level) {
    *level = MPI_THREAD_SERIALIZED;
    return MPI_SUCCESS;
}

/* --- the net ------------------------------------------------------------------------------- */

static sb_blob *blobs[BLOBS];

static void make_blobs(int64_t fold) {
    add_resnet_50();
    for (int i = 0; i < BLOBS; i++) {
        const int64_t count = (counts[i] + fold - 1) / fold;
        need(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &blobs[i], &err), "a blob");
    }
}

/* Sets the diff to the rank's number plus one, so that every rank can check the mean. */
static void write_diff(sb_blob *blob, int rank) {
    void *diff;
    need(sb_blob_overwrite_cpu(blob, SB_DIFF, &diff, &err), "a diff");
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        ((float *)diff)[i] = (float)(rank + 1);
}

static void check_mean(sb_blob *blob, int size) {
    const void *diff;
    need(sb_blob_cpu(blob, SB_DIFF, &diff, &err), "a diff");
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        if (fabsf(((const float *)diff)[i] - (float)(size + 1) / 2) > 1e-3f) {
            (void)fprintf(stderr, "a mean is wrong\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static double step(sb_comm *comm, sb_reducer *reducer, double compute) {
    const int rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    network.blocked = network.free_at = 0;
    network.buckets = 0;
    network.began = MPI_Wtime();
    for (int i = BLOBS; i--;) {
        write_diff(blobs[i], rank);
        smpi_usleep((useconds_t)(compute * 1e6 / BLOBS));
        need(sb_reducer_ready(reducer, blobs[i], &err), "ready");
    }
    need(sb_reducer_wait(reducer, &err), "wait");
    const double seconds = MPI_Wtime() - network.began;
    for (int i = 0; i < BLOBS; i++)
        check_mean(blobs[i], size);
    return seconds;
}

int main(int argc, char **argv) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    double seconds = 0;
    MPI_Init(&argc, &argv);
    if (argc != 5)
        return 2;
    const int64_t fold = strtoll(argv[3], NULL, 10);
    const double compute = strtod(argv[4], NULL) / 1000;
    options.bucket_bytes = (size_t)(strtod(argv[1], NULL) * 1048576) / (size_t)fold;
    make_blobs(fold);
    need(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err), "a communicator");
    need(sb_reducer_create(comm, blobs, BLOBS, &options, &reducer, &err), "a reducer");
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--)
        seconds = step(comm, reducer, compute);
    if (sb_comm_rank(comm) == 0)
        (void)printf("%d %d %lld %.6f %.6f %.6f %.6f\n", sb_comm_size(comm), network.buckets,
                     (long long)total * 4, compute, seconds, fmax(compute, network.free_at),
                     network.blocked);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(blobs[i]);
    MPI_Finalize();
    return 0;
}
