/* Compares the time per layer in nets of 100 to 100,000 layers, with --full to 1,000,000, with that
   in nets of 1,000 layers, or for searches with that of hsearch_r. Also compares the time per blob
   in contexts of 1 and of 100,000 blobs with that in a context of 1,000 blobs. */
#include "cases.h"
#include "harness.h"
#include "syncblob.pb-c.h"

#include <syncblob/syncblob.h>

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST        100000
#define NAME_BYTES  32
#define ADDED_GROWS 1.5 /* the array of added layers doubles, so a part of it is unused */

typedef char layer_name[NAME_BYTES];

struct net {
    int64_t layers;
    sb_blob *values, *target;
    sb_model *built, *opened;
    void *bytes;
    size_t size;
    layer_name *asked;         /* all names, in the order of the searches */
    struct hsearch_data table; /* the names of `listed` */
    layer_name *listed;        /* all names, in the order of the layers */
};

/* Returns the number of layers of a run, which repeats its work on small nets. */
static int64_t layers_of_a_run(void) {
    return bench.effort == QUICK ? MOST / 10 : bench.effort == NORMAL ? MOST : 10 * MOST;
}

static size_t name_of(int64_t layer, layer_name name) {
    return (size_t)snprintf(name, NAME_BYTES, "res%lld_branch2a", (long long)layer);
}

static sb_blob *make_blob(sb_context *context) {
    sb_blob *blob;
    void *data;
    must(sb_blob_create_legacy(context, SB_DTYPE_F32, 1, 1, 1, 4, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    keep(data);
    return blob;
}

static sb_model *build_net(const struct net *net, sb_context *context) {
    sb_model *model;
    layer_name name;
    int64_t layer;
    must(sb_model_create(context, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int64_t i = 0; i < net->layers; i++) {
        must(sb_model_add_layer(model, name, name_of(i, name), "Scale", 5, &layer, NULL));
        must(sb_model_add_blob(model, layer, net->values, 0, NULL));
    }
    return model;
}

static sb_model *open_net(const struct net *net, sb_context *context) {
    static const sb_limits limits = {.struct_size = sizeof limits, .max_layers = 10 * MOST};
    sb_model *model;
    must(sb_model_open_bytes(context, SB_FORMAT_CAFFEMODEL, net->bytes, net->size, &limits, NULL,
                             NULL, &model, NULL));
    return model;
}

/* --- operations on one net --------------------------------------------------------------- */

static void build_once(struct net *net) {
    sb_model_destroy(build_net(net, NULL));
}

static void open_once(struct net *net) {
    sb_model_destroy(open_net(net, NULL));
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

static void hsearch_once(struct net *net) {
    ENTRY *found;
    for (int64_t i = 0; i < net->layers; i++) {
        must(hsearch_r((ENTRY){.key = net->asked[i]}, FIND, &found, &net->table) ? 0 : -1);
        keep(found->data);
    }
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
    /* NULL: nets of 1,000 layers. In large nets searches cause cache misses, as the peer's do. */
    void (*peer)(struct net *net);
} steps[] = {{"build", build_once, NULL},
             {"open", open_once, NULL},
             {"list", list_once, NULL},
             {"find by name", find_once, hsearch_once},
             {"find by name, all added,", find_added_once, hsearch_once},
             {"load", load_once, NULL},
             {"save", save_once, NULL}};

struct work {
    void (*once)(struct net *net);
    struct net *net;
};

static void run(void *state) {
    const struct work *work = state;
    for (int64_t n = layers_of_a_run() / work->net->layers; n > 0; n--)
        work->once(work->net);
}

/* --- nets ----------------------------------------------------------------------------------- */

static layer_name *names_asked(int64_t layers) {
    layer_name *names = malloc((size_t)layers * sizeof *names);
    must(names ? 0 : -1);
    for (int64_t i = 0; i < layers; i++)
        (void)name_of(i * 7919 % layers, names[i]);
    return names;
}

static void fill_table(struct net *net) {
    ENTRY *added;
    net->listed = malloc((size_t)net->layers * sizeof *net->listed);
    must(net->listed && hcreate_r((size_t)net->layers * 5 / 4, &net->table) ? 0 : -1);
    for (int64_t i = 0; i < net->layers; i++) {
        (void)name_of(i, net->listed[i]);
        must(hsearch_r((ENTRY){net->listed[i], net}, ENTER, &added, &net->table) ? 0 : -1);
    }
}

static struct net make_net(int64_t layers) {
    struct net net = {.layers = layers, .asked = names_asked(layers)};
    net.values = make_blob(NULL);
    net.target = make_blob(NULL);
    net.built = build_net(&net, NULL);
    must(sb_model_size(net.built, &net.size, NULL));
    net.bytes = malloc(net.size);
    must(net.bytes ? 0 : -1);
    must(sb_model_save(net.built, net.bytes, net.size, &net.size, NULL));
    net.opened = open_net(&net, NULL);
    fill_table(&net);
    return net;
}

static void end_net(struct net *net) {
    sb_model_destroy(net->opened);
    sb_model_destroy(net->built);
    sb_blob_destroy(net->target);
    sb_blob_destroy(net->values);
    free(net->bytes);
    free(net->asked);
    hdestroy_r(&net->table);
    free(net->listed);
}

static void compare_time(const struct step *step, struct net *net, struct net *thousand) {
    char what[64];
    struct work ours = {step->once, net}, other = {step->once, thousand};
    const char *against = "as many layers in nets of 1,000";
    struct contest c = {.what = what, .threads = 1};
    snprintf(what, sizeof what, "%s a net of %lld layers", step->what, (long long)net->layers);
    if (step->peer) {
        other = (struct work){step->peer, net};
        against = "hsearch_r";
    }
    contest_add(&c, "syncblob", run, NULL, &ours);
    contest_add(&c, against, run, NULL, &other);
    contest_run(&c);
    goal_ratio(&c, against, step->peer ? 2 : 1.2); /* hsearch_r's hash, without a key, is faster */
    contest_free(&c);
}

/* Returns how many bytes of memory a model of the net has for each layer. */
static double bytes_of(const struct net *net, sb_model *(*make)(const struct net *, sb_context *)) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_stats before = SB_STATS_INIT, after = SB_STATS_INIT;
    sb_context *context;
    must(sb_context_create(&options, &context, NULL));
    must(sb_context_stats(context, &before, NULL));
    sb_model *model = make(net, context);
    must(sb_context_stats(context, &after, NULL));
    sb_model_destroy(model);
    sb_context_release(context);
    return (double)(after.host_bytes - before.host_bytes) / (double)net->layers;
}

static void compare_memory(const struct net *net, const struct net *thousand) {
    char what[64];
    snprintf(what, sizeof what, "memory of a net of %lld layers", (long long)net->layers);
    goal_value(what, 0, "times", bytes_of(net, open_net) / bytes_of(thousand, open_net), 1.2);
    snprintf(what, sizeof what, "memory of %lld layers that were added", (long long)net->layers);
    goal_value(what, 0, "times", bytes_of(net, build_net) / bytes_of(thousand, build_net),
               ADDED_GROWS);
}

static void open_and_list(void *state) {
    struct net net = *(struct net *)state;
    net.opened = open_net(&net, NULL);
    list_once(&net);
    sb_model_destroy(net.opened);
}

static void unpack(void *state) {
    const struct net *net = state;
    Sb__NetParameter *message = sb__net_parameter__unpack(NULL, net->size, net->bytes);
    must(message ? 0 : -1);
    sb__net_parameter__free_unpacked(message, NULL);
}

static void compare_opening(struct net *net) {
    struct contest c = {.what = "open and list a net of 10000 layers", .threads = 1};
    contest_add(&c, "syncblob", open_and_list, NULL, net);
    contest_add(&c, "protobuf-c unpacking it", unpack, NULL, net);
    contest_run(&c);
    goal_ratio(&c, "protobuf-c unpacking it", 0.5);
    contest_free(&c);
}

static void bench_nets(void) {
    struct net thousand = make_net(1000);
    for (int64_t layers = 100; layers <= layers_of_a_run(); layers *= 10) {
        if (layers == thousand.layers)
            continue;
        struct net net = make_net(layers);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            compare_time(&steps[i], &net, &thousand);
        compare_memory(&net, &thousand);
        if (layers == 10000)
            compare_opening(&net);
        end_net(&net);
    }
    end_net(&thousand);
}

/* --- contexts ------------------------------------------------------------------------------- */

struct crowd {
    sb_context *context;
    sb_blob **blobs;
    int64_t count;
};

static struct crowd make_crowd(int64_t count) {
    struct crowd crowd = {.blobs = malloc((size_t)count * sizeof(sb_blob *)), .count = count};
    must(crowd.blobs ? 0 : -1);
    must(sb_context_create(NULL, &crowd.context, NULL));
    for (int64_t i = 0; i < count; i++)
        crowd.blobs[i] = make_blob(crowd.context);
    return crowd;
}

static void end_crowd(struct crowd *crowd) {
    for (int64_t i = 0; i < crowd->count; i++)
        sb_blob_destroy(crowd->blobs[i]);
    sb_context_release(crowd->context);
    free(crowd->blobs);
}

/* Creates, enlarges, writes and destroys another blob. */
static void one_more(void *state) {
    const struct crowd *crowd = state;
    void *data;
    sb_blob *blob = make_blob(crowd->context);
    must(sb_blob_reshape_legacy(blob, 2, 3, 4, 5, NULL, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    keep(data);
    sb_blob_destroy(blob);
}

static void bench_contexts(void) {
    struct crowd thousand = make_crowd(1000);
    for (int64_t count = 1; count <= layers_of_a_run(); count *= MOST) {
        char what[64];
        struct crowd crowd = make_crowd(count);
        struct contest c = {.what = what, .threads = 1};
        snprintf(what, sizeof what, "one more blob beside %lld", (long long)count);
        contest_add(&c, "syncblob", one_more, NULL, &crowd);
        contest_add(&c, "beside 1,000", one_more, NULL, &thousand);
        contest_run(&c);
        goal_ratio(&c, "beside 1,000", 1.2);
        contest_free(&c);
        end_crowd(&crowd);
    }
    end_crowd(&thousand);
}

void bench_growth(void) {
    bench_nets();
    bench_contexts();
}
