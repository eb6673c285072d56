/* Times the loading of files that are in the page cache. */
#include "cases.h"
#include "harness.h"
#include "peers/caffe.h"

#include <syncblob/syncblob.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYERS   60
#define NET_GOAL 1.5 /* times one read */

/* The numbers of weights of ten layers. The net has 60 layers, six times these ten: 200 MB. */
static const int64_t weights[] = {9408,   36864,   147456, 589824,  1179648,
                                  294912, 2097152, 65536,  1572864, 2359296};

struct state {
    const char *path;
    uint32_t open_flags;
    sb_context *context;
    sb_blob *blobs[2 * LAYERS];
    int num_blobs;
    void *memory;
    size_t file_bytes;
    void *caffe_net;
};

static void add_blob(sb_model *model, int64_t layer, int64_t count) {
    sb_blob *blob;
    float *values = random_floats((size_t)count, (uint64_t)(layer + count));
    must(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &blob, NULL));
    must(sb_blob_set_cpu(blob, SB_DATA, values, (size_t)count * sizeof *values, 0, NULL, NULL,
                         NULL));
    must(sb_model_add_blob(model, layer, blob, 0, NULL));
    sb_blob_destroy(blob);
    fresh_memory_free(values, (size_t)count * sizeof *values);
}

/* Writes a net into a file. Returns the payload's bytes. */
static size_t make_net(const char *path) {
    sb_model *model;
    int64_t layer, elements = 0, divisor = bench.effort == QUICK ? 64 : 1;
    must(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int i = 0; i < LAYERS; i++) {
        int64_t count = weights[(size_t)i % (sizeof weights / sizeof *weights)] / divisor;
        must(sb_model_add_layer(model, "a layer", 7, "Convolution", 11, &layer, NULL));
        add_blob(model, layer, count);
        add_blob(model, layer, 256); /* the bias */
        elements += count + 256;
    }
    must(sb_model_save_file(model, path, NULL));
    sb_model_destroy(model);
    return (size_t)elements * sizeof(float);
}

/* --- a net into its blobs --------------------------------------------------------------- */

static void destroy_blobs(void *arg) {
    struct state *s = arg;
    while (s->num_blobs > 0)
        sb_blob_destroy(s->blobs[--s->num_blobs]);
}

static void load_layer(struct state *s, const sb_model *model, int64_t layer) {
    int64_t blobs;
    must(sb_model_num_blobs(model, layer, &blobs, NULL));
    for (int64_t i = 0; i < blobs; i++) {
        sb_blob **blob = &s->blobs[s->num_blobs++];
        must(sb_blob_create(s->context, SB_DTYPE_F32, blob, NULL));
        must(sb_model_load_blob(model, layer, i, *blob, NULL));
    }
}

static void load_net(void *arg) {
    struct state *s = arg;
    sb_model *model;
    destroy_blobs(s);
    must(
        sb_model_open_file(s->context, SB_FORMAT_AUTO, s->path, s->open_flags, NULL, &model, NULL));
    for (int64_t layer = 0; layer < sb_model_num_layers(model); layer++)
        load_layer(s, model, layer);
    sb_model_destroy(model);
}

static void list_net(void *arg) {
    struct state *s = arg;
    sb_layer_info layer = SB_LAYER_INFO_INIT;
    sb_blob_info blob = SB_BLOB_INFO_INIT;
    sb_model *model;
    must(sb_model_open_file(s->context, SB_FORMAT_AUTO, s->path, 0, NULL, &model, NULL));
    for (int64_t i = 0; i < sb_model_num_layers(model); i++) {
        must(sb_model_layer_info(model, i, &layer, NULL));
        for (int64_t k = 0; k < layer.num_blobs; k++)
            must(sb_model_blob_info(model, i, k, &blob, NULL));
    }
    sb_model_destroy(model);
}

static void free_memory(void *arg) {
    struct state *s = arg;
    fresh_memory_free(s->memory, s->file_bytes);
    s->memory = NULL;
}

static void read_all(int file, char *to, size_t bytes) {
    while (bytes > 0) {
        ssize_t got = read(file, to, bytes);
        must(got > 0 ? 0 : -1);
        to += got;
        bytes -= (size_t)got;
    }
}

static void read_file(void *arg) {
    struct state *s = arg;
    free_memory(s);
    int file = open(s->path, O_RDONLY | O_CLOEXEC);
    must(file >= 0 ? 0 : -1);
    s->memory = fresh_memory(s->file_bytes);
    read_all(file, s->memory, s->file_bytes);
    close(file);
}

static void caffe_free(void *arg) {
    struct state *s = arg;
    bench.caffe->free_net(s->caffe_net);
    s->caffe_net = NULL;
}

static void caffe_load(void *arg) {
    struct state *s = arg;
    caffe_free(s);
    s->caffe_net = bench.caffe->load_net(s->path);
}

static void contest_net(struct state *s, size_t payload) {
    struct contest c = {.what = "net to blobs", .bytes = payload, .threads = 1};
    struct state mapped = *s;
    mapped.open_flags = SB_OPEN_MAPPED;
    contest_add(&c, "syncblob", load_net, destroy_blobs, s);
    contest_add(&c, "read", read_file, free_memory, s);
    contest_add(&c, "syncblob, mapped", load_net, destroy_blobs, &mapped);
    if (bench.caffe)
        contest_add(&c, "Caffe", caffe_load, caffe_free, s);
    contest_run(&c);
    if (bench.effort != QUICK)
        goal_ratio(&c, "read", NET_GOAL);
    contest_free(&c);
}

static void contest_list(struct state *s) {
    struct contest c = {.what = "list a net of 60 layers", .threads = 1};
    contest_add(&c, "syncblob", list_net, NULL, s);
    contest_run(&c);
    goal_value("open and list a net, per hundred layers", 0, "ms",
               c.contestants[0].best / 1e6 * 100 / LAYERS, 1);
    contest_free(&c);
}

/* --- one blob ----------------------------------------------------------------------------- */

static void load_blob(void *arg) {
    struct state *s = arg;
    destroy_blobs(s);
    must(sb_blob_create(s->context, SB_DTYPE_F32, &s->blobs[s->num_blobs++], NULL));
    must(sb_blob_load_file(s->blobs[0], s->path, SB_PROTO_RESHAPE, NULL, NULL));
}

static size_t size_of_file(const char *path) {
    struct stat status;
    must(stat(path, &status));
    return (size_t)status.st_size;
}

static void contest_blob(struct state *s, size_t bytes) {
    struct contest c = {.what = "file to blob", .bytes = bytes, .threads = 1};
    int64_t count = (int64_t)(bytes / sizeof(float));
    float *values = random_floats((size_t)count, 3);
    sb_blob *blob;
    must(sb_blob_create_shaped(NULL, SB_DTYPE_F32, &count, 1, &blob, NULL));
    must(sb_blob_set_cpu(blob, SB_DATA, values, bytes, 0, NULL, NULL, NULL));
    must(sb_blob_save_file(blob, s->path, 0, NULL));
    sb_blob_destroy(blob);
    fresh_memory_free(values, bytes);
    s->file_bytes = size_of_file(s->path);
    contest_add(&c, "syncblob", load_blob, destroy_blobs, s);
    contest_add(&c, "read", read_file, free_memory, s);
    contest_run(&c);
    contest_free(&c);
}

/* --- peak memory ---------------------------------------------------------------------------- */

/* Returns the peak of resident bytes since exec; getrusage would include the peak before exec. */
static long peak_now(void) {
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    must(status ? 0 : -1);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    fclose(status);
    return kilobytes * 1024;
}

int peak_memory(const char *reader, const char *path) {
    struct state s = {.path = path};
    long before = peak_now();
    if (strcmp(reader, "syncblob") == 0)
        load_net(&s);
    else
        s.caffe_net = bench.caffe->load_net(path);
    printf("%ld\n", peak_now() - before);
    return 0;
}

/* Loads the net in another process. Returns how much its peak memory rose, divided by `payload`. */
static double peak_of(const char *reader, const char *path, size_t payload) {
    char command[4096], self[1024] = "";
    double peak = -1;
    must(readlink("/proc/self/exe", self, sizeof self - 1) > 0 ? 0 : -1);
    snprintf(command, sizeof command, "'%s' %s'%s' --peak %s '%s'", self,
             bench.caffe ? "--caffe " : "", bench.caffe ? bench.caffe_path : "", reader, path);
    FILE *pipe = popen(command, "r");
    must(pipe && fscanf(pipe, "%lf", &peak) == 1 ? 0 : -1);
    pclose(pipe);
    return peak / (double)payload;
}

void bench_files(void) {
    char path[1024];
    const size_t *sizes;
    int count = bench_sizes(&sizes);
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    options.flags = SB_CONTEXT_NO_HOST_CACHE;
    struct state s = {.path = path};
    must(sb_context_create(&options, &s.context, NULL));

    snprintf(path, sizeof path, "%s/bench.caffemodel", bench.folder);
    size_t payload = make_net(path);
    s.file_bytes = size_of_file(path);
    contest_net(&s, payload);
    contest_list(&s);
    if (bench.effort != QUICK)
        goal_value("net to blobs, peak memory over payload", payload, "times",
                   peak_of("syncblob", path, payload), 1.05);
    if (bench.effort != QUICK && bench.caffe)
        printf("%9.3g Caffe's peak memory over payload, for the same file\n",
               peak_of("caffe", path, payload));
    unlink(path);

    snprintf(path, sizeof path, "%s/bench.binaryproto", bench.folder);
    for (int i = 0; i < count; i++)
        contest_blob(&s, sizes[i]);
    unlink(path);
    sb_context_release(s.context);
}
