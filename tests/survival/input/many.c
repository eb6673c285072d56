/* Makes many objects or calls, for measuring instructions:

       many list
       many read COUNT MORE NAME...

   `read` calls the function work_on for each case with both counts; linear_time.py compares the
   instructions. */
#include "../threads/team.h"
#include "sim_tables.h"

#include "../../../c/comm/src/comm.h"

#include <syncblob/sim.h>
#include <syncblob/sim_comm.h>

#define OK(call) expect((call) == SB_OK)

static void *array_of(int64_t count, size_t size) {
    void *array = calloc((size_t)count, size);
    expect(array);
    return array;
}

/* A context on the simulated device, with a block of its memory, and two streams. */
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

/* --- memories that are released while a stream is captured --------------------------------- */

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

/* --- writes without a wait -------------------------------------------------------------------- */

/* All blobs use one block, since a search through many blocks would dominate. */
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

/* --- edits of a model ------------------------------------------------------------------------ */

static sb_blob *small_blob(void) {
    sb_blob *blob;
    OK(sb_blob_create_shaped(NULL, SB_DTYPE_F32, (const int64_t[]){1}, 1, &blob, NULL));
    return blob;
}

static void *saved(const sb_model *model, size_t *size) {
    OK(sb_model_size(model, size, NULL));
    void *bytes = array_of((int64_t)*size, 1);
    OK(sb_model_save(model, bytes, *size, NULL, NULL));
    return bytes;
}

/* Adds a blob to each layer. 1000003 is prime, so that the loop visits each layer once. The test
   behaviour.edits checks that searches are short after additions in any order. */
static void add_shuffled(int64_t count) {
    sb_model *model;
    size_t size;
    sb_blob *blob = small_blob();
    OK(sb_model_create(NULL, SB_FORMAT_CAFFEMODEL, &model, NULL));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_add_layer(model, "", 0, "", 0, NULL, NULL));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_add_blob(model, i * 1000003 % count, blob, 0, NULL));
    free(saved(model, &size));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_pop_layer(model, NULL));
    sb_model_destroy(model);
    sb_blob_destroy(blob);
}

/* Replaces all blobs of one list, such as the history of a solver state, from the last to the
   first. */
static void replace_backwards(int64_t count) {
    sb_model *model;
    sb_blob *blob = small_blob();
    OK(sb_model_create(NULL, SB_FORMAT_SOLVERSTATE, &model, NULL));
    for (int64_t i = 0; i < count; i++)
        OK(sb_model_add_blob(model, SB_NO_LAYER, blob, 0, NULL));
    size_t size;
    void *bytes = saved(model, &size);
    sb_model_destroy(model);
    sb_limits limits = SB_LIMITS_INIT;
    limits.max_blobs = INT64_MAX;
    OK(sb_model_open_bytes(NULL, SB_FORMAT_SOLVERSTATE, bytes, size, &limits, NULL, NULL, &model,
                           NULL));
    for (int64_t i = count; i-- > 0;)
        OK(sb_model_set_blob(model, SB_NO_LAYER, i, blob, 0, NULL));
    free(saved(model, &size));
    sb_model_destroy(model);
    free(bytes);
    sb_blob_destroy(blob);
}

/* --- requests in flight ----------------------------------------------------------------------- */

/* Starts `count` requests on each of two ranks; one thread makes the calls of both ranks. */
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

/* --- the program ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(int64_t count);
} cases[] = {
    {"release_in_a_capture", release_in_a_capture}, /* `count` memories */
    {"write_on_two_streams", write_on_two_streams}, /* `count` blobs */
    {"add_shuffled", add_shuffled},                 /* `count` blobs, one in each layer */
    {"replace_backwards", replace_backwards},       /* `count` blobs of one list */
    {"reduce_at_once", reduce_at_once},
};
enum { CASES = sizeof cases / sizeof *cases };

static volatile int64_t things; /* keeps the call below from being a tail call */

/* Not inlined: the profiler finds this function by its name. */
__attribute__((noinline)) static void work_on(int which, int64_t count) {
    cases[which].run(count);
    things += count;
}

int main(int argc, char **argv) {
    for (int which = 0; which < CASES; which++)
        if (argc == 2 && strcmp(argv[1], "list") == 0)
            printf("%s\n", cases[which].name);
        else
            for (int name = 4; name < argc; name++)
                for (int i = 2; i < 4 && strcmp(cases[which].name, argv[name]) == 0; i++)
                    work_on(which, strtoll(argv[i], NULL, 10));
    return 0;
}
