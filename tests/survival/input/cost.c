/* Does work whose cost scripts measure:

       cost bombs | counts                     lists the cases of one kind
       cost read SMALL LARGE NAME...           calls work_on for each case at both sizes
       cost write NAME BYTES FILE              writes a bomb */
#include "../threads/team.h"
#include "bombs.h"
#include "counting_allocator.h"
#include "sim_tables.h"

#include "../../../c/comm/src/comm.h"

#include <syncblob/sim.h>
#include <syncblob/sim_comm.h>
#include <syncblob/syncblob.h>

#define OK(call) expect((call) == SB_OK)

static void *array_of(int64_t count, size_t size) {
    void *array = calloc((size_t)count, size);
    expect(array);
    return array;
}

static const struct bomb *find_bomb(const char *name) {
    for (size_t i = 0; i < num_bombs; i++)
        if (strcmp(bombs[i].name, name) == 0)
            return &bombs[i];
    return NULL;
}

/* The number of calls is proportional to the file's size. */
static void use_model(const sb_model *model) {
    for (int64_t layer = SB_NO_LAYER; layer < sb_model_num_layers(model); layer++) {
        sb_layer_info info = SB_LAYER_INFO_INIT;
        int64_t first, blobs = 0;
        if (layer >= 0 && sb_model_layer_info(model, layer, &info, NULL) == SB_OK)
            ignore(sb_model_find_layer(model, info.name.bytes, info.name.size, &first, NULL));
        ignore(sb_model_num_blobs(model, layer, &blobs, NULL));
        for (int64_t i = 0; i < blobs; i++) {
            sb_blob_info found = SB_BLOB_INFO_INIT;
            sb_blob *blob = NULL;
            ignore(sb_model_blob_info(model, layer, i, &found, NULL));
            if (i % 16 != 0)
                continue;
            OK(sb_blob_create(NULL, SB_DTYPE_F32, &blob, NULL));
            ignore(sb_model_load_blob(model, layer, i, blob, NULL));
            sb_blob_destroy(blob);
        }
    }
}

static void *saved(const sb_model *model, size_t *size) {
    OK(sb_model_size(model, size, NULL));
    void *bytes = array_of((int64_t)*size + 1, 1);
    OK(sb_model_save(model, bytes, *size, NULL, NULL));
    return bytes;
}

static void add_layers(sb_model *model) {
    int64_t found;
    for (int64_t i = sb_model_num_layers(model); i > 0; i--) {
        ignore(sb_model_add_layer(model, (const char *)&i, sizeof i, "", 0, NULL, NULL));
        ignore(sb_model_find_layer(model, (const char *)&i, sizeof i, &found, NULL));
    }
}

static void use_as_blob(const struct wire *wire) {
    sb_blob *blob = NULL;
    int32_t equal;
    OK(sb_blob_create(NULL, SB_DTYPE_F64, &blob, NULL));
    ignore(sb_blob_shape_equals_proto(blob, wire->bytes, wire->size, &equal, NULL));
    ignore(sb_blob_from_proto(blob, wire->bytes, wire->size, SB_PROTO_RESHAPE, NULL, NULL));
    sb_blob_destroy(blob);
}

/* Sets no limits, because a refusal would end the work early. */
static void read_bomb(int32_t format, const struct wire *wire) {
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_layers = limits.max_blobs = INT64_MAX;
    for (int named = 0; named < 2; named++) {
        sb_model *model = NULL;
        size_t size;
        if (sb_model_open_bytes(NULL, named ? format : SB_FORMAT_AUTO, wire->bytes, wire->size,
                                &limits, NULL, NULL, &model, NULL) != SB_OK)
            continue;
        if (named) {
            use_model(model);
            free(saved(model, &size));
            add_layers(model);
        }
        sb_model_destroy(model);
    }
    if (format == SB_FORMAT_BLOB)
        use_as_blob(wire);
}

struct scene {
    sb_context *context;
    sb_stream streams[2];
    void *loan;
};

static void scene_open(struct scene *s, const sb_backend *backend) {
    const sb_context_options options = CONTEXT_OPTIONS(.device = "sim:0", .backend = backend);
    OK(sb_context_create(&options, &s->context, NULL));
    OK(sb_sim_malloc(s->context, 64, &s->loan, NULL));
    for (int i = 0; i < 2; i++)
        OK(sb_sim_stream_create(s->context, &s->streams[i], NULL));
}

static void scene_close(struct scene *s) {
    for (int i = 0; i < 2; i++) {
        OK(sb_context_forget_stream(s->context, s->streams[i], NULL));
        OK(sb_sim_stream_destroy(s->context, s->streams[i], NULL));
    }
    OK(sb_sim_free(s->context, s->loan, NULL));
    sb_context_release(s->context);
}

static int64_t given_back;

static void count_back(void *user, void *ptr) {
    given_back++;
}

static void release_in_a_capture(int64_t count) {
    const sb_backend table = captured_table();
    struct scene s;
    const void *in;
    scene_open(&s, &table);
    sb_mem **memories = array_of(count, sizeof *memories);
    for (int64_t i = 0; i < count; i++) {
        OK(sb_mem_create(s.context, 64, &memories[i], NULL));
        OK(sb_mem_set_gpu(memories[i], s.loan, 64, 0, count_back, NULL, NULL));
        OK(sb_mem_gpu_on(memories[i], s.streams[0], &in, NULL));
    }
    given_back = 0;
    captured_stream = s.streams[0];
    for (int64_t i = 0; i < count; i++)
        sb_mem_release(memories[i]);
    expect(given_back == 0);
    captured_stream = NULL;
    OK(sb_context_synchronize(s.context, NULL));
    expect(given_back == count);
    free(memories);
    scene_close(&s);
}

/* All blobs use one block, because a search through many blocks would dominate the cost. */
static void write_on_two_streams(int64_t count) {
    struct scene s;
    scene_open(&s, NULL);
    sb_blob **blobs = array_of(count, sizeof *blobs);
    for (int64_t i = 0; i < count; i++) {
        OK(sb_blob_create_shaped(s.context, SB_DTYPE_F32, (const int64_t[]){1}, 1, &blobs[i],
                                 NULL));
        OK(sb_blob_set_gpu(blobs[i], SB_DATA, s.loan, sizeof(float), 0, NULL, NULL, NULL));
        OK(sb_blob_scale_on(blobs[i], SB_DATA, 2, s.streams[i < count / 2 ? 0 : 1], NULL));
    }
    for (int i = 1; i >= 0; i--)
        OK(sb_context_forget_stream(s.context, s.streams[i], NULL));
    for (int64_t i = 0; i < count; i++)
        sb_blob_destroy(blobs[i]);
    free(blobs);
    scene_close(&s);
}

/* The factor 1000003 is prime, so the loop visits each layer once. */
static void edit_shuffled(int64_t count) {
    sb_model *model;
    size_t size;
    sb_blob *blob;
    OK(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (const int64_t[]){1}, 1, &blob, NULL));
    OK(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_add_layer(model, "", 0, "", 0, NULL, NULL));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_add_blob(model, i * 1000003 % count, blob, 0, NULL));
    void *bytes = saved(model, &size);
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_pop_layer(model, NULL));
    sb_model_destroy(model);
    OK(sb_model_open_bytes(NULL, SB_FORMAT_CAFFEMODEL, bytes, size, NULL, NULL, NULL, &model,
                           NULL));
    for (int64_t i = count; i-- > 0;)
        OK(sb_model_set_blob(model, i, 0, blob, 0, NULL));
    free(saved(model, &size));
    sb_model_destroy(model);
    free(bytes);
    sb_blob_destroy(blob);
}

/* One thread makes the calls of both ranks. */
static void reduce_at_once(int64_t count) {
    sb_comm *comms[2];
    float values[2] = {1, 2};
    OK(sb_sim_comm_create(NULL, 2, NULL, comms, NULL));
    void **requests = array_of(2 * count, sizeof *requests);
    for (int rank = 0; rank < 2; rank++)
        for (int64_t i = 0; i < count; i++) {
            const sb_comm_buffer buffer = {.ptr = &values[rank], .count = 1, .dtype = SB_DTYPE_F32};
            OK(sb__comm_start(comms[rank], SB_COMM_MAX, &buffer, &requests[rank * count + i],
                              NULL));
        }
    for (int64_t i = 0; i < 2 * count; i++)
        OK(sb__comm_wait(comms[i / count], requests[i], NULL));
    expect(values[0] == 2);
    free(requests);
    sb_comm_destroy(comms[0]);
    sb_comm_destroy(comms[1]);
}

static const struct {
    const char *name;
    void (*run)(int64_t count);
} counts[] = {
    {"release_in_a_capture", release_in_a_capture},
    {"write_on_two_streams", write_on_two_streams},
    {"edit_shuffled", edit_shuffled},
    {"reduce_at_once", reduce_at_once},
};
enum { COUNTS = sizeof counts / sizeof *counts };

static volatile int64_t things; /* keeps the calls below from being tail calls */

/* Not inlined: the profiler finds this function by its name. */
__attribute__((noinline)) static void work_on(const struct bomb *bomb, const struct wire *wire,
                                              int which, int64_t count) {
    if (bomb)
        read_bomb(bomb->format, wire);
    else
        counts[which].run(count);
    things += count;
}

static void measure(const char *name, int64_t size) {
    const struct bomb *bomb = find_bomb(name);
    struct wire wire = {0};
    int which = 0;
    if (bomb)
        bomb_build(bomb, &wire, (size_t)size);
    while (!bomb && strcmp(counts[which].name, name) != 0)
        expect(++which < COUNTS);
    work_on(bomb, &wire, which, size);
    wire_free(&wire);
}

static void write_bomb(const char *name, int64_t size, const char *path) {
    struct wire wire = {0};
    bomb_build(find_bomb(name), &wire, (size_t)size);
    FILE *file = fopen(path, "wb");
    expect(file && fwrite(wire.bytes, 1, wire.size, file) == wire.size && fclose(file) == 0);
    wire_free(&wire);
}

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "";
    const bool reads = strcmp(command, "read") == 0;
    for (size_t i = 0; i < num_bombs && strcmp(command, "bombs") == 0; i++)
        printf("%s\n", bombs[i].name);
    for (int i = 0; i < COUNTS && strcmp(command, "counts") == 0; i++)
        printf("%s\n", counts[i].name);
    for (int i = 4; reads && i < argc; i++)
        for (int size = 2; size < 4; size++)
            measure(argv[i], strtoll(argv[size], NULL, 10));
    if (argc == 5 && strcmp(command, "write") == 0)
        write_bomb(argv[2], strtoll(argv[3], NULL, 10), argv[4]);
    return 0;
}
