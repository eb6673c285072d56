/* Times allocations of memory, and the reading and writing of BlobProto messages. */
#include "harness.h"
#include "peers/caffe.h"
#include "syncblob.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define GOAL_BYTES (64 * MIB)
#define ALLOCATED  (256 * MIB)

static size_t bytes;
static sb_context *context;
static sb_blob *blob;
static const void *payload;
static void *message;
static size_t message_size;
static void *memory;
static void *caffe_blob;
static Sb__BlobProto *unpacked;

static void destroy_blob(void) {
    sb_blob_destroy(blob);
    blob = NULL;
}

static void free_memory(void) {
    fresh_memory_free(memory, bytes);
    memory = NULL;
}

/* --- allocation --------------------------------------------------------------------------- */

static void touch(char *data) {
    for (size_t i = 0; i < bytes; i += 4096)
        data[i] = 1;
    keep(data);
}

static void allocate(void) {
    void *data;
    sb_blob_destroy(blob);
    blob = make_blob(context, SB_DTYPE_F32, bytes / sizeof(float));
    must(sb_blob_mutable_cpu(blob, SB_DATA, &data, NULL));
    touch(data);
}

static void allocate_again(void) {
    void *data;
    sb_blob_destroy(blob);
    blob = make_blob(context, SB_DTYPE_F32, bytes / sizeof(float));
    must(sb_blob_overwrite_cpu(blob, SB_DATA, &data, NULL));
    memset(data, 1, bytes);
    keep(data);
}

static void map(void) {
    free_memory();
    memory = fresh_memory(bytes);
    if (bytes < 2 * MIB) /* malloc does not zero memory */
        memset(memory, 0, bytes);
    touch(memory);
}

static void write_warm(void) {
    memset(memory, 1, bytes);
    keep(memory);
}

static const struct contest fresh = {
    .what = "allocate and write",
    .contestants = {{"syncblob", allocate, destroy_blob}, {"mmap", map, free_memory}},
    .goals = {{"mmap", 1.1, ALLOCATED}},
};

static const struct contest again = {
    .what = "allocate again",
    .contestants = {{"syncblob", allocate_again, destroy_blob},
                    {"writing warm memory", write_warm, NULL}},
    .goals = {{"writing warm memory", 1.1, ALLOCATED}},
};

static void allocation_of_size(size_t size) {
    sb_context_options options = SB_CONTEXT_OPTIONS_INIT;
    bytes = size;
    context = make_context(SB_CONTEXT_NO_HOST_CACHE, NULL);
    contest_run(&fresh, bytes, 1);
    sb_context_release(context);

    options.max_cache_bytes = bytes > ALLOCATED ? bytes : 0;
    must(sb_context_create(&options, &context, NULL));
    memory = fresh_memory(bytes);
    contest_run(&again, bytes, 1);
    free_memory();
    sb_context_release(context);
}

void bench_allocation(void) {
    each_size(allocation_of_size);
}

/* --- messages ------------------------------------------------------------------------------ */

static void make_message(const sb_blob *source) {
    must(sb_blob_cpu(source, SB_DATA, &payload, NULL));
    must(sb_blob_proto_size(source, 0, &message_size, NULL));
    message = malloc(message_size);
    must(sb_blob_to_proto(source, 0, message, message_size, NULL, NULL));
}

/* --- into fresh memory ------------------------------------------------------------------- */

static void load(void) {
    must(sb_blob_from_proto(blob, message, message_size, SB_PROTO_RESHAPE, NULL, NULL));
}

static void load_fresh(void) {
    destroy_blob();
    must(sb_blob_create(context, SB_DTYPE_F32, &blob, NULL));
    load();
}

static void memcpy_warm(void) {
    memcpy(memory, payload, bytes);
    keep(memory);
}

static void memcpy_fresh(void) {
    free_memory();
    memory = fresh_memory(bytes);
    memcpy_warm();
}

static void free_unpacked(void) {
    if (unpacked)
        sb__blob_proto__free_unpacked(unpacked, NULL);
    unpacked = NULL;
}

static void unpack(void) {
    free_unpacked();
    unpacked = sb__blob_proto__unpack(NULL, message_size, message);
    must(unpacked ? 0 : -1);
}

static const struct contest to_fresh_blob = {
    .what = "bytes to fresh blob",
    .contestants = {{"syncblob", load_fresh, destroy_blob}, {"memcpy", memcpy_fresh, free_memory}},
    .goals = {{"memcpy", 1.1, MIB}, {"memcpy", 1.15, GOAL_BYTES}},
};

/* --- reading into a blob that has storage, and writing ------------------------------------- */

static const struct contest to_storage = {
    .what = "bytes to blob with storage",
    .contestants = {{"syncblob", load, NULL},
                    {"memcpy", memcpy_warm, NULL},
                    {"protobuf-c alone", unpack, free_unpacked}},
    .goals = {{"memcpy", 1.15, GOAL_BYTES}, {"protobuf-c alone", 1.3, KIB}},
};

static void save(void) {
    must(sb_blob_to_proto(blob, 0, memory, message_size, NULL, NULL));
}

static void caffe_save(void) {
    bench.caffe->save(caffe_blob, memory, message_size);
}

static const struct contest to_buffer = {
    .what = "blob to buffer",
    .contestants = {{"syncblob", save, NULL}, {"memcpy", memcpy_warm, NULL}},
    .caffe = {{"Caffe", caffe_save, NULL}},
    .goals = {{"memcpy", 1.15, GOAL_BYTES}, {"Caffe", 0.5, KIB}},
};

static void contest_copies(const sb_blob *source) {
    context = make_context(SB_CONTEXT_NO_HOST_CACHE, NULL);
    make_message(source);
    contest_run(&to_fresh_blob, bytes, 1);

    memory = fresh_memory(message_size);
    load_fresh();
    if (bench.caffe)
        caffe_blob = bench.caffe->load(message, message_size);
    contest_run(&to_storage, bytes, 1);
    contest_run(&to_buffer, bytes, 1);
    if (bench.caffe)
        bench.caffe->destroy(caffe_blob);
    destroy_blob();
    fresh_memory_free(memory, message_size);
    memory = NULL;
    free(message);
    sb_context_release(context);
}

/* --- conversions of floats to doubles, and of doubles to floats -------------------------- */

static void widen(void) {
    loop_widen(payload, memory, bytes / sizeof(float));
    keep(memory);
}

static void narrow(void) {
    loop_narrow(payload, memory, bytes / sizeof(float));
    keep(memory);
}

/* The plain loop writes into the blob's memory, so that both contestants use the same pages. */
static void contest_conversion(const char *what, void (*loop)(void), const sb_blob *source,
                               int32_t to) {
    const struct contest contest = {
        .what = what,
        .contestants = {{"syncblob", load, NULL}, {"plain loop", loop, NULL}},
        .goals = {{"plain loop", 1.3, MIB}, {"plain loop", 1.3, GOAL_BYTES}},
    };
    make_message(source);
    must(sb_blob_create(NULL, to, &blob, NULL));
    load();
    must(sb_blob_mutable_cpu(blob, SB_DATA, &memory, NULL));
    contest_run(&contest, bytes, 1);
    destroy_blob();
    memory = NULL;
    free(message);
}

static void contests_of_size(size_t size) {
    const size_t count = size / sizeof(float);
    sb_blob *floats = make_blob(NULL, SB_DTYPE_F32, count);
    sb_blob *doubles = make_blob(NULL, SB_DTYPE_F64, count);
    double *wide;
    const float *values = fill_randomly(floats, SB_DATA, 1);
    bytes = size;
    contest_copies(floats);
    contest_conversion("float message to double blob", widen, floats, SB_DTYPE_F64);
    must(sb_blob_overwrite_cpu_f64(doubles, SB_DATA, &wide, NULL));
    loop_widen(values, wide, count);
    contest_conversion("double message to float blob", narrow, doubles, SB_DTYPE_F32);
    sb_blob_destroy(doubles);
    sb_blob_destroy(floats);
}

void bench_messages(void) {
    each_size(contests_of_size);
}
