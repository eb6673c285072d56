/* Trains a multinomial logistic regression; each rank computes its part of each batch. The losses
   do not depend on the number of ranks. Usage: mpirun -n 4 train STEPS [--save STEP PREFIX]
   [--restore PREFIX]. --save writes PREFIX.caffemodel and PREFIX.solverstate before step STEP;
   --restore continues from these files. */
#include <syncblob/mpi.h>
#include <syncblob/reducer.h>
#include <syncblob/syncblob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 16, CLASSES = 4, BATCH = 64, WEIGHTS = 0, BIAS = 1, BLOBS = 2 };

#define RATE     0.1f
#define MOMENTUM 0.9f
#define PATH     256

struct run {
    int first_step, steps, save_step;
    const char *save, *restore;
};

struct net {
    sb_comm *comm;
    sb_reducer *reducer;
    sb_blob *params[BLOBS], *history[BLOBS];
};

static sb_error err;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const sb_status try_st = (call);                                                           \
        if (try_st != SB_OK)                                                                       \
            return try_st;                                                                         \
    } while (0)

/* --- data: random points around one centre for each class --- */

static double draw(uint64_t i) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0 - 0.5;
}

static int label_of(uint64_t sample) {
    return (int)(sample % CLASSES);
}

static double feature_of(uint64_t sample, int feature) {
    const uint64_t centre = 1000000007u + (uint64_t)(label_of(sample) * FEATURES + feature);
    return draw(centre) + draw(sample * FEATURES + (uint64_t)feature);
}

/* --- one step --- */

/* Replaces the scores by their gradient: the softmax of the scores, minus 1 at the label. */
static double softmax_loss(double scores[CLASSES], int label) {
    double most = scores[0], sum = 0;
    for (int c = 1; c < CLASSES; c++)
        most = fmax(most, scores[c]);
    for (int c = 0; c < CLASSES; c++)
        sum += scores[c] = exp(scores[c] - most);
    for (int c = 0; c < CLASSES; c++)
        scores[c] /= sum;
    const double loss = -log(scores[label]);
    scores[label] -= 1;
    return loss;
}

/* Every rank divides by the size of the whole batch, because the reducer sums over ranks. */
static sb_status backward(struct net *net, int step, double *loss) {
    const float *weights, *bias;
    float *weights_diff, *bias_diff;
    double sums[CLASSES][FEATURES + 1] = {{0}};
    const int size = sb_comm_size(net->comm);
    TRY(sb_blob_cpu_f32(net->params[WEIGHTS], SB_DATA, &weights, &err));
    TRY(sb_blob_cpu_f32(net->params[BIAS], SB_DATA, &bias, &err));
    TRY(sb_blob_overwrite_cpu_f32(net->params[WEIGHTS], SB_DIFF, &weights_diff, &err));
    TRY(sb_blob_overwrite_cpu_f32(net->params[BIAS], SB_DIFF, &bias_diff, &err));
    *loss = 0;
    for (int i = sb_comm_rank(net->comm); i < BATCH; i += size) {
        const uint64_t sample = (uint64_t)step * BATCH + (uint64_t)i;
        double scores[CLASSES];
        for (int c = 0; c < CLASSES; c++) {
            scores[c] = (double)bias[c];
            for (int f = 0; f < FEATURES; f++)
                scores[c] += (double)weights[c * FEATURES + f] * feature_of(sample, f);
        }
        *loss += softmax_loss(scores, label_of(sample)) / BATCH;
        for (int c = 0; c < CLASSES; c++) {
            for (int f = 0; f < FEATURES; f++)
                sums[c][f] += scores[c] * feature_of(sample, f) / BATCH;
            sums[c][FEATURES] += scores[c] / BATCH;
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        for (int f = 0; f < FEATURES; f++)
            weights_diff[c * FEATURES + f] = (float)sums[c][f];
        bias_diff[c] = (float)sums[c][FEATURES];
    }
    return SB_OK;
}

/* history = momentum x history + rate x diff; data -= history. */
static sb_status update(sb_blob *param, sb_blob *history) {
    float *diff, *moved;
    TRY(sb_blob_mutable_cpu_f32(param, SB_DIFF, &diff, &err));
    TRY(sb_blob_mutable_cpu_f32(history, SB_DATA, &moved, &err));
    for (int64_t i = 0; i < sb_blob_count(param); i++)
        diff[i] = moved[i] = MOMENTUM * moved[i] + RATE * diff[i];
    return sb_blob_update(param, &err);
}

static sb_status one_step(struct net *net, int step, double *loss) {
    TRY(backward(net, step, loss));
    for (int i = BLOBS; i--;)
        TRY(sb_reducer_ready(net->reducer, net->params[i], &err));
    TRY(sb_reducer_wait(net->reducer, &err));
    for (int i = 0; i < BLOBS; i++)
        TRY(update(net->params[i], net->history[i]));
    return sb_comm_all_reduce(net->comm, SB_COMM_SUM, SB_DTYPE_F64, 1, loss, &err);
}

/* --- snapshots --- */

static const char *path_of(const char *prefix, const char *ending, char out[PATH]) {
    (void)snprintf(out, PATH, "%s%s", prefix, ending);
    return out;
}

static sb_status save(const struct net *net, int step, const char *prefix) {
    char path[PATH], net_path[PATH];
    sb_model *model, *state;
    int64_t layer;
    sb_solver_info info = SB_SOLVER_INFO_INIT;
    TRY(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, &err));
    TRY(sb_model_add_layer(model, "ip", 2, "InnerProduct", 12, &layer, &err));
    TRY(sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &state, &err));
    for (int i = 0; i < BLOBS; i++) {
        TRY(sb_model_add_blob(model, layer, net->params[i], 0, &err));
        TRY(sb_model_add_blob(state, SB_NO_LAYER, net->history[i], 0, &err));
    }
    info.iter = step;
    info.learned_net.bytes = path_of(prefix, ".caffemodel", net_path);
    info.learned_net.size = strlen(net_path);
    TRY(sb_model_set_solver_info(state, &info, &err));
    TRY(sb_model_save_file(model, net_path, &err));
    TRY(sb_model_save_file(state, path_of(prefix, ".solverstate", path), &err));
    sb_model_destroy(model);
    sb_model_destroy(state);
    return SB_OK;
}

static sb_status restore(struct net *net, struct run *run) {
    char path[PATH];
    sb_model *model, *state;
    int64_t layer;
    sb_solver_info info = SB_SOLVER_INFO_INIT;
    TRY(sb_model_open_file(NULL, SB_FORMAT_CAFFEMODEL, path_of(run->restore, ".caffemodel", path),
                           0, NULL, &model, &err));
    TRY(sb_model_find_layer(model, "ip", 2, &layer, &err));
    TRY(sb_model_open_file(NULL, SB_FORMAT_SOLVERSTATE, path_of(run->restore, ".solverstate", path),
                           0, NULL, &state, &err));
    for (int i = 0; i < BLOBS; i++) {
        TRY(sb_model_load_blob(model, layer, i, net->params[i], &err));
        TRY(sb_model_load_blob(state, SB_NO_LAYER, i, net->history[i], &err));
    }
    TRY(sb_model_solver_info(state, &info, &err));
    run->first_step = info.iter;
    sb_model_destroy(model);
    sb_model_destroy(state);
    return SB_OK;
}

/* --- the program --- */

static sb_status make_net(struct net *net) {
    static const int64_t shapes[BLOBS][2] = {{CLASSES, FEATURES}, {CLASSES, 0}};
    sb_reducer_options options = SB_REDUCER_OPTIONS_INIT;
    options.op = SB_COMM_SUM;
    for (int i = 0; i < BLOBS; i++) {
        TRY(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shapes[i], BLOBS - i, &net->params[i], &err));
        TRY(sb_blob_create_shaped(NULL, SB_DTYPE_F32, shapes[i], BLOBS - i, &net->history[i],
                                  &err));
    }
    return sb_reducer_create(net->comm, net->params, BLOBS, &options, &net->reducer, &err);
}

/* Reads the snapshot on rank 0 and broadcasts the state to the other ranks. */
static sb_status begin(struct net *net, struct run *run) {
    if (run->restore && sb_comm_rank(net->comm) == 0)
        TRY(restore(net, run));
    TRY(sb_comm_broadcast(net->comm, 0, &run->first_step, sizeof run->first_step, &err));
    TRY(sb_comm_broadcast_blobs(net->comm, net->params, BLOBS, SB_DATA, 0, &err));
    return sb_comm_broadcast_blobs(net->comm, net->history, BLOBS, SB_DATA, 0, &err);
}

static sb_status train(struct net *net, struct run *run) {
    TRY(sb_mpi_comm_create(NULL, MPI_COMM_WORLD, &net->comm, &err));
    const int is_first = sb_comm_rank(net->comm) == 0;
    TRY(make_net(net));
    TRY(begin(net, run));
    for (int step = run->first_step; step < run->steps; step++) {
        double loss;
        if (is_first && run->save && step == run->save_step)
            TRY(save(net, step, run->save));
        TRY(one_step(net, step, &loss));
        if (is_first)
            (void)printf("%d %.9f\n", step, loss);
    }
    sb_reducer_destroy(net->reducer);
    for (int i = 0; i < BLOBS; i++) {
        sb_blob_destroy(net->params[i]);
        sb_blob_destroy(net->history[i]);
    }
    sb_comm_destroy(net->comm);
    return SB_OK;
}

int main(int argc, char **argv) {
    struct run run = {.steps = argc > 1 ? atoi(argv[1]) : 200};
    struct net net = {.comm = NULL};
    for (int i = 2; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--restore"))
            run.restore = argv[i + 1];
        if (!strcmp(argv[i], "--save") && i + 2 < argc) {
            run.save_step = atoi(argv[i + 1]);
            run.save = argv[i + 2];
        }
    }
    (void)MPI_Init(&argc, &argv);
    if (train(&net, &run) != SB_OK) { /* without an abort, the other ranks would wait */
        (void)fprintf(stderr, "train: %s\n", err.message);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Finalize() != MPI_SUCCESS;
}
