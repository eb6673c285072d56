/* Times the loading of a net from a file that is in the page cache. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYERS 60

static const int64_t weights[] = {9408,   36864,   147456, 589824,  1179648,
                                  294912, 2097152, 65536,  1572864, 2359296};

static char path[1024];
static size_t file_bytes;
static sb_context *context;
static sb_blob *blobs[2 * LAYERS];
static int num_blobs;
static void *memory;

static void add_blob(sb_model *model, int64_t layer, int64_t count) {
    sb_blob *blob = make_blob(NULL, SB_DTYPE_F32, (size_t)count);
    (void)fill_randomly(blob, SB_DATA, (uint64_t)(layer + count));
    must(sb_model_add_blob(model, layer, blob, 0, NULL));
    sb_blob_destroy(blob);
}

static size_t make_net(void) {
    struct stat status;
    sb_model *model;
    int64_t layer, elements = 0, divisor = bench.quick ? 64 : 1;
    must(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int i = 0; i < LAYERS; i++) {
        int64_t count = weights[(size_t)i % (sizeof weights / sizeof *weights)] / divisor;
        must(sb_model_add_layer(model, "a layer", 7, "Convolution", 11, &layer, NULL));
        add_blob(model, layer, count);
        add_blob(model, layer, 256);
        elements += count + 256;
    }
    must(sb_model_save_file(model, path, NULL));
    sb_model_destroy(model);
    must(stat(path, &status));
    file_bytes = (size_t)status.st_size;
    return (size_t)elements * sizeof(float);
}

/* --- a net into its blobs --------------------------------------------------------------- */

static void destroy_blobs(void) {
    while (num_blobs > 0)
        sb_blob_destroy(blobs[--num_blobs]);
}

static void load_layer(const sb_model *model, int64_t layer) {
    int64_t count;
    must(sb_model_num_blobs(model, layer, &count, NULL));
    for (int64_t i = 0; i < count; i++) {
        sb_blob **blob = &blobs[num_blobs++];
        must(sb_blob_create(context, SB_DTYPE_F32, blob, NULL));
        must(sb_model_load_blob(model, layer, i, *blob, NULL));
    }
}

static void load_net(void) {
    sb_model *model;
    destroy_blobs();
    must(sb_model_open_file(context, SB_FORMAT_AUTO, path, 0, NULL, &model, NULL));
    for (int64_t layer = 0; layer < sb_model_num_layers(model); layer++)
        load_layer(model, layer);
    sb_model_destroy(model);
}

static void free_memory(void) {
    fresh_memory_free(memory, file_bytes);
    memory = NULL;
}

static void read_file(void) {
    free_memory();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    must(file >= 0 ? 0 : -1);
    memory = fresh_memory(file_bytes);
    must(read(file, memory, file_bytes) == (ssize_t)file_bytes ? 0 : -1);
    close(file);
}

static void contest_net(size_t payload) {
    struct contest contest = {
        .what = "net to blobs",
        .contestants = {{"syncblob", load_net, destroy_blobs}, {"read", read_file, free_memory}},
    };
    if (!bench.quick)
        contest.goals[0] = (struct goal){"read", 1.5, 0};
    contest_run(&contest, payload, 1);
}

void bench_files(void) {
    context = make_context(SB_CONTEXT_NO_HOST_CACHE, NULL);
    snprintf(path, sizeof path, "%s/bench.caffemodel", bench.folder);
    contest_net(make_net());
    unlink(path);
    sb_context_release(context);
}
