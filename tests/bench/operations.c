/* "operations [--caffe LIBRARY]" prints the names of the small operations whose instructions are
   counted. "operations [--caffe LIBRARY] NAME" runs an operation TIMES times in the function
   `counted`, where callgrind counts instructions for instructions.py. */
#include "harness.h"
#include "peers/caffe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TIMES 1000
#define COUNT 256 /* floats: 1 KiB */

static sb_blob *blob;   /* 1 x 4 x 8 x 8, written, with a diff */
static sb_blob *source; /* likewise, without a diff */
static void *message;
static size_t message_size;
static char buffer[4096];
static const struct caffe_peer *caffe; /* NULL without --caffe */
static void *caffe_blob;

static const sb_filler filler = SB_FILLER_INIT;
static const int64_t shape_of_blob[] = {1, 4, 8, 8};

/* Each operation is one call, which may write a member of `out`. */
#define OPERATIONS(OPERATION)                                                                      \
    OPERATION(cpu_data, sb_blob_cpu(blob, SB_DATA, &out.data, NULL))                               \
    OPERATION(mutable_cpu_data, sb_blob_mutable_cpu(blob, SB_DATA, &out.writable, NULL))           \
    OPERATION(reshape, sb_blob_reshape(blob, shape_of_blob, 4, NULL, NULL))                        \
    OPERATION(offset, sb_blob_offset_legacy(blob, 0, 3, 5, 7, &out.number, NULL))                  \
    OPERATION(copy, sb_blob_copy_from(blob, SB_DATA, source, 0, NULL))                             \
    OPERATION(load, sb_blob_from_proto(blob, message, message_size, SB_PROTO_RESHAPE, NULL, NULL)) \
    OPERATION(save, sb_blob_to_proto(blob, 0, buffer, sizeof buffer, NULL, NULL))                  \
    OPERATION(asum, sb_blob_asum(blob, SB_DATA, &out.sum, NULL))                                   \
    OPERATION(sumsq, sb_blob_sumsq(blob, SB_DATA, &out.sum, NULL))                                 \
    OPERATION(update, sb_blob_update(blob, NULL))                                                  \
    OPERATION(scale, sb_blob_scale(blob, SB_DATA, 1.0, NULL))                                      \
    OPERATION(constant, sb_blob_fill(blob, &filler, 1, NULL))

/* These operations are of Caffe; each makes CALLS calls. */
#define CAFFE_OPERATIONS(OPERATION)                                                                \
    OPERATION(caffe_access, (caffe->access(caffe_blob), SB_OK))                                    \
    OPERATION(caffe_offset, (caffe->offset(caffe_blob), SB_OK))                                    \
    OPERATION(caffe_reshape, (caffe->reshape_vector(caffe_blob), SB_OK))

union out {
    const void *data;
    void *writable;
    int64_t number;
    double sum;
};

#define DEFINE(name, call)                                                                         \
    static void name(void) {                                                                       \
        union out out;                                                                             \
        (void)&out;                                                                                \
        must(call);                                                                                \
    }

OPERATIONS(DEFINE)
CAFFE_OPERATIONS(DEFINE)

static void make_and_destroy(void) {
    sb_blob *made;
    must(sb_blob_create_legacy(NULL, SB_DTYPE_F32, 2, 3, 4, 5, &made, NULL));
    sb_blob_destroy(made);
}

/* These functions make CALLS calls in a loop, like the functions of caffe.cpp. */

static void access_calls(void) {
    const void *data;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_cpu(blob, SB_DATA, &data, NULL));
        keep(data);
    }
}

static void offset_calls(void) {
    int64_t at;
    for (int i = 0; i < CALLS; i++) {
        must(sb_blob_offset_legacy(blob, 0, 3, 5, i & 3, &at, NULL));
        keep(&at);
    }
}

static void reshape_calls(void) {
    int64_t shape[] = {1, 4, 8, 8};
    for (int i = 0; i < CALLS; i++) {
        shape[1] = 3 + (i & 1);
        must(sb_blob_reshape(blob, shape, 4, NULL, NULL));
    }
}

#define ROW(name, call) {#name, name},

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {OPERATIONS(ROW){"make_and_destroy", make_and_destroy},
                  {"access_calls", access_calls},
                  {"offset_calls", offset_calls},
                  {"reshape_calls", reshape_calls},
                  CAFFE_OPERATIONS(ROW)};

#define NUM_OPERATIONS (sizeof operations / sizeof *operations)
#define NUM_CAFFE      3

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
}

__attribute__((noinline)) void counted(void (*run)(void));

void counted(void (*run)(void)) {
    for (int i = 0; i < TIMES; i++)
        run();
}

static void open_caffe(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    caffe = library ? dlsym(library, "caffe_peer") : NULL;
    must(caffe ? SB_OK : SB_ERR_IO);
    caffe_blob = caffe->create(2, 3, 4, 5);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--caffe") == 0) {
        open_caffe(argv[2]);
        argc -= 2;
        argv += 2;
    }
    for (size_t i = 0; i < NUM_OPERATIONS - (caffe ? 0 : NUM_CAFFE); i++) {
        if (argc < 2) {
            puts(operations[i].name);
        } else if (strcmp(operations[i].name, argv[1]) == 0) {
            set_up();
            operations[i].run(); /* not counted: the first call does more work than later calls */
            counted(operations[i].run);
            free(message);
            sb_blob_destroy(source);
            sb_blob_destroy(blob);
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
