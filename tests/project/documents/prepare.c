/* prepare FILE...: makes the files that the pages' examples read. A file's extension selects a
   small net, a solver state or a mean image. */
#include <syncblob/syncblob.h>

#include <stdio.h>
#include <string.h>

static int failed(const sb_error *err) {
    fprintf(stderr, "%s: %s\n", sb_status_name(err->code), err->message);
    return 1;
}

static sb_status fill(const int64_t *shape, int32_t num_axes, sb_blob **out, sb_error *err) {
    sb_filler filler = SB_FILLER_INIT;
    filler.type = SB_FILLER_UNIFORM;
    sb_status st = sb_blob_create_shaped(NULL, SB_DTYPE_F32, shape, num_axes, out, err);
    return st ? st : sb_blob_fill(*out, &filler, 7, err);
}

static sb_status add_layer(sb_model *net, const char *name, const char *type, const int64_t *shape,
                           int32_t num_axes, sb_error *err) {
    sb_blob *weights = NULL, *bias = NULL;
    int64_t layer;
    sb_status st = sb_model_add_layer(net, name, strlen(name), type, strlen(type), &layer, err);
    if (!st)
        st = fill(shape, num_axes, &weights, err);
    if (!st)
        st = fill(shape, 1, &bias, err);
    if (!st)
        st = sb_model_add_blob(net, layer, weights, 0, err);
    if (!st)
        st = sb_model_add_blob(net, layer, bias, 0, err);
    sb_blob_destroy(weights);
    sb_blob_destroy(bias);
    return st;
}

static sb_status make_net(const char *path, sb_error *err) {
    sb_model *net = NULL;
    sb_status st = sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &net, err);
    if (!st)
        st = sb_model_set_name(net, "net", 3, err);
    if (!st)
        st = add_layer(net, "conv1", "Convolution", (const int64_t[]){8, 3, 5, 5}, 4, err);
    if (!st)
        st = add_layer(net, "ip1", "InnerProduct", (const int64_t[]){10, 8}, 2, err);
    if (!st)
        st = sb_model_save_file(net, path, err);
    sb_model_destroy(net);
    return st;
}

static sb_status make_state(const char *path, sb_error *err) {
    const sb_solver_info info = {
        sizeof(sb_solver_info), {"net.caffemodel", strlen("net.caffemodel")}, 5000, 2};
    sb_model *state = NULL;
    sb_blob *history = NULL;
    sb_status st = sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &state, err);
    if (!st)
        st = sb_model_set_solver_info(state, &info, err);
    if (!st)
        st = fill((const int64_t[]){8, 3, 5, 5}, 4, &history, err);
    if (!st)
        st = sb_model_add_blob(state, SB_NO_LAYER, history, 0, err);
    if (!st)
        st = sb_model_save_file(state, path, err);
    sb_blob_destroy(history);
    sb_model_destroy(state);
    return st;
}

static sb_status make_mean(const char *path, sb_error *err) {
    sb_blob *mean = NULL;
    sb_status st = fill((const int64_t[]){1, 3, 32, 32}, 4, &mean, err);
    if (!st)
        st = sb_blob_save_file(mean, path, 0, err);
    sb_blob_destroy(mean);
    return st;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *end = strrchr(argv[i], '.');
        sb_error err;
        sb_status st = !end                           ? SB_ERR_INVALID_ARGUMENT
                       : !strcmp(end, ".caffemodel")  ? make_net(argv[i], &err)
                       : !strcmp(end, ".solverstate") ? make_state(argv[i], &err)
                       : !strcmp(end, ".binaryproto") ? make_mean(argv[i], &err)
                                                      : SB_ERR_INVALID_ARGUMENT;
        if (st == SB_ERR_INVALID_ARGUMENT)
            return fprintf(stderr, "%s: unknown extension\n", argv[i]), 1;
        if (st)
            return failed(&err);
    }
    return 0;
}
