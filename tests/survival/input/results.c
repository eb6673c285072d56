/* Prints the results of reading files, for a script that compares operating systems. `results
   FOLDER...` reads each file as a blob and as a model with all its blobs, and prints the status,
   offset and message of each read. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <syncblob/syncblob.h>

static void print_result(const char *what, sb_status st, const sb_error *err) {
    const bool failed = st != SB_OK;
    (void)printf(" %s %s %lld \"%s\"", what, sb_status_name(st),
                 failed ? (long long)err->offset : 0, failed ? err->message : "");
}

static uint32_t sum_of(const sb_blob *blob) {
    const void *data = NULL;
    uint32_t sum = 0;
    if (sb_blob_count(blob) > 0 && sb_blob_cpu(blob, SB_DATA, &data, NULL) == SB_OK)
        for (size_t i = 0; i < (size_t)sb_blob_count(blob) * sizeof(float); i++)
            sum = sum * 31 + ((const unsigned char *)data)[i];
    return sum;
}

/* Loads a blob of the model or, if `model` is NULL, the file as a blob. */
static void load(const char *path, const sb_model *model, int64_t layer, int64_t index) {
    sb_error err;
    sb_blob *blob = NULL;
    if (sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL) != SB_OK)
        exit(1);
    const sb_status st = model ? sb_model_load_blob(model, layer, index, blob, &err)
                               : sb_blob_load_file(blob, path, SB_PROTO_RESHAPE, NULL, &err);
    print_result(model ? "load" : "blob", st, &err);
    (void)printf(" %08x\n", sum_of(blob));
    sb_blob_destroy(blob);
}

static void load_all(const sb_model *model, int64_t layer) {
    int64_t blobs;
    if (sb_model_num_blobs(model, layer, &blobs, NULL) != SB_OK)
        abort();
    for (int64_t i = 0; i < blobs; i++)
        load(NULL, model, layer, i);
}

static void as_model(const char *path) {
    sb_error err;
    sb_model *model = NULL;
    sb_status st = sb_model_open_file(NULL, SB_FORMAT_AUTO, path, 0, NULL, &model, &err);
    print_result("model", st, &err);
    (void)printf("\n");
    if (st != SB_OK)
        return;
    const int64_t layers = sb_model_num_layers(model);
    for (int64_t layer = 0; layer < layers; layer++)
        load_all(model, layer);
    load_all(model, SB_NO_LAYER);
    sb_model_destroy(model);
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int count = scandir(argv[i], &names, is_visible, alphasort);
        for (int j = 0; j < count; j++) {
            char path[1024];
            (void)snprintf(path, sizeof path, "%s/%s", argv[i], names[j]->d_name);
            (void)printf("%s\n", path);
            load(path, NULL, 0, 0);
            as_model(path);
        }
        if (count <= 0)
            return 1;
    }
    return 0;
}
