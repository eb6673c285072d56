/* Compares the times per layer in nets of 100 to 100,000 layers with nets of 1,000 layers. */
#include "harness.h"
#include "syncblob.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define MOST        100000
#define NAME_BYTES  32
#define ADDED_GROWS 1.5 /* an array that grows by doubling may be half empty */

typedef char layer_name[NAME_BYTES];

static sb_blob *values, *target;

struct net {
    int64_t layers;
    sb_model *built, *opened;
    void *bytes;
    size_t size;
    layer_name *asked;
};

static int64_t layers_of_a_run(void) {
    return bench.quick ? MOST / 10 : MOST;
}

static size_t name_of(int64_t layer, layer_name name) {
    return (size_t)snprintf(name, NAME_BYTES, "res%lld_branch2a", (long long)layer);
}

static sb_model *build_net(const struct net *net, sb_context *context) {
    sb_model *model;
    layer_name name;
    int64_t layer;
    must(sb_model_create(context, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_add_layer(model, name, name_of(i, name), "Scale", 5, &layer, NULL));
        must(sb_model_add_blob(model, layer, values, 0, NULL));
    }
    return model;
}

static sb_model *open_net(const struct net *net) {
    sb_model *model;
    must(sb_model_open_bytes(NULL, SB_FORMAT_CAFFEMODEL, net->bytes, net->size, NULL, NULL, NULL,
                             &model, NULL));
    return model;
}

/* --- operations on one net --------------------------------------------------------------- */

static void build_once(struct net *net) {
    sb_model_destroy(build_net(net, NULL));
}

static void open_once(struct net *net) {
    sb_model_destroy(open_net(net));
}

static void list_once(struct net *net) {
    sb_layer_info info = SB_LAYER_INFO_INIT;
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_layer_info(net->opened, i, &info, NULL));
        keep(&info);
    }
}

static void find_all(const struct net *net, const sb_model *model) {
    int64_t layer;
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_find_layer(model, net->asked[i], strlen(net->asked[i]), &layer, NULL));
        keep(&layer);
    }
}

static void find_once(struct net *net) {
    find_all(net, net->opened);
}

static void find_added_once(struct net *net) {
    find_all(net, net->built);
}

static void load_once(struct net *net) {
    for (int64_t i = 0; i < net->layers; i++)
        must(sb_model_load_blob(net->opened, i, 0, target, NULL));
}

static void save_once(struct net *net) {
    size_t size;
    must(sb_model_save(net->built, net->bytes, net->size, &size, NULL));
}

static const struct step {
    const char *what;
    void (*once)(struct net *net);
    double limit; /* searches in large nets cause cache misses */
} steps[] = {{"build", build_once, 1.2},
             {"open", open_once, 1.2},
             {"list", list_once, 1.2},
             {"find by name", find_once, 3},
             {"find by name, all added,", find_added_once, 3},
             {"load", load_once, 1.2},
             {"save", save_once, 1.2}};

static const struct step *step;
static struct net tested, thousand;

static void repeat(struct net *of) {
    for (int64_t n = layers_of_a_run() / of->layers; n > 0; n--)
        step->once(of);
}

static void run(void) {
    repeat(&tested);
}

static void run_thousand(void) {
    repeat(&thousand);
}

/* --- nets ----------------------------------------------------------------------------------- */

/* Neighbours in the returned array are names of distant layers. */
static layer_name *make_names(int64_t layers) {
    layer_name *names = malloc((size_t)layers * sizeof *names);
    must(names ? 0 : -1);
    for (int64_t i = 0; i < layers; i++)
        (void)name_of(i * 7919 % layers, names[i]);
    return names;
}

static struct net make_net(int64_t layers) {
    struct net made = {.layers = layers, .asked = make_names(layers)};
    made.built = build_net(&made, NULL);
    must(sb_model_size(made.built, &made.size, NULL));
    made.bytes = malloc(made.size);
    must(made.bytes ? 0 : -1);
    must(sb_model_save(made.built, made.bytes, made.size, &made.size, NULL));
    made.opened = open_net(&made);
    return made;
}

static void end_net(struct net *net) {
    sb_model_destroy(net->opened);
    sb_model_destroy(net->built);
    free(net->bytes);
    free(net->asked);
}

static void compare_time(void) {
    char what[64];
    const char *against = "as many layers in nets of 1,000";
    const struct contest contest = {
        .what = what,
        .contestants = {{"syncblob", run, NULL}, {against, run_thousand, NULL}},
        .goals = {{against, step->limit, 0}},
    };
    snprintf(what, sizeof what, "%s a net of %lld layers", step->what, (long long)tested.layers);
    contest_run(&contest, 0, 1);
}

static double bytes_of(const struct net *of) {
    sb_context *context = make_context(0, NULL);
    const size_t before = host_bytes(context);
    sb_model *model = build_net(of, context);
    const size_t after = host_bytes(context);
    sb_model_destroy(model);
    sb_context_release(context);
    return (double)(after - before) / (double)of->layers;
}

static void compare_memory(void) {
    char what[64];
    snprintf(what, sizeof what, "memory of %lld layers that were added", (long long)tested.layers);
    goal_value(what, 0, "times", bytes_of(&tested) / bytes_of(&thousand), ADDED_GROWS);
}

static void open_and_list(void) {
    struct net other = tested;
    other.opened = open_net(&other);
    list_once(&other);
    sb_model_destroy(other.opened);
}

static void unpack(void) {
    Sb__NetParameter *message = sb__net_parameter__unpack(NULL, tested.size, tested.bytes);
    must(message ? 0 : -1);
    sb__net_parameter__free_unpacked(message, NULL);
}

static const struct contest opening = {
    .what = "open and list a net of 10000 layers",
    .contestants = {{"syncblob", open_and_list, NULL}, {"protobuf-c unpacking it", unpack, NULL}},
    .goals = {{"protobuf-c unpacking it", 0.5, 0}},
};

void bench_growth(void) {
    values = make_blob(NULL, SB_DTYPE_F32, 4);
    target = make_blob(NULL, SB_DTYPE_F32, 4);
    (void)fill_randomly(values, SB_DATA, 9);
    thousand = make_net(1000);
    for (int64_t layers = 100; layers <= layers_of_a_run(); layers *= 10) {
        if (layers == thousand.layers)
            continue;
        tested = make_net(layers);
        for (step = steps; step < steps + sizeof steps / sizeof *steps; step++)
            compare_time();
        compare_memory();
        if (layers == 10000)
            contest_run(&opening, 0, 1);
        end_net(&tested);
    }
    end_net(&thousand);
    sb_blob_destroy(values);
    sb_blob_destroy(target);
}
