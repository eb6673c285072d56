/* Goal 7: what a layer costs in nets of 100 to 100,000 layers, to what it costs in one of 1,000. */
#include "cases.h"
#include "harness.h"

#include <syncblob/syncblob.h>

#include <stdio.h>
#include <stdlib.h>

#define MOST 100000

struct net {
    int64_t layers;
    sb_blob *values, *target;
    sb_model *built, *opened;
    void *bytes;
    size_t size;
};

/* Layers that one run goes through, in as many nets as that takes. */
static int64_t layers_of_a_run(void) {
    return bench.effort == QUICK ? MOST / 10 : MOST;
}

static size_t name_of(int64_t layer, char name[32]) {
    return (size_t)snprintf(name, 32, "res%lld_branch2a", (long long)layer);
}

static sb_model *build_net(const struct net *net) {
    sb_model *model;
    char name[32];
    int64_t layer;
    must(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_add_layer(model, name, name_of(i, name), "Scale", 5, &layer, NULL));
        must(sb_model_add_blob(model, layer, net->values, 0, NULL));
    }
    return model;
}

static sb_model *open_net(const struct net *net) {
    sb_model *model;
    must(sb_model_open_bytes(NULL, SB_FORMAT_CAFFEMODEL, net->bytes, net->size, NULL, NULL, NULL,
                             &model, NULL));
    return model;
}

/* --- what is done with one net ----------------------------------------------------------- */

static void build_once(struct net *net) {
    sb_model_destroy(build_net(net));
}

static void open_once(struct net *net) {
    sb_model_destroy(open_net(net));
}

static void list_once(struct net *net) {
    sb_layer_info info = SB_LAYER_INFO_INIT;
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_layer(net->opened, i, &info, NULL));
        keep(&info);
    }
}

static void find_all(const sb_model *model, int64_t layers) {
    char name[32];
    int64_t layer;
    for (int64_t i = 0; i < layers; i++)
        must(sb_model_find_layer(model, name, name_of(i * 7919 % layers, name), &layer, NULL));
}

static void find_once(struct net *net) {
    find_all(net->opened, net->layers);
}

static void find_added_once(struct net *net) {
    find_all(net->built, net->layers);
}

static void load_once(struct net *net) {
    for (int64_t i = 0; i < net->layers; i++)
        must(sb_model_load_blob(net->opened, i, 0, net->target, NULL));
}

static void save_once(struct net *net) {
    size_t size;
    must(sb_model_save(net->built, net->bytes, net->size, &size, NULL));
}

static const struct step {
    const char *what;
    void (*once)(struct net *net);
} steps[] = {{"build", build_once},
             {"open", open_once},
             {"list", list_once},
             {"find by name", find_once},
             {"find by name, all added,", find_added_once},
             {"load", load_once},
             {"save", save_once}};

struct work {
    const struct step *step;
    struct net *net;
};

static void run(void *state, int64_t n) {
    const struct work *work = state;
    for (n *= layers_of_a_run() / work->net->layers; n > 0; n--)
        work->step->once(work->net);
}

/* --- the contests ------------------------------------------------------------------------- */

static struct net make_net(int64_t layers) {
    struct net net = {.layers = layers};
    void *values;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 1, 1, 1, 4, &net.values, NULL));
    must(sb_blob_mutable_cpu_data(net.values, &values, NULL));
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 1, 1, 1, 4, &net.target, NULL));
    net.built = build_net(&net);
    (void)sb_model_save(net.built, NULL, 0, &net.size, NULL); /* says how many */
    net.bytes = malloc(net.size);
    must(net.bytes ? 0 : -1);
    must(sb_model_save(net.built, net.bytes, net.size, &net.size, NULL));
    net.opened = open_net(&net);
    return net;
}

static void end_net(struct net *net) {
    sb_model_destroy(net->opened);
    sb_model_destroy(net->built);
    sb_blob_destroy(net->target);
    sb_blob_destroy(net->values);
    free(net->bytes);
}

static void compare_nets(const struct step *step, struct net *net, struct net *thousand) {
    char what[64];
    struct work ours = {step, net}, other = {step, thousand};
    struct contest c = {.goal = 7, .what = what, .threads = 1};
    snprintf(what, sizeof what, "%s a net of %lld layers", step->what, (long long)net->layers);
    contest_add(&c, "syncblob", run, NULL, &ours);
    contest_add(&c, "as many layers in nets of 1,000", run, NULL, &other);
    contest_run(&c);
    goal_ratio(&c, "as many layers in nets of 1,000", 1.2);
    contest_free(&c);
}

void bench_growth(void) {
    struct net thousand = make_net(1000);
    for (int64_t layers = 100; layers <= layers_of_a_run(); layers *= 10) {
        if (layers == thousand.layers)
            continue;
        struct net net = make_net(layers);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            compare_nets(&steps[i], &net, &thousand);
        end_net(&net);
    }
    end_net(&thousand);
}
