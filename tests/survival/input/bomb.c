/* Writes a bomb to a file, or passes bombs to the functions that read models and blobs. A bomb is
   an input that costs a careless reader too much memory or time (bombs.h):

       bomb list
       bomb write NAME BYTES FILE
       bomb read BYTES MORE_BYTES NAME...

   `read` calls the function work_on for each bomb at both sizes, so that a profiler can count the
   instructions of the reading alone. */
#include "bombs.h"
#include "counting_allocator.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syncblob/syncblob.h>

static int fail(const char *what) {
    (void)fprintf(stderr, "bomb: %s\n", what);
    return 2;
}

static const struct bomb *find_bomb(const char *name) {
    for (size_t i = 0; i < num_bombs; i++)
        if (strcmp(bombs[i].name, name) == 0)
            return &bombs[i];
    exit(fail("no bomb has this name; 'bomb list' prints the names"));
}

static int write_bomb(const char *name, size_t size, const char *path) {
    struct wire wire = {0};
    bomb_build(find_bomb(name), &wire, size);
    FILE *file = fopen(path, "wb");
    size_t written = file ? fwrite(wire.bytes, 1, wire.size, file) : 0;
    bool whole = written == wire.size && fclose(file) == 0;
    wire_free(&wire);
    return whole ? 0 : fail("the file cannot be written");
}

/* Queries every layer and blob, finds every layer by its name, and loads every 16th blob. This work
   is proportional to the file, so a cost per blob that grows with the file is visible. */
static void use_model(const sb_model *model) {
    sb_blob *blob = NULL;
    ignore(sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL));
    for (int64_t layer = SB_NO_LAYER; layer < sb_model_num_layers(model); layer++) {
        sb_layer_info info = SB_LAYER_INFO_INIT;
        int64_t first;
        if (layer >= 0 && sb_model_layer_info(model, layer, &info, NULL) == SB_OK)
            ignore(sb_model_find_layer(model, info.name.bytes, info.name.size, &first, NULL));
        int64_t blobs = 0;
        (void)!sb_model_num_blobs(model, layer, &blobs, NULL);
        for (int64_t i = 0; i < blobs; i++) {
            sb_blob_info found = SB_BLOB_INFO_INIT;
            ignore(sb_model_blob_info(model, layer, i, &found, NULL));
            if (i % 16 == 0)
                ignore(sb_model_load_blob(model, layer, i, blob, NULL));
        }
    }
    sb_blob_destroy(blob);
}

/* Adds as many layers as the model has, and finds each by its name. */
static void add_layers(sb_model *model) {
    int64_t found;
    for (int64_t i = sb_model_num_layers(model); i > 0; i--) {
        ignore(sb_model_add_layer(model, (const char *)&i, sizeof i, "", 0, NULL, NULL));
        ignore(sb_model_find_layer(model, (const char *)&i, sizeof i, &found, NULL));
    }
}

static void save_model(const sb_model *model) {
    size_t size = 0;
    if (sb_model_size(model, &size, NULL) != SB_OK)
        return;
    void *copy = malloc(size + 1);
    ignore(sb_model_save(model, copy, size, NULL, NULL));
    free(copy);
}

static void use_as_blob(const void *bytes, size_t size) {
    sb_blob *blob = NULL;
    int32_t equal;
    ignore(sb_blob_create(NULL, SB_DTYPE_F64, &blob, NULL));
    ignore(sb_blob_shape_equals_proto(blob, bytes, size, &equal, NULL));
    ignore(sb_blob_from_proto(blob, bytes, size, SB_PROTO_RESHAPE, NULL, NULL));
    sb_blob_destroy(blob);
}

/* Sets the limits of layers and blobs to their maxima: a refusal would end the work early. */
void work_on(int32_t format, const void *bytes, size_t size);
void work_on(int32_t format, const void *bytes, size_t size) {
    sb_limits limits = SB_LIMITS_INIT;
    sb_model *model = NULL;
    limits.max_layers = limits.max_blobs = INT64_MAX;
    for (int named = 0; named < 2; named++) {
        if (sb_model_open_bytes(NULL, named ? format : SB_FORMAT_AUTO, bytes, size, &limits, NULL,
                                NULL, &model, NULL) != SB_OK)
            continue;
        if (named) {
            use_model(model);
            save_model(model);
            add_layers(model);
        }
        sb_model_destroy(model);
        model = NULL;
    }
    if (format == SB_FORMAT_BLOB)
        use_as_blob(bytes, size);
}

static int read_bombs(const size_t sizes[2], char **names) {
    for (; *names; names++)
        for (int i = 0; i < 2; i++) {
            const struct bomb *bomb = find_bomb(*names);
            struct wire wire = {0};
            bomb_build(bomb, &wire, sizes[i]);
            work_on(bomb->format, wire.bytes, wire.size);
            wire_free(&wire);
        }
    return 0;
}

static int list(void) {
    for (size_t i = 0; i < num_bombs; i++)
        printf("%s\n", bombs[i].name);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (argc == 5 && strcmp(argv[1], "write") == 0)
        return write_bomb(argv[2], strtoul(argv[3], NULL, 10), argv[4]);
    if (argc > 4 && strcmp(argv[1], "read") == 0)
        return read_bombs((const size_t[]){strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10)},
                          argv + 4);
    return fail("usage: list | write NAME BYTES FILE | read BYTES MORE_BYTES NAME...");
}
