/* What syncblob is for, on one blob of a real model:
 *
 *     demo MODEL.caffemodel
 *
 * loads a blob, reads it on the host and on a (simulated) device, takes an
 * update step, saves the model and reads it again. */
#include <syncblob/syncblob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sb_error err;

static void check(sb_status status, const char *what) {
    if (status == SB_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, sb_status_name(status), err.message);
    exit(1);
}

#define CHECK(call) check(call, #call)

static void print_state(const char *step, const sb_blob *blob) {
    static const char *const heads[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED",
                                        "LOST"};
    sb_stats stats = SB_STATS_INIT;
    const sb_mem *data = NULL;
    double asum = 0;
    CHECK(sb_context_stats(sb_blob_context(blob), &stats, &err));
    CHECK(sb_blob_mem(blob, SB_DATA, &data, &err));
    CHECK(sb_blob_asum(blob, SB_DATA, &asum, &err));
    printf("  %-28s head %-11s  sum of |x| %.6f  copies up %llu, down %llu\n", step,
           heads[sb_mem_head(data)], asum, (unsigned long long)stats.uploads,
           (unsigned long long)stats.downloads);
}

static int64_t first_layer_with_blobs(const sb_model *model) {
    for (int64_t layer = 0; layer < sb_model_num_layers(model); layer++) {
        int64_t blobs;
        if (sb_model_num_blobs(model, layer, &blobs, NULL) == SB_OK && blobs > 0)
            return layer;
    }
    fprintf(stderr, "the model has no layer with blobs\n");
    exit(1);
}

/* One step of gradient descent with a made-up gradient: a tenth of each weight. */
static void update(sb_blob *blob) {
    const float *data = NULL;
    float *diff = NULL;
    CHECK(sb_blob_cpu_f32(blob, SB_DATA, &data, &err));
    CHECK(sb_blob_overwrite_cpu_f32(blob, SB_DIFF, &diff, &err));
    for (int64_t i = 0; i < sb_blob_count(blob); i++)
        diff[i] = 0.1F * data[i];
    CHECK(sb_blob_update(blob, &err));
}

static void compare(const sb_blob *a, const sb_blob *b) {
    const float *x = NULL, *y = NULL;
    CHECK(sb_blob_cpu_f32(a, SB_DATA, &x, &err));
    CHECK(sb_blob_cpu_f32(b, SB_DATA, &y, &err));
    if (!sb_blob_shape_equals(a, b) || memcmp(x, y, (size_t)sb_blob_count(a) * sizeof *x) != 0) {
        fprintf(stderr, "the saved blob differs\n");
        exit(1);
    }
}

int main(int argc, char **argv) {
    const char *saved = "updated.caffemodel";
    char shape[128];
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    sb_context *context = NULL;
    sb_model *model = NULL, *again = NULL;
    sb_blob *blob = NULL, *reread = NULL;
    sb_layer_info info = SB_LAYER_INFO_INIT;
    double before = 0, after = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: demo MODEL.caffemodel\n");
        return 2;
    }
    options.device = "sim:0"; /* a device made of host memory */
    CHECK(sb_context_create(&options, &context, &err));
    CHECK(sb_model_open_file(context, SB_FORMAT_CAFFEMODEL, argv[1], 0, NULL, &model, &err));
    int64_t layer = first_layer_with_blobs(model);
    CHECK(sb_model_layer_info(model, layer, &info, &err));

    CHECK(sb_blob_create(context, SB_DTYPE_F32, &blob, &err));
    CHECK(sb_model_load_blob(model, layer, 0, blob, &err));
    CHECK(sb_blob_shape_string(blob, shape, sizeof shape, NULL, &err));
    printf("%.*s, blob 0: %s\n", (int)info.name.size, info.name.bytes, shape);
    CHECK(sb_blob_asum(blob, SB_DATA, &before, &err));
    print_state("loaded", blob);

    const float *device = NULL;
    CHECK(sb_blob_gpu_f32(blob, SB_DATA, &device, &err));
    print_state("read on the device", blob);
    CHECK(sb_blob_gpu_f32(blob, SB_DATA, &device, &err));
    print_state("read there again: no copy", blob);
    update(blob);
    print_state("Update, where the head is", blob);
    const float *host = NULL;
    CHECK(sb_blob_cpu_f32(blob, SB_DATA, &host, &err));
    print_state("read on the host", blob);

    CHECK(sb_model_set_blob(model, layer, 0, blob, 0, &err));
    CHECK(sb_model_save_file(model, saved, &err));
    CHECK(sb_model_open_file(NULL, SB_FORMAT_AUTO, saved, 0, NULL, &again, &err));
    CHECK(sb_blob_create(NULL, SB_DTYPE_F32, &reread, &err));
    CHECK(sb_model_load_blob(again, layer, 0, reread, &err));
    CHECK(sb_blob_asum(reread, SB_DATA, &after, &err));
    compare(blob, reread);
    printf("saved and read again: the same %lld values, %.6f times the old sum\n",
           (long long)sb_blob_count(reread), after / before);

    sb_blob_destroy(reread);
    sb_model_destroy(again);
    sb_blob_destroy(blob);
    sb_model_destroy(model);
    sb_context_release(context);
    return fabs(after / before - 0.9) < 1e-5 ? 0 : 1;
}
