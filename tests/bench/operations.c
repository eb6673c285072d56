/* operations [NAME]: prints the names of small operations, or runs one operation for callgrind
   (instructions.py). */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define TIMES 1000
#define COUNT 256

static sb_blob *blob;   /* has a diff */
static sb_blob *source; /* has no diff */
static sb_model *model;
static void *message;
static size_t message_size;
static char buffer[4096];

static const sb_filler filler = SB_FILLER_INIT;
static const int64_t shape_of_blob[] = {1, 4, 8, 8};

#define OPERATIONS(OPERATION)                                                                      \
    OPERATION(cpu_data, sb_blob_cpu(blob, SB_DATA, &out.data, NULL))                               \
    OPERATION(mutable_cpu_data, sb_blob_mutable_cpu(blob, SB_DATA, &out.writable, NULL))           \
    OPERATION(make_and_destroy,                                                                    \
              sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &out.blob, NULL) ||            \
                  (sb_blob_destroy(out.blob), SB_OK))                                              \
    OPERATION(reshape, sb_blob_reshape(blob, shape_of_blob, 4, NULL, NULL))                        \
    OPERATION(offset, sb_blob_offset_legacy(blob, 0, 3, 5, 7, &out.number, NULL))                  \
    OPERATION(copy, sb_blob_copy_from(blob, SB_DATA, source, 0, NULL))                             \
    OPERATION(load, sb_blob_from_proto(blob, message, message_size, SB_PROTO_RESHAPE, NULL, NULL)) \
    OPERATION(save, sb_blob_to_proto(blob, 0, buffer, sizeof buffer, NULL, NULL))                  \
    OPERATION(asum, sb_blob_asum(blob, SB_DATA, &out.sum, NULL))                                   \
    OPERATION(sumsq, sb_blob_sumsq(blob, SB_DATA, &out.sum, NULL))                                 \
    OPERATION(update, sb_blob_update(blob, NULL))                                                  \
    OPERATION(scale, sb_blob_scale(blob, SB_DATA, 1.0, NULL))                                      \
    OPERATION(constant, sb_blob_fill(blob, &filler, 1, NULL))                                      \
    OPERATION(find, sb_model_find_layer(model, "res50", 5, &out.number, NULL))

union out {
    const void *data;
    void *writable;
    int64_t number;
    double sum;
    sb_blob *blob;
};

#define DEFINE(name, call)                                                                         \
    static void name(void) {                                                                       \
        union out out;                                                                             \
        (void)&out;                                                                                \
        must(call);                                                                                \
    }

OPERATIONS(DEFINE)

#define ROW(name, call) {#name, name},

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {OPERATIONS(ROW)};

#define NUM_OPERATIONS (sizeof operations / sizeof *operations)

static void set_up(void) {
    void *values;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 1, 4, 8, 8, &blob, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DIFF, &values, NULL));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &values, NULL));
    for (int i = 0; i < COUNT; i++)
        ((float *)values)[i] = 1.0F;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 1, 4, 8, 8, &source, NULL));
    must(sb_blob_copy_from(source, SB_DATA, blob, 0, NULL));
    must(sb_blob_proto_size(blob, 0, &message_size, NULL));
    message = malloc(message_size);
    must(sb_blob_to_proto(blob, 0, message, message_size, NULL, NULL));
    must(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int i = 0; i < 100; i++) {
        int length = snprintf(buffer, sizeof buffer, "res%d", i);
        must(sb_model_add_layer(model, buffer, (size_t)length, "Scale", 5, NULL, NULL));
    }
}

__attribute__((noinline)) void counted(void (*run)(void));

void counted(void (*run)(void)) {
    for (int i = 0; i < TIMES; i++)
        run();
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < NUM_OPERATIONS; i++) {
        if (argc < 2) {
            puts(operations[i].name);
        } else if (strcmp(operations[i].name, argv[1]) == 0) {
            set_up();
            operations[i].run(); /* the first call does more work, so it is not counted */
            counted(operations[i].run);
            sb_model_destroy(model);
            free(message);
            sb_blob_destroy(source);
            sb_blob_destroy(blob);
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
