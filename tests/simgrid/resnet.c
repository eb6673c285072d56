/* Simulates the reducer in a training step of ResNet-50, with SimGrid's SMPI. Usage:

       smpirun ... resnet BUCKET_MIB

   Rank 0 prints the number of buckets, the bytes, and the seconds of the step without overlap, of
   the step with overlap, and of all all-reduces. */
#include "../bench/resnet_50.h"

#include <syncblob/mpi.h>
#include <syncblob/reducer.h>
#include <syncblob/typed.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <smpi/smpi.h>

static sb_error err;

static void need(bool claim, const char *text) {
    if (claim)
        return;
    (void)fprintf(stderr, "%s does not hold (%s)\n", text, err.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define NEED(claim) need(claim, #claim)

static struct {
    double blocked; /* seconds in MPI so far */
    double began;
    double free_at; /* seconds from `began` to the end of the last bucket */
    int buckets;
} network;

/* Replaces MPI_Iallreduce: SMPI's own function sends all data to all ranks. */
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

/* SMPI's ranks are threads, but SMPI reports that only the main thread may call MPI. */
int simulated_query_thread(int *level) {
    *level = MPI_THREAD_SERIALIZED;
    return MPI_SUCCESS;
}

static sb_blob *blobs[BLOBS];

/* Each diff contains the rank's number plus one, so that every rank can check the mean. */
static double step(sb_reducer *reducer, float value, float mean) {
    network.began = MPI_Wtime();
    for (int i = BLOBS; i--;) {
        float *diff = NULL;
        NEED(sb_blob_mutable_cpu_f32(blobs[i], SB_DIFF, &diff, &err) == SB_OK);
        for (int64_t j = 0; j < sb_blob_count(blobs[i]); j++)
            diff[j] = value;
        smpi_usleep((useconds_t)(COMPUTE_MS * 1e3 / BLOBS));
        NEED(sb_reducer_ready(reducer, blobs[i], &err) == SB_OK);
    }
    NEED(sb_reducer_wait(reducer, &err) == SB_OK);
    const double seconds = MPI_Wtime() - network.began;
    for (int i = 0; i < BLOBS; i++) {
        const float *diff = NULL;
        NEED(sb_blob_cpu_f32(blobs[i], SB_DIFF, &diff, &err) == SB_OK);
        for (int64_t j = 0; j < sb_blob_count(blobs[i]); j++)
            NEED(fabsf(diff[j] - mean) <= 1e-3f);
    }
    return seconds;
}

int main(int argc, char **argv) {
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    sb_comm *comm = NULL;
    sb_reducer *reducer = NULL;
    MPI_Init(&argc, &argv);
    options.bucket_bytes = (size_t)(strtod(argv[1], NULL) * 1048576 / FOLD);
    add_resnet_50();
    for (int i = 0; i < BLOBS; i++) {
        const int64_t count = (counts[i] + FOLD - 1) / FOLD;
        NEED(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &blobs[i], &err) == SB_OK);
    }
    NEED(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &comm, &err) == SB_OK);
    NEED(sb_reducer_create(comm, blobs, BLOBS, &options, &reducer, &err) == SB_OK);
    const int rank = sb_comm_rank(comm), size = sb_comm_size(comm);
    network.free_at = network.blocked = network.buckets = 0; /* sb_reducer_create also reduces */
    const double seconds = step(reducer, (float)(rank + 1), (float)(size + 1) / 2);
    if (rank == 0)
        (void)printf("%d %lld %.6f %.6f %.6f\n", network.buckets, (long long)total * 4, seconds,
                     fmax(COMPUTE_MS / 1e3, network.free_at), network.blocked);
    sb_reducer_destroy(reducer);
    sb_comm_destroy(comm);
    for (int i = 0; i < BLOBS; i++)
        sb_blob_destroy(blobs[i]);
    MPI_Finalize();
    return 0;
}
